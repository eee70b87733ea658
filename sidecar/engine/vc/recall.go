package vc

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
)

// HiveD recalls lent GPUs as soon as their owner wants them (§3.3): a recall cannot wait until the job may be stopped
// within its stop budget. So a job whose budget is gone runs by right, on cells of its tenant's own VC, which end no
// lease that may not be stopped. It is lent GPUs only where its time limit ends before these are likely to be recalled.
//
// Recalls thus stop a job that never saves beyond its budget at most twice. The first such stop leaves the budget gone,
// and for such a job it stays gone: stops cost it all the time that it ran, and the budget grows by a part of that. The
// second one follows a wrong forecast, after which no forecast counts. That holds as long as its VC has the cells in
// which it runs: a VC that is made smaller, or loses hardware, turns its leases into opportunistic ones.
//
// A job that its tenant's VC can never hold, or whose tenant has none, has lent GPUs or nothing: once its budget is gone it is
// lent what nobody else takes, and may be recalled from it any number of times.

// forecasts is how many stops beyond the budget are too many to trust another forecast.
const forecasts = 2

// lending gives how long GPUs were lent up to now. A window passes into the one before when it is over.
func lending(f *field.Field) []cluster.Lending {
	if f.Stops.Rule().Off() {
		return nil
	}
	lent := slices.Clone(f.Snapshot.Lent)
	for k := range lent {
		if x := &lent[k]; f.Settings.Window > 0 && f.Now.Sub(x.Since) >= f.Settings.Window {
			x.Since, x.Earlier, x.Now = f.Now, x.Now, cluster.Lent{}
		}
	}
	ran := f.Now.Sub(f.Snapshot.Ledger.At)
	if f.Snapshot.Ledger.At == 0 || ran <= 0 {
		return lent
	}
	for i, l := range f.Leases {
		if l != nil && l.Class == cluster.Opportunistic && f.Jobs[i].Runs && f.Jobs[i].Control == cluster.FullControl {
			var of *cluster.Lent
			lent, of = lentOf(lent, l.Pool, f.Now)
			of.Time += min(ran, max(f.Now.Sub(f.Snapshot.Cases[i].Job.Start), 0))
		}
	}
	return lent
}

// lentOf gives the sum of a pool's present window, to be changed; lent has it then.
func lentOf(lent []cluster.Lending, pool string, now cluster.Instant) ([]cluster.Lending, *cluster.Lent) {
	k, ok := slices.BinarySearchFunc(lent, pool, func(x cluster.Lending, pool string) int { return cmp.Compare(x.Pool, pool) })
	if !ok {
		lent = slices.Insert(lent, k, cluster.Lending{Pool: pool, Since: now})
	}
	return lent, &lent[k].Now
}

// recalledFrom counts a recall of a lent lease.
func (h *turn) recalledFrom(pool string) {
	if !h.Stops.Rule().Off() {
		var of *cluster.Lent
		h.out.Lent, of = lentOf(h.out.Lent, pool, h.Now)
		of.Recalls++
	}
}

// forecast tells for how long GPUs that are lent now are likely to stay lent.
type forecast struct {
	*ground
	stays []cluster.Span // by pool; nil = not worked out yet
}

// staysLent gives for how long GPUs of a pool that are lent now are likely to stay lent: the time that is more likely to
// pass than not before a recall, if recalls come at random (the median of an exponential distribution). Their rate is
// that of the last one to two windows, by the time for which leases ran, with one recall more than was seen. The
// allowance comes on top: a job that a recall destroys so early loses no more than the site lets a stop cost any job.
// No forecast goes beyond the next begin time that users of a VC have set for their jobs.
func (v *forecast) staysLent(pool int) cluster.Span {
	lent := cluster.Lent{}
	for _, x := range v.out.Lent {
		if x.Pool == v.Pools[pool] {
			lent = cluster.Lent{Time: x.Now.Time + x.Earlier.Time, Recalls: x.Now.Recalls + x.Earlier.Recalls}
		}
	}
	stays := v.Settings.StopAllowance + lent.Time/cluster.Span(lent.Recalls+1)*69/100 // ln 2
	for i := range v.Jobs {
		at, r := v.Records[i].UserBegin, &v.Snapshot.Cases[i].Job.Request
		if at > v.Now && v.Jobs[i].Waits && (r.Model == "" || r.Model == v.Pools[pool]) && v.state.Has(v.Records[i].Tenant) {
			stays = min(stays, at.Sub(v.Now))
		}
	}
	return stays
}

// fits gives the longest time limit with which a job whose budget is gone is lent GPUs of a pool; 0 = with none.
func (v *forecast) fits(i, pool int) cluster.Span {
	if v.Records[i].Beyond >= forecasts {
		return 0
	}
	if v.stays == nil {
		v.stays = make([]cluster.Span, len(v.Pools))
		for p := range v.stays {
			v.stays[p] = v.staysLent(p)
		}
	}
	return v.stays[pool]
}

// owns tells whether a job's tenant has a VC that is promised as many GPUs as it asks for, of a model that it may have.
func (v *forecast) owns(i int) bool {
	return slices.ContainsFunc(v.Jobs[i].Pools, func(p int) bool {
		return v.state.Promised(v.Records[i].Tenant, v.Pools[p]) >= v.Snapshot.Cases[i].Job.Request.GPUs
	})
}

// over tells whether a job is over, by its time limit, before GPUs of a pool are likely to be recalled.
func (v *forecast) over(i, pool int) bool {
	limit := v.Limit(i)
	return limit > 0 && limit <= v.fits(i, pool)
}
