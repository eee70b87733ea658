package share

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A job that ends within a round's interval would leave its GPUs empty for the rest of it. So further short jobs of its
// tenant are granted leases behind its own: as many as fill an interval.

// mostBehind is the most jobs behind a lease. startTime is the time that Slurm takes to start the next job when one has
// ended.
const (
	mostBehind = 8
	startTime  = cluster.Second
)

// follow grants leases behind those of short jobs. Jobs get them that come next in their tenant's order, that are short
// too, and that ask for the same. The lease in front was due to the tenant up to its end, and those behind it end then too:
// so the tenant gets no GPUs that others are due.
func follow(x *contest, in *lease.Input, choice *lease.Choice, board *place.Board) {
	if x.f.In.Snapshot.Cells != nil || x.f.Due.JobsQueue || x.f.In.Settings.Divides() || !budget.AnyBrief(x.f.Stops) {
		return
	}
	f := &follower{x: x, in: in, choice: choice, board: board, users: x.f.In.Settings.Users == cluster.UsersEqual,
		open: make([]int, len(in.Tenants))}
	if f.lines = f.lead(); f.lines == nil {
		return
	}
	for t := range in.Tenants {
		if f.open[t] > 0 {
			in.Tenants[t].Each(in.Candidates, func(i, p, _ int) {
				if f.open[t] > 0 {
					f.offer(t, i, p)
				}
			})
		}
	}
}

// follower grants leases behind others.
type follower struct {
	x      *contest
	in     *lease.Input
	choice *lease.Choice
	board  *place.Board
	users  bool // users take turns
	lines  map[lineKey]*behindLine
	open   []int // by tenant: its lines that still have places
}

// lineKey identifies the leases behind which the same jobs may be granted: of a tenant in a pool, or of one of its users
// where they take turns, since the lease in front was that user's turn; else user is -1.
type lineKey struct{ tenant, pool, user int }

// behindLine is these leases. at is the one that gets the next job.
type behindLine struct {
	holders []holder
	at      int
	left    int // holders that have places
}

// holder is a lease of a short job with places for jobs behind it.
type holder struct {
	item, shape int // case, and shape of its request
	gpus        cluster.MicroGPU
	free        int // places
	binds       bool
}

func (f *follower) key(tenant, pool, user int) lineKey {
	if !f.users {
		user = -1
	}
	return lineKey{tenant, pool, user}
}

// lead returns the leases behind which there are places, and counts the lines of each tenant.
func (f *follower) lead() (lines map[lineKey]*behindLine) {
	behind := map[cluster.JobKey]int{} // jobs behind each lease
	for _, l := range f.x.f.Hand.Leases {
		if l != nil && l.Behind != 0 {
			behind[l.Behind]++
		}
	}
	var kept map[string]bool
	var turn []bool
	for i, l := range f.x.f.Hand.Leases {
		if l == nil || !f.mayLead(i) {
			continue
		}
		ran, short := budget.Brief(f.x.f.Stops, i)
		if !short {
			continue
		}
		if kept == nil {
			kept, turn = f.kept(), f.turns()
		}
		st, who, mark, p := &f.x.f.In.Cases[i], &f.x.f.Due.Queued[i], &f.x.f.Hand.Marks[i], f.x.f.In.Pool(l.Pool)
		// On other idle GPUs of the node Slurm would start the jobs at once.
		if kept[l.Nodes[0].Node] || place.IdleOn(f.board, l.Nodes[0].Node, p) > 0 || l.State == cluster.Active && !turn[int(who.Queue)*len(f.x.f.In.Pools)+p] {
			continue
		}
		each := max(ran, 0) + startTime
		places := min((f.x.f.In.Settings.Interval+each-1)/each, mostBehind, l.End.Sub(f.x.f.In.Now)/each) - cluster.Span(behind[l.Job])
		if places <= 0 {
			continue
		}
		key := f.key(int(who.Queue), p, int(st.User))
		if lines == nil {
			lines = map[lineKey]*behindLine{}
		}
		n := lines[key]
		if n == nil {
			n = &behindLine{}
			lines[key] = n
			f.open[who.Queue]++
		}
		n.holders = append(n.holders, holder{item: i, shape: f.x.f.Site.Shape(f.x.f.Spec(i)), gpus: cluster.SizeHeld(l.Nodes).Amount(), free: int(places), binds: !mark.Stoppable})
		n.left++
	}
	return lines
}

// mayLead reports whether jobs may be granted leases behind a lease: it holds GPUs of one node that are not in cells, does
// not end soon, and its job has not run for long.
func (f *follower) mayLead(i int) bool {
	l, st, who, j := f.x.f.Hand.Leases[i], &f.x.f.In.Cases[i], &f.x.f.Due.Queued[i], &f.x.f.In.Snapshot.Cases[i].Job
	starts := l.State == cluster.Granted && st.Waits
	runs := l.State == cluster.Active && st.Runs && f.x.f.In.Now.Sub(j.Start) < f.x.f.In.Settings.Interval && !f.x.f.Ending(i)
	return (starts || runs) && l.Behind == 0 && l.Parts == nil && len(l.Nodes) == 1 && l.Why != round.Recalled &&
		st.Control == cluster.FullControl && st.Order == nil && who.Queue >= 0 && f.x.f.In.Pool(l.Pool) >= 0 &&
		!j.Request.Exclusive && !f.in.Tenants[who.Queue].Spent
}

// kept returns the nodes on which GPUs are handed over, kept for a job, or reserved.
func (f *follower) kept() map[string]bool {
	out := map[string]bool{}
	add := func(nodes []cluster.Holding) {
		for k := range nodes {
			out[nodes[k].Node] = true
		}
	}
	for _, l := range f.x.f.Hand.Leases {
		if l != nil && l.State == cluster.Ending {
			add(l.Nodes)
		}
	}
	for k := range f.x.f.Hand.Claims {
		add(f.x.f.Hand.Claims[k].Nodes)
	}
	for k := range f.x.f.In.Snapshot.Reservations {
		if r := &f.x.f.In.Snapshot.Reservations[k]; r.End == 0 || r.End > f.x.f.In.Now {
			for _, n := range r.Nodes {
				out[n] = true
			}
		}
	}
	return out
}

// turns returns, by tenant, then pool, whether GPUs of the tenant that become free now would be its own again: no other
// tenant with waiting jobs is further behind by more than the threshold, with all leases charged.
func (f *follower) turns() []bool {
	n, all := len(f.x.f.In.Pools), f.in.Tenants
	behind, waits := make([]cluster.Span, n*len(all)), make([]bool, n*len(all))
	for t := range all {
		for p := range n {
			behind[t*n+p] = all[t].Shares[p].Behind
		}
	}
	pay := func(i, p int, span cluster.Span) {
		k := &f.in.Candidates[i]
		behind[k.Tenant*n+p] -= lease.Cost(all[k.Tenant].Shares[p].Entitlement, k.In(p), span)
	}
	for k := range f.choice.Grants {
		g := &f.choice.Grants[k]
		pay(g.Candidate, g.Pool, g.End.Sub(g.At))
	}
	for _, i := range f.choice.Renewed {
		pay(i, f.in.Candidates[i].Pools[0], f.x.f.In.Settings.Term)
	}
	for i := range f.in.Candidates {
		if k := &f.in.Candidates[i]; !k.Running && !k.IdleOnly && f.x.f.Hand.Leases[k.Case] == nil {
			for _, p := range k.Pools {
				waits[k.Tenant*n+p] = true
			}
		}
	}
	out := make([]bool, n*len(all))
	for t := range all {
		for p := range n {
			out[t*n+p] = true
			for o := range all {
				due := all[o].Shares[p].Entitlement > 0 && !all[o].Spent
				ahead := behind[o*n+p] > behind[t*n+p]+f.x.f.In.Settings.Threshold || all[t].Shares[p].Entitlement == 0
				if o != t && waits[o*n+p] && due && ahead {
					out[t*n+p] = false
				}
			}
		}
	}
	return out
}

// offer grants a candidate a lease behind another one, if it fits. If it does not, but would fit on the GPUs in front,
// these are the candidate's next: nobody else is granted a lease there.
func (f *follower) offer(tenant, i, pool int) {
	k := &f.in.Candidates[i]
	n := f.lines[f.key(tenant, pool, int(k.Priority.User))]
	if n == nil || n.left == 0 || k.Running || k.IdleOnly || f.x.f.Hand.Leases[k.Case] != nil {
		return
	}
	short := false
	if slices.ContainsFunc(n.holders, func(h holder) bool { return h.shape == k.Shape }) && !f.x.f.Hand.IsClaimed(k.Key) {
		_, short = budget.Brief(f.x.f.Stops, k.Case)
	}
	for step := range n.holders {
		at := (n.at + step) % len(n.holders)
		h := &n.holders[at]
		switch {
		case h.free == 0:
			continue
		case !short || h.shape != k.Shape:
			if k.GPUs <= h.gpus {
				h.free, n.left = 0, n.left-1
			}
			continue
		case !h.binds && f.x.f.Stops.Binds(k.Case, f.x.f.Hand.Leases[h.item].End), !f.admitted(k, h.item):
			continue
		}
		field.Follow(f.x.f, k.Case, h.item)
		f.choice.Passed[i] = round.Passed{}
		if h.free--; h.free == 0 {
			n.left--
		}
		n.at = at + 1
		break
	}
	if n.left == 0 {
		f.open[tenant]--
	}
}

// admitted reports whether Slurm's limits let a job start when the one in front has ended, and counts it if need be. Jobs to
// which the same limits apply take each other's part.
func (f *follower) admitted(k *lease.Candidate, holder int) bool {
	j, o := &f.x.f.In.Snapshot.Cases[k.Case].Job, &f.x.f.In.Snapshot.Cases[holder].Job
	if f.in.Limits == nil || j.Account == o.Account && j.User == o.User && j.QOS == o.QOS && j.Licenses == o.Licenses &&
		slices.Equal(j.Partitions, o.Partitions) && j.Request == o.Request {
		return true
	}
	if f.in.Limits.Room(k.Case) != lease.Now {
		return false
	}
	f.in.Limits.Take(k.Case, true)
	return true
}
