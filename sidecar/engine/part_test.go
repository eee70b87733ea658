package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// halved returns a world of two GPUs. On each of them two jobs take turns.
func halved(t *testing.T, change func(*sim.Work)) (w *simtest.World, ids []cluster.JobID) {
	w = slicedOn(t, simtest.Nodes("n", "v100", 2, 1))
	for _, tenant := range []string{"x", "x", "y", "y"} {
		k := sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Comment: modest, Runs: 100 * cluster.Hour,
			Request: cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 1024}}
		if change != nil {
			change(&k)
		}
		ids = append(ids, w.Virtual.Submit(k))
	}
	w.Run(2 * cluster.Minute)
	for _, id := range ids {
		if w.Record(id).Slice == nil {
			t.Fatalf("job %s has a GPU to itself", id)
		}
	}
	return w, ids
}

// leave cancels the jobs on the second GPU, and returns those on the first.
func leave(w *simtest.World, ids []cluster.JobID) (left []cluster.JobID) {
	for _, id := range ids {
		if j := w.Job(id); j.Holds[0].Node == "n02" {
			w.Cancel(id)
		} else {
			left = append(left, id)
		}
	}
	return left
}

// A GPU becomes idle, and nobody waits. Of two jobs that take turns on another one, one moves there at the end of its term, once. If a job moves,
// both have a GPU to themselves. None does where a stop costs more than that gains, and none while another one waits.
func TestJobsPart(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *simtest.World)
		work   func(*sim.Work)
		moves  int
	}{
		{"they save", nil, nil, 1},
		{"they never save", nil, neverSaves, 0},
		{"a start costs what they lose in a term", func(w *simtest.World) { w.Settings.StartCost = 15 * cluster.Minute }, nil, 0},
		{"jobs do not move", func(w *simtest.World) { w.Settings.CompactPercent = 0 }, nil, 0},
		{"a gang waits", func(w *simtest.World) {
			w.Virtual.Submit(sim.Work{Name: "train", User: "x_user", Account: "x", Partition: "gpu", Runs: cluster.Hour,
				Request: cluster.Request{Size: cluster.Whole(2), Nodes: 2, PerNode: 1, CPUs: 2, MemoryMB: 2048}})
		}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, ids := halved(t, c.work)
			moves := 0
			w.Check = func(r loop.Report) {
				for _, a := range r.Plan.Actions {
					if a.Verb == cluster.Reclaim {
						moves++
					}
					if a.Verb == cluster.Notify && (a.Reason.To != "v100" || a.Reason.Pool != "v100") {
						t.Errorf("the notice says %+v", a.Reason)
					}
				}
			}
			left := leave(w, ids)
			if c.change != nil {
				c.change(w)
			}
			w.Run(20 * cluster.Minute)
			before := w.Progress(left[0]) + w.Progress(left[1])
			w.Run(20 * cluster.Minute)
			pace := float64(w.Progress(left[0])+w.Progress(left[1])-before) / float64(20*cluster.Minute)
			if want := 0.99 + float64(c.moves); moves != c.moves || pace < want {
				t.Errorf("%d jobs moved, and both do %.2f of the work of one alone; want %d and %.2f", moves, pace, c.moves, want)
			}
		})
	}
}

// A job that finds an idle GPU joins nobody.
func TestNoJobJoinsBesideAnIdleGPU(t *testing.T) {
	w := slicedOn(t, simtest.Nodes("n", "v100", 2, 1))
	ids := shares(w, "x", 3, modest)
	w.Run(2 * cluster.Minute)
	alone := ids[0]
	for _, id := range ids {
		if w.Record(id).Slice == nil {
			alone = id
		}
	}
	w.Cancel(alone)
	w.Run(cluster.Minute)
	late := shares(w, "x", 1, modest)[0]
	w.Run(2 * cluster.Minute)
	if j := w.Job(late); j.State != cluster.Running || !cluster.SizeHeld(j.Holds).IsWhole() {
		t.Errorf("it is %s and holds %v", j.State, j.Holds)
	}
}
