// Package manifest loads Kubernetes objects from files, directories and the standard input,
// and remembers for every value where it stands. It knows nothing of what objects mean.
package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options are how inputs are read.
type Options struct {
	// Stdin is what the path "-" stands for.
	Stdin io.Reader
	// Pipes are paths that are open already, since they cannot be opened twice. They are closed when they
	// were read.
	Pipes map[string]io.ReadCloser
	// Texts are read before the paths.
	Texts []Source
	// Complete are kinds of which the inputs have all objects of the cluster, as the user
	// says: for example nodes, or configmaps.
	Complete []string
	// MaxBytes is how large one input may be; 0 stands for 256 MiB.
	MaxBytes int64
}

// Source is a text that is no file, such as what a cluster answered.
type Source struct {
	Name string
	Data []byte
	// Unplaced: lines and columns of it are of no use to anybody. The place of a value is its
	// object, and values of an object are told apart by their paths.
	Unplaced bool
}

// Input is a text that was read.
type Input struct {
	Name    string
	Bytes   int64
	SHA256  string
	Objects int
	// Template is where the input looks like the source of a template, if it does. Nothing of
	// such a document is an object: half of one would be misunderstood.
	Template *Place

	unplaced bool
}

// at is the place of all that an unplaced input has, nil for others.
func (i *Input) at() *Place {
	if !i.unplaced {
		return nil
	}
	return &Place{File: i.Name}
}

// Set is everything that was loaded.
type Set struct {
	Objects []*Object
	Inputs  []Input

	complete map[string]bool
	listed   map[string]string // kinds of which nothing but a list seems to have all, with the name of its input
}

// Complete says whether the set has all objects of a kind that there are in the cluster. Only
// then is what is absent known not to be there.
func (s *Set) Complete(kind string) bool { return s.complete[Folded(kind)] }

// CompleteKinds lists them, in lower case.
func (s *Set) CompleteKinds() []string {
	var kinds []string
	for kind := range s.complete {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// Listed is the input with the list that seems to have all objects of a kind, "" where that is known otherwise or not
// so. kubectl does not write into a list what was selected for it: names and labels leave no trace.
func (s *Set) Listed(kind string) string { return s.listed[Folded(kind)] }

type loader struct {
	o     Options
	set   *Set
	build builder
}

// Load reads files and, with all below them, directories; "-" is the standard input. What
// cannot be read or parsed is an error of type Problem, joined with the others; then there
// is no set, since what is missing in it would look like what is missing in the cluster.
func Load(paths []string, o Options) (*Set, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = 256 << 20
	}
	l := &loader{o: o, set: &Set{complete: map[string]bool{}, listed: map[string]string{}}}
	for _, kind := range o.Complete {
		l.set.complete[Folded(kind)] = true
	}
	var errs []error
	for _, t := range o.Texts {
		errs = append(errs, l.read(t.Name, bytes.NewReader(t.Data), t.Unplaced)...)
	}
	for _, path := range paths {
		errs = append(errs, l.path(path)...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return l.set, nil
}

func (l *loader) path(path string) []error {
	if path == "-" {
		if l.o.Stdin == nil {
			return []error{Problem{Place: Place{File: path}, What: "there is no standard input to read"}}
		}
		return l.read(path, l.o.Stdin, false)
	}
	info, err := os.Stat(path)
	if err != nil {
		return []error{Problem{Place: Place{File: path}, What: "look for input", Err: cause(err)}}
	}
	if !info.IsDir() {
		return l.file(path)
	}
	var errs []error
	err = filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			errs = append(errs, Problem{Place: Place{File: file}, What: "look for input", Err: cause(err)})
		case e.IsDir() && file != path && strings.HasPrefix(e.Name(), "."):
			return filepath.SkipDir
		case e.Type().IsRegular() && isManifest(file):
			errs = append(errs, l.file(file)...)
		}
		return nil
	})
	return append(errs, err)
}

// cause is an error without the path, which the place has.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func isManifest(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(file)))
}

func (l *loader) file(path string) []error {
	f, err := l.open(path)
	if err != nil {
		return []error{Problem{Place: Place{File: path}, What: "open", Err: cause(err)}}
	}
	defer f.Close()
	errs := l.read(path, f, false)
	if strings.Contains(filepath.ToSlash(path), "cluster-scoped-resources/core/nodes/") {
		l.set.complete[Folded("Node")] = true // a must-gather has a file for each node
		delete(l.set.listed, Folded("Node"))
	}
	return errs
}

func (l *loader) open(path string) (io.ReadCloser, error) {
	if p, is := l.o.Pipes[path]; is {
		return p, nil
	}
	return os.Open(path)
}

func (l *loader) read(name string, r io.Reader, unplaced bool) []error {
	data, err := io.ReadAll(io.LimitReader(r, l.o.MaxBytes+1))
	if err != nil {
		return []error{Problem{Place: Place{File: name}, What: "read", Err: cause(err)}}
	}
	if int64(len(data)) > l.o.MaxBytes {
		return []error{Problem{Place: Place{File: name},
			What: fmt.Sprintf("is larger than %d bytes; check a part of it at a time", l.o.MaxBytes)}}
	}
	sum := sha256.Sum256(data)
	input := Input{Name: name, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), unplaced: unplaced}
	l.build.file = name
	before := len(l.set.Objects)
	errs := l.text(bytes.TrimPrefix(data, []byte("\ufeff")), &input)
	input.Objects = len(l.set.Objects) - before
	l.set.Inputs = append(l.set.Inputs, input)
	return errs
}

// Parse reads one text that is no set of objects, such as a file of settings.
func Parse(name string, data []byte) (Value, error) {
	b := &builder{file: name}
	n, err := embedded(data, 0, 0, b)
	return Value{n: n, in: &source{file: name}}, err
}
