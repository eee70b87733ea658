package ask_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

// tokenOf makes a token that is good for a while; user "" = it names none.
func tokenOf(user string, good time.Duration) string {
	text := base64.RawURLEncoding.EncodeToString
	return text([]byte(`{"alg":"HS256"}`)) + "." + text(fmt.Appendf(nil, `{"exp":%d,"sun":%q}`, time.Now().Add(good).Unix(), user)) + "." + text([]byte(user+"'s"))
}

// trust has clients of this process take a server's certificate.
func trust(t *testing.T, h *httptest.Server) {
	t.Helper()
	before := http.DefaultTransport
	http.DefaultTransport = h.Client().Transport
	t.Cleanup(func() { http.DefaultTransport = before })
}

// A client proves who asks by what its host has: munge, the environment's token, or one that scontrol makes. A token goes over no network
// in clear, and into no error.
func TestProofs(t *testing.T) {
	good, old, nameless, fresh := tokenOf("ann", time.Hour), tokenOf("ann", -time.Minute), tokenOf("", time.Hour), tokenOf("ann", 5*time.Minute)
	const noMunged, noRight = "echo no munged >&2; exit 1", "echo not allowed >&2; exit 1"
	makes := `[ "$1 $2 ${SLURM_JWT-none}" = "token lifespan=300 none" ] && echo SLURM_JWT=` + fresh
	all := ask.Proofs{Munge: true, Tokens: true}
	for _, c := range []struct {
		what            string
		munge, scontrol string // scripts; "" = it is not here
		jwt             string
		by              ask.Proofs
		want            string // the header Authorization
		says            string // the error of a server that asks for a proof
	}{
		{"munge", "echo MUNGE:x:", makes, good, all, "MUNGE MUNGE:x:", ""},
		{"munge is switched off", "echo MUNGE:x:", "", good, ask.Proofs{Tokens: true}, "Bearer " + good, ""},
		{"tokens are switched off", "", makes, good, ask.Proofs{Munge: true}, "", "you must say who you are"},
		{"munged is away", noMunged, "", good, all, "Bearer " + good, ""},
		{"the environment's token", "", makes, good, all, "Bearer " + good, ""},
		{"one that has expired", "", makes, old, all, "Bearer " + fresh, ""},
		{"one that expires soon", "", makes, "brief", all, "Bearer " + fresh, ""},
		{"one that expires soon, and no other", "", noRight, "brief", all, "Bearer brief", ""},
		{"none", "", makes, "", all, "Bearer " + fresh, ""},
		{"one that names no user", "", "", nameless, all, "Bearer " + nameless, ""},
		{"expired, and no other", "", "", old, all, "", "has expired"},
		{"no right to make one", "", noRight, "", all, "", "not allowed"},
		{"nothing works", noMunged, noRight, "", all, "", "no munged"},
		{"nonsense", "", "", "x.y.z", all, "", "has expired"},
		{"nothing is here", "", "", "", all, "", "you must say who you are"},
	} {
		if c.jwt == "brief" {
			c.jwt = tokenOf("ann", 29*time.Second)
			c.want = strings.Replace(c.want, "brief", c.jwt, 1)
		}
		dir := t.TempDir()
		t.Setenv("PATH", dir)
		t.Setenv("SLURM_JWT", c.jwt)
		for name, script := range map[string]string{"munge": c.munge, "scontrol": c.scontrol} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); script != "" && err != nil {
				t.Fatal(err)
			} else if script == "" {
				_ = os.Remove(filepath.Join(dir, name))
			}
		}
		var got, user string
		h := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got, user = r.Header.Get("Authorization"), r.Header.Get("X-SLURM-USER-NAME"); got == "" {
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, "you must say who you are")
			}
		}))
		trust(t, h)
		client, err := ask.NewClient(h.URL, c.by)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = client.Tenants(t.Context()) // the answer is none
		h.Close()
		if got != c.want || (user != "") != (c.want == "Bearer "+nameless) {
			t.Errorf("%s: asked with %q as %q, want %q", c.what, got, user, c.want)
		}
		if !strings.Contains(err.Error(), c.says) || c.jwt != "" && strings.Contains(err.Error(), c.jwt) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("SLURM_JWT", good)
	seen := "nothing"
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer h.Close()
	for _, server := range []string{h.URL, strings.Replace(h.URL, "127.0.0.1", "localhost", 1), strings.Replace(h.URL, "127.0.0.1", "0.0.0.0", 1)} {
		s, err := ask.Open(t.Context(), config.Default(), server)
		if err != nil {
			t.Fatal(err)
		}
		seen = "nothing"
		var f *failure.Error
		if _, _, err := s.Tenants(t.Context()); !errors.As(err, &f) || !strings.Contains(err.Error(), "by https only") || seen != "" {
			t.Errorf("in clear to %s: %v, asked with %q", server, err, seen)
		}
		s.Close()
	}
}
