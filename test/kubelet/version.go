package kubelet

import (
	"reflect"
	"runtime"
	"strings"

	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// Differences are what kubelets of different versions do differently and what
// tests can see. The file of each version has its own.
type Differences struct {
	// SecondRegistration is a part of the error that a plugin gets which registers
	// again on a socket that kubelet is connected to. Empty: there is no error, and
	// the first connection lives on beside the second.
	SecondRegistration string
	// HangsUpOnSuccessor: of two plugins for a resource, the end of the one that
	// registered first makes kubelet hang up on the other one. It may also hang up on
	// what that one then registers at once, for the same reason.
	HangsUpOnSuccessor bool
}

// Version is the version of Kubernetes that kubelet's code is from, such as
// "v1.37.2", or "unknown".
//
// It is read from the table of source files in this binary. Go's build information,
// which is meant for that, lists no modules in the binary of a test.
func Version() string {
	constructor := reflect.ValueOf(devicemanager.NewManagerImpl).Pointer()
	file, _ := runtime.FuncForPC(constructor).FileLine(constructor)
	if _, path, ok := strings.Cut(file, "k8s.io/kubernetes@"); ok {
		version, _, _ := strings.Cut(path, "/")
		return version
	}
	return "unknown"
}
