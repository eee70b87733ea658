package remark

import (
	"fmt"
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const (
	stallAfter = 15 * cluster.Minute // longer than most saves and evaluations
	worked     = 10 * cluster.Minute // of work before, at least
	nothing    = 0.1                 // of the activity before: less is standing still
)

// stalling follows whether a job stands still. Its GPUs need not be idle: processes that wait for a dead one spin, with
// a utilization of 100 %.
type stalling struct {
	busy    [measures]mean // while it worked
	work    cluster.Span   // that was seen
	last    cluster.Instant
	since   cluster.Instant // it stands still since then; 0 = it does not
	longest cluster.Span    // that it stood still and went on
	steps   float64         // reported when it began to stand still
	told    cluster.Instant // when these were reported
	part    float64         // of the activity before, at the last look
}

// look takes the activity of all GPUs of a job, and tells whether it has stalled.
func (s *stalling) look(now cluster.Instant, values *[measures]float64, report cluster.Progress) bool {
	elapsed := min(now.Sub(s.last), cluster.Minute)
	s.last, s.part = now, s.least(values)
	quiet := s.part < nothing
	if s.since > 0 && (!quiet || report.Steps > s.steps) {
		s.longest, s.since = max(s.longest, now.Sub(s.since)), 0
	}
	if !quiet {
		s.work += elapsed
		for m := range measures {
			s.busy[m].add(values[m])
		}
	}
	if !quiet || s.work < worked {
		return false
	}
	if s.since == 0 {
		s.since, s.steps, s.told = now, report.Steps, report.At
	}
	return now.Sub(s.since) >= max(stallAfter, 2*s.longest)
}

// least gives the highest activity of any measure as a part of what it was while the job worked; NaN = no measure was
// high enough to tell. Utilization counts only without others.
func (s *stalling) least(values *[measures]float64) float64 {
	part := math.NaN()
	for m := tensor; m <= util; m++ {
		before := s.busy[m].value()
		if m == util && !math.IsNaN(part) || !(nothing*before >= counted[m].least) || math.IsNaN(values[m]) {
			continue
		}
		if p := values[m] / before; !(part >= p) {
			part = p
		}
	}
	return part
}

func (s *stalling) words() string {
	text := fmt.Sprintf("has stood still since %s: its GPUs do %.0f %% of what they did before", clock(s.since), 100*s.part)
	if s.told > 0 {
		text += fmt.Sprintf(", and the last step was reported at %s", clock(s.told))
	}
	return text
}
