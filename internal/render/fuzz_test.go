package render

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// FuzzPolicy: whatever the bytes are, there is either a policy that can be used or problems, each on one line
// and with what to do; and the same every time.
func FuzzPolicy(f *testing.F) {
	for _, s := range readSections(f, filepath.Join("testdata", "policies.txt")) {
		f.Add([]byte(s.text))
	}
	for _, file := range cases(f) {
		for _, s := range readSections(f, file) {
			if s.name == "policy" {
				f.Add([]byte(s.text))
			}
		}
	}
	f.Add([]byte(readSections(f, filepath.Join("testdata", "kueue.txt"))[0].text))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePolicy("p", data)
		again, errAgain := ParsePolicy("p", data)
		if !reflect.DeepEqual(p, again) || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("two readings differ: %+v, %v; %+v, %v", p, err, again, errAgain)
		}
		if (p == nil) == (err == nil) {
			t.Fatalf("policy %+v and error %v", p, err)
		}
		if err != nil {
			checkProblems(t, err, data)
			return
		}
		if len(p.Flavours) == 0 || p.Kubernetes < oldestVersion {
			t.Errorf("an unfinished policy: %+v", p)
		}
		for _, fl := range p.Flavours {
			if fl.Resource == "" || fl.Class == "" || fl.Request == "" || fl.Via == "" {
				t.Errorf("an unfinished flavour: %+v", fl)
			}
		}
		if _, err := Render([]File{{"pod", []byte(onePod)}}, p); err != nil {
			checkProblems(t, err, []byte(onePod))
		}
		if files, err := Kueue(p); err == nil && (len(files.Objects) == 0 || len(files.Configuration) == 0) {
			t.Errorf("nothing for Kueue: %+v", files)
		}
	})
}

// FuzzDocuments: whatever the bytes are, they come out as they were, or rendered, or with problems. What is rendered
// can be rendered back, and stays as it is when it is rendered again.
func FuzzDocuments(f *testing.F) {
	for _, file := range cases(f) {
		for _, s := range readSections(f, file) {
			f.Add([]byte(s.text), true)
		}
	}
	for _, s := range readSections(f, filepath.Join("testdata", "refused.txt")) {
		f.Add([]byte(s.text), false)
	}
	examples, err := filepath.Glob(filepath.Join("..", "..", "deploy", "examples", "dra", "*.yaml"))
	must(f, err)
	for _, file := range examples {
		data, err := os.ReadFile(file)
		must(f, err)
		f.Add(data, false)
	}
	f.Add([]byte("--- {apiVersion: v1, kind: Pod, spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}"), true)
	f.Fuzz(func(t *testing.T, data []byte, claims bool) {
		via := ExtendedResource
		if claims {
			via = DRA
		}
		for _, way := range []Via{via, DevicePlugin} {
			r, err := Render([]File{{"f", data}}, Default().With(way))
			if (r == nil) == (err == nil) {
				t.Fatalf("result %v and error %v", r, err)
			}
			if err != nil {
				if _, ok := errors.AsType[Problems](err); ok {
					checkProblems(t, err, data)
				}
				continue
			}
			once := r.Files[0].Data
			again, err := Render(r.Files, Default().With(way))
			if err != nil {
				t.Fatalf("%s: %v\n%s", way, err, once)
			}
			if !bytes.Equal(once, again.Files[0].Data) {
				t.Fatalf("%s: rendered once\n%s\ntwice\n%s", way, once, again.Files[0].Data)
			}
			if _, err := Render(r.Files, Default()); err != nil && way != DevicePlugin {
				t.Logf("not back: %v", err) // a name may be taken by then
			}
		}
		if out, err := Function(data, Default().With(via)); out == nil && err == nil {
			t.Error("the function says nothing")
		}
	})
}

func checkProblems(t *testing.T, err error, data []byte) {
	t.Helper()
	problems, ok := errors.AsType[Problems](err)
	if !ok || len(problems) == 0 || len(problems) > mostProblems {
		t.Fatalf("%T: %v", err, err)
	}
	// YAML ends lines also at a carriage return and at separators of Unicode.
	most := 2 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + bytes.Count(data, []byte("\u0085")) +
		bytes.Count(data, []byte("\u2028")) + bytes.Count(data, []byte("\u2029"))
	for _, p := range problems {
		if p.Line < 0 || p.Line > most || p.What == "" || p.Remedy == "" || strings.ContainsAny(p.Error(), "\n\r\x00\x1b") {
			t.Errorf("%q in line %d of %d", p.Error(), p.Line, most)
		}
	}
}
