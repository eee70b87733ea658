package web_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate writes a certificate for 127.0.0.1 and a web config that names it, and gives the config's path and a pool that trusts it.
func certificate(t *testing.T) (string, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return in("web.yaml", fmt.Appendf(nil, "tls_server_config: {cert_file: %s, key_file: %s}\n", in("crt", text), in("key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))), pool
}

// With a web config TCP speaks TLS and HTTP/2, and the socket stays as it is.
func TestTLS(t *testing.T) {
	s := newServer()
	s.Door.NameOf = func(uint32) (string, error) { return "ann", nil }
	config, pool := certificate(t)
	s.WebConfig = config
	tcp, socket := run(t, s)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	answer, err := client.Get("https://" + tcp + "/api/v1/person")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 || answer.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("status %d over %s", answer.StatusCode, answer.Proto)
	}
	conn, err := tls.Dial("tcp", tcp, &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	settings := make([]byte, 9) // its head, and six bytes each
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, settings); err != nil {
		t.Fatal(err)
	}
	settings = make([]byte, settings[2])
	if _, err := io.ReadFull(conn, settings); err != nil || !bytes.Contains(settings, []byte{0, 3, 0, 0, 0, 32}) { // SETTINGS_MAX_CONCURRENT_STREAMS
		t.Errorf("questions at once on a connection: %v, %v", settings, err)
	}
	if status, _ := get(t, http.DefaultClient, "http://"+tcp+"/livez"); status != http.StatusBadRequest {
		t.Errorf("without TLS: status %d", status)
	}
	if status, text := get(t, overSocket(socket), "http://local/api/v1/person"); status != http.StatusOK || !strings.Contains(text, `"user":"ann"`) {
		t.Errorf("at the socket: status %d: %s", status, text)
	}
}
