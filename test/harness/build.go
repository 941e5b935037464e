package harness

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// product is the module of the shipped programs.
const product = "kata-device-plugin"

// BuildPlugin builds the plugin into outDir and returns the program's path. What
// it builds is the shipped plugin's code with all root directories below one
// directory, its only argument.
//
// It is built in the product's own module, with the versions of its go.mod: the
// module of these tests has kubelet's, and a plugin made of those would not be the
// one that is shipped.
func BuildPlugin(ctx context.Context, outDir string) (path string, err error) {
	return build(ctx, outDir, "internal/sim/rooted")
}

// BuildNICPlugin is BuildPlugin for nic-device-plugin. Its flags follow behind the directory.
func BuildNICPlugin(ctx context.Context, outDir string) (path string, err error) {
	return build(ctx, outDir, "internal/sim/rootednic")
}

// build builds the program of a directory of the product's.
func build(ctx context.Context, outDir, from string) (path string, err error) {
	root, err := run(ctx, "", "list", "-m", "-f", "{{.Dir}}", product)
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w", product, err)
	}
	if path, err = filepath.Abs(filepath.Join(outDir, filepath.Base(from))); err != nil {
		return "", fmt.Errorf("resolve the program's path: %w", err)
	}
	// The flags are those of the shipped program, so that the two share a build cache too.
	if _, err := run(ctx, root, "build", "-trimpath", "-tags=grpcnotrace", "-o", path, "./"+from); err != nil {
		return "", fmt.Errorf("build %s of %s: %w", from, root, err)
	}
	return path, nil
}

// run runs the go command in a directory and returns what it printed. Its error
// has what the command complained about.
func run(ctx context.Context, dir string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// BuildDRADriver is BuildPlugin for kata-dra-driver. Its flags follow behind the directory.
func BuildDRADriver(ctx context.Context, outDir string) (path string, err error) {
	return build(ctx, outDir, "internal/sim/rooteddra")
}

// BuildExporter is BuildPlugin for device-exporter. Its flags follow behind the directory.
func BuildExporter(ctx context.Context, outDir string) (path string, err error) {
	return build(ctx, outDir, "internal/sim/rootedexporter")
}

// Manifests renders the manifests of a program, as kubectl does.
func Manifests(ctx context.Context, program string) (string, error) {
	root, err := run(ctx, "", "list", "-m", "-f", "{{.Dir}}", product)
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w", product, err)
	}
	text, err := run(ctx, filepath.Join(root, "tools"), "run", "./manifests", filepath.Join(root, "deploy", program))
	if err != nil {
		return "", fmt.Errorf("render the manifests of %s: %w", program, err)
	}
	return text, nil
}
