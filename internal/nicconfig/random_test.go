package nicconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// field is a field of a random object. Objects are lists of fields, since their order,
// and doubled keys, matter.
type field struct {
	key   string
	value any
}

// TestJSONIsYAML: the same content, written at random as JSON and as YAML, gives the same
// Config, or the same problems but for their places. The seed is printed; SEED repeats a
// run.
func TestJSONIsYAML(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SEED=%d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	good := 0
	for i := range 1000 {
		mistakes := i%2 == 0
		content := g.config(mistakes)
		var j, y strings.Builder
		g.json(&j, content)
		g.yaml(&y, content, 0)
		cj, ej := Parse("c", []byte(j.String()), Options{})
		cy, ey := Parse("c", []byte(y.String()), Options{})
		if diff := cmp.Diff(cj, cy); diff != "" {
			t.Fatalf("the JSON and the YAML differ (-JSON +YAML):\n%s\n%s\n%s\n%v\n%v", diff, j.String(), y.String(), ej, ey)
		}
		if diff := cmp.Diff(withoutPlaces(ej), withoutPlaces(ey)); diff != "" {
			t.Fatalf("the JSON and the YAML have different problems (-JSON +YAML):\n%s\n%s\n%s", diff, j.String(), y.String())
		}
		if ej == nil {
			good++
		} else if !mistakes {
			t.Fatalf("a good configuration is refused:\n%s\n%v", j.String(), ej)
		}
		samePlaces(t, content)
	}
	if good < 500 || good == 1000 {
		t.Errorf("%d of 1000 configurations were good", good)
	}
}

// withoutPlaces are the problems as a set of lines: where a problem is missing a place
// of its own, it has its parent's, which YAML and JSON begin at different keys.
func withoutPlaces(err error) map[string]int {
	lines := map[string]int{}
	problems, _ := errors.AsType[Problems](err)
	for _, p := range problems {
		line := fmt.Sprintf("%s %s %s; %s", p.Path, p.Value, p.What, p.Remedy)
		if i := strings.Index(line, "line "); i >= 0 {
			line = line[:i]
		}
		lines[line]++
	}
	return lines
}

// samePlaces: JSON without tabs is YAML, and every value is at the same place for both.
func samePlaces(t *testing.T, content any) {
	t.Helper()
	text, err := json.MarshalIndent(plain(content), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var rj, ry reader
	if j, y := rj.json(text), ry.yaml(text); !reflect.DeepEqual(j, y) {
		t.Fatalf("(-JSON +YAML):\n%s\n%s", cmp.Diff(j, y, cmp.AllowUnexported(node{}, entry{}, place{})), text)
	}
}

// plain makes maps of objects, for the encoder.
func plain(v any) any {
	switch v := v.(type) {
	case []any:
		list := []any{}
		for _, item := range v {
			list = append(list, plain(item))
		}
		return list
	case []field:
		m := map[string]any{}
		for _, f := range v {
			m[f.key] = plain(f.value)
		}
		return m
	}
	return v
}

type generator struct{ *rand.Rand }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

func (g generator) some(n int, of func() any) []any {
	list := []any{}
	for range 1 + g.IntN(n) {
		list = append(list, of())
	}
	return list
}

// words picks from good values, and seldom from bad ones if there may be mistakes.
func (g generator) words(mistakes bool, good ...string) any {
	return g.some(3, func() any {
		if mistakes && g.IntN(12) == 0 {
			return pick[any](g, "", "x y", "0x", 7, true, nil, []any{}, []field{}, "ä\u2028\"", "5-3", 1.5)
		}
		return pick(g, good...)
	})
}

func (g generator) config(mistakes bool) []field {
	var pools, shared []any
	for i := range g.IntN(4) {
		pools = append(pools, g.pool(i, mistakes))
	}
	for i := range g.IntN(3) {
		shared = append(shared, g.shuffled([]field{
			{pick(g, "resourceName", "ResourceName"), fmt.Sprintf("shared_%d", i)},
			{"rdmaHcaMax", pick[any](g, 0, 63, 1000)},
			{"selectors", []field{{"vendors", g.words(mistakes, "15b3", "8086")}, {"ifNames", g.words(mistakes, "ib0", "ib1", "a.8001")}}},
		}, mistakes))
	}
	return g.shuffled([]field{{"resourceList", pools}, {pick(g, "configList", "configlist"), shared}}, mistakes)
}

func (g generator) pool(i int, mistakes bool) []field {
	selector := func() any {
		return g.shuffled([]field{
			{"vendors", g.words(mistakes, "15b3", "8086", "15B3", "1e52")},
			{"devices", g.words(mistakes, "101e", "1017", "0000")},
			{"pfNames", g.words(mistakes, "p0", "p0#0-3", "ens1f0np0#1,4-7", "P0#9")},
			{"pciAddresses", g.words(mistakes, "0000:65:00.2", "65:00.3", "0000:AF:00.1")},
			{pick(g, "isRdma", "IsRdma"), pick(g, true, false)},
		}, mistakes)
	}
	fields := []field{
		{"resourceName", pick(g, fmt.Sprintf("pool_%d", i), fmt.Sprintf("P-%d", i))},
		{"resourcePrefix", pick[any](g, "nvidia.com", "", nil)},
		{"excludeTopology", pick[any](g, true, false, nil)},
		{"vfioNodes", pick[any](g, "group", "cdev", "both", "", nil)},
		{"additionalInfo", []field{{"*", []field{{"token", pick(g, "a", "7", "true", "null", "yes", "", "x: y # z")}}}, {"65:00.7", []field{{"7", "b"}}}}},
	}
	if g.IntN(2) == 0 {
		return g.shuffled(append(fields, field{"selectors", selector()}), mistakes)
	}
	return g.shuffled(append(fields, field{"selectors", g.some(2, selector)}), mistakes)
}

// shuffled puts fields into any order, and with mistakes may drop, double or misspell one.
func (g generator) shuffled(fields []field, mistakes bool) []field {
	g.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	if mistakes && g.IntN(12) == 0 {
		switch i := g.IntN(len(fields)); g.IntN(4) {
		case 0:
			fields = append(fields[:i], fields[i+1:]...)
		case 1:
			fields = append(fields, field{strings.ToUpper(fields[i].key), fields[i].value})
		case 2:
			fields[i].key += "X"
		case 3:
			fields[i].value = pick[any](g, nil, "x", 7, true, []any{}, []field{})
		}
	}
	return fields
}

// json writes a value with any blanks between its parts.
func (g generator) json(b *strings.Builder, v any) {
	blank := func() { b.WriteString(pick(g, "", "", " ", "\n", "\t", "\r\n  ")) }
	switch v := v.(type) {
	case []any:
		b.WriteString("[")
		for i, item := range v {
			if blank(); i > 0 {
				b.WriteString(",")
			}
			g.json(b, item)
		}
		blank()
		b.WriteString("]")
	case []field:
		b.WriteString("{")
		for i, f := range v {
			if blank(); i > 0 {
				b.WriteString(",")
			}
			g.json(b, f.key)
			b.WriteString(":")
			blank()
			g.json(b, f.value)
		}
		blank()
		b.WriteString("}")
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		b.Write(text)
	}
}

// yaml writes a value in block style, or from some level on between brackets, with
// strings in any of their styles.
func (g generator) yaml(b *strings.Builder, v any, depth int) {
	indent := strings.Repeat("  ", depth)
	switch v := v.(type) {
	case []any:
		if len(v) > 0 && g.IntN(3) > 0 {
			for _, item := range v {
				b.WriteString(pick(g, "", "\n# a comment") + "\n" + indent + "- ")
				g.yaml(b, item, depth+1)
			}
			return
		}
	case []field:
		if len(v) > 0 && (depth == 0 || g.IntN(4) > 0) {
			for _, f := range v {
				b.WriteString("\n" + indent)
				g.scalar(b, f.key)
				b.WriteString(": ")
				g.yaml(b, f.value, depth+1)
			}
			return
		}
	case string:
		g.scalar(b, v)
		return
	}
	text, err := json.Marshal(plain(v))
	if _, isObject := v.([]field); isObject || strings.Contains(string(text), "{") {
		var s strings.Builder // in the order of the fields, doubled ones included
		g.json(&s, v)
		text = []byte(strings.NewReplacer("\n", "", "\t", " ", "\r", "").Replace(s.String()))
	}
	if err != nil {
		panic(err)
	}
	b.Write(text)
}

func (g generator) scalar(b *strings.Builder, s string) {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.#,"
	isWord := s != "" && strings.Trim(s, safe) == "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z') && s != "true" && s != "null"
	switch {
	case isWord && g.IntN(2) == 0:
		b.WriteString(s)
	case !strings.ContainsAny(s, "'\u2028") && g.IntN(2) == 0:
		b.WriteString("'" + s + "'")
	default:
		g.json(b, s)
	}
}
