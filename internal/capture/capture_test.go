package capture_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/host"
)

const first = "katacontainers.io/capture 1\n"

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, text string) *capture.Capture {
	t.Helper()
	c, err := capture.Read(strings.NewReader(text))
	must(t, err)
	return c
}

func written(t testing.TB, c *capture.Capture) string {
	t.Helper()
	var b bytes.Buffer
	n, err := c.WriteTo(&b)
	must(t, err)
	if n != int64(b.Len()) {
		t.Errorf("%d bytes were written, and %d are said to be", b.Len(), n)
	}
	return b.String()
}

// small is a capture with an entry of each kind.
func small(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "small.txt"))
	must(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// TestRoundTrip: what is read is written as it was, in whatever order it came, but for what the
// names of a directory say already.
func TestRoundTrip(t *testing.T) {
	want := small(t)
	if diff := cmp.Diff(want, written(t, read(t, want))); diff != "" {
		t.Errorf("it is written otherwise (-want +got):\n%s", diff)
	}
	head, entries, _ := strings.Cut(want, "absent /dev/infiniband\n")
	shuffled := head + "# a remark\n\nabsent /etc/cdi/known\nabsent /dev/vfio/gone\n" + entries + "absent /dev/infiniband\n"
	got := written(t, read(t, strings.ReplaceAll(shuffled, "\n", "\r\n")))
	if diff := cmp.Diff(strings.Replace(want, "symlink /sys/bus", "absent /etc/cdi/known\nsymlink /sys/bus", 1), got); diff != "" {
		t.Errorf("in another order (-want +got):\n%s", diff)
	}
}

// TestMalformed: an error says which line it is, and what to do.
func TestMalformed(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", `line 1: "" does not begin a capture: it begins with "katacontainers.io/capture 1"`},
		{"{\"kind\": \"List\"}\n", `line 1: "{\"kind\": \"List\"}" does not begin a capture`},
		{"katacontainers.io/capture 0\n", `does not begin a capture`},
		{"katacontainers.io/capture 2\n", `line 1: the capture has version 2, and 1 is the newest that is known here: use a newer program`},
		{first + "directory /x\n", `line 2: unknown kind of line "directory"`},
		{first + "dir x\n", `line 2: path "x": want one from the root`},
		{first + "dir /x/\n", `line 2: path "/x/"`},
		{first + "dir /x/../y\n", `line 2: path "/x/../y"`},
		{first + "dir /" + strings.Repeat("x", 4096) + "\n", `line 2: a path of 4097 bytes: 4096 are the most that Linux takes`},
		{first + "dir\n", `line 2: the line ends before the path`},
		{first + "dir /x\ndir /y\nfile /x unread\n", `line 4: /x is there twice: remove one`},
		{first + "dir /x\n\ta\n\ta\n", `line 2: /x: a name is there twice: remove one`},
		{first + "dir /x\n\ta b\n", `line 2: /x: "a b" is not the name of one file`},
		{first + "dir /x\n\ta/b\n", `line 2: /x: "a/b" is not the name of one file`},
		{first + "dir /x\n\t\n", `line 2: /x: "" is not the name of one file`},
		{first + "dir /x unread\n\ta\n", `line 2: /x was not read, but has indented lines behind it`},
		{first + "file /x\n", `line 2: /x: its content is "" with 0 indented lines behind it: want a quoted text, or text with lines`},
		{first + "file /x text\n", `line 2: /x: its content is "text" with 0 indented lines`},
		{first + "file /x \"a\"\n\tb\n", `line 2: /x: its content is "a" with 1 indented lines`},
		{first + "file /x \"a\n", `line 2: a quoted text that does not end, or is not as Go quotes one: "a`},
		{first + "file /x \"a\"b\n", `line 2: words are separated by one blank`},
		{first + "file /x  \"a\"\n", `line 2: words are separated by one blank`},
		{first + "file /x \"a\" \n", `line 2: words are separated by one blank`},
		{first + "file /x \"a\" \"b\"\n", `line 2: the line should end before "=b"`},
		{first + "file /x op=read errno=EIO unread\n", `line 2: the line should end before "=unread"`},
		{first + "file /ä unread\n", `line 2: "/ä" has to be quoted`},
		{first + "file /x mode=0648 owner=0:0 \"\"\n", `line 2: /x has the mode "0648" and the owner "0:0": want them like mode=0755 owner=0:0`},
		{first + "file /x mode=0644 \"\"\n", `line 2: /x has the mode "0644" and the owner ""`},
		{first + "node /x char 511\n", `line 2: /x: a node of type "char" and number "511": want char or block, and 511:0`},
		{first + "node /x pipe 1:1\n", `line 2: /x: a node of type "pipe"`},
		{first + "symlink /x\n", `line 2: /x: a link to nothing: want its target`},
		{first + "socket /x\n\ta\n", `line 2: /x: an indented line behind a socket, which has none`},
		{first + "error /x\n", `line 2: /x could not be examined, and nothing says why: want op= and errno=`},
		{first + "\tx\n", `line 2: `},
		{first + "meta time yesterday\n", `line 2: meta time "yesterday": want one like 2006-01-02T15:04:05Z`},
		{first + "meta started 9999-12-31T23:59:59-14:00\n", `line 2: meta started "9999-12-31T23:59:59-14:00": want one like 2006-01-02T15:04:05Z`},
		{first + "file /x modified=1 unread\n", `line 2: /x is modified "1": want one like 2006-01-02T15:04:05Z`},
		{first + "meta hostname\n", `line 2: the line ends before the value`},
		{first + "meta hostname a\n\tb\n", `line 2: an indented line behind "meta", which has none`},
		{first + "links some\n", `line 2: links are "some": want complete, or a quoted error`},
		{first + "link 1 lo\n", `line 2: "link" before "links complete"`},
		{first + "links complete\nlink x lo\n", `line 3: the index is "x": want a number`},
		{first + "links complete\nlink 1 lo master=x\n", `line 3: master is "x": want a number`},
		{first + "links complete\nlink 1 lo\nlink 1 lo\n", `line 4: link 1 is there twice: remove one`},
		{first + "missing /x\n", `line 2: the line ends before the why`},
		{first + "file /x \"" + strings.Repeat("x", capture.MaxSize), `more than 67108864 bytes`},
	} {
		c, err := capture.Read(strings.NewReader(test.text))
		if err == nil || !strings.HasPrefix(err.Error(), "read capture: line ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80q: %v, want that %s", test.text, err, test.want)
		}
		if c != nil {
			t.Errorf("%.80q gives a capture", test.text)
		}
	}
}

// TestAnswers: every way to ask for a file gives what the kernel would say, or that it is not known.
func TestAnswers(t *testing.T) {
	const gpu = "devices/pci0000:40/0000:41:00.0"
	sys := read(t, small(t)).Sys()
	readFile := func(name string) (any, error) { b, err := sys.ReadFile(name); return string(b), err }
	readLink := func(name string) (any, error) { s, err := sys.ReadLink(name); return s, err }
	readDir := func(name string) (any, error) { e, err := sys.ReadDir(name); return names(e), err }
	lstat := func(name string) (any, error) {
		info, err := sys.Lstat(name)
		if err != nil {
			return "", err
		}
		return info.Mode().String(), nil
	}
	open := func(name string) (any, error) { _, err := sys.Open(name); return "", err }
	for _, test := range []struct {
		ask  func(string) (any, error)
		name string
		want any
		err  error
		op   string
	}{
		{ask: readFile, name: gpu + "/vendor", want: "0x10de\n"},
		{ask: readFile, name: "bus/pci/devices/0000:41:00.0/vendor", want: "0x10de\n"},
		{ask: readFile, name: gpu + "/odd", want: "a\x00 = \"b\"\n"},
		{ask: readFile, name: gpu + "/empty", want: ""},
		{ask: readFile, name: gpu + "/driver", err: fs.ErrNotExist, op: "open"},
		{ask: readFile, name: gpu + "/class", err: capture.ErrNotCaptured, op: "open"},
		{ask: readFile, name: gpu + "/numa_node", err: syscall.ENODEV, op: "read"},
		{ask: readFile, name: gpu + "/phys_switch_id", err: syscall.EOPNOTSUPP, op: "read"},
		{ask: readFile, name: gpu + "/vendor/x", err: syscall.ENOTDIR, op: "open"},
		{ask: readFile, name: gpu, err: syscall.EISDIR, op: "read"},
		{ask: readFile, name: "bus/pci/devices/0000:42:00.0/vendor", err: capture.ErrNotCaptured, op: "open"},
		{ask: readFile, name: "class/vfio-dev/vfio0/dev", err: fs.ErrNotExist, op: "open"},
		{ask: readFile, name: "class/loop", err: syscall.ELOOP, op: "open"},
		{ask: readFile, name: "class/unread/x", err: capture.ErrNotCaptured, op: "open"},
		{ask: readFile, name: "class/unreadable/x", err: syscall.EIO, op: "readlink"},
		{ask: readFile, name: "../etc", err: fs.ErrInvalid, op: "open"},
		{ask: readLink, name: "bus/pci/devices/0000:41:00.0", want: "../../../devices/pci0000:40/0000:41:00.0"},
		{ask: readLink, name: "class/loop", want: "loop"},
		{ask: readLink, name: "class/quoted", want: "unread"},
		{ask: readLink, name: "class/unread", err: capture.ErrNotCaptured, op: "readlink"},
		{ask: readLink, name: "class/unreadable", err: syscall.EIO, op: "readlink"},
		{ask: readLink, name: gpu + "/vendor", err: syscall.EINVAL, op: "readlink"},
		{ask: readLink, name: gpu + "/numa_node", err: syscall.EINVAL, op: "readlink"},
		{ask: readLink, name: gpu, err: syscall.EINVAL, op: "readlink"},
		{ask: readLink, name: gpu + "/driver", err: fs.ErrNotExist, op: "readlink"},
		{ask: readDir, name: "class/vfio-dev", want: ""},
		{ask: readDir, name: "bus/pci/devices/0000:41:00.0/vfio-dev", want: "vfio0?"},
		{ask: readDir, name: "bus/pci/devices", err: capture.ErrNotCaptured, op: "open"},
		{ask: readDir, name: gpu + "/vendor", err: syscall.ENOTDIR, op: "open"},
		{ask: readDir, name: "class/outside", err: syscall.EACCES, op: "open"},
		{ask: readDir, name: "class/outside/x", err: capture.ErrNotCaptured, op: "open"},
		{ask: lstat, name: gpu, want: "d---------"},
		{ask: lstat, name: "class/loop", want: "L---------"},
		{ask: lstat, name: gpu + "/vendor", want: "----------"},
		{ask: lstat, name: gpu + "/driver", err: fs.ErrNotExist, op: "lstat"},
		{ask: open, name: gpu + "/numa_node", err: syscall.ENODEV, op: "read"},
	} {
		got, err := test.ask(test.name)
		if !errors.Is(err, test.err) || test.err == nil && got != test.want {
			t.Errorf("%s: %q, %v; want %q, %v", test.name, got, err, test.want, test.err)
		}
		var at *fs.PathError
		if err != nil && (!errors.As(err, &at) || at.Path != test.name || at.Op != test.op) {
			t.Errorf("%s: %#v, want a path error of %s", test.name, err, test.op)
		}
		if errors.Is(err, capture.ErrNotCaptured) && errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: what is not known is said not to exist", test.name)
		}
	}
}

// names are those of a directory, with the letter of their types; ? for what is not known.
func names(entries []fs.DirEntry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name()+strings.Trim(e.Type().String(), "-"))
	}
	return strings.Join(all, " ")
}

// TestDev: nodes as lstat shows them.
func TestDev(t *testing.T) {
	dev := read(t, small(t)).Dev()
	got, err := dev.List("/dev/vfio/devices")
	if !errors.Is(err, capture.ErrNotCaptured) { // of "left" only the name is known
		t.Errorf("%v, %v", got, err)
	}
	dev = read(t, strings.ReplaceAll(small(t), "\tleft\n", "")).Dev()
	got, err = dev.List("/dev/vfio/devices")
	must(t, err)
	want := map[string]host.DevFile{
		"a \"b\"": {}, "vfio0": {Type: fs.ModeDevice | fs.ModeCharDevice, Major: 511}, "vfio1": {Type: fs.ModeDevice, Major: 8, Minor: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]error{
		"/dev/infiniband/uverbs0": fs.ErrNotExist, "/dev/vfio/2": fs.ErrNotExist, "/dev/vhost-net": syscall.EIO, "/dev/net/tun": capture.ErrNotCaptured,
		"/dev/vfio/devices/left": fs.ErrNotExist, "/dev/vfio/devices/vfio0/x": syscall.ENOTDIR,
	} {
		if n, err := dev.Lstat(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v; want %v", name, n, err, want)
		}
	}
	if _, err := dev.List("/dev/infiniband"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list of nothing: %v", err)
	}
	if _, err := dev.List("/dev"); !errors.Is(err, capture.ErrNotCaptured) {
		t.Errorf("list of what nobody listed: %v", err)
	}
}

// TestFiles: what is in a directory, with all that is known of it.
func TestFiles(t *testing.T) {
	c := read(t, small(t))
	all, err := c.Files("/var/run/cdi")
	must(t, err)
	var got []string
	for _, e := range all {
		got = append(got, string(e.Kind)+" "+e.Path)
	}
	want := "fifo /var/run/cdi/fifo,lock /var/run/cdi/kata.nvidia.com-gpu.lock,symlink /var/run/cdi/link.json,file /var/run/cdi/one.json,file /var/run/cdi/two.yaml"
	if strings.Join(got, ",") != want {
		t.Errorf("%s", got)
	}
	if lock := all[1]; lock.State != capture.Held || string(lock.Text) != "kata-device-plugin gpu-x" || lock.Perm.Mode != 0o600 {
		t.Errorf("%+v", lock)
	}
	for dir, want := range map[string]error{
		"/etc/cdi": fs.ErrPermission, "/dev/infiniband": fs.ErrNotExist, "/opt": capture.ErrNotCaptured, "/var/lib": capture.ErrNotCaptured,
	} {
		if all, err := c.Files(dir); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v; want %v", dir, all, err, want)
		}
	}
	text, err := fs.ReadFile(c.FS(), "var/run/cdi/link.json")
	if string(text) != "{\n  \"kind\": \"x/y\",\n\n  \"tab\":\t1\n}\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := fs.ReadFile(c.FS(), "var/run/cdi/two.yaml"); string(text) != "kind: x/y\ndevices: []" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := c.Checkpoint(); err == nil || err.Error() != "read /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint: it is no JSON" {
		t.Errorf("a record that could not be read: %v", err)
	}
	if _, err := c.Pods(); !errors.Is(err, capture.ErrNotCaptured) {
		t.Errorf("a question that was not asked: %v", err)
	}
}

// TestFileSystem: where all is known, it is a file system as any other.
func TestFileSystem(t *testing.T) {
	c := read(t, first+"dir /a\n\tb\n\tdir\n\tlink\nfile /a/b mode=0644 owner=0:0 \"text\"\nsymlink /a/link ../a/dir/c\ndir /a/dir\n\tc\nfile /a/dir/c \"\"\ndir /\n\ta\n")
	must(t, fstest.TestFS(c.FS(), "a/b", "a/dir/c", "a/link"))
}

// TestLinks: what netlink showed, why it did not, or that nobody asked.
func TestLinks(t *testing.T) {
	links, err := read(t, small(t)).Tree().Links()
	must(t, err)
	want := &host.Links{
		Links: map[int]host.Link{
			1: {Index: 1, Name: "lo"}, 2: {Index: 2, Name: "ens1f0", Master: 4}, 4: {Index: 4, Name: "a bond", Kind: "bond"},
			5: {Index: 5, Name: "bond.7", Kind: "vlan", Lower: 4},
		},
		Defaults: []host.Default{{Index: 4, Family: "inet", Table: 254}, {Index: 4, Family: "inet6", Table: 254}},
	}
	if diff := cmp.Diff(want, links); diff != "" {
		t.Error(diff)
	}
	c := read(t, first+"links \"no buffer space\"\n")
	if _, err := c.ReadLinks(); err == nil || err.Error() != "no buffer space" || !strings.Contains(written(t, c), "links \"no buffer space\"\n") {
		t.Errorf("links that could not be read: %v", err)
	}
	if _, err := read(t, first).ReadLinks(); !errors.Is(err, capture.ErrNotCaptured) {
		t.Errorf("links that nobody read: %v", err)
	}
}

// TestOpen: a file is a capture, and a directory a node's root.
func TestOpen(t *testing.T) {
	tree, err := capture.Open(filepath.Join("testdata", "small.txt"))
	must(t, err)
	if tree.Capture == nil || tree.Capture.Meta.Hostname != "worker-7" {
		t.Errorf("%+v", tree.Capture)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "x"), []byte("no capture"), 0o600))
	for name, want := range map[string]string{
		filepath.Join(dir, "nothing"): "open captured node: ",
		filepath.Join(dir, "x"):       filepath.Join(dir, "x") + ": read capture: line 1: ",
		dir:                           "it has no directory sys: want the root of a node's files",
	} {
		if _, err := capture.Open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want that %s", err, want)
		}
	}
	must(t, os.MkdirAll(filepath.Join(dir, "sys", "class"), 0o755))
	tree, err = capture.Open(dir)
	must(t, err)
	entries, err := fs.ReadDir(tree.Sys, ".")
	if names(entries) != "classd" || err != nil || tree.Capture != nil {
		t.Errorf("%s, %v", names(entries), err)
	}
	if _, err := tree.Links(); err == nil {
		t.Error("a directory has links")
	}
}
