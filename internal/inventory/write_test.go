package inventory_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/pci"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, i *inventory.Inventory, f inventory.Format, o inventory.Options) string {
	t.Helper()
	var b strings.Builder
	must(t, i.Write(&b, f, o))
	return b.String()
}

// small is an inventory with a function in each state, made by hand.
func small() *inventory.Inventory {
	at := func(bus uint8) pci.Address { return pci.Address{Bus: bus} }
	why := inventory.Finding{
		ID: "HST020", Severity: "note", Title: "the function has no VFIO character device", Remedy: "bind it to its VFIO driver on the host",
		Device: at(3).String(), Evidence: []inventory.Evidence{{Path: "/sys/bus/pci/devices/0000:03:00.0/driver", Value: "nvidia"}},
	}
	fault := inventory.Finding{
		ID: "HST002", Severity: "error", Title: "a companion keeps DMA ownership", Remedy: "bind the companion to vfio-pci",
		Resource: "nvidia.com/gpu", Device: at(2).String(), Evidence: []inventory.Evidence{{Path: "/sys/bus/pci/devices/0000:02:00.1/driver", Value: "snd_hda_intel"}},
	}
	gpu := func(bus uint8, s inventory.State, devices ...inventory.Device) inventory.Function {
		return inventory.Function{
			Address: at(bus), State: s, Type: inventory.GPU, Name: "a product whose name is longer than anybody would like it to be",
			Vendor: "0x10de", Device: "0x2330", Class: "0x030200", ClassName: "3D controller", NUMANode: new(0), PCIeRoot: "pci0000:00",
			Bridges: []pci.Address{{Device: bus}}, Devices: devices,
		}
	}
	i := &inventory.Inventory{
		APIVersion: inventory.APIVersion, Kind: inventory.Kind,
		Functions: []inventory.Function{
			gpu(1, inventory.Healthy, inventory.Device{ID: at(1).String(), Resource: "nvidia.com/gpu", Healthy: true}),
			gpu(2, inventory.Unhealthy, inventory.Device{ID: at(2).String(), Resource: "nvidia.com/gpu", Findings: []inventory.Finding{fault}}),
			gpu(3, inventory.NotDeclared), gpu(4, inventory.NotOurs),
		},
		Resources: []inventory.Resource{{Name: "nvidia.com/gpu", Devices: 2, Healthy: 1}},
		Counts:    inventory.Counts{Healthy: 1, Unhealthy: 1, NotDeclared: 1, NotOurs: 1},
	}
	i.Functions[2].Findings = []inventory.Finding{why}
	i.Functions[3].NUMANode = nil
	return i
}

func TestWidth(t *testing.T) {
	i := small()
	for _, f := range []inventory.Format{inventory.Table, inventory.Tree} {
		for _, ascii := range []bool{false, true} {
			for _, width := range []int{1, 40, 80, 100, 120, 200} {
				text := write(t, i, f, inventory.Options{Width: width, ASCII: ascii})
				for k := range i.Functions {
					if a := i.Functions[k].Address.String(); !strings.Contains(text, a) {
						t.Errorf("%s, %d columns: address %s is cut:\n%s", f, width, a, text)
					}
				}
				for line := range strings.Lines(text) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && width >= 120 {
						t.Errorf("%s: a line of %d characters for %d columns: %q", f, n, width, line)
					}
				}
				if strings.Contains(text, i.Functions[0].Name) != (width >= 200) {
					t.Errorf("%s, %d columns: want the whole name only where there is room:\n%s", f, width, text)
				}
				if ascii && strings.IndexFunc(text, func(r rune) bool { return r > '~' }) >= 0 {
					t.Errorf("%s: not ASCII:\n%s", f, text)
				}
			}
		}
	}
}

// TestColor: without the colours it is the same text.
func TestColor(t *testing.T) {
	i := small()
	for _, f := range inventory.Formats() {
		for _, width := range []int{0, 90} {
			text := write(t, i, f, inventory.Options{Width: width})
			if strings.Contains(text, "\x1b") {
				t.Errorf("%s has colours that nobody asked for:\n%q", f, text)
			}
			colored := write(t, i, f, inventory.Options{Width: width, Color: true})
			people := f == inventory.Table || f == inventory.Wide || f == inventory.Tree
			if strings.Contains(colored, "\x1b[31m") != people {
				t.Errorf("%s: colours %v, want %v", f, !people, people)
			}
			for _, code := range []string{"0", "31", "32", "33", "90"} {
				colored = strings.ReplaceAll(colored, "\x1b["+code+"m", "")
			}
			if colored != text {
				t.Errorf("%s, %d columns: without its colours another text:\n%s\nwant:\n%s", f, width, colored, text)
			}
		}
	}
}

// TestHostileTexts: a captured tree may come from anybody.
func TestHostileTexts(t *testing.T) {
	i := small()
	const bad = "\x1b]0;owned\a\u202e\n0000:99:00.0"
	i.Functions[0].Name, i.Functions[0].Driver, i.Functions[0].IOMMUGroup = bad, bad, bad
	i.Functions[0].PCIeRoot, i.Functions[0].Interfaces = bad, []string{bad}
	i.Functions[1].Devices[0].Resource, i.Functions[1].Devices[0].Findings[0].Evidence[0].Value = bad, bad
	i.Functions[2].Findings[0].Device, i.Functions[2].Cdev = bad, &inventory.Cdev{Path: bad}
	i.Resources[0].Name = bad
	i.Findings = []inventory.Finding{{ID: "HST025", Device: bad, Title: "t", Remedy: "r", Evidence: []inventory.Evidence{{Path: bad, Value: bad}}}}
	for _, f := range inventory.Formats() {
		for _, width := range []int{0, 80} {
			text := write(t, i, f, inventory.Options{Width: width})
			if strings.ContainsAny(text, "\x1b\a") || f != inventory.JSON && f != inventory.YAML && strings.Contains(text, "\u202e") {
				t.Errorf("%s passes on what a terminal obeys: %q", f, text)
			}
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "0000:99") {
					t.Errorf("%s has a line that no function has: %q", f, line)
				}
			}
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	var b strings.Builder
	err := small().Write(&b, "xml", inventory.Options{})
	const want = `write the inventory: there is no format "xml"; there are json, name, table, tree, wide, yaml`
	if err == nil || err.Error() != want || b.Len() > 0 {
		t.Errorf("%v and %q, want %s", err, b.String(), want)
	}
}

type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestFullDisk(t *testing.T) {
	for _, f := range inventory.Formats() {
		if err := small().Write(full{}, f, inventory.Options{}); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestSmall(t *testing.T) {
	for _, f := range []inventory.Format{inventory.Table, inventory.Tree} {
		golden.Assert(t, write(t, small(), f, inventory.Options{Width: 100, Color: true}), "small."+string(f))
		golden.Assert(t, write(t, small(), f, inventory.Options{Width: 80, ASCII: true}), "small-ascii."+string(f))
	}
}

func TestEmpty(t *testing.T) {
	for _, f := range inventory.Formats() {
		text := write(t, &inventory.Inventory{Functions: []inventory.Function{}}, f, inventory.Options{})
		switch f {
		case inventory.Name:
			if text != "" {
				t.Errorf("%q", text)
			}
		case inventory.Table, inventory.Wide, inventory.Tree:
			if !strings.HasPrefix(text, "No PCI function of this node is a candidate.\n") || !strings.Contains(text, "0 declared") {
				t.Errorf("%s: %q", f, text)
			}
		case inventory.JSON, inventory.YAML:
			if !strings.Contains(text, `functions": []`) && !strings.Contains(text, "functions: []") {
				t.Errorf("%s: %q", f, text)
			}
		}
	}
}

// TestUnread: of a function that could not be read there is nothing that looks like a fact.
func TestUnread(t *testing.T) {
	i := &inventory.Inventory{Functions: []inventory.Function{{Type: inventory.UnknownType, State: inventory.NotDeclared}}}
	wide := strings.Fields(strings.Split(write(t, i, inventory.Wide, inventory.Options{}), "\n")[1])
	want := strings.Fields("0000:00:00.0 unknown not declared - ? ? ? - unknown ? ? ? - ? - - - - -")
	if !slices.Equal(wide, want) {
		t.Errorf("%v\nwant %v", wide, want)
	}
	tree := write(t, i, inventory.Tree, inventory.Options{})
	for _, want := range []string{"NUMA unknown\n", "PCIe root unknown\n", "driver unknown"} {
		if !strings.Contains(tree, want) {
			t.Errorf("want %q:\n%s", want, tree)
		}
	}
}
