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
// GPUs (ASTRAEA eq. 6), less what jobs hold that belong to no tenant.
func (h *hall) divide() {
	for _, p := range h.ledger.Pools {
		h.pools = append(h.pools, p.Pool)
	}
	n := len(h.pools)
	for i := 0; n > 0 && i < len(h.ledger.Tenants); i += n {
		name := h.ledger.Tenants[i].Tenant
		h.tenantAt[name] = len(h.tenants)
		h.tenants = append(h.tenants, name)
	}
	capacity := h.capacity()
	weights := make([]int64, len(h.tenants))
	for t, name := range h.tenants {
		weights[t] = h.weights[name]
	}
	entitled := make([]cluster.MicroGPU, len(h.ledger.Tenants))
	for p := range h.pools {
		for t, q := range policy.Quota(cluster.MicroGPU(capacity[p])*cluster.WholeGPU, weights) {
			entitled[t*n+p] = q
		}
	}
	ltgf.Settle(&h.ledger, entitled, h.largest(), h.set)
}

// capacity counts the GPUs of every pool that tenants can share, and keeps the
// ledger's counts of all and of bad ones.
func (h *hall) capacity() []int {
	capacity := make([]int, len(h.pools))
	bad := map[string]bool{}
	for p := range h.ledger.Pools {
		h.ledger.Pools[p].GPUs, h.ledger.Pools[p].BadGPUs = 0, 0
	}
	for i := range h.s.Nodes {
		n := &h.s.Nodes[i]
		for _, g := range n.GPUs {
			p := h.pool(g.Model)
			h.ledger.Pools[p].GPUs += g.Count
			if n.Bad != "" {
				h.ledger.Pools[p].BadGPUs += g.Count
				bad[n.Name] = true
				continue
			}
			capacity[p] += g.Count
		}
	}
	for i := range h.s.Cases {
		c := &h.s.Cases[i]
		if c.Gone || h.records[i].Tenant != "" || c.Job.State == cluster.Waiting || c.Job.State == cluster.Done {
			continue
		}
		for _, hold := range c.Job.Holds {
			if p := h.pool(hold.Model); p >= 0 && !bad[hold.Node] {
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
		if t, ok := h.tenantAt[h.records[i].Tenant]; ok && !h.s.Cases[i].Gone {
			j := &h.s.Cases[i].Job
			byTenant[t] = max(byTenant[t], j.Request.GPUs, j.GPUsHeld())
		}
	}
	out := make([]int, len(h.ledger.Tenants))
	for i := range out {
		out[i] = byTenant[i/len(h.pools)]
	}
	return out
}

// claimants works out which jobs are active and what each is due from now on.
func (h *hall) claimants() {
	h.standing = make([]caseState, len(h.s.Cases))
	for i := range h.records {
		h.standing[i].tenant = -1
		if t, ok := h.tenantAt[h.records[i].Tenant]; ok {
			h.standing[i].tenant = t
		}
	}
	possible := h.newProber(nil)
	open := possible
	if len(h.s.Reservations) > 0 {
		open = h.newProber(h.s.Reservations)
	}
	byTenant := map[string][]ltgf.Claimant{}
	for _, running := range []bool{true, false} {
		for i := range h.s.Cases {
			c, r := &h.s.Cases[i], &h.records[i]
			if runs(c) != running {
				continue
			}
			st := &h.standing[i]
			if running {
				h.judgeRunning(i)
			} else {
				h.judgeWaiting(i, possible, open)
			}
			if r.Tenant == "" || len(st.pools) == 0 || !running && !st.waiting && st.why != cluster.BecauseCompleting &&
				st.why != cluster.BecauseStarting {
				continue
			}
			gpus := c.Job.Request.GPUs
			if running {
				gpus = c.Job.GPUsHeld()
			}
			byTenant[r.Tenant] = append(byTenant[r.Tenant],
				ltgf.Claimant{Case: i, GPUs: gpus, Weight: h.weight(c.Job.QOS), Pools: st.pools})
		}
	}
	ltgf.Due(&h.ledger, h.records, byTenant)
}

func runs(c *cluster.Case) bool {
	return !c.Gone && (c.Job.State == cluster.Running || c.Job.State == cluster.Suspended)
}

// weight gives a job's weight inside its tenant, in thousandths.
func (h *hall) weight(qos string) int64 {
	for _, w := range h.set.JobWeights {
		if w.QOS == qos {
			return max(w.Milli, 1)
		}
	}
	return 1000
}

func (h *hall) judgeRunning(i int) {
	c := &h.s.Cases[i]
	st := &h.standing[i]
	st.override, st.reason = h.override(&h.records[i])
	for _, hold := range c.Job.Holds {
		if p := h.pool(hold.Model); p >= 0 && hold.GPUs > 0 && !slices.Contains(st.pools, p) {
			st.pools = append(st.pools, p)
		}
	}
	if len(st.pools) > 1 {
		st.pools = st.pools[:1]
	}
}

// judgeWaiting tells whether a job that does not run could be granted a lease
// now, and if not why.
func (h *hall) judgeWaiting(i int, possible, open *prober) {
	c, r := &h.s.Cases[i], &h.records[i]
	st, j := &h.standing[i], &c.Job
	st.override, st.reason = h.override(r)
	switch l := h.leases[i]; {
	case c.Gone || j.State == cluster.Done:
		st.why, st.note = cluster.BecauseDone, j.Outcome
	case c.Touch == cluster.Leave:
		st.why, st.note = cluster.BecauseUntouched, c.TouchWhy
	case j.State == cluster.Completing:
		st.why = cluster.BecauseCompleting
		st.pools = possible.pools(i)
	case l != nil && l.State == cluster.Granted:
		st.why, st.until = cluster.BecauseStarting, l.Granted.Add(h.set.GrantTimeout)
		st.pools = []int{max(h.pool(l.Pool), 0)}
	case j.Inactive != "":
		st.why, st.note = cluster.BecauseInactive, j.Inactive
	case r.UserBegin > h.now:
		st.why, st.note, st.until = cluster.BecauseInactive, "begin", r.UserBegin
	case r.Avoid > h.now:
		st.why, st.note, st.until = cluster.BecauseFailed, r.Said, r.Avoid
	case st.override == cluster.Freeze:
		st.why, st.note = cluster.BecauseFrozen, st.reason
	default:
		st.pools = possible.pools(i)
		if len(st.pools) == 0 && len(r.Shun) > 0 {
			r.Shun = nil // nowhere else to go: try the same nodes again
			st.pools = possible.pools(i)
		}
		if len(st.pools) == 0 {
			st.why = cluster.BecauseTooBig
			return
		}
		if open != possible {
			st.pools = open.pools(i)
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

// override gives the order of an administrator that applies to a job: its own
// before its array's before its user's before its tenant's; freeze before exempt
// before boost.
func (h *hall) override(r *cluster.Record) (cluster.OverrideKind, string) {
	if len(h.s.Overrides) == 0 {
		return "", ""
	}
	for _, scope := range []struct{ kind, name string }{
		{"job", r.ID.String()}, {"job", r.ID.Array().String()}, {"user", r.User}, {"tenant", r.Tenant},
	} {
		for _, kind := range []cluster.OverrideKind{cluster.Freeze, cluster.Exempt, cluster.Boost} {
			for k := range h.s.Overrides {
				o := &h.s.Overrides[k]
				if o.Kind == kind && o.Scope == scope.kind && o.Name == scope.name && o.Until > h.now {
					return o.Kind, o.Reason
				}
			}
		}
	}
	return "", ""
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
	h     *hall
	board *place.Board
	known map[int][]int // by shape
}

func (h *hall) newProber(reservations []cluster.Reservation) *prober {
	nodes := slices.Clone(h.s.Nodes)
	for i := range nodes {
		nodes[i].Busy = ""
	}
	return &prober{h: h, board: place.New(h.pools, nodes, reservations, h.now), known: map[int][]int{}}
}

// pools gives the pools that could serve case i, in order.
func (p *prober) pools(i int) []int {
	spec := p.h.spec(i)
	shape := p.board.Shape(spec)
	if known, ok := p.known[shape]; ok {
		return known
	}
	var out []int
	for k, model := range p.h.pools {
		if spec.Request.Model != "" && spec.Request.Model != model {
			continue
		}
		if _, ok := p.board.Fit(place.Ask{Shape: shape, Pool: k, Now: p.h.now, Most: -1}); ok {
			out = append(out, k)
		}
	}
	p.known[shape] = out
	return out
}
