package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the kernel puts what a filter looks at (struct seccomp_data), on machines of little endian.
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16 // the first argument; families have 32 bits
)

// otherABI is where numbers of system calls of amd64's x32 begin, which is the same architecture to a filter.
const otherABI = 0x40000000

// onlyLocalSockets makes the kernel refuse all sockets but those of Unix and of netlink, for all threads and
// what they start. Landlock knows TCP and, in new kernels, UDP; Multipath TCP, vsock and raw sockets it lets pass.
// io_uring, which makes sockets past a filter, and system calls of other ABIs are refused as well.
func onlyLocalSockets() error {
	arch, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return fmt.Errorf("refuse sockets: no seccomp filter for %s", runtime.GOARCH)
	}
	const load, equal, from, end = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{ // Jt and Jf count the lines to leave out
		{Code: load, K: atArch},
		{Code: equal, K: arch, Jf: 9},
		{Code: load, K: atNumber},
		{Code: from, K: otherABI, Jt: 7},
		{Code: equal, K: unix.SYS_SOCKET, Jt: 2},
		{Code: equal, K: unix.SYS_SOCKETPAIR, Jt: 1},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 4, Jf: 3},
		{Code: load, K: atFirst},
		{Code: equal, K: unix.AF_UNIX, Jt: 1},
		{Code: equal, K: unix.AF_NETLINK, Jf: 1},
		{Code: end, K: unix.SECCOMP_RET_ALLOW},
		{Code: end, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}

	// Without privileges a filter takes no_new_privs, which the other threads get with it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse sockets: set no_new_privs: %w", err)
	}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program))) //nolint:gosec // that is how the kernel takes it
	if errno != 0 {
		return fmt.Errorf("refuse sockets by a seccomp filter: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("refuse sockets by a seccomp filter: thread %d has another one", thread)
	}
	return nil
}
