package kernel

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// initramfs builds the guest's first process and the plugin, and packs them with the modules.
func (w *work) initramfs(ctx context.Context, built string) (string, error) {
	root, err := w.run(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "kata-device-plugin")
	if err != nil {
		return "", fmt.Errorf("find the main module: %w", err)
	}
	a := &cpio{}
	for _, d := range []string{"dev", "proc", "sys", "tmp", "run", "var", "var/run", "modules"} {
		a.add(d, 0o40755, nil, 0, 0)
	}
	a.add("dev/console", 0o20600, nil, 5, 1)
	for _, p := range []struct{ in, pkg, name string }{
		{root, "./cmd/kata-device-plugin", "kata-device-plugin"}, // as `make build` builds it
		{filepath.Join(root, "test/kernel"), "./guest", "init"},
	} {
		path := filepath.Join(w.dir, p.name)
		_, err := w.run(ctx, p.in, "env", "CGO_ENABLED=0", "GOWORK=off", "GOOS=linux", "GOARCH=amd64", "go", "build", "-trimpath",
			"-buildvcs=false", "-tags=grpcnotrace", "-ldflags=-s -w -buildid=", "-o", path, p.pkg)
		if err != nil {
			return "", fmt.Errorf("build %s: %w", p.name, err)
		}
		if err := a.file(p.name, path, 0o100755); err != nil {
			return "", err
		}
	}
	for _, m := range modules() {
		if err := a.file("modules/"+m+".ko", filepath.Join(built, m+".ko"), 0o100644); err != nil {
			return "", err
		}
	}
	path := filepath.Join(w.dir, "initramfs")
	if err := os.WriteFile(path, a.end(), 0o644); err != nil {
		return "", fmt.Errorf("write the initramfs: %w", err)
	}
	return path, nil
}

// cpio is an archive in the "new ASCII" form, the only one that the kernel unpacks.
type cpio struct {
	data    bytes.Buffer
	entries int
}

// add appends an entry: mode with the type's bits, and the number of a device.
func (c *cpio) add(name string, mode uint32, content []byte, major, minor int) {
	c.entries++
	fmt.Fprintf(&c.data, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		c.entries, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(name)+1, 0, name)
	c.align()
	c.data.Write(content)
	c.align()
}

func (c *cpio) align() {
	for c.data.Len()%4 != 0 {
		c.data.WriteByte(0)
	}
}

func (c *cpio) file(name, path string, mode uint32) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	c.add(name, mode, content, 0, 0)
	return nil
}

func (c *cpio) end() []byte {
	c.add("TRAILER!!!", 0, nil, 0, 0)
	return c.data.Bytes()
}
