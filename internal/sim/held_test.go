package sim

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// victimVariable tells a process that it is TestHoldKilled's, and where to make a directory.
const victimVariable = "SIM_TEST_VICTIM"

// TestHoldKilled: a directory stays while its process lives, and the next process removes it.
func TestHoldKilled(t *testing.T) {
	if parent := os.Getenv(victimVariable); parent != "" {
		dir, err := Hold(parent, "held.")
		must(t, err, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		fmt.Println(dir)
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the process that is to kill this one
		return
	}
	parent := t.TempDir()
	victim := exec.Command(os.Args[0], "-test.run=^TestHoldKilled$")
	victim.Env = append(os.Environ(), victimVariable+"="+parent)
	victim.Stderr = os.Stderr
	_, err := victim.StdinPipe()
	must(t, err)
	out, err := victim.StdoutPipe()
	must(t, err, victim.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	abandoned := strings.TrimSpace(line)

	ours, err := Hold(parent, "held.")
	must(t, err)
	if got := entriesOf(t, parent); len(got) != 2 {
		t.Errorf("while both live: %v", got)
	}
	must(t, victim.Process.Kill())
	_ = victim.Wait() // it says that it was killed
	next, err := Hold(parent, "held.")
	must(t, err)
	want := []string{filepath.Base(ours), filepath.Base(next)}
	slices.Sort(want)
	if got := entriesOf(t, parent); !slices.Equal(got, want) {
		t.Errorf("%s was killed: %v, want %v", abandoned, got, want)
	}
}

// TestHoldOnly: what nobody can have made who holds it is left alone.
func TestHoldOnly(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(elsewhere, "file"), nil, 0o600),
		os.Symlink(elsewhere, filepath.Join(parent, "held.link")),
		os.WriteFile(filepath.Join(parent, "held.file"), nil, 0o600),
		os.Mkdir(filepath.Join(parent, "other.1"), 0o700),
		os.Mkdir(filepath.Join(parent, "held.1"), 0o700))
	want := []string{"held.file", "held.link", "other.1"}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(parent, "held.foreign")
		must(t, os.Mkdir(foreign, 0o700), os.Chown(foreign, 65534, 65534))
		want = []string{"held.file", "held.foreign", "held.link", "other.1"}
	}
	sweep(parent, "held.")
	if got := entriesOf(t, parent); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := entriesOf(t, elsewhere); len(got) != 1 {
		t.Errorf("behind a link: %v", got)
	}
}

// TestHoldRace: whoever sweeps while others make directories takes none away from them.
func TestHoldRace(t *testing.T) {
	parent := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				dir, err := Hold(parent, "held.")
				if err == nil {
					_, err = os.Stat(dir)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := entriesOf(t, parent); len(got) != 80 {
		t.Errorf("%d directories", len(got))
	}
}

func entriesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
