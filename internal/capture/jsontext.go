package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// rewrite replaces the values that are texts, each with the keys that lead to it, and leaves
// everything else as it is. Lists have no key of their own.
func rewrite(text []byte, change func(keys []string, value string) string) ([]byte, error) {
	var to bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	at := []level{{keys: []string{""}}}
	var last int64
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && len(at) == 1 {
			to.Write(text[last:])
			return to.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		end := d.InputOffset()
		raw := text[last:end]
		last = end
		top := &at[len(at)-1]
		switch t := t.(type) {
		case json.Delim:
			to.Write(raw)
			switch t {
			case '{', '[':
				at = append(at, level{keys: slices.Clone(top.keys), object: t == '{'})
			default:
				at = at[:len(at)-1]
				at[len(at)-1].value()
			}
		case string:
			if top.object && !top.behindKey {
				top.keys, top.behindKey = slices.Concat(at[len(at)-2].keys, []string{t}), true
				to.Write(raw)
				continue
			}
			quote := bytes.IndexByte(raw, '"')
			to.Write(raw[:quote])
			to.Write(quoted(change(top.keys, t), raw[quote:], t))
			top.value()
		default:
			to.Write(raw)
			top.value()
		}
	}
}

// level is a list or an object that is read at the moment.
type level struct {
	keys              []string
	object, behindKey bool
}

// value notes that a value is over.
func (l *level) value() { l.behindKey = false }

// quoted is a text in JSON, as it was where it is the same.
func quoted(now string, raw []byte, was string) []byte {
	if now == was {
		return raw
	}
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(now); err != nil {
		return []byte(`""`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
