package cli_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"kata-device-plugin/internal/cli"
)

// TestMain makes the test binary the command as well, for the scripts and for what the command starts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kubectl-device": func() { os.Exit(command()) }})
}

func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	host := os.Getenv("TEST_HOST")
	if host == "" {
		host = "/"
	}
	return cli.Process(ctx, stop, cli.Env{
		Name: "kubectl-device", Version: "v0.0.0-test", Args: os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Host: host,
	})
}

// TestScripts runs testdata/script: the command as people use it, and what it prints. With
// UPDATE_SCRIPTS=1 the files in the scripts that cmp compares are written anew.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "", RequireExplicitExec: true, RequireUniqueNames: true,
	})
}
