package actions

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// BetweenSwitches is the least time between two switches of a job: Slurm stops a suspended job only after its grace, and one that is resumed
// before that may run though it counts as suspended, and the other way round.
const BetweenSwitches = 3 * cluster.Second

// turns are those of jobs on shared GPUs.
type turns struct {
	in   *Input
	gate *gates
	over map[int]cluster.Span // by case: by how much its turn that ends now was too long
}

// list ends the turns that have lasted, and begins those of the partners: first all ends, then all beginnings. A job without a partner, before
// its requeue, or that is no longer acted on, has no turns: it runs.
func (t *turns) list(w *writer, out []cluster.Action) []cluster.Action {
	t.over = map[int]cluster.Span{}
	of := map[cluster.Device][]int{}
	var gpus []cluster.Device
	var resumes []int
	for _, i := range w.of.slices {
		j := &t.in.In.Snapshot.Cases[i].Job
		if r := &t.in.In.Records[i]; r.Slice.ResumedByOwner() && !r.Slice.Told {
			w.report(cluster.Event{Kind: cluster.EventTurnTaken, Job: r.Key, Text: fmt.Sprintf(
				"job %s of %s was seen running in the turns of another job on its GPU, and was suspended before: its owner resumes it", r.ID, r.Tenant)})
			g := t.gate.of(i)
			told := *g.Slice
			told.Told, g.Slice = true, &told
			t.gate.set(g)
		}
		if len(j.Holds) == 0 && j.Paused && t.switches(i) { // Slurm does not say where it is
			resumes = append(resumes, i)
		}
		for k := range j.Holds {
			for d := range j.Holds[k].Devices() {
				if of[d] == nil {
					gpus = append(gpus, d)
				}
				of[d] = append(of[d], i)
			}
		}
	}
	for _, d := range gpus {
		next := -1
		if !t.beside(w, of[d]) {
			next = t.next(of[d])
		}
		for _, i := range of[d] {
			paused := t.in.In.Snapshot.Cases[i].Job.Paused
			switch runs := next < 0 || next == i; {
			case runs == !paused:
				if next >= 0 {
					t.note(i, next == i)
				}
			case t.in.Marks[i].Noticed: // its notice resumes it
				t.note(i, true)
			case !t.switches(i):
			case runs:
				resumes = append(resumes, i)
			default:
				out = t.add(w, out, cluster.Suspend, i, next)
			}
		}
	}
	for _, i := range resumes {
		out = t.add(w, out, cluster.Resume, i, -1)
	}
	return out
}

// next gives the case whose turn it is among those on a GPU; -1 = all of them run.
func (t *turns) next(on []int) int {
	s := t.in.In.Settings.Slices
	if s == nil || len(on) == 1 || slices.ContainsFunc(on, func(i int) bool { return !t.takes(i) }) {
		return -1
	}
	of := func(i int) *cluster.Slice { return t.in.In.Records[i].Slice }
	// The turn of one of two jobs lasts longer for what the other one took of it. Among three that would cost the third, so all of them run and share the GPU.
	if len(on) > 2 && slices.ContainsFunc(on, func(i int) bool { return of(i).ResumedByOwner() }) {
		return -1
	}
	had := slices.IndexFunc(on, func(i int) bool { return of(i).Runs && !t.in.In.Snapshot.Cases[i].Job.Paused })
	if had >= 0 {
		over := t.in.In.Now.Sub(t.since(on[had], on)) - s.Lasts(of(on[had]))
		if over < 0 {
			return on[had]
		}
		t.over[on[had]] = min(over, t.in.In.Settings.Interval) // it is more if no round was made in time
	}
	next := -1 // the one that has waited longest, but not the last one, even if its owner has suspended it
	for _, i := range on {
		if !of(i).Runs && (next < 0 || of(i).At < of(next).At) {
			next = i
		}
	}
	if next < 0 { // all of them had to run
		return slices.MinFunc(on, func(a, b int) int { return cmp.Compare(of(a).At, of(b).At) })
	}
	return next
}

// since gives the beginning of a turn. A turn is a quantum for which a job has the GPU to itself: time in which another one on it ran, too, does not
// count. So an owner gains nothing who resumes a job in the turn of another.
func (t *turns) since(had int, on []int) cluster.Instant {
	g, shared := t.gate.of(had), cluster.Span(0)
	for _, i := range on {
		shared += t.in.In.Records[i].Slice.Took
	}
	if shared > 0 {
		now := *g.Slice
		now.At, g.Slice = min(now.At.Add(shared), t.in.In.Now), &now
		t.gate.set(g)
	}
	return g.Slice.At
}

// takes reports whether a job may be suspended: it is acted on, and is not about to be requeued, when it has to save.
func (t *turns) takes(i int) bool {
	st, l := &t.in.In.Cases[i], t.in.Leases[i]
	return st.Control == cluster.FullControl && st.Order == nil && l != nil && l.State == cluster.Active && !t.in.Marks[i].Noticed
}

// switches reports whether a job may be suspended or resumed by itself now: no other action on it is due.
func (t *turns) switches(i int) bool {
	l := t.in.Leases[i]
	return !isOurs(t.in.In.Snapshot.Cases[i].Job.Reservation) && t.in.In.Now.Sub(t.in.In.Records[i].Slice.At) >= BetweenSwitches && (l == nil || l.State != cluster.Ending)
}

// add appends the end or the beginning of a turn. Jobs that are no longer acted on are resumed all the same.
func (t *turns) add(w *writer, out []cluster.Action, verb cluster.Verb, i, partner int) []cluster.Action {
	out, a := w.add(out, verb, i)
	if a.Reason.Code, a.SiteFactor = cluster.ReasonTurn, 0; partner >= 0 {
		a.Reason.Code, a.Reason.For = cluster.ReasonPaused, t.in.In.Records[partner].Key
	}
	if a.Suppressed = a.Suppressed && verb != cluster.Resume; !a.Suppressed {
		t.turn(i, verb == cluster.Resume)
	}
	return out
}

// note notes that a job has its turn, if it had not, or that its turn has ended, as its owner has suspended it.
func (t *turns) note(i int, runs bool) {
	if t.gate.of(i).Slice.Runs != runs && (runs || t.switches(i)) {
		t.turn(i, runs)
	}
}

// turn begins or ends the turn of a job now. A job whose turn has ended may have to be suspended again.
func (t *turns) turn(i int, runs bool) {
	g, j := t.gate.of(i), &t.in.In.Snapshot.Cases[i].Job
	now := *g.Slice
	now.Runs, now.At = runs, t.in.In.Now
	if runs {
		now.Paused, now.Ran, now.Took = false, 0, 0
	} else {
		now.Ran, now.Over = cmp.Or(now.Ran, max(j.Ran(t.in.In.Now), 1)), t.over[i]
	}
	g.Slice = &now
	t.gate.set(g)
}
