//go:build !kubernetes134

package policy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kata-device-plugin/test/plane"
)

const (
	driver   = "vfio.katacontainers.io"
	account  = "kata-dra-driver"
	system   = "kube-system"
	deployed = "../../deploy/kata-dra-driver/"
	extended = "../../deploy/examples/dra-extended-resource/"
)

func TestMain(m *testing.M) {
	plane.Quiet()
	os.Exit(m.Run())
}

// versions are the oldest API server that the driver knows, and the newest.
func versions(t *testing.T, test func(*testing.T, *plane.Plane)) {
	for _, version := range []string{"", "1.34"} {
		t.Run("as"+version, func(t *testing.T) {
			test(t, plane.Start(t, plane.Options{Emulate: version}))
		})
	}
}

// dry does everything but write.
func dry() metav1.CreateOptions {
	return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
}

func client(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	k, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// node adds a Node object.
func node(t *testing.T, p *plane.Plane, name string) {
	t.Helper()
	if _, err := p.Client().CoreV1().Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// expect holds an answer against what it is to be: "" for yes, else words of the refusal.
func expect(err error, want string) error {
	switch {
	case want == "" && err != nil:
		return fmt.Errorf("refused: %w", err)
	case want != "" && err == nil:
		return errors.New("let through")
	case want != "" && !strings.Contains(err.Error(), want):
		return fmt.Errorf("refused for something else than %q: %w", want, err)
	}
	return nil
}

// inEffect waits until the server has taken a policy over, which it does a moment after it was
// created: until something is refused that must be.
func inEffect(t *testing.T, policy string, try func(context.Context) error) {
	t.Helper()
	plane.Await(t, "policy "+policy, func(ctx context.Context) error {
		return expect(try(ctx), "ValidatingAdmissionPolicy '"+policy+"'")
	})
}
