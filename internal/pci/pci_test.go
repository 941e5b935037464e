package pci_test

import (
	"encoding/json"
	"slices"
	"testing"

	"kata-device-plugin/internal/pci"
)

func TestParseAddress(t *testing.T) {
	for _, tt := range []struct {
		text string
		want pci.Address
	}{
		{"0000:00:00.0", pci.Address{}},
		{"0000:41:00.0", pci.Address{Bus: 0x41}},
		{"0000:ff:1f.7", pci.Address{Bus: 0xff, Device: 0x1f, Function: 7}},
		{"0001:01:00.0", pci.Address{Domain: 1, Bus: 1}},
		{"0008:06:00.0", pci.Address{Domain: 8, Bus: 6}},
		{"ffff:00:0a.3", pci.Address{Domain: 0xffff, Device: 10, Function: 3}},
		{"10000:01:00.0", pci.Address{Domain: 0x10000, Bus: 1}}, // Intel VMD
		{"123abc:01:00.0", pci.Address{Domain: 0x123abc, Bus: 1}},
		{"1234567:01:00.0", pci.Address{Domain: 0x1234567, Bus: 1}},
		{"ffffffff:01:00.0", pci.Address{Domain: 0xffffffff, Bus: 1}},
	} {
		got, err := pci.ParseAddress(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v", tt.text, got, err)
		}
		if got.String() != tt.text {
			t.Errorf("%s comes back as %s", tt.text, got)
		}
	}
	for _, text := range []string{
		"", ":", "41:00.0", "000:41:00.0", ":41:00.0", "0000:41:00", "0000:41:00.", "0000:41:0.0", "0000:1:00.0",
		"0000:41:20.0", "0000:41:ff.0", "0000:41:00.8", "0000:41:00.a", "0000:41:00.00", "0000:41:00.0\n", " 0000:41:00.0",
		"0000:AF:00.0", "ABCD:41:00.0", "0000:41:0A.0", "0x00:41:00.0", "00000:41:00.0", "010000:41:00.0",
		"0ffffffff:41:00.0", "100000000:41:00.0", "0000-41-00.0", "0000:41.00.0", "0000:41:00:0", "0000.41:00.0",
		"+000:41:00.0", "0000:-1:00.0", "0000:4g:00.0", "vfio0", "pci0000:41", "００００:41:00.0",
	} {
		if got, err := pci.ParseAddress(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestAddressText(t *testing.T) {
	type record struct{ Address pci.Address }
	text, err := json.Marshal(record{pci.Address{Domain: 0x10000, Bus: 0xe1, Function: 1}})
	if err != nil || string(text) != `{"Address":"10000:e1:00.1"}` {
		t.Errorf("%s, %v", text, err)
	}
	var back record
	if err := json.Unmarshal(text, &back); err != nil || back.Address != (pci.Address{Domain: 0x10000, Bus: 0xe1, Function: 1}) {
		t.Errorf("%+v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"Address":"e1:00.1"}`), &back); err == nil {
		t.Errorf("an address without a domain was read as %v", back.Address)
	}
	b, err := pci.Address{Bus: 0x41}.AppendText([]byte("at "))
	if err != nil || string(b) != "at 0000:41:00.0" {
		t.Errorf("appended: %q, %v", b, err)
	}
}

func TestCompare(t *testing.T) {
	sorted := []string{
		"0000:00:00.0", "0000:00:00.1", "0000:00:00.7", "0000:00:01.0", "0000:00:1f.7", "0000:01:00.0", "0000:ff:1f.7",
		"0001:00:00.0", "000a:00:00.0", "ffff:00:00.0", "10000:00:00.0", "100000:00:00.0", "ffffffff:ff:1f.7",
	}
	for i, s := range sorted {
		for j, u := range sorted {
			want := 0
			switch {
			case i < j:
				want = -1
			case i > j:
				want = 1
			}
			if got := address(t, s).Compare(address(t, u)); got != want {
				t.Errorf("%s against %s: %d, want %d", s, u, got, want)
			}
		}
	}
	list := make([]pci.Address, 0, len(sorted))
	for _, s := range slices.Backward(sorted) {
		list = append(list, address(t, s))
	}
	slices.SortFunc(list, pci.Address.Compare)
	for i, a := range list {
		if a.String() != sorted[i] {
			t.Errorf("sorted: %v", list)
			break
		}
	}
}

func TestIdentity(t *testing.T) {
	id := func(s string) (uint64, error) { v, err := pci.ParseID(s); return uint64(v), err }
	class := func(s string) (uint64, error) { v, err := pci.ParseClass(s); return uint64(v), err }
	revision := func(s string) (uint64, error) { v, err := pci.ParseRevision(s); return uint64(v), err }
	for _, tt := range []struct {
		what  string
		parse func(string) (uint64, error)
		good  map[string]uint64
		bad   []string
	}{
		{"ID", id, map[string]uint64{"0x10de\n": 0x10de, "0x10de": 0x10de, "0x0000\n": 0, "0xffff\n": 0xffff, "0x2330\n": 0x2330},
			[]string{"", "\n", "10ca\n", "0x", "0x\n", "0x10DE\n", "0X10de\n", "0x0de\n", "0x010de\n", "0x10de\n\n", "0x10de ", " 0x10de",
				"0x10de\r\n", "0x10d\n", "-0x10de", "0x+0de", "0x10_e", "(null)\n"}},
		{"class", class, map[string]uint64{"0x030200\n": 0x030200, "0x068000": 0x068000, "0x000000\n": 0, "0xffffff\n": 0xffffff},
			[]string{"", "30200\n", "0x30200\n", "0x0302\n", "0x0302000\n", "0x03020G\n", "0x0302AA\n", "030200\n", "0x030200\n\n"}},
		{"revision", revision, map[string]uint64{"0xa1\n": 0xa1, "0x00\n": 0, "0xff": 0xff},
			[]string{"", "a1\n", "0xA1\n", "0x1\n", "0x0a1\n", "0xa1\n\n", "161\n"}},
	} {
		for text, want := range tt.good {
			if got, err := tt.parse(text); err != nil || got != want {
				t.Errorf("%s %q: %#x, %v", tt.what, text, got, err)
			}
		}
		for _, text := range tt.bad {
			if got, err := tt.parse(text); err == nil {
				t.Errorf("%s %q was read as %#x", tt.what, text, got)
			}
		}
	}
	if got := pci.ID(0xde).String(); got != "0x00de" {
		t.Errorf("ID: %s", got)
	}
	if got := pci.Class(0x30200).String(); got != "0x030200" {
		t.Errorf("class: %s", got)
	}
	for class, want := range map[pci.Class]uint16{0x030200: 0x0302, 0x0302ff: 0x0302, 0x068000: 0x0680, 0x0000ff: 0, 0xffffff: 0xffff} {
		if got := class.Sub(); got != want {
			t.Errorf("%s without its interface: %#04x", class, got)
		}
	}
}

func address(t *testing.T, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
