package dradriver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"kata-device-plugin/internal/dra"
)

// serving is what kubelet finds the driver by and talks to: two sockets, and the helper behind them.
type serving struct {
	start   func() (*kubeletplugin.Helper, error)
	sockets []string // as the helper calls them
	helper  *kubeletplugin.Helper
	begun   time.Time // when it was last started
}

// socketsOf are the paths of the sockets of a copy of the driver: those of another copy are in the same
// directories. pod is "" outside of a pod. They are the helper's, but for the first where kubelet's
// directory has 22 characters: the helper shortens what is longer than 108 bytes, of which a socket's
// path has only 107. It is asked for the name in a directory that is longer by one.
func socketsOf(registry, data, pod string) []string {
	if pod == "" {
		return []string{filepath.Join(registry, dra.Driver+"-reg.sock"), filepath.Join(data, "dra.sock")}
	}
	return []string{
		filepath.Join(registry, kubeletplugin.RollingUpdateRegistrarSocketFile(registry+"+", dra.Driver, types.UID(pod))),
		filepath.Join(data, "dra-"+pod+".sock"),
	}
}

// begin starts to serve.
func (s *serving) begin() error {
	helper, err := s.start()
	if err != nil {
		return fmt.Errorf("serve kubelet: %w", err)
	}
	s.helper, s.begun = helper, time.Now()
	return nil
}

// lost is a socket that somebody has removed, "" for none. Nobody finds the driver then, and the
// helper does not notice.
func (s *serving) lost() string {
	for _, path := range s.sockets {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return ""
}

// registered says whether kubelet has registered the driver, as far as it has said. It does not say
// when it ends.
func (s *serving) registered() bool {
	status := s.helper.RegistrationStatus()
	return status != nil && status.PluginRegistered
}

// end stops serving.
func (s *serving) end() { s.helper.Stop() }
