package vc

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Picks chooses jobs of a tenant for the coming term by the mechanism of the settings, as on a cluster without cells. free lists the GPUs of the
// cells that may be given anew, by pool and node; taken is the pool in which each candidate of the tenant has a claim, -1 = none. It returns candidates of in.
type Picks func(f *field.Field, in *lease.Input, tenant int, free [][]int, taken []int) []lease.Pick

// order decides in which order the jobs of a tenant get the cells of its VC: the turns are served one after the other, and an earlier one takes
// the cells of later ones whose terms end. Turns are wishes: each is checked against the cells, and GPUs that they leave are lent.
type order func(v *decision, tenant int) []lease.Turn

// orderOf returns the order of a tenant's VC.
func (h *turn) orderOf(tenant int) order {
	switch {
	case !h.f.In.Settings.Divides():
		return anywhere
	case h.choosers[tenant] != cluster.CellsByShare || h.f.UsersBehind() != nil && h.users(tenant) > 1:
		return byJobs
	}
	return byParties
}

// users counts the users with live jobs of a tenant, up to two.
func (h *turn) users(tenant int) int {
	one := int32(-1)
	for i := range h.f.In.Cases {
		if st := &h.f.In.Cases[i]; int(st.Tenant) == tenant && st.Live && st.User >= 0 {
			if one >= 0 && one != st.User {
				return 2
			}
			one = st.User
		}
	}
	return btoi(one >= 0)
}

// turns returns the turns of a tenant's jobs in its VC.
func (v *decision) turns(tenant int) []lease.Turn {
	line := v.g.turn.orderOf(tenant)(v, tenant)
	if o := v.g.turn.orders[tenant]; o != nil {
		return v.bySite(o, line)
	}
	return line
}

// anywhere is the order of the tenant's jobs, on GPUs of any model.
func anywhere(v *decision, tenant int) []lease.Turn {
	jobs := v.in.Tenants[tenant].Jobs
	v.g.turn.c.line = slices.Grow(v.g.turn.c.line[:0], len(jobs))[:len(jobs)]
	for at, i := range jobs {
		v.g.turn.c.line[at] = lease.Turn{Candidate: i, Pool: anyPool}
	}
	return v.g.turn.c.line
}

// byJobs is the order of the tenant's jobs by the VC's chooser where a policy divides GPU models. Each job takes the model first on which its
// party is furthest behind. By first come, first served a running job stays where it is.
func byJobs(v *decision, tenant int) []lease.Turn {
	t := &v.in.Tenants[tenant]
	pools := map[int][]int{} // by candidate
	for _, x := range t.Line {
		pools[x.Candidate] = append(pools[x.Candidate], x.Pool)
	}
	var out []lease.Turn
	for _, i := range t.Jobs {
		k := &v.in.Candidates[i]
		if !k.Running || len(k.Pools) == 0 {
			for _, p := range pools[i] {
				out = append(out, lease.Turn{Candidate: i, Pool: p})
			}
			continue
		}
		out = append(out, lease.Turn{Candidate: i, Pool: k.Pools[0]})
		for _, p := range pools[i] {
			if p != k.Pools[0] && v.g.turn.choosers[tenant] != cluster.CellsFirstCome {
				out = append(out, lease.Turn{Candidate: i, Pool: p})
			}
		}
	}
	return out
}

// byParties is the order where a policy divides GPU models between parties: the jobs that the mechanism of the settings picks, then by debt.
func byParties(v *decision, tenant int) []lease.Turn {
	line := v.in.Tenants[tenant].Line
	if v.g.turn.c.Picks != nil && len(line) > 0 && len(v.in.Tenants[tenant].Jobs) > 0 {
		line = picksFirst(v, line, v.g.turn.c.Picks(v.g.turn.f, v.in, tenant, v.free(tenant), v.taken(tenant)))
	}
	if v.g.turn.levels != nil {
		line = slices.Clone(line)
		slices.SortStableFunc(line, func(a, b lease.Turn) int {
			x, y := &v.in.Candidates[a.Candidate], &v.in.Candidates[b.Candidate]
			return cmp.Or(btoi(y.Priority.Urgent)-btoi(x.Priority.Urgent), cmp.Compare(y.Priority.Level, x.Priority.Level))
		})
	}
	return line
}

// picksFirst puts picks before the line, larger gangs and then running jobs first. A picked job that stays on its GPUs has no other turn.
func picksFirst(v *decision, line []lease.Turn, picks []lease.Pick) []lease.Turn {
	stays := func(i, pool int) bool { k := &v.in.Candidates[i]; return k.Running && k.Pools[0] == pool }
	slices.SortStableFunc(picks, func(a, b lease.Pick) int {
		x, y := &v.in.Candidates[a.Candidate], &v.in.Candidates[b.Candidate]
		return cmp.Or(cmp.Compare(y.GPUs, x.GPUs), btoi(stays(b.Candidate, b.Pool))-btoi(stays(a.Candidate, a.Pool)))
	})
	at := make(map[int]int, len(picks)) // by candidate: the pool for which it is picked
	out := make([]lease.Turn, 0, len(line)+len(picks))
	for _, x := range picks {
		at[x.Candidate] = x.Pool
		out = append(out, lease.Turn(x))
	}
	for _, x := range line {
		if p, picked := at[x.Candidate]; !picked || p != x.Pool && !stays(x.Candidate, p) {
			out = append(out, x)
		}
	}
	return out
}

// taken returns, by candidate of a tenant, the pool in which it has a claim; -1 = none.
func (v *decision) taken(tenant int) []int {
	jobs := v.in.Tenants[tenant].Jobs
	first, out := slices.Min(jobs), make([]int, len(jobs)) // a tenant's candidates follow each other
	for i := range out {
		if out[i] = -1; v.g.claims[v.in.Candidates[first+i].Case] != nil {
			out[i] = v.g.turn.f.In.Pool(v.g.claims[v.in.Candidates[first+i].Case].Pool)
		}
	}
	return out
}

// free returns the GPUs of a tenant's cells by pool and node, without those of guaranteed leases in the middle of their terms, of claims and
// of jobs that move.
func (v *decision) free(tenant int) [][]int {
	vc, out := v.in.Tenants[tenant].Name, make([][]int, len(v.g.turn.f.In.Pools))
	for p, pool := range v.g.turn.f.In.Pools {
		out[p] = v.g.state.Cells.Chunks(vc, pool)
	}
	cases, _, _ := v.g.turn.f.Market.Of(round.TenantIndex(tenant))
	for _, i := range cases {
		if l := v.g.turn.f.Hand.Leases[i]; l != nil && v.g.inside[i] && v.g.right(i) == cluster.Guaranteed && !v.g.mayGo(i) {
			out[v.g.turn.f.In.Pool(l.Pool)] = without(out[v.g.turn.f.In.Pool(l.Pool)], l.Size.Devices)
		}
		for _, cl := range []*cluster.Claim{v.g.claims[i], v.g.moving[i]} {
			if cl != nil {
				out[v.g.turn.f.In.Pool(cl.Pool)] = without(out[v.g.turn.f.In.Pool(cl.Pool)], v.g.turn.f.Can[i].GPUs.Devices())
			}
		}
	}
	return out
}

// without takes GPUs from nodes: of the one with the fewest that suffice, else of the largest ones.
func without(nodes []int, gpus int) []int {
	for gpus > 0 && len(nodes) > 0 {
		best := 0
		for i, n := range nodes {
			if n >= gpus && (nodes[best] < gpus || n < nodes[best]) || nodes[best] < gpus && n > nodes[best] {
				best = i
			}
		}
		n := min(nodes[best], gpus)
		if nodes[best], gpus = nodes[best]-n, gpus-n; nodes[best] == 0 {
			nodes = slices.Delete(nodes, best, best+1)
		}
	}
	return nodes
}
