// Package actions lists what has to be done so that the cluster becomes what was decided.
package actions

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/hostlist"
)

// List lists what has to be done, in the order in which it has to be done: what makes room and order first, then
// hand-overs, each whole, then the rest. fences are the nodes to keep from jobs of partitions that are not managed, by the VC
// that has them. It notes in the records what jobs are given or lose by that, and tells events.
func List(b *round.Books, fences map[string][]string) []cluster.Action {
	w := &writer{Books: b, heirs: b.Beneficiaries(), wanted: fences, fenced: fenced(b, fences)}
	out := w.lock(nil)
	out = w.takeBacks(out)
	out = w.fences(out)
	out = w.handOvers(out)
	out = w.notices(out)
	out = w.gates(out)
	return w.tidy(out)
}

// writer lists actions: each of its steps gives the list with what it adds.
type writer struct {
	*round.Books
	heirs  round.Beneficiaries
	wanted map[string][]string // fences, by VC
	fenced map[string]bool     // nodes around which a fence is, or is about to be
}

// action starts an action on a case.
func (w *writer) action(verb cluster.Verb, i int, because cluster.Reason) cluster.Action {
	j := &w.Snapshot.Cases[i].Job
	return cluster.Action{Verb: verb, Job: w.Records[i].Key, ID: j.ID, Record: j.Record, UnsplitArray: j.UnsplitArray,
		Restarts: j.Restarts, SiteFactor: w.Records[i].SiteFactor, Suppressed: w.Jobs[i].Control == cluster.ObserveOnly, Reason: because}
}

// takeBacks ends the pin of jobs that wait without a lease: of a grant that did
// not start, and of whatever a crash or somebody else's requeue left behind. Where
// we no longer act the job goes back to Slurm at once: a gate lapses by itself, a
// pin does not. So does an exempt one, which is never gated.
func (w *writer) takeBacks(out []cluster.Action) []cluster.Action {
	for i := range w.Snapshot.Cases {
		st, r := &w.Jobs[i], &w.Records[i]
		j := &w.Snapshot.Cases[i].Job
		acting := st.Control == cluster.FullControl || st.Control == cluster.NoReclaim
		if !st.Waits || j.UnsplitArray || !r.Pinned {
			continue
		}
		if l := w.Leases[i]; acting && l != nil && l.State == cluster.Granted {
			continue
		}
		if hostlist.Same(j.NodeList, r.UserNodes) && !isOurs(j.Reservation) {
			r.Pinned = false
			continue
		}
		if !acting {
			a := w.open(i, cluster.Reason{Code: cluster.ReasonTidy, Note: w.Snapshot.Cases[i].ControlWhy})
			a.Suppressed = false
			out = append(out, a)
			continue
		}
		if st.Ordered(cluster.Exempt) {
			out = append(out, w.open(i, cluster.Reason{Code: cluster.ReasonNoStart, Note: r.SlurmSaid}))
			continue
		}
		a := w.action(cluster.RevokeGrant, i, cluster.Reason{Code: cluster.ReasonNoStart, Note: r.SlurmSaid})
		a.NodeList = r.UserNodes
		w.shut(i, &a)
		out = append(out, a)
	}
	return out
}

// notices tells jobs that their lease will not be renewed.
func (w *writer) notices(out []cluster.Action) []cluster.Action {
	for i, l := range w.Leases {
		if !w.Jobs[i].Noticed || l == nil || l.State == cluster.Ending {
			continue
		}
		a := w.action(cluster.Notify, i, cluster.Reason{Code: cluster.ReasonNotice, Until: l.End, For: w.heirs.Of(i)})
		if m, ok := w.Moves[i]; ok {
			a.Reason.To, a.Reason.Trial, a.Reason.Speed = m.To, m.Trial, m.Speed
		}
		a.Signal, a.SignalTo = w.signal(&w.Snapshot.Cases[i].Job)
		if a.Signal != "" {
			out = append(out, a)
		}
	}
	return out
}

// signal gives the signal and its addressee for a job: those that it declares, else the first rule that matches.
func (w *writer) signal(j *cluster.Job) (string, string) {
	if s := &j.Declares; s.Signal != "" {
		return s.Signal, s.SignalTo
	}
	for _, r := range w.Settings.Signals {
		if (r.Partition == "" || slices.Contains(j.Partitions, r.Partition)) &&
			(r.QOS == "" || r.QOS == j.QOS) && (r.Account == "" || r.Account == j.Account) {
			return r.Signal, r.To
		}
	}
	return w.Settings.Signal, w.Settings.SignalTo
}

// tidy removes what a started job no longer needs, and reservations of ours
// that nobody names any more. Where we do not act we remove only what a job that
// we pinned ourselves names: the rest may be another's.
func (w *writer) tidy(out []cluster.Action) []cluster.Action {
	named, given := map[string]bool{}, map[string]bool{}
	for k := range out {
		if name := out[k].Reservation; name != "" {
			named[name] = true
		}
	}
	for vc := range w.wanted {
		named[fencePrefix+vc] = true
	}
	named[cluster.GateReservation] = w.Snapshot.License.Total > 0
	for i := range w.Snapshot.Cases {
		st, name := &w.Jobs[i], w.Snapshot.Cases[i].Job.Reservation
		if name == "" || !st.Live || !isOurs(name) {
			continue
		}
		ours := st.Control == cluster.ObserveOnly && w.Records[i].Pinned
		if ours && st.Waits { // its pin was taken back above
			given[name] = true
			continue
		}
		named[name] = true
		if vc, ok := strings.CutPrefix(name, fencePrefix); ok && w.wanted[vc] != nil { // it asked for that itself
			continue
		}
		if l := w.Leases[i]; st.Runs && !st.Noticed && (l == nil || l.State != cluster.Ending) { // else in the next round
			a := w.action(cluster.Release, i, cluster.Reason{Code: cluster.ReasonTidy})
			a.Reservation, a.Suppressed = name, a.Suppressed && !ours
			out = append(out, a)
		}
	}
	for i := range w.Snapshot.Reservations {
		r := &w.Snapshot.Reservations[i]
		if r.Ours && !named[r.Name] && r.End > w.Now {
			out = append(out, cluster.Action{Verb: cluster.Unreserve, Reservation: r.Name,
				Suppressed: !w.Any(cluster.FullControl) && !given[r.Name], Reason: cluster.Reason{Code: cluster.ReasonTidy}})
		}
	}
	return out
}

// isOurs tells whether a reservation is one of ours, by its name.
func isOurs(name string) bool {
	return len(name) > len(cluster.ReservationPrefix) && strings.HasPrefix(name, cluster.ReservationPrefix)
}
