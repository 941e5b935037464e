// Package nodeconfig reads what kubelet, the container runtime and Kata are told in files of a node.
// It says what the files say: what a program does without a setting is known to whoever asks.
package nodeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxFile is how much of a file is read: the largest that distributions ship has a tenth of it.
const maxFile = 1 << 20

// table is a TOML table.
type table map[string]any

// parse reads a TOML text.
func parse(text []byte) (table, error) {
	var t table
	err := toml.Unmarshal(text, &t)
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := at.Position()
		return nil, fmt.Errorf("line %d, column %d: %s: correct it, the program that reads the file does not start with it",
			line, column, strings.TrimPrefix(at.Error(), "toml: "))
	}
	return t, err
}

// parseFile reads a TOML file of a tree. The errors of the tree stay what they are: a file that
// does not exist is fs.ErrNotExist.
func parseFile(tree fs.FS, name string) (table, error) {
	text, err := read(tree, name)
	if err != nil {
		return nil, err
	}
	t, err := parse(text)
	if err != nil {
		return nil, &Broken{name, err}
	}
	return t, nil
}

// Broken is a file that was read, and that the program that it is for does not understand.
type Broken struct {
	File string
	Err  error
}

// Error is one line.
func (b *Broken) Error() string { return "read " + b.File + ": " + b.Err.Error() }

// Unwrap returns what is wrong with it.
func (b *Broken) Unwrap() error { return b.Err }

// read reads a file by its path on the host.
func read(tree fs.FS, name string) ([]byte, error) {
	text, err := fs.ReadFile(tree, strings.TrimPrefix(name, "/"))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("read %s: it has more than %d bytes", name, maxFile)
	}
	return text, err
}

// filesIn are files of a directory that a program reads, by their names, sorted. One that does not exist
// has none.
func filesIn(tree fs.FS, dir string, reads func(name string) bool) ([]string, error) {
	entries, err := fs.ReadDir(tree, strings.TrimPrefix(dir, "/"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []string
	for _, e := range entries {
		if !e.IsDir() && reads(e.Name()) {
			all = append(all, path.Join(dir, e.Name()))
		}
	}
	slices.Sort(all)
	return all, err
}

func isTOML(name string) bool { return path.Ext(name) == ".toml" }

// table is a table in a table, empty where there is none.
func (t table) table(keys ...string) table {
	for _, key := range keys {
		next, _ := t[key].(map[string]any)
		t = next
	}
	return t
}

// text is a string, nil where there is none.
func (t table) text(key string) *string {
	if s, ok := t[key].(string); ok {
		return &s
	}
	return nil
}

// number is a whole number, nil where there is none.
func (t table) number(key string) *int64 {
	if n, ok := t[key].(int64); ok {
		return &n
	}
	return nil
}

// truth is true or false, nil where there is neither.
func (t table) truth(key string) *bool {
	if b, ok := t[key].(bool); ok {
		return &b
	}
	return nil
}

// texts is a list of strings, nil where there is none.
func (t table) texts(key string) []string {
	list, ok := t[key].([]any)
	if !ok {
		return nil
	}
	all := []string{}
	for _, item := range list {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// over lays a table over this one: what both have is the other's, but for tables, which are joined.
func (t table) over(other table) table {
	joined := table{}
	maps.Copy(joined, t)
	for key, value := range other {
		above, ok := value.(map[string]any)
		below, both := joined[key].(map[string]any)
		if ok && both {
			value = map[string]any(table(below).over(above))
		}
		joined[key] = value
	}
	return joined
}
