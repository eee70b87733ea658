package engine

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// divide sets every tenant's entitlement: its quota by weight of every pool's
// GPUs (ASTRAEA eq. 6), less what jobs hold that belong to no tenant. Cells that a tenant
// has are its own; what is shared by weight is the rest (SEMANTICS §1).
func (h *hall) divide() {
	n := len(h.pools)
	capacity := h.capacity()
	weights := make([]int64, len(h.tenants))
	for t, name := range h.tenants {
		weights[t] = h.weights[name]
	}
	base := make([]cluster.MicroGPU, len(h.ledger.Tenants))
	for p := range h.pools {
		own := h.own(p)
		commons := capacity[p]
		for _, gpus := range own {
			commons -= gpus
		}
		for t, q := range policy.Quota(cluster.MicroGPU(max(commons, 0))*cluster.WholeGPU, weights) {
			base[t*n+p] = q
			if own != nil {
				base[t*n+p] += cluster.MicroGPU(own[t]) * cluster.WholeGPU
			}
		}
	}
	entitled, largest := base, h.largest()
	if h.set.Divide != "" {
		entitled = h.market(capacity, base)
		largest = owe(largest, entitled)
	}
	ltgf.Settle(&h.ledger, base, entitled, largest, h.held(), h.set, h.s.Ledger.At/cluster.Instant(h.set.Term) != h.now/cluster.Instant(h.set.Term))
}

// own gives the GPUs of a pool that each tenant has in cells of its own; nil = there are none.
func (h *hall) own(pool int) []int {
	if h.s.Cells == nil {
		return nil
	}
	plain, err := h.layout()
	if err != nil {
		return nil
	}
	own := make([]int, len(h.tenants))
	for t, name := range h.tenants {
		own[t] = plain.GPUs(name, h.pools[pool])
	}
	for _, f := range h.s.Lost {
		if t, ok := slices.BinarySearch(h.tenants, f.VC); ok {
			own[t] = max(own[t]-f.Cells*plain.Size(f.Chain, f.Type, h.pools[pool]), 0)
		}
	}
	return own
}

// capacity counts the GPUs of every pool that tenants can share, and keeps the
// ledger's counts of all and of bad ones.
func (h *hall) capacity() []int {
	capacity := make([]int, len(h.pools))
	for p := range h.pools {
		row := &h.ledger.Pools[p]
		row.GPUs, row.BadGPUs = h.site.Count(p)
		capacity[p] = row.GPUs - row.BadGPUs
	}
	for i := range h.s.Cases {
		st := &h.standing[i]
		if !st.there || st.waits || h.records[i].Payer() != "" {
			continue
		}
		for _, hold := range h.s.Cases[i].Job.Holds {
			if p := h.pool(hold.Model); p >= 0 && !h.site.Bad(hold.Node) {
				capacity[p] -= hold.GPUs
			}
		}
	}
	for p := range capacity {
		capacity[p] = max(capacity[p], 0)
	}
	return capacity
}

// largest gives the largest gang of the tenant of every row of the ledger.
func (h *hall) largest() []int {
	byTenant := make([]int, len(h.tenants))
	for i := range h.s.Cases {
		if st := &h.standing[i]; st.tenant >= 0 && !h.s.Cases[i].Gone {
			byTenant[st.tenant] = max(byTenant[st.tenant], st.gpus, st.held)
		}
	}
	out := make([]int, len(h.ledger.Tenants))
	for i := range out {
		out[i] = byTenant[i/len(h.pools)]
	}
	return out
}

// active lists the jobs of every tenant that run or could run now.
func (h *hall) active() [][]ltgf.Claimant {
	possible, open := h.possible, h.possible
	if len(h.s.Reservations) > 0 {
		open = newProber(h.site, h.pools, h.now, place.View{Reserved: true})
	}
	byTenant := h.roomByTenant()
	for _, running := range []bool{true, false} {
		for i := range h.standing {
			st := &h.standing[i]
			if st.runs != running {
				continue
			}
			gpus := st.held
			if running {
				h.judgeRunning(i)
				if h.set.Divide != "" && len(st.pools) > 0 {
					st.shape = h.site.Shape(h.spec(i))
					st.may = possible.pools(st.shape, h.s.Cases[i].Job.Request.Model)
				}
			} else {
				h.judgeWaiting(i, possible, open)
				gpus, st.may = st.gpus, st.pools
			}
			if st.tenant < 0 || len(st.pools) == 0 || !running && !st.waiting && st.why != cluster.BecauseCompleting &&
				st.why != cluster.BecauseStarting {
				continue
			}
			byTenant[st.tenant] = append(byTenant[st.tenant],
				ltgf.Claimant{Case: i, GPUs: gpus, Weight: h.weight(i), Pools: st.pools})
		}
	}
	return byTenant
}

// roomByTenant gives every tenant an empty list with room for all its cases.
func (h *hall) roomByTenant() [][]ltgf.Claimant {
	count := make([]int, len(h.tenants))
	all := 0
	for i := range h.standing {
		if st := &h.standing[i]; st.tenant >= 0 && st.there {
			count[st.tenant]++
			all++
		}
	}
	h.claiming = slices.Grow(h.claiming[:0], all)[:all]
	room, lists := h.claiming, make([][]ltgf.Claimant, len(h.tenants))
	for t, n := range count {
		lists[t], room = room[:0:n], room[n:]
	}
	return lists
}

// weight gives a job's weight inside its tenant, in thousandths.
func (h *hall) weight(i int) int64 {
	for _, w := range h.set.JobWeights {
		if w.QOS == h.s.Cases[i].Job.QOS {
			return max(w.Milli, 1)
		}
	}
	return 1000
}

// judgeRunning tells which pool a job runs on: the first that it holds GPUs of.
func (h *hall) judgeRunning(i int) {
	holds := h.s.Cases[i].Job.Holds
	for k := range holds {
		if p := h.pool(holds[k].Model); p >= 0 && holds[k].GPUs > 0 {
			h.standing[i].pools = h.single[p]
			return
		}
	}
}

// judgeWaiting tells whether a job that does not run could be granted a lease
// now, and if not why.
func (h *hall) judgeWaiting(i int, possible, open *prober) {
	c, r := &h.s.Cases[i], &h.records[i]
	st, j := &h.standing[i], &c.Job
	switch l := h.leases[i]; {
	case !st.there:
		st.why, st.note = cluster.BecauseDone, j.Outcome
	case c.Touch == cluster.Leave:
		st.why, st.note = cluster.BecauseUntouched, c.TouchWhy
	case j.State == cluster.Completing || h.now < settled(j):
		st.why = cluster.BecauseCompleting
		st.shape = h.site.Shape(h.spec(i))
		st.pools = possible.pools(st.shape, j.Request.Model)
	case l != nil && l.State == cluster.Granted:
		st.why, st.until = cluster.BecauseStarting, l.Granted.Add(h.set.GrantTimeout)
		st.pools = h.poolOf(l)
	case j.Inactive != "":
		st.why, st.note = cluster.BecauseInactive, j.Inactive
	case r.UserBegin > h.now:
		st.why, st.note, st.until = cluster.BecauseInactive, "begin", r.UserBegin
	case r.Avoid > h.now:
		st.why, st.note, st.until = cluster.BecauseFailed, r.Said, r.Avoid
	case st.ordered(cluster.Freeze):
		st.why, st.note = cluster.BecauseFrozen, st.order.Reason
	default:
		st.shape = h.site.Shape(h.spec(i))
		st.pools = possible.pools(st.shape, j.Request.Model)
		if len(st.pools) == 0 && len(r.Shun) > 0 {
			r.Shun = nil // nowhere else to go: try the same nodes again
			st.shape = h.site.Shape(h.spec(i))
			st.pools = possible.pools(st.shape, j.Request.Model)
		}
		if len(st.pools) == 0 {
			st.why, st.gpus = cluster.BecauseTooBig, 0
			return
		}
		if open != possible {
			st.pools = open.pools(st.shape, j.Request.Model)
		}
		if len(st.pools) == 0 {
			st.why, st.note = cluster.BecauseReserved, h.reservationsAhead()
			return
		}
		st.waiting = true
		if r.First == 0 {
			r.First = h.now
		}
	}
}

// settled gives from when on a job may start again after a requeue; 0 = it was not
// requeued. slurmd takes a start in the same second for the attempt that it was just
// told to end ("Job credential revoked"), and Slurm then fails the job for good.
func settled(j *cluster.Job) cluster.Instant {
	if j.Restarts == 0 || j.State != cluster.Waiting {
		return 0
	}
	return j.Submit.Add(cluster.Second)
}

// order gives the order of an administrator that applies to a job, or nil: its own
// before its array's before its user's before its tenant's; freeze before exempt
// before boost.
func (h *hall) order(r *cluster.Record) *cluster.Override {
	for _, scope := range []struct{ kind, name string }{
		{"job", r.ID.String()}, {"job", r.ID.Array().String()}, {"user", r.User}, {"tenant", r.Tenant},
	} {
		for _, kind := range []cluster.OverrideKind{cluster.Freeze, cluster.Exempt, cluster.Boost} {
			for k := range h.s.Overrides {
				o := &h.s.Overrides[k]
				if o.Kind == kind && o.Scope == scope.kind && o.Name == scope.name && o.Until > h.now {
					return o
				}
			}
		}
	}
	return nil
}

// reservationsAhead names the reservations that keep jobs off nodes.
func (h *hall) reservationsAhead() string {
	var names []string
	for i := range h.s.Reservations {
		if r := &h.s.Reservations[i]; !r.Ours && r.End > h.now {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, ", ")
}

// spec is what a job asks of its nodes. Nodes of a grant that has just failed
// are avoided for its next one.
func (h *hall) spec(i int) place.Spec {
	c, r := &h.s.Cases[i], &h.records[i]
	j := &c.Job
	exclude := j.Exclude
	if len(r.Shun) > 0 {
		exclude = append(slices.Clone(j.Exclude), r.Shun...)
	}
	return place.Spec{Request: j.Request, Partitions: j.Partitions, Require: r.UserNodes, Exclude: exclude,
		Account: j.Account, User: j.User, Limit: h.limit(i)}
}

// limit gives the time limit that the job's next attempt will have.
func (h *hall) limit(i int) cluster.Span {
	c, r := &h.s.Cases[i], &h.records[i]
	if r.UserLimit == 0 {
		return c.Job.Limit
	}
	return max(r.UserLimit-r.Ran, cluster.Minute)
}

// prober tells which pools could ever serve a job: on the healthy cluster, empty,
// with or without its reservations.
type prober struct {
	gpus  []string        // models, by pool
	now   cluster.Instant // matters to reservations only
	board *place.Board
	known [][]int // by shape; nil = not asked yet
}

func newProber(site *place.Site, pools []string, now cluster.Instant, v place.View) *prober {
	return &prober{gpus: slices.Clone(pools), now: now, board: site.Board(v)}
}

// pools gives the pools that could serve a shape, in order. model is the GPU model
// that it names, if any.
func (p *prober) pools(shape int, model string) []int {
	for shape >= len(p.known) {
		p.known = append(p.known, nil)
	}
	if p.known[shape] == nil {
		p.known[shape] = []int{}
		for k, pool := range p.gpus {
			if model != "" && model != pool {
				continue
			}
			if _, ok := p.board.Fit(place.Ask{Shape: shape, Pool: k, Now: p.now, Most: -1}); ok {
				p.known[shape] = append(p.known[shape], k)
			}
		}
	}
	return p.known[shape]
}

// held gives the GPUs that tenants hold, by row of the ledger.
func (h *hall) held() []int {
	out := make([]int, len(h.ledger.Tenants))
	for i := range h.standing {
		if st := &h.standing[i]; st.there && !st.waits && st.tenant >= 0 && len(st.pools) > 0 {
			out[st.tenant*len(h.pools)+st.pools[0]] += st.held
		}
	}
	return out
}
