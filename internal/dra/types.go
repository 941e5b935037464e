package dra

// Types are all there are.
func Types() []Type { return []Type{GPU, NVSwitch, NIC, VF} }
