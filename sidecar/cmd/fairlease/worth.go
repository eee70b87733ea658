package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cmd/simulate"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/worth"
	"github.com/fairlease/fairlease/sidecar/store"
)

const aboutWorth = `Estimate what leases, recalls and idle reclaim gained in a period, beside plain Slurm (the multifactor
priority with backfill, as in fairlease simulate). The journal has the period as it was. Plain Slurm
is replays of the same jobs in simulated time, from the state at the period's begin to its end.

  below_share       GPU hours that tenants were due and did not get, hour by hour: the measure by
                    which to judge a period
  waits             hours in which jobs had no GPUs
  waits_times_gpus  the same, times the jobs' GPUs
  work_done         GPU hours of work, less what stops destroyed and what starts took

  WITH      as it was
  SLURM     as plain Slurm would have done, mean of the replays
  GAINED    the difference, better if larger; with LOW and HIGH a range of 90 %

Jobs that have not ended by now have unknown run times. Each replay draws them from those of similar
jobs. So ask some days after the end of the period, when most of its jobs have ended: the range is
much smaller then. With models.prices or the prices of budgets, below_share is given in money, too.

The journal keeps what this needs for database.keep (365 days). Limits of accounts and Slurm's other
rules are not in the replays.`

func worthCommand(p *program) *cobra.Command {
	var since, until string
	var l view.Form
	var replays, workers int
	var seed uint64
	c := &cobra.Command{Use: "worth [--since WHEN] [--until WHEN]", Short: "estimate what leases gained in a period, beside plain Slurm", Long: aboutWorth,
		Example: "  fairlease worth\n  fairlease worth --since 2030-01-01 --until 2030-02-01 --json", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			from, to, err := window(p, since, until)
			if err != nil {
				return err
			}
			if replays < 2 {
				return failure.Usage("--replays %d: a range needs two at least", replays)
			}
			from, to = period(from, to, p.clock())
			return p.computing(c.Context(), func(cfg *config.Config, s *store.Store) error {
				past, ends, err := s.Rounds.Span(c.Context(), from, to)
				if err != nil {
					return connect.NoWindow(err, p.date)
				}
				got, err := p.worthOf(c.Context(), cfg, &past, ends, replays, workers, seed)
				if err != nil {
					return err
				}
				return p.tellWorth(p.page(l), got)
			})
		}}
	f := c.Flags()
	f.StringVar(&since, "since", "", "`WHEN` the period begins: 30d (ago), 2030-01-31, 2030-01-31T18:00 (default: a month before --until, else the first of last month, UTC)")
	f.StringVar(&until, "until", "", "`WHEN` it ends (default: now with --since, else the end of last month)")
	f.IntVar(&replays, "replays", 12, "`N` replays under plain Slurm")
	f.Uint64Var(&seed, "seed", 1, "seed `N` for what is drawn")
	simulate.WorkersFlag(c, &workers)
	listFlags(c, &l)
	return c
}

// period gives the bounds of a period: by default last month, as in report; the month before a given end, from the same day of the month on, or
// from the last day of a shorter month.
func period(from, to, now time.Time) (time.Time, time.Time) {
	if from.IsZero() && to.IsZero() {
		this := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
		return this.AddDate(0, -1, 0), this
	}
	if from.IsZero() {
		if from = to.AddDate(0, -1, 0); from.Day() != to.Day() { // AddDate counts days that the month does not have into the next
			from = from.AddDate(0, 0, -from.Day())
		}
	}
	if to.IsZero() {
		to = now
	}
	return from, to
}

// worthOf compares a period with replays of it.
func (p *program) worthOf(ctx context.Context, cfg *config.Config, past *store.Past, ends store.Ends, replays, workers int, seed uint64) (worth.Worth, error) {
	if past.Acted.Rounds == 0 {
		return worth.Worth{}, &failure.Error{Code: failure.No, What: "fairlease did not act in that period, so it gained nothing",
			Next: "fairlease shadow says what it would have done"}
	}
	if why := beyondReplays(&past.End.Snapshot); why != "" {
		return worth.Worth{}, &failure.Error{Code: failure.No, What: "this cannot be estimated: " + why + ", which the replays do not know",
			Next: "fairlease tenants, report and shadow show how tenants stand"}
	}
	w := backtest.Of(past, "the period")
	if w.Jobs.Compared == 0 {
		return worth.Worth{}, &failure.Error{Code: failure.No, What: "no job with GPUs ran or waited in that period", Next: "name another one: --since, --until"}
	}
	w.Setup.Settings = experiment.Fit(w.Setup.Settings)
	was, err := worth.Was(&w)
	if err != nil {
		return worth.Worth{}, &failure.Error{Code: failure.No, What: "the journal contradicts itself", Err: err, Next: "try a period that begins later: --since"}
	}
	results, err := p.session(workers).All(ctx, worth.Replays(&w, replays, seed))
	if err != nil {
		return worth.Worth{}, err
	}
	var would []worth.Outcome
	for i := range results {
		if results[i].Scheduler == "" || results[i].CutShort {
			return worth.Worth{}, &failure.Error{Code: failure.No, What: "interrupted", Err: ctx.Err(), Next: "a shorter period, or fewer --replays, take less time"}
		}
		would = append(would, worth.Would(&results[i]))
	}
	return worth.Of(&w, &was, would, ends, func(tenant string) map[string]float64 {
		if own := cfg.Budgets[tenant].ModelPrices; len(own) > 0 {
			return own
		}
		return cfg.Models.Prices
	}), nil
}

// beyondReplays says what tenants were due that plain Slurm would not have been measured by; "" = nothing.
func beyondReplays(snap *cluster.Snapshot) string {
	switch {
	case snap.Cells != nil:
		return "tenants had virtual clusters"
	case snap.Settings.Divide != "":
		return "the preset " + snap.Settings.Preset + " divides GPU models by the speed of jobs"
	}
	return ""
}

// tellWorth writes what a period was worth.
func (p *program) tellWorth(page *view.Page, w worth.Worth) error {
	t := &view.Table{Head: []string{"MEASURE", "UNIT", ">WITH", ">SLURM", ">GAINED", ">LOW", ">HIGH"}}
	number := func(x float64) string { return fmt.Sprintf("%.1f", x) }
	add := func(name, unit string, with float64, slurm, gained worth.Range) {
		t.Add(name, unit, number(with), number(slurm.Mean), number(gained.Mean), number(gained.Low), number(gained.High))
	}
	for _, m := range w.Measures {
		add(m.Name, m.Unit, m.With, m.Slurm, m.Gained)
	}
	for _, x := range w.Tenants {
		add("below_share of "+x.Tenant, "gpu_h", x.With, x.Slurm, x.Gained)
	}
	if page.ForPeople() {
		page.Printf("%s to %s: %d jobs on %d GPUs, beside %d replays under plain Slurm\n\n", p.date(w.From), p.date(w.Until), w.Jobs, w.GPUs, w.Replays)
	}
	if err := page.List(t, w); err != nil || !page.ForPeople() {
		return err
	}
	if g := w.Measures[0].Gained; g.Low <= 0 && g.High >= 0 {
		page.Printf("\nThe range of below_share includes 0: the difference may be chance.\n")
	} else {
		page.Printf("\nTenants got %.0f GPU-hours when they were due, which plain Slurm would not have given them then (%.0f to %.0f).\n", g.Mean, g.Low, g.High)
	}
	if w.Money != nil {
		page.Printf("At the mean price of a GPU-hour that is %.0f (%.0f to %.0f).\n", w.Money.Mean, w.Money.Low, w.Money.High)
	}
	page.Printf("Stops destroyed %.1f GPU-hours of work. %d leases were renewed, %d ended for other jobs (%d since their GPUs idled), %d were recalled in mid-term.\n",
		w.Lost, w.Leases.Renewed, w.Leases.Reclaimed, w.Leases.Idle, w.Leases.Recalled)
	if w.Drawn > 0 {
		page.Printf("%d jobs have not ended yet: their run times are drawn. The range gets smaller as they end.\n", w.Drawn)
	}
	if w.Limits {
		page.Printf("Limits of accounts are left out of the replays.\n")
	}
	return nil
}
