package explain_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/explain"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/podresources"
)

// captured is a node with a capture: kubelet's record and its answer about pods.
func captured(t *testing.T, record, pods any, resources ...inventory.Resource) explain.Node {
	t.Helper()
	c := capture.New(capture.Meta{Hostname: "a", Time: time.Date(2026, 1, 2, 11, 0, 0, 0, time.UTC)})
	for path, content := range map[string]any{capture.CheckpointPath: record, capture.PodsPath: pods} {
		if content == nil {
			continue
		}
		text, err := json.Marshal(content)
		must(t, err)
		c.Add(capture.Entry{Path: path, Kind: capture.File, Text: text})
	}
	return explain.Node{Name: "a", Source: "a.capture", Capture: c, Inventory: &inventory.Inventory{Node: "a", Resources: resources,
		Functions: []inventory.Function{{State: inventory.NotDeclared, Findings: []inventory.Finding{
			{ID: "HST020", Title: "the function has no VFIO character device", Remedy: "bind it"},
		}}}}}
}

func record(entries ...capture.Given) *capture.Checkpoint {
	c := &capture.Checkpoint{}
	c.Data.PodDeviceEntries = entries
	c.Data.RegisteredDevices = map[string][]string{"nvidia.com/gpu": {"0000:41:00.0"}}
	return c
}

// TestCaptured: what only a node knows turns an unknown into an answer.
func TestCaptured(t *testing.T) {
	given := capture.Given{PodUID: "u-train", ContainerName: "c", ResourceName: "nvidia.com/gpu",
		DeviceIDs: map[string][]string{"0": {"0000:41:00.0"}}, Answer: &capture.Answer{CDI: []string{"nvidia.com/gpu=0000:41:00.0"}}}
	held := &capture.Pods{Pods: []podresources.Pod{{Namespace: "team", Name: "train", Containers: []podresources.Container{
		{Name: "c", Devices: []podresources.Device{{Resource: "nvidia.com/gpu", ID: "0000:41:00.0"}}},
	}}}}
	for _, c := range []struct {
		name, fixture, step string
		node                explain.Node
		want                explain.Verdict
		words               string
	}{
		{"declared", "key-zero", "device present and declared", captured(t, nil, nil, inventory.Resource{Name: "nvidia.com/gpu", Devices: 8, Healthy: 7}),
			explain.Yes, "8 declared, 7 healthy"},
		{"not declared", "key-zero", "device present and declared", captured(t, nil, nil), explain.No, "HST020"},
		{"recorded", "key-zero", "registered", captured(t, record(), nil, inventory.Resource{Name: "nvidia.com/gpu", Devices: 1}), explain.Yes,
			"1 healthy device"},
		{"admitted", "past-kubelet", "admitted by kubelet", captured(t, record(given), nil), explain.Yes, "container c has 0000:41:00.0"},
		{"answered", "past-kubelet", "allocated, CDI resolved", captured(t, record(given), nil), explain.Yes, "nvidia.com/gpu=0000:41:00.0"},
		{"told", "running", "visible in the container", captured(t, nil, held), explain.Unknown, "PodResources: container c has 0000:41:00.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := read(t, "testdata/"+c.fixture+".yaml").explain(t, c.node)
			lawful(t, r)
			for _, s := range r.Chains[0].Steps {
				if s.Name != c.step {
					continue
				}
				found := false
				for _, e := range s.Evidence {
					found = found || contains(e, c.words)
				}
				if s.Verdict != c.want || !found {
					t.Errorf("it is %q, and %q was expected with %q: %+v", s.Verdict, c.want, c.words, s)
				}
				return
			}
			t.Errorf("there is no step %q", c.step)
		})
	}
}

// TestOtherNodes: what one node lacks another may have; where all are captured it is proven. What the NIC
// plugin's configuration selects there is known where that was given.
func TestOtherNodes(t *testing.T) {
	selects := captured(t, nil, nil)
	selects.Inventory.Findings = []inventory.Finding{{ID: "CFG016", Title: "the pool selects no device of this node", Remedy: "nothing",
		Resource: "nvidia.com/gpu", Evidence: []inventory.Evidence{{Path: "pfNames", Value: "left out 10"}}}}
	const other = "---\n{apiVersion: v1, kind: Node, metadata: {name: b, uid: u-b}, status: {capacity: {cpu: 1}}}\n"
	for _, c := range []struct {
		name, more string
		node       explain.Node
		want       explain.Verdict
		id, words  string
	}{
		{"one of one", "", captured(t, nil, nil), explain.No, "HST020", "HST020"},
		{"one of two", other, captured(t, nil, nil), explain.Unknown, "", "HST020"},
		{"selects none", "", selects, explain.No, "CFG016", "pfNames: left out 10"},
		{"selects none of two", other, selects, explain.Unknown, "", "pfNames: left out 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/key-zero.yaml")
			must(t, err)
			in := explain.Input{View: load(t, string(text)+c.more, "nodes", "pods"), Nodes: []explain.Node{c.node}}
			r, err := explain.Pod(in, "team", "train")
			must(t, err)
			lawful(t, r)
			s := r.Chains[0].Steps[2]
			if s.Verdict != c.want || s.Check != c.id || !slices.ContainsFunc(s.Evidence, func(e explain.Evidence) bool { return contains(e, c.words) }) {
				t.Errorf("it is %+v", s)
			}
		})
	}
}

// TestSimulated: the capture of a simulated node says that it was made in 1970, which is no age.
func TestSimulated(t *testing.T) {
	for _, made := range []time.Time{time.Unix(0, 0).UTC(), {}} {
		node := captured(t, record(), nil, inventory.Resource{Name: "nvidia.com/gpu", Devices: 1})
		node.Capture.Meta.Time = made
		r := read(t, "testdata/key-zero.yaml").explain(t, node)
		var got bytes.Buffer
		must(t, explain.Text(&got, r, explain.TextOptions{Now: now()}))
		if !strings.Contains(got.String(), "(a.capture)") || strings.Contains(got.String(), "a.capture, ") {
			t.Errorf("made at %s: want (a.capture) without an age:\n%s", made, &got)
		}
	}
}
