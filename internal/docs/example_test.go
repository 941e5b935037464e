package docs_test

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestExamples: what readers copy is of the form that its reader takes. Pods have no field that Kubernetes
// does not know, and JSON is JSON.
func TestExamples(t *testing.T) {
	pods := 0
	for _, p := range pages(t) {
		for _, b := range p.Blocks() {
			text := strings.Join(b.Lines, "\n")
			switch b.Lang {
			case "json":
				if !json.Valid([]byte(text)) {
					t.Errorf("%s:%d: no JSON", p.Name, b.Line)
				}
			case "yaml":
				for part := range strings.SplitSeq(text, "\n---\n") {
					if !strings.Contains(part, "\nkind: Pod\n") {
						continue
					}
					pods++
					var pod v1.Pod
					if err := yaml.UnmarshalStrict([]byte(part), &pod); err != nil {
						t.Errorf("%s:%d: %v", p.Name, b.Line, err)
					}
					if pod.Spec.RuntimeClassName == nil {
						t.Errorf("%s:%d: the pod has no runtime class, so it gets no VM", p.Name, b.Line)
					}
				}
			}
		}
	}
	if pods < 3 {
		t.Errorf("found only %d pods", pods)
	}
}
