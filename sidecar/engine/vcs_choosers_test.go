package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/tests/seeds"
)

// The order of a virtual cluster holds whatever policy divides its models: by first come, first served nobody is stopped for a later job.
func TestFirstComeFirstServedInAVCUnderADividingPreset(t *testing.T) {
	seeds.Slow(t)
	for _, by := range []string{"gavel:las", "gavel:fifo", "oef:noncoop", "gandiva-fair", "drf"} {
		for _, own := range []bool{false, true} {
			vc := nodesOf("a", 0, 4)
			w := newModelCells(t, by, 0, 4, vc)
			if w.Settings.Chooser = cluster.CellsFirstCome; own {
				w.Settings.Chooser, w.Rules.Cells.VCs[0].Chooser = cluster.CellsByShare, cluster.CellsFirstCome
			}
			var ids []cluster.JobID
			for range 8 {
				ids = append(ids, w.kind("a", "x", 4, forever))
				w.Run(minute)
			}
			w.Run(12 * hour)
			for i, id := range ids {
				if ran := w.Alloc(id) > 0; ran != (i < 4) {
					t.Errorf("%s, of the VC itself %v: job %d ran: %v", by, own, i, ran)
				}
			}
			if n := len(w.done(cluster.Reclaim)); n != 0 {
				t.Errorf("%s, of the VC itself %v: %d requeues", by, own, n)
			}
		}
	}
}

// A job of a higher level goes first in its virtual cluster under every chooser of a dividing preset.
func TestLevelsInAVCUnderADividingPreset(t *testing.T) {
	for _, mechanism := range cluster.Mechanisms {
		w := newModelCells(t, "gavel:las", 0, 1, nodesOf("a", 0, 1))
		w.Settings.Mechanism, w.Settings.Levels = mechanism, []cluster.QOSLevel{{QOS: "high", Level: 1}}
		for range 3 {
			w.kind("a", "x", 4, forever)
		}
		w.Run(hour)
		high := w.submit("a", 4, forever, func(j *sim.Work) { j.QOS, j.Comment = "high", "kind=x" })
		w.Run(hour)
		before := w.Alloc(high)
		if w.Run(4 * hour); w.Alloc(high)-before < cluster.Times(4, 4*hour-5*minute) {
			t.Errorf("%s: the job of the higher level ran %.2f of the time", mechanism, float64(w.Alloc(high)-before)/float64(cluster.Times(4, 4*hour)))
		}
	}
}

// The users of a tenant take turns in its virtual cluster under a dividing preset, too.
func TestUsersTakeTurnsInAVCUnderADividingPreset(t *testing.T) {
	for _, by := range seeds.Few(1, "oef:noncoop", "gavel:las", "gandiva-fair") {
		w := newModelCells(t, by, 0, 1, nodesOf("a", 0, 1))
		w.Settings.Users = cluster.UsersEqual
		for range 7 {
			w.submit("a", 4, forever, func(j *sim.Work) { j.User, j.Comment = "many", "kind=x" })
		}
		one := w.submit("a", 4, forever, func(j *sim.Work) { j.User, j.Comment = "one", "kind=x" })
		w.Run(48 * hour)
		if got := float64(w.Alloc(one)) / float64(cluster.Times(4, 48*hour)); got < 0.4 || got > 0.6 {
			t.Errorf("%s: a user with one job of eight had %.2f of the time, want half", by, got)
		}
	}
}

// Every chooser decides in virtual clusters, as it does outside: some drawn world goes otherwise by each two of them.
func TestEveryChooserDecidesInAVC(t *testing.T) {
	var courses [][]cluster.GPUTime
	for _, mechanism := range cluster.Mechanisms {
		w := newModelCells(t, "gandiva-fair", 2, 2, nodesOf("a", 2, 2))
		w.Settings.Mechanism = mechanism
		w.Loop.Divide = func(q cluster.AllocationRequest) cluster.Allocation {
			d := cluster.Allocation{Policy: q.Policy, Digest: q.Digest}
			for _, p := range q.Pools {
				d.Pools = append(d.Pools, p.Model)
			}
			for i := range q.Bids {
				part := cluster.Part{Party: q.Bids[i].Party}
				for range q.Pools {
					part.GPUs = append(part.GPUs, map[string]cluster.MicroGPU{"x": 16, "y": 32, "z": 32}[part.Party[len(part.Party)-1:]]*cluster.WholeGPU/10)
				}
				d.Parts = append(d.Parts, part)
			}
			return d
		}
		var ids []cluster.JobID
		for _, x := range []struct {
			kind    string
			n, gang int
		}{{"x", 1, 4}, {"y", 5, 2}, {"z", 6, 1}} {
			for range x.n {
				ids = append(ids, w.kind("a", x.kind, x.gang, forever))
			}
		}
		w.Run(cluster.Span(seeds.Some(12, 48)) * hour)
		var course []cluster.GPUTime
		for _, id := range ids {
			course = append(course, w.Alloc(id))
		}
		courses = append(courses, course)
	}
	for i, a := range courses {
		for k, b := range courses[:i] {
			same := true
			for at := range a {
				same = same && a[at] == b[at]
			}
			if same {
				t.Errorf("%s and %s did the same", cluster.Mechanisms[i], cluster.Mechanisms[k])
			}
		}
	}
}
