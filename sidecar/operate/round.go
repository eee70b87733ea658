package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
	"github.com/fairlease/fairlease/sidecar/store"
)

// PreviewRound writes the decisions of a round now. It changes nothing.
func PreviewRound(ctx context.Context, cfg *config.Config, p *view.Page, audit bool) error {
	client, err := connect.Slurm(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	var journal *store.Store // nil = not configured
	if cfg.Database.URL != "" {
		if journal, err = connect.Journal(ctx, cfg); err != nil {
			return err
		}
		defer journal.Close()
	}
	var newest *tune.Change
	var book spending.Book
	if journal != nil {
		if newest, err = journal.Terms.Tuning(ctx); err != nil {
			return connect.JournalFailed(err)
		}
		if book, err = journal.Tenants.Accounts(ctx); err != nil {
			return connect.JournalFailed(err)
		}
		book, _ = book.Configure(cfg.Spending(), cluster.InstantOf(time.Now()))
	}
	turn := &loop.Loop{Cluster: daemon.Watch(client, cfg), Journal: connect.ReadOnlyJournal(journal), Decide: engine.Decide, Divide: engine.Divide,
		Configure: func() (loop.Rules, cluster.Settings) {
			with, settings := cfg.At(time.Now(), newest)
			rules := with.Rules()
			rules.Budgets = book.States()
			return rules, settings
		}}
	snap, plan, err := turn.Preview(ctx)
	if err != nil {
		return connect.RoundFailed(cfg, err)
	}
	if p.JSON {
		return p.Encode(LookAhead(&snap, &plan, audit))
	}
	if p.ForPeople() {
		p.Printf("%s  nothing is written or changed\n", p.Paint(fmt.Sprintf("Round %d, as it would be now, in mode %s.", plan.Round, cfg.Mode), "bold"))
		if journal == nil {
			p.Printf("No database is configured: decided as in a first round.\n")
		}
		p.Printf("\n")
	}
	(&view.Decisions{Snapshot: &snap, Plan: &plan}).Write(p)
	if p.ForPeople() {
		LookAhead(&snap, &plan, audit).Write(p, &snap)
	}
	return nil
}

// LookAhead answers a plan's question, and audits the answer if audit is set.
func LookAhead(snap *cluster.Snapshot, plan *cluster.Plan, audit bool) *view.Ahead {
	a := &view.Ahead{Plan: *plan, Due: plan.Tenants}
	next := *snap
	if plan.AllocationRequest != nil {
		d := engine.Divide(*plan.AllocationRequest)
		a.Answer, next.Allocation = &d, &d
		a.Due = engine.Decide(next).Tenants
	}
	if audit {
		if found, ok := engine.Audit(next); ok {
			a.Audit = &found
		}
	}
	return a
}

// Round makes a round and writes its results.
func Round(ctx context.Context, cfg *config.Config, p *view.Page) error {
	client, err := connect.Slurm(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	// The snapshot gives the names of jobs.
	var snap cluster.Snapshot
	d := &daemon.Daemon{Cluster: client, Connect: connect.Daemon(cfg), Config: cfg,
		Decide: func(s cluster.Snapshot) cluster.Plan { snap = s; return engine.Decide(s) }, Divide: engine.Divide}
	report, err := d.Once(ctx)
	if errors.Is(err, daemon.ErrTaken) {
		return &failure.Error{Code: failure.No, What: "no round was made", Err: holder(ctx, cfg, p, err),
			Next: "that daemon makes the rounds; to see the next one: fairlease round --dry-run"}
	}
	if err != nil {
		return connect.RoundFailed(cfg, err)
	}
	if p.JSON {
		return p.Encode(map[string]any{"plan": report.Plan, "outcomes": report.Outcomes})
	}
	if p.ForPeople() {
		p.Printf("%s\n\n", p.Paint(fmt.Sprintf("Round %d, in mode %s.", report.Plan.Round, cfg.Mode), "bold"))
	}
	(&view.Decisions{Snapshot: &snap, Plan: &report.Plan, Outcomes: report.Outcomes}).Write(p)
	for i, o := range report.Outcomes {
		if !o.OK && !o.Skipped {
			return &failure.Error{Code: failure.No, What: fmt.Sprintf("%s of %s failed", report.Plan.Actions[i].Verb, view.Subject(&report.Plan.Actions[i])),
				Err: errors.New(o.Error), Next: "nothing: the next round checks again and does what is left"}
		}
	}
	return nil
}

// holder names the holder of the lead and its start.
func holder(ctx context.Context, cfg *config.Config, p *view.Page, taken error) error {
	s, err := connect.Journal(ctx, cfg)
	if err != nil {
		return taken
	}
	defer s.Close()
	lead, err := s.Leader(ctx)
	if err != nil || lead == nil {
		return taken
	}
	return fmt.Errorf("%s leads since %s, seen %v ago", lead.Holder, p.Time(cluster.InstantOf(lead.Acquired)), cluster.SpanOf(lead.Silent))
}
