package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	corev1 "k8s.io/api/core/v1"
)

// dashboardLabel is what Grafana's sidecar looks for.
const dashboardLabel = "grafana_dashboard"

// checkDashboards decodes the dashboards of a ConfigMap into Grafana's own types. Grafana itself takes
// everything, and shows a panel without what it does not know. A ConfigMap with anything else is none
// that this project deploys.
func checkDashboards(of *corev1.ConfigMap) error {
	if of.Labels[dashboardLabel] == "" || len(of.Data) == 0 || len(of.BinaryData) > 0 {
		return fmt.Errorf("ConfigMap %s has no label %s, no data, or binary data: want dashboards only", of.Name, dashboardLabel)
	}
	// Which panels and queries there may be: their options are strict only where their type is known.
	known := cog.NewRuntime()
	known.RegisterDataqueryVariant(prometheus.VariantConfig())
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterPanelcfgVariant(table.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	for _, name := range slices.Sorted(maps.Keys(of.Data)) {
		var d dashboard.Dashboard //nolint:staticcheck // version 2 is another kind of file, which older Grafanas do not read
		if err := d.UnmarshalJSONStrict([]byte(of.Data[name])); complaint(err) {
			return fmt.Errorf("decode dashboard %s of ConfigMap %s: %w", name, of.Name, err)
		}
		if err := d.Validate(); complaint(err) {
			return fmt.Errorf("check dashboard %s of ConfigMap %s: %w", name, of.Name, err)
		}
	}
	return nil
}

// complaint says whether an error of the library is one: where all is well it returns an empty list.
func complaint(err error) bool {
	var list cog.BuildErrors
	return err != nil && (!errors.As(err, &list) || len(list) > 0)
}
