package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cmd/simulate"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/outlet"
	"github.com/fairlease/fairlease/sidecar/sim/session"
	"github.com/fairlease/fairlease/sidecar/store"
)

const aboutShadow = `Backtest: compare the real schedule with fairlease's, in the scores of fairlease simulate. The real schedule
comes from the journal of a daemon in observe mode. fairlease's schedule is a replay of the same jobs in simulated time,
under the daemon's loop and engine, on the same nodes, with the daemon's settings.

Jobs that had started before the window count with their remaining run time. Jobs still running at the end of the window
have unknown length and count as unfinished in both schedules. Completion time and delay count the jobs that ended in the
window; the replay follows these beyond it, so that both schedules have the same jobs. This biases the comparison towards the
real schedule: choose a window much longer than the jobs. CPUs, memory and time limits are ignored.

A start from a checkpoint costs start.cost (5m by default), or --cost-load and --cost-start together.

How jobs save comes from the journal: from observed stops of the same user, command and number of GPUs, else from the
users' declarations (--comment=saves=...), else from the rules under saves in the configuration. All other jobs save as
--saves says, by default never. The report names the job types with the most GPU time, how many of their jobs would be
requeued and lose work, and what to add to their scripts.

The window is limited to rounds whose snapshots are kept (database.keep_rounds, 14 days).`

func shadowCommand(p *program) *cobra.Command {
	var since, until string
	var times input.Times
	var sv input.Saving
	var seed uint64
	o := outlet.Outlet{Title: "fairlease: what was, and what would have been"}
	c := &cobra.Command{Use: "shadow [--since WHEN] [--until WHEN]", Short: "backtest: compare the real schedule with fairlease's", Long: aboutShadow,
		Example: "  fairlease shadow --since 7d --html shadow.html\n  fairlease shadow --since 2030-01-01 --until 2030-01-08 --term 30m\n  fairlease shadow --interval 1m", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			from, to, err := window(p, since, until)
			if err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return err
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				past, err := s.Rounds.Past(c.Context(), from, to)
				if err != nil {
					return connect.NoWindow(err, p.date)
				}
				return p.session(0).Shadow(c.Context(), &past, &session.Assumptions{Times: times, Saving: sv, Seed: seed}, &o, p.date)
			})
		}}
	f := c.Flags()
	f.StringVar(&since, "since", "", "`WHEN` the window begins: 7d (ago), 2030-01-31, 2030-01-31T18:00 (default: as far back as the journal goes)")
	f.StringVar(&until, "until", "", "`WHEN` it ends (default: now)")
	simulate.ShadowFlags(f, &times)
	simulate.SavingFlags(f, &sv)
	f.Uint64Var(&seed, "seed", 1, "seed `N` for drawing how jobs save")
	simulate.OutletFlags(c, &o)
	return c
}

// window reads a past window of time.
func window(p *program, since, until string) (from, to time.Time, err error) {
	now := p.clock().In(p.zone())
	if from, err = operate.ParsePast(since, now); err != nil {
		return from, to, failure.Usage("--since: %v", err)
	}
	if to, err = operate.ParsePast(until, now); err != nil {
		return from, to, failure.Usage("--until: %v", err)
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return from, to, failure.Usage("--since %s is not before --until %s", since, until)
	}
	return from, to, nil
}

func (p *program) date(at time.Time) string { return at.In(p.zone()).Format(time.DateTime) }
