package web_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nginx with the configuration of docs/web.md logs people in: it passes their names on, replaces a name that they send themselves, passes live
// events on as they come, and nobody gets through without a login.
func TestNginxAsInTheDocs(t *testing.T) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("there is no nginx: make deps installs it")
	}
	doc, err := os.ReadFile("../../docs/web.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindSubmatch(doc)
	if found == nil {
		t.Fatal("docs/web.md has no configuration of nginx")
	}
	s := newServer()
	s.Door.UserHeader, s.Door.ProxyUsers = "X-Remote-User", []uint32{uint32(os.Getuid())}
	s.Door.NameOf = func(uint32) (string, error) { return "me", nil }
	_, socket := run(t, s)
	dir := filepath.Dir(socket)
	certificate, roots := certify(t, dir)
	hash, err := exec.Command("openssl", "passwd", "-6", "secret").Output()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	door := filepath.Join(dir, "door")
	site := string(found[1])
	for of, to := range map[string]string{"listen 443 ssl;": "listen unix:" + door + " ssl;", "/etc/fairlease/tls.crt": certificate, "/etc/fairlease/tls.key": certificate,
		"/etc/nginx/fairlease.users": write("users", "ann:"+string(hash)), "/run/fairlease-web/socket": socket} {
		if strings.Count(site, of) != 1 {
			t.Fatalf("the configuration does not have %q once:\n%s", of, site)
		}
		site = strings.ReplaceAll(site, of, to)
	}
	temp := ""
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += of + "_temp_path " + dir + "/" + of + ";\n"
	}
	as := ""
	if os.Getuid() == 0 {
		as = "user root;\n"
	}
	config := write("nginx.conf", as+"daemon off;\npid "+dir+"/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n"+temp+site+"}\n")
	nginx := exec.Command(program, "-c", config, "-p", dir, "-e", "stderr")
	nginx.Stderr = os.Stderr
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = nginx.Process.Signal(syscall.SIGTERM)
		_ = nginx.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(door); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal("nginx does not listen")
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", door)
		}}}
	t.Cleanup(client.CloseIdleConnections)
	// ask gives the status and the first line of the answer to somebody who also claims to be root.
	ask := func(path, user, password string) (int, string) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://slurm.example.org"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("X-Remote-User", "root")
		if user != "" {
			q.SetBasicAuth(user, password)
		}
		answer, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		line, err := bufio.NewReader(answer.Body).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return answer.StatusCode, line
	}
	for user, password := range map[string]string{"": "", "ann": "wrong", "bob": "secret"} {
		if status, line := ask("/api/v1/person", user, password); status != http.StatusUnauthorized {
			t.Errorf("%q with the password %q: status %d: %s", user, password, status, line)
		}
	}
	if status, line := ask("/api/v1/person", "ann", "secret"); status != http.StatusOK || !strings.Contains(line, `"user":"ann"`) {
		t.Errorf("ann: status %d: %s", status, line)
	}
	if status, line := ask("/api/v1/live", "ann", "secret"); status != http.StatusOK || line == "" {
		t.Errorf("live events: status %d: %q", status, line)
	}
}

// certify writes a certificate and its key into one file.
func certify(t *testing.T, dir string) (file string, roots *x509.CertPool) {
	t.Helper()
	of := httptest.NewTLSServer(http.NotFoundHandler())
	defer of.Close()
	own := of.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	file = filepath.Join(dir, "tls.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(of.Certificate())
	return file, roots
}
