// Package actions lists the actions that bring the cluster to the decided state.
package actions

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Input is what the actions of a round follow from.
type Input struct {
	In     *round.Facts
	Found  *eligible.Found
	Leases []*cluster.Lease // in force after the choice, by case; nil = none
	Claims []cluster.Claim
	Marks  []round.Mark        // by case
	Moves  map[int]round.Move  // by case: of jobs whose leases are not renewed
	Fences map[string][]string // by VC: the nodes to keep from jobs of unmanaged partitions
}

// Workspace is memory for reuse, and what is known of unchanged cases. A List of the next round may use it again.
type Workspace struct {
	concerned  concerned
	gates      gates
	plain, old []bool // by case of this round, and of the last one: it concerns no gate and no reservation unless it waits
}

// concerned are the cases that there may be something to do for.
type concerned struct {
	gating  []int // they wait, or have something of ours, or a change of their owner's
	pinned  []int // they wait, and have a pin
	moving  []int // they have been granted a lease and wait, or their lease is over
	noticed []int // their notice is due
	slices  []int // they run and take turns on a GPU
}

// List returns the actions in the order in which they must run. First come the lock, revoked grants and fences
// of VCs, then hand-overs, each complete, then the fence of the next hand-overs, and then notices and the rest.
// It also returns what they change of the jobs' gates, which is valid until the next round's, and events. It reuses the memory of out.
func (x *Workspace) List(in *Input, beneficiaries *round.Beneficiaries, out []cluster.Action) ([]cluster.Action, []Gate, []cluster.Event) {
	x.look(in)
	x.gates.open(in.In)
	wanted, inside := cellFences(in.In, in.Fences), inFences(in.In)
	if f, ok := nextFence(in, inside, x.concerned.moving); ok {
		wanted = append(wanted, f)
	}
	w := &writer{in: in, of: &x.concerned, gate: &x.gates, beneficiaries: beneficiaries, wanted: wanted}
	if len(w.of.moving) > 0 {
		w.fenced = fenced(inside, wanted)
	}
	out = w.lock(out[:0])
	out = w.takeBacks(out)
	out = w.raise(out, cluster.ReasonFence)
	out = w.handOvers(out)
	out = w.raise(out, cluster.ReasonHandOver)
	out = (&turns{in: in, gate: &x.gates}).list(w, out)
	out = w.notices(out)
	out = w.gates(out)
	out = w.tidy(out)
	out = w.lockRunning(out)
	return out, x.gates.changed, w.events
}

// Slices returns the cases that run and take turns on a GPU, as of the last List.
func (x *Workspace) Slices() []int { return x.concerned.slices }

// writer lists actions. Each of its steps returns the list with its own actions appended.
type writer struct {
	in            *Input
	of            *concerned
	gate          *gates
	events        []cluster.Event
	beneficiaries *round.Beneficiaries
	wanted        []fence
	fenced        []string     // nodes inside a fence, now or soon; sorted
	grants        int          // still to be written
	length        cluster.Span // see lasts; 0 = not asked for yet
	names         []string     // slabs of memory
	bases         []cluster.Basis
}

// look finds the cases that there may be something to do for.
func (x *Workspace) look(in *Input) {
	s, c := in.In.Snapshot, &x.concerned
	c.gating, c.pinned, c.moving, c.noticed, c.slices = c.gating[:0], c.pinned[:0], c.moving[:0], c.noticed[:0], c.slices[:0]
	x.plain, x.old = slices.Grow(x.old[:0], len(s.Cases))[:len(s.Cases)], x.plain
	for i := range in.In.Cases {
		st, mark := &in.In.Cases[i], &in.Marks[i]
		if was := st.Before; was >= 0 {
			x.plain[i] = x.old[was]
		} else {
			c := &s.Cases[i]
			x.plain[i] = !c.Job.UnsplitArray && c.Changed == 0 && (!st.Live || !c.Job.Locked && c.Job.Reservation == "")
		}
		if !x.plain[i] || st.Waits || in.In.Records[i].Locked || st.Live && s.License.Total > 0 {
			c.gating = append(c.gating, i)
		}
		if st.Waits && in.In.Records[i].Pinned {
			c.pinned = append(c.pinned, i)
		}
		if st.Runs && in.In.Records[i].Slice != nil {
			c.slices = append(c.slices, i)
		}
		l := in.Leases[i]
		if l == nil {
			continue
		}
		if l.State == cluster.Granted && !st.Readied || l.State == cluster.Ending {
			c.moving = append(c.moving, i)
		}
		if mark.Noticed && l.State != cluster.Ending {
			c.noticed = append(c.noticed, i)
		}
	}
}

// report adds an event.
func (w *writer) report(e cluster.Event) { w.events = append(w.events, e) }

// add appends an action on a case, and returns the list and the action. An action is large: its caller fills it in
// where it lies.
func (w *writer) add(out []cluster.Action, verb cluster.Verb, i int) ([]cluster.Action, *cluster.Action) {
	out = append(out, cluster.Action{})
	j, r, a := &w.in.In.Snapshot.Cases[i].Job, &w.in.In.Records[i], &out[len(out)-1]
	a.Verb, a.Job, a.ID, a.Record, a.UnsplitArray = verb, r.Key, j.ID, j.Record, j.UnsplitArray
	a.Restarts, a.SiteFactor, a.Suppressed = j.Restarts, r.SiteFactor, w.in.In.Cases[i].Control == cluster.ObserveOnly
	return out, a
}

// takeBacks removes the pin of jobs that wait without a lease. Such pins remain after a grant that did not
// start, a crash, or a requeue by others. A job that we no longer manage goes back to Slurm at once, because
// its gate expires by itself but its pin does not. So does an exempt job, which is never gated.
func (w *writer) takeBacks(out []cluster.Action) []cluster.Action {
	for _, i := range w.of.pinned {
		st, r := &w.in.In.Cases[i], &w.in.In.Records[i]
		j := &w.in.In.Snapshot.Cases[i].Job
		acting := st.Control == cluster.FullControl || st.Control == cluster.NoReclaim
		if j.UnsplitArray {
			continue
		}
		if l := w.in.Leases[i]; acting && l != nil && l.State == cluster.Granted {
			continue
		}
		g := w.gate.of(i)
		because := cluster.Reason{Code: cluster.ReasonNoStart, Note: w.in.Found.Said(i)}
		if hostlist.Same(j.NodeList, r.UserNodes) && g.Slice == nil && !lowered(j, &g) && !isOurs(j.Reservation) {
			if narrowed(j, &g) == nil {
				g.Pinned = false
				w.gate.set(g)
				continue
			}
			because = cluster.Reason{Code: cluster.ReasonTidy} // it has had its lease
		}
		if !acting {
			out = w.open(out, i, cluster.Reason{Code: cluster.ReasonTidy, Note: w.in.In.Snapshot.Cases[i].ControlWhy})
			out[len(out)-1].Suppressed = false
			continue
		}
		if st.Ordered(cluster.Exempt) {
			out = w.open(out, i, because)
			continue
		}
		var a *cluster.Action
		out, a = w.add(out, cluster.RevokeGrant, i)
		a.Reason = because
		a.NodeList, a.MaxNodes, a.Partitions = r.UserNodes, g.UserMaxNodes, narrowed(j, &g)
		if g.Slice != nil {
			a.Ask, a.Unhold = g.Slice.Ask, g.Slice.Held
		}
		w.shut(i, a)
	}
	return out
}

// lowered reports whether a job still has the maximum number of nodes of its grant instead of its user's.
func lowered(j *cluster.Job, g *Gate) bool {
	return g.UserMaxNodes != 0 && j.Request.MaxNodes != max(g.UserMaxNodes, 0)
}

// narrowed returns the user's partitions of a job that still has those of its grant instead; nil = it has its user's.
func narrowed(j *cluster.Job, g *Gate) []string {
	if slices.Equal(j.Partitions, g.UserPartitions) {
		return nil
	}
	return g.UserPartitions
}

// notices notifies jobs whose lease will not be renewed.
func (w *writer) notices(out []cluster.Action) []cluster.Action {
	for _, i := range w.of.noticed {
		var a *cluster.Action
		out, a = w.add(out, cluster.Notify, i)
		a.Reason.Code, a.Reason.Until, a.Reason.For = cluster.ReasonNotice, w.in.Leases[i].End, w.beneficiaries.Of(i)
		if m, ok := w.in.Moves[i]; ok {
			a.Reason.To, a.Reason.Trial, a.Reason.Speed = m.To, m.Trial, m.Speed
			if m.To == w.in.Leases[i].Pool { // it leaves a GPU that it shares
				a.Reason.Pool = m.To
			}
		}
		a.Signal, a.SignalTo, a.Resume = w.in.Marks[i].Signal, w.in.Marks[i].SignalTo, w.in.In.Snapshot.Cases[i].Job.Paused
	}
	return out
}

// tidy removes reservations from started jobs that no longer need them, and deletes our reservations that no
// job or action names. Where we do not act, it removes only reservations of jobs that we pinned, and the fence of our last
// round's claims. The others may belong to another instance.
func (w *writer) tidy(out []cluster.Action) []cluster.Action {
	named, given := map[string]bool{}, map[string]bool{nextName: len(w.in.In.Snapshot.Claims) > 0}
	for k := range out {
		if name := out[k].Reservation; name != "" {
			named[name] = true
		}
	}
	for k := range w.wanted {
		named[w.wanted[k].name] = true
	}
	named[cluster.GateReservation] = w.in.In.Snapshot.License.Total > 0
	for _, i := range w.of.gating {
		st, mark, name := &w.in.In.Cases[i], &w.in.Marks[i], w.in.In.Snapshot.Cases[i].Job.Reservation
		if name == "" || !st.Live || !isOurs(name) {
			continue
		}
		ours := st.Control == cluster.ObserveOnly && w.in.In.Records[i].Pinned
		if ours && st.Waits { // its pin was removed above
			given[name] = true
			continue
		}
		named[name] = true
		if w.wants(name) { // it asked for that itself
			continue
		}
		if l := w.in.Leases[i]; (st.Runs || w.in.In.Configures(i)) && !mark.Noticed && (l == nil || l.State != cluster.Ending) { // else in the next round
			var a *cluster.Action
			out, a = w.add(out, cluster.Release, i)
			a.Reason.Code, a.Reservation, a.Suppressed = cluster.ReasonTidy, name, a.Suppressed && !ours
		}
	}
	for i := range w.in.In.Snapshot.Reservations {
		r := &w.in.In.Snapshot.Reservations[i]
		if r.Ours && !named[r.Name] && r.End > w.in.In.Now {
			out = append(out, cluster.Action{Verb: cluster.Unreserve, Reservation: r.Name,
				Suppressed: !w.in.In.Any(cluster.FullControl) && !given[r.Name], Reason: cluster.Reason{Code: cluster.ReasonTidy}})
		}
	}
	return out
}

// isOurs reports whether a reservation is ours, by its name.
func isOurs(name string) bool {
	return len(name) > len(cluster.ReservationPrefix) && strings.HasPrefix(name, cluster.ReservationPrefix)
}
