package vc

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// lend grants idle GPUs as opportunistic leases and renews such leases. It uses weighted max-min between
// tenants (HiveD §3.3), with entitlements as weights. GPUs left after all shares go to any job that can use
// them.
func lend(g *ground, in *lease.Input) {
	v := &lender{forecast: &forecast{g: g}, in: in, waits: make([][]int, len(in.Tenants)), up: make([][]int, len(in.Tenants))}
	for t := range in.Tenants {
		for _, i := range in.Tenants[t].Jobs {
			switch k := &in.Candidates[i]; {
			case v.forecast.g.turn.f.Hand.Leases[k.Case] == nil && !k.Running && v.mayBorrow(k):
				v.waits[t] = append(v.waits[t], i)
			case k.Running && v.forecast.g.lent(k.Case) && v.forecast.g.turn.f.Ending(k.Case) && !v.forecast.g.turn.f.Hand.Marks[k.Case].Claimed: // else it moves
				v.up[t] = append(v.up[t], i)
			}
		}
	}
	for i := range v.forecast.g.turn.f.Hand.Leases {
		if v.forecast.g.turn.f.In.Cases[i].Tenant >= 0 && v.forecast.g.lent(i) && !v.forecast.g.turn.f.Ending(i) {
			v.borrowed = append(v.borrowed, i)
		}
	}
	for p := range v.forecast.g.turn.f.In.Pools {
		v.lendPool(p)
	}
}

// lender lends GPUs.
type lender struct {
	forecast  *forecast
	in        *lease.Input
	waits, up [][]int // by tenant: candidates that may borrow, and candidates whose borrowed GPUs are up for renewal
	borrowed  []int   // cases that keep borrowed GPUs
}

// borrower is a tenant while GPUs of one pool are lent.
type borrower struct {
	held, share int
	weight      int64
	waits       []int // candidates
	last        []int // candidates for GPUs that no other job takes
	at          int
}

func (v *lender) lendPool(p int) {
	bs := make([]borrower, len(v.in.Tenants))
	demands, weights := make([]int, len(bs)), make([]int64, len(bs))
	gpus := v.forecast.g.state.Cells.Idle(v.forecast.g.turn.f.In.Pools[p])
	var up []int // candidates up for renewal, in their tenants' order
	for t := range bs {
		b := &bs[t]
		b.weight = v.weight(round.TenantIndex(t), p)
		for _, i := range v.waitsIn(t, p) {
			k := &v.in.Candidates[i]
			if v.forecast.g.turn.f.Hand.Leases[k.Case] != nil || !slices.Contains(k.Pools, p) { // it got GPUs of an earlier pool, or uses others
				continue
			}
			switch gone := v.forecast.g.turn.f.Stops.Gone(k.Case) && !v.forecast.over(k.Case, p); {
			case gone && v.forecast.owns(k.Case): // it waits for cells of its VC
			case gone || slices.Contains(k.Idle, p):
				b.last = append(b.last, i)
			default:
				b.waits = append(b.waits, i)
				demands[t] += k.GPUs.Devices()
			}
		}
		for _, i := range v.up[t] {
			if k := &v.in.Candidates[i]; k.Pools[0] == p {
				up = append(up, i)
				demands[t] += k.GPUs.Devices()
				gpus += k.GPUs.Devices()
			}
		}
		weights[t] = b.weight
	}
	for _, i := range v.borrowed {
		if l := v.forecast.g.turn.f.Hand.Leases[i]; v.forecast.g.turn.f.In.Pool(l.Pool) == p {
			t := v.forecast.g.turn.f.In.Cases[i].Tenant
			bs[t].held += l.Size.Devices
			demands[t] += l.Size.Devices
			gpus += l.Size.Devices
		}
	}
	for t, share := range cells.MaxMin(gpus, demands, weights) {
		bs[t].share = share
	}
	v.renewLent(p, bs, up)
	if gpus = v.forecast.g.state.Cells.Idle(v.forecast.g.turn.f.In.Pools[p]); gpus > 0 {
		failed := map[loan]bool{}
		v.lendTo(p, bs, true, failed)
		v.lendTo(p, bs, false, failed)
		for t := range bs {
			bs[t].waits = bs[t].last
		}
		v.lendTo(p, bs, false, failed)
	}
}

// weight returns the weight of a tenant where idle GPUs of a pool are lent: its entitlement. Where a policy divides the
// models, what it is entitled to beyond its cells counts.
func (v *lender) weight(t round.TenantIndex, p int) int64 {
	gpus := v.forecast.g.turn.f.Due.Accounts().At(t, p).Entitlement
	if v.forecast.g.turn.f.In.Settings.Divides() {
		gpus = max(gpus-cluster.MicroGPU(v.forecast.g.state.Cells.GPUs(v.forecast.g.turn.f.In.Tenants[t], v.forecast.g.turn.f.In.Pools[p]))*cluster.WholeGPU, 0)
	}
	return int64(gpus)
}

// waitsIn returns a tenant's candidates that may borrow, in their order in a pool.
func (v *lender) waitsIn(t, p int) []int {
	turns := v.in.Tenants[t].Turns
	if turns == nil || len(v.waits[t]) == 0 {
		return v.waits[t]
	}
	return slices.DeleteFunc(slices.Clone(turns[p]), func(i int) bool { _, waits := slices.BinarySearch(v.waits[t], i); return !waits })
}

// loan is a kind of request for idle GPUs. If one is refused, so are all later ones.
type loan struct {
	shape int
	soft  bool
}

// mayBorrow reports whether a waiting job may have a lease that ends when another job wants its GPUs. It does
// not look at the stop budget.
func (v *lender) mayBorrow(k *lease.Candidate) bool {
	st, mark := &v.forecast.g.turn.f.In.Cases[k.Case], &v.forecast.g.turn.f.Hand.Marks[k.Case]
	return (st.Control == cluster.FullControl || st.Control == cluster.ObserveOnly) && !st.Ordered(cluster.Exempt) && !mark.Claimed &&
		(len(v.forecast.g.turn.f.In.Settings.StrictQOS) == 0 || !slices.Contains(v.forecast.g.turn.f.In.Settings.StrictQOS, v.forecast.g.turn.f.In.Snapshot.Cases[k.Case].Job.QOS))
}

// renewLent renews opportunistic leases within their tenants' shares. Beyond a share it renews only leases
// whose GPUs no tenant below its share waits for.
func (v *lender) renewLent(p int, bs []borrower, up []int) {
	var over []int
	for _, i := range up {
		k := &v.in.Candidates[i]
		if b := &bs[k.Tenant]; b.held == 0 || b.held+k.GPUs.Devices() <= b.share {
			b.held += k.GPUs.Devices()
			v.forecast.g.turn.f.Renew(k.Case, v.forecast.g.turn.f.NextEnd(k.Case))
		} else {
			over = append(over, i)
		}
	}
	missing := -v.forecast.g.state.Cells.Idle(v.forecast.g.turn.f.In.Pools[p])
	for t := range bs {
		wants := 0
		for _, i := range bs[t].waits {
			wants += v.in.Candidates[i].GPUs.Devices()
		}
		missing += min(wants, max(bs[t].share-bs[t].held, 0))
	}
	for _, i := range slices.Backward(over) {
		k := &v.in.Candidates[i]
		if missing > 0 {
			missing -= k.GPUs.Devices()
			continue
		}
		bs[k.Tenant].held += k.GPUs.Devices()
		v.forecast.g.turn.f.Renew(k.Case, v.forecast.g.turn.f.NextEnd(k.Case))
	}
}

// lendTo serves tenants in order of held GPUs per weight, least first. It stays within their shares if within
// is set.
func (v *lender) lendTo(p int, bs []borrower, within bool, failed map[loan]bool) {
	var line []*borrower
	for t := range bs {
		if b := &bs[t]; len(b.waits) > 0 {
			b.at = 0
			line = append(line, b)
		}
	}
	least := func(a, b *borrower) int { // a.held/a.weight against b.held/b.weight
		if a.weight == 0 || b.weight == 0 {
			return cmp.Compare(b.weight, a.weight)
		}
		return cmp.Compare(cluster.MulDiv(int64(a.held), 1<<30, a.weight), cluster.MulDiv(int64(b.held), 1<<30, b.weight))
	}
	for len(line) > 0 {
		at := 0
		for i := range line {
			if least(line[i], line[at]) < 0 {
				at = i
			}
		}
		b := line[at]
		if b.at == len(b.waits) {
			line = slices.Delete(line, at, at+1)
			continue
		}
		k := &v.in.Candidates[b.waits[b.at]]
		b.at++
		if v.forecast.g.turn.f.Hand.Leases[k.Case] != nil || within && b.held > 0 && b.held+k.GPUs.Devices() > b.share {
			continue
		}
		if try := (loan{k.Shape, v.forecast.g.soft(k.Case)}); !failed[try] {
			if !v.borrow(k, p) {
				failed[try] = true
			} else if b.held += k.GPUs.Devices(); v.forecast.g.state.Cells.Idle(v.forecast.g.turn.f.In.Pools[p]) == 0 {
				return
			}
		}
	}
}

// borrow gives a job an opportunistic lease in a pool, and reports whether it fits.
func (v *lender) borrow(k *lease.Candidate, p int) bool {
	for _, c := range v.forecast.g.chains {
		if c.Model != v.forecast.g.turn.f.In.Pools[p] || !v.forecast.g.uses(k, &c) {
			continue
		}
		if grant, err := v.forecast.g.state.Lend(v.forecast.g.ask(k, &c, v.in.Tenants[k.Tenant].Name, 0, place.Nobodys)); err == nil {
			g := cellGrant{of: k.Case, class: cluster.Opportunistic, parts: grant.Parts, nodes: v.forecast.g.holdings(grant.Parts, k.Shape)}
			v.forecast.g.board.Hold(g.nodes, 0)
			v.forecast.g.grant(&g)
			return true
		}
	}
	return false
}
