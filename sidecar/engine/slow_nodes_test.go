package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Jobs of two users show that v01 is slow. From then on a gang takes other nodes, and jobs of one node take v01 while it waits: no GPU idles.
func TestGangsAvoidASlowNode(t *testing.T) {
	settings := simtest.Product()
	settings.SlowNodePercent = 85
	w := simtest.New(t, settings, simtest.Nodes("v", "v100", 4, 4), "bio", "nlp")
	w.Gate = settings.GateTTL
	w.Reports = cluster.Minute
	sim.Slow(w.Virtual, "v01", 600_000)
	var told []string
	w.Check = func(r loop.Report) {
		for _, e := range r.Plan.Events {
			if e.Kind == cluster.EventSlowNode {
				told = append(told, e.Node+": "+e.Text)
			}
		}
	}
	for range 8 {
		for _, tenant := range []string{"bio", "nlp"} {
			w.Submit(tenant, 1, 1, 2*cluster.Hour)
			w.Run(settings.Interval)
		}
	}
	w.Run(4 * cluster.Hour)
	if slow := w.Last.State.NodeSpeeds.Slow; len(slow) != 1 || slow[0].Node != "v01" || slow[0].Percent != 60 {
		t.Fatalf("slow nodes: %+v", slow)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "v01: v01 is slow: ") {
		t.Fatalf("events: %q", told)
	}
	nodes := func(id cluster.JobID) (out []string) {
		for _, h := range w.Job(id).Holds {
			out = append(out, h.Node)
		}
		return out
	}
	single := w.Submit("nlp", 1, 4, cluster.Hour)[0]
	w.Run(cluster.Minute)
	if got := nodes(single); slices.Contains(got, "v01") {
		t.Errorf("a job runs on %v where no gang waits", got)
	}
	w.Run(3 * cluster.Hour)
	gang := sim.Work{Name: "pretrain", User: "bio_user", Account: "bio", Partition: "gpu", Runs: cluster.Hour,
		Request: cluster.Request{Size: cluster.Whole(8), Nodes: 2, PerNode: 4, CPUs: 8, MemoryMB: 8192}}
	first := w.Virtual.Submit(gang)
	w.Submit("nlp", 2, 4, cluster.Hour)
	w.Run(cluster.Minute)
	if got := nodes(first); len(got) != 2 || slices.Contains(got, "v01") {
		t.Errorf("the gang runs on %v", got)
	}
	if p := w.Last.State.Ledger.Pools[0]; p.GPUs != cluster.CountOf(16) || w.Standing("bio", "v100").Holds+w.Standing("nlp", "v100").Holds != cluster.CountOf(16) {
		t.Errorf("bio holds %v and nlp %v GPUs of %v", w.Standing("bio", "v100").Holds, w.Standing("nlp", "v100").Holds, p.GPUs)
	}
	w.Run(3 * cluster.Hour)
	w.Virtual.Submit(gang)
	second := w.Virtual.Submit(gang)
	w.Run(cluster.Minute)
	if got := nodes(second); len(got) != 2 {
		t.Errorf("a gang that needs v01 runs on %v", got)
	}
}

// The same with cells: a gang has other nodes of its virtual cluster, also borrowed ones, where that costs nothing.
func TestGangsAvoidASlowNodeInCells(t *testing.T) {
	settings := simtest.Product()
	settings.SlowNodePercent, settings.Preset, settings.Chooser = 85, "hived", "astraea"
	w := simtest.New(t, settings, simtest.Nodes("n", "v100", 6, 4), "bio", "nlp")
	w.Rules.Cells, w.Gate = nodeCells(4, 6, vc("bio", "node", 3), vc("nlp", "node", 3)), settings.GateTTL
	w.Reports = cluster.Minute
	sim.Slow(w.Virtual, "n01", 600_000)
	for k := range 24 {
		w.Virtual.Submit(sim.Work{Name: "train", User: []string{"alice", "bob"}[k%2], Account: "bio", Partition: "gpu", Runs: 2 * cluster.Hour,
			Request: cluster.Request{Size: cluster.Whole(1), CPUs: 1, MemoryMB: 1024}})
		w.Run(settings.Interval)
	}
	w.Run(4 * cluster.Hour)
	if slow := w.Last.State.NodeSpeeds.Slow; len(slow) != 1 || slow[0].Node != "n01" {
		t.Fatalf("slow nodes: %+v", slow)
	}
	gang := func(tenant string) []cluster.JobID {
		return []cluster.JobID{w.Virtual.Submit(sim.Work{Name: "pretrain", User: tenant + "_user", Account: tenant, Partition: "gpu", Runs: cluster.Hour,
			Request: cluster.Request{Size: cluster.Whole(8), Nodes: 2, PerNode: 4, CPUs: 8, MemoryMB: 8192}})}
	}
	on := func(ids []cluster.JobID) (out []string) {
		for _, id := range ids {
			for _, h := range w.Job(id).Holds {
				out = append(out, h.Node)
			}
		}
		return out
	}
	first := gang("bio")
	w.Run(cluster.Minute)
	second := gang("bio") // beyond its three nodes
	w.Run(cluster.Minute)
	third := gang("nlp")
	w.Run(cluster.Minute)
	for k, ids := range [][]cluster.JobID{first, second, third} {
		if got := on(ids); len(got) != 2 || slices.Contains(got, "n01") != (k == 2) {
			t.Errorf("gang %d runs on %v", k+1, got)
		}
	}
}

// numbers tells the engine which GPUs of their nodes jobs have, the first idle ones, as Slurm does. Jobs with a GPU of a node run at a part of
// their speed.
func numbers(w *simtest.World, node string, slow int, part float64) {
	type at struct {
		job  cluster.JobID
		node string
	}
	has, decide := map[at][]int{}, w.Loop.Decide
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		now, taken := map[at][]int{}, map[string][]int{}
		each := func(f func(at, *cluster.Holding)) {
			for i := range s.Cases {
				if j := &s.Cases[i].Job; j.State == cluster.Running {
					for k := range j.Holds {
						f(at{j.ID, j.Holds[k].Node}, &j.Holds[k])
					}
				}
			}
		}
		s.Cases = slices.Clone(s.Cases)
		for i := range s.Cases {
			s.Cases[i].Job.Holds = slices.Clone(s.Cases[i].Job.Holds)
		}
		each(func(x at, h *cluster.Holding) {
			if h.Index = has[x]; h.Index != nil {
				now[x], taken[x.node] = h.Index, append(taken[x.node], h.Index...)
			}
		})
		each(func(x at, h *cluster.Holding) {
			for k := 0; len(h.Index) < h.Size.Devices; k++ {
				if !slices.Contains(taken[x.node], k) {
					h.Index, taken[x.node] = append(h.Index, k), append(taken[x.node], k)
				}
			}
			now[x] = h.Index
		})
		has, s.Progress = now, slices.Clone(s.Progress)
		for i := range s.Progress {
			if slices.Contains(has[at{s.Progress[i].Job, node}], slow) {
				s.Progress[i].Steps *= part
			}
		}
		return decide(s)
	}
}

// Jobs of two users show that GPU 1 of v01 is slow. From then on a gang takes other nodes, unless a job has that GPU.
func TestGangsAvoidASlowGPU(t *testing.T) {
	settings := simtest.Product()
	settings.SlowNodePercent = 85
	w := simtest.New(t, settings, simtest.Nodes("v", "v100", 4, 4), "bio", "nlp")
	w.Gate = settings.GateTTL
	w.Reports = cluster.Minute
	numbers(w, "v01", 1, 0.6)
	var told []string
	w.Check = func(r loop.Report) {
		for _, e := range r.Plan.Events {
			if e.Kind == cluster.EventSlowNode || e.Kind == cluster.EventSlowGPU {
				told = append(told, e.Text)
			}
		}
	}
	for k := range 6 {
		for range 8 {
			for _, tenant := range []string{[]string{"bio", "nlp"}[k%2], []string{"nlp", "bio"}[k%2]} {
				w.Submit(tenant, 1, 1, 2*cluster.Hour)
				w.Run(settings.Interval)
			}
		}
		w.Run(4 * cluster.Hour)
	}
	if s := w.Last.State.NodeSpeeds; len(s.Slow) > 0 || len(s.GPUs) != 1 || s.GPUs[0].Node != "v01" || s.GPUs[0].Index != 1 || s.GPUs[0].Percent != 60 {
		t.Fatalf("slow nodes: %+v, slow GPUs: %+v", s.Slow, s.GPUs)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "GPU 1 of v01 is slow: ") {
		t.Fatalf("events: %q", told)
	}
	run := func(nodes, each int) (out []string) {
		id := w.Virtual.Submit(sim.Work{Name: "pretrain", User: "bio_user", Account: "bio", Partition: "gpu", Runs: cluster.Hour,
			Request: cluster.Request{Size: cluster.Whole(nodes * each), Nodes: nodes, PerNode: each, CPUs: 8, MemoryMB: 8192}})
		w.Run(cluster.Minute)
		for _, h := range w.Job(id).Holds {
			out = append(out, h.Node)
		}
		return out
	}
	if got := run(2, 2); len(got) != 2 || slices.Contains(got, "v01") {
		t.Errorf("the gang runs on %v", got)
	}
	w.Run(3 * cluster.Hour)
	w.Virtual.Submit(sim.Work{Name: "train", User: "bio_user", Account: "bio", Partition: "gpu", Runs: 3 * cluster.Hour, NodeList: []string{"v01"},
		Request: cluster.Request{Size: cluster.Whole(2), Nodes: 1, PerNode: 2, CPUs: 4, MemoryMB: 4096}})
	w.Run(cluster.Minute)
	if got := run(2, 2); len(got) != 2 || got[0] != "v01" {
		t.Errorf("a gang beside a job that has the slow GPU runs on %v, want the tightest node and another one", got)
	}
}
