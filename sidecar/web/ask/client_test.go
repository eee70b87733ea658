package ask_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web"
	"github.com/fairlease/fairlease/sidecar/web/api"
	"github.com/fairlease/fairlease/sidecar/web/ask"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

type source struct {
	*scene.Keeper
	past *scenetest.Past
}

func (s source) Past() scene.Past { return scene.Past{PastJobs: s.past, PastRounds: s.past} }

// program puts a munge of our own in front of the host's. It makes the credential that its script says.
func program(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "munge"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// Over HTTP each question has a credential of its own, for this service, and long lists are read to their end.
func TestOverHTTP(t *testing.T) {
	program(t, `[ "$1" = "--string=fairlease-web" ] && echo "MUNGE:$$:"`)
	site := scenetest.Site{Nodes: 400, Jobs: 2000}
	s := source{scene.Hold(site.Scene()), site.Past()}
	seen := map[string]bool{}
	server := web.Server{Source: s, API: &api.API{Source: s}, Policy: &rights.Policy{Operators: []string{"ann"}}, Door: &rights.Door{
		NameOf: func(uint32) (string, error) { return "ann", nil },
		Open: func(_ context.Context, credential []byte) (uint32, []byte, error) {
			if seen[string(credential)] || !strings.HasPrefix(string(credential), "MUNGE:") {
				t.Errorf("credential %q", credential)
			}
			seen[string(credential)] = true
			return 1000, []byte(rights.Payload), nil
		}}}
	h := httptest.NewServer(server.Handler())
	defer h.Close()
	c, err := ask.Open(t.Context(), config.Default(), h.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in, err := c.Leases(t.Context(), false, 100_000)
	if err != nil || len(in) != len(s.Scene().Leases) {
		t.Errorf("%d leases, not %d: %v", len(in), len(s.Scene().Leases), err)
	}
	if all, err := c.Leases(t.Context(), true, 1500); err != nil || len(all) != 1500 || len(seen) < 3 {
		t.Errorf("%d leases by %d questions: %v", len(all), len(seen), err)
	}
	st, err := c.Status(t.Context())
	if err != nil || st.Round != s.Scene().Round || st.Mode != "act" {
		t.Errorf("%+v, %v", st, err)
	}
	waiting := 0
	for i := range s.Scene().Jobs {
		if s.Scene().Jobs[i].Record.State == cluster.Waiting {
			waiting++
		}
	}
	if list, err := c.Waiting(t.Context(), 100_000); err != nil || len(list) != waiting || waiting == 0 || list[0].SlurmID == "" || list[0].Reason == "" {
		t.Errorf("%d waiting jobs, not %d: %v", len(list), waiting, err)
	}
	if list, err := c.Waiting(t.Context(), 3); err != nil || len(list) != min(3, waiting) {
		t.Errorf("%d of 3 waiting jobs: %v", len(list), err)
	}
	if round, lead, err := c.Pulse(t.Context()); err != nil || round != s.Scene().Round || lead == nil {
		t.Errorf("round %d, leader %v: %v", round, lead, err)
	}
	silent := site.Scene()
	silent.Silent = &silent.Read
	s.Put(silent)
	var away *failure.Error
	if _, _, err := c.Pulse(t.Context()); !errors.As(err, &away) || away.Code != failure.Absent {
		t.Errorf("the journal is silent, and the pulse is %v", err)
	}
	if round, _, err := c.Newest(t.Context()); round != s.Scene().Round || err != nil {
		t.Errorf("round %d, %v", round, err)
	}
	if _, err := c.Explain(t.Context(), cluster.JobID{ID: 4711}); !errors.Is(err, store.ErrNone) {
		t.Error(err)
	}
}

// Errors of a server say what to do.
func TestServersThatRefuse(t *testing.T) {
	program(t, "echo MUNGE:x:")
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct {
		status int
		text   string
		code   int
		says   string
	}{
		{http.StatusUnauthorized, "the credential is refused", failure.No, "the credential is refused"},
		{http.StatusForbidden, `{"error":"only operators","next":"ask"}`, failure.No, "only operators"},
		{http.StatusServiceUnavailable, `{"error":"the journal does not answer"}`, failure.Absent, "does not answer"},
		{http.StatusBadGateway, "<html>" + long, failure.No, "<html>"},
		{http.StatusFound, "", failure.No, "status 302"},
		{http.StatusOK, "<html>", failure.No, "cannot be read"},
		{http.StatusOK, "{}", failure.No, "cannot be read"},
		{http.StatusOK, `{"round":"seven"}`, failure.No, "cannot be read"},
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.text)
		}))
		client, err := ask.NewClient(h.URL, ask.Proofs{Munge: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Status(t.Context())
		var f *failure.Error
		if !errors.As(err, &f) || f.Code != c.code || !strings.Contains(f.Error(), c.says) || len(f.Error()) > 1000 {
			t.Errorf("%d %.40q: %.300v", c.status, c.text, err)
		}
		if _, err := client.Explain(t.Context(), cluster.JobID{ID: 1}); !errors.As(err, &f) {
			t.Errorf("%d %.40q: a job: %v", c.status, c.text, err)
		}
		h.Close()
		if _, err = client.Status(t.Context()); !errors.As(err, &f) || f.Code != failure.Absent || !strings.Contains(f.Next, "fairlease web runs") {
			t.Errorf("a server that is gone: %v", err)
		}
	}
	program(t, "echo no munged >&2; exit 1")
	for _, nobody := range []bool{true, false} { // one server answers people whom it does not know, the other does not
		site := scenetest.Site{Nodes: 4, Jobs: 10}
		s := source{scene.Hold(site.Scene()), site.Past()}
		server := web.Server{Source: s, API: &api.API{Source: s}, Policy: &rights.Policy{}, Door: &rights.Door{}, NoAnonymous: !nobody}
		h := httptest.NewServer(server.Handler())
		client, err := ask.NewClient(h.URL, ask.Proofs{Munge: true})
		if err != nil {
			t.Fatal(err)
		}
		var says strings.Builder
		client.Warn = &says
		_, err = client.Status(t.Context())
		if nobody && (err != nil || !strings.Contains(says.String(), "asked without a credential") || !strings.Contains(says.String(), "no munged")) {
			t.Errorf("as nobody: %v, %q", err, says.String())
		}
		if !nobody && (err == nil || !strings.Contains(err.Error(), "no munged")) {
			t.Errorf("without munged: %v", err)
		}
		h.Close()
	}
}

// Without a database and without a server, it is the missing database that is reported.
func TestNothingToAsk(t *testing.T) {
	cfg := config.Default()
	cfg.Web.Socket = filepath.Join(t.TempDir(), "none")
	if _, err := ask.Open(t.Context(), cfg, ""); err == nil || !strings.Contains(err.Error(), "no database is configured") {
		t.Error(err)
	}
	cfg.Web.Server = "https://slurm.example.org:9964"
	if s, err := ask.Open(t.Context(), cfg, ""); err != nil {
		t.Error(err)
	} else {
		s.Close()
	}
}
