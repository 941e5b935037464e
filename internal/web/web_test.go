package web_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/internal/web"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// serve serves "metrics" until the test ends, and returns the address.
func serve(t *testing.T, config string) string {
	t.Helper()
	return serveLogging(t, config, slog.New(slog.DiscardHandler))
}

func serveLogging(t *testing.T, config string, log *slog.Logger) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l, err := web.Listen(ctx, "127.0.0.1:0")
	must(t, err)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })
	done := make(chan error, 1)
	go func() { done <- web.Serve(ctx, l, config, handler, log) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	return l.Addr().String()
}

// certificate writes a certificate that signs itself, with a serial number, and its key.
func certificate(t *testing.T, dir string, serial int64) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "node"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t,
		os.WriteFile(filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool
}

// get asks once, on a connection of its own.
func get(t *testing.T, url, user, password string, trusted *x509.CertPool) (status int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	if user != "" {
		request.SetBasicAuth(user, password)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// TestClear: without a file it is served as it is.
func TestClear(t *testing.T) {
	status, body, err := get(t, "http://"+serve(t, ""), "", "", nil)
	if err != nil || status != http.StatusOK || body != "metrics" {
		t.Errorf("%d %q %v", status, body, err)
	}
}

// TestConfig: the file asks for TLS and a password, and a certificate that was renewed is the one
// that the next connection sees.
func TestConfig(t *testing.T) {
	dir := t.TempDir()
	trusted := certificate(t, dir, 1)
	const hash = "$2a$04$OzD/QBzrKMjFnqGJ5lw9Yu6xjJ.SvWC5BPBCZit/jRJKSVZ.wYpWe" // of "right", by bcrypt with the lowest cost
	config := filepath.Join(dir, "web.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\nbasic_auth_users:\n  prometheus: %s\n", hash), 0o600))
	must(t, web.Check(config))
	address := serve(t, config)
	for _, c := range []struct {
		what, url, user, password string
		status                    int
	}{
		{"right", "https://", "prometheus", "right", http.StatusOK},
		{"wrong password", "https://", "prometheus", "wrong", http.StatusUnauthorized},
		{"wrong user", "https://", "somebody", "right", http.StatusUnauthorized},
		{"nobody", "https://", "", "", http.StatusUnauthorized},
		{"in the clear", "http://", "prometheus", "right", http.StatusBadRequest},
	} {
		status, body, err := get(t, c.url+address, c.user, c.password, trusted)
		if err != nil || status != c.status || (body == "metrics") != (c.status == http.StatusOK) {
			t.Errorf("%s: %d %q %v, want %d", c.what, status, body, err, c.status)
		}
	}
	renewed := certificate(t, dir, 2)
	if _, _, err := get(t, "https://"+address, "prometheus", "right", trusted); err == nil {
		t.Error("the old certificate is still in use")
	}
	if status, _, err := get(t, "https://"+address, "prometheus", "right", renewed); err != nil || status != http.StatusOK {
		t.Errorf("with the new certificate: %d %v", status, err)
	}
}

// TestLog: what the library has to say of a connection is in the program's own log, which is JSON.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir, 1)
	config := filepath.Join(dir, "web.yaml")
	must(t, os.WriteFile(config, []byte("tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"), 0o600))
	read, write := io.Pipe()
	defer read.Close() // whatever is logged later is lost
	defer time.AfterFunc(10*time.Second, func() { write.Close() }).Stop()
	address := serveLogging(t, config, slog.New(slog.NewJSONHandler(write, nil)))
	done := make(chan error, 1)
	go func() {
		_, _, err := get(t, "http://"+address, "", "", nil)
		done <- err
	}()
	for from := json.NewDecoder(read); ; {
		var line struct{ Level, Msg string }
		must(t, from.Decode(&line))
		if strings.Contains(line.Msg, "TLS handshake error") {
			break
		}
	}
	read.Close()
	must(t, <-done)
}

// TestBad: what is wrong with a file is said before anything is served, with the file's name.
func TestBad(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"unknown.yaml": "tls_server_configuration:\n  cert_file: a\n",
		"missing.yaml": "tls_server_config:\n  cert_file: none.crt\n  key_file: none.key\n",
		"syntax.yaml":  "tls_server_config: [\n",
	} {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, []byte(text), 0o600))
		if err := web.Check(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := web.Check(filepath.Join(dir, "absent.yaml")); err == nil {
		t.Error("there is no such file")
	}
	must(t, web.Check(""))
}

// TestTaken: a port that somebody else has is an error that names it.
func TestTaken(t *testing.T) {
	address := serve(t, "")
	if l, err := web.Listen(t.Context(), address); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("%v %v", l, err)
	}
}
