package nodeconfig

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Runtime is what a container runtime is told.
type Runtime struct {
	// Name is containerd or cri-o.
	Name string
	// Files are those that were read. Each goes on where the one before ended.
	Files []string
	// CDI says whether CDI is switched on, nil where nothing is said of it.
	CDI *bool
	// Dirs are the directories with CDI specs, nil where nothing is said of them.
	Dirs []string
	// Handlers are what RuntimeClasses may name, sorted. Those that are built in are not among them.
	Handlers []Handler
	// Beside is another runtime that has settings on the node too, where it is not known which of them kubelet
	// uses: "" for none.
	Beside string
	// Elsewhere are files that belong to it, and that nobody has read.
	Elsewhere []string
}

// Handler is what a RuntimeClass names.
type Handler struct {
	Name string
	// Type is the runtime's type, for example io.containerd.kata.v2.
	Type string
	// Config is the file that the runtime is told to read, "" where it looks for one itself.
	Config string
}

// Kata says whether the handler starts a Kata VM.
func (h Handler) Kata() bool {
	return strings.Contains(h.Type, "kata") || strings.Contains(h.Config, "kata")
}

// Handler finds a handler.
func (r *Runtime) Handler(name string) (Handler, bool) {
	i := slices.IndexFunc(r.Handlers, func(h Handler) bool { return h.Name == name })
	if i < 0 {
		return Handler{}, false
	}
	return r.Handlers[i], true
}

// RuntimeFiles are where containerd's settings are, wherever a distribution has them.
func RuntimeFiles() []string {
	return []string{"/etc/containerd/config.toml", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
		"/var/lib/rancher/rke2/agent/etc/containerd/config.toml"}
}

// RuntimeDirs are directories whose files containerd's settings may import. The last one is that of
// kata-deploy.
func RuntimeDirs() []string {
	return []string{"/etc/containerd/conf.d", "/etc/containerd/config.d", "/opt/kata/containerd/config.d"}
}

// Where CRI-O's settings are: a file, and a directory with what is laid over it.
const (
	CRIOFile = "/etc/crio/crio.conf"
	CRIODir  = "/etc/crio/crio.conf.d"
)

// The names of runtimes, as versions in a node's status begin.
const (
	nameContainerd = "containerd"
	nameCRIO       = "cri-o"
)

// RuntimeName is the runtime of a node by the version in its status, or else by kubelet's endpoint, "" where neither
// says it: sockets may be called anything.
func RuntimeName(version, endpoint string) string {
	if name, _, ok := strings.Cut(version, "://"); ok && name != "" {
		return name
	}
	switch {
	case strings.HasSuffix(endpoint, "/crio.sock"):
		return nameCRIO
	case strings.HasSuffix(endpoint, "/containerd.sock"):
		return nameContainerd
	}
	return ""
}

// ReadRuntime reads what the runtime of a node is told. Packages leave settings of containerd on nodes that run
// CRI-O, so the name of the runtime decides; where it is "", containerd's come first. The error is fs.ErrNotExist
// where there is no file of the runtime.
func ReadRuntime(tree fs.FS, name string) (*Runtime, error) {
	switch name {
	case nameContainerd:
		return readContainerd(tree)
	case nameCRIO:
		return readCRIO(tree)
	case "":
	default:
		return nil, &fs.PathError{Op: "look for settings of", Path: name, Err: fs.ErrNotExist}
	}
	r, err := readContainerd(tree)
	other, otherErr := readCRIO(tree)
	_, broken := errors.AsType[*Broken](err)
	_, otherBroken := errors.AsType[*Broken](otherErr)
	switch {
	case err == nil && (otherErr == nil || otherBroken):
		r.Beside = nameCRIO
		return r, nil
	case err == nil || broken:
		return r, err
	case otherErr == nil || otherBroken || errors.Is(err, fs.ErrNotExist):
		return other, otherErr
	case errors.Is(otherErr, fs.ErrNotExist):
		return nil, err
	}
	return nil, errors.Join(err, otherErr)
}

func readContainerd(tree fs.FS) (*Runtime, error) {
	var missing error
	for _, name := range RuntimeFiles() {
		r, err := containerd(tree, name)
		if _, broken := errors.AsType[*Broken](err); err == nil || broken {
			return r, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			missing = errors.Join(missing, err)
		}
	}
	if missing == nil {
		missing = &fs.PathError{Op: "open", Path: RuntimeFiles()[0], Err: fs.ErrNotExist}
	}
	return nil, missing
}

func readCRIO(tree fs.FS) (*Runtime, error) {
	r, err := crio(tree)
	if err == nil && len(r.Files) == 0 {
		return nil, &fs.PathError{Op: "open", Path: CRIOFile, Err: fs.ErrNotExist}
	}
	return r, err
}

func containerd(tree fs.FS, name string) (*Runtime, error) {
	all, err := parseFile(tree, name)
	if err != nil {
		return nil, err
	}
	r := &Runtime{Name: nameContainerd, Files: []string{name}}
	for _, pattern := range all.texts("imports") {
		if all, err = r.imported(tree, all, pattern); err != nil {
			return nil, err
		}
	}
	r.plugins(all)
	return r, nil
}

// imported lays the files that a pattern of the settings means over them.
func (r *Runtime) imported(tree fs.FS, all table, pattern string) (table, error) {
	if !path.IsAbs(pattern) {
		pattern = path.Join(path.Dir(r.Files[0]), pattern)
	}
	dir := path.Dir(pattern)
	if !slices.Contains(RuntimeDirs(), dir) {
		r.Elsewhere = append(r.Elsewhere, pattern) // a capture does not have it
		return all, nil
	}
	files, err := filesIn(tree, dir, isTOML)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if matches, err := path.Match(pattern, file); err != nil || !matches {
			continue
		}
		more, err := parseFile(tree, file)
		if err != nil {
			return nil, err
		}
		all, r.Files = all.over(more), append(r.Files, file)
	}
	return all, nil
}

// plugins reads the tables of containerd that have to do with pods: since version 3 of the format
// they are called otherwise.
func (r *Runtime) plugins(all table) {
	for _, plugin := range []string{"io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"} {
		cri := all.table("plugins", plugin)
		if on := cri.truth("enable_cdi"); on != nil {
			r.CDI = on
		}
		if dirs := cri.texts("cdi_spec_dirs"); dirs != nil {
			r.Dirs = dirs
		}
		for name := range cri.table("containerd", "runtimes") {
			h := cri.table("containerd", "runtimes", name)
			r.add(Handler{Name: name, Type: value(h.text("runtime_type")), Config: value(h.table("options").text("ConfigPath"))})
		}
	}
}

// add keeps the handlers sorted, and one of each name.
func (r *Runtime) add(h Handler) {
	r.Handlers = slices.DeleteFunc(r.Handlers, func(other Handler) bool { return other.Name == h.Name })
	r.Handlers = append(r.Handlers, h)
	slices.SortFunc(r.Handlers, func(a, b Handler) int { return strings.Compare(a.Name, b.Name) })
}

func crio(tree fs.FS) (*Runtime, error) {
	files, err := filesIn(tree, CRIODir, func(name string) bool { return !strings.HasPrefix(name, ".") }) // CRI-O does not care how they are called
	if err != nil {
		return nil, err
	}
	r, all := &Runtime{Name: nameCRIO}, table{}
	for _, name := range append([]string{CRIOFile}, files...) {
		more, err := parseFile(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all, r.Files = all.over(more), append(r.Files, name)
	}
	settings := all.table("crio", "runtime")
	r.Dirs = settings.texts("cdi_spec_dirs")
	for name := range settings.table("runtimes") {
		h := settings.table("runtimes", name)
		kind := value(h.text("runtime_type"))
		if kind == "vm" { // the path of a shim says which
			kind += " " + value(h.text("runtime_path"))
		}
		r.add(Handler{Name: name, Type: kind, Config: value(h.text("runtime_config_path"))})
	}
	return r, nil
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
