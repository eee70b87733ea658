package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A waiting array is one record in Slurm, and one gate serves all its tasks. No task, even one first seen
// later, may mistake our gate for its user's own begin time. It would wait for ever.
func TestTasksOfAnArrayDoNotTakeOurGateForTheUsers(t *testing.T) {
	rules := loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}
	seen := cluster.Observation{Now: simtest.Start, Nodes: simtest.Nodes("n", "v100", 1, 1),
		Accounts: []cluster.Account{{Name: "root"}, {Name: "a", Parent: "root", Shares: 1}}}
	task := func(i int32) cluster.Job {
		return cluster.Job{ID: cluster.TaskID(7, i), Record: 7, UnsplitArray: true, User: "u", Account: "a", Partitions: []string{"gpu"},
			State: cluster.Waiting, Batch: true, Requeueable: true, Request: simtest.Gang(1), Submit: simtest.Start, Eligible: simtest.Start}
	}
	for i := range int32(4) {
		seen.Jobs = append(seen.Jobs, task(i))
	}
	var memory cluster.State
	for round := range 12 {
		snap, err := loop.Remember(memory, seen, nil, rules, simtest.Product())
		if err != nil {
			t.Fatal(err)
		}
		plan := engine.Decide(snap)
		memory = plan.State
		for r := range memory.All() {
			if r.UserBegin != 0 {
				t.Fatalf("round %d: task %s takes %s for its user's begin time", round, r.ID, r.UserBegin)
			}
		}
		for _, a := range plan.Actions {
			if a.Verb == cluster.Gate && a.Array {
				for i := range seen.Jobs {
					seen.Jobs[i].Eligible = a.Until // Slurm has one begin time for all of them
				}
			}
		}
		if round == 3 { // beyond the cap until now
			late := task(9)
			late.Eligible = seen.Jobs[0].Eligible
			seen.Jobs = append(seen.Jobs, late)
		}
		seen.Now = seen.Now.Add(4 * cluster.Minute)
	}
}
