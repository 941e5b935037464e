package kernel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// childVariable says to a process that a test has started which one it is.
const childVariable = "KERNEL_TEST_CHILD"

// victim is a process of its own with this test in it, to be killed.
type victim struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

// again starts this test once more. There it finds the value of childVariable.
func again(t *testing.T, value string, env ...string) *victim {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$")
	cmd.Env = append(append(os.Environ(), childVariable+"="+value), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v := &victim{cmd: cmd, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // where the test has not come to that
		_ = cmd.Wait()         // it says that it was killed
	})
	return v
}

// says waits for the victim's next line.
func (v *victim) says(t *testing.T) []string {
	t.Helper()
	line, err := v.out.ReadString('\n')
	if err != nil {
		t.Fatalf("wait for the child: %v", err)
	}
	return strings.Fields(line)
}

func (v *victim) kill(t *testing.T) {
	t.Helper()
	if err := v.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// process is one that is to end.
type process struct {
	pid string
	fd  int
}

// watch finds processes while they live, so that their numbers cannot mean others later.
func watch(t *testing.T, pids ...string) []process {
	t.Helper()
	var all []process
	for _, pid := range pids {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(n, 0)
		if err != nil {
			t.Fatalf("process %s: %v", pid, err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		all = append(all, process{pid, fd})
	}
	return all
}

// ends waits for the end of processes.
func ends(t *testing.T, all []process) {
	t.Helper()
	for _, p := range all {
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		n, err := 0, error(unix.EINTR)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll(fds, int((20 * time.Second).Milliseconds()))
		}
		if err != nil || n == 0 {
			t.Errorf("process %s goes on: %v", p.pid, err)
		}
	}
}

// inShell has a shell start another program, as make starts compilers, and says their numbers.
const inShell = `sleep 60 & echo $$ $!; wait`

// Whatever ends this process, it takes its commands and its directory along, and the cache stays
// locked until nothing works in it any more.
func TestKilled(t *testing.T) {
	if cache := os.Getenv(childVariable); cache != "" {
		killed(t, cache)
		return
	}
	cache := t.TempDir()
	v := again(t, cache)
	room := v.says(t)
	alive := watch(t, append(v.says(t), room[0])...)
	other := &work{out: io.Discard, cache: cache}
	v.kill(t)
	if err := other.take(); err != nil {
		t.Fatal(err)
	}
	defer other.release()
	for _, p := range alive[:2] { // the lock came free, so these have closed their files, and are ending
		if files, err := os.ReadDir("/proc/" + p.pid + "/fd"); err == nil && len(files) > 0 {
			t.Errorf("process %s works in the cache still", p.pid)
		}
	}
	ends(t, alive)
	if _, err := os.Stat(room[1]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", room[1], err)
	}
}

// killed is the process that TestKilled kills.
func killed(t *testing.T, cache string) {
	r, err := newRoom("killed-")
	if err != nil {
		t.Fatal(err)
	}
	w := &work{out: io.Discard, cache: cache, dir: r.dir}
	if err := errors.Join(w.take(), os.WriteFile(filepath.Join(r.dir, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	fmt.Println(r.sweeps.Process.Pid, r.dir)
	cmd, err := w.command(t.Context(), "sh", "-c", inShell)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = os.Stdout
	t.Fatal(cmd.Run())
}

// A command that ends takes what it has left running along, and leaves its status.
func TestLeash(t *testing.T) {
	cmd, err := leash(t.Context(), "sh", []string{"-c", `sleep 60 >&- 2>&- & echo $!; exit 3`})
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
		t.Errorf("it ended with %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	ends(t, []process{{strconv.Itoa(pid), fd}})
}

// A run that is not killed leaves nothing either.
func TestRoom(t *testing.T) {
	r, err := newRoom("room-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(r.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", r.dir, err)
	}
}

// firstLine waits for the first line that comes through a named pipe.
func firstLine(t *testing.T, pipe string) string {
	t.Helper()
	f, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that to open it does not wait
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		t.Fatalf("wait for a line: %v", err)
	}
	return strings.TrimSpace(line)
}

// machineIsKilled kills a test run while the plugin works in a machine.
func machineIsKilled(t *testing.T, lab *Lab) {
	pid := filepath.Join(t.TempDir(), "pid")
	if err := unix.Mkfifo(pid, 0o600); err != nil {
		t.Fatal(err)
	}
	v := again(t, strings.Join([]string{lab.Small.Program, lab.Kernel, lab.Initramfs, pid}, "\n"))
	room := v.says(t)
	alive := watch(t, room[0], firstLine(t, pid))
	firstLine(t, filepath.Join(room[1], pluginLog))
	v.kill(t)
	ends(t, alive)
	if _, err := os.Stat(room[1]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", room[1], err)
	}
}

// killedMachine is the process that machineIsKilled kills.
func killedMachine(t *testing.T, value string) {
	paths := strings.Split(value, "\n")
	r, err := newRoom("killed-")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(r.dir, pluginLog), 0o600); err != nil {
		t.Fatal(err)
	}
	fmt.Println(r.sweeps.Process.Pid, r.dir)
	lab := &Lab{Kernel: paths[1], Initramfs: paths[2], room: r}
	lab.Small = QEMU{Program: "sh", Args: []string{"-c", `echo $$ >"$0"; exec "$@"`, paths[3], paths[0]}}
	_, err = lab.Boot(t.Context(), Machines()[0], r.dir)
	t.Fatal(err)
}
