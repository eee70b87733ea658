package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Case.Was tells the truth, and neither the snapshots nor the plans depend on it, while owners change their jobs, nodes fail, rules change, and
// turns are lost.
func TestUnchangedCases(t *testing.T) {
	for seed := range seeds.Of(t, 12) {
		told, known := history(t, seed, true)
		whole, _ := history(t, seed, false)
		if known < 500 {
			t.Errorf("seed %d: only %d cases are known to be unchanged", seed, known)
		}
		if len(told) != len(whole) {
			t.Fatalf("seed %d: %d and %d rounds", seed, len(told), len(whole))
		}
		for i := range whole {
			if told[i] != whole[i] {
				t.Fatalf("seed %d: round %d differs:\n%s\n%s", seed, i, told[i], whole[i])
			}
		}
	}
}

// history makes a random history, and gives the snapshot and the plan of each round. With lend the loop and its decider know which cases are
// unchanged; known counts them.
func history(t *testing.T, seed uint64, lend bool) (rounds []string, known int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	tenants := []string{"nlp", "speech", "vision"}
	w := simtest.New(t, simtest.Product(), simtest.Nodes("n", "v100", 4, 8), tenants...)
	w.Loop.Brief, w.Lend, w.Forget, w.Gate, w.License = lend, lend, true, cluster.Hour, int64(seed%2)
	journal := &forgetful{Memory: sim.NewMemory()}
	w.Loop.Journal = journal
	var last []cluster.Case
	d := &engine.Decider{Brief: true}
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		for i := range s.Cases {
			c := s.Cases[i]
			if c.Was == 0 {
				continue
			}
			was := last[c.Was-1]
			c.Was, was.Was, was.Record = 0, 0, c.Record
			if known++; !reflect.DeepEqual(c, was) {
				t.Fatalf("seed %d: round %d: case %d has changed from\n%+v\nto\n%+v", seed, s.Round, i, was, c)
			}
		}
		last = slices.Clone(s.Cases)
		fresh := s
		fresh.Cases = slices.Clone(s.Cases)
		for i := range fresh.Cases {
			fresh.Cases[i].Was = 0
		}
		snapshot, want, plan := text(t, s), text(t, engine.Decide(fresh)), d.Decide(s)
		if got := text(t, plan); got != want {
			t.Fatalf("seed %d: round %d is decided\n%s\nby a fresh decider, and by one that knows the unchanged cases\n%s", seed, s.Round, want, got)
		}
		rounds = append(rounds, snapshot+want)
		return plan
	}
	var ids []cluster.JobID
	for range 400 {
		tenant := tenants[rng.IntN(3)]
		if len(ids) > 3 && rng.IntN(3) == 0 {
			stir(w, rng, ids[rng.IntN(len(ids))], tenant)
		}
		if rng.IntN(5) == 0 {
			saves := []sim.Saves{sim.AtEnd, sim.Never, sim.OnTerm, sim.Periodic}[rng.IntN(4)]
			ids = append(ids, w.Virtual.Submit(sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Request: simtest.Gang(1 << rng.IntN(4)),
				Runs: cluster.Span(5+rng.IntN(90)) * cluster.Minute, Limit: cluster.Span(rng.IntN(3)) * cluster.Hour, Saves: saves, Every: 10 * cluster.Minute,
				NoRequeue: rng.IntN(8) == 0, Interactive: rng.IntN(10) == 0}))
		}
		journal.fails = rng.IntN(20) == 0
		if _, err := w.Loop.Turn(context.Background()); (err != nil) != journal.failed {
			t.Fatalf("seed %d: %v", seed, err)
		}
		journal.failed = false
		w.Advance(w.Now().Add(cluster.Span(1+rng.IntN(120)) * cluster.Second))
		ids = slices.DeleteFunc(ids, func(id cluster.JobID) bool { return w.Job(id).State == cluster.Done || w.Job(id).ID == cluster.JobID{} })
	}
	return rounds, known
}

// forgetful is a journal whose commits may fail.
type forgetful struct {
	*sim.Memory
	fails, failed bool
}

// Commit implements loop.Journal.
func (f *forgetful) Commit(ctx context.Context, s cluster.Snapshot, p cluster.Plan) error {
	if f.failed = f.fails; f.fails {
		return errors.New("the disk is full")
	}
	return f.Memory.Commit(ctx, s, p)
}

// stir changes something of a job, the cluster or the configuration.
func stir(w *simtest.World, rng *rand.Rand, id cluster.JobID, tenant string) {
	switch rng.IntN(16) {
	case 0:
		w.Cancel(id)
	case 1:
		w.Requeue(id)
	case 2:
		w.Hold(id, rng.IntN(2) == 0)
	case 3:
		w.Update(id, func(j *cluster.Job) { j.Account = tenant })
	case 4:
		w.Update(id, func(j *cluster.Job) { j.Requeueable = !j.Requeueable })
	case 5:
		w.Update(id, func(j *cluster.Job) { j.Name, j.QOS = tenant, tenant })
	case 6:
		w.Update(id, func(j *cluster.Job) { j.Limit += cluster.Hour })
	case 7:
		w.Update(id, func(j *cluster.Job) { j.Hints = cluster.ParseHints("min-lease=20m,gpus=idle", 0) })
	case 8:
		w.SetNode("n02", []string{"", "down"}[rng.IntN(2)])
	case 9:
		w.SetShares(tenant, int64(1+rng.IntN(5)))
	case 10:
		w.Rules.ExcludeUsers = []string{tenant + "_user"}[:rng.IntN(2)]
	case 11:
		w.Rules.Mode = []loop.Mode{loop.Act, loop.Observe}[rng.IntN(2)]
	case 12:
		w.Rules.OptOut.NoRequeue = []loop.OptOut{loop.Charge, loop.LeaveAlone, loop.Override}[rng.IntN(3)]
	case 13:
		w.Settings.StopAllowance = cluster.Span(rng.IntN(20)) * cluster.Minute
	case 14:
		w.Update(id, func(j *cluster.Job) { j.Declares = cluster.Saving{Manner: cluster.SavesOnTerm, Takes: cluster.Second} })
	case 15:
		if _, _, err := w.Loop.Preview(context.Background()); err != nil {
			panic(err)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
