// Package engine decides. Decide is given everything that it may know and returns
// everything that it wants; it has no clock, no I/O, no log and no goroutine, and
// equal snapshots give equal plans, byte for byte.
//
// It is a hall with rooms; each step is a call into one of them, and the rooms
// do not know each other:
//
//	account  ltgf    who received and was due how much since the last look
//	learn    profile how fast each kind of job runs on each GPU model
//	observe  stop    how each type of job saves, and what its starts cost
//	divide   policy  who is due how many GPUs of each model
//	choose   lease   who holds a lease in the next term
//	place    place   where
//	say              the actions, and the reasons in numbers
package engine

import (
	"cmp"
	"slices"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// Decide makes the plan for one round. It never fails: bad input is refused when
// the snapshot is built.
func Decide(s cluster.Snapshot) cluster.Plan { return new(Decider).Decide(s) }

// Decider decides round after round as Decide does, and makes the same plans: what it keeps
// between them is room, and what it found out about nodes that have not changed since. It is not
// safe for use by several goroutines.
type Decider struct {
	// Brief tells that the lists of a plan are good until the next decision only, or where that
	// goes on from the plan until the one after it: their room is then used again.
	Brief bool

	room  room
	pages [2]*page
}

// room is what a round is worked out in.
type room struct {
	weights  map[string]int64
	leasing  lease.Room
	pools    []string
	single   [][]int              // by pool: a list of just that one
	tenants  []string             // of the ledger, in order
	parties  []party              // between whom a policy divides GPU models; empty = there is none
	accounts []cluster.TenantPool // of parties, by party, then pool
	queues   []party              // who queue for GPUs: tenants, or where a policy knows jobs only, parties
	site     *place.Site
	// The cells' description, and the cells as they are when all is healthy and free.
	described *cluster.Cells
	plain     *cells.State
	refused   error
	possible  *prober // on the site; nil = none yet
	board     *place.Board
	common    *place.Board // of nodes in no cell, where there are cells
	kept      *place.Board // on which claims are made
	standing  []caseState
	ranks     []int
	unsorted  []lease.Candidate
	sorted    []lease.Candidate
	claiming  []ltgf.Claimant
	habits    stop.Habits
	habitOf   []int32           // of cases, in habits; see hall.habit
	stopOf    []stopBase        // of cases; see hall.stopBase
	passed    [2][]lease.Passed // of those that we act on, and of those that we watch
}

// page is room for the lists of a plan.
type page struct {
	books    ltgf.Page
	leases   []cluster.Lease
	verdicts []cluster.Verdict
	standing []cluster.Standing
}

func newPage() *page {
	// What is empty is written as an empty list.
	return &page{books: ltgf.Page{Records: []cluster.Record{}}, leases: []cluster.Lease{}, verdicts: []cluster.Verdict{}, standing: []cluster.Standing{}}
}

// page gives the page on which the snapshot does not stand.
func (d *Decider) page(s *cluster.Snapshot) *page {
	if !d.Brief {
		return newPage()
	}
	if d.pages[0] == nil {
		d.pages = [2]*page{newPage(), newPage()}
	}
	p := d.pages[0]
	if on := p.books.Ledger.Pools; len(on) > 0 && len(s.Ledger.Pools) > 0 && &on[0] == &s.Ledger.Pools[0] {
		p = d.pages[1]
	}
	return p
}

// Decide makes the plan for one round.
func (d *Decider) Decide(s cluster.Snapshot) cluster.Plan {
	done := false
	defer func() {
		if !done { // it broke down, and nothing that it kept can be relied on
			*d = Decider{Brief: d.Brief}
		}
	}()
	h := d.open(&s)
	h.extend()
	h.youth()
	h.lending()
	// 3 choose and place: first the jobs that we act on, then, as if those were
	// fixed, the jobs that we only watch
	h.choose(cluster.Act)
	h.choose(cluster.Watch)
	if s.Cells != nil && h.cells == nil { // there is no job at all
		h.chooseCells(cluster.Act)
	}
	slices.SortFunc(h.claims, func(a, b cluster.Claim) int { return cmp.Compare(a.Job, b.Job) })
	// 4 say
	p := h.say()
	done = true
	return p
}

// open takes the steps before anything is chosen.
func (d *Decider) open(s *cluster.Snapshot) *hall {
	h := &hall{s: s, brief: d.Brief, now: s.Now, set: &s.Settings, room: &d.room, page: d.page(s)}
	h.enter()
	// 1 account
	h.page.books = ltgf.Charge(s, h.page.books)
	h.ledger, h.records = h.page.books.Ledger, h.page.books.Records
	h.leases, h.ended = lease.Reconcile(s, h.records, &h.leasing)
	h.register(h.page.books.Rows)
	h.setAside()
	if site := place.Resurvey(h.site, h.pools, s.Nodes, s.Reservations, s.Now, len(s.Claims) > 0); site != h.site {
		h.site, h.possible = site, newProber(site, h.pools, s.Now, place.View{})
	}
	h.learn()
	h.observe()
	h.saveUp()
	h.afford()
	active := h.active()
	h.gather()
	// 2 divide
	h.divide()
	ltgf.Due(&h.ledger, h.records, active)
	return h
}

// hall carries the values from room to room.
type hall struct {
	*room
	page    *page
	s       *cluster.Snapshot
	now     cluster.Instant
	set     *cluster.Settings
	ledger  cluster.Ledger
	rows    []cluster.TenantPool // the accounts of those who queue, by queue, then pool
	records []cluster.Record
	leases  []*cluster.Lease // in force, by case; nil = none
	ended   []cluster.Lease
	claims  []cluster.Claim
	heirs   map[gpusOn]int // the first claim on GPUs; nil = not worked out yet
	lost    []cluster.CellLoss
	lent    []cluster.Lending // by pool
	broke   []bool            // by pool: it cannot afford any stop
	tried   []int             // by pool: the job that is to show how fast its kind is there, by case; -1 = none
	learned *learned
	// What is to be divided anew; nil = what was divided holds.
	question *cluster.Question
	cells    *cluster.CellReport
	unsafe   []string            // how promises to VCs do not add up
	fences   map[string][]string // nodes by name of the reservation that is to be around them
	fenced   map[string]bool     // nodes around which one is, or is about to be
	brief    bool
	actions  []cluster.Action
	closed   []string // nodes on which only cells are given out
	// When a lease may be recalled that may not be now; 0 = no such moment is known.
	recallAt cluster.Instant
	// Room to put a hand-over together in.
	grants, reclaims []cluster.Action

	events []cluster.Event
}

// caseState is what the hall works out once about every case. It repeats what many
// steps ask: cases are large, and to walk over all of them is what costs most.
type caseState struct {
	touch   cluster.Touch
	there   bool              // in Slurm, and not done
	waits   bool              // there, with the state waiting
	runs    bool              // there, running or suspended
	waiting bool              // it could be granted a lease now
	took    bool              // its lease begins in this round
	told    bool              // its notice is due in this round
	stops   bool              // its job may be stopped when its lease ends
	dear    bool              // its pool cannot afford to stop it
	tenant  int               // index into tenants, -1 = none
	party   int               // index into parties, -1 = none
	queue   int               // index into queues, -1 = none
	gpus    int               // that it asks for; 0 of one that can never have them: it costs the books nothing
	held    int               // that it holds
	rho     cluster.Rho       // its own
	order   *cluster.Override // that is in force for it; nil = none
	shape   int               // of what it asks for; set where it may be placed
	pools   []int
	may     []int // pools that could serve it, wherever it runs; set where a policy divides them
	passed  *lease.Passed
	rank    int             // place in its tenant's queue
	claimed bool            // GPUs are kept for it; noted of cells only
	heir    cluster.JobKey  // for whom its lease was recalled in this round
	cell    *cluster.Reason // why it has none of its VC's cells, nor lent GPUs
	why     cluster.Code
	note    string
	until   cluster.Instant
}

// ordered tells whether an administrator's order of a kind is in force for the case.
func (st *caseState) ordered(kind cluster.OverrideKind) bool {
	return st.order != nil && st.order.Kind == kind
}

// ours tells whether a case belongs to a round of choosing.
func (st *caseState) ours(touch cluster.Touch) bool {
	return st.touch == touch || touch == cluster.Act && st.touch == cluster.Keep
}

func (h *hall) enter() {
	if h.weights == nil {
		h.weights = make(map[string]int64, len(h.s.Tenants))
	}
	clear(h.weights)
	for _, t := range h.s.Tenants {
		h.weights[t.Name] = t.Weight
	}
}

// register gives pools, tenants and cases their numbers. rows is the first row of each
// case's tenant in the ledger.
func (h *hall) register(rows []int) {
	h.pools = h.pools[:0]
	for p := range h.ledger.Pools {
		h.pools = append(h.pools, h.ledger.Pools[p].Pool)
		if p == len(h.single) {
			h.single = append(h.single, []int{p})
		}
	}
	n := len(h.pools)
	h.tenants = h.tenants[:0]
	for i := 0; n > 0 && i < len(h.ledger.Tenants); i += n {
		h.tenants = append(h.tenants, h.ledger.Tenants[i].Tenant)
	}
	all := 0
	for i := range h.s.Nodes {
		for _, g := range h.s.Nodes[i].GPUs {
			all += g.Count
		}
	}
	h.standing = slices.Grow(h.standing[:0], len(h.s.Cases))[:len(h.s.Cases)]
	clear(h.standing)
	for i := range h.standing {
		c, r, st := &h.s.Cases[i], &h.records[i], &h.standing[i]
		st.tenant = rows[i]
		if rows[i] >= 0 {
			st.tenant = rows[i] / n
		}
		st.touch, st.rho = c.Touch, cluster.RhoOf(r.Alloc, r.Due)
		st.gpus = c.Job.Request.GPUs
		st.there = !c.Gone && c.Job.State != cluster.Done
		st.waits = st.there && c.Job.State == cluster.Waiting
		st.runs = st.there && (c.Job.State == cluster.Running || c.Job.State == cluster.Suspended)
		if l := h.leases[i]; l != nil && st.runs {
			st.held = l.GPUs // counted already
		} else {
			st.held = c.Job.GPUsHeld()
		}
		if st.gpus > all && st.held == 0 {
			st.gpus = 0
		}
		if len(h.s.Overrides) > 0 {
			st.order = h.order(r)
		}
	}
}

// row gives a tenant's account in a pool.
func (h *hall) row(tenant, pool int) *cluster.TenantPool {
	return &h.ledger.Tenants[tenant*len(h.pools)+pool]
}

// pool gives the index of a GPU model, or -1.
func (h *hall) pool(model string) int {
	for i, p := range h.pools {
		if p == model {
			return i
		}
	}
	return -1
}

// poolOf gives the pool of a lease, as a list of just that one.
func (h *hall) poolOf(l *cluster.Lease) []int {
	if len(h.pools) == 0 {
		return nil
	}
	return h.single[max(h.pool(l.Pool), 0)]
}

// find gives the case of a job, or -1.
func (h *hall) find(key cluster.JobKey) int {
	i, ok := sort.Find(len(h.s.Cases), func(i int) int { return cmp.Compare(key, h.s.Cases[i].Record.Key) })
	if !ok {
		return -1
	}
	return i
}
