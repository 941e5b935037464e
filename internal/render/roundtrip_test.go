package render

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seeded is a generator of random numbers. The seed is printed; SEED repeats a run.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestRoundTrip: what has gone to claims, or to classes, and come back is what it was, to the byte where
// nobody left a blank line beside what was moved.
func TestRoundTrip(t *testing.T) {
	r := seeded(t)
	pairsPolicy := Default()
	pairsPolicy.Alignments = []Alignment{{Resources: []string{"nvidia.com/gpu", "vfio.katacontainers.io/nic"}, Attribute: "resource.kubernetes.io/numaNode", Together: true}}
	gated := Default()
	gated.Kubernetes, gated.FeatureGates = 32, []string{"DynamicResourceAllocation"}
	rendered, exact := 0, 0
	const runs = 25
	for range runs {
		w := writer{r: r, compact: r.IntN(2) == 0}
		input := w.documents()
		for _, way := range []struct {
			policy *Policy
			via    Via
		}{{Default(), DRA}, {pairsPolicy, DRA}, {gated, DRA}, {Default(), ExtendedResource}} {
			there := outcome(t, input, way.policy.With(way.via))
			back := outcome(t, there, way.policy.With(DevicePlugin))
			if strings.HasPrefix(there, "refused:") {
				t.Fatalf("%s\n%s", input, there)
			}
			if there != input {
				rendered++
			}
			if back == input {
				exact++
				continue
			}
			if diff := cmp.Diff(normal(t, input), normal(t, back)); diff != "" {
				t.Fatalf("(-before +after %s and back):\n%s\n%s\n%s", way.via, diff, input, there)
			}
		}
	}
	t.Logf("%d of %d changed, %d came back to the byte", rendered, 4*runs, exact)
	if rendered < runs || exact < 2*runs {
		t.Errorf("only %d of %d changed, %d came back to the byte", rendered, 4*runs, exact)
	}
}

// normal is a stream as the library writes it.
func normal(t *testing.T, stream string) string {
	t.Helper()
	var b strings.Builder
	for _, d := range split([]byte(stream)) {
		must(t, d.parse())
		b.WriteString("---\n")
		if d.root != nil {
			text, err := d.dump(d.root)
			must(t, err)
			b.Write(text)
		}
	}
	return b.String()
}

// writer writes random manifests as people write them: in any order, with comments, quotes and blank lines.
type writer struct {
	r       *rand.Rand
	b       strings.Builder
	compact bool
	n       int
}

func (w *writer) chance(percent int) bool { return w.r.IntN(100) < percent }

// line writes a line, perhaps after a comment or a blank line, perhaps before a comment.
func (w *writer) line(indent int, format string, args ...any) {
	if w.chance(4) {
		w.b.WriteString("\n")
	}
	if w.n++; w.chance(6) {
		fmt.Fprintf(&w.b, "%s# comment %d\n", strings.Repeat(" ", indent), w.n)
	}
	fmt.Fprintf(&w.b, "%s%s", strings.Repeat(" ", indent), fmt.Sprintf(format, args...))
	if w.chance(6) {
		fmt.Fprintf(&w.b, " # behind %d", w.n)
	}
	w.b.WriteString("\n")
}

func (w *writer) documents() string {
	if w.chance(20) {
		w.b.WriteString("# a file\n\n")
	}
	if w.chance(30) {
		w.b.WriteString("---\n")
	}
	n := 1 + w.r.IntN(3)
	for i := range n {
		if i > 0 {
			w.b.WriteString("---\n")
		}
		switch w.r.IntN(4) {
		case 0:
			w.b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata:   {name: c}\ndata: {  a: \"1\" }\n")
		case 1:
			fmt.Fprintf(&w.b, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p%d\nspec:\n", i)
			w.spec(2)
		default:
			fmt.Fprintf(&w.b, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d%d\n  namespace: n%d\nspec:\n  template:\n", i, w.r.IntN(2))
			if w.chance(50) {
				w.b.WriteString("    metadata:\n      labels: {a: b}\n")
				if w.chance(30) {
					w.b.WriteString("      annotations:\n        a/b: c\n")
				}
			}
			w.b.WriteString("    spec:\n")
			w.spec(6)
		}
	}
	return w.b.String()
}

func (w *writer) spec(indent int) {
	w.line(indent, "restartPolicy: Always")
	for _, part := range []string{"initContainers", "containers"} {
		n := w.r.IntN(3)
		if part == "containers" {
			n = 1 + w.r.IntN(2)
		}
		if n == 0 {
			continue
		}
		w.line(indent, "%s:", part)
		in := indent + 2
		if w.compact {
			in = indent
		}
		for i := range n {
			w.line(in, "- name: %s-%d", part[:1], i)
			if part == "initContainers" && w.chance(40) {
				w.line(in+2, "restartPolicy: Always")
			}
			if w.chance(80) {
				w.resources(in + 2)
			}
			w.line(in+2, "image: registry.example/x:%d", i)
		}
	}
	if w.chance(30) {
		w.line(indent, "nodeSelector: {a: b}")
	}
}

// resources writes limits and requests. Every container has as many NICs as GPUs or none of one kind, so
// that they can be put in pairs.
func (w *writer) resources(indent int) {
	counts := map[string]int{}
	for _, name := range []string{"nvidia.com/gpu", "vfio.katacontainers.io/nic", "nvidia.com/nvswitch"} {
		if w.chance(50) {
			counts[name] = w.r.IntN(3)
		}
	}
	if len(counts) == 0 {
		return
	}
	w.line(indent, "resources:")
	limits, requests := []string{"cpu: 2"}, []string{"memory: 1Gi"}
	if w.chance(40) {
		limits = nil
	}
	if w.chance(60) {
		requests = nil
	}
	for _, name := range w.shuffled(counts) {
		n := strconv.Itoa(counts[name])
		limits = append(limits, name+": "+w.quote(n))
		if w.chance(25) {
			requests = append(requests, name+": "+w.quote(n))
		}
	}
	w.r.Shuffle(len(limits), func(i, j int) { limits[i], limits[j] = limits[j], limits[i] })
	w.r.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
	parts := []struct {
		key     string
		entries []string
	}{{"limits", limits}, {"requests", requests}}
	if w.chance(50) {
		parts[0], parts[1] = parts[1], parts[0]
	}
	for _, p := range parts {
		switch {
		case len(p.entries) == 0:
		case w.chance(15):
			w.line(indent+2, "%s: {%s}", p.key, strings.Join(p.entries, ", "))
		default:
			w.line(indent+2, "%s:", p.key)
			for _, e := range p.entries {
				w.line(indent+4, "%s", e)
			}
		}
	}
}

func (w *writer) shuffled(counts map[string]int) []string {
	var names []string
	for _, name := range []string{"nvidia.com/nvswitch", "nvidia.com/gpu", "vfio.katacontainers.io/nic"} {
		if _, ok := counts[name]; ok {
			names = append(names, name)
		}
	}
	w.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

func (w *writer) quote(s string) string {
	q := []string{"", "", "", `"`, `'`}[w.r.IntN(5)]
	return q + s + q
}

// TestOneLine: JSON in one line, as programs print it, is in one line there and back, to the byte.
func TestOneLine(t *testing.T) {
	input := readSections(t, "testdata/cases/json-one-line.txt")[0].text
	for _, via := range []Via{DRA, ExtendedResource} {
		there := outcome(t, input, Default().With(via))
		if strings.Count(there, "\n") != 1 || there == input {
			t.Errorf("by %s it is %s", via, there)
		}
		if back := outcome(t, there, Default().With(DevicePlugin)); back != input {
			t.Errorf("from %s and back it is %s", via, back)
		}
	}
}
