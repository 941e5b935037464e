//go:build node

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/internal/sim"
)

// publishes waits until the node's slices have so many devices.
func (w *worker) publishes(want int) {
	w.t.Helper()
	w.await("the node's slices", func(ctx context.Context) error {
		got, err := w.published(ctx)
		if err == nil && len(got) != want {
			err = fmt.Errorf("they have %d devices, want %d", len(got), want)
		}
		return err
	})
}

// published are the devices in the node's slices, by name.
func (w *worker) published(ctx context.Context) (map[string]resourceapi.Device, error) {
	list, err := w.slicesNow(ctx)
	all := map[string]resourceapi.Device{}
	for _, s := range list {
		for _, d := range s.Spec.Devices {
			all[d.Name] = d
		}
	}
	return all, err
}

// hardware is what is to be published: the addresses of devices by name. Of an IOMMU group the first
// function gives its name.
func (w *worker) hardware() map[string]string {
	w.t.Helper()
	all, groups := map[string]string{}, map[string]bool{}
	for _, f := range w.Machine.Functions() {
		id := f.Address().String()
		kind := w.kind(f)
		if _, bound := w.Machine.Cdev(f.Address()); !bound || kind == "" || groups[f.Group] {
			continue
		}
		groups[f.Group] = true
		all[deviceName(kind, id)] = id
	}
	return all
}

// kind is the type of device that a function would be, empty for none.
func (w *worker) kind(f sim.Function) string {
	id := f.Address().String()
	switch {
	case slices.Contains(w.gpus(), id):
		return "gpu"
	case slices.Contains(w.switches(), id):
		return "nvswitch"
	case f.Class.Sub()>>8 != 0x02: // no network controller
		return ""
	}
	for _, pf := range w.Machine.Functions() {
		if slices.Contains(w.Machine.VFs(pf.Address()), f.Address()) {
			return "vf"
		}
	}
	return "nic"
}

// slices are the node's, of the driver.
func (w *worker) slices() []resourceapi.ResourceSlice {
	w.t.Helper()
	list, err := w.slicesNow(w.ctx)
	w.must(err)
	return list
}

func (w *worker) slicesNow(ctx context.Context) ([]resourceapi.ResourceSlice, error) {
	list, err := w.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
		FieldSelector: "spec.driver=" + draDriver + ",spec.nodeName=" + w.Name(),
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// deviceName is the name of a device at an address.
func deviceName(kind, address string) string {
	return kind + "-" + strings.NewReplacer(":", "-", ".", "-").Replace(address)
}
