package kubelet

import (
	"errors"
	"fmt"
	"reflect"
	_ "unsafe" // for go:linkname

	cadvisorapi "github.com/google/cadvisor/lib/model"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// newManagerImpl is kubelet's constructor with a choice of the socket's path. The
// exported one fixes it to /var/lib/kubelet/device-plugins, so that a test could
// only use it as root and in a mount namespace of its own. A function without a
// body needs an assembler file in the package; linkname.s is it.
//
//go:linkname newManagerImpl k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManagerImpl(log klog.Logger, socket string, nodes []cadvisorapi.Node, store topologymanager.Store) (*devicemanager.ManagerImpl, error)

// newManager makes a device manager that registers plugins at socket and calls
// changed after each event from a plugin.
func newManager(log klog.Logger, socket string, nodes []cadvisorapi.Node, store topologymanager.Store, changed func()) (*devicemanager.ManagerImpl, error) {
	m, err := newManagerImpl(log, socket, nodes, store)
	if err != nil {
		return nil, fmt.Errorf("make a manager for %s: %w", socket, err)
	}
	w := &watch{manager: m, changed: changed}
	server, err := plugin.NewServer(log, socket, m, w)
	if err != nil {
		return nil, fmt.Errorf("make a registration server for %s: %w", socket, err)
	}
	r, err := newRegistry(log, server, m, w)
	if err != nil {
		return nil, err
	}
	if err := setServer(m, r); err != nil {
		return nil, err
	}
	return m, nil
}

// setServer replaces the manager's registration server. The manager has a field
// for it, of an interface type, but no way to pass one in.
func setServer(m *devicemanager.ManagerImpl, s plugin.Server) error {
	field := reflect.ValueOf(m).Elem().FieldByName("server")
	if !field.IsValid() || field.Type() != reflect.TypeFor[plugin.Server]() {
		return errors.New("set the manager's server: this version of kubelet keeps it elsewhere")
	}
	*(*plugin.Server)(field.Addr().UnsafePointer()) = s
	return nil
}
