// Generate writes what is derived in the chart, so that each thing is said in one place:
//
//	generate [-check] ROOT
//
// From the comments and defaults of values.yaml come values.schema.json and the table of README.md; from
// deploy/ come the objects in files/ that the chart and the kustomize bases share. With -check nothing
// is written, and what is out of date is an error.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run is main without the process around it.
func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("generate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "write nothing, and complain about what is out of date")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: generate [-check] ROOT")
	}
	root := flags.Arg(0)
	files, err := derive(root)
	if err != nil {
		return err
	}
	for _, f := range files {
		err = errors.Join(err, f.settle(root, *check))
	}
	return err
}

// file is a derived file, by its path below the root of the repository.
type file struct {
	path string
	text []byte
}

// settle writes the file, or checks it.
func (f file) settle(root string, check bool) error {
	path := filepath.Join(root, f.path)
	old, err := os.ReadFile(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", f.path, err)
	case err == nil && bytes.Equal(old, f.text):
		return nil
	case check:
		return fmt.Errorf("%s is out of date: run make chart-docs", f.path)
	}
	if err := os.WriteFile(path, f.text, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}

// chart is where the chart is.
const chart = "charts/passthrough"

// shared are the files of deploy/ that the chart has as they are.
func shared() []string {
	return []string{
		"deploy/kata-dra-driver/admission.yaml",
		"deploy/kata-dra-driver/deviceclasses.yaml",
		"deploy/examples/dra-extended-resource/preset-node.yaml",
		"deploy/device-exporter/components/prometheusrule/prometheusrule.yaml",
		"deploy/device-exporter/components/dashboard/passthrough-devices.json",
	}
}

// derive makes all derived files.
func derive(root string) ([]file, error) {
	var files []file
	for _, from := range shared() {
		text, err := os.ReadFile(filepath.Join(root, from))
		if err != nil {
			return nil, fmt.Errorf("read what the chart shares with the bases: %w", err)
		}
		files = append(files, file{chart + "/files/" + filepath.Base(from), text})
	}
	text, err := os.ReadFile(filepath.Join(root, chart, "values.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the values: %w", err)
	}
	values, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s/values.yaml: %w", chart, err)
	}
	schema, err := writeSchema(values)
	if err != nil {
		return nil, fmt.Errorf("%s/values.yaml: %w", chart, err)
	}
	head, err := os.ReadFile(filepath.Join(root, chart, "README.md.gotmpl"))
	if err != nil {
		return nil, fmt.Errorf("read the words of the README: %w", err)
	}
	readme, err := writeReadme(head, values)
	if err != nil {
		return nil, err
	}
	return append(files, file{chart + "/values.schema.json", schema}, file{chart + "/README.md", readme}), nil
}
