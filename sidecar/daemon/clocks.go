package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ErrClock is in errors of clocks that disagree; the rest of the error tells which is off.
var ErrClock = errors.New("clocks disagree")

// clocksApart is how far clocks may be from one another. What is written down with a clock that is off
// stands in the way of all later rounds, so none is made.
const clocksApart = time.Minute

// clock is what a clock showed at one moment.
type clock struct {
	name string
	at   time.Time
}

// agree fails with ErrClock if two of the clocks are further apart than clocksApart. Where all others agree, the error
// tells which one is off.
func agree(clocks ...clock) error {
	differs := func(a, b clock) bool { return a.at.Sub(b.at).Abs() > clocksApart }
	apart := make([]int, len(clocks)) // from so many others
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
	return fmt.Errorf("%w, %s: %s; no round is made until they agree within %v (synchronise them: chrony, systemd-timesyncd)", ErrClock, off, shown[2:], clocksApart)
}

// agree holds the clock of a look, which began so long ago, against slurmctld's and PostgreSQL's.
func (d *Daemon) agree(ctx context.Context, seen *cluster.Sighting, began time.Time) error {
	there, err := d.seat.Clock(ctx)
	if err != nil {
		return err
	}
	clocks := []clock{{"this host", seen.Now.Time()}, {"PostgreSQL", there.Add(-time.Since(began))}}
	if seen.Clock != 0 {
		clocks = append(clocks, clock{"slurmctld", seen.Clock.Time()})
	}
	return agree(clocks...)
}
