package vc

import (
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// Where a policy divides GPU models, each VC's healthy cells are a problem of their own, between the parties of its
// tenant (SEMANTICS §4). A party's deficits then say which of its jobs gets which model of the VC's cells next. The
// guarantee is the same as without a policy: a job whose party is entitled to no GPU of a model still gets free
// cells of it, after all others.

// guaranteeModels gives a VC's cells to the jobs of its tenant, in the order of their turns on each model.
func (v *decision) guaranteeModels(t int) {
	tenant, line := &v.in.Tenants[t], v.turns(t)
	priority := func(at int) int {
		p := -at
		if v.in.Candidates[line[at].Candidate].Priority.Urgent {
			p += urgent
		}
		return p
	}
	for at, x := range line {
		if k := &v.in.Candidates[x.Candidate]; k.Running && k.Pools[0] == x.Pool && v.g.right(k.Case) == cluster.Guaranteed {
			v.g.state.Leases.Prefer(k.Case, priority(at))
		}
	}
	served := make(map[int]bool, len(tenant.Jobs)) // by case: it has its GPUs for the next term
	v.goOn(tenant.Name, served)
	if v.g.turn.orders[t] == nil {
		v.try(t, served)
	}
	for at, x := range line {
		k := &v.in.Candidates[x.Candidate]
		c := k.Case
		switch {
		case served[c]:
		case v.g.claims[c] != nil:
			v.confirm(c)
			g := &v.granted[len(v.granted)-1]
			g.nodes = v.g.holdings(g.parts, k.Shape)
			v.clear(g)
			served[c] = true
		case v.g.turn.f.Hand.Leases[c] == nil:
			served[c] = v.serve(k, tenant.Name, priority(at), x.Pool)
		case k.Pools[0] == x.Pool:
			v.keep(k, tenant.Name) // it may still move where it gets more done
		case !slices.Contains(v.renewed, c) || slices.ContainsFunc(k.Better, func(b lease.Better) bool { return b.Pool == x.Pool }):
			served[c] = v.move(k, tenant.Name, priority(at), x.Pool)
		}
	}
}

// goOn keeps the cells to which jobs of a VC are moving.
func (v *decision) goOn(vc string, served map[int]bool) {
	for _, i := range slices.Sorted(maps.Keys(v.g.moving)) {
		if v.g.turn.f.In.Records[i].Tenant != vc {
			continue
		}
		parts := v.g.state.Leases.Parts(v.g.moved(i))
		g := cellGrant{of: i, class: cluster.Guaranteed, parts: parts, moves: true,
			nodes: v.g.holdings(parts, v.g.turn.f.Site.Shape(v.g.turn.f.Spec(i))), recall: v.g.staleHolders[v.g.moved(i)]}
		if !v.clear(&g) { // Slurm has started another job there
			v.g.state.Release(v.g.moved(i))
			delete(v.g.moving, i)
			continue
		}
		v.granted = append(v.granted, g)
		v.g.state.Leases.Prefer(i, -inTerm)
		served[i] = true
	}
}

// clear recalls the leases that hold GPUs of a claim although the cells have them elsewhere: Slurm chose their GPUs. It
// reports whether the GPUs of the claim can be had.
func (v *decision) clear(g *cellGrant) bool {
	for _, i := range g.recall {
		v.g.board.Displace(i)
	}
	for n := range g.nodes {
		for {
			i, short := v.g.board.Short(g.nodes[n].Node, g.nodes[n].Model)
			if i < 0 {
				if short {
					return false
				}
				break
			}
			v.g.board.Displace(i)
			if v.g.right(i) == cluster.Guaranteed {
				v.g.state.Demote(i)
				v.demoted = append(v.demoted, i)
			}
			v.g.state.Leases.Leave(i)
			g.recall = append(g.recall, i)
			v.recalls = append(v.recalls, cellRecall{i, v.g.turn.f.In.Records[g.of].Key})
		}
	}
	return true
}

// try gives jobs of a VC its cells for trials on models that have not been measured.
func (v *decision) try(t int, served map[int]bool) {
	for _, trial := range v.in.Trials {
		k := &v.in.Candidates[trial.Candidate]
		if k.Tenant != t || served[k.Case] || v.g.claims[k.Case] != nil {
			continue
		}
		const first = 1
		if v.g.turn.f.Hand.Leases[k.Case] == nil {
			served[k.Case] = v.serve(k, v.in.Tenants[t].Name, first, trial.Pool)
		} else if k.Pools[0] != trial.Pool {
			served[k.Case] = v.move(k, v.in.Tenants[t].Name, first, trial.Pool)
		}
	}
}

// move requests a VC's cells in another pool for a running job whose lease ends, and reports whether it moves.
func (v *decision) move(k *lease.Candidate, vc string, priority, pool int) bool {
	if !k.Running || !v.g.inside[k.Case] || v.g.touch != cluster.FullControl {
		return false
	}
	for _, c := range v.g.chains {
		if c.Model != v.g.turn.f.In.Pools[pool] {
			continue
		}
		q := v.g.ask(k, &c, vc, priority, place.Anybodys)
		q.Job = v.g.moved(k.Case)
		grant, err := v.g.state.Request(q)
		if err != nil {
			continue
		}
		v.demoted = append(v.demoted, grant.Demoted...)
		v.settle(k, &cellGrant{of: k.Case, class: cluster.Guaranteed, parts: grant.Parts, recall: grant.Recall, moves: true})
		v.renewed = slices.DeleteFunc(v.renewed, func(i int) bool { return i == k.Case })
		v.g.state.Leases.Prefer(k.Case, -inTerm) // its present cells are the next job's
		return true
	}
	return false
}
