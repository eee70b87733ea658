package engine_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// destroyed holds the real cost of stops to jobs, as the virtual cluster measures it.
type destroyed struct {
	cost, run map[cluster.JobID]cluster.Span
	lost      map[cluster.JobID]cluster.GPUTime // of it, the lost work
	never     map[cluster.JobID]bool
}

// watch adds up the outcomes of attempts. Saves that jobs make by themselves are no cost of stops.
func (d *destroyed) watch(e sim.Event) {
	if e.What != sim.Requeued && e.What != sim.Ended || e.Start == 0 {
		return
	}
	d.run[e.Job] += e.At.Sub(e.Start)
	d.cost[e.Job] += e.Cold + e.Loading
	if e.What == sim.Requeued {
		d.cost[e.Job] += e.Lost + e.Terminating
		d.lost[e.Job] += e.Work.Request.Size.Over(e.Lost)
		d.never[e.Job] = e.Work.Saves == sim.Never
	}
}

// The theorems of package stop are tested on random clusters, save behaviour, costs, budgets and restarts of
// the daemon, with more waiting work than fits. Stops cost a job at most allowance + overhead × its run time,
// and every job ends. The booked loss is at least the real loss, and equals it for jobs that never save.
func TestStopsCostNoMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		set := simtest.Product()
		set.StopAllowance = cluster.Span(rapid.IntRange(0, 60).Draw(rt, "allowance")) * cluster.Minute
		set.StopOverheadMilli = int64(rapid.IntRange(0, 100).Draw(rt, "overhead"))
		if set.StopAllowance == 0 && set.StopOverheadMilli == 0 {
			set.StopAllowance = cluster.Minute // otherwise the rule is off
		}
		set.StopTotalMilli = rapid.SampledFrom([]int64{0, 10, 30}).Draw(rt, "total")
		set.Interval = cluster.Span(rapid.SampledFrom([]int{10, 30, 60}).Draw(rt, "interval")) * cluster.Second
		set.Threshold = cluster.Span(rapid.IntRange(0, 15).Draw(rt, "threshold")) * cluster.Minute
		set.RecallFirst = rapid.Bool().Draw(rt, "recall")
		size := rapid.SampledFrom([]int{2, 4, 8}).Draw(rt, "size")
		nodes := simtest.Nodes("n", "v100", rapid.IntRange(1, 3).Draw(rt, "nodes"), size)
		tenants := []string{"x", "y", "z"}[:rapid.IntRange(1, 3).Draw(rt, "tenants")]
		w := simtest.New(t, set, nodes, tenants...)
		costs := sim.Costs{Save: cluster.Span(rapid.IntRange(0, 20).Draw(rt, "save")) * cluster.Second,
			ColdStart: cluster.Span(rapid.IntRange(0, 600).Draw(rt, "start")) * cluster.Second, Completing: cluster.Second}
		w.Costs, w.Settings.StartCost = costs, costs.ColdStart
		d := destroyed{map[cluster.JobID]cluster.Span{}, map[cluster.JobID]cluster.Span{}, map[cluster.JobID]cluster.GPUTime{}, map[cluster.JobID]bool{}}
		w.Watch = d.watch
		booked, most, jobs := map[cluster.JobKey]cluster.GPUTime{}, map[cluster.JobKey]cluster.GPUTime{}, map[cluster.JobID]cluster.JobKey{}
		book := func(p *cluster.Plan) {
			for _, x := range p.Losses {
				booked[x.Job] += x.Time
				most[x.Job] += x.Most
			}
			for r := range p.State.All() {
				jobs[r.ID] = r.Key
			}
		}
		w.Check = func(r loop.Report) { book(&r.Plan) }
		submit := func(minutes int) cluster.JobID {
			j := sim.Work{User: "u", Account: rapid.SampledFrom(tenants).Draw(rt, "tenant"), Partition: "gpu", Command: cluster.Untyped,
				Request: simtest.Gang(rapid.IntRange(1, size).Draw(rt, "gpus")), Runs: cluster.Span(minutes) * cluster.Minute,
				Saves: rapid.SampledFrom([]sim.Saves{sim.AtEnd, sim.AtNotice, sim.Periodic, sim.Never, sim.Never}).Draw(rt, "saves")}
			if j.Saves == sim.Periodic {
				j.Every = cluster.Span(rapid.IntRange(10, 120).Draw(rt, "every")) * cluster.Minute
			}
			return w.Virtual.Submit(j)
		}
		var ids []cluster.JobID
		for range rapid.IntRange(1, 8).Draw(rt, "jobs") {
			ids = append(ids, submit(rapid.IntRange(1, 600).Draw(rt, "minutes")))
		}
		done := func() (n int) {
			for _, id := range ids {
				if s := w.Job(id).State; s == cluster.Done || s == "" {
					n++
				}
			}
			return n
		}
		restarts := rapid.Bool().Draw(rt, "restarts")
		for hours := 0; done() < len(ids); hours++ {
			if hours > 60*24 {
				rt.Fatalf("after 60 days %d of %d jobs have ended, though none has more than 10 hours of work", done(), len(ids))
			}
			if hours%2 == 0 { // there is always more to do
				submit(rapid.IntRange(1, 240).Draw(rt, "more minutes"))
			}
			if restarts && hours%7 == 0 {
				w.Loop = &loop.Loop{Cluster: w.Loop.Cluster, Journal: w.Loop.Journal, Decide: engine.Decide, Configure: w.Loop.Configure}
			}
			w.Run(hour)
		}
		book(&w.Last)
		for r := range w.Last.State.All() {
			if s := r.Stopping; s != nil && len(s.GPUs) > 0 { // it cleans up
				booked[r.Key] += cluster.Times(s.GPUs[0].Size.Devices, s.Work)
				most[r.Key] += cluster.Times(s.GPUs[0].Size.Devices, s.Most)
			}
		}
		for id, lost := range d.lost {
			if got := booked[jobs[id]]; got < lost || d.never[id] && got != lost {
				rt.Errorf("job %s lost %d GPU-ms to its stops (it never saves: %v), and %d are booked", id, lost, d.never[id], got)
			}
		}
		for key, lost := range booked {
			if most[key] < lost {
				rt.Errorf("the books have %d GPU-ms as lost by job #%d, and at most %d", lost, key, most[key])
			}
		}
		for id, cost := range d.cost {
			// A stop happens one round after the moment that was checked against the budget.
			most := set.StopAllowance + d.run[id]*cluster.Span(set.StopOverheadMilli)/1000 + 2*set.Interval
			if cost > most {
				rt.Errorf("job %s: stops cost it %s in %s, at most %s are within its budget", id, cost, d.run[id], most)
			}
		}
	})
}

// Many jobs wait, each with an allowance of its own. All their stops together cost at most stop.total of the
// run time, plus the savings. Every job still ends.
func TestStopsCostNoMoreThanTheTotal(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		set := simtest.Product()
		set.StopTotalMilli = int64(rapid.IntRange(5, 50).Draw(rt, "total"))
		set.Interval = cluster.Span(rapid.SampledFrom([]int{10, 30}).Draw(rt, "interval")) * cluster.Second
		nodes := rapid.IntRange(1, 3).Draw(rt, "nodes")
		tenants := []string{"x", "y", "z"}[:rapid.IntRange(1, 3).Draw(rt, "tenants")]
		w := simtest.New(t, set, simtest.Nodes("n", "v100", nodes, 4), tenants...)
		costs := sim.Costs{ColdStart: cluster.Span(rapid.IntRange(0, 300).Draw(rt, "start")) * cluster.Second, Completing: cluster.Second}
		w.Costs, w.Settings.StartCost = costs, costs.ColdStart
		var cost, late cluster.GPUTime
		w.Watch = func(e sim.Event) {
			if e.What == sim.Requeued && e.Start > 0 {
				gpus := e.Work.Request.Size.Devices
				cost += cluster.Times(gpus, e.Lost+e.Terminating)
				late += cluster.Times(gpus, 2*set.Interval) // a stop happens in the round after the one that planned it
			}
		}
		var ids []cluster.JobID
		for range rapid.IntRange(20, 40).Draw(rt, "waiting") {
			ids = append(ids, w.Virtual.Submit(sim.Work{User: "u", Account: rapid.SampledFrom(tenants).Draw(rt, "tenant"), Partition: "gpu", Command: cluster.Untyped,
				Request: simtest.Gang(rapid.IntRange(1, 4).Draw(rt, "gpus")), Runs: cluster.Span(rapid.IntRange(5, 200).Draw(rt, "minutes")) * cluster.Minute,
				Saves: rapid.SampledFrom([]sim.Saves{sim.Never, sim.Never, sim.AtEnd}).Draw(rt, "saves")}))
		}
		waits := func() bool {
			return slices.ContainsFunc(ids, func(id cluster.JobID) bool { s := w.Job(id).State; return s != cluster.Done && s != "" })
		}
		reserve := cluster.Times(4*nodes, set.StopAllowance)
		for hours := 1; waits(); hours++ {
			if hours > 60*24 {
				rt.Fatal("after 60 days not all jobs have ended")
			}
			w.Run(hour)
			used := w.Last.State.Ledger.Pools[0].Tenants + w.Last.State.Ledger.Pools[0].Overhead
			if most := used*cluster.GPUTime(set.StopTotalMilli)/1000 + reserve + late; cost > most {
				rt.Fatalf("after %d hours stops cost %.2f of %.2f GPU-hours, at most %.2f are within the total", hours, cost.Hours(), used.Hours(), most.Hours())
			}
		}
	})
}
