package check

import (
	"encoding/json"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// Plain is a value as encoding/json takes it, for what others than this package decode.
func Plain(v manifest.Value) any {
	switch v.Kind() {
	case manifest.Map:
		m := map[string]any{}
		for e := range v.Entries() {
			m[e.Key()] = Plain(e)
		}
		return m
	case manifest.List:
		list := []any{}
		for e := range v.Each() {
			list = append(list, Plain(e))
		}
		return list
	case manifest.Number:
		return json.Number(v.Text())
	case manifest.Bool:
		return strings.EqualFold(v.Text(), "true")
	case manifest.Text:
		return v.Text()
	}
	return nil
}
