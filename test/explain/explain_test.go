//go:build !kubernetes134

// Package explain proves `kubectl device explain` on a real API server and scheduler: pods are made
// to wait in many ways, and the command has to name the step and the check of each.
package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/internal/exit"
	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/plane"
)

// command is the program.
type command struct{ harness.Command }

func TestMain(m *testing.M) {
	plane.Quiet()
	os.Exit(m.Run())
}

// build builds the program as it is shipped.
func build(t *testing.T) command {
	t.Helper()
	c, err := harness.BuildCommand(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return command{c}
}

// answer is what the test reads of the command's JSON.
type answer struct {
	Chains []struct {
		About, StopsAt string
		Steps          []struct {
			Name, Verdict, Says, Check, Help string
			Evidence                         []struct{ Text, Source, At string }
		}
	}
}

// explain runs the command in the cluster.
func (c command) explain(t *testing.T, kubeconfig string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return c.run(t, append(append([]string{"explain"}, args...), "--live", "--kubeconfig", kubeconfig)...)
}

func (c command) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	stdout, stderr, code, err := c.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return stdout, stderr, code
}

// TestPending: each pod waits for a reason of its own, in one cluster, and is explained.
func TestPending(t *testing.T) {
	device := build(t)
	p := plane.Start(t, plane.Options{})
	furnish(t, p)
	for _, c := range cases() {
		p.Create(t, c.objects)
	}
	kubeconfig := p.Kubeconfig(t, p.Config())
	t.Run("holders", func(t *testing.T) { holders(t, p, device, kubeconfig) })
	t.Run("one namespace", func(t *testing.T) { oneNamespace(t, p, device) })
	t.Run("not found", func(t *testing.T) { notFound(t, device, kubeconfig) })
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			plane.Await(t, "pod "+c.name+" to wait", func(ctx context.Context) error { return c.waits(ctx, p) })
			text, told, code := device.explain(t, kubeconfig, "pod", c.namespace()+"/"+c.name, "-A", "-o", "json")
			if code != exit.OK {
				t.Fatalf("exit code %d: %s", code, told)
			}
			if err := c.judge(text); err != nil {
				readable, _, _ := device.explain(t, kubeconfig, "pod", c.namespace()+"/"+c.name, "-A")
				t.Errorf("%v\n%s", err, readable)
			}
		})
	}
}

// waits says whether the pod is where the case wants it.
func (c pending) waits(ctx context.Context, p *plane.Plane) error {
	pod, err := p.Client().CoreV1().Pods(c.namespace()).Get(ctx, c.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if c.event != "" {
		return c.happened(ctx, p)
	}
	for _, cond := range pod.Status.Conditions {
		if cond.Type == v1.PodScheduled && cond.Status == v1.ConditionFalse && strings.Contains(cond.Message, c.says) {
			return nil
		}
	}
	if c.silent && pod.Status.Phase == v1.PodPending {
		return nil
	}
	return fmt.Errorf("its node is %q, and its conditions are %+v", pod.Spec.NodeName, pod.Status.Conditions)
}

func (c pending) happened(ctx context.Context, p *plane.Plane) error {
	events, err := p.Client().CoreV1().Events(c.namespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.InvolvedObject.Name == c.name && e.Reason == c.event {
			return nil
		}
	}
	return fmt.Errorf("there is no event %s", c.event)
}

func (c pending) namespace() string {
	if c.in == "" {
		return "default"
	}
	return c.in
}

// judge holds the command's answer against the case.
func (c pending) judge(text string) error {
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if len(a.Chains) != max(c.chains, 1) {
		return fmt.Errorf("there are %d chains, and %d were expected", len(a.Chains), max(c.chains, 1))
	}
	chain := a.Chains[0]
	if chain.StopsAt != c.step {
		return fmt.Errorf("it stops at %q, and %q was expected", chain.StopsAt, c.step)
	}
	behind := false
	for _, s := range chain.Steps {
		switch {
		case behind && s.Verdict != "not reached":
			return fmt.Errorf("step %q is behind the break, and is %q", s.Name, s.Verdict)
		case s.Name != c.step:
			continue
		case s.Check != c.check:
			return fmt.Errorf("it names %s, and %s was expected", s.Check, c.check)
		case s.Help == "":
			return errors.New("it gives no advice")
		case !strings.Contains(fmt.Sprint(s), c.words):
			return fmt.Errorf("it does not say %q", c.words)
		}
		behind = true
	}
	return nil
}

// notFound: what is not there is not explained, and the answer says where it was looked for.
func notFound(t *testing.T, device command, kubeconfig string) {
	_, told, code := device.explain(t, kubeconfig, "pod", "default/nobody")
	if code != exit.Usage || !strings.Contains(told, "pod default/nobody is not in the input (live:") {
		t.Errorf("exit code %d: %s", code, told)
	}
}
