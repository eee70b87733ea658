package vc

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
)

// HiveD recalls lent GPUs as soon as their owner wants them (§3.3). A recall therefore cannot wait until the
// job's stop budget allows a stop. So a job whose budget is gone runs by right, on cells of its tenant's own
// VC. It ends no lease there that may not be stopped. It can borrow GPUs only if its time limit ends before a
// recall is likely.
//
// Recalls thus stop a job that never saves beyond its budget at most twice. The first such stop uses up the
// budget for good: a stop costs the job its whole run time, and the budget grows only by a part of that. The
// second stop follows a wrong forecast, after which no forecast counts. This holds while the VC has the cells
// in which the job runs. A VC that is made smaller, or loses hardware, turns its leases into opportunistic
// ones.
//
// A job that its tenant's VC can never hold, or whose tenant has no VC, can only borrow GPUs. Once its budget
// is gone it borrows GPUs that no other job takes. Recalls may then stop it any number of times.

// forecasts is the number of stops beyond the budget after which no forecast counts.
const forecasts = 2

// lending returns for how long GPUs were lent up to now. A window becomes the earlier one when it is over.
func lending(f *field.Field) []cluster.Lending {
	if f.Stops.Rule().Off() {
		return nil
	}
	lent := slices.Clone(f.In.Snapshot.Lent)
	for k := range lent {
		if x := &lent[k]; f.In.Settings.Window > 0 && f.In.Now.Sub(x.Since) >= f.In.Settings.Window {
			x.Since, x.Earlier, x.Now = f.In.Now, x.Now, cluster.Lent{}
		}
	}
	ran := f.In.Now.Sub(f.In.Snapshot.Ledger.At)
	if f.In.Snapshot.Ledger.At == 0 || ran <= 0 {
		return lent
	}
	for i, l := range f.Hand.Leases {
		if l != nil && l.Class == cluster.Opportunistic && f.In.Cases[i].Runs && f.In.Cases[i].Control == cluster.FullControl {
			var of *cluster.Lent
			lent, of = lentOf(lent, l.Pool, f.In.Now)
			of.Time += min(ran, max(f.In.Now.Sub(f.In.Snapshot.Cases[i].Job.Start), 0))
		}
	}
	return lent
}

// lentOf returns lent with an entry for the pool, and a pointer to the sum of that pool's present window.
func lentOf(lent []cluster.Lending, pool string, now cluster.Instant) ([]cluster.Lending, *cluster.Lent) {
	k, ok := slices.BinarySearchFunc(lent, pool, func(x cluster.Lending, pool string) int { return cmp.Compare(x.Pool, pool) })
	if !ok {
		lent = slices.Insert(lent, k, cluster.Lending{Pool: pool, Since: now})
	}
	return lent, &lent[k].Now
}

// recalledFrom counts a recall of a lent lease.
func (h *turn) recalledFrom(pool string) {
	if !h.f.Stops.Rule().Off() {
		var of *cluster.Lent
		h.out.Lent, of = lentOf(h.out.Lent, pool, h.f.In.Now)
		of.Recalls++
	}
}

// forecast estimates how long GPUs that are lent now will stay lent.
type forecast struct {
	g     *ground
	stays []cluster.Span // by pool; nil = not computed yet
}

// staysLent returns how long GPUs of a pool that are lent now are likely to stay lent. It is the median time
// before a recall if recalls come at random (an exponential distribution). The rate counts the recalls of the
// last one to two windows, plus one, per lease run time. The stop allowance comes on top: a job that a recall
// stops so early loses at most what the site lets any stop cost a job. The forecast ends at the next begin
// time that users of a VC have set for their jobs.
func (v *forecast) staysLent(pool int) cluster.Span {
	lent := cluster.Lent{}
	for _, x := range v.g.turn.out.Lent {
		if x.Pool == v.g.turn.f.In.Pools[pool] {
			lent = cluster.Lent{Time: x.Now.Time + x.Earlier.Time, Recalls: x.Now.Recalls + x.Earlier.Recalls}
		}
	}
	stays := v.g.turn.f.In.Settings.StopAllowance + lent.Time/cluster.Span(lent.Recalls+1)*69/100 // ln 2
	for i := range v.g.turn.f.In.Cases {
		at, r := v.g.turn.f.In.Records[i].UserBegin, &v.g.turn.f.In.Snapshot.Cases[i].Job.Request
		if at > v.g.turn.f.In.Now && v.g.turn.f.In.Cases[i].Waits && (r.Model == "" || r.Model == v.g.turn.f.In.Pools[pool]) && v.g.state.Cells.Has(v.g.turn.f.In.Records[i].Tenant) {
			stays = min(stays, at.Sub(v.g.turn.f.In.Now))
		}
	}
	return stays
}

// fits returns the longest time limit with which a job whose budget is gone can borrow GPUs of a pool; 0 =
// none.
func (v *forecast) fits(i, pool int) cluster.Span {
	if v.g.turn.f.Stops.Of(i).Beyond >= forecasts {
		return 0
	}
	if v.stays == nil {
		v.stays = make([]cluster.Span, len(v.g.turn.f.In.Pools))
		for p := range v.stays {
			v.stays[p] = v.staysLent(p)
		}
	}
	return v.stays[pool]
}

// owns reports whether the VC of a job's tenant is promised enough GPUs for the job, of one model that the
// job may use.
func (v *forecast) owns(i int) bool {
	return slices.ContainsFunc(v.g.turn.f.Can[i].Pools, func(p int) bool {
		return v.g.state.Cells.Promised(v.g.turn.f.In.Records[i].Tenant, v.g.turn.f.In.Pools[p]) >= v.g.turn.f.In.Snapshot.Cases[i].Job.Request.Size.Devices
	})
}

// over reports whether a job's time limit ends before GPUs of a pool are likely to be recalled.
func (v *forecast) over(i, pool int) bool {
	limit := v.g.turn.f.In.Limit(i)
	return limit > 0 && limit <= v.fits(i, pool)
}
