package capture

import (
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/host"
)

func nodesBelow(dir string) host.DevFS { return devfs.Dir(dir) }
