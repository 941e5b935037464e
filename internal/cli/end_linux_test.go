package cli_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSignals: two signals end the real command while it reads a pipe that stays open.
func TestSignals(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string // FIFO stands for the pipe
	}{
		{"file", []string{"check", "FIFO"}},
		{"standard input", []string{"check", "-"}},
		{"rules to ignore", []string{"check", "--ignore", "FIFO", "."}},
		{"capture", []string{"inventory", "--root", "FIFO"}},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(test.name+" "+signal.String(), func(t *testing.T) {
				twice(t, test.args, signal)
			})
		}
	}
}

// TestSignalsToSimulated: two signals end a command on a simulated node that heeds none, and nothing of the
// node is left.
func TestSignalsToSimulated(t *testing.T) {
	for _, sent := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		dir, err := os.MkdirTemp("/dev/shm", "kubectl-device-test")
		must(t, err)
		t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
		cmd := exec.CommandContext(t.Context(), "kubectl-device", "sim", "--platform", "workstation", "--",
			"sh", "-c", "trap '' TERM INT; echo runs; exec sleep 60")
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		said, err := cmd.StderrPipe()
		must(t, err)
		told, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if line, err := bufio.NewReader(told).ReadString('\n'); line != "runs\n" {
			t.Fatalf("the command said %q, %v", line, err)
		}
		end(t, cmd.Process, sent)
		if line, err := bufio.NewReader(said).ReadString('\n'); !strings.Contains(line, "another signal ends") {
			t.Fatalf("it said %q, %v", line, err)
		}
		end(t, cmd.Process, sent)
		var ended *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != 128+int(syscall.SIGKILL) {
			t.Errorf("after two of %s: %v", sent, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("after two of %s there is left %v, %v", sent, left, err)
		}
	}
}

func twice(t *testing.T, args []string, signal syscall.Signal) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "kubectl-device", strings.Split(strings.ReplaceAll(strings.Join(args, "\n"), "FIFO", fifo), "\n")...)
	cmd.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(cmd.Dir, "pod.yaml"), []byte("{apiVersion: v1, kind: Pod, metadata: {name: a}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if args[len(args)-1] == "-" {
		fill(t, stdin.(*os.File))
	} else {
		defer opened(t, fifo).Close()
	}
	end(t, cmd.Process, signal)
	line, err := bufio.NewReader(said).ReadString('\n')
	if !strings.Contains(line, "another signal ends this one at once") {
		t.Fatalf("it said %q, %v", line, err)
	}
	end(t, cmd.Process, signal)
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != signal {
		t.Errorf("after two of %s: %v", signal, err)
	}
}

// fill writes so much into a pipe that who has it must have begun to read.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	err := pipe.SetWriteDeadline(time.Now().Add(time.Minute))
	if err == nil {
		_, err = pipe.WriteString(strings.Repeat("#\n", 1<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// opened is a pipe that somebody has opened for reading.
func opened(t *testing.T, fifo string) *os.File {
	t.Helper()
	pipe := make(chan *os.File, 1)
	go func() {
		f, _ := os.OpenFile(fifo, os.O_WRONLY, 0) // which waits for that
		pipe <- f
	}()
	select {
	case f := <-pipe:
		return f
	case <-time.After(time.Minute):
		t.Fatal("nobody has opened the pipe")
		return nil
	}
}

func end(t *testing.T, p *os.Process, signal syscall.Signal) {
	t.Helper()
	if err := p.Signal(signal); err != nil {
		t.Fatal(err)
	}
}
