package sbom

import (
	"debug/buildinfo"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
)

const (
	mit = `MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`
	gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.

This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU General Public License for more details.

You should have received a copy of the GNU General Public License along with this program. If not, see <https://www.gnu.org/licenses/>.
`
)

// TestLicence gives the lookup modules with all kinds of licence files.
func TestLicence(t *testing.T) {
	for _, test := range []struct {
		name     string
		files    map[string]string
		want     string
		mistaken string // what the error says
	}{
		{"one", map[string]string{"LICENSE": mit}, "MIT", ""},
		{"another name", map[string]string{"Licence.md": mit, "README": gpl}, "MIT", ""},
		{"twice the same", map[string]string{"LICENSE": mit, "LICENSE.txt": mit}, "MIT", ""},
		{"a notice", map[string]string{"LICENSE": mit, "NOTICE": "Somebody made it."}, "MIT", ""},
		{"a notice alone", map[string]string{"NOTICE": "Somebody made it."}, "", "has no licence file"},
		{"none", map[string]string{"README": "free"}, "", "has no licence file"},
		{"not allowed", map[string]string{"COPYING": gpl}, "", "COPYING of module example.com/Some/mod v1.0.0: licence GPL-3.0-or-later is not one of Apache-2.0,"},
		{"one of two not allowed", map[string]string{"LICENSE": mit, "LICENSE.2": gpl}, "", "LICENSE.2"},
		{"not known", map[string]string{"LICENSE": "Do as you like, but not on Sundays."}, "", "only 0 % of it"},
		{"known and a condition", map[string]string{"LICENSE": mit + strings.Repeat("Nobody may use it on a Sunday or a Monday. ", 40)}, "", "% of it is text of licences that are known"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cache := t.TempDir()
			dir := filepath.Join(cache, "example.com", "!some", "mod@v1.0.0")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, content := range test.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := licence(cache, "example.com/Some/mod", "v1.0.0")
			if test.mistaken == "" && (err != nil || got != test.want) {
				t.Errorf("got %q and %v, want %q", got, err, test.want)
			}
			if test.mistaken != "" && (err == nil || !strings.Contains(err.Error(), test.mistaken)) {
				t.Errorf("got %q and %v, want an error with %q", got, err, test.mistaken)
			}
		})
	}
	if _, err := licence(t.TempDir(), "example.com/absent", "v1.0.0"); err == nil || !strings.Contains(err.Error(), "go mod download") {
		t.Errorf("of a module that is not in the cache: %v", err)
	}
}

// TestNotices wants every text that a licence asks to be passed on: licences and notices of each module.
func TestNotices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image") // a program with modules; what a test is made of is not written in it
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", file, "../image").CombinedOutput(); err != nil {
		t.Fatalf("build a program: %v\n%s", err, out)
	}
	goroot := t.TempDir()
	if _, err := notices(file, t.TempDir(), goroot); err == nil || !strings.Contains(err.Error(), "read the licence of go1.") {
		t.Errorf("without the licence of Go: %v", err)
	}
	if err := os.WriteFile(filepath.Join(goroot, "LICENSE"), []byte("the licence of Go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil || len(info.Deps) == 0 {
		t.Fatalf("the program is made of %v: %v", info, err)
	}
	cache, want := t.TempDir(), ""
	for _, m := range info.Deps {
		path, err1 := module.EscapePath(m.Path)
		version, err2 := module.EscapeVersion(m.Version)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(cache, path+"@"+version)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"LICENSE", "NOTICE.txt", "README"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(name+" of "+m.Path+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"LICENSE", "NOTICE.txt"} {
			want += "\n==== " + m.Path + " " + m.Version + " " + name + "\n\n" + name + " of " + m.Path + "\n"
		}
	}
	got, err := notices(file, cache, goroot)
	if err != nil {
		t.Fatal(err)
	}
	if want = "==== Go " + info.GoVersion + "\n\nthe licence of Go\n" + want; string(got) != want {
		t.Errorf("the texts are\n%s\nwant\n%s", got, want)
	}
}
