package live

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Server is what an API server says of itself.
type Server struct {
	// Version is for example v1.37.2.
	Version string
	// Served are the groups with each of their versions, such as resource.k8s.io/v1, sorted.
	Served []string
}

// Ask asks an API server for its version and for what it serves.
func Ask(ctx context.Context, config *rest.Config) (*Server, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	with := discovery.ToDiscoveryInterfaceWithContext(client)
	version, err := with.ServerVersionWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the cluster at %s for its version: %w", config.Host, err)
	}
	groups, err := with.ServerGroupsWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the cluster at %s what it serves: %w", config.Host, err)
	}
	s := &Server{Version: version.GitVersion}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			s.Served = append(s.Served, v.GroupVersion)
		}
	}
	slices.Sort(s.Served)
	return s, nil
}
