package confine_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/confine"
)

// TestRefusedFilter: where a runtime's profile takes no filter, the program goes on, and can say why it has none. That
// it has no Landlock either is no reason not to.
func TestRefusedFilter(t *testing.T) {
	without := map[string][]uint32{
		"a filter":                {unix.SYS_SECCOMP},
		"a filter, nor Landlock":  {unix.SYS_SECCOMP, unix.SYS_LANDLOCK_CREATE_RULESET},
		"a filter, nor its rules": {unix.SYS_SECCOMP, unix.SYS_LANDLOCK_RESTRICT_SELF},
	}
	if name := os.Getenv("CONFINE_REFUSED"); name != "" {
		refused(t, without[name])
		return
	}
	for name := range without {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestRefusedFilter$")
			cmd.Env = append(os.Environ(), "CONFINE_REFUSED="+name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// refused confines the process on a thread to which some system calls are refused.
func refused(t *testing.T, calls []uint32) {
	runtime.LockOSThread() // this thread alone is refused
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for _, call := range calls {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		t.Fatal(err)
	}
	report, err := confine.Process(confine.Access{Read: []string{"/"}})
	why := report.Why
	if err != nil {
		why = err.Error()
	}
	if report.Sockets || report.Complete || !strings.Contains(why, "refuse sockets by a seccomp filter: operation not permitted") {
		t.Errorf("the report is %+v, %v", report, err)
	}
	if err := open(unix.AF_INET, unix.SOCK_DGRAM, 0); err != nil {
		t.Errorf("sockets are refused all the same: %v", err)
	}
}
