//go:build !kubernetes134

package plane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"kata-device-plugin/test/pki"
)

// pki is the directory of the certificates.
func (p *Plane) pki() string { return filepath.Join(p.dir, "pki") }

// certify makes the certificates of the cluster and returns the administrator's
// configuration. They are ours and not those that the server would make for itself, since
// clients keep them when the server is restarted.
func (p *Plane) certify() (*rest.Config, error) {
	if err := os.MkdirAll(p.pki(), 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for certificates: %w", err)
	}
	authority, err := pki.New("plane")
	if err != nil {
		return nil, err
	}
	server, err := authority.Issue("kube-apiserver", nil, "localhost", "kubernetes.default.svc", "127.0.0.1")
	if err != nil {
		return nil, err
	}
	admin, err := authority.Issue("admin", []string{"system:masters"})
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"ca.crt": authority.PEM, "apiserver.crt": server.Cert, "apiserver.key": server.Key} {
		if err := os.WriteFile(filepath.Join(p.pki(), name), content, 0o600); err != nil {
			return nil, fmt.Errorf("write a certificate: %w", err)
		}
	}
	return &rest.Config{
		Host:            "https://" + p.door.address(),
		TLSClientConfig: rest.TLSClientConfig{CAData: authority.PEM, CertData: admin.Cert, KeyData: admin.Key},
		QPS:             -1, // what limits a test is the server
	}, nil
}
