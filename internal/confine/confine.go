// Package confine gives up, for the rest of the process's life, the access to the file
// system and the network that a program does not need (Landlock, and a seccomp filter of sockets).
package confine

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Access is what a process keeps.
type Access struct {
	// Read are trees whose files may be read.
	Read []string
	// List are trees whose directories may be listed, and nothing else: the files in
	// them cannot be opened. File attributes can always be asked for.
	List []string
	// Write are directories in which files and sockets may be made, replaced
	// and removed, and whose sockets may be connected to.
	Write []string
	// Trees are as Write, and directories in them may be made, removed and moved between as well.
	Trees []string
	// Connect are directories whose sockets may be connected to.
	Connect []string
	// Network keeps all sockets. Without it only those of Unix and of netlink are left.
	Network bool
}

// Report says how much of it the kernel enforces.
type Report struct {
	// ABI is the kernel's Landlock version, 0 when it is not to be had.
	ABI int
	// Why is the reason for that (no such system call, switched off, or refused by a seccomp filter) and the one for
	// which sockets are not refused, as far as there are any.
	Why string
	// Sockets says whether other sockets than those of Unix and of netlink are refused.
	Sockets bool
	// Complete says whether all that was given up is refused: by Landlock (ABI 4, Linux 6.7), and the sockets.
	Complete bool
}

// Process confines the process, all its threads and what they start. What the kernel
// does not know is left out. Paths that do not exist are passed over.
func Process(a Access) (Report, error) {
	report, err := files(a)
	if a.Network {
		return report, err
	}
	refused := onlyLocalSockets()
	report.Sockets = refused == nil
	report.Complete = report.Complete && report.Sockets
	switch {
	case refused == nil:
	case err != nil: // which is all that is said then
		err = fmt.Errorf("%w; %w", err, refused)
	case report.Why != "":
		report.Why += "; " + refused.Error()
	default:
		report.Why = refused.Error()
	}
	return report, err
}

// files is what Landlock does.
func files(a Access) (Report, error) {
	abi, err := llsyscall.LandlockGetABIVersion()
	if err != nil {
		return Report{Why: err.Error()}, nil //nolint:nilerr // an answer, not a failure
	}
	const (
		list = landlock.AccessFSSet(llsyscall.AccessFSReadDir)
		read = landlock.AccessFSSet(llsyscall.AccessFSReadDir | llsyscall.AccessFSReadFile)
		own  = read | landlock.AccessFSSet(llsyscall.AccessFSWriteFile|llsyscall.AccessFSTruncate|
			llsyscall.AccessFSRemoveFile|llsyscall.AccessFSMakeReg|llsyscall.AccessFSMakeSock)
		tree = own | landlock.AccessFSSet(llsyscall.AccessFSMakeDir|llsyscall.AccessFSRemoveDir|llsyscall.AccessFSRefer)
	)
	var rules []landlock.Rule
	add := func(rights landlock.AccessFSSet, paths []string, sockets bool) {
		for _, p := range paths {
			rule := landlock.PathAccess(rights, p).IgnoreIfMissing()
			if sockets {
				rule = rule.WithResolveUnix()
			}
			rules = append(rules, rule)
		}
	}
	add(read, a.Read, false)
	add(list, a.List, false)
	add(own, a.Write, true)
	add(tree, a.Trees, true)
	add(0, a.Connect, true)
	restrict := landlock.V10.BestEffort().Restrict
	if a.Network {
		restrict = landlock.V10.BestEffort().RestrictPaths
	}
	if err := restrict(rules...); err != nil {
		return Report{ABI: abi}, fmt.Errorf("confine the process with Landlock: %w", err)
	}
	return Report{ABI: abi, Complete: abi >= 4}, nil
}

// Nearest is a directory, or the one above where it does not exist: /dev/vfio comes with the
// vfio module, which outside a pod may be later.
func Nearest(dir string) string {
	if _, err := os.Stat(dir); err != nil {
		return filepath.Dir(dir)
	}
	return dir
}
