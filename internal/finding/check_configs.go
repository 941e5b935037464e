package finding

// What kubectl device check says of configurations of device plugins (family CFG).

// KeyIgnored: the plugin does not say so.
func KeyIgnored() Kind {
	return kind("CFG002", Warning, "a key of the configuration is ignored",
		"correct the key, or put it where it belongs")
}

// PoolTwice: the plugin refuses the file.
func PoolTwice() Kind {
	return kind("CFG003", Error, "a configuration has a resource twice",
		"rename one of the two, or make them one pool")
}

// PoolNameRefused: the resource is never registered.
func PoolNameRefused() Kind {
	return kind("CFG004", Error, "the name of a pool is refused",
		"choose letters, digits and underscores that begin and end with a letter or digit")
}

// DeviceTypeWrong: the file is refused, or the selector is ignored.
func DeviceTypeWrong() Kind {
	return kind("CFG006", Error, "the device type is unknown, or has no such selector",
		"correct deviceType, or use a selector of the type")
}

// SelectorsWrong: the plugin ends, or drops the pool.
func SelectorsWrong() Kind {
	return kind("CFG008", Error, "the selectors of a pool are missing, empty or contradict devices",
		"select something, and in one way")
}

// ModuleForDriver: it matches no function.
func ModuleForDriver() Kind {
	return kind("CFG009", Warning, "a selector of drivers has the name of an RDMA module",
		"write the driver of the PCI function, as lspci -k shows it")
}

// InterfaceUnknown: it matches nothing.
func InterfaceUnknown() Kind {
	return kind("CFG010", Warning, "a selector names an interface that no node has",
		"write the name as ip link shows it on the node")
}

// ConfigElsewhere: it runs without its configuration.
func ConfigElsewhere() Kind {
	return kind("CFG011", Error, "the plugin reads another file than the one that is mounted",
		"make the argument, the mount path and the key of the ConfigMap agree")
}

// ConfigNewer: what was changed has no effect.
func ConfigNewer() Kind {
	return kind("CFG012", Warning, "the configuration is newer than the plugin that runs",
		"restart the pods of the plugin")
}

// RDMAWithoutRDMA: it takes no device.
func RDMAWithoutRDMA() Kind {
	return kind("CFG013", Warning, "a pool wants RDMA and a driver that has none",
		"remove isRdma, or select the driver of the network device")
}

// IDNeverMatches: texts are compared.
func IDNeverMatches() Kind {
	return kind("CFG014", Warning, "a vendor or device number is written in a way that never matches",
		"write four hexadecimal digits in lower case, without 0x")
}

// OwnConfigRefused: it goes on with the one before, or with none (CFG001).
func OwnConfigRefused() Kind {
	return kind("CFG019", Error, "nic-device-plugin refuses the configuration",
		"mend what is named")
}

func configKinds() []Kind {
	return []Kind{
		KeyIgnored(), PoolTwice(), PoolNameRefused(), DeviceTypeWrong(), SelectorsWrong(), ModuleForDriver(),
		InterfaceUnknown(), ConfigElsewhere(), ConfigNewer(), RDMAWithoutRDMA(), IDNeverMatches(),
		OwnConfigRefused(),
	}
}
