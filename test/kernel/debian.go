package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// archive is an apt that knows one suite only and keeps its state to itself: the machine's sources
// and lists stay as they are.
type archive struct {
	w          *work
	dir, suite string
	options    []string
}

// archive opens the suite with the packages that we need, at the mirror that this machine uses.
func (w *work) archive(ctx context.Context) (*archive, error) {
	codename, err := w.run(ctx, "", "sh", "-c", ". /etc/os-release && echo $VERSION_CODENAME")
	if err != nil {
		return nil, fmt.Errorf("find out which Debian this is: %w", err)
	}
	mirrors, err := w.run(ctx, "", "apt-get", "indextargets", "--format", "$(REPO_URI)", "Codename: "+codename)
	if err != nil {
		return nil, fmt.Errorf("find the mirror: %w", err)
	}
	mirror, _, _ := strings.Cut(mirrors, "\n")
	if mirror == "" {
		return nil, fmt.Errorf("%w: no apt source of %q is configured, from which %s could come", ErrMissing, codename, sourcePackage)
	}
	a := &archive{w: w, dir: filepath.Join(w.cache, "apt"), suite: codename}
	if codename == "bookworm" {
		a.suite = "bookworm-backports" // its own kernel has no character devices for VFIO
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, d), 0o755); err != nil {
			return nil, fmt.Errorf("make the state of a private apt: %w", err)
		}
	}
	const keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
	source := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keys, mirror, a.suite)
	list := filepath.Join(a.dir, "sources.list")
	if err := os.WriteFile(list, []byte(source), 0o644); err != nil {
		return nil, fmt.Errorf("write the sources of a private apt: %w", err)
	}
	a.options = []string{"-qq", "-oDir::Etc::sourcelist=" + list, "-oDir::Etc::sourceparts=/dev/null",
		"-oDir::State::Lists=" + filepath.Join(a.dir, "lists"), "-oDir::Cache=" + filepath.Join(a.dir, "cache"),
		"-oAPT::Sandbox::User=root"}
	if _, err := w.run(ctx, "", "apt-get", append(a.options, "update")...); err != nil {
		return nil, fmt.Errorf("read the package list of %s: %w", a.suite, err)
	}
	return a, nil
}

// fetch downloads a package and returns its file and version. The caller removes the file.
func (a *archive) fetch(ctx context.Context, pkg string) (file, version string, err error) {
	dir := filepath.Join(a.dir, "packages")
	// What a run that was killed has left may be an older version.
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return "", "", fmt.Errorf("download %s: %w", pkg, err)
	}
	if _, err := a.w.run(ctx, dir, "apt-get", append(a.options, "download", pkg+"/"+a.suite)...); err != nil {
		return "", "", fmt.Errorf("download %s: %w", pkg, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, pkg+"_*.deb"))
	if err != nil || len(files) != 1 {
		return "", "", fmt.Errorf("download %s: %d files %v afterwards, want one", pkg, len(files), files)
	}
	if version, err = a.w.run(ctx, "", "dpkg-deb", "-f", files[0], "Version"); err != nil {
		return "", "", fmt.Errorf("read the version of %s: %w", pkg, err)
	}
	return files[0], version, nil
}

// cached finds what an earlier run has unpacked: the version that was tried, or the latest.
func (w *work) cached(prefix, tried string) (dir string) {
	all, err := filepath.Glob(filepath.Join(w.cache, prefix+"*", "complete"))
	if err != nil || len(all) == 0 {
		return ""
	}
	wanted := filepath.Join(w.cache, prefix+plain(tried))
	latest, when := "", int64(0)
	for _, mark := range all {
		dir := filepath.Dir(mark)
		if dir == wanted {
			return dir
		}
		if info, err := os.Stat(mark); err == nil && info.ModTime().Unix() > when {
			latest, when = dir, info.ModTime().Unix()
		}
	}
	return latest
}

// complete marks a directory as unpacked to the end.
func complete(dir string) error { return os.WriteFile(filepath.Join(dir, "complete"), nil, 0o644) }

// compare says when a version is not the one that was tried.
func (w *work) compare(what, version, tried string) {
	if version != tried {
		w.say("%s is %s; the last one tried was %s", what, version, tried)
	}
}
