package inventory_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"kata-device-plugin/internal/inventory"
)

// FuzzTexts: whatever is in a captured tree, it stays in its line, is no command to a
// terminal, and hides no address.
func FuzzTexts(f *testing.F) {
	f.Add("vfio-pci", 80, false)
	f.Add("\x1b]0;x\a", 40, true)
	f.Add("\u202e\u2028 \xff\n", 0, false)
	f.Fuzz(func(t *testing.T, text string, width int, ascii bool) {
		i := small()
		for k := range i.Functions {
			i.Functions[k].Name, i.Functions[k].Driver, i.Functions[k].PCIeRoot = text, text, text
		}
		i.Functions[1].Devices[0].Findings[0].Evidence[0].Value = text
		i.Findings = []inventory.Finding{{ID: "HST025", Device: text, Title: "t", Remedy: "r"}}
		rows := strings.Count(write(t, small(), inventory.Name, inventory.Options{}), "\n")
		for _, format := range []inventory.Format{inventory.Table, inventory.Wide, inventory.Tree} {
			out := write(t, i, format, inventory.Options{Width: width, ASCII: ascii})
			if at := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); at >= 0 {
				t.Errorf("%s: %q", format, out[at:])
			}
			if n := strings.Count(out, "0000:01:00.0"); n == 0 {
				t.Errorf("%s hides the address:\n%s", format, out)
			}
			head, _, _ := strings.Cut(out, "\n\n")
			if n := strings.Count(head, "\n"); format != inventory.Tree && n != rows {
				t.Errorf("%s has %d rows, want %d:\n%s", format, n, rows, head)
			}
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add("GH100 [H100 SXM5 80GB]", 8)
	f.Add("ünïcödé \xff", 3)
	f.Fuzz(func(t *testing.T, text string, width int) {
		got := inventory.Cut(text, width, "…")
		switch length := utf8.RuneCountInString(text); {
		case length <= max(0, width):
			if got != text {
				t.Errorf("%q became %q though it fits into %d", text, got, width)
			}
		case utf8.RuneCountInString(got) != max(1, width) || !strings.HasPrefix(text, strings.TrimSuffix(got, "…")):
			t.Errorf("%q became %q in %d", text, got, width)
		}
	})
}
