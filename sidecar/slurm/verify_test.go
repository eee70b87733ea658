package slurm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// restd is a slurmrestd that answers questions for licences by its status.
type restd struct {
	mu      sync.Mutex
	status  func(user, token string) int
	version string
	asked   []string // users
}

func (s *restd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/openapi/v3":
		fmt.Fprintf(w, `{"paths":{"/slurm/%s/licenses/":{}}}`, s.version)
	case "/slurm/" + s.version + "/licenses/":
		user := r.Header.Get("X-SLURM-USER-NAME")
		s.asked = append(s.asked, user)
		status := s.status(user, r.Header.Get("X-SLURM-USER-TOKEN"))
		w.WriteHeader(status)
		switch status {
		case http.StatusOK:
			fmt.Fprint(w, `{"licenses":[]}`)
		case http.StatusNetworkAuthenticationRequired, http.StatusInternalServerError:
			fmt.Fprint(w, `{"errors":[{"error_number":1007,"error":"Protocol authentication error"}]}`)
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// Slurm's word on a token counts, if slurmrestd refuses the same token with another signature. Errors do not have the token.
func TestVerifier(t *testing.T) {
	const good = "e30.e30.Z29vZA"
	checks := func(_, token string) int {
		if token == good {
			return http.StatusOK
		}
		return http.StatusNetworkAuthenticationRequired
	}
	always := func(status int) func(string, string) int { return func(string, string) int { return status } }
	for _, c := range []struct {
		what   string
		status func(user, token string) int
		token  string
		want   bool
		says   string
		checks bool
	}{
		{"a good token", checks, good, true, "", true},
		{"another one", checks, "e30.e30.YmFk", false, "", true},
		{"refused as Slurm 24.11 may", always(http.StatusInternalServerError), good, false, "", true},
		{"a slurmrestd that looks at no token", always(http.StatusOK), good, false, "without looking at tokens", false},
		{"a slurmrestd that takes none", always(http.StatusUnauthorized), good, false, "does not take tokens", false},
		{"a slurmrestd without slurmctld", always(http.StatusBadGateway), good, false, "502", false},
	} {
		s := &restd{status: c.status, version: "v0.0.44"}
		h := httptest.NewServer(s)
		v, err := NewVerifier(Config{Address: h.URL})
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.Takes(t.Context(), "alice", c.token)
		if got != c.want || (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.token)) {
			t.Errorf("%s: %v, %v", c.what, got, err)
		}
		if err := v.Checks(t.Context()); (err == nil) != c.checks {
			t.Errorf("%s: whether it checks tokens: %v", c.what, err)
		}
		h.Close()
		if _, err := v.Takes(t.Context(), "alice", c.token); err == nil || strings.Contains(err.Error(), c.token) {
			t.Errorf("%s: slurmrestd is gone: %v", c.what, err)
		}
		v.Close()
	}
}

// The proof that slurmrestd looks at tokens is asked for with each of them, and an upgrade of Slurm costs one failed question.
func TestTheVerifierChecksSlurmrestd(t *testing.T) {
	var forgedTaken bool
	s := &restd{version: "v0.0.44", status: func(_, token string) int {
		if forgedTaken || token == "e30.e30.Z29vZA" {
			return http.StatusOK
		}
		return http.StatusNetworkAuthenticationRequired
	}}
	h := httptest.NewServer(s)
	defer h.Close()
	v, err := NewVerifier(Config{Address: h.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	takes := func() (bool, error) { return v.Takes(t.Context(), "alice", "e30.e30.Z29vZA") }
	for i := range 2 {
		s.asked = nil
		if ok, err := takes(); !ok || err != nil || len(s.asked) != 2 || s.asked[0] != "alice" || s.asked[1] != "alice" {
			t.Errorf("question %d: %v, %v, slurmrestd was asked as %v", i, ok, err, s.asked)
		}
	}
	forgedTaken = true
	if ok, err := takes(); ok || err == nil {
		t.Errorf("slurmrestd was restarted without checks: %v, %v", ok, err)
	}
	forgedTaken = false
	s.mu.Lock()
	s.version = "v0.0.45"
	s.mu.Unlock()
	if ok, err := takes(); ok || err == nil {
		t.Errorf("with the version that is gone: %v, %v", ok, err)
	}
	if ok, err := takes(); !ok || err != nil {
		t.Errorf("with the new version: %v, %v", ok, err)
	}
}
