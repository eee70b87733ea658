package profile

import (
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Run is what a report is held against: what the job that sent it holds.
type Run struct {
	Key   cluster.JobKey
	Kind  cluster.Kind
	With  cluster.Kind // the kind that shares its GPUs; "" = none
	Model string
	Gang  int
	Since cluster.Instant // it holds this, and does not change, since then
	// Suspended is for how long of that it was suspended. It runs again when it reports.
	Suspended cluster.Span
}

// Change is a job that runs at another pace than it did.
type Change struct {
	Key           cluster.JobKey
	Kind          cluster.Kind
	Model         string
	Before, After float64 // steps a second
	At            cluster.Instant
}

// Report takes a job's word on its progress. Two reports from the same stretch of the same
// run, Least apart at least, make a sample of its kind; what comes sooner counts in the next one. Time for which
// it was suspended in between does not count. A
// counter that went back is a job that resumed from a checkpoint: it is counted from
// there. It gives the change where the job's pace is no longer what it was.
func (b *Book) Report(run Run, r cluster.Progress) (*Change, error) {
	if run.Kind.Tenant() == "" {
		return nil, fmt.Errorf("job %s is of no tenant: nothing is learned from it", r.Job)
	}
	run.With = b.facts.company(run.With)
	entry := cluster.Profile{Kind: run.Kind, With: run.With, Model: run.Model, Gang: run.Gang, Source: cluster.Observed, Samples: 1, Rate: 1}
	if err := check(&entry); err != nil {
		return nil, err
	}
	if err := cluster.CheckSteps(r.Steps); err != nil {
		return nil, fmt.Errorf("steps: %w", err)
	}
	if err := cluster.CheckSteps(r.Total); err != nil {
		return nil, fmt.Errorf("total: %w", err)
	}
	fresh := cluster.Pace{Key: run.Key, Kind: run.Kind, With: run.With, Model: run.Model, Gang: run.Gang,
		Steps: r.Steps, Total: r.Total, At: r.At, Suspended: run.Suspended}
	at, there := b.pace(run.Key)
	if !there {
		b.paces = slices.Insert(b.paces, at, fresh)
		return nil, nil
	}
	p := &b.paces[at]
	if r.At < p.At {
		return nil, fmt.Errorf("job %s: a report of %s is older than that of %s", r.Job, r.At, p.At)
	}
	if p.Kind != run.Kind || p.With != run.With || p.Model != run.Model || p.Gang != run.Gang {
		*p = fresh
		return nil, nil
	}
	if r.Total != 0 {
		p.Total = r.Total
	}
	if r.Steps < p.Steps || p.At < run.Since {
		p.Steps, p.At, p.Suspended = r.Steps, r.At, run.Suspended
		return nil, nil
	}
	span := r.At.Sub(p.At) - max(run.Suspended-p.Suspended, 0)
	rate := (r.Steps - p.Steps) / max(span, 1).Duration().Seconds()
	if span < b.facts.settings.Least || span <= 0 || rate < cluster.SlowestRate {
		return nil, nil // the rest counts in the next sample
	}
	p.Steps, p.At, p.Suspended = r.Steps, r.At, run.Suspended
	if rate > cluster.FastestRate {
		return nil, fmt.Errorf("job %s: %g steps in %s cannot be", r.Job, rate*span.Duration().Seconds(), span)
	}
	before := math.Exp(p.Mean)
	changed := notice(p, math.Log(rate))
	b.learn(&entry, rate, r.At, changed)
	if !changed {
		return nil, nil
	}
	return &Change{Key: run.Key, Kind: run.Kind, Model: run.Model, Before: round(before), After: round(rate), At: r.At}, nil
}

// learn adds a sample to the average of its kind. Where its job's manner changed, only the rest of what is
// remembered goes on counting.
func (b *Book) learn(e *cluster.Profile, rate float64, at cluster.Instant, changed bool) {
	i, there := b.facts.find(e)
	if !there {
		e.Rate, e.Samples, e.At = round(rate), 1, at
		b.put(e)
		return
	}
	b.changed(e.Kind)
	e = &b.facts.entries[i]
	trusted := e.Samples >= b.facts.settings.Trust
	if changed {
		e.Samples = b.rest(e)
	}
	mean, x := math.Log(e.Rate), math.Log(rate)
	n := float64(min(e.Samples, max(b.facts.settings.Recent, 2)-1) + 1)
	off := x - mean
	if trusted && !changed { // one far off is no news yet
		most := max(5*e.Spread, math.Ln2)
		off = min(max(off, -most), most)
	}
	mean, e.Spread = cluster.Fade(mean, e.Spread, off, n)
	e.Rate, e.Spread = round(math.Exp(mean)), round(e.Spread)
	e.Samples++
	if trusted { // a trusted observation stays trusted
		e.Samples = max(e.Samples, b.facts.settings.Trust)
	}
	e.At = max(e.At, at)
}

// rest gives how many samples of an average go on counting when the manner of one job changes: of those that it
// looks back on the other jobs' part, taken as alike; and one at least.
func (b *Book) rest(e *cluster.Profile) int {
	jobs := 0
	for i := range b.paces {
		p := &b.paces[i]
		if p.Samples > 0 && p.Kind == e.Kind && p.With == e.With && p.Model == e.Model && p.Gang == e.Gang {
			jobs++
		}
	}
	last := min(e.Samples, max(b.facts.settings.Recent, 2))
	return max(last-last/max(jobs, 1), 1)
}

// Remaining gives a job's remaining steps by its pace (nil = it reports nothing): its declared total, from reports or its comment (said, 0 =
// none), less its progress. Without a total it estimates the steps that fit into the rest of the time
// limit at the present rate (0 if the rate is unknown too).
func Remaining(p *cluster.Pace, said float64, left cluster.Span, rate float64) (steps float64, estimated bool) {
	done := 0.0
	if p != nil {
		done = p.Steps
		if p.Total > 0 {
			said = p.Total
		}
	}
	if said > 0 {
		return max(said-done, 0), false
	}
	return max(left.Duration().Seconds(), 0) * rate, true
}
