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

// TestRefusedFilter: where a runtime's profile takes no filter, the program goes on, and can say why it has none.
func TestRefusedFilter(t *testing.T) {
	if os.Getenv("CONFINE_REFUSED") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRefusedFilter$")
		cmd.Env = append(os.Environ(), "CONFINE_REFUSED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	runtime.LockOSThread() // this thread alone is refused
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SECCOMP, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		t.Fatal(err)
	}
	report, err := confine.Process(confine.Access{Read: []string{"/"}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Sockets || report.Complete || !strings.Contains(report.Why, "operation not permitted") && report.ABI > 0 {
		t.Errorf("the report is %+v", report)
	}
	if err := open(unix.AF_INET, unix.SOCK_DGRAM, 0); err != nil {
		t.Errorf("sockets are refused all the same: %v", err)
	}
}
