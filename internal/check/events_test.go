package check_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/check"
)

// told is what is found, but for how much evidence there is.
func told(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	complete, o := options(text)
	for _, f := range check.Run(load(t, text, complete...), o).Findings {
		if !strings.HasPrefix(f.ID, "EVD") {
			all = append(all, f.ID+" "+f.Message)
		}
	}
	slices.Sort(all)
	return all
}

// withoutEvents is a text without the events in it.
func withoutEvents(text string) string {
	docs := strings.Split(text, "\n---\n")
	return strings.Join(slices.DeleteFunc(docs, func(doc string) bool { return strings.Contains("\n"+doc, "\nkind: Event\n") }), "\n---\n")
}

// TestEventsOfAnother: whatever is found by events, those of the pod that had the name before are none, in
// either API, and those of this one count: by its UID, by that of a static pod, and where none is named.
func TestEventsOfAnother(t *testing.T) {
	on := regexp.MustCompile(`(?m)^(involvedObject|regarding): \{(kind: Pod, [^}]*?)(, uid: [^},]*)?\}$`)
	pod := regexp.MustCompile(`(?m)^kind: Pod\nmetadata: \{name: [^,]+, namespace: [^,]+, uid: ([^,}]+)(.)`)
	texts := map[fixture]string{} // before load goes to another directory
	for _, f := range fixtures(t) {
		data, err := os.ReadFile(f.file(".yaml"))
		if err == nil && strings.HasPrefix(f.name, "fail") && on.Match(data) {
			texts[f] = string(data)
		}
	}
	tried := 0
	for f, text := range texts {
		none, all := told(t, withoutEvents(text)), told(t, text)
		meta := pod.FindStringSubmatch(text)
		if meta == nil || cmp.Equal(none, all) {
			t.Logf("%s/%s: it needs no event of a pod", f.id, f.name)
			continue
		}
		tried++
		cases := []struct {
			what, text string
			want       []string
		}{
			{"another's", on.ReplaceAllString(text, "$1: {$2, uid: another}"), none},
			{"its own", on.ReplaceAllString(text, "$1: {$2, uid: "+meta[1]+"}"), all},
			{"nobody's", on.ReplaceAllString(text, "$1: {$2}"), all},
		}
		if meta[2] == "}" {
			static := strings.TrimSuffix(meta[0], "}") + ", annotations: {kubernetes.io/config.hash: hash}}"
			cases = append(cases, cases[0])
			cases[3].what, cases[3].want = "a static pod's", all
			cases[3].text = strings.Replace(on.ReplaceAllString(text, "$1: {$2, uid: hash}"), meta[0], static, 1)
		}
		for _, test := range cases {
			if diff := cmp.Diff(test.want, told(t, test.text)); diff != "" {
				t.Errorf("%s/%s: with the events %s (-want +got):\n%s", f.id, f.name, test.what, diff)
			}
		}
	}
	if tried < 7 {
		t.Errorf("only %d fixtures have events of a pod", tried)
	}
}

// TestLastEvent: what was said last counts, whichever field has the time and in whichever order a dump has the
// events; of two that were said at once, the one that is written last.
func TestLastEvent(t *testing.T) {
	const objects = `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, uid: u}
spec: {resourceClaims: [{name: c, resourceClaimName: c}], containers: [{name: c, image: x, resources: {claims: [{name: c}]}}]}
status: {phase: Pending}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: default, uid: c}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
`
	event := func(message, times string) string {
		return "---\napiVersion: v1\nkind: Event\nmetadata: {name: " + message + ", namespace: default}\n" +
			"involvedObject: {kind: Pod, namespace: default, name: p}\nreason: FailedScheduling\nmessage: " + message + "\n" + times + "\n"
	}
	const noon, later = `"2026-03-01T12:00:00Z"`, `"2026-03-01T12:00:01.5Z"`
	for _, test := range []struct{ old, now string }{
		{"lastTimestamp: " + noon, "lastTimestamp: " + later},
		{"lastTimestamp: " + noon, "eventTime: " + later},
		{"eventTime: " + noon + "\nlastTimestamp: null", "eventTime: " + noon + "\nseries: {count: 2, lastObservedTime: " + later + "}"},
		{"firstTimestamp: " + later, "deprecatedLastTimestamp: " + noon},
		{"eventTime: soon", "lastTimestamp: " + noon},
	} {
		for _, text := range []string{
			event("old", test.old) + event("now", test.now), event("now", test.now) + event("old", test.old),
			event("old", test.now) + event("now", test.now),
		} {
			var said []string
			for _, f := range check.Run(load(t, objects+text), check.Options{Enable: []string{"DRA005"}}).Findings {
				for _, r := range f.Related {
					said = append(said, r.Text)
				}
			}
			if diff := cmp.Diff([]string{"the scheduler says: now"}, said); diff != "" {
				t.Errorf("%s (-want +got):\n%s", text, diff)
			}
		}
	}
}
