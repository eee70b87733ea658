package engine_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// licensed has the jobs of a world ask for the licences that follow "uses " in their names, and the site have these counts.
// Used of a licence is what programs outside of the cluster use.
func licensed(s *cluster.Observation, counts []cluster.LicenseCount) []cluster.LicenseCount {
	counts = slices.Clone(counts)
	s.Jobs = slices.Clone(s.Jobs)
	s.Unchanged = false
	for i := range s.Jobs {
		j := &s.Jobs[i]
		j.Licenses, _ = strings.CutPrefix(j.Name, "uses ")
		if j.Licenses == j.Name {
			j.Licenses = ""
		}
		if j.State != cluster.Running && j.State != cluster.Suspended {
			continue
		}
		list, either := cluster.ParseLicenses(j.Licenses)
		for _, n := range list {
			at := slices.IndexFunc(counts, func(c cluster.LicenseCount) bool { return c.Name == n.Name })
			if either && counts[at].Used+n.Count > counts[at].Total {
				continue
			}
			if counts[at].Used += n.Count; either {
				break
			}
		}
	}
	s.Limits.Licenses = counts
	return counts
}

// Grants that stand never ask for more of them together than were free when the last of them was made.
func TestGrantsNeverExceedTheFreeLicenses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, name) }
		w := newWorldOn(t, simtest.Product(), simtest.Nodes("n", "v100", draw("nodes", 1, 4), 4), "a", "b")
		w.Settings.RecallFirst = draw("recall", 0, 1) == 1
		w.Gate = 24 * hour // no job starts without a lease
		counts := []cluster.LicenseCount{{Name: "ansys", Total: int64(draw("ansys", 0, 6))}, {Name: "matlab", Total: int64(draw("matlab", 0, 6))}}
		var free []cluster.LicenseCount
		w.alter = func(s *cluster.Observation) { free = licensed(s, counts) }
		old := w.Check
		w.Check = func(r loop.Report) {
			if old != nil {
				old(r)
			}
			name := map[cluster.JobKey]string{}
			for i := range r.Plan.State.Records {
				name[r.Plan.State.Records[i].Key] = r.Plan.State.Records[i].Name
			}
			stands, fresh := map[string]int64{}, map[string]bool{}
			for i := range r.Plan.State.Leases {
				x := &r.Plan.State.Leases[i]
				if x.State != cluster.Granted {
					continue
				}
				list, either := cluster.ParseLicenses(strings.TrimPrefix(name[x.Job], "uses "))
				for _, n := range list {
					if !either {
						stands[n.Name] += n.Count
						fresh[n.Name] = fresh[n.Name] || x.Granted == r.Plan.At
					}
				}
			}
			for _, l := range free {
				if fresh[l.Name] && stands[l.Name] > l.Total-l.Used {
					rt.Fatalf("more licences granted than are free: %d of %+v", stands[l.Name], l)
				}
			}
		}
		for range draw("submissions", 1, 20) {
			w.submit(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "tenant"), draw("gang", 1, 4), cluster.Span(draw("runs", 1, 200))*minute, func(j *sim.Work) {
				j.Name = rapid.SampledFrom([]string{"train", "uses matlab", "uses matlab:2", "uses ansys:1,matlab:1", "uses matlab|ansys", "uses ansys:3"}).Draw(rt, "asks")
			})
			counts[draw("which", 0, 1)].Used = int64(draw("outside", 0, 4))
			w.Run(cluster.Span(draw("wait", 0, 30)) * minute)
		}
		w.Run(4 * hour)
	})
}

// Jobs whose licence is in use are due nothing, hold nothing and recall nobody. In the round that sees the licence free they
// are granted GPUs, as many as there are licences.
func TestALicenceInUse(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
	w.Gate = 240 * hour
	counts := []cluster.LicenseCount{{Name: "matlab", Total: 4, Used: 4}}
	w.alter = func(s *cluster.Observation) { licensed(s, counts) }
	var honest []cluster.JobID
	for range 2 {
		honest = append(honest, w.submit("b", 4, 30*hour, nil))
	}
	w.Run(2 * minute)
	var flood []cluster.JobID
	for range 20 {
		flood = append(flood, w.submit("a", 1, 3*hour, func(j *sim.Work) { j.Name = "uses matlab" }))
	}
	w.Run(3 * hour)
	for _, id := range honest {
		w.state(id, cluster.Running)
	}
	if r := w.why(flood[0], cluster.ReasonRule); !strings.HasPrefix(r.Note, "licence matlab: 4 of 4 in use; your job asks for 1; ") {
		t.Errorf("the reason is %+v", r)
	}
	if n := len(w.done(cluster.Grant, flood...)) + len(w.done(cluster.Reclaim, honest...)); n > 0 {
		t.Errorf("%d grants and requeues", n)
	}
	if due := w.Standing("a", "v100").Demand; due != 0 {
		t.Errorf("jobs that cannot start count as a demand of %d", due)
	}
	counts[0].Used = 2
	w.Run(2 * hour)
	if n := len(w.done(cluster.Grant, flood...)); n != 2 {
		t.Errorf("%d of the flood were granted GPUs, want as many as there are free licences", n)
	}
	if due := w.Standing("a", "v100").Demand; due != 2*cluster.WholeGPU {
		t.Errorf("a demand of %d counts, want the two that run", due)
	}
	w.books()
}

// Jobs behind others are granted no more licences than are free, though the jobs in front, which are of the same shape, have none.
func TestNoLicenceIsGrantedTwiceBehindOthers(t *testing.T) {
	w := tinyWorld(t)
	counts := []cluster.LicenseCount{{Name: "matlab", Total: 8}}
	w.alter = func(s *cluster.Observation) { licensed(s, counts) }
	w.Submit("a", 60, 1, 2*second) // these show that such jobs are short
	w.Submit("b", 8, 1, forever)
	w.Run(4 * minute)
	counts[0].Total = 1
	front := w.Submit("a", 8, 1, 2*second)
	var asks []cluster.JobID
	for range 12 {
		asks = append(asks, w.submit("a", 1, 2*second, func(j *sim.Work) { j.Name = "uses matlab:1" }))
	}
	check, most := w.Check, 0
	w.Check = func(r loop.Report) {
		check(r)
		n := 0
		for _, l := range r.Plan.State.Leases {
			if l.State == cluster.Granted && slices.Contains(asks, recordIn(&r.Plan, l.Job).ID) {
				n++
			}
		}
		most = max(most, n)
	}
	w.Run(2 * minute)
	if most != 1 {
		t.Errorf("of one licence, up to %d were granted at once", most)
	}
	if n := len(w.done(cluster.Grant, front...)) + len(w.done(cluster.Grant, asks...)); n < 8 {
		t.Errorf("only %d jobs were granted: the test shows nothing", n)
	}
}
