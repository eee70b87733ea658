package engine_test

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// A node list means the same in brief form and spelled out.
func TestListsOfNodesInBrief(t *testing.T) {
	brief := simtest.Crowd(2000, 10)
	excluding(&brief, 100)
	for i := range brief.Cases {
		if c := &brief.Cases[i]; i%5 == 0 && c.Job.State == cluster.Waiting {
			c.Job.NodeList = []string{"n[00010-00029,00350]", "n00005"}
			c.Record.UserNodes = c.Job.NodeList
		}
	}
	whole := brief
	whole.Cases = slices.Clone(brief.Cases)
	spelled := func(list []string) []string {
		names, err := hostlist.Expand(strings.Join(list, ","))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	for i := range whole.Cases {
		c := &whole.Cases[i]
		c.Job.Exclude, c.Job.NodeList, c.Record.UserNodes = spelled(c.Job.Exclude), spelled(c.Job.NodeList), spelled(c.Record.UserNodes)
	}
	a, b := engine.Decide(brief), engine.Decide(whole)
	if len(a.State.Leases) < 50 || len(a.Actions) == 0 {
		t.Fatalf("%d leases, %d actions", len(a.State.Leases), len(a.Actions))
	}
	if diff := cmp.Diff(a.State.Leases, b.State.Leases); diff != "" {
		t.Errorf("leases (-in brief +spelled out):\n%s", diff)
	}
	if diff := cmp.Diff(a.Statuses, b.Statuses); diff != "" {
		t.Errorf("statuses (-in brief +spelled out):\n%s", diff)
	}
}

// 50,000 jobs (10,000 in the short test) each exclude 1,000 nodes by a list of 20 characters. They cost the
// engine and the journal a small multiple of these characters, not the 1,000 names.
func TestListsOfNodesCostNoMoreThanTheirLength(t *testing.T) {
	const most = 4096 // bytes a job
	jobs := seeds.Some(10_000, 50_000)
	cost := func(nodes int) (decided uint64, written int) {
		s := simtest.Crowd(jobs, 100)
		excluding(&s, nodes)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		plan := engine.Decide(s)
		runtime.ReadMemStats(&after)
		for _, v := range []any{s.Cases[:1000], plan.State.Records[:1000]} {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			written += len(text)
		}
		return after.TotalAlloc - before.TotalAlloc, written
	}
	bare, bareText := cost(0)
	listed, text := cost(1000)
	if more := (int64(listed) - int64(bare)) / int64(jobs); more > most {
		t.Errorf("a list makes the engine use %d bytes more for each job", more)
	}
	if more := (text - bareText) / 1000; more > 100 {
		t.Errorf("a list makes the journal write %d bytes more for each job", more)
	}
	t.Logf("%d and %d bytes more for each job", (int64(listed)-int64(bare))/int64(jobs), (text-bareText)/1000)
}
