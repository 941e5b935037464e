//go:build !kubernetes134

package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
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
	issue, root, err := authority()
	if err != nil {
		return nil, err
	}
	serverCert, serverKey, err := issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	if err != nil {
		return nil, err
	}
	// To Kubernetes, the common name is the user and the organizations are the groups.
	adminCert, adminKey, err := issue(&x509.Certificate{Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}})
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"ca.crt": root, "apiserver.crt": serverCert, "apiserver.key": serverKey} {
		if err := os.WriteFile(filepath.Join(p.pki(), name), content, 0o600); err != nil {
			return nil, fmt.Errorf("write a certificate: %w", err)
		}
	}
	return &rest.Config{
		Host:            "https://" + p.door.address(),
		TLSClientConfig: rest.TLSClientConfig{CAData: root, CertData: adminCert, KeyData: adminKey},
		QPS:             -1, // what limits a test is the server
	}, nil
}

// issuer makes a certificate and a key, both PEM.
type issuer func(*x509.Certificate) (cert, key []byte, err error)

// authority makes a certificate authority that is forgotten with the function it returns.
func authority() (issue issuer, cert []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "plane"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	serial := int64(1)
	return func(template *x509.Certificate) (cert, secret []byte, err error) {
		serial++
		template.SerialNumber = big.NewInt(serial)
		template.NotBefore, template.NotAfter = root.NotBefore, root.NotAfter
		template.KeyUsage = x509.KeyUsageDigitalSignature
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		return sign(template, root, key)
	}, encode("CERTIFICATE", der), nil
}

func sign(template, root *x509.Certificate, by *ecdsa.PrivateKey) (cert, secret []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key for %s: %w", template.Subject, err)
	}
	der, err1 := x509.CreateCertificate(rand.Reader, template, root, &key.PublicKey, by)
	private, err2 := x509.MarshalECPrivateKey(key)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, fmt.Errorf("issue a certificate for %s: %w", template.Subject, err)
	}
	return encode("CERTIFICATE", der), encode("EC PRIVATE KEY", private), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
