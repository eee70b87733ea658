package actions

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A handOver is a set of grants and reclaims that share nodes. Its actions run in the only order in which no
// third job can win a race: the reservation, the grants, and only then the requeues that free the GPUs.
type handOver struct {
	nodes    []string
	grants   []int // cases
	reclaims []int
}

// handOvers opens the gates of jobs that were granted a lease, and requeues jobs whose lease is over.
// Hand-overs of jobs that are only observed form groups of their own, because they will not happen.
func (w *writer) handOvers(out []cluster.Action) []cluster.Action {
	for _, watched := range []bool{false, true} {
		if len(w.of.moving) == 0 || watched && !w.in.In.Any(cluster.ObserveOnly) {
			break
		}
		groups := w.group(watched)
		n := len(groups) + len(w.of.noticed)
		for i := range groups {
			w.grants += len(groups[i].grants)
			n += len(groups[i].grants) + len(groups[i].reclaims)
		}
		out = slices.Grow(out, n)
		for i := range groups {
			out = w.handOver(out, &groups[i])
		}
	}
	return out
}

// group puts grants and reclaims that share a node into one hand-over.
func (w *writer) group(watched bool) []handOver {
	var names []string // memory of most groups, which have one node and one job
	var cases []int
	of := map[string]int{} // node -> group
	var groups []handOver
	for _, i := range w.of.moving {
		if watched != (w.in.In.Cases[i].Control == cluster.ObserveOnly) {
			continue
		}
		l, g := w.in.Leases[i], -1
		for _, n := range l.Nodes {
			if was, ok := of[n.Node]; ok && was != g {
				if g >= 0 {
					g = merge(groups, of, min(was, g), max(was, g))
				} else {
					g = was
				}
			}
		}
		if g < 0 {
			g = len(groups)
			groups = append(groups, handOver{})
		}
		for _, n := range l.Nodes {
			if _, ok := of[n.Node]; !ok {
				groups[g].nodes = appendIn(&names, groups[g].nodes, n.Node, len(w.of.moving))
			}
			of[n.Node] = g
		}
		if l.State == cluster.Granted {
			groups[g].grants = appendIn(&cases, groups[g].grants, i, len(w.of.moving))
		} else {
			groups[g].reclaims = appendIn(&cases, groups[g].reclaims, i, len(w.of.moving))
		}
	}
	for g := range groups {
		slices.Sort(groups[g].nodes)
		slices.Sort(groups[g].grants)
		slices.Sort(groups[g].reclaims)
	}
	return groups
}

// slab is the maximum number of short lists that share an allocation.
const slab = 64

// appendIn appends an element to one of at most n lists. The first element of each list comes from a slab of memory.
func appendIn[T any](memory *[]T, list []T, x T, n int) []T {
	if len(list) == 0 {
		list = cut(memory, 1, min(n, slab))[:0]
	}
	return append(list, x)
}

// cut takes n zero elements from a slab of memory, and makes a new slab of size elements where it is used up. One element
// that lasts keeps its slab in memory.
func cut[T any](memory *[]T, n, size int) []T {
	if len(*memory) < n {
		*memory = make([]T, max(n, size))
	}
	out := (*memory)[:n:n]
	*memory = (*memory)[n:]
	return out
}

// merge moves group b into a and leaves b empty.
func merge(groups []handOver, of map[string]int, a, b int) int {
	groups[a].nodes = append(groups[a].nodes, groups[b].nodes...)
	groups[a].grants = append(groups[a].grants, groups[b].grants...)
	groups[a].reclaims = append(groups[a].reclaims, groups[b].reclaims...)
	for _, n := range groups[b].nodes {
		of[n] = a
	}
	groups[b] = handOver{}
	return a
}

// handOver appends the actions of a hand-over.
func (w *writer) handOver(out []cluster.Action, o *handOver) []cluster.Action {
	frees := slices.ContainsFunc(o.reclaims, func(i int) bool { return w.in.In.Cases[i].Runs })
	name, reserve := "", len(out)
	confined := w.in.In.Snapshot.Cells != nil && slices.ContainsFunc(o.grants, func(i int) bool { return w.in.In.Snapshot.Cases[i].Loose() }) // to its tenant's cells
	if len(o.grants) > 0 && (frees || confined || slices.ContainsFunc(o.nodes, func(n string) bool { return within(w.fenced, n) })) {
		first := w.in.Leases[o.grants[0]]
		name = fmt.Sprintf("%s%d_%d", cluster.ReservationPrefix, first.Job, first.Term)
		out = append(out, cluster.Action{})
	}
	begin := len(out)
	var accounts []string
	for _, i := range o.grants {
		out = w.grant(out, i, name)
		if account := w.in.In.Snapshot.Cases[i].Job.Account; name != "" && !slices.Contains(accounts, account) {
			accounts = append(accounts, account)
		}
	}
	switch {
	case len(out) == begin: // all are about to start
		out = out[:reserve]
	case name != "":
		slices.Sort(accounts)
		out[reserve] = cluster.Action{Verb: cluster.Reserve, Reservation: name, Nodes: o.nodes,
			Accounts: accounts, Until: w.in.In.Now.Add(w.in.In.Settings.GrantTimeout + cluster.Minute), Suppressed: out[begin].Suppressed,
			Reason: cluster.Reason{Code: cluster.ReasonHandOver}}
	}
	for _, i := range o.reclaims {
		out = w.reclaim(out, i)
	}
	return out
}

// grant opens the gate of a job on the nodes of its lease, or on the user's own where only Slurm can choose them, unless
// the gate is open already and the job is about to start.
func (w *writer) grant(out []cluster.Action, i int, reservation string) []cluster.Action {
	c, r := &w.in.In.Snapshot.Cases[i], &w.in.In.Records[i]
	l := w.in.Leases[i]
	g := w.gate.of(i)
	if g.Basis == nil && c.Job.State == cluster.Waiting && c.Control != cluster.ObserveOnly {
		g.Basis = &cut(&w.bases, 1, min(w.grants, 16))[0]
		g.Basis.Set(&c.Job)
		w.gate.set(g)
	}
	slice := w.in.Marks[i].Slice
	if slice != nil && c.Control != cluster.ObserveOnly {
		g.Basis.Request, g.Slice = cluster.SliceOf(c.Job.Request, slice.Shards, l.Nodes[0].Size.Part), slice
		w.gate.set(g)
	}
	loose := c.Loose()
	nodes := cut(&w.names, len(l.Nodes), min(w.grants, slab))
	w.grants--
	for k := range l.Nodes {
		nodes[k] = l.Nodes[k].Node
	}
	if c.Control == cluster.ObserveOnly && g.Pinned { // its pin is being removed
		return out
	}
	if c.Job.State != cluster.Waiting || !c.Job.UnsplitArray && c.Job.Eligible <= w.in.In.Now && !c.Job.Locked && (loose || hostlist.Same(c.Job.NodeList, nodes)) {
		return out
	}
	out, a := w.add(out, cluster.Grant, i)
	a.Reason.Code, a.Reason.Pool, a.Reason.Need, a.Reason.Until = cluster.ReasonGranted, l.Pool, cluster.SizeHeld(l.Nodes).Count(), l.End
	a.Nodes, a.Reservation, a.SiteFactor, a.NodeList = nodes, reservation, turnOf(w.in.In.Settings.SiteFactor, cluster.SizeHeld(l.Nodes)), r.UserNodes
	a.Unlock, a.Licenses = c.Job.Locked, c.Job.Licenses
	switch {
	case slice != nil:
		a.Ask = slice.Words()
	case g.Slice != nil && cluster.SizeHeld(l.Nodes).IsWhole():
		a.Ask = g.Slice.Ask
	case g.Slice != nil: // its grant was not carried out
		a.Ask = g.Slice.Words()
	}
	if loose {
		a.Nodes = nil
	} else if rule := w.in.Found.Can[i].Gate; rule != nil && len(rule.Partitions) < len(c.Job.Partitions) {
		a.Partitions = rule.Partitions // Slurm tries the others, too, keeps the nodes for the job there, and never starts it
	}
	if l.Behind != 0 {
		a.Reason.Code, a.Reason.For, a.Reason.Note, a.Reason.Need = cluster.ReasonFollows, l.Behind, nodes[0], c.Job.Request.Size.Count()
		if a.SiteFactor != 0 {
			a.SiteFactor-- // Slurm starts jobs that have GPUs of their own first
		}
	}
	if r.Ran > 0 && r.UserLimit > 0 {
		a.Limit = w.in.In.Limit(i)
	}
	if a.Scatter = c.Scatters(); a.Scatter && !a.Suppressed {
		scattered := *g.Basis // other records may share it
		scattered.Unplaceable, g.Basis = "", &scattered
		w.report(cluster.Event{Kind: cluster.EventContiguous, Job: r.Key, Text: fmt.Sprintf("job %s of %s loses --contiguous with its grant (opt_out.contiguous: override)", r.ID, r.Tenant)})
	}
	if !a.Suppressed {
		if most := c.Job.Request.MostNodes(); !loose && (most == 0 || most > len(nodes)) {
			g.UserMaxNodes = cmp.Or(most, -1)
		}
		if a.Partitions != nil {
			g.UserPartitions = c.Job.Partitions
		}
		g.Pinned, g.Until, g.Locked = true, 0, false
		w.gate.set(g)
	}
	return out
}

// reclaim requeues a job whose lease is over, if the job runs.
func (w *writer) reclaim(out []cluster.Action, i int) []cluster.Action {
	if !w.in.In.Cases[i].Runs {
		return out
	}
	c, r, l := &w.in.In.Snapshot.Cases[i], &w.in.In.Records[i], w.in.Leases[i]
	g := w.gate.of(i)
	out, a := w.add(out, cluster.Reclaim, i)
	a.Reason.Code, a.Reason.Pool, a.Reason.Until = cluster.ReasonEnding, l.Pool, l.End
	if l.Why == round.Recalled {
		a.Reason.Code, a.Reason.For = cluster.ReasonRecalled, w.in.Marks[i].Beneficiary
	}
	a.NodeList, a.MaxNodes, a.Resume = r.UserNodes, g.UserMaxNodes, c.Job.State == cluster.Suspended || c.Job.Paused
	if c.Changed&cluster.ChangedRequeue != 0 && !a.Suppressed {
		why := "it could be requeued when it was granted its lease, and its owner set Requeue=0 since"
		if g.Basis != nil && g.Basis.Forced {
			why = "it started before its turn, as somebody opened its gate, or had it ask for more GPUs than it was granted"
		}
		w.report(cluster.Event{Kind: cluster.EventRequeueSet, Job: r.Key, Text: fmt.Sprintf("job %s of %s gets Requeue=1 before it is requeued: %s", r.ID, r.Tenant, why)})
	}
	w.shut(i, a)
	return out
}

// turnOf returns the site factor with which a job with a new lease starts. Slurm takes the first GPU of a node with room: if those with whole GPUs
// start first, and then those with the largest parts, they fit as they were put together.
func turnOf(factor int64, size cluster.Size) int64 {
	if size.IsWhole() {
		return factor
	}
	return factor - factor/2*int64(cluster.WholeGPU-size.Part)/int64(cluster.WholeGPU)
}
