package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

const (
	second  = cluster.Second
	minute  = cluster.Minute
	hour    = cluster.Hour
	term    = 15 * minute
	forever = 1000 * hour
)

// world is a virtual cluster under the loop that remembers all actions.
type world struct {
	*simtest.World
	t       *testing.T
	journal *sim.Memory
	did     []deed
	reports []loop.Report
	// alter changes an observation before the loop sees it.
	alter func(*cluster.Observation)
	// before changes Slurm right before actions reach it.
	before func([]cluster.Action)
	// down means that no action reaches Slurm.
	down bool
}

// deed is an action with its outcome.
type deed struct {
	cluster.Action
	at      cluster.Instant
	outcome cluster.Outcome
}

// newWorld makes a world of one partition with one node for each number of GPUs.
func newWorld(t *testing.T, set cluster.Settings, gpus []int, tenants ...string) *world {
	t.Helper()
	var nodes []cluster.Node
	for i, n := range gpus {
		node := simtest.Nodes("n", "v100", i+1, n)[i]
		nodes = append(nodes, node)
	}
	return newWorldOn(t, set, nodes, tenants...)
}

// newWorldOn makes a world of these nodes.
func newWorldOn(t *testing.T, set cluster.Settings, nodes []cluster.Node, tenants ...string) *world {
	t.Helper()
	w := &world{World: simtest.New(t, set, nodes, tenants...), t: t, journal: sim.NewMemory()}
	w.Loop.Journal, w.Loop.Cluster = w.journal, w
	w.Check = func(r loop.Report) {
		w.reports = append(w.reports, r)
		for i, a := range r.Plan.Actions {
			w.did = append(w.did, deed{a, r.Plan.At, r.Outcomes[i]})
		}
	}
	return w
}

func (w *world) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	s, err := w.Virtual.Observe(ctx, since)
	if err == nil && w.alter != nil {
		w.alter(&s)
	}
	return s, err
}

func (w *world) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	if w.down {
		return make([]cluster.Outcome, len(actions))
	}
	if w.before != nil {
		w.before(actions)
	}
	return w.Virtual.Apply(ctx, actions)
}

// submit queues one job of a tenant; change modifies the default job.
func (w *world) submit(tenant string, gpus int, runs cluster.Span, change func(*sim.Work)) cluster.JobID {
	work := sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Request: simtest.Gang(gpus), Runs: runs}
	if change != nil {
		change(&work)
	}
	return w.Virtual.Submit(work)
}

// done returns the actions of one kind, of all jobs or of the given ones.
func (w *world) done(verb cluster.Verb, ids ...cluster.JobID) []deed {
	var out []deed
	for _, d := range w.did {
		if d.Verb == verb && (len(ids) == 0 || slices.Contains(ids, d.ID)) {
			out = append(out, d)
		}
	}
	return out
}

// untouched fails if any action was ever taken on a job.
func (w *world) untouched(id cluster.JobID) {
	w.t.Helper()
	for _, d := range w.did {
		if d.ID == id && d.Verb != "" {
			w.t.Errorf("job %s was touched: %+v", id, d.Action)
		}
	}
}

// state fails unless a job is in a state.
func (w *world) state(id cluster.JobID, want cluster.JobState) {
	w.t.Helper()
	if got := w.Job(id).State; got != want {
		w.t.Errorf("at %s job %s is %s, want %s: %+v", w.Now().Sub(simtest.Start), id, got, want, w.Reason(id))
	}
}

// why fails unless the last reason of a job has the code.
func (w *world) why(id cluster.JobID, want cluster.Code) cluster.Reason {
	w.t.Helper()
	got := w.Reason(id)
	if got.Code != want {
		w.t.Errorf("at %s the word on job %s is %+v, want %s", w.Now().Sub(simtest.Start), id, got, want)
	}
	return got
}

// lease returns the remembered lease of a job, or nil.
func (w *world) lease(id cluster.JobID) *cluster.Lease {
	key := w.Record(id).Key
	for i := range w.Last.State.Leases {
		if l := &w.Last.State.Leases[i]; l.Job == key {
			return l
		}
	}
	return nil
}

// order gives an order for the next hours. That for a job is for the one that has the id in the last round.
func (w *world) order(kind cluster.OverrideKind, scope, name string, hours int) {
	o := cluster.Override{Kind: kind, Scope: scope, Name: name, Until: w.Now().Add(cluster.Span(hours) * hour), Reason: "because"}
	for r := range w.Last.State.All() {
		if scope != "job" || r.Done > 0 || r.ID.String() != name && r.ID.Array().String() != name {
			continue
		}
		if o.Job == 0 || r.Submit < o.Submit {
			o.Submit = r.Submit
		}
		o.Job, o.User = r.Key, r.User
	}
	if scope == "job" && o.Job == 0 {
		w.t.Fatalf("an order for job %s, which the last round does not know", name)
	}
	w.journal.Override(o)
}

// coldStart loses all jobs of Slurm, which then gives ids from 1 again.
func (w *world) coldStart(nodes []cluster.Node, tenants ...string) {
	accounts := []cluster.Account{{Name: "root"}}
	for _, name := range tenants {
		accounts = append(accounts, cluster.Account{Name: name, Parent: "root", Shares: 1})
	}
	w.Virtual = sim.NewVirtual(w.Now(), nodes, accounts)
}

// books fails unless all pools balance.
func (w *world) books() {
	w.t.Helper()
	for _, p := range w.Last.State.Ledger.Pools {
		if sum := p.Tenants + p.Untouchable + p.Overhead + p.Idle + p.Bad; sum != p.Capacity || p.Idle < 0 {
			w.t.Errorf("the books do not balance: %+v", p)
		}
	}
}
