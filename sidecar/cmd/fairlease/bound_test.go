package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// bindAll is a journal of a cluster where one tenant came first, with jobs that cannot be stopped.
func bindAll(t *testing.T) *story {
	t.Helper()
	dsn := storetest.Database(t)
	s, err := store.Open(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	lead, err := s.Acquire(context.Background(), "login1.example.org:4711")
	if err != nil {
		t.Fatal(err)
	}
	set := simtest.Product()
	set.Interval = cluster.Minute
	w := simtest.New(t, set, simtest.Nodes("v", "v100", 2, 8), "nlp", "vision")
	w.Loop.Journal = lead.Journal()
	submit := func(user, tenant string, gpus int, change func(*sim.Work)) {
		work := sim.Work{Name: "train", User: user, Account: tenant, Partition: "gpu", Request: simtest.Gang(gpus), Runs: 100 * cluster.Hour}
		change(&work)
		w.Virtual.Submit(work)
	}
	for range 2 {
		submit("alice", "nlp", 2, func(j *sim.Work) { j.Interactive, j.Limit = true, 2*cluster.Day })
		submit("bob", "nlp", 4, func(j *sim.Work) { j.NoRequeue = true })
	}
	w.Run(30 * cluster.Minute)
	submit("carol", "vision", 1, func(j *sim.Work) { j.Saves, j.Command = sim.Never, cluster.Untyped })
	submit("carol", "vision", 1, func(j *sim.Work) {}) // it saves
	submit("dave", "stranger", 1, func(j *sim.Work) {})
	w.Run(50 * cluster.Minute)
	return &story{env: []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}, store: s, world: w, end: w.Now().Time().Add(3 * time.Second)}
}

// GPUs that cannot be taken back are listed by tenant, user and way, with the time that they have been so.
func TestTenantsBound(t *testing.T) {
	s := bindAll(t)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"tenants-bound", []string{"tenants", "--bound"}},
		{"tenants-bound-short", []string{"tenants", "--bound=40m"}},
		{"tenants-bound-parsable", []string{"tenants", "--bound=2h", "-P"}},
		{"tenants-bound-json", []string{"tenants", "--bound", "--json"}},
	} {
		r := s.run(t, c.args...)
		if r.code != 0 || r.err != "" {
			t.Errorf("%v: exit code %d\n%s", c.args, r.code, r.err)
		}
		golden(t, c.name, r.out)
	}
	var list []view.BoundGPUs
	if err := json.Unmarshal([]byte(s.run(t, "tenants", "--bound", "--json").out), &list); err != nil {
		t.Fatal(err)
	}
	gpus, beyond := cluster.GPUCount(0), cluster.MicroGPU(0)
	for _, x := range list {
		if gpus += x.GPUs; x.Tenant == "nlp" {
			beyond += x.Beyond
		}
	}
	due := cluster.MicroGPU(0)
	for _, x := range s.world.Last.Tenants {
		if x.Tenant == "nlp" {
			due = x.Entitlement
		}
	}
	if gpus != cluster.CountOf(14) || beyond != 12*cluster.WholeGPU-due {
		t.Errorf("%s GPUs are bound, %d millionths of nlp's beyond its due of %d", gpus, beyond, due)
	}

	w := serveWeb(t, s, "")
	for _, args := range [][]string{{"tenants", "--bound"}, {"tenants", "--bound=40m", "--json"}} {
		want, got := s.run(t, args...), run(t, s.end, w.offline(t), args...)
		if want.out != got.out {
			t.Errorf("%v without a database: %s%s\nwant %s", args, got.out, got.err, want.out)
		}
	}
	role := run(t, s.end, users(t, s)["tenant"], "tenants", "--bound")
	if role.code != 0 || !strings.Contains(role.out, "alice") || strings.Contains(role.out, "carol") || strings.Contains(role.out, "dave") {
		t.Errorf("a user of nlp reads: exit code %d\n%s%s", role.code, role.out, role.err)
	}
}

// Nothing is bound in most clusters at most times; then a sentence says so. Programs get an empty list.
func TestTenantsBoundNone(t *testing.T) {
	s := tell(t)
	for args, want := range map[string]string{
		"--bound":        "no GPUs are bound: every running job can be stopped soon\n\nas of round 14 at ",
		"--bound --json": "[]\n",
		"--bound -P":     "TENANT|USER|WAY|POOL|JOBS|GPUS|LONGER|BEYOND|SINCE|UNTIL|JOB\n",
	} {
		if r := s.run(t, append([]string{"tenants"}, strings.Fields(args)...)...); r.code != 0 || !strings.HasPrefix(r.out, want) || r.err != "" {
			t.Errorf("tenants %s: exit code %d: %q, want %q\n%s", args, r.code, r.out, want, r.err)
		}
	}
}

// A wrong span is refused before anything is asked.
func TestTenantsBoundMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"--bound=soon":       "fairlease: --bound: \"soon\" is no length of time: write it like 10s",
		"--bound=-1h":        "fairlease: --bound: \"-1h\" is no length of time",
		"--bound 4h":         "fairlease: \"4h\" is no argument of fairlease tenants\nnext: write --bound=4h\n",
		"--bound nlp":        "fairlease: fairlease tenants takes no argument",
		"4h":                 "fairlease: fairlease tenants takes no argument",
		"--bound --users":    "fairlease: if any flags in the group [debts users bound] are set none of the others can be",
		"--bound= ":          "fairlease: --bound: \"\" is no length of time",
		"--bound=1h --debts": "fairlease: if any flags in the group",
	} {
		r := run(t, time.Time{}, []string{"FAIRLEASE_CONFIG=" + empty(t)}, append([]string{"tenants"}, strings.Fields(args)...)...)
		if r.code != failure.Misuse || !strings.HasPrefix(r.err, want) || !strings.Contains(r.err, "\nnext: ") {
			t.Errorf("tenants %s: exit code %d: %s, want %s", args, r.code, r.err, fmt.Sprintf("%d: %s", failure.Misuse, want))
		}
	}
}
