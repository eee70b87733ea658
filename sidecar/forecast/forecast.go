package forecast

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Question is all that a forecast is made from. Equal questions have equal forecasts.
type Question struct {
	// Snapshot and Plan are those of the newest round.
	Snapshot *cluster.Snapshot
	Plan     *cluster.Plan
	Past     Past
	Runs     int // number of runs; 0 = 100
	Seed     uint64
	Horizon  cluster.Span // how far ahead; 0 = a week
	Closed   []Closed     // nodes that will not be used for a time
	// Known is the run time of jobs whose run times are not drawn. Future, if not nil, is the jobs that will arrive, with their
	// run times; else they are drawn.
	Known  map[cluster.JobKey]cluster.Span
	Future []PastJob
	// Outcomes are what became of earlier statements. They correct the quantiles.
	Outcomes []Outcome
	Workers  int // parallel runs; 0 = number of cores. No result depends on it.
}

// Closed is nodes that are not used from From until Until. Jobs that run there at From are stopped.
type Closed struct {
	Nodes       []string
	From, Until cluster.Instant
}

// The defaults of a question.
const (
	DefaultRuns    = 100
	DefaultHorizon = 7 * cluster.Day
)

// Forecast is when jobs start and end.
type Forecast struct {
	At      cluster.Instant `json:"at_ms,omitzero"`
	Round   int64           `json:"round"`
	Runs    int             `json:"runs"`
	Horizon cluster.Span    `json:"horizon_ms"`
	Jobs    []Job           `json:"jobs"` // by key
	// Kept is how many earlier statements kept their word, by class.
	Kept []Coverage `json:"kept,omitempty"`
}

// Job is the forecast of a job.
type Job struct {
	Key cluster.JobKey `json:"job"`
	// Waits tells whether it waits for GPUs, perhaps again.
	Waits bool `json:"waits,omitempty"`
	// Start and End are moments. Start is zero for a job that runs.
	Start Times `json:"start"`
	End   Times `json:"end"`
	// RawStart and RawEnd are the same before calibration.
	RawStart Times `json:"raw_start"`
	RawEnd   Times `json:"raw_end"`
	// Why says why there is none; "" = there is one.
	Why string `json:"why,omitempty"`
}

// Times are quantiles of a moment over the runs: in one of ten it is at P10 or earlier, in nine of ten at P90 or earlier. A
// moment that is 0 is beyond the horizon.
type Times struct {
	P10 cluster.Instant `json:"p10_ms,omitzero"`
	P50 cluster.Instant `json:"p50_ms,omitzero"`
	P90 cluster.Instant `json:"p90_ms,omitzero"`
}

// Make answers a question. It fails only if ctx ends, or if the snapshot has no node with GPUs.
func Make(ctx context.Context, q *Question) (*Forecast, error) {
	runs, horizon := q.Runs, q.Horizon
	if runs == 0 {
		runs = DefaultRuns
	}
	if horizon == 0 {
		horizon = DefaultHorizon
	}
	s := survey(q.Snapshot, q.Plan)
	if len(s.nodes) == 0 {
		return nil, fmt.Errorf("round %d has no healthy node with GPUs", q.Snapshot.Round)
	}
	h := learn(&q.Past)
	none := s.addJobs(q.Snapshot, q.Plan, h)
	if q.Future != nil {
		h.await(q.Future, s, horizon)
	} else {
		h.arrive(&q.Past, s)
	}
	s.countUse()
	for i := range s.jobs {
		s.jobs[i].known = q.Known[s.jobs[i].key]
	}
	closures := s.closures(q.Closed)
	starts, ends := make([][]uint32, runs), make([][]uint32, runs)
	workers := q.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var at atomic.Int64
	var all sync.WaitGroup
	for range min(workers, runs) {
		all.Go(func() {
			for n := at.Add(1) - 1; n < int64(runs) && ctx.Err() == nil; n = at.Add(1) - 1 {
				r := newRun(s, h, uint64(n), q.Seed, horizon, closures)
				r.do()
				starts[n], ends[n] = r.startAt, r.endAt
			}
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &Forecast{At: s.now, Round: q.Snapshot.Round, Runs: runs, Horizon: horizon, Kept: Cover(q.Outcomes)}
	c := calibrate(q.Outcomes)
	for i := range s.jobs {
		j := Job{Key: s.jobs[i].key, Waits: !s.jobs[i].running, RawEnd: s.quantiles(ends, i)}
		if j.Waits {
			j.RawStart = s.quantiles(starts, i)
			j.Start, j.End = c.correct(Starts, j.RawStart, s.now, horizon), c.correct(Returns, j.RawEnd, s.now, horizon)
		} else {
			j.End = c.correct(Ends, j.RawEnd, s.now, horizon)
		}
		out.Jobs = append(out.Jobs, j)
	}
	for key, why := range none {
		out.Jobs = append(out.Jobs, Job{Key: key, Why: why})
	}
	slices.SortFunc(out.Jobs, func(a, b Job) int { return int(a.Key - b.Key) })
	return out, nil
}

// Parse reads a forecast as JSON. It refuses one without a round, and quantiles that are not ascending.
func Parse(text []byte) (*Forecast, error) {
	var f Forecast
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("reading a forecast: %w", err)
	}
	if f.Round <= 0 || f.At <= 0 {
		return nil, fmt.Errorf("reading a forecast: it is of no round")
	}
	for i := range f.Jobs {
		j := &f.Jobs[i]
		for _, t := range []Times{j.Start, j.End, j.RawStart, j.RawEnd} {
			if !t.ascend() {
				return nil, fmt.Errorf("reading a forecast: job %d: %+v are no quantiles", j.Key, t)
			}
		}
	}
	return &f, nil
}

// ascend tells whether each quantile is at least the one before; 0 is after all others.
func (t Times) ascend() bool {
	after := func(a, b cluster.Instant) bool { return b == 0 || a != 0 && a <= b }
	return after(t.P10, t.P50) && after(t.P50, t.P90)
}

// closures joins the closed nodes of a question and the reservations of others.
func (s *site) closures(closed []Closed) (out []closure) {
	for _, r := range s.reserve {
		nodes := slices.DeleteFunc(slices.Clone(r.Nodes), func(name string) bool {
			part, some := r.Part(name)
			return some && part.GPUs == 0
		})
		closed = append(closed, Closed{nodes, r.Start, r.End})
	}
	for _, c := range closed {
		x := closure{from: max(c.From, s.now), until: c.Until}
		for _, name := range c.Nodes {
			x.nodes = append(x.nodes, s.at[name]...)
		}
		if len(x.nodes) > 0 && x.until > x.from {
			out = append(out, x)
		}
	}
	return out
}

// quantiles gives the quantiles of a job over the runs.
func (s *site) quantiles(runs [][]uint32, job int) Times {
	all := make([]uint32, len(runs))
	for n := range runs {
		all[n] = runs[n][job]
	}
	slices.Sort(all)
	at := func(percent int) cluster.Instant {
		x := all[min((len(all)*percent+50)/100, len(all)-1)]
		if x == beyond {
			return 0
		}
		return s.now.Add(cluster.Span(x) * cluster.Second)
	}
	return Times{at(10), at(50), at(90)}
}
