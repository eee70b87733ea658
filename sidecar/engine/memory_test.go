package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A job is not started where the memory that its type used does not fit, or where the memory was full when it failed, as
// long as it can run elsewhere. Its user's word and a completed job are better evidence.
func TestMemoryKeepsJobsOffModels(t *testing.T) {
	const gib = 1 << 30
	kind := cluster.JobType{User: "a_user", Command: "--job-name train", GPUs: 1}
	used := func(model string, bytes int64, completed, full bool) cluster.MemoryUse {
		return cluster.MemoryUse{Type: kind, Model: model, Bytes: bytes, Completed: completed, Full: full}
	}
	both := map[string]int{"k80": 2, "v100": 2}
	for name, c := range map[string]struct {
		memory  []cluster.MemoryUse
		comment string
		model   string // that the jobs request
		want    map[string]int
	}{
		"nothing is known":      {nil, "", "", both},
		"it fits":               {[]cluster.MemoryUse{used("v100", 10*gib, true, false)}, "", "", both},
		"it does not fit":       {[]cluster.MemoryUse{used("v100", 20*gib, true, false)}, "", "", map[string]int{"v100": 2}},
		"it completed there":    {[]cluster.MemoryUse{used("k80", 11*gib, true, false), used("v100", 20*gib, true, false)}, "", "", both},
		"it failed there":       {[]cluster.MemoryUse{used("k80", 12*gib, false, true)}, "", "", map[string]int{"v100": 2}},
		"it failed everywhere":  {[]cluster.MemoryUse{used("k80", 12*gib, false, true), used("v100", 32*gib, false, true)}, "", "", both},
		"its user says so":      {[]cluster.MemoryUse{used("v100", 20*gib, true, false)}, "mem.k80=11G", "", both},
		"its user says no":      {nil, "mem.k80=14G", "", map[string]int{"v100": 2}},
		"its user wants it":     {[]cluster.MemoryUse{used("v100", 20*gib, true, false)}, "", "k80", map[string]int{"k80": 2}},
		"another type's memory": {[]cluster.MemoryUse{{Type: cluster.JobType{User: "a_user", Command: "--job-name other", GPUs: 1}, Model: "v100", Bytes: 20 * gib}}, "", "", both},
	} {
		nodes := append(simtest.Nodes("k", "k80", 1, 2), simtest.Nodes("v", "v100", 1, 2)...)
		w := simtest.New(t, simtest.Product(), nodes, "a")
		w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			s.Memory, s.Sizes = c.memory, []cluster.GPUMemory{{Model: "k80", Bytes: 12 * gib}, {Model: "v100", Bytes: 32 * gib}}
			return engine.Decide(s)
		}
		w.Gate = w.Settings.GateTTL // Slurm does not start them by itself
		request := simtest.Gang(1)
		request.Model = c.model
		for range 4 {
			w.Virtual.Submit(sim.Work{Name: "train", User: "a_user", Account: "a", Partition: "gpu", Request: request, Runs: cluster.Hour, Comment: c.comment})
		}
		w.Run(5 * cluster.Minute)
		got := map[string]int{}
		for _, l := range w.Last.State.Leases {
			got[l.Pool]++
		}
		if len(got) != len(c.want) || got["k80"] != c.want["k80"] || got["v100"] != c.want["v100"] {
			t.Errorf("%s: leases on %v, want %v", name, got, c.want)
		}
	}
}
