package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func specPath(resource string) string {
	return filepath.Join(cdiDir, "kata."+strings.ReplaceAll(resource, "/", "-")+".json")
}

// forget begins a new life of the plugin: IDs may be other ones now.
func (k *kubelet) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.resources {
		r.health = map[string]string{}
	}
}

// forbid names IDs that must not be announced any more.
func (k *kubelet) forbid(ids ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		k.never[id] = true
	}
}

// await waits until the condition holds, which is tried with every message.
func (k *kubelet) await(limit time.Duration, condition func() bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		k.mu.Lock()
		ok, changed := condition(), k.changed
		k.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		}
	}
}

// is waits until a device has a health, "" for not announced at all.
func (k *kubelet) is(resource, id, health string, limit time.Duration) (at time.Time, ok bool) {
	ok = k.await(limit, func() bool {
		r := k.resources[resource]
		if r == nil || r.streams == 0 {
			return false
		}
		at = r.arrived
		return r.health[id] == health
	})
	return at, ok
}

// received is how many lists have come.
func (k *kubelet) received() (lists int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.resources {
		lists += r.lists
	}
	return lists
}

// registered says whether anything of a resource was announced, and is connected.
func (k *kubelet) registered(resource string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.resources[resource]
	return r != nil && r.streams > 0
}

// state tells of everything that is announced, for a person.
func (k *kubelet) state() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(k.resources)) {
		r := k.resources[name]
		if r.streams == 0 {
			all = append(all, name+" is not connected")
		}
		for _, id := range slices.Sorted(maps.Keys(r.health)) {
			all = append(all, id+" "+r.health[id])
		}
	}
	return strings.Join(all, ", ")
}

// announced is what a resource consists of: IDs, and the NUMA nodes that were said.
func (k *kubelet) announced(resource string) (ids []string, topology map[string][]int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.resources[resource]; r != nil {
		return slices.Sorted(maps.Keys(r.health)), r.topology
	}
	return nil, nil
}

// allocate asks for one device, as kubelet does, and returns the node that the answer names. It
// checks that the CDI spec names the same.
func (k *kubelet) allocate(resource, id string) (node string, err error) {
	k.mu.Lock()
	r := k.resources[resource]
	k.mu.Unlock()
	if r == nil {
		return "", fmt.Errorf("allocate %s: %s is not registered", id, resource)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	resp, err := r.client.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{id}}},
	})
	if err != nil {
		return "", err
	}
	if len(resp.GetContainerResponses()) != 1 {
		return "", fmt.Errorf("allocate %s: %v", id, resp)
	}
	c := resp.GetContainerResponses()[0]
	if len(c.GetDevices()) != 1 || len(c.GetCdiDevices()) != 1 || c.GetCdiDevices()[0].GetName() != resource+"="+id {
		return "", fmt.Errorf("allocate %s: %v", id, c)
	}
	node = c.GetDevices()[0].GetHostPath()
	named, err := specNode(resource, id)
	if err != nil {
		return node, err
	}
	if named != node {
		return node, fmt.Errorf("allocate %s: the answer is %s, the CDI spec has %q", id, node, named)
	}
	return node, nil
}

// specNode is the node that the CDI spec has for a device, "" for none.
func specNode(resource, id string) (string, error) {
	spec, err := cdi.ReadSpec(specPath(resource), 0)
	if err != nil {
		return "", fmt.Errorf("read the CDI spec of %s: %w", resource, err)
	}
	d := spec.GetDevice(id)
	if d == nil {
		return "", nil
	}
	if len(d.ContainerEdits.DeviceNodes) != 1 {
		return "", fmt.Errorf("read the CDI spec of %s: %d nodes for %s", resource, len(d.ContainerEdits.DeviceNodes), id)
	}
	return d.ContainerEdits.DeviceNodes[0].Path, nil
}
