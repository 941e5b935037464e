package capture_test

import (
	"bytes"
	"strings"
	"testing"

	"kata-device-plugin/internal/capture"
)

// FuzzRead: whatever is read is written so that it is read as the same again, also without its
// names, and can be asked for anything.
func FuzzRead(f *testing.F) {
	f.Add(small(f))
	for _, s := range []string{
		"", "dir /\n", "dir /a\n\t..\n\t.\n", "symlink /sys/a b\nsymlink /sys/b a\n", "symlink /sys/a /\n", "symlink /sys/a ../../..\n",
		"file /sys text\n\t\n\t\n", "absent /\n", "error /sys op=x errno=y text=\"\"\n", "file /x text=\"\" \"\"\n",
		"file /.capture/podresources/pods.json \"{\\\"Name\\\": \\\"a\\\"}\"\n", "file /a.json \"[\\\"\\\\u0000\"\n",
		"meta time 9999-12-31T23:59:59+14:00\n", "lock /x state=\"\" \"\"\n",
		"meta started 9999-12-31T23:59:59-14:00\n", "file /x label=a_u:b_r:c_t:s0 modified=2026-03-01T12:00:00+02:00 unread\n", "dir /a mode=0000 owner=0:0\n\t\"\\xff\"\n",
	} {
		f.Add(first + s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := capture.Read(strings.NewReader(text))
		if err != nil {
			return
		}
		once := written(t, c)
		again, err := capture.Read(strings.NewReader(once))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, once)
		}
		if twice := written(t, again); twice != once {
			t.Fatalf("it is written in another way the second time:\n%s\nand\n%s", once, twice)
		}
		for _, e := range c.Entries() {
			ask(t, c, again, e.Path)
		}
		var b bytes.Buffer
		if _, err := capture.Redact(c, []byte("salt")).WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := capture.Read(&b); err != nil && !strings.Contains(err.Error(), "a path of") { // it may have become too long
			t.Fatalf("without names it cannot be read: %v\n%s", err, b.String())
		}
	})
}

// ask holds the answers of two captures against each other.
func ask(t *testing.T, a, b *capture.Capture, name string) {
	t.Helper()
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	name = strings.TrimPrefix(name, "/")
	for _, name := range []string{name, name + "/x"} {
		x, err1 := a.FS().ReadFile(name)
		y, err2 := b.FS().ReadFile(name)
		if !bytes.Equal(x, y) || text(err1) != text(err2) {
			t.Errorf("%q: %q, %v and %q, %v", name, x, err1, y, err2)
		}
		_, err1 = a.FS().ReadDir(name)
		_, err2 = b.FS().ReadDir(name)
		if text(err1) != text(err2) {
			t.Errorf("list %q: %v and %v", name, err1, err2)
		}
		i, err1 := a.Dev().Lstat("/" + name)
		j, err2 := b.Dev().Lstat("/" + name)
		if i != j || text(err1) != text(err2) {
			t.Errorf("lstat %q: %v, %v and %v, %v", name, i, err1, j, err2)
		}
	}
}
