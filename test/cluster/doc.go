// Package cluster holds the tests that need a whole cluster: the manifests as they ship, the
// image as it ships, and what the scheduler makes of what the plugin announces.
package cluster
