// Package node runs the shipped plugin on real nodes: kubelet and containerd as they
// ship, in namespaces of their own (package peer). It needs root. The build tag node
// keeps its tests out of `go test ./...`, which needs nothing.
package node
