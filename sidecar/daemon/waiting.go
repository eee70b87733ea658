package daemon

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/loop/effect"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
)

// seen is the snapshot of a round, and what it took from the journal besides.
type seen struct {
	cluster.Snapshot
	tuned *tune.Change
	book  spending.Book
}

// setup is what a configuration would have given the round.
func (s *seen) setup(c *config.Config) *effect.Setup {
	with, settings := c.At(s.Now.Time(), s.tuned)
	rules := with.Rules()
	book, _ := s.book.Configure(c.Spending(), s.Now)
	rules.Budgets = book.States()
	return &effect.Setup{Rules: rules, Settings: settings}
}

// weigh says what a configuration would do in place of another, by the newest round, and whether that is beyond the bound of the one in
// force. A panic of the engine is beyond any bound.
func (s *seen) weigh(was, now *config.Config, divide effect.Divide) (says string, beyond bool) {
	defer func() {
		if cause := recover(); cause != nil {
			says, beyond = fmt.Sprintf("the engine broke down under it: %v\n%s", cause, brief(string(debug.Stack()), 500)), true
		}
	}()
	e := effect.Of(&s.Snapshot, s.setup(was), s.setup(now), engine.Decide, divide)
	return fmt.Sprintf("%v: %.1f%% of %d GPUs", e, e.Percent(), e.GPUs), e.Percent() > float64(was.Config.AcceptAbove)
}

// permitted tells whether a reload may take over a configuration that was read, and by which way. One that would do more than
// config.accept_above allows waits until an administrator has accepted its text.
func (d *service) permitted(was, now, read *config.Config) (how string, may bool) {
	digest, last := config.Digest(read), d.rounds.record.seen.Load()
	answer := d.accepted.answer(digest)
	switch {
	case answer != nil && answer.Accept:
		return "accepted by " + answer.By, true
	case answer != nil:
		d.stands(fmt.Sprintf("rejected: %s", digest[:12]), answer.By)
		d.holds(nil)
		d.report.log.Info().Str("by", answer.By).Str("digest", digest[:12]).Msg("the configuration that waited is rejected; not taken over")
		return "", false
	case was.Config.AcceptAbove == 0 || last == nil || now.Mode == loop.Observe: // the way off is open, whatever else the file changes
		return "reload", true
	}
	says, beyond := last.weigh(was, now, d.divide)
	if !beyond {
		return "reload", true
	}
	d.stands(fmt.Sprintf("waits to be accepted: %s: %s", digest[:12], says), config.Author(read))
	d.holds(&config.Waiting{Digest: digest, Since: time.Now(), Says: says, Keys: config.Changes(was, now)})
	d.report.log.Warn().Str("effect", says).Str("digest", digest[:12]).
		Msg("the configuration waits to be accepted; not taken over: fairlease config accept shows it")
	return "", false
}

// stands has the record of administration say what became of a file.
func (d *service) stands(says, by string) {
	is := *d.rounds.record.standing.Load()
	is.says, is.by = says, by
	d.rounds.record.standing.Store(&is)
}

// holds notes a configuration that waits to be accepted; nil = none does any more.
func (d *service) holds(w *config.Waiting) {
	if err := d.accepted.hold(w); err != nil {
		d.report.log.Warn().Err(err).Msg("fairlease config accept cannot show which configuration waits")
	}
	d.report.meter.Waits(w != nil)
}
