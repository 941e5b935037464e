package sim

import (
	"encoding/json"
	"fmt"
	"os"

	"kata-device-plugin/internal/host"
)

// WriteLinks writes what Links is to a file, for programs that cannot ask a kernel for it.
func (n *Node) WriteLinks(file string) error {
	l, err := n.Links()
	if err != nil {
		return err
	}
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write links: %w", err)
	}
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return fmt.Errorf("write links: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil { // whole, whoever reads it now
		return fmt.Errorf("write links: %w", err)
	}
	return nil
}

// ReadLinks reads such a file.
func ReadLinks(file string) (*host.Links, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read links: %w", err)
	}
	var l host.Links
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, fmt.Errorf("read links from %s: %w", file, err)
	}
	return &l, nil
}
