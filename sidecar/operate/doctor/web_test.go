package doctor_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
)

// Each fault of the web server's settings is found. Where no web server is in use, only its address counts.
func TestWeb(t *testing.T) {
	taken := &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	good := doctor.Reader{User: "fairlease-web", Exists: true, Reads: true}
	for _, c := range []struct {
		name   string
		change func(*config.Config, *doctor.Seen)
		want   string
	}{
		{"all is well", func(*config.Config, *doctor.Seen) {}, ""},
		{"not running, address free", func(_ *config.Config, s *doctor.Seen) { s.Web = doctor.Web{} }, ""},
		{"restarted elsewhere", func(_ *config.Config, s *doctor.Seen) { s.Web.Listen = nil }, "listen warn: a web server runs, but nobody listens at 127.0.0.1:9964"},
		{"taken by another", func(_ *config.Config, s *doctor.Seen) { s.Web.Answers = false }, "listen fail: another program has 127.0.0.1:9964"},
		{"taken by another, not in use", func(_ *config.Config, s *doctor.Seen) { s.Web.Answers, s.Parts.Units = false, nil }, "listen warn: another program has 127.0.0.1:9964"},
		{"not ours", func(_ *config.Config, s *doctor.Seen) {
			s.Web.Listen = &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)}
		}, "listen fail: listen: bind: cannot assign requested address"},
		{"a low port", func(_ *config.Config, s *doctor.Seen) {
			s.Web.Listen = &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EACCES)}
		}, "listen fail: listen: bind: permission denied"},
		{"no munge", func(_ *config.Config, s *doctor.Seen) { s.Web.Munge = errors.New("no socket") }, "munge warn: no socket"},
		{"no munge, but tokens", func(c *config.Config, s *doctor.Seen) {
			c.Slurm.JWT, s.Web.Munge = "https://slurm.example.org:6820", errors.New("no socket")
		}, ""},
		{"neither munge nor tokens", func(c *config.Config, s *doctor.Seen) {
			c.Slurm.JWT, s.Web.Munge, s.Tokens = "https://slurm.example.org:6820", errors.New("no socket"), errors.New("it looks at none")
		}, "tokens warn: it looks at none\nmunge warn: no socket"},
		{"tokens out of the web server's reach", func(c *config.Config, s *doctor.Seen) {
			c.Slurm.JWT, s.Web.Tokens = "unix:///s", errors.New("user fairlease-web may not open it")
		}, "tokens warn: user fairlease-web may not open it"},
		{"tokens that nobody asked for", func(c *config.Config, s *doctor.Seen) {
			c.Slurm.TokenFile, s.Tokens = "/token", errors.New("it looks at none")
		}, ""},
		{"tokens that are needed", func(c *config.Config, s *doctor.Seen) {
			c.Slurm.TokenFile, c.Web.Munge, s.Tokens = "/token", false, errors.New("it looks at none")
		}, "tokens warn: it looks at none"},
		{"no tokens are taken", func(c *config.Config, s *doctor.Seen) {
			c.Slurm.JWT, c.Slurm.TokenFile, s.Tokens = config.JWTNone, "/token", errors.New("unknown")
		}, ""},
		{"no munge, nobody asks", func(_ *config.Config, s *doctor.Seen) {
			s.Web, s.Parts.Units = doctor.Web{Munge: errors.New("no socket")}, nil
		}, ""},
		{"a proxy that cannot come", func(c *config.Config, _ *doctor.Seen) { c.Web.TrustedProxies = []string{"10.0.0.7"} }, "trusted_proxies warn: web.listen is 127.0.0.1:9964, which 10.0.0.7/32 cannot reach"},
		{"a proxy on this host", func(c *config.Config, _ *doctor.Seen) { c.Web.TrustedProxies = []string{"::1"} }, "trusted_proxies warn: programs of this host count as the proxy: ::1/128"},
		{"a proxy elsewhere", func(c *config.Config, _ *doctor.Seen) {
			c.Web.Listen, c.Web.TrustedProxies = "192.0.2.1:9964", []string{"10.0.0.7"}
		}, ""},
		{"TLS", func(c *config.Config, s *doctor.Seen) { c.Web.WebConfig, s.Web.TLS = "/x", errors.New("bad key") }, "web_config fail: bad key"},
		{"no user", func(_ *config.Config, s *doctor.Seen) { s.Database.Reader = doctor.Reader{User: "fairlease-web"} }, "database user fail: PostgreSQL has no user fairlease-web"},
		{"a user of its own", func(_ *config.Config, s *doctor.Seen) {
			s.Database.Reader, s.Web.OtherEnv = doctor.Reader{User: "fairlease-web"}, true
		}, ""},
		{"no rights", func(_ *config.Config, s *doctor.Seen) { s.Database.Reader.Reads = false }, "database user fail: fairlease-web may not read whole rounds"},
		{"too many rights", func(_ *config.Config, s *doctor.Seen) {
			s.Database.Reader.User, s.Database.Reader.Writes = "fairlease", true
		}, "database user warn: fairlease may write the journal"},
	} {
		cfg, seen := config.Default(), &doctor.Seen{Web: doctor.Web{Listen: taken, Answers: true}, Database: doctor.Database{Reader: good}}
		seen.Parts.Units = []doctor.Unit{{Name: "fairlease-web.service", Load: "loaded", Active: "active", File: "enabled"}}
		c.change(cfg, seen)
		if got := faults(t, cfg, seen, "web"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The TLS files are read as the web server will read them.
func TestWebConfig(t *testing.T) {
	dir := t.TempDir()
	open := func(paths ...string) { // everybody may read them: this host may have the user fairlease-web
		for _, path := range paths {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	open(dir, filepath.Dir(dir))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	certificate := func(until time.Time) string {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: until}
		cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	}
	good := certificate(now.Add(1000 * time.Hour))
	for _, c := range []struct {
		name, config, cert string
		want               string
	}{
		{"good", "tls_server_config: {cert_file: crt, key_file: key}", good, "the files of DIR/web.yaml can be read, and are valid"},
		{"about to expire", "tls_server_config: {cert_file: crt, key_file: key}", certificate(now.Add(time.Hour)), "the certificate in DIR/crt is valid until "},
		{"no key", "tls_server_config: {cert_file: crt, key_file: gone}", good, "stat DIR/gone: no such file or directory"},
		{"a key that is not there", "tls_server_config: {cert_file: crt}", good, "DIR/web.yaml: "},
		{"a misspelt key", "tls_sever_config: {}", good, "DIR/web.yaml: "},
		{"no YAML", "{", good, "DIR/web.yaml: "},
	} {
		for name, text := range map[string]string{"web.yaml": c.config, "crt": c.cert, "key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))} {
			write(t, filepath.Join(dir, name), text)
			open(filepath.Join(dir, name))
		}
		cfg := config.Default()
		cfg.Slurm.Address, cfg.Slurm.Retries, cfg.Web.Munge = "unix://"+dir+"/none", 0, false
		cfg.Web.WebConfig, cfg.Web.Listen = filepath.Join(dir, "web.yaml"), "127.0.0.1:0"
		found := named(doctor.Check(cfg, doctor.Look(t.Context(), cfg, time.Now)), "web_config")
		want := strings.ReplaceAll(c.want, "DIR", dir)
		if len(found) != 1 || !strings.HasPrefix(found[0].Found, want) || (found[0].Level == doctor.OK) != (c.name == "good") {
			t.Errorf("%s: %s, want %s", c.name, fmt.Sprint(found), want)
		}
	}
}
