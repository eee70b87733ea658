package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
)

// Web is what the web server, fairlease web, finds on this host.
type Web struct {
	Listen   error // why web.listen cannot be opened; nil = it is free, or none is set
	Answers  bool  // a web server answers at web.socket
	TLS      error // fault of web.web_config, or of a file that it names
	Munge    error // why munged does not answer, if web.munge is set
	Tokens   error // why the web server's user cannot reach the slurmrestd that checks tokens, if that has a socket
	OtherEnv bool  // the unit has an environment file, which may name another database user
}

// readWeb looks at what the keys under web name.
func readWeb(ctx context.Context, cfg *config.Config, now time.Time) (w Web) {
	s := &cfg.Web
	if s.Listen != "" {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Listen)
		if w.Listen = err; err == nil {
			l.Close()
		}
	}
	if s.Socket != "" {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", s.Socket)
		if w.Answers = err == nil; err == nil {
			conn.Close()
		}
	}
	if s.WebConfig != "" {
		w.TLS = checkTLS(s.WebConfig, now)
	}
	if s.Munge {
		w.Munge = askMunge(ctx, s.MungeSocket)
	}
	if path, ok := strings.CutPrefix(cfg.Slurm.Checker(), "unix://"); ok {
		if who, err := user.Lookup(webUser); err == nil {
			w.Tokens = may(who, path, 0o2, "open")
		}
	}
	w.OtherEnv = exists("/etc/default/fairlease-web") || exists("/etc/sysconfig/fairlease-web")
	return w
}

// checkTLS checks a file in the format of exporter-toolkit, and the files that it names, as the web server's user sees them.
func checkTLS(path string, now time.Time) error {
	who, err := user.Lookup(webUser)
	if err != nil {
		who, err = user.Current() // there is no such user: whoever asks
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = may(who, path, 0o4, "read")
	}
	if err != nil {
		return err
	}
	var names struct {
		Server struct {
			Cert string `yaml:"cert_file"`
			Key  string `yaml:"key_file"`
			CA   string `yaml:"client_ca_file"`
		} `yaml:"tls_server_config"`
	}
	if err := yaml.Unmarshal(text, &names); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range []string{names.Server.Cert, names.Server.Key, names.Server.CA} {
		if name == "" {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		if err := may(who, name, 0o4, "read"); err != nil {
			return err
		}
		if err := current(name, now); err != nil {
			return err
		}
	}
	if err := web.Validate(path); err != nil && !errors.Is(err, fs.ErrPermission) { // this user may be allowed less than the web server's
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// current says that the first certificate of a file has expired, or will within a week. A file that this user may not read, or
// that has no certificate, is current.
func current(path string, now time.Time) error {
	text, err := os.ReadFile(path)
	block, _ := pem.Decode(text)
	if err != nil || block == nil || block.Type != "CERTIFICATE" {
		return nil //nolint:nilerr // its rights were checked
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if c.NotAfter.Before(now.Add(7 * 24 * time.Hour)) {
		return fmt.Errorf("the certificate in %s is valid until %s: renew it", path, c.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// may says why a user has no right (a bit of a mode, and its word) to a file, by the modes of the file and of the folders above it.
func may(who *user.User, path string, need fs.FileMode, word string) error {
	groups, err := who.GroupIds()
	if err != nil {
		return fmt.Errorf("asking for the groups of %s: %w", who.Username, err)
	}
	const search = 0o1
	for at := path; ; at, need = filepath.Dir(at), search {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		id, ok := info.Sys().(*syscall.Stat_t)
		mode := info.Mode().Perm()
		switch {
		case !ok || who.Uid == "0":
			mode = 0o777
		case who.Uid == strconv.Itoa(int(id.Uid)):
			mode >>= 6
		case slices.Contains(groups, strconv.Itoa(int(id.Gid))):
			mode >>= 3
		}
		if mode&need == 0 {
			return fmt.Errorf("user %s may not %s %s: %s has mode %04o, owner %d and group %d", who.Username, word, path, at, info.Mode().Perm(), id.Uid, id.Gid)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// checkWeb checks the keys under web. Where no web server is in use, its address is worth a warning, and its rights are of no interest.
func checkWeb(f *findings, cfg *config.Config, seen *Seen) {
	s, w := &cfg.Web, &seen.Web
	used := w.Answers || slices.ContainsFunc(seen.Parts.Units, func(u Unit) bool {
		return u.Name == webUser+".service" && (strings.HasPrefix(u.File, "enabled") || u.Active != "inactive")
	})
	level := Warn
	if used {
		level = Fail
	}
	checkListener(f, s.Listen, w, level)
	if s.WebConfig != "" {
		found := "the files of " + s.WebConfig + " can be read, and are valid"
		if w.TLS != nil {
			found = failure.Cause(w.TLS)
		}
		f.must(w.TLS == nil, Fail, "web_config", found, "the web server does not start, or browsers refuse it",
			"mend web.web_config, or chgrp "+webUser+" and chmod 0640 the file")
	}
	if !used {
		return
	}
	tokens := checkTokens(f, "tokens", cfg, cmp.Or(seen.Tokens, w.Tokens), s.Munge && w.Munge == nil)
	if s.Munge {
		found := "munged answers at " + cmp.Or(s.MungeSocket, "its default socket")
		switch {
		case w.Munge != nil && tokens:
			found = "munged does not answer: people on other hosts are known by tokens only"
		case w.Munge != nil:
			found = failure.Cause(w.Munge)
		}
		f.must(w.Munge == nil || tokens, Warn, "munge", found, "people on other hosts are not known to the web server: they see sums only",
			"start munged, or set web.munge_socket; without MUNGE set web.munge: false, and slurm.jwt")
	}
	checkProxies(f, s)
	if seen.Database.OpenErr == nil {
		checkReader(f, cfg, w, &seen.Database.Reader)
	}
}

// checkListener says who has the address of the page; level is that of a fault.
func checkListener(f *findings, address string, w *Web, level string) {
	const check = "listen"
	switch {
	case address == "":
		f.ok(check, "no address; local users are answered at web.socket")
	case w.Listen == nil && w.Answers:
		f.add(Warn, check, "a web server runs, but nobody listens at "+address, "the page is at the address that was configured when it started", "systemctl restart "+webUser)
	case w.Listen == nil:
		f.ok(check, "%s is free", address)
	case errors.Is(w.Listen, syscall.EADDRINUSE) && w.Answers:
		f.ok(check, "the page is at %s", address)
	case errors.Is(w.Listen, syscall.EADDRINUSE):
		f.add(level, check, "another program has "+address, "the web server does not start", "set web.listen to a free address, or end that program: ss -ltnp shows it")
	case errors.Is(w.Listen, fs.ErrPermission):
		f.add(level, check, failure.Cause(w.Listen), "the web server's user may not listen there", "set web.listen to a port above 1023, and put a proxy before it")
	default:
		f.add(level, check, failure.Cause(w.Listen), "the web server does not start", "set web.listen to an address of this host, as 127.0.0.1:9964 or :9964")
	}
}

// checkProxies checks that trusted proxies can reach the server, and that users of this host are none.
func checkProxies(f *findings, s *config.Web) {
	const check = "trusted_proxies"
	all, err := s.Proxies()
	if err != nil || len(all) == 0 {
		return // the configuration was checked
	}
	var near, far []string
	for _, p := range all {
		if p.Addr().IsLoopback() {
			near = append(near, p.String())
		} else {
			far = append(far, p.String())
		}
	}
	switch {
	case local(s.Listen) && near == nil:
		f.add(Warn, check, fmt.Sprintf("web.listen is %s, which %s cannot reach", s.Listen, strings.Join(far, ", ")), "nobody comes in by these proxies",
			"set web.listen to an address that they reach; a proxy on this host asks at web.socket (web.proxy_users)")
	case near != nil:
		f.add(Warn, check, "programs of this host count as the proxy: "+strings.Join(near, ", "), "each user who can log in to this host can claim to be anybody else",
			"let the proxy ask at web.socket, and list its user in web.proxy_users")
	default:
		f.ok(check, "%s", strings.Join(far, ", "))
	}
}

// local tells whether only this host reaches an address to listen on.
func local(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	here, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && here.IsLoopback()
}

// checkReader checks the rights of the web server's user in the database.
func checkReader(f *findings, cfg *config.Config, w *Web, r *Reader) {
	const check = "database user"
	if at, err := url.Parse(cfg.Database.URL); r.User == webUser && !r.Exists && (w.OtherEnv || err != nil || at.User != nil) {
		return // it has another user
	}
	role := cfg.Database.Schema + "_reader"
	grant := fmt.Sprintf("fairlease migrate --roles; runuser -u postgres -- psql -d fairlease -c 'grant %s to %q'", role, r.User)
	switch {
	case r.User == "":
	case !r.Exists:
		f.add(Fail, check, "PostgreSQL has no user "+r.User, "the web server cannot read the journal", "runuser -u postgres -- createuser "+r.User+"; "+grant)
	case !r.Reads:
		f.add(Fail, check, r.User+" may not read whole rounds", "the web server shows no page", grant)
	case r.Writes:
		f.add(Warn, check, r.User+" may write the journal", "a fault of the web server could change the books", "give it a user of its own: runuser -u postgres -- createuser "+webUser+"; grant "+role+" to it; see docs/web.md")
	default:
		f.ok(check, "%s reads the journal, and cannot write", r.User)
	}
}
