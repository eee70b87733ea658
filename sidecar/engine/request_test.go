package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// asks is scontrol update TresPerNode=gres/gpu:N.
func asks(gpus int) func(*cluster.Job) {
	return func(j *cluster.Job) { j.Request.Size, j.Request.PerNode = cluster.Whole(gpus), gpus }
}

// The owner has all its jobs ask for one GPU, and for four right before a grant reaches Slurm. Such a job holds four: its lease counts
// them, and its tenant gets no more than its share.
func TestARequestThatGrowsWithTheGrant(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
	w.before = func(actions []cluster.Action) {
		for _, x := range actions {
			if x.Verb == cluster.Grant && w.Job(x.ID).Account == "a" {
				w.Update(x.ID, asks(4))
			}
		}
	}
	jobs, grown := map[string][]cluster.JobID{}, 0
	for range 12 {
		for _, tenant := range []string{"a", "b"} {
			jobs[tenant] = append(jobs[tenant], w.submit(tenant, 1, forever, saves))
		}
	}
	received := func(tenant string) (sum cluster.GPUTime) {
		for _, id := range jobs[tenant] {
			sum += w.Received(id)
		}
		return sum
	}
	for end := w.Now().Add(20 * term); w.Now() < end; {
		w.Run(w.Settings.Interval)
		for _, id := range jobs["a"] {
			switch j, l := w.Job(id), w.lease(id); {
			case j.State == cluster.Waiting && (l == nil || l.State != cluster.Granted):
				w.Update(id, asks(1))
			case j.State == cluster.Running && l != nil && l.State == cluster.Active && l.Start == j.Start:
				if grown++; l.Size.Devices != j.GPUsHeld() {
					t.Fatalf("job %s holds %d GPUs, its lease %d", id, j.GPUsHeld(), l.Size.Devices)
				}
			}
		}
	}
	if grown == 0 {
		t.Error("no job grew")
	}
	if a, b := received("a"), received("b"); a > b+b/20 {
		t.Errorf("a has had %v, b %v", a, b)
	}
	w.books()
}

// A job that can never be stopped is granted one GPU of an empty node, and asks for all eight before it starts. Together with what its
// tenant holds that is nearly the whole cluster: it is stopped once the others want their due.
func TestARequestThatGrowsBindsNothing(t *testing.T) {
	set := simtest.Product()
	set.Interval, set.BindQuiet = minute, 20*set.BindQuiet
	w := newWorld(t, set, []int{8, 8}, "a", "b")
	for range 16 {
		w.submit("a", 1, 30*minute, nil)
		w.submit("b", 1, 30*minute, nil)
	}
	w.Run(3 * hour)
	second := []cluster.JobID{w.submit("b", 1, forever, saves)}
	w.Run(5 * minute)
	w.before = func(actions []cluster.Action) {
		for _, x := range actions {
			if x.Verb == cluster.Grant && w.Job(x.ID).Account == "a" && slices.Contains(x.Nodes, "n02") {
				w.Update(x.ID, asks(8))
			}
		}
	}
	var first []cluster.JobID
	for range 8 {
		first = append(first, w.submit("a", 1, forever, func(j *sim.Work) { saves(j); j.NoRequeue, j.Begin = true, w.Now().Add(3*minute) }))
	}
	w.Run(30 * minute)
	if got := w.holdsIn(first); got != 15 {
		t.Fatalf("a holds %d GPUs, want 15: no job grew", got)
	}
	for range 16 {
		second = append(second, w.submit("b", 1, forever, saves))
	}
	w.Run(2*term + 2*minute)
	if a, b := w.holdsIn(first), w.holdsIn(second); a != 7 || b != 9 {
		t.Errorf("a holds %d GPUs and b %d after two terms, want 7 and 9: a's eighth job asks for a whole node", a, b)
	}
	w.books()
}
