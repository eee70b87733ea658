package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// A gang within its tenant's share gets gathered GPUs at once, however long the jobs in its way have run. So it starts
// when these have ended, although the other tenant always has jobs that would take each GPU before.
func TestAGangWithinItsShareIsGatheredFor(t *testing.T) {
	seeds.Slow(t)
	w := newWorld(t, simtest.Product(), []int{4, 4, 4, 4}, "a", "b")
	for k := range 60 {
		w.submit("a", 1, cluster.Span(10+k%16)*hour, neverSaves)
	}
	w.Run(5 * hour)
	gang := w.submit("b", 4, hour, func(j *sim.Work) { neverSaves(j); j.Request.Nodes, j.Request.PerNode = 1, 4 })
	w.Run(hour)
	if v := w.Reason(gang); v.Code != cluster.ReasonGather && w.Job(gang).Start == 0 {
		t.Errorf("nothing is gathered for a gang within its tenant's share: %+v", v)
	}
	w.Run(20 * hour) // the longest job in its way has ended
	if w.Job(gang).Start == 0 {
		t.Errorf("the gang has not started: %+v", w.Reason(gang))
	}
}

// GPUs are gathered on the node on which the jobs that have to end have run for the shortest time together.
func TestGatheringTakesTheNodeLikelyFreeSoonest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := boundary(4, 4, 4)
		s.Settings = simtest.Product()
		gang := rapid.IntRange(2, 4).Draw(rt, "gang")
		ages := map[string][]int{} // of the jobs on each node, in minutes
		for n := range s.Nodes {
			node := s.Nodes[n].Name
			for range 4 {
				age := rapid.IntRange(60, 3000).Draw(rt, "age")
				ages[node] = append(ages[node], age)
				c := runsOn(cluster.JobKey(len(s.Cases)+1), "a", 1, node)
				c.Job.Start = s.Now.Add(-cluster.Span(age) * minute)
				c.Record.HeldSince = c.Job.Start
				s.Cases = append(s.Cases, c)
				l := leaseOf(&s, len(s.Cases)-1)
				l.End = s.Now.Add(s.Settings.Term)
				s.Leases = append(s.Leases, l)
			}
		}
		s.Cases = append(s.Cases, waits(50, "b", gang))
		s.Cases[12].Job.Request.Nodes, s.Cases[12].Job.Request.PerNode = 1, gang
		old := []cluster.Holding{{Node: s.Nodes[0].Name, Model: "v100", Size: cluster.Whole(gang), CPUs: gang, MemoryMB: int64(gang) * 1024}}
		s.Claims = []cluster.Claim{{Job: 50, Pool: "v100", Nodes: old, At: s.Now, Made: s.Now, Gathers: true}}
		takes := func(node string) (sum int) {
			slices.Sort(ages[node])
			for _, age := range ages[node][:gang] {
				sum += age
			}
			return sum
		}
		least := min(takes(s.Nodes[0].Name), takes(s.Nodes[1].Name), takes(s.Nodes[2].Name))
		got := engine.Decide(s).State.Claims
		if len(got) != 1 || !got[0].Gathers || len(got[0].Nodes) != 1 || takes(got[0].Nodes[0].Node) != least {
			rt.Errorf("claims are %+v, want one on a node whose %d youngest jobs have run for %d min: %s", got, gang, least, fmt.Sprint(ages))
		}
	})
}
