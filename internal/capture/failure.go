package capture

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// Failure is an error of the operating system, as far as it can be told on another one.
type Failure struct {
	Op   string // what was tried: open, read, readlink, lstat
	Name string // of the error's number, EACCES; "" for an error without
	Text string // of an error without a number
}

// FailureOf keeps an error. The path that it names is left out: it may be that of another root.
func FailureOf(op string, err error) *Failure {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		op, err = at.Op, at.Err
	}
	for _, e := range errnos() {
		if errors.Is(err, e.errno) {
			return &Failure{Op: op, Name: e.name}
		}
	}
	return &Failure{Op: op, Text: strings.Join(strings.Fields(err.Error()), " ")}
}

// at is the failure as an error about a path.
func (f *Failure) at(name string) error {
	err := errors.New(f.Text)
	for _, e := range errnos() {
		if e.name == f.Name {
			err = e.errno
		}
	}
	return &fs.PathError{Op: f.Op, Path: name, Err: err}
}

type errno struct {
	name  string
	errno syscall.Errno
}

// errnos are the numbers that reading a node may give. Other systems number them otherwise, so
// that a capture has their names.
func errnos() []errno {
	return []errno{
		{"EACCES", syscall.EACCES}, {"EAGAIN", syscall.EAGAIN}, {"EBUSY", syscall.EBUSY},
		{"ECONNREFUSED", syscall.ECONNREFUSED}, {"EFAULT", syscall.EFAULT}, {"EINTR", syscall.EINTR},
		{"EINVAL", syscall.EINVAL}, {"EIO", syscall.EIO}, {"EISDIR", syscall.EISDIR}, {"ELOOP", syscall.ELOOP},
		{"EMFILE", syscall.EMFILE}, {"ENAMETOOLONG", syscall.ENAMETOOLONG}, {"ENFILE", syscall.ENFILE},
		{"ENODEV", syscall.ENODEV}, {"ENOENT", syscall.ENOENT}, {"ENOMEM", syscall.ENOMEM},
		{"ENOSYS", syscall.ENOSYS}, {"ENOTCONN", syscall.ENOTCONN}, {"ENOTDIR", syscall.ENOTDIR},
		{"ENXIO", syscall.ENXIO}, {"EOPNOTSUPP", syscall.EOPNOTSUPP}, {"EPERM", syscall.EPERM},
		{"EROFS", syscall.EROFS}, {"ESTALE", syscall.ESTALE}, {"ETIMEDOUT", syscall.ETIMEDOUT},
	}
}
