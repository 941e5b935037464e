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
