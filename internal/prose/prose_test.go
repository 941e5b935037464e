package prose_test

import (
	"strings"
	"testing"

	"kata-device-plugin/internal/prose"
)

func TestWrap(t *testing.T) {
	for _, tt := range []struct{ words, want string }{
		{"", "-\n"},
		{"one two", "- one two\n"},
		{"one two three four", "- one two\n  three four\n"},
		{"a  \n b", "- a b\n"},
		{"a-word-that-is-wider-than-the-line and more", "- a-word-that-is-wider-than-the-line\n  and more\n"},
		{"a\x1b[2Jb", "- a [2Jb\n"},
	} {
		var b strings.Builder
		prose.Wrap(&b, 12, "- ", "  ", tt.words)
		if b.String() != tt.want {
			t.Errorf("%q: got %q, want %q", tt.words, b.String(), tt.want)
		}
	}
}

// FuzzWrap: every word is there, in its order, and no line is wider unless it has one word.
func FuzzWrap(f *testing.F) {
	f.Add("one two three", 8)
	f.Fuzz(func(t *testing.T, words string, width int) {
		var b strings.Builder
		prose.Wrap(&b, width, "", "", words)
		if got, want := strings.Fields(b.String()), strings.Fields(prose.Clean(words)); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got %q, want %q", got, want)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if len(line) > width && len(strings.Fields(line)) > 1 {
				t.Errorf("%q is wider than %d", line, width)
			}
			if strings.ContainsAny(line, "\x1b\r\x7f") {
				t.Errorf("%q steers", line)
			}
		}
	})
}
