package vc

import (
	"errors"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// decision is a decision on the cells of VCs that has not been applied yet.
type decision struct {
	g                 *ground
	in                *lease.Input
	renewed, promoted []int // cases
	demoted           []int
	granted           []cellGrant
	recalls           []cellRecall
	refused           map[int]cells.Refusal     // by case
	failed            map[attempt]cells.Refusal // of the VC that is being served
	places            map[int]cluster.VCTurn    // by case: where the VC's own scheduler wants a waiting job
}

// attempt is a kind of request of one VC that was refused. The same request with a lower priority is refused too.
type attempt struct {
	chain, shape       int
	soft, urgent, idle bool
}

// cellGrant gives GPUs to a waiting job.
type cellGrant struct {
	of     int // case
	class  cluster.LeaseClass
	parts  []cells.Part
	nodes  []cluster.Holding // of the parts; nil = not computed yet
	recall []int             // cases of jobs that must leave first
	moves  bool              // the job leaves GPUs of another model first
}

// Priorities of leases within a VC. A lease up for renewal has the priority of its place in the queue, and
// any other lease has a higher one. Urgent leases rank above all others.
const (
	inTerm = 1 << 28
	urgent = 1 << 29
)

// guarantee gives every VC's cells to the jobs of its tenant, in their order.
func guarantee(g *ground, in *lease.Input) *decision {
	v := &decision{g: g, in: in, granted: g.turn.c.lastGrants[:0], recalls: g.leaving, refused: map[int]cells.Refusal{}, places: map[int]cluster.VCTurn{}}
	for i, l := range v.g.turn.f.Hand.Leases {
		if l == nil || !v.g.inside[i] {
			continue
		}
		p := inTerm
		if v.g.turn.f.Stops.Gone(i) { // the job can borrow no more GPUs, so not even an urgent job of its VC takes its right
			p = inTerm + urgent
		}
		if v.g.mayGo(i) {
			p = -inTerm // the priority of a job that is not in the queue
		}
		if len(v.g.turn.f.In.Settings.UrgentQOS) > 0 && slices.Contains(v.g.turn.f.In.Settings.UrgentQOS, v.g.turn.f.In.Snapshot.Cases[i].Job.QOS) {
			p += urgent
		}
		v.g.state.Leases.Prefer(i, p)
	}
	for i := range v.g.moving { // nothing takes the cells for which a job has had its notice
		v.g.state.Leases.Prefer(v.g.moved(i), inTerm+2*urgent)
	}
	for t := range in.Tenants {
		if !v.g.state.Cells.Has(in.Tenants[t].Name) {
			continue
		}
		if v.failed = map[attempt]cells.Refusal{}; !v.g.turn.f.In.Settings.Divides() {
			v.guaranteeVC(t)
		} else {
			v.guaranteeModels(t)
		}
	}
	g.turn.c.lastGrants = v.granted
	return v
}

func (v *decision) guaranteeVC(t int) {
	tenant, line := &v.in.Tenants[t], v.turns(t)
	priority := func(at int) int {
		p := -at
		if v.in.Candidates[line[at].Candidate].Priority.Urgent {
			p += urgent
		}
		return p
	}
	for at, x := range line {
		if k := &v.in.Candidates[x.Candidate]; k.Running && v.g.right(k.Case) == cluster.Guaranteed {
			v.g.state.Leases.Prefer(k.Case, priority(at))
		}
	}
	for at, x := range line {
		k := &v.in.Candidates[x.Candidate]
		c := k.Case
		switch {
		case v.g.turn.f.Hand.Leases[c] != nil:
			v.keep(k, tenant.Name)
		case v.g.claims[c] != nil:
			v.confirm(c)
		default:
			v.serve(k, tenant.Name, priority(at), x.Pool)
		}
	}
}

// confirm grants the cells that are claimed for a job.
func (v *decision) confirm(i int) {
	v.granted = append(v.granted, cellGrant{of: i, class: cluster.Guaranteed, parts: v.g.state.Leases.Parts(i), recall: v.g.staleHolders[i]})
}

// serve requests a VC's cells in a pool for a waiting job. It records a refusal, and reports whether there was none.
func (v *decision) serve(k *lease.Candidate, vc string, priority, pool int) bool {
	if v.place(k, vc, priority, pool) {
		return true
	}
	refusal, ok := v.request(k, vc, priority, pool, nil)
	if ok = ok || v.forgiving(k, vc, priority, pool); ok {
		delete(v.refused, k.Case)
	} else {
		v.refused[k.Case] = refusal
	}
	return ok
}

// keep renews a guaranteed lease. It makes an opportunistic lease guaranteed in place if the VC has the cells
// for it.
func (v *decision) keep(k *lease.Candidate, vc string) {
	switch v.g.right(k.Case) {
	case cluster.Guaranteed:
		if k.Running {
			v.renewed = append(v.renewed, k.Case)
			v.g.board.Renew(k.Case)
		}
	case cluster.Opportunistic:
		if v.g.turn.f.Hand.Leases[k.Case].State == cluster.Ending || !v.g.state.Promote(k.Case, vc, true) {
			return
		}
		v.g.state.Leases.Prefer(k.Case, inTerm)
		v.g.board.Renew(k.Case)
		if v.promoted = append(v.promoted, k.Case); k.Running {
			v.renewed = append(v.renewed, k.Case)
		}
	}
}

// anyPool requests cells of all pools that a job may use.
const anyPool = -1

// request requests a VC's cells in a pool for a waiting job, on the given nodes only; nil = on any.
func (v *decision) request(k *lease.Candidate, vc string, priority, pool int, on []string) (cells.Refusal, bool) {
	refusal, soft := cells.Refusal{Code: cells.UnknownLevel, VC: vc}, v.g.soft(k.Case)
	for n, c := range v.g.chains {
		if !v.g.uses(k, &c) || pool != anyPool && v.g.turn.f.In.Pools[pool] != c.Model {
			continue
		}
		try := attempt{n, k.Shape, soft, k.Priority.Urgent, k.IdleOnly}
		if no, known := v.failed[try]; known {
			refusal = no
			continue
		}
		q := v.g.ask(k, &c, vc, priority, place.Anybodys)
		if admits := q.Admits; on != nil {
			q.Admits = func(node string, gpus int) bool { return slices.Contains(on, node) && admits(node, gpus) }
		}
		grant, err := v.g.state.Request(q)
		if err != nil {
			if errors.As(err, &refusal); on == nil {
				v.failed[try] = refusal
			}
			continue
		}
		g := cellGrant{of: k.Case, class: cluster.Guaranteed, parts: grant.Parts, recall: grant.Recall}
		if k.IdleOnly && len(g.recall) > 0 { // the job must not recall others
			v.g.state.Release(k.Case)
			for _, i := range grant.Demoted {
				v.g.state.Promote(i, vc, false)
			}
			if refusal = (cells.Refusal{Code: cells.NoneToLend, VC: vc}); on == nil {
				v.failed[try] = refusal
			}
			continue
		}
		v.demoted = append(v.demoted, grant.Demoted...)
		v.settle(k, &g)
		return refusal, true
	}
	return refusal, false
}

// forgiving repeats a refused request without the nodes that the job avoids because its last grant did not
// start there. These nodes may be all that the VC has.
func (v *decision) forgiving(k *lease.Candidate, vc string, priority, pool int) bool {
	f := v.g.turn.f
	mark := &f.Hand.Marks[k.Case]
	if mark.Forgiven || len(f.Found.Avoids(k.Case)) == 0 {
		return false
	}
	shape := k.Shape
	mark.Forgiven, k.Shape = true, f.Site.Shape(f.Found.SpecAnywhere(k.Case))
	_, ok := v.request(k, vc, priority, pool, nil)
	if !ok {
		mark.Forgiven, k.Shape = false, shape
	}
	return ok
}

// settle puts a grant on the board, and recalls the jobs whose CPUs and memory it needs.
func (v *decision) settle(k *lease.Candidate, g *cellGrant) {
	for _, i := range g.recall {
		v.g.board.Displace(i)
	}
	g.nodes = v.g.holdings(g.parts, k.Shape)
	v.g.board.Hold(g.nodes, 0)
	for n := range g.nodes {
		for i := v.g.board.Crowded(g.nodes[n].Node); i >= 0; i = v.g.board.Crowded(g.nodes[n].Node) {
			v.g.board.Displace(i)
			if v.g.right(i) == cluster.Guaranteed {
				v.g.state.Demote(i)
				v.demoted = append(v.demoted, i)
			}
			g.recall = append(g.recall, i)
		}
	}
	for _, i := range g.recall {
		v.g.state.Leases.Leave(i)
		v.recalls = append(v.recalls, cellRecall{i, k.Key})
	}
	v.granted = append(v.granted, *g)
}
