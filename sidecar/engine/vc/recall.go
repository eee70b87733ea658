package vc

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
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

// lending brings up to now how long GPUs were lent. A window passes into the one before when it is over.
func (h *turn) lending() {
	if h.Snapshot.Cells == nil || h.Stops.Rule().Off() {
		return
	}
	h.out.Lent = slices.Clone(h.Snapshot.Lent)
	for k := range h.out.Lent {
		if x := &h.out.Lent[k]; h.Settings.Window > 0 && h.Now.Sub(x.Since) >= h.Settings.Window {
			x.Since, x.Earlier, x.Now = h.Now, x.Now, cluster.Lent{}
		}
	}
	ran := h.Now.Sub(h.Snapshot.Ledger.At)
	if h.Snapshot.Ledger.At == 0 || ran <= 0 {
		return
	}
	for i, l := range h.Leases {
		if l != nil && l.Class == cluster.Opportunistic && h.Jobs[i].Runs && h.Jobs[i].Touch == cluster.Act {
			h.lentOf(l.Pool).Time += min(ran, max(h.Now.Sub(h.Snapshot.Cases[i].Job.Start), 0))
		}
	}
}

// lentOf gives the sum of a pool's present window, to be changed.
func (h *turn) lentOf(pool string) *cluster.Lent {
	k, ok := slices.BinarySearchFunc(h.out.Lent, pool, func(x cluster.Lending, pool string) int { return cmp.Compare(x.Pool, pool) })
	if !ok {
		h.out.Lent = slices.Insert(h.out.Lent, k, cluster.Lending{Pool: pool, Since: h.Now})
	}
	return &h.out.Lent[k].Now
}

// recalledFrom counts a recall of a lent lease.
func (h *turn) recalledFrom(pool string) {
	if !h.Stops.Rule().Off() {
		h.lentOf(pool).Recalls++
	}
}

// staysLent gives for how long GPUs of a pool that are lent now are likely to stay lent: the time that is more likely to
// pass than not before a recall, if recalls come at random (the median of an exponential distribution). Their rate is
// that of the last one to two windows, by the time for which leases ran, with one recall more than was seen. The
// allowance comes on top: a job that a recall destroys so early loses no more than the site lets a stop cost any job.
// No forecast goes beyond the next begin time that users of a VC have set for their jobs.
func (v *vcs) staysLent(pool int) cluster.Span {
	h, lent := v.h, cluster.Lent{}
	for _, x := range h.out.Lent {
		if x.Pool == h.Pools[pool] {
			lent = cluster.Lent{Time: x.Now.Time + x.Earlier.Time, Recalls: x.Now.Recalls + x.Earlier.Recalls}
		}
	}
	stays := h.Settings.StopAllowance + lent.Time/cluster.Span(lent.Recalls+1)*69/100 // ln 2
	for i := range h.Jobs {
		at, r := h.Records[i].UserBegin, &h.Snapshot.Cases[i].Job.Request
		if at > h.Now && h.Jobs[i].Waits && (r.Model == "" || r.Model == h.Pools[pool]) && v.state.Has(h.Records[i].Tenant) {
			stays = min(stays, at.Sub(h.Now))
		}
	}
	return stays
}

// fits gives the longest time limit with which a job whose budget is gone is lent GPUs of a pool; 0 = with none.
func (v *vcs) fits(i, pool int) cluster.Span {
	if v.h.Records[i].Beyond >= forecasts {
		return 0
	}
	if v.stays == nil {
		v.stays = make([]cluster.Span, len(v.h.Pools))
		for p := range v.stays {
			v.stays[p] = v.staysLent(p)
		}
	}
	return v.stays[pool]
}

// owns tells whether a job's tenant has a VC that is promised as many GPUs as it asks for, of a model that it may have.
func (v *vcs) owns(i int) bool {
	h := v.h
	return slices.ContainsFunc(h.Jobs[i].Pools, func(p int) bool {
		return v.state.Promised(h.Records[i].Tenant, h.Pools[p]) >= h.Snapshot.Cases[i].Job.Request.GPUs
	})
}

// over tells whether a job is over, by its time limit, before GPUs of a pool are likely to be recalled.
func (v *vcs) over(i, pool int) bool {
	limit := v.h.Limit(i)
	return limit > 0 && limit <= v.fits(i, pool)
}
