package finding_test

import (
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/finding"
)

func TestCatalogue(t *testing.T) {
	seen := map[string]string{}
	ids := []string{}
	for _, k := range finding.Catalogue() {
		if other, ok := seen[k.ID]; ok {
			t.Errorf("%s stands for %q and for %q", k.ID, other, k.Title)
		}
		seen[k.ID] = k.Title
		ids = append(ids, k.ID)
		family, number := k.ID[:min(3, len(k.ID))], k.ID[min(3, len(k.ID)):]
		if !slices.Contains([]string{"CDI", "CFG", "DRA", "DSP", "EVD", "HST", "MAP", "NAD", "NAM", "NOD", "PLG", "POD", "PRE", "SEC", "TOP"}, family) || len(number) != 3 || strings.Trim(number, "0123456789") != "" {
			t.Errorf("%q is no ID", k.ID)
		}
		for what, text := range map[string]string{"title": k.Title, "remedy": k.Remedy} {
			if text == "" || strings.TrimSpace(text) != text || strings.Contains(text, "\n") || strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s %q", k.ID, what, text)
			}
		}
		if k.Severity.String() == "unknown" {
			t.Errorf("%s has no severity", k.ID)
		}
	}
	if !slices.IsSorted(ids) {
		t.Errorf("the catalogue is not sorted by ID: %v", ids)
	}
	titles := map[string]string{}
	for id, title := range seen {
		if other, ok := titles[title]; ok {
			t.Errorf("%s and %s have one title", id, other)
		}
		titles[title] = id
	}
}

// TestStable has the IDs that are searched for and alerted on.
func TestStable(t *testing.T) {
	for _, tt := range []struct {
		kind finding.Kind
		want string
	}{
		{finding.NoIOMMUGroup(), "HST001 error"}, {finding.NotViable(), "HST002 error"}, {finding.NoCdev(), "HST020 note"},
		{finding.NoCdevNumber(), "HST021 error"}, {finding.NoIOMMUMode(), "HST022 error"}, {finding.VirtualFunction(), "HST023 note"},
		{finding.NotPCI(), "HST024 note"}, {finding.JunkName(), "HST025 warning"}, {finding.NotCharDevice(), "HST026 error"},
		{finding.OtherNumber(), "HST027 error"}, {finding.NotYet(), "HST028 note"}, {finding.HasVFs(), "HST029 error"},
		{finding.WideDomain(), "HST030 error"}, {finding.Unreadable(), "HST031 error"}, {finding.Gone(), "HST032 error"},
		{finding.StaleMount(), "HST033 error"}, {finding.Unlisted(), "HST034 error"}, {finding.ChangedClass(), "HST035 error"},
		{finding.SpecRejected(), "CDI004 warning"}, {finding.SpecTooNew(), "CDI005 warning"}, {finding.SpecConflict(), "CDI006 error"},
		{finding.SpecUnwritten(), "CDI014 error"}, {finding.NotRegistered(), "PLG003 warning"}, {finding.Contested(), "PLG007 error"},
		{finding.HeldElsewhere(), "PLG018 warning"}, {finding.Claimed(), "HST046 warning"},
	} {
		if got := tt.kind.ID + " " + tt.kind.Severity.String(); got != tt.want {
			t.Errorf("%q is %s, want %s", tt.kind.Title, got, tt.want)
		}
		if !slices.Contains(finding.Catalogue(), tt.kind) {
			t.Errorf("%s is not in the catalogue", tt.kind.ID)
		}
	}
}

func TestKey(t *testing.T) {
	e := func(path, value string) finding.Evidence { return finding.Evidence{Path: path, Value: value} }
	base := func() finding.Finding {
		return finding.New(finding.NoCdev(), "0000:41:00.0", e("/a", "x"), e("/b", "y")).For("nvidia.com/gpu")
	}
	if a, b := base(), base(); a.Key() != b.Key() {
		t.Error("the same finding has two keys")
	}
	keys := map[string]string{base().Key(): "nothing"}
	for what, change := range map[string]func(*finding.Finding){
		"ID":                    func(f *finding.Finding) { f.ID = finding.Gone().ID },
		"device":                func(f *finding.Finding) { f.Device = "0000:42:00.0" },
		"resource":              func(f *finding.Finding) { f.Resource = "nvidia.com/nvswitch" },
		"no resource":           func(f *finding.Finding) { f.Resource = "" },
		"value":                 func(f *finding.Finding) { f.Evidence[0].Value = "z" },
		"path":                  func(f *finding.Finding) { f.Evidence[1].Path = "/c" },
		"order of evidence":     func(f *finding.Finding) { slices.Reverse(f.Evidence) },
		"less evidence":         func(f *finding.Finding) { f.Evidence = f.Evidence[:1] },
		"no evidence":           func(f *finding.Finding) { f.Evidence = nil },
		"more evidence":         func(f *finding.Finding) { f.Evidence = append(f.Evidence, e("", "")) },
		"value moved to path":   func(f *finding.Finding) { f.Evidence[0] = e("/ax", "") },
		"resource and device":   func(f *finding.Finding) { f.Resource, f.Device = f.Device, f.Resource },
		"all in the device":     func(f *finding.Finding) { f.Device, f.Resource = f.Resource+f.Device, "" },
		"a resource's evidence": func(f *finding.Finding) { f.Evidence[0] = e("nvidia.com/gpu", "0000:41:00.0") },
	} {
		f := base()
		change(&f)
		if other, ok := keys[f.Key()]; ok {
			t.Errorf("a change of %s gives the key of a change of %s", what, other)
		}
		keys[f.Key()] = what
	}
	for what, change := range map[string]func(*finding.Finding){
		"title":    func(f *finding.Finding) { f.Title = "other words" },
		"remedy":   func(f *finding.Finding) { f.Remedy = "other words" },
		"severity": func(f *finding.Finding) { f.Severity = finding.Error },
	} {
		f := base()
		change(&f)
		if f.Key() != base().Key() {
			t.Errorf("a change of %s gives another key", what)
		}
	}
}

func TestText(t *testing.T) {
	f := finding.New(finding.NotViable(), "0000:41:00.0",
		finding.Evidence{Path: "/sys/a", Value: "snd_hda_intel"}, finding.Evidence{Path: "list /sys/b: input/output error"})
	const want = "a companion in the IOMMU group is bound to a driver that keeps DMA ownership: " +
		"/sys/a = snd_hda_intel, list /sys/b: input/output error"
	if f.Reason() != want || f.String() != "HST002 "+want {
		t.Errorf("%s", f)
	}
	if got := finding.New(finding.Gone(), "").String(); got != "HST032 the device has left" {
		t.Errorf("%s", got)
	}
	if f.For("r").Resource != "r" || f.Resource != "" {
		t.Error("For changes the finding itself, or nothing")
	}
	if got := finding.Severity(99).String(); got != "unknown" {
		t.Errorf("severity 99 is %s", got)
	}
}

func TestSort(t *testing.T) {
	a, b := finding.New(finding.Gone(), "b").For("r1"), finding.New(finding.Gone(), "b").For("r2")
	c, d := finding.New(finding.NoCdev(), "b").For("r1"), finding.New(finding.Unlisted(), "", finding.Evidence{Path: "1"})
	e := finding.New(finding.Unlisted(), "", finding.Evidence{Path: "0"})
	all := []finding.Finding{b, a, d, c, e}
	finding.Sort(all)
	for i, want := range []finding.Finding{d, e, c, a, b} { // what is equal keeps its order
		if all[i].Key() != want.Key() {
			t.Errorf("%d: %s", i, all[i])
		}
	}
}
