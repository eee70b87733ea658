package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ErrClock is in errors of clocks that disagree; the error's text says which one is wrong.
var ErrClock = errors.New("clocks disagree")

// clocksApart is the maximum difference between two clocks. A round written with a wrong clock
// blocks all later rounds, so no round is made.
const clocksApart = time.Minute

// clock is a reading of one clock.
type clock struct {
	name string
	at   time.Time
}

// agree fails with ErrClock if two clocks are further apart than clocksApart. If all others
// agree, the error names the wrong one.
func agree(clocks ...clock) error {
	differs := func(a, b clock) bool { return a.at.Sub(b.at).Abs() > clocksApart }
	apart := make([]int, len(clocks)) // number of clocks that differ from it
	total := 0
	for i, a := range clocks {
		for _, b := range clocks {
			if differs(a, b) {
				apart[i]++
				total++
			}
		}
	}
	if total == 0 {
		return nil
	}
	off := "cannot be told which is off"
	for i, c := range clocks {
		if len(clocks) > 2 && apart[i] == len(clocks)-1 && total == 2*apart[i] {
			off = "that of " + c.name + " is off"
		}
	}
	shown := ""
	for _, c := range clocks {
		shown += fmt.Sprintf(", %s says %s", c.name, c.at.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("%w, %s: %s; no round is made until they agree within %v (synchronise them: chrony, systemd-timesyncd)", ErrClock, off, shown[2:], cluster.SpanOf(clocksApart))
}

// agree compares the clock of a look, which started at began, with slurmctld's and PostgreSQL's.
func (c *candidate) agree(ctx context.Context, seen *cluster.Observation, began time.Time) error {
	there, err := c.lead.Clock(ctx)
	if err != nil {
		return err
	}
	clocks := []clock{{"this host", seen.Now.Time()}, {"PostgreSQL", there.Add(-time.Since(began))}}
	if seen.Clock != 0 {
		clocks = append(clocks, clock{"slurmctld", seen.Clock.Time()})
	}
	return c.apart.judge(agree(clocks...), seen)
}

// apart is how clocks disagreed since the last round.
type apart struct {
	since time.Time // by this host's monotonic clock
	why   error     // the first one; nil = they did not
}

// judge keeps the first error of clocks, and tells a look at which they agree again of it.
func (a *apart) judge(err error, seen *cluster.Observation) error {
	switch {
	case err != nil && a.why == nil:
		*a = apart{time.Now(), err}
	case err == nil && a.why != nil:
		seen.Apart = fmt.Sprintf("no round was made for %v: %v", cluster.SpanOf(time.Since(a.since)), a.why)
	}
	return err
}
