package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Whatever the account tree, the limits and the jobs are: leases of jobs that run or were just granted never exceed a limit
// together, and what is granted in one round fits all at once.
func TestLeasesNeverExceedLimits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, name) }
		nodes := simtest.Nodes("n", "v100", draw("nodes", 1, 4), 4)
		w := newWorldOn(t, simtest.Product(), nodes, "a", "b")
		w.Settings.RecallFirst = draw("recall", 0, 1) == 1
		var l cluster.Limits
		for _, account := range []string{"a", "b"} {
			c := []cluster.Cap{}
			if draw("gpus", 0, 2) > 0 {
				c = append(c, cluster.Cap{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: int64(draw("of", 0, 8))})
			}
			if draw("jobs", 0, 2) == 0 {
				c = append(c, cluster.Cap{Rule: cluster.GrpJobs, Max: int64(draw("of", 0, 5))})
			}
			if len(c) > 0 {
				l.Associations = append(l.Associations, cluster.Association{Account: account, Caps: c})
			}
		}
		all := cluster.Cap{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: int64(draw("all", 1, 16))}
		l.Associations = append(l.Associations, cluster.Association{Account: "root", Caps: []cluster.Cap{all}})
		w.alter = func(s *cluster.Observation) { s.Limits = l }
		account := map[cluster.JobKey]string{}
		old := w.Check
		w.Check = func(r loop.Report) {
			if old != nil {
				old(r)
			}
			for i := range r.Plan.State.Records {
				account[r.Plan.State.Records[i].Key] = r.Plan.State.Records[i].Account
			}
			used, jobs, sum := map[string]int64{}, map[string]int64{}, int64(0)
			for i := range r.Plan.State.Leases {
				x := &r.Plan.State.Leases[i]
				used[account[x.Job]] += int64(x.Size.Devices)
				jobs[account[x.Job]]++
				sum += int64(x.Size.Devices)
			}
			granted := map[string]bool{} // in this round; jobs that started before the first look may be beyond the limits
			for i := range r.Plan.State.Leases {
				if x := &r.Plan.State.Leases[i]; x.State == cluster.Granted && x.Granted == r.Plan.At {
					granted[account[x.Job]], granted["root"] = true, true
				}
			}
			over := ""
			for _, a := range l.Associations {
				for _, c := range a.Caps {
					n := used[a.Account]
					if c.TRES == "" {
						n = jobs[a.Account]
					} else if a.Account == "root" {
						n = sum
					}
					if n > c.Max && granted[a.Account] {
						over = fmt.Sprintf("%s has %s, and leases hold %d", a.Account, c, n)
					}
				}
			}
			if over != "" {
				rt.Fatalf("%s: %+v", over, r.Plan.State.Leases)
			}
		}
		for range draw("submissions", 1, 20) {
			n := draw("gang", 1, 4)
			w.submit(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "tenant"), n, cluster.Span(draw("runs", 1, 200))*minute, func(j *sim.Work) {
				j.User = rapid.SampledFrom([]string{"u", "v"}).Draw(rt, "user")
			})
			w.Run(cluster.Span(draw("wait", 0, 30)) * minute)
		}
		w.Run(4 * hour)
	})
}

// Within a full limit the jobs of a tenant take turns as ever: the lease of one ends for another of the same account.
func TestJobsTakeTurnsWithinALimit(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
	w.alter = func(s *cluster.Observation) {
		s.Limits.Associations = []cluster.Association{{Account: "a", Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: 2}}}}
	}
	var mine []cluster.JobID
	for range 4 {
		mine = append(mine, w.submit("a", 1, 40*hour, nil))
	}
	w.Run(12 * hour)
	for _, id := range mine {
		if got := w.Received(id); got < cluster.Times(1, 3*hour) {
			t.Errorf("job %s received %v of 24 GPU hours", id, got.Hours())
		}
	}
	sum := cluster.GPUTime(0)
	for _, id := range mine {
		sum += w.Received(id)
	}
	if most := cluster.Times(2, 12*hour); sum > most*102/100 || sum < most*95/100 { // the last two started before they were gated
		t.Errorf("they received %v GPU hours together, want about 24", sum.Hours())
	}
	w.books()
}

// A tenant at its limit is due nothing more: the other one has all the rest, and loses nothing to a flood.
func TestATenantAtItsLimit(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
	w.alter = func(s *cluster.Observation) {
		s.Limits.Associations = []cluster.Association{{Account: "a", Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: 1}}}}
	}
	var honest []cluster.JobID
	w.submit("a", 1, 30*hour, nil)
	w.Run(minute)
	for range 7 {
		honest = append(honest, w.submit("b", 1, 30*hour, nil))
	}
	w.Run(minute)

	for range 50 {
		w.submit("a", 1, hour, nil)
	}
	w.Run(30 * minute)
	for _, id := range honest {
		w.state(id, cluster.Running)
	}
	if n := len(w.done(cluster.Reclaim, honest...)); n > 0 {
		t.Errorf("%d jobs of the other tenant were stopped for jobs that cannot start", n)
	}
	if got := w.Standing("a", "v100").Demand; got > cluster.WholeGPU {
		t.Errorf("a demand of %d millionths of a GPU counts, want the limit's one", got)
	}
	w.Run(8 * hour)
	if n := len(w.done(cluster.Reclaim, honest...)); n > 0 {
		t.Errorf("%d jobs of the other tenant were stopped for jobs that cannot start", n)
	}
	w.books()
}

// Jobs that use up a limit keep their leases where no other job of the account waits: nothing is gained by stopping them.
func TestAFullLimitStopsNobody(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
	w.SetLimits(cluster.Limits{Associations: []cluster.Association{{Account: "a", Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: 3}}}}})
	var ids []cluster.JobID
	for range 3 {
		ids = append(ids, w.submit("a", 1, 40*hour, nil))
	}
	for range 5 {
		ids = append(ids, w.submit("b", 1, 40*hour, nil))
	}
	w.Run(6 * hour)
	if n := len(w.done(cluster.Reclaim)); n > 0 {
		t.Errorf("%d jobs were stopped, though nobody waits", n)
	}
	for _, id := range ids {
		w.state(id, cluster.Running)
	}
}
