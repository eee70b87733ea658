package cluster

import (
	"fmt"
	"strings"
)

// FaultKind is a kind of evidence that fairlease does harm.
type FaultKind string

// The kinds: grants that Slurm did not start, or whose start did not last; GPU time destroyed by stops; requeues that fairlease did not order; jobs
// that failed in their notice, or in the first attempt after a stop; and how long a look at Slurm takes.
const (
	FailedStarts FaultKind = "failed_starts"
	LostWork     FaultKind = "lost_work"
	Requeued     FaultKind = "requeues"
	BadEnds      FaultKind = "bad_ends"
	Latency      FaultKind = "latency"
)

// FaultKinds are all kinds that are counted by job.
var FaultKinds = []FaultKind{FailedStarts, LostWork, Requeued, BadEnds}

// Bound is the most of a kind within an hour: jobs, GPU-milliseconds (LostWork), or milliseconds for a look (Latency). With Auto it follows
// from the site. The zero value is no bound.
type Bound struct {
	Max  int64 `json:"max,omitempty"`
	Auto bool  `json:"auto,omitempty"`
}

// BreakerRule has the bounds beyond which fairlease only observes.
type BreakerRule struct {
	FailedStarts Bound `json:"failed_starts,omitzero"`
	LostWork     Bound `json:"lost_work,omitzero"`
	Requeues     Bound `json:"requeues,omitzero"`
	BadEnds      Bound `json:"bad_ends,omitzero"`
	Latency      Bound `json:"latency,omitzero"`
}

// Of gives the bound of a kind.
func (r *BreakerRule) Of(kind FaultKind) *Bound {
	switch kind {
	case FailedStarts:
		return &r.FailedStarts
	case LostWork:
		return &r.LostWork
	case Requeued:
		return &r.Requeues
	case BadEnds:
		return &r.BadEnds
	}
	return &r.Latency
}

// Fixed gives the rule without the bounds that follow from the site.
func (r BreakerRule) Fixed() BreakerRule {
	for _, b := range []*Bound{&r.FailedStarts, &r.LostWork, &r.Requeues, &r.BadEnds, &r.Latency} {
		if b.Auto {
			*b = Bound{}
		}
	}
	return r
}

// Fault is a job's part in the evidence of the last hour. A job has one for each kind, and one for each loss of its work.
type Fault struct {
	Kind   FaultKind `json:"kind"`
	Job    JobKey    `json:"job"`
	ID     JobID     `json:"id"`
	Tenant string    `json:"tenant"`
	User   string    `json:"user"`
	Amount int64     `json:"amount"` // 1, or GPU-milliseconds of LostWork
	At     Instant   `json:"at,omitzero"`
	// Observed is true if fairlease only observed the job: it counts for what is usual.
	Observed bool `json:"observed,omitempty"`
}

// Looks are how long looks at Slurm took in a slice of time: the answers of slurmctld and slurmdbd, and reading them.
type Looks struct {
	Start Instant `json:"start,omitzero"`
	Looks int     `json:"looks"`
	Took  Span    `json:"took"`
}

// Usual is what the site showed while fairlease only observed it. Requeues and BadEnds count each user once in five minutes, so that no user
// raises a bound far. Looked, Looks and Took are of the looks at Slurm, also while fairlease acted.
type Usual struct {
	Observed Span `json:"observed,omitempty"`
	Requeues int  `json:"requeues,omitempty"`
	BadEnds  int  `json:"bad_ends,omitempty"`
	Looked   Span `json:"looked,omitempty"`
	Looks    int  `json:"looks,omitempty"`
	Took     Span `json:"took,omitempty"`
}

// Breaker is what is remembered of the harm that fairlease may do. Once it has a trip, fairlease only observes, until an operator resumes.
type Breaker struct {
	Faults []Fault `json:"faults,omitempty"` // of the last hour, in the order of their times
	Looks  []Looks `json:"looks,omitempty"`  // of the last quarter of an hour
	Usual  Usual   `json:"usual,omitzero"`
	Trip   *Trip   `json:"trip,omitempty"`
}

// Trip is why the breaker has tripped.
type Trip struct {
	Round int64     `json:"round"`
	At    Instant   `json:"at,omitzero"`
	Kind  FaultKind `json:"kind"`
	Bound int64     `json:"bound"`
	Count int64     `json:"count"` // with what one user and one tenant may add
	Jobs  []Fault   `json:"jobs,omitempty"`
	Users int       `json:"users,omitempty"`
}

// MostTripJobs is the maximum number of jobs that a trip names.
const MostTripJobs = 10

// GoAhead is an operator's word that fairlease may act again after the trip of a round. The zero value is none.
type GoAhead struct {
	Round int64  `json:"round"`
	By    string `json:"by"`
	Why   string `json:"why"`
}

// Open reports whether the breaker has tripped, and nobody has resumed since.
func (b *Breaker) Open(r *GoAhead) bool { return b.Trip != nil && b.Trip.Round != r.Round }

// Says words a trip: what happened, and how often it may.
func (t *Trip) Says() string {
	ids := make([]string, len(t.Jobs))
	for k := range t.Jobs {
		ids[k] = t.Jobs[k].ID.String()
	}
	jobs := fmt.Sprintf("jobs of %d users", t.Users)
	if len(ids) > 0 {
		jobs += ", the last ones " + strings.Join(ids, ", ")
	}
	switch hours := float64(Hour); t.Kind {
	case FailedStarts:
		return fmt.Sprintf("the starts of %d jobs failed within an hour, and at most %d may (breaker.failed_starts): %s", t.Count, t.Bound, jobs)
	case LostWork:
		return fmt.Sprintf("stops destroyed %.1f GPU hours of work within an hour, and at most %.1f may be (breaker.lost_work): %s", float64(t.Count)/hours, float64(t.Bound)/hours, jobs)
	case Requeued:
		return fmt.Sprintf("%d jobs were requeued by others within an hour, and at most %d may be (breaker.requeues): %s", t.Count, t.Bound, jobs)
	case BadEnds:
		return fmt.Sprintf("%d jobs failed after a stop of fairlease within an hour, and at most %d may (breaker.bad_ends): %s", t.Count, t.Bound, jobs)
	}
	return fmt.Sprintf("for a quarter of an hour looks at Slurm took %.1f s each, and at most %.1f s are allowed (breaker.latency)", float64(t.Count)/float64(Second), float64(t.Bound)/float64(Second))
}
