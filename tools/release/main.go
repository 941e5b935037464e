package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH"), os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what every part of it is told.
type release struct {
	Version    string   // with a v
	Base       string   // where the archives will be, for the index of krew
	Modules    string   // the module cache
	Root       string   // the directory of Go
	Systems    []string // of people, beside those of the nodes
	Repository string   // the sources
	In, Out    string
	Time       time.Time
}

// run is main without the process around it.
func run(args []string, epoch string, stderr io.Writer) error {
	var r release
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&r.Version, "version", "", "`version` of the release, such as v1.2.3")
	flags.StringVar(&r.Base, "base", "", "`address` of the directory in which people will find the archives; no krew manifest without it")
	flags.StringVar(&r.Modules, "modules", "", "module cache `directory` of the build (go env GOMODCACHE)")
	flags.StringVar(&r.Root, "goroot", "", "`directory` of Go (go env GOROOT), for its licence")
	flags.Func("system", "`system-arch` for which people get kubectl-device, beside Linux; once for each", func(s string) error {
		r.Systems = append(r.Systems, s)
		return nil
	})
	flags.StringVar(&r.Repository, "repository", ".", "`directory` of the sources")
	flags.StringVar(&r.In, "in", "", "`directory` of what was built")
	flags.StringVar(&r.Out, "out", "", "`directory` that is made; it must not exist")
	check := flags.Bool("check", false, "only say whether the version can be one of a release")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := checkVersion(r.Version); err != nil || *check {
		return err
	}
	if r.In == "" || r.Out == "" {
		return fmt.Errorf("-in and -out are required")
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return fmt.Errorf("SOURCE_DATE_EPOCH is %q, not a number of seconds since 1970", epoch)
	}
	r.Time = time.Unix(seconds, 0).UTC()
	return r.make()
}

// checkVersion refuses what git describe says of a commit without a tag, and of a changed tree. Krew
// and Helm would refuse it later, with less to say.
func checkVersion(version string) error {
	if strings.HasSuffix(version, "-dirty") {
		return fmt.Errorf("version %q: the tree has changes that are not committed; commit them, or give VERSION=v1.2.3 by hand", version)
	}
	if regexp.MustCompile(`-[0-9]+-g[0-9a-f]{7,}$`).MatchString(version) {
		return fmt.Errorf("version %q: the commit is behind a tag and has none itself; tag it, or give VERSION=v1.2.3 by hand", version)
	}
	if !regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`).MatchString(version) {
		return fmt.Errorf("version %q is not one such as v1.2.3: the commit has no tag; tag it, or give VERSION=v1.2.3 by hand", version)
	}
	return nil
}

// make makes all parts aside and renames them at the end: a release is whole or it is not there.
func (r release) make() error {
	if _, err := os.Lstat(r.Out); err == nil {
		return fmt.Errorf("make %s: it is there already; remove it", r.Out)
	}
	if err := os.MkdirAll(filepath.Dir(r.Out), 0o755); err != nil {
		return fmt.Errorf("make the directory of the release: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(r.Out), ".release-*")
	if err != nil {
		return fmt.Errorf("make a place for the release: %w", err)
	}
	defer os.RemoveAll(aside)
	out := r.Out
	r.Out = aside
	for _, part := range []struct {
		name string
		make func() error
	}{
		{"images", r.images},
		{"manifests", r.manifests},
		{"chart", r.chart},
		{"programs", r.programs}, // what takes long, after what may be wrong
		{"krew manifest", r.krew},
		{"checksums", r.checksums}, // of all others, so the last
	} {
		if err := part.make(); err != nil {
			return fmt.Errorf("make the %s of the release: %w", part.name, err)
		}
	}
	if err := os.Chmod(aside, 0o755); err != nil {
		return fmt.Errorf("open the release to others: %w", err)
	}
	return os.Rename(aside, out)
}

func (r release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.Out, name), content, 0o644)
}
