// Command demo shows the device plugin at work: a simulated node, kubelet's own device
// manager, and the plugin as a process of its own. Everything that it prints was read
// back from kubelet or from the CDI directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"kata-device-plugin/internal/sim"
)

func main() { os.Exit(demo()) }

func demo() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}

// run plays the demo on the platform that the arguments name.
func run(ctx context.Context, args []string) (err error) {
	var names []string
	for _, p := range sim.Platforms() {
		names = append(names, p.Name)
	}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	name := flags.String("platform", "hgx-h100", "the simulated node: "+strings.Join(names, ", "))
	verbose := flags.Bool("v", false, "show the plugin's log at the end, also when all went well")
	if err := flags.Parse(args); err != nil {
		return err
	}
	platform, err := sim.PlatformByName(*name)
	if err != nil {
		return err
	}
	s, err := newStage(ctx, platform)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(*verbose || err != nil)) }()
	return s.play(ctx)
}
