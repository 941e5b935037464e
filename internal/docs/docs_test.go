package docs_test

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"kata-device-plugin/internal/cli"
	"kata-device-plugin/internal/docs"
)

const (
	top  = "../.." // of the repository
	tool = "kubectl-device"
)

// TestMain makes the test binary kubectl-device as well, for transcripts and for what it starts itself.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == tool {
		os.Exit(command())
	}
	os.Exit(m.Run())
}

func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return cli.Main(ctx, cli.Env{
		Name: tool, Version: "v0.0.0-test", Args: os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Host: "/",
	})
}

func pages(t *testing.T) []docs.Page {
	t.Helper()
	all, err := docs.Pages(top)
	must(t, err)
	if len(all) < 20 {
		t.Fatalf("there are only %d documents", len(all))
	}
	return all
}

func page(t *testing.T, name string) docs.Page {
	t.Helper()
	for _, p := range pages(t) {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("there is no %s", name)
	return docs.Page{}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
