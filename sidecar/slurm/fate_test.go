package slurm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A refusal proves nothing: the record afterwards does.
func TestARefusalIsJudgedByLooking(t *testing.T) {
	t.Parallel()
	const until = 2_000_000
	moved := fmt.Sprintf(`"eligible_time":{"set":true,"infinite":false,"number":%d}`, until)
	pinned := `"required_nodes":"v[1-2]","eligible_time":{"set":true,"infinite":false,"number":100}`
	for _, c := range []struct {
		name   string
		action cluster.Action
		code   int
		record string // "" = unreadable
		ok     bool
		want   string
		unsure bool
	}{
		{"a gate that moved", cluster.Action{Verb: cluster.Gate, Until: until * 1000}, 2015, moved, true, "", false},
		{"a gate that did not", cluster.Action{Verb: cluster.Gate, Until: until * 1000}, 2015, pinned, false, "Slurm error 2015", false},
		{"nobody can look", cluster.Action{Verb: cluster.Gate, Until: until * 1000}, 2015, "", false, "Slurm error 2015", true},
		{"a grant that was made", cluster.Action{Verb: cluster.Grant, Nodes: []string{"v2", "v1"}}, 2016, pinned, true, "", false},
		{"half a grant", cluster.Action{Verb: cluster.Grant, Nodes: []string{"v2"}}, 2016, pinned, false, "Slurm error 2016", true},
		{"no right", cluster.Action{Verb: cluster.Gate, Until: until * 1000}, 2010, moved, false, "Slurm error 2010", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newRecorded(t, 44)
			f.on("GET /slurm/v0.0.44/jobs/", jobs(900, waitingJob(7, ""), waitingJob(8, "")))
			cl := f.client()
			f.see(cl)
			for _, id := range []int{7, 8} {
				f.on(fmt.Sprintf("POST /slurm/v0.0.44/job/%d", id), status(500, text(fmt.Sprintf(`{"errors":[{"error_number":%d,"error":"Slurm's words"}]}`, c.code))))
				if c.record != "" {
					f.on(fmt.Sprintf("GET /slurm/v0.0.44/job/%d", id), jobs(900, waitingJob(id, c.record)))
				}
			}
			a, b := c.action, c.action
			a.Record, a.ID, b.Record, b.ID = 7, cluster.JobID{ID: 7}, 8, cluster.JobID{ID: 8}
			for _, o := range cl.Apply(t.Context(), []cluster.Action{a, b}) {
				if o.OK != c.ok || !strings.Contains(o.Error, c.want) || strings.Contains(o.Error, "outcome unknown") != c.unsure {
					t.Errorf("%+v", o)
				}
			}
		})
	}
}

// After three unanswered changes the rest of the plan is dropped. Refusals do not count: one
// user's job does not stop the others.
func TestThreeUnansweredChangesEndAPlan(t *testing.T) {
	t.Parallel()
	actions := make([]cluster.Action, 0, 20)
	for id := int64(1); id <= 20; id++ {
		actions = append(actions, cluster.Action{Verb: cluster.Open, Record: id, ID: cluster.JobID{ID: id}})
	}
	for name, c := range map[string]struct {
		answer answer
		tried  int
	}{
		"nobody answers":      {hijack(""), lostMax},
		"slurmctld is silent": {status(500, text(`{"errors":[{"error_number":1000,"error":"Unexpected message received"}]}`)), lostMax},
		"refused":             {status(422, text(`{"errors":[{"error_number":2015,"error":"Requested partition configuration not available now"}]}`)), len(actions)},
	} {
		f := newRecorded(t, 44)
		f.on("GET /slurm/v0.0.44/jobs/", jobs(900))
		for i := range actions {
			f.on(fmt.Sprintf("POST /slurm/v0.0.44/job/%d", i+1), c.answer)
		}
		cl := f.client()
		f.see(cl)
		out := cl.Apply(t.Context(), actions)
		tried := 0
		for i := range actions {
			tried += f.count(fmt.Sprintf("POST /slurm/v0.0.44/job/%d", i+1))
		}
		if last := out[len(out)-1]; tried != c.tried || last.OK || (c.tried == lostMax) != (last.Skipped && strings.Contains(last.Error, "the next one looks first")) {
			t.Errorf("%s: %d tried, want %d; the last: %+v", name, tried, c.tried, last)
		}
	}
}

func TestAnOldPlanIsDropped(t *testing.T) {
	t.Parallel()
	if why := (&courier{until: time.Now().Add(-time.Second)}).stopped(); !strings.Contains(why, "more than a minute old") {
		t.Errorf("stopped: %q", why)
	}
	if why := (&courier{until: time.Now().Add(planLife)}).stopped(); why != "" {
		t.Errorf("stopped: %q", why)
	}
}
