// Package vc chooses where tenants have virtual clusters (HiveD; SEMANTICS §5).
package vc

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Chooser chooses where tenants have virtual clusters. It is kept from round to round for its room.
type Chooser struct {
	// Commons gives out nodes that are in no cell.
	Commons Contest
	Brief   bool // no views of the cells are wanted
	// The cells' description, and the cells as they are when all is healthy and free.
	described *cluster.Cells
	plain     *cells.State
	refused   error

	board  *place.Board
	common *place.Board // of nodes in no cell
}

// Contest gives leases to candidates, by right of share.
type Contest func(f *field.Field, in *lease.Input, board *place.Board, touch cluster.Touch)

// turn is a round of a chooser.
type turn struct {
	*field.Field
	*Chooser
	out    field.Outcome
	unsafe []string // how promises to VCs do not add up
}

// Choose implements field.Chooser.
func (c *Chooser) Choose(f *field.Field) field.Outcome {
	h := &turn{Field: f, Chooser: c}
	h.lending()
	for _, touch := range field.Touches {
		if f.Any(touch) {
			f.ExtendFixed(touch)
			h.chooseCells(touch)
		}
	}
	if h.out.Cells == nil { // there is no job at all
		h.chooseCells(cluster.Act)
	}
	return h.out
}

// vcs is a round of choosing where tenants have virtual clusters (HiveD; SEMANTICS §5).
// It decides on the cells first and touches the books only when what it decided is safe:
//
//	build      the cells, with the leases and claims that stand in them
//	guarantee  each VC's cells to its tenant's jobs, as on a private cluster
//	check      the safety condition (Theorem 1); if it fails, nothing is granted
//	carryOut   leases, claims, recalls
//	lend       what is idle, to whoever is furthest below a weighted max-min share
type vcs struct {
	h     *turn
	touch cluster.Touch
	state *cells.State
	board *place.Board // CPUs, memory and whatever else keeps jobs off nodes
	in    *lease.Input
	// By case: the claim that it has, and whether it stands in cells.
	claims map[int]*cluster.Claim
	inside []bool
	// Who still has GPUs that were given to a job.
	squatters map[cluster.JobKey][]int
	// By pool: for how long lent GPUs are likely to stay lent; nil = not worked out yet.
	stays []cluster.Span

	// What is decided, until it is carried out.
	renewed, promoted []int
	demoted           []cluster.JobKey
	granted           []cellGrant
	recalls           []cellRecall
	refused           map[int]cells.Refusal
}

// cellGrant is GPUs for a job that waits.
type cellGrant struct {
	of     int // case
	class  cluster.LeaseClass
	parts  []cells.Part
	recall []int // cases of those who have to go first
}

// cellRecall is a lease that ends for a guaranteed one.
type cellRecall struct {
	of   int
	heir cluster.JobKey
}

// chooseCells gives leases to the jobs of one touch where there are virtual clusters.
func (h *turn) chooseCells(touch cluster.Touch) {
	v := &vcs{h: h, touch: touch, claims: map[int]*cluster.Claim{}, squatters: map[cluster.JobKey][]int{}, inside: make([]bool, len(h.Snapshot.Cases)), refused: map[int]cells.Refusal{}}
	if _, err := h.layout(h.Snapshot.Cells); err != nil {
		v.safePlan(err.Error())
		h.out.Cells, h.out.Lost = &cluster.CellReport{Unsafe: h.unsafe}, h.Snapshot.Lost
		return
	}
	v.build()
	in := lease.Input{Now: h.Now, Settings: h.Settings}
	in.Candidates, in.Tenants = h.Line(v.candidates())
	v.in = &in
	v.occupy()
	v.guarantee()
	if unsafe := v.unsafe(); unsafe != nil {
		v.safePlan(words(unsafe)...)
	} else {
		v.carryOut()
		v.commons()
		v.lend()
	}
	h.Dismiss(touch)
	v.fence()
	v.explain()
	v.report()
}

// candidates lists the jobs that could hold a lease next: besides those that always could,
// those that run in the middle of an opportunistic lease. In cells others than ASTRAEA's
// orders are known, too.
func (v *vcs) candidates() []lease.Candidate {
	h := v.h
	cs := h.Candidates(v.touch)
	for i, l := range h.Leases {
		st := &h.Jobs[i]
		if l == nil || !st.Ours(v.touch) || !st.Runs || h.Ending(i) || st.Tenant < 0 || !v.inside[i] ||
			v.right(i) != cluster.Opportunistic || l.State != cluster.Active || st.Order != nil {
			continue
		}
		r := &h.Records[i]
		cs = append(cs, lease.Candidate{Case: i, Key: r.Key, Tenant: st.Tenant, Pools: h.PoolOf(l), GPUs: l.GPUs,
			Priority: lease.Priority{First: r.First, Owed: r.Due - r.Alloc, Rho: st.Rho,
				Urgent: slices.Contains(h.Settings.UrgentQOS, h.Snapshot.Cases[i].Job.QOS)}})
	}
	for k := range cs {
		v.rank(&cs[k])
	}
	return cs
}

// SecondQueue is the attained service that takes a job to the second queue of Tiresias-L
// (Gu et al., NSDI'19, §3.2). The simulator that its authors released (SymbioticLab/Tiresias) has
// 3,250, 7,200 and 18,000 GPU-seconds. The last is better for it than the first, in completion time
// and in sharing loss, on the trace where that was tried.
const SecondQueue = cluster.GPUTime(18000 * cluster.Second)

// rank sets what orders a candidate in its VC. Whatever that is, those who run go before
// those who wait where it is equal, and then it is first come, first served.
func (v *vcs) rank(k *lease.Candidate) {
	r := &v.h.Records[k.Case]
	switch v.h.Settings.Chooser {
	case "fifo": // nobody is preempted
		k.New, k.Rho = false, cluster.Fair
		if k.Running && v.right(k.Case) == cluster.Guaranteed {
			k.Rho = 0
		}
	case "tiresias-l":
		k.New, k.Rho = false, 0
		if r.Alloc >= SecondQueue {
			k.Rho = 1
		}
	case "gandiva-fair": // the stride of jobs that share a tenant's tickets by GPU (§3.1)
		k.New, k.Rho = false, cluster.Rho(int64(r.Alloc)/int64(max(k.GPUs, 1)))
	}
}

// right gives by what right a job's lease stands in the cells; "" = it does not.
func (v *vcs) right(i int) cluster.LeaseClass { return v.state.Right(v.h.Records[i].Key) }

// occupy puts what is held on the board: who may have to go as soft, the rest as fixed.
func (v *vcs) occupy() {
	h := v.h
	h.board = h.Fresh(h.board)
	v.board = h.board
	v.board.Await(len(h.Jobs))
	for i := range h.Jobs {
		st, l := &h.Jobs[i], h.Leases[i]
		switch {
		case !st.Live:
		case l != nil && l.State == cluster.Granted:
			if v.right(i) == cluster.Opportunistic {
				v.board.Soften(i, -1, 0, h.Now, l.Nodes)
			} else {
				v.board.Hold(l.Nodes)
			}
		case st.Waits:
		case v.right(i) == cluster.Opportunistic, v.mayGo(i):
			v.board.Soften(i, -1, btoi(v.right(i) == cluster.Opportunistic), h.Now, h.Snapshot.Cases[i].Job.Holds)
		default:
			v.board.Hold(h.Snapshot.Cases[i].Job.Holds)
		}
	}
	for _, cl := range v.claims {
		v.board.Hold(cl.Nodes)
	}
}

// mayGo tells whether a guaranteed lease ends now if its VC so wants.
func (v *vcs) mayGo(i int) bool { return v.inside[i] && v.h.Ending(i) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The priorities of leases within a VC: by place in the queue where their turn is decided
// on now, above these where it is not; urgent ones above all that are not.
const (
	inTerm = 1 << 28
	urgent = 1 << 29
)

// guarantee gives every VC's cells to its tenant's jobs, in their order.
func (v *vcs) guarantee() {
	h := v.h
	for i, l := range h.Leases {
		if l == nil || !v.inside[i] {
			continue
		}
		p := inTerm
		if v.h.Stops.Gone(i) { // it is lent nothing any more: not even an urgent job of its VC takes its right
			p = inTerm + urgent
		}
		if v.mayGo(i) {
			p = -inTerm // of one that is not even in the line
		}
		if slices.Contains(h.Settings.UrgentQOS, h.Snapshot.Cases[i].Job.QOS) {
			p += urgent
		}
		v.state.Prefer(h.Records[i].Key, p)
	}
	for t := range v.in.Tenants {
		if v.state.Has(v.in.Tenants[t].Name) {
			v.guaranteeVC(t)
		}
	}
}

func (v *vcs) guaranteeVC(t int) {
	h, tenant := v.h, &v.in.Tenants[t]
	priority := func(at int) int {
		p := -at
		if v.in.Candidates[tenant.Jobs[at]].Urgent {
			p += urgent
		}
		return p
	}
	for at, i := range tenant.Jobs {
		if k := &v.in.Candidates[i]; k.Running && v.right(k.Case) == cluster.Guaranteed {
			v.state.Prefer(k.Key, priority(at))
		}
	}
	type attempt struct {
		shape        int
		soft, urgent bool
	}
	failed := map[attempt]cells.Refusal{}
	for at, i := range tenant.Jobs {
		k := &v.in.Candidates[i]
		c := k.Case
		switch {
		case h.Leases[c] != nil:
			v.keep(k, tenant.Name)
		case v.claims[c] != nil: // it has its place already
			v.granted = append(v.granted, cellGrant{of: c, class: cluster.Guaranteed, parts: v.state.Parts(k.Key), recall: v.squatters[k.Key]})
		default:
			try := attempt{k.Shape, v.soft(c), k.Urgent}
			refusal, known := failed[try]
			if !known {
				var ok bool
				if refusal, ok = v.request(k, tenant.Name, priority(at)); ok || v.forgiving(k, tenant.Name, priority(at)) {
					continue
				}
				failed[try] = refusal
			}
			v.refused[c] = refusal
		}
	}
}

// keep renews a guaranteed lease, and makes an opportunistic one guaranteed where it is if
// its VC has the cells for that.
func (v *vcs) keep(k *lease.Candidate, vc string) {
	h := v.h
	switch v.right(k.Case) {
	case cluster.Guaranteed:
		if k.Running {
			v.renewed = append(v.renewed, k.Case)
			v.board.Renew(k.Case)
		}
	case cluster.Opportunistic:
		if h.Leases[k.Case].State == cluster.Ending || !v.state.Promote(k.Key, vc, true) {
			return
		}
		v.state.Prefer(k.Key, inTerm)
		v.board.Renew(k.Case)
		if v.promoted = append(v.promoted, k.Case); k.Running {
			v.renewed = append(v.renewed, k.Case)
		}
	}
}

// request asks for a VC's cells for a job that waits.
func (v *vcs) request(k *lease.Candidate, vc string, priority int) (cells.Refusal, bool) {
	h := v.h
	refusal := cells.Refusal{Code: cells.UnknownLevel, VC: vc}
	for _, q := range v.asks(k, vc, priority, place.Anybodys) {
		grant, err := v.state.Request(q)
		if err != nil {
			errors.As(err, &refusal)
			continue
		}
		g := cellGrant{of: k.Case, class: cluster.Guaranteed, parts: grant.Parts}
		for _, key := range grant.Recall {
			g.recall = append(g.recall, h.Find(key))
		}
		if k.Humble && len(g.recall) > 0 { // it leaves others alone
			v.state.Release(k.Key)
			for _, key := range grant.Demoted {
				v.state.Promote(key, vc, false)
			}
			return cells.Refusal{Code: cells.NoneToLend, VC: vc}, false
		}
		v.demoted = append(v.demoted, grant.Demoted...)
		v.settle(k, &g)
		return refusal, true
	}
	return refusal, false
}

// forgiving asks again for a job that was refused and avoids the nodes on which its last grant did
// not start: they may be all that its VC has.
func (v *vcs) forgiving(k *lease.Candidate, vc string, priority int) bool {
	r := &v.h.Records[k.Case]
	if len(r.Shun) == 0 {
		return false
	}
	shun, shape := r.Shun, k.Shape
	r.Shun = nil
	k.Shape = v.h.Site.Shape(eligible.Spec(v.h.Books, k.Case))
	_, ok := v.request(k, vc, priority)
	if !ok {
		r.Shun, k.Shape = shun, shape
	}
	v.h.Jobs[k.Case].Shape = k.Shape
	return ok
}

// settle takes the place of a grant on the board, and with it what its CPUs and memory need.
func (v *vcs) settle(k *lease.Candidate, g *cellGrant) {
	h := v.h
	for _, i := range g.recall {
		v.board.Displace(i)
	}
	nodes := v.holdings(g.parts, k.Shape)
	v.board.Hold(nodes)
	for n := range nodes {
		for i := v.board.Crowded(nodes[n].Node); i >= 0; i = v.board.Crowded(nodes[n].Node) {
			v.board.Displace(i)
			if key := h.Records[i].Key; v.right(i) == cluster.Guaranteed {
				v.state.Demote(key)
				v.demoted = append(v.demoted, key)
			}
			g.recall = append(g.recall, i)
		}
	}
	for _, i := range g.recall {
		v.state.Leave(h.Records[i].Key)
		v.recalls = append(v.recalls, cellRecall{i, k.Key})
	}
	v.granted = append(v.granted, *g)
}

// holdings gives the GPUs of parts as what a job of a shape holds.
func (v *vcs) holdings(parts []cells.Part, shape int) []cluster.Holding {
	var out []cluster.Holding
	for _, p := range parts {
		at, _ := v.state.Place(p.Node)
		index := indices(p.GPUs)
		if n := len(out); n > 0 && out[n-1].Node == p.Node {
			index = append(out[n-1].Index, index...)
			slices.Sort(index)
			out = out[:n-1]
		}
		cpus, memory := v.board.Parts(shape, len(index))
		out = append(out, cluster.Holding{Node: p.Node, Model: at.Model, GPUs: len(index), Index: index, CPUs: cpus, MemoryMB: memory})
	}
	slices.SortFunc(out, func(a, b cluster.Holding) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// asks gives a job's request as cells know it: so many nodes with so many GPUs each. A job
// that asks for nodes gets just those (hard); one that asks for GPUs alone is put on as few
// nodes as it fits on, evenly, and after a while on any (soft).
func (v *vcs) asks(k *lease.Candidate, tenant string, priority, displace int) []cells.Request {
	h := v.h
	r := &h.Snapshot.Cases[k.Case].Job.Request
	base := cells.Request{Key: k.Key, VC: tenant, Priority: priority, Soft: v.soft(k.Case)}
	var out []cells.Request
	for _, c := range v.state.Chains() {
		pool := h.Pool(c.Model)
		if r.Model != "" && r.Model != c.Model || !slices.Contains(k.Pools, pool) {
			continue
		}
		q := base
		q.Chain, q.Model, q.Apart = c.Chain, c.Model, r.Nodes > 0
		switch {
		case r.Exclusive:
			q.Nodes, q.GPUs = max(r.Nodes, 1), c.GPUs
		case r.PerNode > 0:
			q.Nodes, q.GPUs = max(r.Nodes, (r.GPUs+r.PerNode-1)/r.PerNode), r.PerNode
		case r.Nodes > 0:
			q.Nodes = r.Nodes
			q.GPUs = (r.GPUs + r.Nodes - 1) / r.Nodes
		default:
			q.Nodes = (r.GPUs + c.GPUs - 1) / c.GPUs
			for r.GPUs%q.Nodes != 0 {
				q.Nodes++
			}
			q.GPUs = r.GPUs / q.Nodes
		}
		ask := place.Ask{Shape: k.Shape, Pool: pool, Now: h.Now, End: lease.Next(h.Now, h.Settings), Displace: displace}
		q.Admits = func(node string, gpus int) bool { return v.board.Admits(ask, node, gpus) }
		out = append(out, q)
	}
	return out
}

// soft tells whether a job takes GPUs wherever they are.
func (v *vcs) soft(i int) bool {
	r := &v.h.Snapshot.Cases[i].Job.Request
	if r.PerNode > 0 || r.Nodes > 0 || r.Exclusive {
		return false
	}
	return !v.h.Later(v.h.Records[i].First.Add(v.h.Settings.AffinityWait))
}

// unsafe evaluates the safety condition (HiveD Theorem 1, invariant (2)).
func (v *vcs) unsafe() []cells.Violation { return v.state.Unsafe() }

func words(all []cells.Violation) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].Error()
	}
	return out
}

// carryOut does what was decided.
func (v *vcs) carryOut() {
	h := v.h
	goes := make(map[cluster.JobKey]bool, len(v.recalls))
	for _, r := range v.recalls {
		goes[h.Records[r.of].Key] = true
		v.end(r)
	}
	for _, key := range v.demoted {
		if i := h.Find(key); h.Leases[i] != nil && !goes[key] {
			h.Leases[i].Class, h.Leases[i].Parts = cluster.Opportunistic, v.state.Parts(key)
		}
	}
	for _, i := range v.promoted {
		h.Leases[i].Class, h.Leases[i].Parts = cluster.Guaranteed, v.state.Parts(h.Records[i].Key)
	}
	for _, i := range v.renewed {
		h.Extend(i)
		h.Jobs[i].Began = true
	}
	for k := range v.granted {
		v.grant(&v.granted[k])
	}
}

// end recalls one lease: at the end of its term if that is so near that its turn is being
// decided on, else after the notice of recalls.
func (v *vcs) end(r cellRecall) {
	h := v.h
	l, st := h.Leases[r.of], &h.Jobs[r.of]
	switch {
	case l == nil || l.State != cluster.Granted && !st.Runs: // it cleans up
		return
	case l.State == cluster.Granted:
		h.TakeBack(r.of, round.Recalled)
	case l.State == cluster.Ending:
		st.Heir = r.heir
	case l.Class != cluster.Opportunistic && h.Ending(r.of) && l.Why == "": // its term is over anyway
		st.Heir = r.heir
	default:
		if l.Class == cluster.Opportunistic && l.Why != round.Recalled && v.touch == cluster.Act {
			h.recalledFrom(l.Pool)
		}
		l.End, l.Why, st.Heir, st.Stoppable = min(l.End, h.Now.Add(h.Settings.RecallNotice)), round.Recalled, r.heir, true
	}
}

// trim takes GPUs off the last nodes of a gang that was asked for evenly and is not even.
func trim(parts []cells.Part, gpus int) []cells.Part {
	for _, p := range parts {
		gpus -= bits.OnesCount64(p.GPUs)
	}
	for k := len(parts) - 1; k >= 0 && gpus < 0; k-- {
		for p := &parts[k]; gpus < 0 && bits.OnesCount64(p.GPUs) > 1; gpus++ {
			p.GPUs &^= 1 << (63 - bits.LeadingZeros64(p.GPUs))
		}
	}
	return parts
}

// grant makes a lease, or a claim until those who are there have gone.
func (v *vcs) grant(g *cellGrant) {
	h := v.h
	st := &h.Jobs[g.of]
	if r := &h.Snapshot.Cases[g.of].Job.Request; !r.Exclusive {
		g.parts = trim(g.parts, r.GPUs)
	}
	nodes := v.holdings(g.parts, st.Shape)
	pool, at := nodes[0].Model, h.Now
	for _, i := range g.recall {
		if l := h.Leases[i]; l != nil && l.State != cluster.Ending {
			at = max(at, l.End)
		}
	}
	if at > h.Now {
		cl := cluster.Claim{Job: h.Records[g.of].Key, Pool: pool, Nodes: nodes, At: at, Made: h.Now, Parts: g.parts}
		if old := v.claims[g.of]; old != nil {
			cl.Made = old.Made
		}
		h.Claims, st.Claimed = append(h.Claims, cl), true
		return
	}
	h.Lend(g.of, pool, nodes, lease.Next(h.Now, h.Settings))
	h.Leases[g.of].Class, h.Leases[g.of].Parts = g.class, g.parts
}
