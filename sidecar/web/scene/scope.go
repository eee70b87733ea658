package scene

import (
	"slices"
	"strings"
	"sync"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Scope is the part of a site that a person may see: the jobs of some tenants and the sums of all, or everything.
type Scope struct {
	All     bool
	Tenants []string // sorted
}

// Sees tells whether jobs of a tenant are in the scope. Jobs of no tenant ("") are for people who see everything.
func (s Scope) Sees(tenant string) bool {
	if s.All {
		return true
	}
	_, ok := slices.BinarySearch(s.Tenants, tenant)
	return ok && tenant != ""
}

// Names gives the tenants for a query: nil = all, and never nil otherwise.
func (s Scope) Names() []string {
	if s.All {
		return nil
	}
	return append([]string{}, s.Tenants...)
}

func (s Scope) key() string {
	if s.All {
		return "\x00"
	}
	return strings.Join(s.Tenants, "\x00")
}

// mostParts is the maximum number of parts that a Scene keeps.
const mostParts = 32

// Scope gives the scope that the Scene shows.
func (s *Scene) Scope() Scope { return s.scope }

// For gives the part of the Scene that a scope shows. Only a Scene that shows everything has other parts than itself.
func (s *Scene) For(scope Scope) *Scene {
	if scope.All || !s.scope.All {
		return s
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	key := scope.key()
	if part, ok := s.parts[key]; ok {
		return part
	}
	part := s.part(scope)
	if s.parts == nil || len(s.parts) >= mostParts {
		s.parts = map[string]*Scene{}
	}
	s.parts[key] = part
	return part
}

func (s *Scene) part(scope Scope) *Scene {
	out := &Scene{Serial: s.Serial, Round: s.Round, At: s.At, Read: s.Read, Silent: s.Silent, Tenants: s.Tenants, Debts: s.Debts, facts: s.facts, scope: scope, lock: new(sync.Mutex)}
	sees := scope.Sees
	status := *s.Status
	status.Aside, status.Stranded, status.Remarks = nil, nil, nil
	status.Waits = ""
	if t := status.Tripped; t != nil {
		status.Tripped = &cluster.Trip{Round: t.Round, At: t.At, Kind: t.Kind, Bound: t.Bound, Count: t.Count, Users: t.Users}
	}
	for i := range s.Forecasts {
		if sees(s.Forecasts[i].Tenant) {
			out.Forecasts = append(out.Forecasts, s.Forecasts[i])
		}
	}
	status.Soon = view.Soonest(out.Forecasts)
	out.Coverage = slices.DeleteFunc(slices.Clone(s.Coverage), func(c forecast.Coverage) bool { return c.By == "tenant" && !sees(c.Class) })
	known := map[cluster.JobKey]bool{} // visible jobs
	out.Jobs = rowsOf(s.facts, scope)
	for i := range out.Jobs {
		known[out.Jobs[i].Record.Key] = true
	}
	for _, x := range s.Status.Aside {
		if known[x.Key] {
			status.Aside = append(status.Aside, x)
		}
	}
	for _, x := range s.Status.Stranded {
		if sees(x.Tenant) {
			status.Stranded = append(status.Stranded, x)
		}
	}
	status.Schedulers = slices.DeleteFunc(slices.Clone(s.Status.Schedulers), func(x view.SchedulerStatus) bool { return !sees(x.VC) })
	out.Status = &status
	for _, u := range s.Users {
		if sees(u.Tenant) {
			out.Users = append(out.Users, u)
		}
	}
	for i := range s.Budgets {
		if sees(s.Budgets[i].Tenant) {
			out.Budgets = append(out.Budgets, s.Budgets[i])
		}
	}
	status.Budgets = out.Budgets
	status.Objectives = slices.DeleteFunc(slices.Clone(status.Objectives), func(o store.Objective) bool { return o.Tenant != "" && !sees(o.Tenant) })
	for i := range s.Bound {
		if sees(s.Bound[i].Tenant) {
			out.Bound = append(out.Bound, s.Bound[i])
		}
	}
	for i := range s.Leases {
		if sees(s.Leases[i].Tenant) {
			out.Leases = append(out.Leases, s.Leases[i])
		}
	}
	for i := range s.Events {
		if e := &s.Events[i]; e.Tenant != "" && sees(e.Tenant) || e.SlurmID == nil && e.Node != "" {
			out.Events = append(out.Events, *e)
		}
	}
	for i := range s.Overrides {
		o := &s.Overrides[i]
		if o.Scope == "tenant" && sees(o.Name) || o.Scope == "job" && slices.ContainsFunc(out.Jobs, func(r Row) bool { return r.has(o) }) {
			out.Overrides = append(out.Overrides, *o)
		}
	}
	for _, x := range s.Status.Remarks {
		if known[x.Key] {
			status.Remarks = append(status.Remarks, x)
		}
	}
	out.GPUs = make([]store.GPU, len(s.GPUs))
	for i := range s.GPUs {
		out.GPUs[i] = gpuFor(s.GPUs[i], sees)
	}
	out.Nodes = make([]Node, len(s.Nodes))
	for i := range s.Nodes {
		out.Nodes[i] = nodeFor(s.Nodes[i], sees)
	}
	out.look()
	if s.Cells != nil {
		out.Cells = cellsFor(s.Cells, sees)
	}
	out.Market = marketFor(s.Market, sees)
	return out
}

// nodeFor gives a node without what the jobs of others are.
func nodeFor(n Node, sees func(string) bool) Node {
	jobs := make([]Holder, len(n.Jobs))
	for i := range n.Jobs {
		jobs[i] = n.Jobs[i]
		jobs[i].JobInCell = *jobFor(&n.Jobs[i].JobInCell, sees)
	}
	n.Jobs, n.Seen = jobs, nil
	return n
}

// gpuFor gives a GPU without the job of others that holds it, and what is unusual about that.
func gpuFor(g store.GPU, sees func(string) bool) store.GPU {
	if g.Tenant == nil || !sees(*g.Tenant) {
		g.Job, g.Key, g.Name, g.User, g.Remarks = nil, nil, nil, nil, nil
	}
	return g
}

// jobFor gives a job as a person may see it; nil stays nil.
func jobFor(j *view.JobInCell, sees func(string) bool) *view.JobInCell {
	if j == nil || sees(j.Tenant) {
		return j
	}
	out := *j
	out.Job, out.ID, out.User = 0, "", ""
	return &out
}

func jobsFor(list []*view.JobInCell, sees func(string) bool) []*view.JobInCell {
	var out []*view.JobInCell
	for _, j := range list {
		out = append(out, jobFor(j, sees))
	}
	return out
}

// cellsFor gives the cells without what the jobs of others are.
func cellsFor(c *view.Cells, sees func(string) bool) *view.Cells {
	out := *c
	out.Cluster, out.Unsafe, out.Trades = treeFor(c.Cluster, sees), nil, cellTradesFor(c.Trades, sees)
	out.VCs = nil
	for _, vc := range c.VCs {
		levels := slices.Clone(vc.Levels)
		for i := range levels {
			cells := slices.Clone(levels[i].Cells)
			for k := range cells {
				cells[k].Holders, cells[k].Guests = jobsFor(cells[k].Holders, sees), jobsFor(cells[k].Guests, sees)
			}
			levels[i].Cells = cells
		}
		out.VCs = append(out.VCs, view.VC{VC: vc.VC, Levels: levels})
	}
	return &out
}

func treeFor(cells []view.Cell, sees func(string) bool) []view.Cell {
	out := slices.Clone(cells)
	for i := range out {
		out[i].Cells = treeFor(out[i].Cells, sees)
		uses := slices.Clone(out[i].Uses)
		for k := range uses {
			u := &uses[k]
			u.Holder, u.Guest, u.Outside = jobFor(u.Holder, sees), jobFor(u.Guest, sees), jobFor(u.Outside, sees)
		}
		out[i].Uses = uses
	}
	return out
}

// marketFor gives the market without the types of jobs of others.
func marketFor(m Market, sees func(string) bool) Market {
	trades := slices.Clone(m.Trades)
	for i := range trades {
		t := &trades[i]
		if !sees(t.FastTo) {
			t.FastToKind = ""
		}
		if !sees(t.SlowTo) {
			t.SlowToKind = ""
		}
	}
	m.Trades, m.Cells = trades, cellTradesFor(m.Cells, sees)
	return m
}

// cellTradesFor gives trades of cells without the types of jobs of others.
func cellTradesFor(list []cluster.CellTrade, sees func(string) bool) []cluster.CellTrade {
	list = slices.Clone(list)
	for i := range list {
		tradeFor(&list[i].Trade, sees)
	}
	return list
}

// tradeFor takes the types of jobs of others out of a trade.
func tradeFor(t *cluster.Trade, sees func(string) bool) {
	for _, side := range []*cluster.PartyName{&t.FastTo, &t.SlowTo} {
		if !sees(side.Tenant) {
			side.Kind = ""
		}
	}
}
