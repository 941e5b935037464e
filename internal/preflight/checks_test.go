package preflight_test

import (
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/preflight"
)

// notAsked are errors of checks that are no reason why a cluster is not ready: they are about what somebody
// runs on it. A name ends with a star for a family.
func notAsked() map[string]string {
	return map[string]string{
		"POD*":   "pods that somebody runs",
		"NAD*":   "networks of pods that somebody runs",
		"NAM001": "a pod's request", "NAM002": "a network's annotation", "NAM003": "the name that somebody asks for",
		"NAM004": "a pod's networks", "NAM006": "a pod's networks", "NAM008": "the name that somebody asks for",
		"NAM009": "the name that somebody asks for", "NAM014": "a network's annotation",
		"NOD005": "pods that somebody runs", "TOP006": "a pod that was refused", "MAP001": "a pod that runs",
		"MAP003": "who has what at the moment", "MAP004": "who has what at the moment",
		"DRA003": "a claim that somebody makes", "DRA012": "a claim that a pod names",
		"DRA027": "a claim that somebody makes",
	}
}

// notMissed are checks that are asked, and whose input need not be there.
func notMissed() []string {
	return []string{"HST008", "HST036", "HST037", "PLG006", "PLG007", "NOD003", "MAP002", "MAP006", "DRA002", "DRA022", "DRA026",
		"DRA023", "CFG003", "CFG004", "CFG006", "CFG008", "CFG011", "CFG019", "CFG001", "NAM010", "NAM011", "DSP*"}
}

func names(list []string, id string) bool {
	return slices.Contains(list, id) || slices.Contains(list, id[:3]+"*")
}

// errorsAsked are the checks whose errors are a question's.
func errorsAsked() []check.Check {
	var without []string
	for id := range notAsked() {
		without = append(without, id)
	}
	return slices.DeleteFunc(check.Checks(), func(c check.Check) bool {
		return c.Severity != finding.Error || names(without, c.ID)
	})
}

// answering says whether a line of some way is so.
func answering(in preflight.Input, is func(preflight.Line) bool) bool {
	for _, of := range preflight.Run(in).Ways {
		if slices.ContainsFunc(of.Lines, is) {
			return true
		}
	}
	return false
}

// TestEachError: what check says as an error about a cluster is a no of some question. A new check is asked,
// or has a reason here.
func TestEachError(t *testing.T) {
	in := ready(t).input(t)
	for _, c := range errorsAsked() {
		of := check.Ref{Kind: "DaemonSet", Namespace: "kube-system", Name: "kata-device-plugin"}
		if c.ID == finding.NameRefused().ID {
			of = check.Ref{Kind: "ConfigMap", Name: "c"}
		}
		in.Checked = &check.Result{Findings: []check.Finding{{Kind: c.Kind, Object: of, Message: "m"}}}
		if !answering(in, func(l preflight.Line) bool { return l.Answer == preflight.No && slices.Contains(l.Findings, c.ID) }) {
			t.Errorf("%s (%s) makes no answer a no", c.ID, c.Title)
		}
	}
}

// TestEachSkipped: where a check was not made that a question rests on, the answer is not yes.
func TestEachSkipped(t *testing.T) {
	in := ready(t).input(t)
	made := *in.Checked
	for _, c := range errorsAsked() {
		without := made
		without.Passed = slices.DeleteFunc(slices.Clone(made.Passed), func(id string) bool { return id == c.ID })
		without.Skipped = append(slices.Clone(made.Skipped), check.Skipped{ID: c.ID, Missing: []string{"something else"}})
		in.Checked = &without
		missed := answering(in, func(l preflight.Line) bool {
			return l.Answer == preflight.Unknown && strings.Contains(strings.Join(l.Tell, "\n"), "something else")
		})
		if missed == names(notMissed(), c.ID) {
			t.Errorf("%s (%s) was not made: is it missed? %v", c.ID, c.Title, missed)
		}
	}
}

// TestOfTheWay: what is wrong with an agent of one way says nothing of the other.
func TestOfTheWay(t *testing.T) {
	in := ready(t).input(t)
	for name, want := range map[string]preflight.Way{"kata-device-plugin": preflight.DevicePlugin, "kata-dra-driver": preflight.DRA} {
		f := check.Finding{Kind: finding.FlagUnknown(), Message: "m",
			Object: check.Ref{Kind: "DaemonSet", Namespace: "kube-system", Name: name}}
		in.Checked = &check.Result{Findings: []check.Finding{f}}
		for _, of := range preflight.Run(in).Ways {
			if got := of.Answer() == preflight.No; got != (of.Way == want) {
				t.Errorf("%s: %s is %s", name, of.Way, of.Answer())
			}
		}
	}
}
