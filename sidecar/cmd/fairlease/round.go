package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/hostlist"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/store"
)

func (p *program) round() *cobra.Command {
	var l listing
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
	l.flags(c)
	return c
}

// preview shows what a round would do now.
func (p *program) preview(ctx context.Context, cfg *config.Config, l listing, audit bool) error {
	client, err := openSlurm(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	journal := onlooker{}
	if cfg.Database.URL != "" {
		s, err := openStore(ctx, cfg)
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
		return turnFailed(cfg, err)
	}
	if l.json {
		return p.json(lookAhead(&snap, &plan, audit))
	}
	if !l.parsable && !l.bare {
		p.printf("%s  nothing is written or changed\n", p.paint(fmt.Sprintf("Round %d, as it would be now, in mode %s.", plan.Round, cfg.Mode), "bold"))
		if journal.Store == nil {
			p.printf("No database is configured: decided as if fairlease had never looked before.\n")
		}
		p.printf("\n")
	}
	p.decisions(l, &snap, &plan, nil)
	if !l.parsable && !l.bare {
		p.divided(&snap, lookAhead(&snap, &plan, audit))
	}
	return nil
}

// once makes a round.
func (p *program) once(ctx context.Context, cfg *config.Config, l listing) error {
	client, err := openSlurm(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	// What was decided on is kept to tell jobs by their names.
	var snap cluster.Snapshot
	d := &daemon.Daemon{Cluster: client, Connect: connect(cfg), Config: cfg,
		Decide: func(s cluster.Snapshot) cluster.Plan { snap = s; return engine.Decide(s) }, Divide: engine.Divide}
	report, err := d.Once(ctx)
	if errors.Is(err, daemon.ErrTaken) {
		return &failure.Error{Code: failure.No, What: "no round was made", Err: p.whoSits(ctx, cfg, err),
			Next: "that daemon makes rounds by itself; to see what the next one would do: fairlease round --dry-run"}
	}
	if err != nil {
		return turnFailed(cfg, err)
	}
	if l.json {
		return p.json(map[string]any{"plan": report.Plan, "outcomes": report.Outcomes})
	}
	if !l.parsable && !l.bare {
		p.printf("%s\n\n", p.paint(fmt.Sprintf("Round %d, in mode %s.", report.Plan.Round, cfg.Mode), "bold"))
	}
	p.decisions(l, &snap, &report.Plan, report.Outcomes)
	for i, o := range report.Outcomes {
		if !o.OK && !o.Skipped {
			return &failure.Error{Code: failure.No, What: fmt.Sprintf("%s of %s failed", report.Plan.Actions[i].Verb, subject(&report.Plan.Actions[i])),
				Err: errors.New(o.Error), Next: "the next round looks again and does what is still to be done"}
		}
	}
	return nil
}

// whoSits says who has the seat and since when.
func (p *program) whoSits(ctx context.Context, cfg *config.Config, taken error) error {
	s, err := openStore(ctx, cfg)
	if err != nil {
		return taken
	}
	defer s.Close()
	seat, err := s.Seated(ctx)
	if err != nil || seat == nil {
		return taken
	}
	return fmt.Errorf("%s is seated since %s, seen %v ago", seat.Holder, p.words(p.now(), nil).Time(cluster.InstantOf(seat.Acquired)), seat.Silent.Round(time.Millisecond))
}

// turnFailed words the error of a turn.
func turnFailed(cfg *config.Config, err error) error {
	var f *failure.Error
	switch {
	case errors.As(err, &f) || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, daemon.ErrCells), errors.Is(err, daemon.ErrCluster):
		return notThere(err)
	case errors.Is(err, daemon.ErrClock):
		return &failure.Error{Code: failure.No, What: "no round was made", Err: err}
	case errors.Is(err, loop.ErrJournal):
		return journalFailed(err)
	case strings.HasPrefix(err.Error(), "look at the cluster"):
		return noSlurm(cfg, err)
	}
	return &failure.Error{Code: failure.No, What: "no round could be made", Err: err}
}

// notThere words the error of cells or of a journal that are not those of this Slurm, and leaves others alone.
func notThere(err error) error {
	if errors.Is(err, daemon.ErrCluster) {
		var other *store.AnotherError
		if errors.As(err, &other) {
			err = other
		}
		return &failure.Error{Code: failure.Misuse, What: daemon.ErrCluster.Error(), Err: err,
			Next: "give every cluster a schema of its own (database.schema, then fairlease migrate), or correct slurm.address; if this is the same cluster under a new name or made anew: fairlease repair cluster"}
	}
	var wrong config.Problems
	if !errors.Is(err, daemon.ErrCells) || !errors.As(err, &wrong) {
		return err
	}
	return &failure.Error{Code: failure.Misuse, What: daemon.ErrCells.Error(), Err: wrong, Next: "correct the file, or Slurm; `fairlease cells check` looks again"}
}

// decisions writes what a round decided: leases that begin or are renewed, notices,
// requeues, claims, and a line on what it leaves as it is.
func (p *program) decisions(l listing, snap *cluster.Snapshot, plan *cluster.Plan, outcomes []cluster.Outcome) {
	who := people(snap)
	w := p.words(plan.At, who.name)
	verdicts := map[cluster.JobKey]*cluster.Verdict{}
	for i := range plan.Verdicts {
		verdicts[plan.Verdicts[i].Job] = &plan.Verdicts[i]
	}
	t := &table{head: []string{"WHAT", "JOB", "TENANT", "USER", ">GPUS", "MODEL", "NODES", "UNTIL", "WHY"}}
	row := func(what string, key cluster.JobKey, gpus int, pool string, nodes []string, until cluster.Instant) {
		why, c := "", who[key]
		if v := verdicts[key]; v != nil {
			why = w.Reason(v.Reason)
		}
		if c.Touch == cluster.Watch {
			what = "would " + what
		}
		t.add(what, who.name(key), c.Record.Tenant, c.Record.User, fmt.Sprint(gpus), pool, hostlist.Compress(nodes), clock(w, until), why)
	}
	for i := range plan.Memory.Leases {
		le := &plan.Memory.Leases[i]
		if v := verdicts[le.Job]; v != nil && news[v.Reason.Code] != "" {
			row(news[v.Reason.Code], le.Job, le.GPUs, le.Pool, nodeNames(le.Nodes), le.End)
		}
	}
	for i := range plan.Actions {
		a := &plan.Actions[i]
		if a.Withheld && (a.Verb == cluster.Grant || a.Verb == cluster.Reclaim) { // its lease is not remembered
			row(string(a.Verb), a.Job, who[a.Job].Job.Request.GPUs, a.Because.Pool, a.Nodes, a.Because.Until)
		}
	}
	for i := range plan.Memory.Claims {
		cl := &plan.Memory.Claims[i]
		row("claim", cl.Job, gpusOf(cl.Nodes), cl.Pool, nodeNames(cl.Nodes), cl.At)
	}
	if len(t.rows) > 0 || l.parsable {
		p.table(l, t)
	} else {
		p.printf("No lease begins, is renewed or ends now.\n")
	}
	if l.parsable || l.bare {
		return
	}
	p.printf("\n")
	p.summary(plan, outcomes)
}

// news names what a round decided about a lease, by the code of its job's verdict;
// what is not there is nothing new.
var news = map[cluster.Code]string{
	cluster.BecauseGranted:  "grant",
	cluster.BecauseRenewed:  "renew",
	cluster.BecauseAdopted:  "adopt",
	cluster.BecauseNotice:   "notice",
	cluster.BecauseEnding:   "reclaim",
	cluster.BecauseRecalled: "recall",
}

// summary counts what else a round saw and did.
func (p *program) summary(plan *cluster.Plan, outcomes []cluster.Outcome) {
	verbs, withheld, failed := map[cluster.Verb]int{}, 0, 0
	for i := range plan.Actions {
		if plan.Actions[i].Withheld {
			withheld++
			continue
		}
		verbs[plan.Actions[i].Verb]++
	}
	for i := range outcomes {
		if !outcomes[i].OK && !outcomes[i].Skipped {
			failed++
		}
	}
	var parts []string
	for _, v := range []cluster.Verb{cluster.Lock, cluster.Gate, cluster.Reserve, cluster.Grant, cluster.TakeBack, cluster.Notify,
		cluster.Reclaim, cluster.Release, cluster.Unreserve, cluster.Open} {
		if verbs[v] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", v, verbs[v]))
		}
	}
	if withheld > 0 {
		parts = append(parts, fmt.Sprintf("withheld %d (the mode forbids them)", withheld))
	}
	if failed > 0 {
		parts = append(parts, p.paint(fmt.Sprintf("failed %d", failed), "red"))
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	p.printf("Actions: %s\n", strings.Join(parts, ", "))
	counts := map[cluster.Code]int{}
	for i := range plan.Verdicts {
		counts[plan.Verdicts[i].Reason.Code]++
	}
	p.printf("Jobs:    %s\n", countWords(counts))
	for i := range plan.Events {
		p.printf("Event:   %s\n", plan.Events[i].Text)
	}
	if plan.Next > 0 {
		p.printf("Next:    time alone changes something at %s\n", p.words(plan.At, nil).Time(plan.Next))
	}
}
