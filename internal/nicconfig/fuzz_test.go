package nicconfig

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// FuzzParse: whatever the bytes are, there is either a Config or problems that have a
// place in the text, in order and each on one line; and the same every time.
func FuzzParse(f *testing.F) {
	_, all := readMalformed(f)
	for _, m := range all {
		f.Add([]byte(m.config), "")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "public", "*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "openshift.io")
	}
	f.Add([]byte("resourceList:\n- {resourceName: a, selectors: {matchAll: true}}\n"), "Foo")
	f.Fuzz(func(t *testing.T, data []byte, prefix string) {
		c, err := Parse("c", data, Options{Prefix: prefix})
		again, errAgain := Parse("c", data, Options{Prefix: prefix})
		if !reflect.DeepEqual(c, again) || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("two readings differ: %+v, %v; %+v, %v", c, err, again, errAgain)
		}
		if (c == nil) == (err == nil) {
			t.Fatalf("config %+v and error %v", c, err)
		}
		if err != nil {
			checkProblems(t, err, data)
			return
		}
		for _, p := range c.Pools {
			if p.DeviceType == anyDevice || len(p.Selectors) == 0 || p.Resource.Name == "" || p.Resource.Prefix == "" {
				t.Errorf("an unfinished pool: %+v", p)
			}
		}
		for _, p := range c.Shared {
			if p.RDMAHCAMax == nil && p.SharesPerDevice == nil || p.Resource.Name == "" || p.Resource.Prefix == "" {
				t.Errorf("an unfinished pool: %+v", p)
			}
		}
	})
}

func checkProblems(t *testing.T, err error, data []byte) {
	t.Helper()
	problems, ok := errors.AsType[Problems](err)
	if !ok || len(problems) == 0 || len(problems) > maxProblems+1 {
		t.Fatalf("%T: %v", err, err)
	}
	last := place{}
	for i, p := range problems {
		at := place{p.Line, p.Column}
		// YAML ends lines also at a carriage return and at two separators of Unicode.
		most := 2 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + bytes.Count(data, []byte("\u2028")) + bytes.Count(data, []byte("\u2029"))
		if p.Line < 0 || p.Line > most || p.Column > len(data)+1 || (p.Line == 0) != (p.Column == 0) {
			t.Errorf("%v is not in the text", p)
		}
		if i < maxProblems && (at.line < last.line || at.line == last.line && at.column < last.column) {
			t.Errorf("%v comes after a problem in %v", p, last)
		}
		if last = at; p.What == "" || strings.ContainsAny(p.Error(), "\n\r\x00\x1b") || len(p.Error()) > 2000 {
			t.Errorf("%q", p.Error())
		}
	}
}
