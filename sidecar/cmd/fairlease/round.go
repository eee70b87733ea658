package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/connect"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/view"
)

func (p *program) round() *cobra.Command {
	var l view.Form
	var dry, audit bool
	c := &cobra.Command{Use: "round [--dry-run [--audit]]", Short: "make one round by hand, or show what it would do", Args: exactly(),
		Long: `Make one round by hand: look, decide, write down, act as far as the mode allows. It takes the
seat for that; while a daemon is seated it refuses.

With --dry-run nothing is written and nothing changed, whoever is seated. Without a configured
database it decides as if it had never looked before. Where the preset divides GPU models that are not alike,
it tells who would be due what of each model, and the trades; with --audit also how fair that is:

  INCENTIVE   what a tenant is due, over a part of every model by weight: below 1 it would rather be alone
  MOST_ENVY   what it would have with another's GPUs, over what it has: above 1 it would rather have those
  SAYS+20%    what it would gain by speedups said to be a fifth higher than they are (-20%: lower)`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			if dry {
				return p.preview(c.Context(), cfg, l, audit)
			}
			if audit {
				return &failure.Error{Code: failure.Misuse, What: "--audit goes with --dry-run only", Next: "see " + c.CommandPath() + " --help"}
			}
			return p.once(c.Context(), cfg, l)
		}}
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done")
	c.Flags().BoolVar(&audit, "audit", false, "with --dry-run, tell how fair it is what the preset divides")
	listFlags(c, &l)
	return c
}

// preview shows what a round would do now.
func (p *program) preview(ctx context.Context, cfg *config.Config, l view.Form, audit bool) error {
	client, err := connect.Slurm(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	journal := connect.ReadOnlyJournal{}
	if cfg.Database.URL != "" {
		s, err := connect.Journal(ctx, cfg)
		if err != nil {
			return err
		}
		defer s.Close()
		journal.Store = s
	}
	turn := &loop.Loop{Cluster: daemon.Watch(client, cfg), Journal: journal, Decide: engine.Decide, Divide: engine.Divide,
		Configure: func() (loop.Rules, cluster.Settings) { return cfg.Rules(), cfg.Settings() }}
	snap, plan, err := turn.Preview(ctx)
	if err != nil {
		return connect.RoundFailed(cfg, err)
	}
	page := p.page(l)
	if l.JSON {
		return page.Encode(view.LookAhead(&snap, &plan, audit))
	}
	if l.ForPeople() {
		p.printf("%s  nothing is written or changed\n", page.Paint(fmt.Sprintf("Round %d, as it would be now, in mode %s.", plan.Round, cfg.Mode), "bold"))
		if journal.Store == nil {
			p.printf("No database is configured: decided as if fairlease had never looked before.\n")
		}
		p.printf("\n")
	}
	page.Decisions(&snap, &plan, nil)
	if l.ForPeople() {
		view.LookAhead(&snap, &plan, audit).Write(page, &snap)
	}
	return nil
}

// once makes a round.
func (p *program) once(ctx context.Context, cfg *config.Config, l view.Form) error {
	client, err := connect.Slurm(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	// What was decided on is kept to tell jobs by their names.
	var snap cluster.Snapshot
	d := &daemon.Daemon{Cluster: client, Connect: connect.Daemon(cfg), Config: cfg,
		Decide: func(s cluster.Snapshot) cluster.Plan { snap = s; return engine.Decide(s) }, Divide: engine.Divide}
	report, err := d.Once(ctx)
	if errors.Is(err, daemon.ErrTaken) {
		return &failure.Error{Code: failure.No, What: "no round was made", Err: p.whoSits(ctx, cfg, err),
			Next: "that daemon makes rounds by itself; to see what the next one would do: fairlease round --dry-run"}
	}
	if err != nil {
		return connect.RoundFailed(cfg, err)
	}
	page := p.page(l)
	if l.JSON {
		return page.Encode(map[string]any{"plan": report.Plan, "outcomes": report.Outcomes})
	}
	if l.ForPeople() {
		p.printf("%s\n\n", page.Paint(fmt.Sprintf("Round %d, in mode %s.", report.Plan.Round, cfg.Mode), "bold"))
	}
	page.Decisions(&snap, &report.Plan, report.Outcomes)
	for i, o := range report.Outcomes {
		if !o.OK && !o.Skipped {
			return &failure.Error{Code: failure.No, What: fmt.Sprintf("%s of %s failed", report.Plan.Actions[i].Verb, view.Subject(&report.Plan.Actions[i])),
				Err: errors.New(o.Error), Next: "the next round looks again and does what is still to be done"}
		}
	}
	return nil
}

// whoSits says who has the seat and since when.
func (p *program) whoSits(ctx context.Context, cfg *config.Config, taken error) error {
	s, err := connect.Journal(ctx, cfg)
	if err != nil {
		return taken
	}
	defer s.Close()
	seat, err := s.Seated(ctx)
	if err != nil || seat == nil {
		return taken
	}
	return fmt.Errorf("%s is seated since %s, seen %v ago", seat.Holder, p.page(view.Form{}).Time(cluster.InstantOf(seat.Acquired)), seat.Silent.Round(time.Millisecond))
}
