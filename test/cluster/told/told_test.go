package told_test

import (
	"strings"
	"testing"

	"kata-device-plugin/test/cluster/told"
)

// TestDiffer: a scrape that is not as expected is found out, whichever way it is expected and is not.
func TestDiffer(t *testing.T) {
	const right = "go_goroutines 9\npassthrough_up{source=\"a\"} 1\npassthrough_up{source=\"b\"} 0\npassthrough_free{resource=\"r\"} 3\n"
	e := told.NewExpected()
	e.Among(1, "up", "source", "a")
	e.Want(3, "free", "resource", "r")
	e.None("lost")
	for _, tt := range []struct{ from, to, want string }{
		{"", "", ""},
		{`{source="b"} 0`, `{source="b"} 7`, ""}, // which nobody expects to be anything
		{`{source="a"} 1`, `{source="a"} 0`, `told is up{source="a"} 0, want 1`},
		{`{source="a"} 1`, `{source="c"} 1`, `not told is up{source="a"} 1`},
		{`{resource="r"} 3`, `{resource="r"} 4`, `told is free{resource="r"} 4, want 3`},
		{`{resource="r"} 3`, `{resource="s"} 3`, `not told is free{resource="r"} 3`},
		{"go_", "passthrough_free{resource=\"s\"} 1\ngo_", `told is free{resource="s"} 1, want no such series`},
		{"go_", "passthrough_lost 0\ngo_", "told is lost 0, want no such series"},
	} {
		got, err := told.Parse(strings.Replace(right, tt.from, tt.to, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Differ(got); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s for %s: %v, want %q", tt.to, tt.from, err, tt.want)
		}
	}
	if _, err := told.Parse("passthrough_a 1\npassthrough_a 1\n"); err == nil {
		t.Error("a series may be there twice")
	}
}
