package rights_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// munged starts a munged with a key of its own, and gives its socket.
func munged(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("munged"); err != nil {
		if seeds.Full() {
			t.Fatal("munged is not installed: run `apt-get install munge`")
		}
		t.Skip("munged is not installed: run `apt-get install munge`")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	key, socket := filepath.Join(dir, "key"), filepath.Join(dir, "socket")
	if err := os.WriteFile(key, []byte(strings.Repeat(dir, 8)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("munged", "--foreground", "--force", "--num-threads=1", "--key-file="+key, "--socket="+socket, "--pid-file="+filepath.Join(dir, "pid"), "--log-file="+filepath.Join(dir, "log"), "--seed-file="+filepath.Join(dir, "seed"))
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := munge(socket, rights.Payload); err == nil {
			return socket
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("munged: %v: %s", err, said.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatal("munged does not answer")
		}
	}
}

// munge makes a credential.
func munge(socket, payload string) (string, error) {
	out, err := exec.Command("munge", "--socket="+socket, "--string="+payload).Output()
	return strings.TrimSpace(string(out)), err
}

// A real credential names its author once. One of another key, for another service, or damaged is refused.
func TestMunge(t *testing.T) {
	here, elsewhere := munged(t), munged(t)
	made := func(socket, payload string) string {
		t.Helper()
		c, err := munge(socket, payload)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	d := &rights.Door{Open: telemetry.Munge{Socket: here}.Open}
	mine, err := rights.UserName(uint32(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	good := made(here, rights.Payload)
	for _, c := range []struct{ what, credential, want string }{
		{"a good credential", good, ""},
		{"one that was used", good, "used before"},
		{"one of another key", made(elsewhere, rights.Payload), "of another key"},
		{"one for another service", made(here, "progress"), "made for something else"},
		{"one that goes on", made(here, rights.Payload+" and more"), "made for something else"},
		{"a damaged one", "MUNGE:AwQDAAA:", "refused"},
		{"none", "", "refused"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "MUNGE "+c.credential)
		user, byProxy, err := d.User(r)
		var refused *rights.Refused
		switch {
		case c.want == "" && (err != nil || user != mine || byProxy):
			t.Errorf("%s: user %q, %v", c.what, user, err)
		case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Why, c.want) || user != ""):
			t.Errorf("%s: user %q, %v", c.what, user, err)
		}
	}
}

// Operators are named, or in a group that is; owners are operators only if no proxy says who they are.
func TestOperators(t *testing.T) {
	p := rights.Policy{Operators: []string{"ann"}, Groups: []string{"hpc"}, Owners: []string{"root"}, GroupsOf: func(user string) []string {
		return map[string][]string{"bob": {"users", "hpc"}, "cy": {"users"}}[user]
	}}
	s := scenetest.Site{Nodes: 10, Jobs: 60}.Scene()
	for _, c := range []struct {
		user    string
		byProxy bool
		want    bool
	}{{"ann", false, true}, {"ann", true, true}, {"bob", true, true}, {"cy", false, false}, {"root", false, true}, {"root", true, false}, {"", false, false}} {
		if got := p.Person(c.user, c.byProxy, s); got.Operator != c.want || got.User != c.user {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	j := s.Jobs[0].Job()
	who := p.Person(j.User, true, s)
	if part := who.See(s); len(part.Jobs) == 0 || len(part.Jobs) == len(s.Jobs) || part.Job(cluster.JobID{ID: 4711}) != nil {
		t.Errorf("%s sees %d of %d jobs", j.User, len(part.Jobs), len(s.Jobs))
	}
	if groups := rights.GroupsOf("no such user"); groups != nil {
		t.Errorf("a user who is not there is in %v", groups)
	}
}
