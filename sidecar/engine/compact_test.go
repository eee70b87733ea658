package engine_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// scattered returns a world of four nodes of four GPUs. On each, one job of tenant a and two of b run, and one GPU is
// idle. A gang of b that waits for a whole node has no right to it, since b has its share.
func scattered(t *testing.T, change func(*sim.Work), set func(*cluster.Settings)) (w *world, gang cluster.JobID) {
	w = newWorld(t, simtest.Product(), []int{4, 4, 4, 4}, "a", "b")
	set(&w.Settings)
	var ids []cluster.JobID
	for range 8 {
		for _, tenant := range []string{"a", "b"} {
			ids = append(ids, w.submit(tenant, 1, forever, change))
		}
	}
	w.Run(minute)
	left := map[string]bool{}
	for _, id := range ids {
		if j := w.Job(id); j.Account == "a" && !left[j.Holds[0].Node] {
			left[j.Holds[0].Node] = true
			w.Cancel(id)
		}
	}
	if w.Run(minute); len(left) != 4 {
		t.Fatalf("a GPU is idle on %d nodes, want one on each of 4", len(left))
	}
	return w, w.submit("b", 4, forever, nil)
}

// Idle GPUs of four nodes suffice for a gang. At the end of the term three jobs leave a node to it, and run on the idle
// GPUs of the others right away. Without moves the gang waits.
func TestJobsMoveForAGang(t *testing.T) {
	for _, percent := range []int{25, 0} {
		w, gang := scattered(t, nil, func(s *cluster.Settings) { s.CompactPercent = percent })
		w.Run(term - 2*minute + w.RequeueDelay + minute)
		if percent == 0 {
			w.state(gang, cluster.Waiting)
			continue
		}
		w.state(gang, cluster.Running)
		if a, b := w.on("a", "v100"), w.on("b", "v100"); a != 4 || b != 12 {
			t.Errorf("a has %d GPUs and b %d, want 4 and 12", a, b)
		}
		moved := w.done(cluster.Reclaim)
		for _, d := range moved {
			if notices := w.done(cluster.Notify, d.ID); len(notices) != 1 || notices[0].Reason.For != w.Record(gang).Key {
				t.Errorf("job %s moves with the notices %+v", d.ID, notices)
			}
		}
		if len(moved) != 3 {
			t.Errorf("%d jobs moved, want 3", len(moved))
		}
		w.Run(hour)
		if n := len(w.done(cluster.Reclaim)); n != 3 {
			t.Errorf("%d jobs were requeued in another hour, in which nothing changed", n-3)
		}
		w.books()
	}
}

// Jobs do not move where that would destroy their work, or more of them than reclaim.max.
func TestMovesForAGangHaveLimits(t *testing.T) {
	for name, limit := range map[string]struct {
		job, gang func(*sim.Work)
		set       func(*cluster.Settings)
	}{
		"jobs that never save":        {neverSaves, nil, func(*cluster.Settings) {}},
		"starts that cost 10 minutes": {nil, nil, func(s *cluster.Settings) { s.StartCost = 10 * minute }},
		"two reclaims a round":        {nil, nil, func(s *cluster.Settings) { s.MaxReclaims = 2 }},
		"a gang of a minute":          {nil, func(j *sim.Work) { j.Limit = minute }, func(*cluster.Settings) {}},
	} {
		w, gang := scattered(t, limit.job, limit.set)
		if limit.gang != nil {
			w.Cancel(gang)
			gang = w.submit("b", 4, forever, limit.gang)
		}
		w.Run(term)
		w.state(gang, cluster.Waiting)
		if n := len(w.done(cluster.Notify)); n > 0 {
			t.Errorf("%s: %d have notices", name, n)
		}
	}
}

// Under random load every job that gets notice of a move has GPUs again as soon as Slurm lets it start, or keeps those that
// it has: a tenant loses the cost of the moves, and never GPUs.
func TestMovingJobsKeepTheirGPUs(t *testing.T) {
	moved := 0
	rapid.Check(t, func(rt *rapid.T) {
		var gpus []int
		for range rapid.IntRange(3, 6).Draw(rt, "nodes") {
			gpus = append(gpus, 4)
		}
		w := newWorld(t, simtest.Product(), gpus, "a", "b", "c")
		for range rapid.IntRange(20, 40).Draw(rt, "jobs") {
			size := rapid.SampledFrom([]int{1, 1, 1, 2, 4, 8}).Draw(rt, "gpus")
			w.submit(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "tenant"), size,
				cluster.Span(rapid.IntRange(10, 150).Draw(rt, "minutes"))*minute, func(j *sim.Work) { j.Request.PerNode = min(size, 4) })
		}
		leases := map[cluster.JobKey]*cluster.Lease{}
		left := map[cluster.JobKey]cluster.Instant{} // by job that moves, the end of its lease
		check := w.Check
		w.Check = func(r loop.Report) {
			check(r)
			clear(leases)
			for i := range r.Plan.State.Leases {
				leases[r.Plan.State.Leases[i].Job] = &r.Plan.State.Leases[i]
			}
			for _, cl := range r.Plan.State.Claims {
				if l := leases[cl.Job]; l != nil && l.State == cluster.Noticed && left[cl.Job] == 0 {
					left[cl.Job] = l.End
					moved++
				}
			}
			for job := range r.Plan.State.All() {
				end, moves := left[job.Key]
				if l := leases[job.Key]; job.Done > 0 || moves && l != nil && l.End > end {
					delete(left, job.Key)
				} else if moves && r.Plan.At > end.Add(w.RequeueDelay+w.Completing+2*w.Settings.Interval) {
					rt.Fatalf("at %s job %s waits, whose lease ended at %s", r.Plan.At.Sub(simtest.Start), job.ID, end.Sub(simtest.Start))
				}
			}
		}
		w.Run(2 * hour)
	})
	if moved == 0 {
		t.Error("no job ever moved")
	}
}

// Nothing moves for a gang that would take its account beyond a limit of Slurm's: its grant would be in vain.
func TestNothingMovesForAGangBeyondALimit(t *testing.T) {
	for _, most := range []int64{12, 11} {
		w, gang := scattered(t, nil, func(s *cluster.Settings) { s.CompactPercent = 25 })
		w.SetLimits(cluster.Limits{Associations: []cluster.Association{{Account: "b", Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: most}}}}})
		w.Run(term - 2*minute + w.RequeueDelay + minute)
		if most == 12 {
			w.state(gang, cluster.Running)
			continue
		}
		w.Run(2 * hour)
		if n := len(w.done(cluster.RevokeGrant, gang)); n > 0 {
			t.Errorf("the gang was granted a lease %d times that Slurm does not start", n)
		}
		w.books()
	}
}
