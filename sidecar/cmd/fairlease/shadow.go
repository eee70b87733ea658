package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/shadow"
	"github.com/fairlease/fairlease/sidecar/sim/study"
	"github.com/fairlease/fairlease/sidecar/store"
)

const aboutShadow = `Put what would have been under fairlease beside what really happened, in the scores of
fairlease simulate. What happened is read from the journal, which a daemon in observe mode keeps; what would
have been is a run of the same jobs in pretend time under the loop and engine of the daemon, on the
same nodes, with the daemon's settings.

Jobs that were there when the window begins count from then on, with the run time that was left. How
long jobs run that were not over at its end, nobody knows: they are unfinished in both, and in the shadow
they never end. Completion and delay are of the jobs that were over; in the shadow these are followed
beyond the window, so that both are of the same jobs. That flatters what was, which chose them: take a
window much longer than the jobs. CPUs, memory and time limits count for nothing.

A start from a checkpoint costs what the daemon takes it to cost (start.cost, by default 5m), or --cost-load and
--cost-start together.

How jobs save is taken from the journal: what jobs of the same user, command and number of GPUs did when they were
stopped, else what their users declare (--comment=saves=...), else the rules under saves in the configuration. All
others are taken to save as --saves says, by default never. The report names the kinds of jobs with the most GPU time,
how many of them would be requeued and lose work, and what to add to their scripts.

The window is bounded by rounds whose snapshots are kept (database.keep_rounds, 14 days).`

func (p *program) shadow() *cobra.Command {
	var since, until string
	var times shadowTimes
	var sv saving
	var seed uint64
	o := outlet{title: "fairlease: what was, and what would have been"}
	c := &cobra.Command{Use: "shadow [--since WHEN] [--until WHEN]", Short: "what would have been under fairlease, beside what was", Long: aboutShadow,
		Example: "  fairlease shadow --since 7d --html shadow.html\n  fairlease shadow --since 2030-01-01 --until 2030-01-08 --term 30m\n  fairlease shadow --interval 1m", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			from, err := p.ago("--since", since)
			if err != nil {
				return err
			}
			to, err := p.ago("--until", until)
			if err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				past, err := s.Past(c.Context(), from, to)
				if err != nil {
					return p.noPast(err)
				}
				return p.compare(c.Context(), &past, &times, &sv, seed, &o)
			})
		}}
	f := c.Flags()
	f.StringVar(&since, "since", "", "`WHEN` the window begins: 7d (ago), 2030-01-31, 2030-01-31T18:00 (default: as far back as can be told)")
	f.StringVar(&until, "until", "", "`WHEN` it ends (default: now)")
	times.flags(f)
	sv.flags(f)
	f.Uint64Var(&seed, "seed", 1, "seed `N` of how jobs save, where that is drawn")
	o.flags(c)
	return c
}

// shadowTimes are lengths of time of the shadow; "" = as the daemon had it.
type shadowTimes struct {
	interval, term           string
	costSave, costLoad, cold string
}

func (t *shadowTimes) flags(f *pflag.FlagSet) {
	f.StringVar(&t.interval, "interval", "", "`TIME` between two rounds of the shadow; longer is faster (default: as the daemon had it)")
	f.StringVar(&t.term, "term", "", "`TIME` that a lease would have lasted (default: as the daemon had it)")
	costs := sim.DefaultCosts()
	f.StringVar(&t.costSave, "cost-save", config.Duration(costs.Save).String(), "`TIME` that it takes to save a checkpoint")
	f.StringVar(&t.costLoad, "cost-load", config.Duration(costs.Load).String(), "`TIME` that it takes to load it")
	f.StringVar(&t.cold, "cost-start", "", "`TIME` of a cold start before it is loaded (default: start.cost as the daemon had it, less --cost-load)")
}

// into sets the times of a setup.
func (t *shadowTimes) into(s *study.Setup) error {
	if err := lengths(timeFlag{"--interval", t.interval, &s.Settings.Interval}, timeFlag{"--term", t.term, &s.Settings.Term},
		timeFlag{"--cost-save", t.costSave, &s.Costs.Save}, timeFlag{"--cost-load", t.costLoad, &s.Costs.Load}); err != nil {
		return err
	}
	s.Costs.ColdStart = max(s.Settings.StartCost-s.Costs.Load, 0)
	if err := lengths(timeFlag{"--cost-start", t.cold, &s.Costs.ColdStart}); err != nil {
		return err
	}
	s.Settings.StartCost = s.Costs.Start()
	return nil
}

// ago reads a moment that is past: a length of time before now, or a moment; "" = the zero time.
func (p *program) ago(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	now := p.clock().In(p.zone())
	if d, err := config.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d.Span().Duration()), nil
	}
	if at, ok := moment(text, now.Location()); ok {
		return at, nil
	}
	return time.Time{}, failure.Usage("%s: %q is no time: write 2h or 7d (ago), 2030-01-31 or 2030-01-31T18:00", flag, text)
}

// noPast words why the journal cannot tell of a window.
func (p *program) noPast(err error) error {
	var w *store.WindowError
	switch {
	case errors.Is(err, store.ErrNone):
		return &failure.Error{Code: failure.No, What: "the journal has no round yet, so there is nothing to compare",
			Next: "run the daemon in mode observe for some days: systemctl start fairlease, or fairlease serve"}
	case errors.As(err, &w) && w.Pruned:
		return &failure.Error{Code: failure.No, What: "the journal cannot tell of a time so long ago", Err: fmt.Errorf("snapshots of rounds before %s are pruned", p.date(w.Oldest)),
			Next: "leave --since out, or name that time or a later one; database.keep_rounds says how long they are kept"}
	case errors.As(err, &w):
		return &failure.Error{Code: failure.No, What: "there are not two rounds in that window", Err: fmt.Errorf("the journal can tell of %s to %s", p.date(w.Oldest), p.date(w.Newest)),
			Next: "name --since and --until within that"}
	}
	return err
}

func (p *program) date(at time.Time) string { return at.In(p.zone()).Format(time.DateTime) }

// compare runs the shadow and shows it beside what was.
func (p *program) compare(ctx context.Context, past *store.Past, times *shadowTimes, sv *saving, seed uint64, o *outlet) error {
	begin, end := past.Begin.Plan.At.Time(), past.End.Plan.At.Time()
	s := shadow.Of(past, fmt.Sprintf("%s to %s", p.date(begin), p.date(end)))
	if s.Jobs.Compared == 0 {
		return &failure.Error{Code: failure.No, What: "no job with GPUs ran or waited in that window", Err: fmt.Errorf("%s", s.Setup.Load.Name),
			Next: "see fairlease status and fairlease doctor, whether the daemon sees the jobs that it should; or name another window"}
	}
	if err := times.into(&s.Setup); err != nil {
		return err
	}
	s.Setup.Settings, s.Setup.Seed = study.Fit(s.Setup.Settings), seed
	if err := sv.into(&s.Setup); err != nil {
		return err
	}
	s.Assume(s.Setup.Saves)
	if err := s.Setup.Check(); err != nil {
		return failure.Usage("%v", err)
	}
	notes := p.out
	if o.csv || o.json {
		notes = p.err
	}
	p.tellShadow(notes, past, &s)
	was, err := s.Score()
	if err != nil {
		return &failure.Error{Code: failure.No, What: "the journal contradicts itself", Err: err, Next: "try a window that begins later: --since"}
	}
	past.Jobs, s.Was.Jobs = nil, nil // the runs need the memory
	results, err := p.runAll(ctx, &world{}, s.Setups())
	if err != nil {
		return err
	}
	if whole(results) < len(results) {
		return &failure.Error{Code: failure.No, What: "interrupted", Err: ctx.Err(), Next: "a shorter window takes less time: --since"}
	}
	window, long := &results[0], &results[1]
	tellResult(notes, &s.Setup, window)
	fmt.Fprintf(notes, "  %d jobs finished in the window as it was, %d in the shadow; there %d more are followed beyond its end, so that\n"+
		"  completion and delay are of the same jobs: those that were over as it was, which it favours if the window is short\n\n",
		was.Jobs.Finished, window.Jobs.Finished, long.Jobs.Finished-window.Jobs.Finished)
	would := shadow.Join(window.Scores, long.Scores)
	would.Kinds = s.Kinds(window.Kept)
	return o.write(p, []score.Scores{was, would})
}

// tellShadow says what is compared, and what is not as it was.
func (p *program) tellShadow(out io.Writer, past *store.Past, s *shadow.Shadow) {
	say := func(n int, format string, args ...any) {
		if n > 0 {
			fmt.Fprintf(out, "  "+format+"\n", args...)
		}
	}
	j, set := &s.Jobs, &s.Setup.Settings
	_, gpus := s.Setup.Fleet.Count()
	fmt.Fprintf(out, "the journal, rounds %d to %d: %d jobs of %d tenants on %s\n", past.Begin.Plan.Round, past.End.Plan.Round, j.Compared,
		len(study.Survey(s.Setup.Load).Tenants), s.Setup.Fleet)
	say(j.There, "%d were there when the window begins: they count from then on, with the run time that was left", j.There)
	say(j.Running+j.Waiting, "%d still ran and %d still waited when it ends: nobody knows for how long they run, so they are unfinished in both,\n"+
		"  and in the shadow they never end", j.Running, j.Waiting)
	say(j.Alone, "%d are left alone by fairlease (interactive, excluded, …), but lease their GPUs in the shadow as all do", j.Alone)
	say(j.NeverRan+j.Unseen+j.NoTenant, "left out of both, with %.1f GPU hours: %d jobs that never ran, %d that came and went while nobody looked, %d of no tenant",
		j.OutTime.Hours(), j.NeverRan, j.Unseen, j.NoTenant)
	if s.Least != gpus || s.Most != gpus {
		fmt.Fprintf(out, "  there were %d to %d healthy GPUs: in the shadow there are %d all the time\n", s.Least, s.Most, gpus)
	}
	if a := &past.Acted; a.Rounds > 0 {
		fmt.Fprintf(out, "  fairlease acted in %d rounds from %s to %s: what was is what came of Slurm and fairlease together\n", a.Rounds, p.date(*a.First), p.date(*a.Last))
	}
	costs := &s.Setup.Costs
	fmt.Fprintf(out, "  in the shadow: interval %v, term %v; a start from a checkpoint costs %v, saving one %v\n",
		config.Duration(set.Interval), config.Duration(set.Term), config.Duration(costs.Start()), config.Duration(costs.Save))
	tellSaves(out, &s.Setup)
}
