package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// webServer is a web server of a journal.
type webServer struct {
	*story
	socket string
	http   http.Client
	log    *buffer
}

// serveWeb runs fairlease web for a story, at a socket.
func serveWeb(t *testing.T, s *story, settings string) *webServer {
	t.Helper()
	dir := t.TempDir()
	w := &webServer{story: s, socket: filepath.Join(dir, "socket"), log: &buffer{}}
	w.http.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.socket)
	}}
	file := filepath.Join(dir, "fairlease.yaml")
	write(t, file, fmt.Sprintf("web: {listen: '', socket: %s%s}\n", w.socket, settings))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		ended <- Run(ctx, []string{"-c", file, "web"}, strings.NewReader(""), io.Discard, w.log, s.env)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != failure.OK || t.Failed() {
			t.Errorf("exit code %d\n%s", code, w.log)
		}
	})
	until(t, "the server has read the journal", func() bool {
		c, err := net.Dial("unix", w.socket) // it exists before it is listened on
		if err != nil {
			return false
		}
		_ = c.Close()
		status, _, _ := w.ask(t, "/readyz")
		return status == http.StatusOK
	})
	return w
}

func (w *webServer) ask(t *testing.T, path string) (int, http.Header, string) {
	t.Helper()
	answer, err := w.http.Get("http://local" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// offline gives an environment without the database, whose configuration names the server.
func (w *webServer) offline(t *testing.T) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "user.yaml")
	write(t, file, fmt.Sprintf("web: {socket: %s}\n", w.socket))
	return []string{"FAIRLEASE_CONFIG=" + file}
}

// refreshed matches the numbers of a job, which the journal's rows have as of an earlier round than the server, and why no GPU is
// watched, which only the configuration beside the journal tells.
var refreshed = regexp.MustCompile(`(?m)^(Received .*|As of .*|No GPU is watched: .*)$`)

// With a server, commands of a user without a database print what they print with one.
func TestCommandsWithoutADatabase(t *testing.T) {
	s := tell(t)
	w := serveWeb(t, s, "")
	env := w.offline(t)
	_, plan, err := s.store.Rounds.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commands := [][]string{{"tenants"}, {"tenants", "--json"}, {"tenants", "--debts"}, {"tenants", "--users"}, {"leases"}, {"leases", "--json"}, {"leases", "--all", "--limit", "3"}, {"leases", "-a", "-P"}, {"status", "-P"},
		{"gpus"}, {"gpus", "-P"}, {"gpus", "v01", "--json"}, {"gpus", "nobody"}, {"trades"}, {"trades", "--all"}, {"trades", "--json"}, {"cells", "show"}, {"forecast", "--all"}, {"forecast", "1"}}
	for i := range plan.State.Records {
		commands = append(commands, []string{"explain", plan.State.Records[i].ID.String()})
	}
	for _, args := range commands {
		want, got := s.run(t, args...), run(t, s.end, env, args...)
		if diff := cmp.Diff(refreshed.ReplaceAllString(want.out, ""), refreshed.ReplaceAllString(got.out, "")); diff != "" || got.code != want.code {
			t.Errorf("%v: exit code %d: %s (-journal +server):\n%s", args, got.code, got.err, diff)
		}
		named := run(t, s.end, []string{"FAIRLEASE_CONFIG=" + empty(t)}, append(args, "--server", "unix:"+w.socket)...)
		if named.out != got.out {
			t.Errorf("%v with --server: %s%s", args, named.out, named.err)
		}
	}
	first := plan.State.Records[0].ID.String()
	var want, got map[string]any
	for at, r := range map[*map[string]any]result{&want: s.run(t, "explain", "--json", first), &got: run(t, s.end, env, "explain", "--json", first)} {
		if err := json.Unmarshal([]byte(r.out), at); err != nil {
			t.Fatal(err, r.err)
		}
	}
	for key := range want {
		if _, ok := got[key]; !ok {
			t.Errorf("explain --json has no %s", key)
		}
	}
	r := run(t, s.end, env, "status")
	for _, has := range []string{"round ", "jobs ", "leases ", "POOL", "v100"} {
		if !strings.Contains(r.out, has) {
			t.Errorf("status does not say %q:\n%s%s", has, r.out, r.err)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"explain", "4711"}, failure.No, "not among what you may see"},
		{[]string{"status", "--server", "unix:/nowhere/socket"}, failure.Absent, "cannot be reached at unix:/nowhere/socket"},
		{[]string{"status", "--server", "ftp://x"}, failure.Misuse, "there is no such server"},
		{[]string{"status", "--server", "unix:relative"}, failure.Misuse, "there is no such server"},
	} {
		if r := run(t, s.end, env, c.args...); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: exit code %d: %s", c.args, r.code, r.err)
		}
	}
}

// The whole server on a real PostgreSQL: everything is answered from the journal, a new round is told, and while PostgreSQL is away the
// last good state is.
func TestWeb(t *testing.T) {
	s := tell(t)
	w := serveWeb(t, s, "")
	snap, plan, err := s.store.Rounds.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := plan.State.Records[0].ID.String()
	for path, has := range map[string]string{
		"/status": `"read":`, "/person": `"operator":true`, "/tenants": `"tenant":"nlp"`, "/debts": "[", "/users": "[", "/jobs?limit=3": `"slurm_id"`, "/jobs/" + id: `"words"`,
		"/jobs/" + id + "/gpus": "[", "/leases": `"nodes":["v`, "/leases?all=true&since=2020-01-01T00:00:00Z&limit=5": `"why"`, "/nodes": `"name":"v`, "/nodes/v01": `"jobs":[`,
		"/market": `"trades":[]`, "/trades": "[]", "/rounds?limit=2": `"number":`, fmt.Sprintf("/rounds/%d", plan.Round): `"state"`, "/events": "[",
		"/shares?since=2020-01-01T00:00:00Z": "[", "/shares?until=2027-01-16T00:00:00Z": `"tenant":"nlp"`,
	} {
		if status, _, text := w.ask(t, "/api/v1"+path); status != http.StatusOK || !strings.Contains(text, has) {
			t.Errorf("%s: status %d, no %q: %.300s", path, status, has, text)
		}
	}
	_, header, _ := w.ask(t, "/api/v1/tenants")
	tag := header.Get("ETag")
	plan.Round++
	snap.Round++
	plan.State.Round++
	if err := s.world.Loop.Journal.Commit(t.Context(), snap, plan); err != nil {
		t.Fatal(err)
	}
	until(t, "the next round is shown", func() bool {
		_, header, _ := w.ask(t, "/api/v1/tenants")
		return header.Get("Fairlease-Round") == fmt.Sprint(plan.Round) && header.Get("ETag") != tag
	})

	allow := s.gate(t)
	allow(false)
	until(t, "the server says that the journal is away", func() bool {
		status, _, text := w.ask(t, "/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "has not answered since")
	})
	for path, want := range map[string]int{"/status": 200, "/jobs": 200, "/jobs/" + id: 200, "/leases": 200, "/rounds": 503, "/events": 503, "/jobs/4711": 503} {
		status, header, text := w.ask(t, "/api/v1"+path)
		if status != want || header.Get("Fairlease-Silent-Since") == "" || header.Get("Fairlease-Round") != fmt.Sprint(plan.Round) {
			t.Errorf("%s while PostgreSQL is away: status %d, %v: %.200s", path, status, header, text)
		}
	}
	allow(true)
	until(t, "the journal is there again", func() bool {
		status, header, _ := w.ask(t, "/api/v1/rounds")
		return status == http.StatusOK && header.Get("Fairlease-Silent-Since") == ""
	})
	if !strings.Contains(w.log.String(), "the journal cannot be read") {
		t.Errorf("the log does not tell of it:\n%s", w.log)
	}
}

// gate gives a function that lets nobody into the story's database, or lets all in again.
func (s *story) gate(t *testing.T) func(open bool) {
	t.Helper()
	var dsn string
	for _, kv := range s.env {
		if v, ok := strings.CutPrefix(kv, "FAIRLEASE_DATABASE_URL="); ok {
			dsn = v
		}
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := config.Database
	config.Database = "postgres"
	db, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	return func(yes bool) {
		t.Helper()
		for _, text := range []string{fmt.Sprintf("alter database %s allow_connections %v", name, yes), fmt.Sprintf("select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s' and not %v", name, yes)} {
			if _, err := db.Exec(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A user who is no operator sees its own tenants' jobs, as the journal knows its tenants.
func TestWebOfATenant(t *testing.T) {
	dsn, lead := leading(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	journal := lead.Journal()
	if _, err := journal.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	rounds := journaltest.NewStory(7, 6, 20)
	var plan cluster.Plan
	for range 6 {
		var snap cluster.Snapshot
		snap, plan = rounds.Next()
		if err := journal.Commit(t.Context(), snap, plan); err != nil {
			t.Fatal(err)
		}
	}
	if err := journal.Enrol(t.Context(), []cluster.Member{{Tenant: "bio", User: me.Username}, {Tenant: "chem", User: "else"}}); err != nil {
		t.Fatal(err)
	}
	w := serveWeb(t, &story{env: []string{"FAIRLEASE_DATABASE_URL=" + dsn}}, "")
	_, _, text := w.ask(t, "/api/v1/person")
	if !strings.Contains(text, `"tenants":["bio"]`) {
		t.Fatalf("the server knows me as %s", text)
	}
	s, err := store.Open(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	bio, err := s.Jobs.LeasesBetween(t.Context(), &store.LeaseWindow{Tenants: []string{"bio"}, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Jobs.LeasesBetween(t.Context(), &store.LeaseWindow{Limit: 1000})
	if err != nil || len(bio) == 0 || len(bio) >= len(all) {
		t.Fatalf("%d of %d leases are bio's, %v", len(bio), len(all), err)
	}
	for i := range bio {
		if bio[i].Tenant != "bio" {
			t.Errorf("a lease of %s", bio[i].Tenant)
		}
	}
	for i, l := range all { // a page after each lease, too
		rest, err := s.Jobs.LeasesBetween(t.Context(), &store.LeaseWindow{Before: &store.LeaseName{Granted: l.Granted, Job: l.Job, Term: l.Term}, Limit: 1})
		if err != nil || len(rest) != min(1, len(all)-i-1) || len(rest) == 1 && (rest[0].Job != all[i+1].Job || rest[0].Term != all[i+1].Term) {
			t.Fatalf("after lease %d: %+v, %v", i, rest, err)
		}
	}
	some, err := s.Rounds.EventsBefore(t.Context(), []string{"bio"}, 0, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range some {
		if e := &some[i]; e.Tenant != "bio" && (e.SlurmID != nil || e.Node == "") {
			t.Errorf("an event of others: %+v", e)
		}
	}
	db := storetest.Connect(t, dsn)
	if _, err := db.Exec(t.Context(), `insert into events (round, ordinal, at, kind, job_key, node, text) values ($1, 9999, now(), 'drift', 999999, 'v01', 'of a job that is pruned')`, plan.Round); err != nil {
		t.Fatal(err)
	}
	for who, tenants := range map[string][]string{"a tenant": {"bio"}, "an operator": nil} {
		list, err := s.Rounds.EventsBefore(t.Context(), tenants, 0, 0, 1)
		if err != nil || len(list) != 1 || (list[0].Ordinal == 9999) != (tenants == nil) || tenants == nil && list[0].SlurmID == nil {
			t.Errorf("%s reads of a job that is pruned: %+v, %v", who, list, err)
		}
	}
	shares, err := s.Tenants.Shares(t.Context(), plan.At.Time().Add(-time.Hour), plan.At.Time().Add(time.Hour), 5*time.Minute, 1000)
	if err != nil || len(shares) == 0 {
		t.Errorf("%d shares, %v", len(shares), err)
	}
	for i := 1; i < len(shares); i++ {
		if a, b := &shares[i-1], &shares[i]; a.Tenant == b.Tenant && a.Pool == b.Pool && !a.At.Before(b.At) {
			t.Errorf("%v is not before %v", a.At, b.At)
		}
	}
	key := plan.State.Records[0].Key
	if _, err := db.Exec(t.Context(), `insert into gpu_use values ('2027-01-01T10:00Z', $1, 'v100', 7200000, 3600000, 100, 1800000, 3600000, 0, 0, 0, 0, 0, 0, 3.6e8, 3600000, 77)`, key); err != nil {
		t.Fatal(err)
	}
	hours, err := s.GPUs.Hours(t.Context(), key, 10)
	if err != nil || len(hours) != 1 || hours[0].Held != 7_200_000 || hours[0].Util == nil || *hours[0].Util != 0.5 || *hours[0].Power != 100 || hours[0].Tensor != nil || hours[0].Memory != 77 {
		t.Errorf("%+v, %v", hours, err)
	}
}
