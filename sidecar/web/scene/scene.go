// Package scene is what web pages and the web's API show: the site as of the newest round.
//
//	Facts    what was read from the journal at one moment
//	Scene    an immutable picture made of them
//	Keeper   reads the journal, and has the newest Scene
//	Past     history that is too large for a Scene, read within bounds
//
// A Scene shows everything, or only what people of some tenants may see (Scene.For). Code that is given such a part cannot tell more.
package scene

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Facts is what the journal told at one moment.
type Facts struct {
	Read     time.Time // by the clock of this host
	Leader   *store.Leader
	Standbys []store.Standby
	Snapshot cluster.Snapshot // of the newest round
	Plan     cluster.Plan     // of the newest round; Round 0 = there is none yet
	Tenants  []store.Tenant
	Debts    []store.Debt
	Budgets  []store.Budget
	// Objectives are by objective and tenant.
	Objectives []store.Objective
	Bound      []store.Bound // running jobs whose GPUs cannot be taken back soon
	Leases     []store.Lease // in force
	Trades     []store.Trade // in force
	// Effective is the tenants' throughput; none without a policy that divides GPU models.
	Effective []store.Effective
	Events    []store.Noted       // the newest
	Forecasts []store.JobForecast // the newest, by key
	Kept      []forecast.Coverage // how many statements of forecasts kept their word
	GPUs      []store.GPU
	GPULooks  []store.GPULook
	Unseen    []store.GPUNode
	Remarks   []store.Remark // on running jobs
	Members   []cluster.Member
	Overrides []store.Override // overrides in force
	// Mode, Acting and Waits are those of Keeper.Stance.
	Mode   string
	Acting []string
	Waits  string
}

// Scene is the site as of a round. It is never changed. Lists may be empty, and Status is never nil.
type Scene struct {
	Serial int64     // grows with every Scene of a Keeper
	Round  int64     // 0 = none yet
	At     time.Time // of the round
	Read   time.Time // when the journal was read
	// Silent is since when the journal has not answered: all this is of before. nil = it answers.
	Silent *time.Time

	Status  *view.Status
	Tenants []store.Tenant        // by tenant, pool
	Debts   []store.Debt          // by pool, the largest first
	Budgets []store.Budget        // by tenant
	Bound   []store.Bound         // running jobs whose GPUs cannot be taken back soon, by tenant
	Users   []cluster.UserAccount // of tenants that share equally between users
	Jobs    []Row                 // waiting, configuring, running, suspended and completing, by key
	Leases  []store.Lease         // in force, newest first
	Nodes   []Node                // by name
	GPUs    []store.GPU           // by node, as their counters showed them last
	// Forecasts are the newest, by key.
	Forecasts []store.JobForecast
	Coverage  []forecast.Coverage // how many statements of forecasts kept their word, the whole kinds first
	Cells     *view.Cells         // nil = there are no cells
	Market    Market
	Events    []store.Noted    // the newest, newest first
	Overrides []store.Override // overrides in force

	// Snapshot and Plan are the whole round; nil for people who may not see all.
	Snapshot *cluster.Snapshot
	Plan     *cluster.Plan

	facts *Facts
	scope Scope
	lock  *sync.Mutex
	parts map[string]*Scene // of this Scene, by scope
}

// Job is a job, and why it runs or waits.
type Job struct {
	store.Job
	Rho    cluster.Rho  `json:"rho_millionths"`
	Code   cluster.Code `json:"code,omitempty"` // of the reason; "" = the round did not decide on it
	Reason string       `json:"reason,omitempty"`
	Until  *time.Time   `json:"until,omitempty"` // when the reason may change
	Nodes  []string     `json:"nodes,omitempty"` // that it holds
	Class  string       `json:"class,omitempty"` // of its lease
	Ends   *time.Time   `json:"ends,omitempty"`  // its lease
	// Says is Slurm's own reason why it waits.
	Says string `json:"slurm_says,omitempty"`
	// Ahead is its forecast; nil = there is none.
	Ahead *store.Forecast `json:"forecast,omitempty"`
	// Why is the reason as data. It names no job that the person may not see.
	Why *cluster.Reason `json:"-"`
}

// Node is a node with GPUs, and the jobs on it.
type Node struct {
	Name       string         `json:"name"`
	GPUs       []cluster.GPUs `json:"gpus"`
	Drained    []int          `json:"drained,omitempty"`
	Partitions []string       `json:"partitions,omitempty"`
	Bad        string         `json:"bad,omitempty"`
	Busy       string         `json:"busy,omitempty"`
	// Slow says by model how slow it is, if it is slower than other nodes.
	Slow []cluster.SlowNode `json:"slow,omitempty"`
	// SlowGPUs are those that slow their jobs down on a node that is not slow.
	SlowGPUs []cluster.SlowGPU `json:"slow_gpus,omitempty"`
	Jobs     []Holder          `json:"jobs"`
	// Seen is the part of the Scene's GPUs.
	Seen []store.GPU `json:"gpus_now,omitempty"`
}

// Holder is a job that holds GPUs of a node. Of a job that the person may not see, only tenant, right, number and time are told.
type Holder struct {
	view.JobInCell
	Model string `json:"model"`
	Index []int  `json:"index,omitempty"` // of its GPUs, if Slurm reports them
}

// Market is how heterogeneous GPUs are divided and traded.
type Market struct {
	Policy  string `json:"policy,omitempty"` // "" = none divides GPU models
	Chooser string `json:"models_chooser,omitempty"`
	Why     string `json:"why,omitempty"`   // tenants fall back to weighted shares
	Bound   string `json:"bound,omitempty"` // how far the division may be from the best, in words
	// Tradable tells whether virtual clusters may trade cells.
	Tradable  bool                `json:"tradable_cells,omitempty"`
	Trades    []store.Trade       `json:"trades"`
	Cells     []cluster.CellTrade `json:"cell_trades"`
	Effective []store.Effective   `json:"effective"`
}

// Of makes a Scene that shows everything.
func Of(f Facts) *Scene {
	snap, plan := &f.Snapshot, &f.Plan
	s := &Scene{facts: &f, scope: Scope{All: true}, lock: new(sync.Mutex), Round: plan.Round, At: plan.At.Time(), Read: f.Read,
		Tenants: f.Tenants, Debts: f.Debts, Budgets: f.Budgets, Bound: f.Bound, Users: plan.State.Ledger.Users, Leases: slices.Clone(f.Leases), GPUs: f.GPUs, Events: f.Events, Overrides: f.Overrides, Snapshot: snap, Plan: plan}
	s.Status = view.StatusOf(f.Leader, snap, plan, f.Effective)
	s.Status.GPUs, s.Status.Unseen, s.Status.Remarks, s.Status.Mode, s.Status.Acting, s.Status.Waits = f.GPULooks, f.Unseen, f.Remarks, f.Mode, f.Acting, f.Waits
	s.Status.Standbys = f.Standbys
	s.Status.Budgets, s.Status.Objectives = f.Budgets, f.Objectives
	s.Forecasts, s.Coverage = f.live(), f.Kept
	s.Status.Soon = view.Soonest(s.Forecasts)
	store.LookAhead(s.Leases, s.Forecasts)
	s.Jobs = rowsOf(&f, s.scope)
	s.Nodes = nodesOf(snap, plan)
	s.look()
	if snap.Cells != nil && plan.Cells != nil {
		s.Cells = view.CellsOf(snap, plan)
	}
	s.Market = Market{Policy: snap.Settings.Divide, Chooser: s.Status.Chooser, Bound: s.Status.Bound, Tradable: snap.Cells.Tradable(), Trades: f.Trades, Cells: plan.State.CellTrades, Effective: f.Effective}
	if d := snap.Allocation; d != nil && d.Policy == snap.Settings.Divide {
		s.Market.Why = d.Why
	}
	return s
}

// ahead gives the forecast of a job in its state; nil = there is none.
func (f *Facts) ahead(key cluster.JobKey, state cluster.JobState) *store.Forecast {
	if i, ok := slices.BinarySearchFunc(f.Forecasts, key, func(x store.JobForecast, key cluster.JobKey) int { return cmp.Compare(x.Key, key) }); ok {
		now := f.Forecasts[i].As(string(state))
		return &now
	}
	return nil
}

// live gives the forecasts of live jobs, with their states in the round.
func (f *Facts) live() []store.JobForecast {
	out := make([]store.JobForecast, 0, len(f.Forecasts))
	cases, at := f.Snapshot.Cases, 0
	for _, x := range f.Forecasts {
		for at < len(cases) && cases[at].Record.Key < x.Key {
			at++
		}
		if at < len(cases) && cases[at].Record.Key == x.Key && !cases[at].Gone && cases[at].Job.State != cluster.Done {
			x.State = string(cases[at].Job.State)
			x.Forecast = x.As(x.State)
			out = append(out, x)
		}
	}
	return out
}

// silent gives the Scene with the time since which the journal does not answer; zero = it answers.
func (s *Scene) silent(since time.Time) *Scene {
	out := *s
	out.Silent, out.lock, out.parts = nil, new(sync.Mutex), nil
	if !since.IsZero() {
		out.Silent = &since
	}
	return &out
}

// TenantsOf gives the tenants of a Slurm user, sorted.
func (s *Scene) TenantsOf(user string) []string {
	i, _ := slices.BinarySearchFunc(s.facts.Members, user, func(m cluster.Member, user string) int { return strings.Compare(m.User, user) })
	var out []string
	for ; i < len(s.facts.Members) && s.facts.Members[i].User == user; i++ {
		out = append(out, s.facts.Members[i].Tenant)
	}
	return out
}

// Job gives a live job by its id in Slurm; nil = this Scene shows none.
func (s *Scene) Job(id cluster.JobID) *Job {
	if r := s.row(id); r != nil {
		return r.Job()
	}
	return nil
}

func (s *Scene) row(id cluster.JobID) *Row {
	for i := range slices.Backward(s.Jobs) { // ids are used again, keys are not
		if s.Jobs[i].Record.ID == id {
			return &s.Jobs[i]
		}
	}
	return nil
}

// Node gives a node by its name; nil = there is none.
func (s *Scene) Node(name string) *Node {
	if i, ok := slices.BinarySearchFunc(s.Nodes, name, func(n Node, name string) int { return strings.Compare(n.Name, name) }); ok {
		return &s.Nodes[i]
	}
	return nil
}

// moment gives a pointer to a time; nil = none.
func moment(t cluster.Instant) *time.Time {
	if t == 0 {
		return nil
	}
	at := t.Time()
	return &at
}

// look gives the nodes their part of the GPUs.
func (s *Scene) look() {
	for first := 0; first < len(s.GPUs); {
		last := first
		for last < len(s.GPUs) && s.GPUs[last].Node == s.GPUs[first].Node {
			last++
		}
		if n := s.Node(s.GPUs[first].Node); n != nil {
			n.Seen = s.GPUs[first:last]
		}
		first = last
	}
}

// nodesOf gives the nodes with GPUs, and the jobs on them.
func nodesOf(snap *cluster.Snapshot, plan *cluster.Plan) []Node {
	out := make([]Node, 0, len(snap.Nodes))
	at := make(map[string]int, len(snap.Nodes))
	for i := range snap.Nodes {
		n := &snap.Nodes[i]
		if len(n.GPUs) == 0 && len(n.Drained) == 0 {
			continue
		}
		out = append(out, Node{Name: n.Name, GPUs: n.GPUs, Drained: n.Drained, Partitions: n.Partitions, Bad: n.Bad, Busy: n.Busy, Jobs: []Holder{}})
	}
	slices.SortFunc(out, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range out {
		at[out[i].Name] = i
	}
	for _, x := range plan.State.NodeSpeeds.Slow {
		if n, ok := at[x.Node]; ok {
			out[n].Slow = append(out[n].Slow, x)
		}
	}
	for _, x := range plan.State.NodeSpeeds.GPUs {
		if n, ok := at[x.Node]; ok {
			out[n].SlowGPUs = append(out[n].SlowGPUs, x)
		}
	}
	leases := cursor(plan.State.Leases, func(l *cluster.Lease) cluster.JobKey { return l.Job })
	for i := range snap.Cases {
		c := &snap.Cases[i]
		if c.Gone || c.Job.State == cluster.Waiting || c.Job.State == cluster.Done {
			continue
		}
		for _, h := range c.Job.Holds {
			n, ok := at[h.Node]
			if !ok || h.Size.Devices == 0 {
				continue
			}
			x := Holder{Model: h.Model, Index: h.Index, JobInCell: view.JobInCell{Job: c.Record.Key, ID: c.Record.ID.String(), User: c.Job.User, Tenant: c.Record.Tenant, GPUs: h.Size.Count()}}
			if l := leases(c.Record.Key); l != nil {
				x.Right, x.Until, x.State = l.Class, l.End, l.State
			}
			out[n].Jobs = append(out[n].Jobs, x)
		}
	}
	return out
}
