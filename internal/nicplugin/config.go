package nicplugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nicconfig"
)

// loader makes rules of the configuration files, whenever those have changed.
type loader struct {
	paths  []string // those that exist are read, as one configuration
	prefix string
	log    *slog.Logger

	tried map[string][]byte // what was read last, good or bad, by path
	rules *nic.Rules        // of the last configuration that was good
	from  []string          // the files of that
	found []finding.Finding // what is wrong with the one that was read last

	asksProfile atomic.Bool // whether a pool selects by DDP package
}

func newLoader(paths []string, prefix string, log *slog.Logger) *loader {
	return &loader{paths: paths, prefix: prefix, log: log, rules: nic.New(&nicconfig.Config{})}
}

// load returns the rules that are to be. A configuration that cannot be used leaves the rules
// as they were: devices that pods have must not turn unhealthy for a typing error.
func (l *loader) load() (declare.Rules, []finding.Finding) {
	now, err := l.read()
	switch {
	case err != nil:
		l.tried, l.found = nil, []finding.Finding{unusable(err)}
	case len(l.missing(now)) > 0:
		l.tried, l.found = nil, []finding.Finding{finding.New(finding.ConfigGone(), "", l.missing(now)...)}
	case l.tried == nil || !maps.EqualFunc(now, l.tried, bytes.Equal):
		l.tried = now
		l.use(now)
	}
	return l.rules, l.found
}

// read reads the files that there are.
func (l *loader) read() (map[string][]byte, error) {
	all := make(map[string][]byte, len(l.paths))
	var errs []error
	for _, path := range l.paths {
		file, err := nicconfig.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		case len(bytes.TrimSpace(file.Data)) == 0:
			// What an editor or a full disk leaves. To declare nothing takes a word.
			errs = append(errs, fmt.Errorf("read the configuration: %s is empty; to declare nothing, let it have an empty resourceList", path))
		default:
			all[path] = file.Data
		}
	}
	return all, errors.Join(errs...)
}

// use takes a configuration over, if it is good.
func (l *loader) use(files map[string][]byte) {
	var all []nicconfig.File
	var names []string
	for _, path := range l.paths { // in this order: of two pools the first gets a device
		if data, ok := files[path]; ok {
			all = append(all, nicconfig.File{Name: path, Data: data})
			names = append(names, path)
		}
	}
	config, err := nicconfig.ParseFiles(all, nicconfig.Options{Prefix: l.prefix})
	if err != nil {
		l.found = []finding.Finding{unusable(err)}
		return
	}
	l.rules, l.from, l.found = nic.New(config), names, nil
	l.asksProfile.Store(config.AsksProfile())
	l.tell(config, names)
}

// tell logs what a configuration amounts to, and what of it its author may not know.
func (l *loader) tell(config *nicconfig.Config, names []string) {
	resources := []string{}
	for _, n := range l.rules.Names() {
		resources = append(resources, n.Resource)
	}
	if len(names) == 0 {
		level := slog.LevelInfo
		if !slices.Equal(l.paths, DefaultConfig()) {
			level = slog.LevelWarn // somebody meant that one
		}
		l.log.Log(context.Background(), level, "no configuration, so nothing is declared", "file", l.paths)
		return
	}
	l.log.Info("configured", "file", names, "resource", resources)
	for _, r := range config.Defaulted() {
		l.log.Warn("the configuration names no prefix, so the historical one is in effect", "resource", r.String())
	}
	for _, i := range config.Ignored {
		l.log.Info("a key of the configuration has no effect", "field", i.Path, "reason", i.Why)
	}
}

// profiles says whether the DDP packages of functions matter.
func (l *loader) profiles() bool { return l.asksProfile.Load() }

// missing are the files that were there.
func (l *loader) missing(now map[string][]byte) []finding.Evidence {
	var all []finding.Evidence
	for _, path := range l.from {
		if _, there := now[path]; !there {
			all = append(all, finding.Evidence{Path: path, Value: "none"})
		}
	}
	return all
}

// unusable has a piece of evidence for each problem.
func unusable(err error) finding.Finding {
	var evidence []finding.Evidence
	for _, e := range each(err) {
		evidence = append(evidence, finding.Evidence{Path: e.Error()})
	}
	return finding.New(finding.ConfigUnusable(), "", evidence...)
}

// each takes an error apart that is made of several.
func each(err error) []error {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		return several.Unwrap()
	}
	return []error{err}
}
