package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/connect"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/moment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/outlet"
	"github.com/fairlease/fairlease/sidecar/sim/session"
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
	var times input.Times
	var sv input.Saving
	var seed uint64
	o := outlet.Outlet{Title: "fairlease: what was, and what would have been"}
	c := &cobra.Command{Use: "shadow [--since WHEN] [--until WHEN]", Short: "what would have been under fairlease, beside what was", Long: aboutShadow,
		Example: "  fairlease shadow --since 7d --html shadow.html\n  fairlease shadow --since 2030-01-01 --until 2030-01-08 --term 30m\n  fairlease shadow --interval 1m", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			from, to, err := p.window(since, until)
			if err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return err
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				past, err := s.Past(c.Context(), from, to)
				if err != nil {
					return connect.NoWindow(err, p.date)
				}
				return p.session(0).Shadow(c.Context(), &past, &session.Assumptions{Times: times, Saving: sv, Seed: seed}, &o, p.date)
			})
		}}
	f := c.Flags()
	f.StringVar(&since, "since", "", "`WHEN` the window begins: 7d (ago), 2030-01-31, 2030-01-31T18:00 (default: as far back as can be told)")
	f.StringVar(&until, "until", "", "`WHEN` it ends (default: now)")
	shadowFlags(f, &times)
	savingFlags(f, &sv)
	f.Uint64Var(&seed, "seed", 1, "seed `N` of how jobs save, where that is drawn")
	outletFlags(c, &o)
	return c
}

// window reads a past window of time.
func (p *program) window(since, until string) (from, to time.Time, err error) {
	now := p.clock().In(p.zone())
	if from, err = moment.Ago(since, now); err != nil {
		return from, to, failure.Usage("--since: %v", err)
	}
	if to, err = moment.Ago(until, now); err != nil {
		return from, to, failure.Usage("--until: %v", err)
	}
	return from, to, nil
}

func (p *program) date(at time.Time) string { return at.In(p.zone()).Format(time.DateTime) }
