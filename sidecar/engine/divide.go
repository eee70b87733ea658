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
	n := len(h.Pools)
	capacity := h.capacity()
	weights := make([]int64, len(h.Tenants))
	for t, name := range h.Tenants {
		weights[t] = h.Weight(name)
	}
	base := make([]cluster.MicroGPU, len(h.Ledger.Tenants))
	for p := range h.Pools {
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
	if h.Settings.Divide != "" {
		entitled = h.market(capacity, base)
		largest = owe(largest, entitled)
	}
	ltgf.Settle(&h.Ledger, base, entitled, largest, h.held(), h.Settings, h.Snapshot.Ledger.At/cluster.Instant(h.Settings.Term) != h.Now/cluster.Instant(h.Settings.Term))
}

// own gives the GPUs of a pool that each tenant has in cells of its own; nil = there are none.
func (h *hall) own(pool int) []int {
	if h.Snapshot.Cells == nil {
		return nil
	}
	plain, err := h.layout()
	if err != nil {
		return nil
	}
	own := make([]int, len(h.Tenants))
	for t, name := range h.Tenants {
		own[t] = plain.GPUs(name, h.Pools[pool])
	}
	for _, f := range h.Snapshot.Lost {
		if t, ok := slices.BinarySearch(h.Tenants, f.VC); ok {
			own[t] = max(own[t]-f.Cells*plain.Size(f.Chain, f.Type, h.Pools[pool]), 0)
		}
	}
	return own
}

// capacity counts the GPUs of every pool that tenants can share, and keeps the
// ledger's counts of all and of bad ones.
func (h *hall) capacity() []int {
	capacity := make([]int, len(h.Pools))
	for p := range h.Pools {
		row := &h.Ledger.Pools[p]
		row.GPUs, row.BadGPUs = h.site.Count(p)
		capacity[p] = row.GPUs - row.BadGPUs
	}
	for i := range h.Snapshot.Cases {
		st := &h.Jobs[i]
		if !st.Live || st.Waits || h.Records[i].Payer() != "" {
			continue
		}
		for _, hold := range h.Snapshot.Cases[i].Job.Holds {
			if p := h.Pool(hold.Model); p >= 0 && !h.site.Bad(hold.Node) {
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
	byTenant := make([]int, len(h.Tenants))
	for i := range h.Snapshot.Cases {
		if st := &h.Jobs[i]; st.Tenant >= 0 && !h.Snapshot.Cases[i].Gone {
			byTenant[st.Tenant] = max(byTenant[st.Tenant], st.GPUs, st.Held)
		}
	}
	out := make([]int, len(h.Ledger.Tenants))
	for i := range out {
		out[i] = byTenant[i/len(h.Pools)]
	}
	return out
}

// active lists the jobs of every tenant that run or could run now.
func (h *hall) active() [][]ltgf.Claimant {
	possible, open := h.possible, h.possible
	if len(h.Snapshot.Reservations) > 0 {
		open = newProber(h.site, h.Pools, h.Now, place.View{Reserved: true})
	}
	byTenant := h.roomByTenant()
	for _, running := range []bool{true, false} {
		for i := range h.Jobs {
			st := &h.Jobs[i]
			if st.Runs != running {
				continue
			}
			gpus := st.Held
			if running {
				h.judgeRunning(i)
				if h.Settings.Divide != "" && len(st.Pools) > 0 {
					st.Shape = h.site.Shape(h.spec(i))
					st.May = possible.pools(st.Shape, h.Snapshot.Cases[i].Job.Request.Model)
				}
			} else {
				h.judgeWaiting(i, possible, open)
				gpus, st.May = st.GPUs, st.Pools
			}
			if st.Tenant < 0 || len(st.Pools) == 0 || !running && !st.Eligible && st.Why != cluster.BecauseCompleting &&
				st.Why != cluster.BecauseStarting {
				continue
			}
			byTenant[st.Tenant] = append(byTenant[st.Tenant],
				ltgf.Claimant{Case: i, GPUs: gpus, Weight: h.weight(i), Pools: st.Pools})
		}
	}
	return byTenant
}

// roomByTenant gives every tenant an empty list with room for all its cases.
func (h *hall) roomByTenant() [][]ltgf.Claimant {
	count := make([]int, len(h.Tenants))
	all := 0
	for i := range h.Jobs {
		if st := &h.Jobs[i]; st.Tenant >= 0 && st.Live {
			count[st.Tenant]++
			all++
		}
	}
	h.claiming = slices.Grow(h.claiming[:0], all)[:all]
	room, lists := h.claiming, make([][]ltgf.Claimant, len(h.Tenants))
	for t, n := range count {
		lists[t], room = room[:0:n], room[n:]
	}
	return lists
}

// weight gives a job's weight inside its tenant, in thousandths.
func (h *hall) weight(i int) int64 {
	for _, w := range h.Settings.JobWeights {
		if w.QOS == h.Snapshot.Cases[i].Job.QOS {
			return max(w.Milli, 1)
		}
	}
	return 1000
}

// judgeRunning tells which pool a job runs on: the first that it holds GPUs of.
func (h *hall) judgeRunning(i int) {
	holds := h.Snapshot.Cases[i].Job.Holds
	for k := range holds {
		if p := h.Pool(holds[k].Model); p >= 0 && holds[k].GPUs > 0 {
			h.Jobs[i].Pools = h.Just(p)
			return
		}
	}
}

// judgeWaiting tells whether a job that does not run could be granted a lease
// now, and if not why.
func (h *hall) judgeWaiting(i int, possible, open *prober) {
	c, r := &h.Snapshot.Cases[i], &h.Records[i]
	st, j := &h.Jobs[i], &c.Job
	switch l := h.Leases[i]; {
	case !st.Live:
		st.Why, st.Note = cluster.BecauseDone, j.Outcome
	case c.Touch == cluster.Leave:
		st.Why, st.Note = cluster.BecauseUntouched, c.TouchWhy
	case j.State == cluster.Completing || h.Now < settled(j):
		st.Why = cluster.BecauseCompleting
		st.Shape = h.site.Shape(h.spec(i))
		st.Pools = possible.pools(st.Shape, j.Request.Model)
	case l != nil && l.State == cluster.Granted:
		st.Why, st.Until = cluster.BecauseStarting, l.Granted.Add(h.Settings.GrantTimeout)
		st.Pools = h.PoolOf(l)
	case j.Inactive != "":
		st.Why, st.Note = cluster.BecauseInactive, j.Inactive
	case r.UserBegin > h.Now:
		st.Why, st.Note, st.Until = cluster.BecauseInactive, "begin", r.UserBegin
	case r.Avoid > h.Now:
		st.Why, st.Note, st.Until = cluster.BecauseFailed, r.Said, r.Avoid
	case st.Ordered(cluster.Freeze):
		st.Why, st.Note = cluster.BecauseFrozen, st.Order.Reason
	default:
		st.Shape = h.site.Shape(h.spec(i))
		st.Pools = possible.pools(st.Shape, j.Request.Model)
		if len(st.Pools) == 0 && len(r.Shun) > 0 {
			r.Shun = nil // nowhere else to go: try the same nodes again
			st.Shape = h.site.Shape(h.spec(i))
			st.Pools = possible.pools(st.Shape, j.Request.Model)
		}
		if len(st.Pools) == 0 {
			st.Why, st.GPUs = cluster.BecauseTooBig, 0
			return
		}
		if open != possible {
			st.Pools = open.pools(st.Shape, j.Request.Model)
		}
		if len(st.Pools) == 0 {
			st.Why, st.Note = cluster.BecauseReserved, h.reservationsAhead()
			return
		}
		st.Eligible = true
		if r.First == 0 {
			r.First = h.Now
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

// reservationsAhead names the reservations that keep jobs off nodes.
func (h *hall) reservationsAhead() string {
	var names []string
	for i := range h.Snapshot.Reservations {
		if r := &h.Snapshot.Reservations[i]; !r.Ours && r.End > h.Now {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, ", ")
}

// spec is what a job asks of its nodes. Nodes of a grant that has just failed
// are avoided for its next one.
func (h *hall) spec(i int) place.Spec {
	c, r := &h.Snapshot.Cases[i], &h.Records[i]
	j := &c.Job
	exclude := j.Exclude
	if len(r.Shun) > 0 {
		exclude = append(slices.Clone(j.Exclude), r.Shun...)
	}
	return place.Spec{Request: j.Request, Partitions: j.Partitions, Require: r.UserNodes, Exclude: exclude,
		Account: j.Account, User: j.User, Limit: h.Limit(i)}
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
	out := make([]int, len(h.Ledger.Tenants))
	for i := range h.Jobs {
		if st := &h.Jobs[i]; st.Live && !st.Waits && st.Tenant >= 0 && len(st.Pools) > 0 {
			out[st.Tenant*len(h.Pools)+st.Pools[0]] += st.Held
		}
	}
	return out
}
