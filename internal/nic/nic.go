// Package nic compiles the pools of a configuration file into rules: which network
// controllers, accelerators and subfunctions of a node become which resource, and what a
// container is given with each. It is pure, as package declare is.
package nic

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicconfig"
)

// The base classes of the functions that pools may select.
const (
	network     = 0x02
	accelerator = 0x12
)

// Wants says whether a function is one that pools may select: a network controller or a
// processing accelerator.
func Wants(id host.Identity) bool { return base(id) == network || base(id) == accelerator }

func base(id host.Identity) uint8 { return uint8(id.Class >> 16) }

// Rules are the pools of a configuration.
type Rules struct {
	pools  []pool
	shared []sharedPool
}

// pool hands out devices whole.
type pool struct {
	nicconfig.Pool
	name string
}

// sharedPool hands out shares of RDMA devices.
type sharedPool struct {
	nicconfig.SharedPool
	name string
}

// New makes rules of a configuration.
func New(c *nicconfig.Config) *Rules {
	r := &Rules{}
	for _, p := range c.Pools {
		r.pools = append(r.pools, pool{p, p.Resource.String()})
	}
	for _, p := range c.Shared {
		r.shared = append(r.shared, sharedPool{p, p.Resource.String()})
	}
	return r
}

// Names are the resources of all pools, those of whole devices first.
func (r *Rules) Names() []declare.Name {
	var all []declare.Name
	for _, p := range r.pools {
		all = append(all, declare.Name{Resource: p.name, Socket: socket(p.name)})
	}
	for _, p := range r.shared {
		all = append(all, declare.Name{Resource: p.name, Socket: socket(p.name)})
	}
	return all
}

// pool finds the pool of whole devices that makes a resource, nil for none.
func (r *Rules) pool(resource string) *pool {
	for i := range r.pools {
		if r.pools[i].name == resource {
			return &r.pools[i]
		}
	}
	return nil
}

func (r *Rules) sharedPool(resource string) *sharedPool {
	for i := range r.shared {
		if r.shared[i].name == resource {
			return &r.shared[i]
		}
	}
	return nil
}

// socket begins the names of a resource's sockets. A socket's path has 107 bytes at most,
// of which kubelet's directory and the end of the name take 46.
//
// An underscore takes the slash's place: a prefix has none, so that different resources have
// different names. What is too long is cut, and told apart by a hash behind a character
// that is in no resource's name.
func socket(resource string) string {
	const most, digits = 60, 16
	name := "kata-nic-" + strings.Replace(resource, "/", "_", 1)
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(resource))
	return name[:most-1-digits] + "~" + hex.EncodeToString(sum[:])[:digits]
}
