package kubelet

import (
	"context"
	"errors"
	"sync"

	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

// watch stands between the connections to plugins and the device manager. It
// passes everything on, tells that something has changed, and remembers every
// connection that was ever made. Kubelet forgets some that live on, such as one
// whose plugin registered a second time on the same socket.
type watch struct {
	manager *manager
	changed func()
	listed  func(resource string, list *api.ListAndWatchResponse)

	mu      sync.RWMutex // read-locked while a message is worked on
	ended   bool
	clients []plugin.Client
}

// PluginConnected is called once kubelet has dialled a plugin back.
func (w *watch) PluginConnected(ctx context.Context, resource string, p plugin.DevicePlugin) error {
	if err := w.remember(klog.FromContext(ctx), p); err != nil {
		return err
	}
	defer w.changed()
	return w.manager.PluginConnected(ctx, resource, p)
}

// PluginDisconnected is called after a connection has ended.
func (w *watch) PluginDisconnected(log klog.Logger, resource, socket string) {
	w.manager.PluginDisconnected(log, resource, socket)
	w.changed()
}

// PluginListAndWatchReceiver is called by kubelet's reader of a plugin's stream
// (cm/devicemanager/plugin/v1beta1/client.go, Run) for each device list. A list that arrives
// after the end is dropped: it would be written to a checkpoint that the next
// kubelet may have open by then.
func (w *watch) PluginListAndWatchReceiver(log klog.Logger, resource string, list *api.ListAndWatchResponse) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.ended {
		return
	}
	w.listed(resource, list)
	w.manager.PluginListAndWatchReceiver(log, resource, list)
	w.changed()
}

// remember notes a connection for the end. After the end there is no use in that:
// it is closed at once.
func (w *watch) remember(log klog.Logger, p plugin.DevicePlugin) error {
	c, ok := p.(plugin.Client)
	if !ok {
		return errors.New("remember a plugin's connection: it cannot be closed")
	}
	w.mu.Lock()
	ended := w.ended
	if !ended {
		w.clients = append(w.clients, c)
	}
	w.mu.Unlock()
	if ended {
		_ = disconnect(log, c) // kubelet's always returns nil
		return errors.New("kubelet is stopping")
	}
	return nil
}

// end lets the message in progress finish and lets no further one through.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// disconnect closes every connection that is still open.
func (w *watch) disconnect(log klog.Logger) {
	w.mu.Lock()
	clients := w.clients
	w.clients = nil
	w.mu.Unlock()
	for _, c := range clients {
		_ = disconnect(log, c) // kubelet's always returns nil
	}
}
