package scene

import (
	"slices"
	"strings"
	"sync"

	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
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
	status.Aside, status.Stranded = nil, nil
	known := map[string]bool{} // ids of visible jobs
	out.Jobs = jobsOf(s.Snapshot, s.Plan, scope)
	for i := range out.Jobs {
		known[out.Jobs[i].SlurmID] = true
	}
	for _, x := range s.Status.Aside {
		if known[x.ID] {
			status.Aside = append(status.Aside, x)
		}
	}
	for _, x := range s.Status.Stranded {
		if sees(x.Tenant) {
			status.Stranded = append(status.Stranded, x)
		}
	}
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
	for i := range s.Orders {
		o := &s.Orders[i]
		if o.Scope == "tenant" && sees(o.Name) || o.Scope == "job" && known[o.Name] {
			out.Orders = append(out.Orders, *o)
		}
	}
	out.Nodes = make([]Node, len(s.Nodes))
	for i := range s.Nodes {
		out.Nodes[i] = nodeFor(s.Nodes[i], sees)
	}
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
	n.Jobs = jobs
	seen := make([]store.GPU, len(n.Seen))
	for i := range n.Seen {
		seen[i] = n.Seen[i]
		if g := &seen[i]; g.Tenant == nil || !sees(*g.Tenant) {
			g.Job, g.Name, g.User = nil, nil, nil
		}
	}
	n.Seen = seen
	return n
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
	out.Cluster, out.Unsafe = treeFor(c.Cluster, sees), nil
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
	cells := slices.Clone(m.Cells)
	for i := range cells {
		t := &cells[i]
		if !sees(t.FastTo.Tenant) {
			t.FastTo.Kind = ""
		}
		if !sees(t.SlowTo.Tenant) {
			t.SlowTo.Kind = ""
		}
	}
	m.Trades, m.Cells = trades, cells
	return m
}
