package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/cli"
)

// terminal is a new pseudo terminal: what is written to the file comes out of the other end.
func terminal(t *testing.T) (of, end *os.File) {
	t.Helper()
	end, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = end.Close() })
	fd := int(end.Fd())
	must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(t, err)
	of, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = of.Close() })
	must(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 70}))
	return of, end
}

// shown is what comes out of a terminal until the command has ended, or until a text has come.
func shown(t *testing.T, end *os.File, until string) string {
	t.Helper()
	var all bytes.Buffer
	part := make([]byte, 4096)
	for !strings.Contains(all.String(), until) {
		n, err := end.Read(part)
		if err != nil {
			t.Errorf("waiting for %q, and there is\n%s", until, all.String())
			break
		}
		all.Write(part[:n])
	}
	return all.String()
}

// TestColours: colours are for terminals, unless somebody wants none, and say nothing of their own.
func TestColours(t *testing.T) {
	snapshot := filepath.Join(t.TempDir(), "node.snapshot")
	captured(t, snapshot)
	pod := filepath.Join(t.TempDir(), "pod.yaml")
	must(t, os.WriteFile(pod, []byte(`{apiVersion: v1, kind: Pod, metadata: {name: app, namespace: default},
		spec: {containers: [{name: c, image: x, resources: {limits: {hca_shared: "1"}}}]}}`), 0o600))
	run := func(env map[string]string, args ...string) string {
		of, end := terminal(t)
		e := cli.Env{
			Name: "kubectl-device", Version: "v0", Args: args, Stdin: strings.NewReader(""), Stdout: of, Stderr: of,
			Getenv: func(name string) string { return env[name] }, Host: "/",
		}
		e.Width, e.Watched = cli.Terminal(of, of)
		if e.Width != 70 || !e.Watched {
			t.Fatalf("the terminal has %d columns, and somebody watching is %v", e.Width, e.Watched)
		}
		done := make(chan string)
		go func() { done <- shown(t, end, "END") }()
		if code := cli.Main(t.Context(), e); code > 1 {
			t.Errorf("%v exits with %d", args, code)
		}
		fmt.Fprint(of, "END")
		return <-done
	}
	const escape = "\x1b["
	for _, test := range []struct {
		args  []string
		env   map[string]string
		wants bool
	}{
		{args: []string{"inventory", "--root", snapshot}, wants: true},
		{args: []string{"inventory", "--root", snapshot, "-o", "tree"}, wants: true},
		{args: []string{"inventory", "--root", snapshot}, env: map[string]string{"NO_COLOR": "1"}},
		{args: []string{"inventory", "--root", snapshot}, env: map[string]string{"TERM": "dumb"}},
		{args: []string{"inventory", "--root", snapshot, "--color", "always"}, env: map[string]string{"NO_COLOR": "1"}, wants: true},
		{args: []string{"inventory", "--root", snapshot, "--color", "never"}},
		{args: []string{"inventory", "--root", snapshot, "-o", "json"}},
		{args: []string{"inventory", "--root", snapshot, "-o", "svg"}},
		{args: []string{"check", "--fail-on", "never", pod}, wants: true},
		{args: []string{"check", "--fail-on", "never", pod}, env: map[string]string{"NO_COLOR": "1"}},
		{args: []string{"check", "--fail-on", "never", "--color", "never", pod}},
	} {
		text := run(test.env, test.args...)
		if strings.Contains(text, escape) != test.wants {
			t.Errorf("%v with %v: colours are %v, want %v:\n%s", test.args, test.env, !test.wants, test.wants, text)
		}
	}
	// A colour says nothing that is not there without it.
	plain := run(nil, "inventory", "--root", snapshot, "--color", "never")
	coloured := run(nil, "inventory", "--root", snapshot)
	for _, code := range []string{"32", "31", "33", "90", "0"} {
		coloured = strings.ReplaceAll(coloured, escape+code+"m", "")
	}
	if plain != coloured {
		t.Errorf("without colours it says\n%s\nand with them\n%s", plain, coloured)
	}
}

// captured writes a simulated node.
func captured(t *testing.T, to string) {
	t.Helper()
	var out bytes.Buffer
	code := cli.Main(t.Context(), cli.Env{
		Name: "kubectl-device", Args: []string{"sim", "export", "--platform", "workstation"}, Stdout: &out, Stderr: io.Discard,
		Getenv: os.Getenv, Host: "/",
	})
	if code != 0 {
		t.Fatalf("sim export exits with %d", code)
	}
	must(t, os.WriteFile(to, out.Bytes(), 0o600))
}

// TestProgress: whoever waits at a terminal for a slow cluster is told so, and a file is not.
func TestProgress(t *testing.T) {
	for _, args := range [][]string{
		{"check", "--live"}, {"explain", "pod", "team/x", "--live"}, {"holders", "--live"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			told := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				<-told // it answers when it was said that it takes long
				w.WriteHeader(http.StatusInternalServerError)
			}))
			defer server.Close()
			config := kubeconfig(t, server.URL, "")
			of, end := terminal(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				cli.Main(ctx, cli.Env{
					Name: "kubectl-device", Args: append(args, "--kubeconfig", config), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: of,
					Getenv: os.Getenv, Host: "/", Watched: true,
				})
			}()
			shown(t, end, "reading the cluster at "+server.URL+" ...")
			close(told)
			cancel()
			<-ended
		})
	}
}
