package collect

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/sysfs"
)

// TestRecorded: every way to read /sys is noted, whatever comes of it, so that a capture answers
// the same to whoever reads in another way than a look does now.
func TestRecorded(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "devices/a/b"), 0o755),
		os.WriteFile(filepath.Join(dir, "devices/a/file"), []byte("text\n"), 0o600),
		os.Mkdir(filepath.Join(dir, "class"), 0o755),
		os.Symlink("../devices/a", filepath.Join(dir, "class/link")),
		os.Symlink("nowhere", filepath.Join(dir, "class/dangling")),
		os.Symlink("loop", filepath.Join(dir, "class/loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	sys, err := sysfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	asks := map[string]func(fs.ReadLinkFS, string) (string, error){
		"readfile": func(f fs.ReadLinkFS, name string) (string, error) {
			b, err := fs.ReadFile(f, name)
			return string(b), err
		},
		"readlink": func(f fs.ReadLinkFS, name string) (string, error) { return f.ReadLink(name) },
		"lstat": func(f fs.ReadLinkFS, name string) (string, error) {
			info, err := f.Lstat(name)
			if err != nil {
				return "", err
			}
			return info.Mode().Type().String(), nil
		},
		"readdir": func(f fs.ReadLinkFS, name string) (string, error) {
			entries, err := fs.ReadDir(f, name)
			text := ""
			for _, e := range entries {
				text += e.Name() + "\n"
			}
			return text, err
		},
		"open": func(f fs.ReadLinkFS, name string) (string, error) {
			file, err := f.Open(name)
			if err != nil {
				return "", err
			}
			defer file.Close()
			info, err := file.Stat()
			if err == nil && info.IsDir() {
				var entries []fs.DirEntry
				entries, err = file.(fs.ReadDirFile).ReadDir(-1)
				return string(rune('0' + len(entries))), err
			}
			buf := make([]byte, 10)
			n, err := file.Read(buf)
			return string(buf[:n]), err
		},
	}
	for how, ask := range asks {
		for _, name := range []string{
			".", "devices/a", "devices/a/b", "devices/a/file", "devices/a/file/x", "devices/a/none", "none/none", "class/link", "class/link/file",
			"class/link/b", "class/link/none", "class/link/file/x", "class/dangling", "class/dangling/x", "class/loop", "class/loop/x",
		} {
			c := capture.New(capture.Meta{})
			r := &sysRecorder{&recording{c: c}, sys, map[string]bool{".": true}}
			want, wantErr := ask(r, name)
			got, gotErr := ask(c.Sys(), name)
			same := text(gotErr) == text(wantErr)
			if how == "lstat" { // which sysfs calls an open
				same = text(errors.Unwrap(gotErr)) == text(errors.Unwrap(wantErr))
			}
			if got != want || !same {
				t.Errorf("%s of %s: %q, %v; when it was noted %q, %v", how, name, got, gotErr, want, wantErr)
			}
			for _, known := range []error{syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.EINVAL} {
				if errors.Is(wantErr, known) != errors.Is(gotErr, known) {
					t.Errorf("%s of %s: %v, want %v", how, name, gotErr, wantErr)
				}
			}
			if r.recording.stop() != "/sys/"+name && name != "." {
				t.Errorf("%s of %s is not what is being read", how, name)
			}
			r.note(capture.Entry{Path: "/later", Kind: capture.FIFO})
			if _, ok := c.Entry("/later"); ok {
				t.Error("something is noted after the end")
			}
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
