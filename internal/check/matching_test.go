package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/manifest"
)

// published writes a slice with eight devices for each node, a class, and claims that all have a selector
// with a text of their own. %d in it is the number of the claim.
func published(nodes, claims int, selector string) string {
	var b strings.Builder
	b.WriteString("{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {selectors: [{cel: {expression: device.driver == \"x.org\"}}]}}\n")
	for i := range nodes {
		fmt.Fprintf(&b, "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s%[1]d, uid: s%[1]d}, spec: {driver: x.org, "+
			"nodeName: n%[1]d, pool: {name: n%[1]d, generation: 1, resourceSliceCount: 1}, devices: [", i)
		for d := range 8 {
			fmt.Fprintf(&b, "{name: d%d, attributes: {node: {string: n%d}}}, ", d, i)
		}
		b.WriteString("]}}\n")
	}
	for i := range claims {
		expression := strings.ReplaceAll(selector, "%d", fmt.Sprint(i))
		fmt.Fprintf(&b, "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: k%[1]d, namespace: a, uid: k%[1]d}, "+
			"spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: '%[2]s'}}]}}]}}}\n", i, expression)
	}
	return b.String()
}

// notOf takes nearly every device.
const notOf = `device.attributes["x.org"].node != "n%d"`

// TestManySelectors: a claim for which there is a device costs the same however many there are.
func TestManySelectors(t *testing.T) {
	cost := func(nodes, claims int) float64 {
		set := load(t, published(nodes, claims, notOf))
		return testing.AllocsPerRun(1, func() { check.Run(set, check.Options{}) })
	}
	few, many := cost(10, 210)-cost(10, 10), cost(80, 210)-cost(80, 10)
	if many > 1.5*few {
		t.Errorf("two hundred claims are %.0f allocations with 80 devices, and %.0f with 640", few, many)
	}
}

// ofNone takes no device, and has to ask all of them.
const ofNone = `device.attributes["x.org"].node == "none%d"`

// TestTooManySelectors: what is not asked any more is not known, and the check is not made; of what was asked it
// says what it found.
func TestTooManySelectors(t *testing.T) {
	const devices, claims = 8 * 20, 30
	set := load(t, published(20, claims, ofNone))
	for _, test := range []struct {
		evaluations, found int
		skipped            bool
	}{
		{0, claims, false},
		{devices + claims*devices, claims, false},
		{devices + 10*devices - 1, 10, true},
		{devices + 10*devices, 10, true},
		{1, 1, true},
	} {
		r := check.Run(set, check.Options{Enable: []string{"DRA004"}, Evaluations: test.evaluations})
		skipped := slices.ContainsFunc(r.Skipped, func(s check.Skipped) bool { return s.ID == "DRA004" })
		if len(r.Findings) != test.found || skipped != test.skipped || r.Incomplete() != test.skipped {
			t.Errorf("%d evaluations: %d findings, skipped %v", test.evaluations, len(r.Findings), r.Skipped)
		}
	}
	// Claims with one text cost what one of them does, and where a device is found nobody goes on.
	for _, selector := range []string{"false", notOf} {
		r := check.Run(load(t, published(20, claims, selector)), check.Options{Enable: []string{"DRA004"}, Evaluations: 3 * devices})
		if r.Incomplete() {
			t.Errorf("%s: skipped %v", selector, r.Skipped)
		}
	}
}

// TestForgottenAnswers: of answers so many are kept as go with the evaluations that may be made. What is forgotten
// is asked anew, and the answer is the same.
func TestForgottenAnswers(t *testing.T) {
	const devices, claims, taken = 8 * 100, 100, 8
	text := strings.Replace(published(100, claims, ofNone), `device.driver == "x.org"`, `'device.attributes["x.org"].node == "n99"'`, 1)
	set := load(t, text)
	for _, test := range []struct {
		evaluations int
		skipped     bool
	}{
		{16 * devices, false},                      // nothing is forgotten
		{2*devices + claims*taken + 100, false},    // the class is asked twice
		{devices + claims*taken + devices/8, true}, // so that these are too few, although they would do for once
	} {
		r := check.Run(set, check.Options{Enable: []string{"DRA004"}, Evaluations: test.evaluations})
		if r.Incomplete() != test.skipped || !test.skipped && len(r.Findings) != claims {
			t.Errorf("%d evaluations: %d findings, skipped %v", test.evaluations, len(r.Findings), r.Skipped)
		}
	}
}

// TestSelectorsInTurn: all selectors have to take a device, that of the class first, and of what a device
// lacks the evidence names the selector that asked and the first device.
func TestSelectorsInTurn(t *testing.T) {
	const lacking = `device.attributes["x.org"].model == "a"`
	for _, test := range []struct {
		class, request string
		found          bool
		failed         string // line of the selector that is named
	}{
		{class: "true", request: "true"},
		{class: "true", request: "false", found: true},
		{class: "false", request: lacking, found: true}, // it does not come so far
		{class: "true", request: lacking, found: true, failed: "in.yaml:7:"},
		{class: lacking, request: "true", found: true, failed: "in.yaml:3:"},
		{class: "true", request: `device.attributes["x.org"].node == "n1" || ` + lacking},
	} {
		text := fmt.Sprintf(inTurn, test.class, test.request) + "---\n" + published(2, 0, "")
		r := check.Run(load(t, text), check.Options{Enable: []string{"DRA004"}})
		said := ""
		for _, f := range r.Findings {
			said += strings.Join(f.Evidence, "\n")
		}
		named := strings.Contains(said, test.failed) && strings.Contains(said, "device x.org/n0/d0: evaluate selector: ")
		if (len(r.Findings) > 0) != test.found || named != (test.failed != "") {
			t.Errorf("%s, %s: %v, because of %s", test.class, test.request, found(r), said)
		}
	}
}

const inTurn = `{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: own}, spec: {selectors:
[{cel: {expression: # that of the class
'%s'}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: k, namespace: a, uid: k}, spec: {devices: {requests: [
{name: r, exactly: {deviceClassName: own, selectors: [{cel: {expression:
'%s'}}]}}]}}}
`

// BenchmarkSelectorsOfNone: nor do they take longer when no device is what they want.
func BenchmarkSelectorsOfNone(b *testing.B) {
	set := load(b, published(1_000, 5_000, ofNone))
	b.ReportAllocs()
	for b.Loop() {
		if r := check.Run(set, check.Options{}); len(r.Findings) == 0 || !r.Incomplete() {
			b.Fatal(found(r))
		}
	}
}

// BenchmarkSelectors: claims with selectors of their own on the same cluster are a matter of seconds, too.
func BenchmarkSelectors(b *testing.B) {
	dir := b.TempDir()
	must(b, os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(cluster(10_000, 1_000, 0)), 0o600))
	must(b, os.WriteFile(filepath.Join(dir, "dra.yaml"), []byte(published(1_000, 5_000, notOf)), 0o600))
	set, err := manifest.Load([]string{dir}, manifest.Options{})
	must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if r := check.Run(set, check.Options{}); r.ExitCode(2, false) != exit.OK {
			b.Fatal(found(r))
		}
	}
}
