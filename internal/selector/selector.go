// Package selector says which published devices the selectors of device classes and of requests
// take: by the library with which the scheduler evaluates them.
package selector

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Selector is an expression that was understood.
type Selector struct{ compiled cel.CompilationResult }

// Compile reads an expression of CEL. The error is that the API server would refuse it, or that it
// is of a later version of Kubernetes than this program.
func Compile(expression string) (Selector, error) {
	features := cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}
	compiled := cel.GetCompiler(features).CompileCELExpression(expression, cel.Options{})
	if compiled.Error != nil {
		return Selector{}, fmt.Errorf("compile selector: %s", problem(compiled.Error))
	}
	return Selector{compiled}, nil
}

// problem is the first thing that is wrong, in one line. The library has a drawing of each behind it.
func problem(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	_, placed, ok := strings.Cut(text, "ERROR: <input>:")
	place, what, placedToo := strings.Cut(placed, ": ")
	line, column, both := strings.Cut(place, ":")
	if !ok || !placedToo || !both {
		return text
	}
	return fmt.Sprintf("line %s, column %s: %s", line, column, what)
}

// Device is a published device as selectors see it.
type Device struct{ device cel.Device }

// NewDevice reads a device of a ResourceSlice, in JSON as the API has it since version v1, and as
// what v1beta1 calls basic.
func NewDevice(driver string, text []byte) (Device, error) {
	var d resourceapi.Device
	if err := json.Unmarshal(text, &d); err != nil {
		return Device{}, fmt.Errorf("read device of driver %s: %w", driver, err)
	}
	return Device{cel.Device{Driver: driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes,
		Capacity: d.Capacity}}, nil
}

// Takes says whether the expression is true of a device. The error is that it asks for what the
// device lacks: the scheduler gives up if it comes so far as that device.
func (s Selector) Takes(ctx context.Context, d Device) (bool, error) {
	ok, _, err := s.compiled.DeviceMatches(ctx, d.device)
	if err != nil {
		return false, fmt.Errorf("evaluate selector: %w", err)
	}
	return ok, nil
}
