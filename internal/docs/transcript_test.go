package docs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/collect"
	"kata-device-plugin/internal/docs"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
)

// TestTranscripts: what the documents say that a command prints is what it prints. With -update they are
// written anew. What make prints is for test/docs, which has what the demo needs.
func TestTranscripts(t *testing.T) {
	ran := 0
	for _, p := range pages(t) {
		lines, changed := strings.Split(p.Text, "\n"), false
		blocks := p.Blocks()
		dir := workspace(t) // of the whole page, so that what one block has written is there for the next
		for i, b := range blocks {
			if !isTranscript(b) {
				continue
			}
			ran++
			blocks[i].Lines = rerun(t, dir, b)
			if !slices.Equal(blocks[i].Lines, b.Lines) {
				changed = true
				at := firstDifference(blocks[i].Lines, b.Lines)
				t.Logf("%s:%d: it prints\n%q, and the document has\n%q", p.Name, b.Line+at, line(blocks[i].Lines, at), line(b.Lines, at))
			}
		}
		if !changed {
			continue
		}
		if !golden.FlagUpdate() {
			t.Errorf("%s: commands print something else: go test ./internal/docs -run TestTranscripts -update", p.Name)
			continue
		}
		for i, b := range slices.Backward(p.Blocks()) {
			if isTranscript(b) { // the lines of others are without their indentation
				lines = slices.Replace(lines, b.Line-1, b.Line-1+len(b.Lines), blocks[i].Lines...)
			}
		}
		must(t, os.WriteFile(filepath.Join(top, p.Name), []byte(strings.Join(lines, "\n")), 0o644))
	}
	if ran < 5 {
		t.Errorf("only %d blocks are transcripts", ran)
	}
}

func firstDifference(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func line(lines []string, at int) string {
	if at >= len(lines) {
		return ""
	}
	return lines[at]
}

// isTranscript says whether a block shows what this repository's program prints.
func isTranscript(b docs.Block) bool {
	if b.Lang != "console" {
		return false
	}
	return !slices.ContainsFunc(b.Steps(), func(s docs.Step) bool { return !strings.HasPrefix(s.Script, tool+" ") })
}

// rerun runs the steps of a block, and returns what a reader would see.
func rerun(t *testing.T, dir string, b docs.Block) []string {
	t.Helper()
	var seen []string
	for _, s := range b.Steps() {
		c := exec.CommandContext(t.Context(), "bash", "-c", s.Script)
		c.Dir = dir
		c.Env = append(os.Environ(), "PATH="+filepath.Join(dir, ".bin")+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
			t.Fatal(err) // the exit code is no part of what is seen
		}
		typed := strings.Split("$ "+s.Script, "\n")
		seen = append(seen, typed...)
		if text := strings.TrimRight(string(out), "\n"); text != "" {
			for line := range strings.SplitSeq(text, "\n") {
				seen = append(seen, strings.TrimRight(line, " "))
			}
		}
	}
	return seen
}

// workspace is a directory as a reader has it who stands at the root of the repository.
func workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, ".bin"), 0o755))
	must(t, os.Symlink(self, filepath.Join(dir, ".bin", tool)))
	root, err := filepath.Abs(top)
	must(t, err)
	for _, name := range []string{"deploy", "docs"} {
		must(t, os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)))
	}
	return dir
}

// TestBroken: the captured node that the documents explain is one that the simulated node can be: the
// inventory says the same of both. It is written anew with -update, as root: others have no device numbers.
func TestBroken(t *testing.T) {
	node := broken(t)
	c, err := collect.Node(t.Context(), collect.Options{
		Root: node.dir, Hostname: "node-1", Tool: tool, Time: time.Unix(0, 0).UTC(), Links: node.Links,
	})
	must(t, err)
	capture.Mask(c)
	var text strings.Builder
	_, err = c.WriteTo(&text)
	must(t, err)
	const name = "docs/examples/broken.snapshot"
	if golden.FlagUpdate() {
		must(t, os.WriteFile(filepath.Join(top, name), []byte(text.String()), 0o644))
	}
	dir := workspace(t)
	must(t, os.WriteFile(filepath.Join(dir, "now.snapshot"), []byte(text.String()), 0o644))
	said := func(file string) string {
		b := docs.Block{Lang: "console", Lines: []string{"$ " + tool + " inventory --root " + file}}
		return strings.Join(rerun(t, dir, b)[1:], "\n")
	}
	if got, want := said("now.snapshot"), said(name); got != want {
		t.Errorf("the inventory of %s is\n%s\nand of the simulated node\n%s\ngo test ./internal/docs -run TestBroken -update", name, want, got)
	}
}

// simulated is a simulated node and where it is.
type simulated struct {
	*sim.Node

	dir string
}

// broken is an HGX H100 of which two GPUs are not bound to VFIO: one to no driver, one to the vendor's.
func broken(t *testing.T) simulated {
	t.Helper()
	dir, err := sim.TempDir()
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	shape, err := sim.PlatformByName("hgx-h100")
	must(t, err)
	root := filepath.Join(dir, "node")
	node, err := sim.New(root, shape)
	must(t, err)
	must(t, node.Unbind(address(t, "0000:b9:00.0")))
	must(t, node.Unbind(address(t, "0000:ca:00.0")))
	must(t, node.Bind(address(t, "0000:ca:00.0"), "nvidia"))
	return simulated{node, root}
}

func address(t *testing.T, text string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(text)
	must(t, err)
	return a
}
