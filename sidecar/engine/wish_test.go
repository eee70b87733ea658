package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// wishes submits a job that saves at the notice, with a comment.
func (w *world) wishes(tenant, comment string) cluster.JobID {
	return w.submit(tenant, 1, forever, func(j *sim.Work) {
		j.Saves, j.Command, j.Comment = sim.AtNotice, "/home/"+tenant+"/train.sh", comment
	})
}

// A job that asks for a minimum lease keeps its GPU up to the first end of a term after that, within the bound of the
// site, after each of its starts. It does not get longer terms afterwards.
func TestAMinimumLeaseIsKept(t *testing.T) {
	for _, x := range []struct {
		comment string
		terms   int
		budget  bool // stops have a budget
		want    cluster.Span
	}{
		{"", 2, true, term},
		{"min-lease=10m", 2, true, term},
		{"min-lease=25m", 2, true, 2 * term},
		{"min-lease=25m", 2, false, 2 * term},
		{"min-lease=10h", 2, true, 2 * term},
		{"min-lease=10h", 3, false, 3 * term},
		{"min-lease=25m", 0, true, term},
	} {
		set := simtest.Product()
		set.RecallFirst, set.Threshold, set.MinLeaseTerms = false, 0, x.terms
		if !x.budget {
			set.StopAllowance, set.StopOverheadMilli = 0, 0
		}
		w := newWorld(t, set, []int{1}, "a", "b")
		id := w.wishes("a", x.comment)
		w.Run(minute)
		w.wishes("b", "")
		w.Run(16 * term)
		from := []cluster.Instant{simtest.Start} // Slurm gave it its first GPU
		for _, d := range w.done(cluster.Grant, id) {
			from = append(from, d.at)
		}
		ends := w.done(cluster.Reclaim, id)
		if len(ends) < 2 {
			t.Errorf("%+v: it was requeued %d times", x, len(ends))
			continue
		}
		least := forever
		for k := range ends {
			least = min(least, ends[k].at.Sub(from[k]))
		}
		if first := ends[0].at.Sub(from[0]); first != x.want || least != x.want {
			t.Errorf("%+v: it had its GPU for %s, and later for %s at least, want %s", x, first, least, x.want)
		}
		w.books()
	}
}

// A tenant that stays ahead without the job still gives its GPU back in the middle of the term, for a first lease. For a
// job of its own tenant it does not.
func TestAMinimumLeaseIsRecalledForOtherTenantsOnly(t *testing.T) {
	for _, by := range []string{"a", "b"} {
		w := newWorld(t, recalling(), []int{2}, "a", "b")
		for range 2 {
			w.wishes("a", "min-lease=30m")
		}
		w.Run(minute)
		young := w.submit(by, 1, forever, nil)
		w.Run(10 * minute)
		if by == "a" {
			w.state(young, cluster.Waiting)
		} else {
			w.state(young, cluster.Running)
		}
	}
}

// All jobs of a tenant ask for the longest minimum lease, and those of the other for none. Both get their half, and neither
// is further behind than the terms for which it must wait.
func TestMinimumLeasesStayFair(t *testing.T) {
	set := simtest.Product()
	set.RecallFirst = false
	w := newWorld(t, set, []int{4, 4}, "a", "b")
	check := w.Check
	const gpus = 8
	bound := cluster.Times(gpus, set.Threshold+cluster.Span(set.MinLeaseTerms+1)*set.Term)
	w.Check = func(r loop.Report) {
		check(r)
		for _, s := range r.Plan.Tenants {
			if max(s.Deficit, -s.Deficit) > bound {
				t.Fatalf("at %s %s has a deficit of %d GPU-ms, want at most %d", r.Plan.At, s.Tenant, s.Deficit, bound)
			}
		}
	}
	for range gpus {
		w.wishes("a", "min-lease=1d")
		w.wishes("b", "")
	}
	w.Run(cluster.Day)
	if a, b := w.Used("a"), w.Used("b"); max(a-b, b-a) > bound {
		t.Errorf("a had %d GPU-ms, b %d", a, b)
	}
	w.books()
}
