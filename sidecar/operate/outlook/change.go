package outlook

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/loop/effect"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Otherwise is what another configuration changes: its keys, and what the newest round would have decided by it.
type Otherwise struct {
	Keys []config.Change `json:"keys"`
	// Round is nil where no round could be decided; Why says why.
	Round *effect.Effect `json:"next_round,omitempty"`
	Why   string         `json:"no_round,omitempty"`
	// Ahead compares the time For from the round on, by tenant; nil = nobody asked.
	For   cluster.Span `json:"for_ms,omitempty"`
	Ahead []Hurt       `json:"ahead,omitempty"`
}

// Differs tells whether anything is different.
func (o *Otherwise) Differs() bool { return len(o.Keys) > 0 || o.Round != nil && !o.Round.None() }

// Reconfigured compares two configurations by the journal's newest round, and with a time ahead by forecasts, too.
type Reconfigured struct {
	Was, Now *config.Config
	For      cluster.Span // 0 = the next round only
	Workers  int
	History  func(ctx context.Context, since, until cluster.Instant) []cluster.Attempt // as for Ask
}

// Setup is what a configuration gives a round at a moment.
func Setup(c *config.Config, at cluster.Instant, newest *tune.Change, book spending.Book) *effect.Setup {
	with, settings := c.At(at.Time(), newest)
	rules := with.Rules()
	book, _ = book.Configure(c.Spending(), at)
	rules.Budgets = book.States()
	return &effect.Setup{Rules: rules, Settings: settings}
}

// Ask compares them. The journal may be missing: then only keys are compared.
func (x *Reconfigured) Ask(ctx context.Context, s *store.Store) (*Otherwise, error) {
	o := &Otherwise{Keys: config.Changes(x.Was, x.Now)}
	snap, plan, err := s.Rounds.Last(ctx)
	if err != nil {
		return nil, err
	}
	if plan.Round == 0 {
		o.Why = "no round has been recorded yet"
		return o, nil
	}
	newest, err := s.Terms.Tuning(ctx)
	if err != nil {
		return nil, err
	}
	book, err := s.Tenants.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	was, now := Setup(x.Was, snap.Now, newest, book), Setup(x.Now, snap.Now, newest, book)
	o.Round = effect.Of(&snap, was, now, engine.Decide, engine.Divide)
	if x.For == 0 {
		return o, nil
	}
	q, err := Ask(ctx, s, x.Was, x.Workers, x.History)
	if err != nil {
		return nil, err
	}
	q.Horizon, o.For = x.For, x.For
	before, after := *q, *q
	for _, y := range []struct {
		q  *forecast.Question
		to *effect.Setup
	}{{&before, was}, {&after, now}} {
		under, _ := loop.Under(*q.Snapshot, &was.Rules, &y.to.Rules, y.to.Settings)
		decided := effect.Decided(&under, engine.Decide, engine.Divide)
		y.q.Snapshot, y.q.Plan = &under, &decided
	}
	a, err := Make(ctx, &before)
	if err != nil {
		return nil, err
	}
	b, err := Make(ctx, &after)
	if err != nil {
		return nil, err
	}
	o.Ahead = hurts(before.Snapshot, a, b, &Drain{})
	return o, nil
}

// mostNamed is how many jobs of a kind people are told of; programs get all.
const mostNamed = 10

// modes say what a new mode changes, which a round in which little happens may not show.
var modes = map[string]string{
	string(loop.Observe): "Mode observe: from the next round on nothing is changed in Slurm; gates lapse, and running jobs run on.",
	string(loop.Canary):  "Mode canary: only the partitions of canary and the jobs of canary_jobs are gated, stopped and leased.",
	string(loop.Act):     "Mode act: jobs of all managed partitions are gated, stopped and leased.",
}

// Write writes the differences.
func (o *Otherwise) Write(p *view.Page) error {
	if p.JSON {
		return p.Encode(o)
	}
	if len(o.Keys) > 0 {
		t := &view.Table{Head: []string{"KEY", "IN_FORCE", "NEW", "RESTART"}}
		for _, k := range o.Keys {
			t.Add(k.Key, view.ValueOf(k.Before), view.ValueOf(k.After), map[bool]string{true: "yes", false: "-"}[k.Restart])
		}
		p.Table(t)
	} else {
		p.Printf("no key has another value\n")
	}
	if o.Round == nil {
		p.Printf("\nThe effect is not known: %s.\n", o.Why)
		return nil
	}
	e := o.Round
	p.Printf("\nBy round %d of %s: %s.", e.Round, p.Time(e.At), e)
	if !e.None() {
		p.Printf(" That is %.1f%% of %d GPUs.", e.Percent(), e.GPUs)
	}
	p.Printf("\n")
	for _, k := range o.Keys {
		if text := modes[view.ValueOf(k.After)]; k.Key == "mode" && text != "" {
			p.Printf("%s\n", text)
		}
	}
	for _, x := range e.Unknown {
		p.Printf("not known: %s\n", x)
	}
	for _, x := range []struct {
		list []effect.Job
		what string
	}{{e.Ends, "lease ends"}, {e.Kept, "lease goes on, and would end by what is in force"}, {e.Starts, "starts"}, {e.Waits, "does not start"}, {e.Left, "is left alone"}, {e.Managed, "is managed"}} {
		for _, j := range x.list[:min(len(x.list), mostNamed)] {
			p.Printf("  job %s of %s (%s, %s GPUs) %s", j.Job, cmp.Or(j.Tenant, "no tenant"), j.User, j.GPUs, x.what)
			if j.How != "" {
				p.Printf(": %s", j.How)
			}
			p.Printf("\n")
		}
		if more := len(x.list) - mostNamed; more > 0 {
			p.Printf("  and %s: --json lists all\n", view.Plural(more, "more job"))
		}
	}
	if len(e.Tenants) > 0 {
		t := &view.Table{Head: []string{"TENANT", "POOL", ">SHARE", ">NEW", ">DUE", ">NEW", ">OWED_GPU_H", ">NEW"}}
		gpus := func(g cluster.MicroGPU) string { return fmt.Sprintf("%.1f", float64(g)/float64(cluster.WholeGPU)) }
		share := func(millionths int64) string { return fmt.Sprintf("%.1f%%", float64(millionths)/1e4) }
		hours := func(g cluster.GPUTime) string { return fmt.Sprintf("%.1f", float64(g)/float64(cluster.Hour)) }
		for i := range e.Tenants {
			x := &e.Tenants[i]
			t.Add(x.Tenant, x.Pool, share(x.Was.Share), share(x.Now.Share), gpus(x.Was.Entitlement), gpus(x.Now.Entitlement), hours(x.Was.Owed), hours(x.Now.Owed))
		}
		p.Printf("\n")
		p.Table(t)
	}
	if o.For > 0 {
		p.Printf("\nIn the %v after that round, by forecasts with the same draws:\n\n", o.For.Exact())
		return WriteHurts(p, o.Ahead)
	}
	return nil
}
