package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH"), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run is main without the process around it.
func run(args []string, epoch string, stdout, stderr io.Writer) error {
	s := spec{Programs: map[string]string{}, Probes: map[string]string{}}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("o", "", "write the archive to this `file`")
	flags.StringVar(&s.Name, "name", "", "`name` of the image and of the program in it")
	flags.StringVar(&s.Tag, "tag", "dev", "`tag` of the image")
	flags.StringVar(&s.Version, "version", "", "`version`, for the OCI label")
	flags.StringVar(&s.Revision, "revision", "", "`commit`, for the OCI label")
	flags.StringVar(&s.Source, "source", "", "`address` of the published sources, for the OCI label; none without it")
	flags.StringVar(&s.Modules, "modules", "", "module cache `directory` of the build (go env GOMODCACHE)")
	flags.StringVar(&s.Root, "goroot", "", "`directory` of Go (go env GOROOT), for its licence")
	flags.StringVar(&s.Repository, "repository", "", "`directory` of the sources, for their licences")
	merged := flags.Bool("merge", false, "write one archive of those that are named behind the flags, with -o alone")
	flags.StringVar(&s.Description, "description", "", "one `sentence`, for the OCI label")
	flags.Func("program", "`arch=file` of the program, once for each platform", perArch(s.Programs))
	flags.Func("probe", "`arch=file` of the health probe, once for each platform", perArch(s.Probes))
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if s.Time, err = parseEpoch(epoch); err != nil {
		return err
	}
	if *merged {
		if *out == "" || flags.NArg() == 0 {
			return fmt.Errorf("-merge needs -o and at least one archive")
		}
		return merge(*out, flags.Args(), s.Time)
	}
	if *out == "" || s.Name == "" || len(s.Programs) == 0 {
		return fmt.Errorf("-o, -name and at least one -program are required")
	}
	return s.write(*out, stdout)
}

// write makes the archive and, beside it, the SBOMs that are in it, for those who do not ask a registry.
func (s spec) write(out string, stdout io.Writer) error {
	index, sboms, err := s.build()
	if err != nil {
		return fmt.Errorf("build the image %s: %w", s.reference(), err)
	}
	digest, err := writeArchive(out, index, sboms, s.reference(), s.Time)
	if err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	for _, c := range sboms {
		file := filepath.Join(filepath.Dir(out), s.Name+"-linux-"+c.arch+".spdx.json")
		if err := os.WriteFile(file, c.document, 0o644); err != nil {
			return fmt.Errorf("write the SBOM for %s: %w", c.arch, err)
		}
	}
	_, err = fmt.Fprintf(stdout, "%s  %s  %s  %s\n", digest, s.reference(), strings.Join(s.platforms(), ","), out)
	return err
}

// perArch is the parser of a flag that is given once for each architecture.
func perArch(files map[string]string) func(string) error {
	return func(v string) error {
		arch, file, ok := strings.Cut(v, "=")
		if !ok || file == "" {
			return fmt.Errorf("%q is not arch=file", v)
		}
		if _, known := machines[arch]; !known {
			return fmt.Errorf("architecture %q is not one of %s", arch, strings.Join(architectures(), ", "))
		}
		if _, twice := files[arch]; twice {
			return fmt.Errorf("architecture %s is given twice", arch)
		}
		files[arch] = file
		return nil
	}
}

// parseEpoch reads SOURCE_DATE_EPOCH, the convention of reproducible builds.
func parseEpoch(s string) (time.Time, error) {
	if s == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, not a number of seconds since 1970", s)
	}
	return time.Unix(n, 0).UTC(), nil
}

// platforms lists the architectures of the image in the order in which it holds them.
func (s spec) platforms() []string {
	var list []string
	for arch := range s.Programs {
		list = append(list, arch)
	}
	slices.Sort(list)
	return list
}
