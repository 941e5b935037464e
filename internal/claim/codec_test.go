package claim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/claim"
)

// goldenRecord is what the golden files of schema 1 say.
func goldenRecord() claim.Record {
	const kind = "vfio.katacontainers.io/claim="
	return claim.Record{
		UID: uidA, Namespace: "tenant", Name: "training-gpu", Boot: "7c1f0a3e-9d53-4b3f-8a51-0f5f9d7a6b21",
		State: claim.Prepared, Since: start, Changed: time.Date(2026, 11, 30, 14, 42, 16, 0, time.UTC),
		Devices: []claim.Device{{
			Pool: "node-a", Name: "gpu-0000-1b-00-0", Address: "0000:1b:00.0", Group: []string{"0000:1b:00.0", "0000:1b:00.1"},
			Requests: []string{"gpu/h100"}, CDI: []string{kind + uidA + "-gpu-0000-1b-00-0"}, Nodes: []string{"/dev/vfio/devices/vfio3"},
		}, {
			Pool: "node-a", Name: "nic-0000-18-00-0", Address: "0000:18:00.0", Group: []string{"0000:18:00.0"},
			Requests: []string{"nic"}, ShareID: "5f2c8d8e-3c0b-4a57-9e7b-0d6c5b1a2f33", Admin: true,
			CDI: []string{kind + uidA + "-nic-0000-18-00-0"}, Nodes: []string{"/dev/vfio/devices/vfio4"},
		}},
	}
}

// TestGolden: files of the format stay readable, and are written as they always were. They
// were made by another program, and are never written anew: a later version finds such files
// on nodes.
func TestGolden(t *testing.T) {
	s, dir := locked(t)
	for _, name := range []string{"v1.json", "v1-with-unknown-fields.json"} {
		data := golden(t, name)
		place(t, dir, uidA, data)
		wantRecord(t, s, goldenRecord())
		must(t, s.Put(goldenRecord()))
		if got := content(t, file(dir, uidA)); got != string(data) {
			t.Errorf("%s: written\n%s\nwant\n%s", name, got, data)
		}
	}
	// Into another zone and back.
	r := goldenRecord()
	r.Since = r.Since.In(time.FixedZone("x", 3600))
	must(t, s.Remove(uidA, start))
	must(t, s.Put(r))
	if got, want := content(t, file(dir, uidA)), string(golden(t, "v1.json")); got != want {
		t.Errorf("written\n%s\nwant\n%s", got, want)
	}
}

// TestUnknownFields: what a later version has added stays when the record changes, and goes
// with the device that it was about.
func TestUnknownFields(t *testing.T) {
	s, dir := locked(t)
	_, body, _ := strings.Cut(string(golden(t, "v1-with-unknown-fields.json")), "\n")
	place(t, dir, uidA, sealed(body))
	r := goldenRecord()
	r.State = claim.Unpreparing
	must(t, s.Put(r))
	want := string(sealed(strings.Replace(body, "Prepared", "Unpreparing", 1)))
	if got := content(t, file(dir, uidA)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.Devices = []claim.Device{r.Devices[1], r.Devices[0], r.Devices[0]}
	r.Devices[2].ShareID = "another"
	must(t, s.Put(r))
	got := content(t, file(dir, uidA))
	if strings.Count(got, `"partition":{"id":7,"of":[1,2]}`) != 1 || strings.Count(got, `{"Admin":"unknown",`) != 1 {
		t.Errorf("after the devices changed places: %s", got)
	}
	r.Devices = r.Devices[:1]
	must(t, s.Put(r))
	if got := content(t, file(dir, uidA)); strings.Contains(got, "partition") || !strings.Contains(got, "budget") {
		t.Errorf("without the device: %s", got)
	}
	wantRecord(t, s, r)
}

// TestNewer: the file of a later version stays where and as it is.
func TestNewer(t *testing.T) {
	s, dir := locked(t)
	place(t, dir, uidA, golden(t, "v2.json"))
	d := wantDamaged(t, s, uidA)
	if want := []string{"0000:1b:00.0", "0000:1b:00.1", "10000:e1:00.0"}; !d.Newer || d.Unread || !slices.Equal(d.Group, want) {
		t.Errorf("got %+v", d)
	}
	for name, err := range map[string]error{"put": s.Put(record(uidA, 1)), "remove": s.Remove(uidA, start), "quarantine": s.Quarantine(uidA)} {
		var damaged *claim.DamagedError
		if !errors.As(err, &damaged) || !damaged.Newer {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, s.Discard(uidA))
	if got := content(t, file(dir, uidA)); got != string(golden(t, "v2.json")) {
		t.Errorf("now %s", got)
	}
	// Of a file that is not whole, nobody knows who wrote it.
	place(t, dir, uidA, bytes.Replace(golden(t, "v2.json"), []byte(`"schema":2`), []byte(`"schema":3`), 1))
	if d := wantDamaged(t, s, uidA); d.Newer {
		t.Errorf("got %+v", d)
	}
}

// TestTorn: no beginning of a file, no file with a byte changed and none with one more is
// taken for the record. It hides no other.
func TestTorn(t *testing.T) {
	s, dir := locked(t)
	whole := record(uidB, 3)
	must(t, s.Put(whole))
	data := golden(t, "v1.json")
	for n := range data {
		place(t, dir, uidA, data[:n])
		d := wantDamaged(t, s, uidA)
		if both := n >= bytes.LastIndex(data, []byte("0000:1b:00.1"))+len("0000:1b:00.1"); both != slices.Contains(d.Group, "0000:1b:00.1") || d.Newer || d.Unread {
			t.Fatalf("%d bytes: %+v", n, d)
		}
	}
	for n := range data {
		changed := bytes.Clone(data)
		changed[n] ^= 1 << (n % 8)
		place(t, dir, uidA, changed)
		wantDamaged(t, s, uidA)
	}
	for _, more := range []string{"\n", " ", "\x00", "{}", string(data)} {
		place(t, dir, uidA, append(bytes.Clone(data), more...))
		wantDamaged(t, s, uidA)
	}
	records, damaged, err := s.List()
	if err != nil || len(damaged) != 1 || !cmp.Equal(records, []claim.Record{whole}) {
		t.Errorf("%v, %v, %v", records, damaged, err)
	}
}

// TestSenseless: a file can be whole and no record all the same.
func TestSenseless(t *testing.T) {
	s, dir := locked(t)
	_, body, _ := strings.Cut(string(golden(t, "v1.json")), "\n")
	for _, c := range []struct{ old, text, want string }{
		{`"schema":1`, `"schema":0`, "schema 0"},
		{`"schema":1`, `"schema":"1"`, "schema"},
		{`"schema":1`, `"scheme":1`, "schema"},
		{`"schema":1`, `"schema":1e0`, "schema"},
		{`"schema":1`, `"Schema":1`, "schema"},
		{uidA + `"}`, uidB + `"}`, uidB},
		{`"uid"`, `"uuid"`, "UID"},
		{`"Prepared"`, `"Resting"`, "Resting"},
		{`"devices"`, `"gadgets"`, "devices"},
		{`"devices":[`, `"devices":[null,`, "device 0"},
		{`"devices":[`, `"devices":[7,`, "devices"},
		{`"since":"2026`, `"since":"once`, "since"},
		{`"group":["0000:1b:00.0",`, `"group":[`, "group"},
		{`"group":["0000:1b:00.0","0000:1b:00.1"]`, `"group":"0000:1b:00.0"`, "group"},
		{`"pool":"node-a"`, `"pool":""`, "pool"},
		{`"name":"gpu-0000-1b-00-0"`, `"name":null`, "name"},
		{body, "null", "schema"},
		{body, "[]", "array"},
		{body, "", "end"},
		{body, body + body, "after"},
	} {
		place(t, dir, uidA, sealed(strings.Replace(body, c.old, c.text, 1)))
		if d := wantDamaged(t, s, uidA); !strings.Contains(d.Err.Error(), c.want) || d.Newer || d.Unread {
			t.Errorf("%s: %+v", c.text, d)
		}
	}
}

// TestRefused: what could not be read back is not written.
func TestRefused(t *testing.T) {
	s, dir := locked(t)
	for _, c := range []struct {
		name  string
		spoil func(*claim.Record)
		want  string
	}{
		{"UID", func(r *claim.Record) { r.UID = "../" + uidA }, "UID"},
		{"state", func(r *claim.Record) { r.State = "" }, "state"},
		{"no hardware", func(r *claim.Record) { r.Devices[1].Group = nil }, "gpu-3-1"},
		{"other hardware", func(r *claim.Record) { r.Devices[1].Group = r.Devices[2].Group }, "gpu-3-1"},
		{"no address", func(r *claim.Record) { r.Devices[1].Address, r.Devices[1].Group = "", []string{""} }, "gpu-3-1"},
		{"no pool", func(r *claim.Record) { r.Devices[1].Pool = "" }, "pool"},
		{"time", func(r *claim.Record) { r.Changed = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "10000"},
		{"size", func(r *claim.Record) { r.Name = strings.Repeat("n", 1<<20) }, "larger"},
	} {
		r := record(uidA, 3)
		c.spoil(&r)
		if err := s.Put(r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	wantNames(t, dir)
	r := record(uidA, 3)
	r.Devices[0].Admin, r.Devices[0].Group = true, nil // it holds nothing
	must(t, s.Put(r))
	wantRecord(t, s, r)
}

// FuzzRead reads any file, and any body behind a right first line. What is taken for a record
// can be written and read again, and loses nothing.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"v1.json", "v1-with-unknown-fields.json", "v2.json"} {
		data := golden(f, name)
		_, body, _ := bytes.Cut(data, []byte("\n"))
		f.Add(data, false)
		f.Add(body, true)
	}
	dir := scratch(f)
	s := open(f, dir)
	f.Cleanup(lock(f, s))
	f.Fuzz(func(t *testing.T, data []byte, good bool) {
		if good {
			data = sealed(string(data))
		}
		place(t, dir, uidA, data)
		r, found, err := s.Get(uidA)
		if !found && err == nil {
			t.Fatal("a file is not found")
		}
		if err != nil {
			if err := s.Put(record(uidA, 1)); err == nil || content(t, file(dir, uidA)) != string(data) {
				t.Fatalf("written over: %v", err)
			}
			return
		}
		must(t, s.Put(r))
		wantRecord(t, s, r)
		before, after := members(t, data), members(t, []byte(content(t, file(dir, uidA))))
		for name := range before {
			if _, kept := after[name]; !kept {
				t.Errorf("%q is lost", name)
			}
		}
		must(t, s.Put(r))
		if again := members(t, []byte(content(t, file(dir, uidA)))); !cmp.Equal(again, after) {
			t.Errorf("got %s, then %s", after, again)
		}
	})
}

func members(t *testing.T, data []byte) (all map[string]json.RawMessage) {
	t.Helper()
	_, body, _ := bytes.Cut(data, []byte("\n"))
	must(t, json.Unmarshal(body, &all))
	return all
}
