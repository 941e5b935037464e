package collect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"kata-device-plugin/internal/capture"
)

// checkpoint notes kubelet's record.
func (n *node) checkpoint(context.Context) {
	n.file(capture.CheckpointPath, maxRecord, readable)
}

// readable is kubelet's record as it can be read and compared.
func readable(text []byte) ([]byte, error) {
	var was struct {
		Data struct{ PodDeviceEntries []struct{ AllocResp []byte } }
	}
	var r capture.Checkpoint
	if err := errors.Join(json.Unmarshal(text, &r), json.Unmarshal(text, &was)); err != nil {
		// What it says of the file's text may be a part of it: it is left out.
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("it is no JSON at byte %d", syntax.Offset)
		}
		return nil, errors.New("it is no record of kubelet's")
	}
	all := r.Data.PodDeviceEntries
	for i := range all {
		all[i].Answer = words(was.Data.PodDeviceEntries[i].AllocResp)
		for _, ids := range all[i].DeviceIDs {
			slices.Sort(ids)
		}
	}
	slices.SortStableFunc(all, func(a, b capture.Given) int {
		return cmp.Or(strings.Compare(a.PodUID, b.PodUID), strings.Compare(a.ContainerName, b.ContainerName),
			strings.Compare(a.ResourceName, b.ResourceName))
	})
	for _, ids := range r.Data.RegisteredDevices {
		slices.Sort(ids)
	}
	return indented(r)
}

// words is an answer that can be read, nil where it cannot.
func words(serialized []byte) *capture.Answer {
	var told pluginapi.ContainerAllocateResponse
	if len(serialized) == 0 || proto.Unmarshal(serialized, &told) != nil {
		return nil
	}
	a := &capture.Answer{Annotations: maps.Clone(told.GetAnnotations())}
	maps.DeleteFunc(a.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, "cdi.k8s.io/") })
	for _, d := range told.GetCdiDevices() {
		a.CDI = append(a.CDI, d.GetName())
	}
	for _, d := range told.GetDevices() {
		a.Devices = append(a.Devices, d.GetHostPath()+":"+d.GetContainerPath()+":"+d.GetPermissions())
	}
	for _, m := range told.GetMounts() {
		a.Mounts = append(a.Mounts, m.GetHostPath()+":"+m.GetContainerPath())
	}
	return a
}

// indented is JSON for people.
func indented(v any) ([]byte, error) {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	err := to.Encode(v)
	return text.Bytes(), err
}
