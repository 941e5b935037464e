package gather

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/kubelet"
	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/podresources"
)

// noted is where is written on disk who was given what: kubelet's record for device plugins, and the records of the
// DRA driver's claims.
type noted struct{ devicePlugins, claims string }

// unnamed is something that is given to somebody, and to no container of an answer; or that what is given cannot
// be read, and nobody knows.
func (n noted) unnamed(answer []podresources.Pod, now time.Time) string {
	var record nodestate.Reading[nodestate.KubeletRecord]
	readRecord(kubelet.NewCheckpoint(n.devicePlugins), &record, n.devicePlugins, now)
	var claims nodestate.Reading[nodestate.ClaimRecords]
	readClaims(&claims, n.claims, now)
	devices, of := named(answer)
	switch {
	case record.Err != nil:
		return fmt.Sprintf("what its record says, which cannot be read (%v)", record.Err)
	case claims.Err != nil:
		return fmt.Sprintf("the claims that are prepared, of which the records cannot be read (%v)", claims.Err)
	}
	back := map[string]bool{} // pods with a device that is named: what else they were given is init containers'
	for _, g := range record.Value.Given {
		back[g.UID] = back[g.UID] || devices[[2]string{g.Resource, g.ID}]
	}
	for _, g := range record.Value.Given {
		if !back[g.UID] {
			return fmt.Sprintf("the device %s of %s, which its record gives to %s of pod %s", g.ID, g.Resource, g.Container, g.UID)
		}
	}
	for _, r := range claims.Value.Records {
		mayBeHad := r.State == string(claim.Prepared)
		if mayBeHad && !of[[2]string{r.Namespace, r.Name}] {
			return fmt.Sprintf("the claim %s/%s, which is prepared", r.Namespace, r.Name)
		}
	}
	return ""
}

// named are the devices and the claims that containers have.
func named(answer []podresources.Pod) (devices, claims map[[2]string]bool) {
	devices, claims = map[[2]string]bool{}, map[[2]string]bool{}
	for i := range answer {
		for k := range answer[i].Containers {
			c := &answer[i].Containers[k]
			for _, d := range c.Devices {
				devices[[2]string{d.Resource, d.ID}] = true
			}
			for _, of := range c.Claims {
				claims[[2]string{of.Namespace, of.Name}] = true
			}
		}
	}
	return devices, claims
}

// uptime is for how long the machine has been up. That it cannot be read is no reason to wait.
func uptime(proc string) time.Duration {
	text, err := os.ReadFile(filepath.Join(proc, "uptime"))
	if err != nil {
		return booting
	}
	first, _, _ := strings.Cut(string(text), " ")
	up, err := time.ParseDuration(first + "s")
	if err != nil {
		return booting
	}
	return up
}

// claimsDir is where the DRA driver keeps its records.
func (c *Config) claimsDir() string {
	return filepath.Join(c.Kubelet, "plugins", draname.Driver, "claims")
}
