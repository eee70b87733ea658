package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A job that never saves is stopped while it is young and starts from the beginning. Its tenant has not
// received the destroyed time, to the millisecond.
func TestATenantDoesNotReceiveWhatAStopDestroyed(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
	var truth cluster.GPUTime
	var losses []cluster.Loss
	w.Watch = func(e sim.Event) {
		if e.What == sim.Requeued {
			truth += cluster.Times(1, e.Lost)
		}
	}
	never := w.submit("a", 1, 10*hour, func(j *sim.Work) { j.Saves, j.Command = sim.Never, "/home/a/train.sh" })
	w.Run(5 * minute)
	other := w.submit("b", 1, 20*minute, nil)
	for range 8 {
		w.Run(10 * minute)
		for _, r := range w.reports {
			losses = append(losses, r.Plan.Losses...)
		}
		w.reports = nil
		w.books()
	}
	w.state(other, cluster.Done)
	w.state(never, cluster.Running)
	r := w.Record(never)
	if r.Stops != 1 || truth == 0 || r.Lost != truth || r.UnknownLost != truth || r.KnownLost != 0 {
		t.Errorf("%d stops destroyed %d GPU-ms; %d are booked, %d as unknown", r.Stops, truth, r.Lost, r.UnknownLost)
	}
	held := w.Received(never)
	if got := w.Used("a"); got != held-truth || r.Alloc != got {
		t.Errorf("the tenant received %d GPU-ms, its job %d; want %d: the job held a GPU for %d ms and stops destroyed %d ms", got, r.Alloc, held-truth, held, truth)
	}
	want := cluster.Loss{Job: r.Key, Term: 1, Pool: "v100", Type: cluster.JobType{User: "a_user", Command: "/home/a/train.sh", GPUs: 1},
		Time: truth, Most: truth, Certainty: cluster.UnknownLoss}
	if len(losses) != 1 || losses[0] != want {
		t.Errorf("losses %+v, want %+v", losses, want)
	}
	if p := w.Last.State.Ledger.Pools[0]; p.Overhead < truth || p.Tenants != w.Used("a")+w.Used("b") {
		t.Errorf("of %d GPU-ms that were destroyed %d are overhead: %+v", truth, p.Overhead, p)
	}
}

// A site says that jobs save when they hear a signal, and a job ignores it. The number by the declaration is too small then;
// the upper bound is what the job lost, with a stop budget and without one.
func TestALossHasAnUpperBoundWhateverTheJobDoes(t *testing.T) {
	for _, says := range []cluster.Manner{cluster.SavesOnNotice, cluster.SavesOnTerm} {
		for _, budget := range []bool{true, false} {
			set := simtest.Product()
			set.Saves = []cluster.SavingRule{{Partition: "gpu", Manner: says}}
			if !budget {
				set.StopAllowance, set.StopOverheadMilli = 0, 0
			}
			w := newWorld(t, set, []int{1}, "a", "b")
			var truth, lost, most cluster.GPUTime
			w.Watch = func(e sim.Event) {
				if e.What == sim.Requeued {
					truth += cluster.Times(1, e.Lost)
				}
			}
			id := w.submit("a", 1, 10*hour, func(j *sim.Work) { j.Saves, j.Command = sim.Never, "/home/a/train.sh" })
			w.Run(5 * minute)
			w.submit("b", 1, 20*minute, nil)
			w.Run(hour)
			for _, r := range w.reports {
				for _, x := range r.Plan.Losses {
					lost, most = lost+x.Time, most+x.Most
				}
			}
			if r := w.Record(id); r.Lost != lost || r.MostLost != most || lost >= truth {
				t.Errorf("%s, budget %v: the record has %d and at most %d GPU-ms, the losses %d and %d; %d were lost", says, budget, r.Lost, r.MostLost, lost, most, truth)
			}
			if truth == 0 || most < truth || most > truth+cluster.Times(1, 20*second) {
				t.Errorf("%s, budget %v: %d GPU-ms were lost, and the bound is %d", says, budget, truth, most)
			}
		}
	}
}

// The loss of a job that reports its saves is known: the books equal the virtual cluster's own record of the
// loss.
func TestAKnownLossIsExact(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
	w.ReportSaves = true
	truth := map[cluster.JobID]cluster.GPUTime{}
	w.Watch = func(e sim.Event) {
		if e.What == sim.Requeued {
			truth[e.Job] += cluster.Times(1, e.Lost)
		}
	}
	known := 0
	for k := range 12 {
		id := w.submit("a", 1, 40*minute, func(j *sim.Work) {
			j.Saves, j.Every, j.Command = sim.Periodic, 7*minute, "/home/a/train.sh"
		})
		w.Run(cluster.Span(8+k)*minute + 30*second) // not when it saves: a look at the books at that moment takes its report
		w.submit("b", 1, 20*minute, nil)
		w.Run(cluster.Span(82-k) * minute)
		r := w.Record(id)
		if r.Lost < truth[id] || r.KnownLost > 0 && r.KnownLost == r.Lost && r.Lost != truth[id] {
			t.Errorf("job %s: %d GPU-ms are booked, %d of them as known, and %d were lost", id, r.Lost, r.KnownLost, truth[id])
		}
		if r.KnownLost > 0 {
			known++
		}
	}
	if w.books(); known < 6 {
		t.Errorf("of 12 jobs %d have losses that are known: too few to show anything", known)
	}
}
