package kubelet

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// newManager makes a device manager that registers plugins at socket, with w between
// them and it.
func newManager(log klog.Logger, socket string, nodes []numaNode, store topologymanager.Store, w *watch) (*manager, error) {
	bare, err := newManagerImpl(log, socket, nodes, store)
	if err != nil {
		return nil, fmt.Errorf("make a manager for %s: %w", socket, err)
	}
	m := adapt(bare)
	w.manager = m
	server, err := newServer(log, socket, m, w)
	if err != nil {
		return nil, fmt.Errorf("make a registration server for %s: %w", socket, err)
	}
	r, err := newRegistry(log, server, m, w)
	if err != nil {
		return nil, err
	}
	if err := setServer(bare, r.asServer()); err != nil {
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
