package docs_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"

	"kata-device-plugin/internal/docs"
)

// TestKubectl: every command of kubectl in the documents is one that kubectl has, with flags that it knows
// and that have the values that they take. What it would do with a cluster is not tested here.
func TestKubectl(t *testing.T) {
	pages, err := docs.Pages("../..")
	must(t, err)
	found := 0
	for _, p := range pages {
		for _, b := range p.Blocks() {
			script, ok := b.Script()
			if !ok || !strings.Contains(script, "kubectl ") {
				continue
			}
			commands, err := docs.Parse(fmt.Sprintf("%s:%d", p.Name, b.Line), script)
			must(t, err)
			for _, c := range commands {
				if c.Args[0] != "kubectl" || c.Args[1] == "device" { // that is this repository's
					continue
				}
				found++
				if err := understood(c.Args[1:]); err != nil {
					t.Errorf("%s: %q: %v", c.Where, c.Args, err)
				}
			}
		}
	}
	if found < 60 {
		t.Errorf("found only %d commands", found)
	}
}

// TestWrongKubectl: what kubectl does not have is noticed.
func TestWrongKubectl(t *testing.T) {
	for _, line := range []string{
		"aply -k deploy", "apply -k", "get pods --nosuch", "rollout sttus daemonset/x", "wait pod --timeout=soon", "label node NODE --overwrite=perhaps",
	} {
		if understood(strings.Fields(line)) == nil {
			t.Errorf("kubectl understands %q", line)
		}
	}
	for _, line := range []string{"-n kube-system get pods -o wide", "exec POD -- /bin/x -addr=y", "drain NODE --ignore-daemonsets"} {
		if err := understood(strings.Fields(line)); err != nil {
			t.Errorf("kubectl does not understand %q: %v", line, err)
		}
	}
}

// understood finds the command and reads its flags, as kubectl itself does before it asks anybody.
func understood(args []string) error {
	root := cmd.NewKubectlCommand(cmd.KubectlOptions{
		Arguments:   append([]string{"kubectl"}, args...),
		ConfigFlags: genericclioptions.NewConfigFlags(true),
		IOStreams:   genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard},
	})
	found, rest, err := root.Find(args)
	if err != nil {
		return fmt.Errorf("find the command: %w", err)
	}
	if err := found.ParseFlags(rest); err != nil {
		return fmt.Errorf("read the flags of %s: %w", found.Name(), err)
	}
	left := found.Flags().Args()
	if len(left) > 0 && found.HasSubCommands() {
		return fmt.Errorf("%s has no %s", found.Name(), left[0])
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
