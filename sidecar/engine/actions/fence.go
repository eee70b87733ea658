package actions

import (
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A fence is a short-lived reservation that keeps jobs without gates off GPUs that are promised to other jobs:
// jobs of unmanaged partitions, exempt jobs. No managed job is ever in a fence. Grants on its
// nodes use the reservation of a hand-over, which may overlap a fence and covers all nodes of the job. There
// are few fences, because Slurm searches all reservations often.
//
// The fence of a VC is around the nodes that are bound entirely to it, and on which Slurm also starts jobs of
// unmanaged partitions. fairlease prolongs it while it is wanted; otherwise it ends by itself.
//
// The fence of hand-overs is around the nodes that are claimed for jobs whose turn comes within the notice. It
// stands before the notices go out, because a job may end or requeue itself as soon as it has its notice. It
// is one reservation, changed at most once in a round, and removed when its claims are served or given up.
type fence struct {
	name            string
	nodes, accounts []string // sorted
	because         cluster.Code
	// A fence that lasts until enough need not be changed; a changed one lasts until its end.
	enough, end cluster.Instant
}

const (
	// cellPrefix starts the name of the fence of a VC. The name of the VC follows.
	cellPrefix = cluster.ReservationPrefix + "cell_"
	// nextName is the name of the fence of hand-overs.
	nextName = cluster.ReservationPrefix + "next"
)

func isCellFence(name string) bool {
	return len(name) > len(cellPrefix) && strings.HasPrefix(name, cellPrefix)
}

// Prolong returns the first moment at which a reservation of ours is prolonged if it is still wanted; false =
// never.
func Prolong(b *round.Facts, r *cluster.Reservation) (cluster.Instant, bool) {
	switch {
	case r.Name == cluster.GateReservation && b.Snapshot.License.Total > 0:
		return r.End - cluster.Instant(b.Settings.GateTTL/2) + 1, true
	case r.Ours && isCellFence(r.Name):
		return r.End - cluster.Instant(b.Settings.GateTTL) + 1, true
	}
	return 0, false
}

// cellFences returns the fences of VCs, by name. nodes are their nodes, by VC.
func cellFences(b *round.Facts, nodes map[string][]string) []fence {
	var out []fence
	for _, vc := range slices.Sorted(maps.Keys(nodes)) {
		out = append(out, fence{name: cellPrefix + vc, nodes: nodes[vc], accounts: []string{vc}, because: cluster.ReasonFence,
			enough: b.Now.Add(b.Settings.GateTTL), end: b.Now.Add(2 * b.Settings.GateTTL)})
	}
	return out
}

// nextFence returns the fence of hand-overs; false = none is wanted. A node on which a job is about to start
// without a reservation joins the fence when that job runs, unless it is inside of one. moves are the cases that are about to start, or to end.
func nextFence(in *Input, inside []string, moves []int) (fence, bool) {
	b := in.In
	f := fence{name: nextName, because: cluster.ReasonHandOver}
	for k := range in.Claims {
		cl := &in.Claims[k]
		i := b.Find(cl.Job)
		if i < 0 || !b.Cases[i].Ours(cluster.FullControl) || !soon(b, cl) {
			continue
		}
		f.enough = max(f.enough, Overdue(b, cl))
		f.accounts = append(f.accounts, b.Snapshot.Cases[i].Job.Account)
		for _, n := range cl.Nodes {
			f.nodes = append(f.nodes, n.Node)
		}
	}
	if len(f.nodes) == 0 {
		return fence{}, false
	}
	f.end = f.enough.Add(cluster.Minute)
	f.accounts, f.nodes = set(f.accounts), set(f.nodes)
	for _, i := range moves {
		l := in.Leases[i]
		if l.State != cluster.Granted || l.Granted >= b.Now {
			continue
		}
		for _, n := range l.Nodes {
			if at, ok := slices.BinarySearch(f.nodes, n.Node); ok && !within(inside, n.Node) {
				f.nodes = slices.Delete(f.nodes, at, at+1)
			}
		}
	}
	return f, len(f.nodes) > 0
}

// soon reports whether the GPUs of a claim are handed over within the longest notice, and the claim is not overdue.
func soon(b *round.Facts, cl *cluster.Claim) bool {
	notice := max(b.Settings.Notice, b.Settings.NoticeMax, b.Settings.RecallNotice)
	return !cl.Gathers && cl.At.Sub(b.Now) <= notice && b.Now < Overdue(b, cl)
}

// Overdue returns the moment from which no fence stands for a claim.
func Overdue(b *round.Facts, cl *cluster.Claim) cluster.Instant {
	return cl.At.Add(b.Settings.GrantTimeout)
}

// set sorts names and drops repetitions.
func set(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// inFences returns the nodes inside the fences that stand, sorted.
func inFences(b *round.Facts) (out []string) {
	for i := range b.Snapshot.Reservations {
		if r := &b.Snapshot.Reservations[i]; r.Ours && (r.Name == nextName || isCellFence(r.Name)) && r.End > b.Now {
			out = append(out, r.Nodes...)
		}
	}
	return set(out)
}

// fenced returns the nodes inside a fence now or soon, sorted. inside are those of now.
func fenced(inside []string, wanted []fence) []string {
	for k := range wanted {
		inside = append(inside, wanted[k].nodes...)
	}
	return set(inside)
}

// within reports whether a sorted list has a name.
func within(list []string, name string) bool {
	_, ok := slices.BinarySearch(list, name)
	return ok
}

// raise creates, moves and prolongs the wanted fences, either those of VCs or that of hand-overs.
func (w *writer) raise(out []cluster.Action, because cluster.Code) []cluster.Action {
	for k := range w.wanted {
		f := &w.wanted[k]
		if f.because != because || slices.ContainsFunc(w.in.In.Snapshot.Reservations, func(r cluster.Reservation) bool {
			return r.Name == f.name && r.End >= f.enough && slices.Equal(set(slices.Clone(r.Accounts)), f.accounts) && slices.Equal(set(slices.Clone(r.Nodes)), f.nodes)
		}) {
			continue
		}
		out = append(out, cluster.Action{Verb: cluster.Reserve, Reservation: f.name, Nodes: f.nodes, Accounts: f.accounts,
			Until: f.end, Reason: cluster.Reason{Code: f.because}})
	}
	return out
}

// wants reports whether a fence of that name is wanted.
func (w *writer) wants(name string) bool {
	return slices.ContainsFunc(w.wanted, func(f fence) bool { return f.name == name })
}
