package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// fencedFor returns the nodes inside the fence of hand-overs, and its end.
func (w *world) fencedFor() ([]string, cluster.Instant) {
	w.t.Helper()
	for _, r := range w.look().Reservations {
		if r.Name == cluster.ReservationPrefix+"next" {
			return r.Nodes, r.End
		}
	}
	return nil, 0
}

// noticed lets time pass until a job has its notice, and returns that job.
func (w *world) noticed() cluster.JobID {
	w.t.Helper()
	for range 200 {
		if at := slices.IndexFunc(w.did, func(d deed) bool { return d.Verb == cluster.Notify }); at >= 0 {
			return w.did[at].ID
		}
		w.Run(w.Settings.Interval)
	}
	w.t.Fatal("no job had a notice")
	return cluster.JobID{}
}

// A job that leaves its GPUs as soon as it has its notice leaves them to the job that they are meant for, though a
// job without a gate waits for them.
func TestGPUsAreKeptFromTheNoticeOn(t *testing.T) {
	for name, leave := range map[string]func(w *world, id cluster.JobID){
		"requeues itself": func(w *world, id cluster.JobID) { w.Requeue(id) },
		"ends":            func(w *world, id cluster.JobID) { w.Cancel(id) },
	} {
		for _, license := range []int64{0, 1_000_000} {
			w, _, waits := contested(t)
			w.License = license
			stranger := w.submit("a", 1, hour, func(j *sim.Work) { j.Request.Unplaceable = cluster.Cron })
			leaves := w.noticed()
			if nodes, _ := w.fencedFor(); !slices.Equal(nodes, []string{"n01"}) {
				t.Errorf("%s: at the notice %v are fenced, want n01", name, nodes)
			}
			leave(w, leaves)
			w.Run(2 * w.Settings.Interval)
			if w.Job(stranger).State != cluster.Waiting {
				t.Errorf("%s: a job without a gate took the GPU", name)
			}
			if n := w.running(waits); n == 0 {
				t.Errorf("%s: the job that the GPU was meant for does not run", name)
			}
			w.Run(3 * minute)
			if nodes, _ := w.fencedFor(); nodes != nil {
				t.Errorf("%s: after the hand-over %v are fenced", name, nodes)
			}
			w.books()
		}
	}
}

// running returns the number of jobs that run.
func (w *world) running(ids []cluster.JobID) (n int) {
	for _, id := range ids {
		if w.Job(id).State == cluster.Running {
			n++
		}
	}
	return n
}

// The fence of a hand-over that is called off is removed with the next round.
func TestAFenceIsRemovedWhenTheHandOverIsCalledOff(t *testing.T) {
	w, runs, waits := contested(t)
	w.noticed()
	for _, id := range waits {
		w.Cancel(id)
	}
	w.Run(w.Settings.Interval)
	if nodes, _ := w.fencedFor(); nodes != nil {
		t.Errorf("%v are still fenced", nodes)
	}
	if w.Run(2 * minute); w.running(runs) != 2 {
		t.Error("a job was stopped for nobody")
	}
}

// A fence ends by itself soon after the hand-over was due, whatever becomes of fairlease.
func TestAFenceEndsByItself(t *testing.T) {
	w, _, _ := contested(t)
	w.noticed()
	due := w.did[len(w.did)-1].Reason.Until
	if _, end := w.fencedFor(); end <= due || end > due.Add(w.Settings.GrantTimeout+minute) {
		t.Errorf("the fence ends at %s, the hand-over is at %s", end, due)
	}
}
