// Package live installs the chart on a real cluster with Helm's library: API server, controllers, scheduler,
// kubelet and containerd, as test/peer runs them. It needs root.
package live
