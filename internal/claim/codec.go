package claim

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// schema is the version of the format. A field that an older version may do without is added
// to the same schema, since such a version keeps what it does not know. What it must not
// overlook needs a higher one. In every schema there is the first line, and "schema" in the
// JSON object behind it.
const schema = 1

// fields are the members of a JSON object.
type fields map[string]json.RawMessage

// document is the content of a claim's file.
type document struct {
	record  Record
	more    fields   // what another version has added to the record
	devices []fields // and to each of its devices
}

// known are the members of a record's object, but for the devices, as places to read them
// into and to write them from. encoding/json would take "UID" for "uid" in a struct, and
// overlook what it does not know.
func (r *Record) known() map[string]any {
	return map[string]any{
		"uid": &r.UID, "namespace": &r.Namespace, "name": &r.Name, "boot": &r.Boot,
		"state": &r.State, "since": &r.Since, "changed": &r.Changed,
	}
}

func (d *Device) known() map[string]any {
	return map[string]any{
		"pool": &d.Pool, "name": &d.Name, "address": &d.Address, "group": &d.Group, "requests": &d.Requests,
		"shareID": &d.ShareID, "admin": &d.Admin, "cdi": &d.CDI, "nodes": &d.Nodes,
	}
}

// fill reads the known members of an object, and returns the others.
func fill(all fields, known map[string]any) (more fields, err error) {
	more = fields{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		place, ok := known[name]
		if !ok {
			more[name] = all[name]
		} else if err := json.Unmarshal(all[name], place); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return more, nil
}

// join is an object of known members and others.
func join(known map[string]any, more fields) map[string]any {
	all := map[string]any{}
	for name, value := range more {
		all[name] = value
	}
	maps.Copy(all, known)
	return all
}

// seal is the first line of a file, made of the bytes that follow it. They are never parsed
// and written anew for it: another version would write them in another way.
func seal(body []byte) []byte {
	return fmt.Appendf(nil, "sha256:%x %d\n", sha256.Sum256(body), len(body))
}

var errNewer = errors.New("written by a later version")

// decode reads the file of a claim.
func decode(uid string, data []byte) (*document, error) {
	end := bytes.IndexByte(data, '\n') + 1
	if want := seal(data[end:]); !bytes.Equal(data[:end], want) {
		return nil, fmt.Errorf("the first line is %.100q, and of the %d bytes behind it %q", data[:end], len(data)-end, want)
	}
	var all fields
	if err := json.Unmarshal(data[end:], &all); err != nil {
		return nil, err
	}
	if err := checkSchema(all["schema"]); err != nil {
		return nil, err
	}
	var devices []fields
	if err := json.Unmarshal(all["devices"], &devices); err != nil {
		return nil, fmt.Errorf("devices: %w", err) // no devices at all is an error as well
	}
	delete(all, "schema")
	delete(all, "devices")
	doc := &document{}
	var err error
	if doc.more, err = fill(all, doc.record.known()); err != nil {
		return nil, err
	}
	for i := range devices {
		var d Device
		more, err := fill(devices[i], d.known())
		if err != nil {
			return nil, fmt.Errorf("device %d: %w", i, err)
		}
		doc.record.Devices, doc.devices = append(doc.record.Devices, d), append(doc.devices, more)
	}
	if err := doc.record.check(); err != nil {
		return nil, err
	}
	if doc.record.UID != uid {
		return nil, fmt.Errorf("the file of claim %s", doc.record.UID)
	}
	return doc, nil
}

func checkSchema(value json.RawMessage) error {
	var version int
	if err := json.Unmarshal(value, &version); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if version > schema {
		return fmt.Errorf("schema %d, known is %d: %w", version, schema, errNewer)
	}
	if version != schema {
		return fmt.Errorf("schema %d, known is %d", version, schema)
	}
	return nil
}

// encode is the file of a record that replaces an old one, or none. What another version has
// added to the old one stays. Devices are the same if their pool, name and share are.
func encode(r Record, old *document) ([]byte, error) {
	if old == nil {
		old = &document{}
	}
	r.Since, r.Changed = r.Since.UTC(), r.Changed.UTC()
	taken := make([]bool, len(old.devices)) // one device may be there twice, for two requests
	devices := make([]map[string]any, len(r.Devices))
	for i := range r.Devices {
		d := &r.Devices[i]
		devices[i] = d.known()
		for j := range old.devices {
			if was := &old.record.Devices[j]; !taken[j] && was.Pool == d.Pool && was.Name == d.Name && was.ShareID == d.ShareID {
				taken[j] = true
				devices[i] = join(devices[i], old.devices[j])
				break
			}
		}
	}
	all := join(r.known(), old.more)
	all["schema"], all["devices"] = schema, devices
	var body bytes.Buffer
	to := json.NewEncoder(&body)
	to.SetEscapeHTML(false) // what is not known is written as it was read
	if err := to.Encode(all); err != nil {
		return nil, err
	}
	data := append(seal(body.Bytes()), body.Bytes()...)
	if len(data) > maxSize {
		return nil, fmt.Errorf("%d bytes: %w", len(data), errSize)
	}
	return data, nil
}
