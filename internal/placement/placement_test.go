package placement_test

import (
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/placement"
)

// hgx is an HGX H100: eight GPUs, each behind a switch of its own, on two NUMA nodes.
func hgx() []placement.Unit {
	var units []placement.Unit
	for i, bus := range []string{"53", "64", "75", "86", "97", "a8", "b9", "ca"} {
		node := "node " + string(rune('0'+i/4))
		units = append(units, placement.Unit{ID: bus, Path: []string{node, "pci0000:" + bus[:1] + "0", bus + " up", bus + " down"}})
	}
	return units
}

// parse reads units from "id:path/of/domains id2:path".
func parse(text string) []placement.Unit {
	var units []placement.Unit
	for s := range strings.FieldsSeq(text) {
		id, path, _ := strings.Cut(s, ":")
		u := placement.Unit{ID: id}
		if path != "" {
			u.Path = strings.Split(path, "/")
		}
		units = append(units, u)
	}
	return units
}

// free is hgx without some.
func free(but string) []placement.Unit {
	return slices.DeleteFunc(hgx(), func(u placement.Unit) bool { return strings.Contains(but, u.ID) })
}

// pairs has two GPUs behind each of four switches, two switches on each of two nodes.
const pairs = "a0:0/s0 a1:0/s0 b0:0/s1 b1:0/s1 c0:1/s2 c1:1/s2 d0:1/s3 d1:1/s3"

func TestChoose(t *testing.T) {
	for _, tt := range []struct {
		name  string
		units []placement.Unit
		must  string
		size  int
		want  string
	}{
		{"one of eight", hgx(), "", 1, "53"},
		{"half", hgx(), "", 4, "53 64 75 86"},
		{"half with a must on the other node", hgx(), "b9", 4, "b9 97 a8 ca"},
		{"half with musts on both", hgx(), "64 b9", 4, "64 b9 53 75"},
		{"all", hgx(), "", 8, "53 64 75 86 97 a8 b9 ca"},
		{"five take one node whole", hgx(), "", 5, "53 64 75 86 97"},
		{"best fit", free("53 64"), "", 2, "75 86"},
		{"best fit on the second", free("97 a8 b9"), "", 1, "ca"},
		{"what is left is whole", free("53"), "", 3, "64 75 86"},
		{"only one node has enough", free("53 64"), "", 3, "97 a8 b9"},
		{"none has enough", free("53 64 75 97 a8"), "", 3, "86 b9 ca"},
		{"the narrower domain", parse("a:0/x b:0/y c:1/z d:1/z"), "", 2, "c d"},
		{"the narrower domain, though it breaks a larger set", parse("a:0/x b:0/y c:1/z d:1/z e:1/w"), "", 2, "c d"},
		{"pair", parse(pairs), "", 2, "a0 a1"},
		{"pair around a must", parse(pairs), "c1", 2, "c1 c0"},
		{"three of pairs break one", parse(pairs), "", 3, "a0 a1 b0"},
		{"one does not break a pair", parse("a0:0/s0 a1:0/s0 b0:0/s1"), "", 1, "b0"},
		{"one does not break the larger node", parse("a:0/s0 b:0/s0 c:1/s1"), "", 1, "c"},
		{"must named twice", hgx(), "64 64", 2, "64 53"},
		{"more musts than asked", hgx(), "b9 64 53", 2, "b9 64"},
		{"unknown must takes a place", hgx(), "nobody", 3, "nobody 53 64"},
		{"unknown musts alone", hgx(), "x y", 2, "x y"},
		{"unknown must among none", nil, "x", 2, "x"},
		{"fewer than asked", free("53 64 75 86 97 a8"), "", 4, "b9 ca"},
		{"none asked", hgx(), "", 0, ""},
		{"none asked, but a must", hgx(), "53", 0, ""},
		{"negative", hgx(), "53", -1, ""},
		{"none there", nil, "", 2, ""},
		{"unit listed twice", parse("a:0 a:0 b:1 c:1"), "", 2, "b c"},
		{"unit listed twice, all asked", parse("a:0 a:0 b:1"), "", 3, "a b"},
		{"no path", parse("a b c"), "b", 2, "b a"},
		{"paths of different length", parse("a b:0 c:0/s d:0/s/t"), "", 2, "a b"},
		{"same name elsewhere is another domain", parse("a:0/s b:1/s c:1/s"), "", 2, "b c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := placement.Choose(tt.units, strings.Fields(tt.must), tt.size)
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

// TestHugeSize asks for more than can be had: the size comes from outside.
func TestHugeSize(t *testing.T) {
	const most = int(^uint(0) >> 1)
	if got := placement.Choose(hgx(), []string{"ca", "nobody"}, most); len(got) != 9 || got[0] != "ca" || got[1] != "nobody" {
		t.Errorf("got %v", got)
	}
}

// TestMany is beyond what is searched for the best left-over; the spread still counts.
func TestMany(t *testing.T) {
	var units []placement.Unit
	for i := range 400 {
		node := i * 7 % 4
		units = append(units, placement.Unit{ID: id(i), Path: []string{id(node), id(i % 40)}})
	}
	got := placement.Choose(units, nil, 100) // exactly what one node has
	nodes, switches := domains(units, got, 1), domains(units, got, 2)
	if len(got) != 100 || len(nodes) != 1 || len(switches) != 10 {
		t.Errorf("%d units on %d nodes behind %d switches", len(got), len(nodes), len(switches))
	}
}
