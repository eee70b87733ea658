package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/sim/worth"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/tests/traces"
)

// replaysOfWorth is the default of fairlease worth, and the number of runs under plain Slurm whose mean is the truth.
const replaysOfWorth = 12

// afterwards is how long after a window's end it is asked what it was worth.
var afterwards = []struct {
	after  cluster.Span
	figure string // the end of names
}{{0, "_at_end"}, {3 * cluster.Day, ""}}

// onWorth measures how well what a journal says of its worth agrees with the truth, on the windows of real traces that only names, where
// jobs save as told. fairlease runs a window from its begin, with an empty cluster, and goes on for three days with those that come then.
// The truth is the gain over the same jobs under plain Slurm, with all of their run times: the mean of runs whose jobs arrive up to
// worth.Jitter later, since what one run gives is chance for a tenth and more. Figures are of the judged windows: the largest error of the GPU hours
// below share, and how many of these runs are within the range.
func onWorth(dir, only, saves string) error {
	worst, within, runs := map[string]float64{}, map[string]int{}, map[string]int{}
	for i := range windows {
		x := &windows[i]
		if x.made != nil || !x.chosenFor(only) {
			continue
		}
		long, err := daysOf(x.Scene, dir, x.from, x.days+3)
		if err != nil {
			return err
		}
		m := manner{saves: saves, byJob: true}
		if err := m.onto(&long); err != nil {
			return err
		}
		long.Until, long.Keep = cluster.Span(x.days)*cluster.Day, true
		truth, err := plainly(long)
		if err != nil {
			return err
		}
		for _, asked := range afterwards {
			past, with, err := journalOf(long, asked.after)
			if err != nil {
				return err
			}
			w := backtest.Of(&past, x.Name)
			was, err := worth.Was(&w)
			if err != nil {
				return err
			}
			results, err := together(worth.Replays(&w, replaysOfWorth, 1))
			if err != nil {
				return err
			}
			says, is := worthBeside(&w, &was, outcomesOf(results)), worthBeside(&w, &with, truth)
			fmt.Printf("%s (%s), %d jobs, asked %d days after its end, when %d had not ended:\n", x.Name, x.Fleet, says.Jobs, asked.after/cluster.Day, says.Drawn)
			for k := range says.Measures {
				s, t := &says.Measures[k], &is.Measures[k]
				off, in := 100*math.Abs(s.Gained.Mean/t.Gained.Mean-1), 0
				for _, o := range truth {
					one := worthBeside(&w, &with, []worth.Outcome{o, o})
					if g := one.Measures[k].Gained.Mean; g >= s.Gained.Low && g <= s.Gained.High {
						in++
					}
				}
				fmt.Printf("  %-17s gained %9.1f %-5s (with leases %9.1f; single runs %9.1f to %9.1f); the journal says %9.1f (%9.1f to %9.1f): %6.1f %% off, %2d of %d runs in the range\n",
					s.Name, t.Gained.Mean, s.Unit, t.With, t.Gained.Low, t.Gained.High, s.Gained.Mean, s.Gained.Low, s.Gained.High, off, in, len(truth))
				if k == 0 {
					worst[asked.figure] = max(worst[asked.figure], off)
					within[asked.figure], runs[asked.figure] = within[asked.figure]+in, runs[asked.figure]+len(truth)
				}
			}
		}
	}
	if only != "judged" || saves != "at-end" {
		return nil
	}
	for _, asked := range afterwards {
		figure("worth_error"+asked.figure+"_pct", worst[asked.figure], "%")
		figure("worth_within"+asked.figure+"_pct", 100*float64(within[asked.figure])/float64(runs[asked.figure]), "%")
	}
	return nil
}

func worthBeside(w *backtest.Window, with *worth.Outcome, would []worth.Outcome) worth.Worth {
	return worth.Of(w, with, would, store.Ends{}, func(string) map[string]float64 { return nil })
}

// plainly runs the jobs of a setup's time under plain Slurm.
func plainly(s experiment.Setup) ([]worth.Outcome, error) {
	load := traces.Between(s.Load, 0, s.Until)
	var setups []experiment.Setup
	for k := range uint64(replaysOfWorth) {
		s.Scheduler, s.Load = worth.Slurm, load
		s.Load.Jobs = slices.Values(worth.Stir(slices.Collect(load.Jobs), rand.New(rand.NewPCG(77, k))))
		setups = append(setups, s)
	}
	results, err := together(setups)
	return outcomesOf(results), err
}

func outcomesOf(results []experiment.Result) (out []worth.Outcome) {
	for i := range results {
		out = append(out, worth.Would(&results[i]))
	}
	return out
}

// notebook keeps of a simulated run what a journal keeps.
type notebook struct {
	until          cluster.Instant // the window's end
	asked          map[string]trace.Job
	first          *cluster.Plan
	last, newest   cluster.Plan    // in the window, of all
	looked, sample cluster.Instant // when all records, and tenants, were read last
	jobs           map[cluster.JobKey]store.PastJob
	tenants        []store.PastTenant
}

// journalOf runs a setup under fairlease, and for some time after its end. It gives what a journal has of the setup's time then, and the
// true outcome.
func journalOf(s experiment.Setup, after cluster.Span) (store.Past, worth.Outcome, error) {
	n := &notebook{until: experiment.Start.Add(s.Until), asked: map[string]trace.Job{}, jobs: map[cluster.JobKey]store.PastJob{}}
	for j := range s.Load.Jobs {
		n.asked[j.ID] = j
	}
	only := s
	only.Load = traces.Between(s.Load, 0, s.Until)
	alone, err := experiment.Run(context.Background(), only, nil)
	if err != nil {
		return store.Past{}, worth.Outcome{}, err
	}
	s.Until += after
	r, err := experiment.Watch(context.Background(), s, nil, n.see)
	if err != nil {
		return store.Past{}, worth.Outcome{}, err
	}
	n.read(&n.newest)
	var p store.Past
	p.Begin.Plan, p.End.Plan = *n.first, n.last
	p.Begin.Snapshot.Nodes, p.End.Snapshot.Settings = s.Fleet.Nodes(), s.Settings
	for tenant, weight := range s.Weights {
		p.End.Snapshot.Tenants = append(p.End.Snapshot.Tenants, cluster.Tenant{Name: tenant, Weight: weight})
	}
	_, gpus := s.Fleet.Count()
	p.GPUs = []store.GPUsThen{{At: p.Begin.Plan.At.Time(), GPUs: gpus}}
	of := map[string]score.Job{}
	for _, j := range r.Kept {
		of[j.ID] = j
	}
	for _, j := range n.jobs { // leases have starts and ends to the second, records have rounds
		if j.Started = moment(of[j.SlurmID].Start); j.Done != nil {
			j.Done = moment(of[j.SlurmID].End)
		}
		p.Jobs = append(p.Jobs, j)
	}
	slices.SortFunc(p.Jobs, func(a, b store.PastJob) int { return cmp.Compare(a.Key, b.Key) })
	p.Tenants = func(yield func(store.PastTenant, error) bool) {
		for _, t := range n.tenants {
			if !yield(t, nil) {
				return
			}
		}
	}
	return p, worth.Would(&alone), nil
}

// see notes a round.
func (n *notebook) see(p *cluster.Plan) {
	if n.first == nil || p.At.Sub(n.looked) >= 20*cluster.Minute { // records are kept for longer
		n.read(p)
	}
	n.newest = keep(p)
	if p.At > n.until {
		return
	}
	n.last = n.newest
	if n.first == nil {
		first := n.newest
		n.first = &first
	}
	if p.At.Sub(n.sample) < cluster.Minute {
		return
	}
	n.sample = p.At
	holds := map[[2]string]cluster.GPUCount{}
	for i := range p.Tenants {
		holds[[2]string{p.Tenants[i].Tenant, p.Tenants[i].Pool}] = p.Tenants[i].Holds
	}
	for i := range p.State.Ledger.Tenants {
		t := &p.State.Ledger.Tenants[i]
		n.tenants = append(n.tenants, store.PastTenant{Tenant: t.Tenant, Pool: t.Pool, At: p.At.Time(), Rate: min(t.Entitlement, t.Demand),
			Holds: holds[[2]string{t.Tenant, t.Pool}], Alloc: t.Alloc, Due: t.Due})
	}
}

// keep copies what is needed of a plan, which is valid during a call only.
func keep(p *cluster.Plan) (out cluster.Plan) {
	out.At, out.Round, out.Tenants = p.At, p.Round, slices.Clone(p.Tenants)
	out.State.NextKey, out.State.Records, out.State.Former = p.State.NextKey, slices.Clone(p.State.Records), slices.Clone(p.State.Former)
	out.State.Ledger.Tenants = slices.Clone(p.State.Ledger.Tenants)
	return out
}

// read notes all records of jobs.
func (n *notebook) read(p *cluster.Plan) {
	n.looked = p.At
	for r := range p.State.All() {
		due, _ := cluster.DueBy(r, p.At)
		asked := n.asked[r.Name]
		n.jobs[r.Key] = store.PastJob{Key: r.Key, SlurmID: r.Name, Name: asked.Name, User: r.User, Tenant: r.Tenant, GPUs: cluster.CountOf(asked.GPUs), Model: asked.Model,
			Submitted: moment(r.Submit), Eligible: moment(r.First), Done: moment(r.Done), Restarts: r.Restarts, Alloc: r.Alloc, Due: due, Lost: r.Lost}
	}
}

// moment gives a time as the journal has it; nil = none.
func moment(at cluster.Instant) *time.Time {
	if at == 0 {
		return nil
	}
	t := at.Time()
	return &t
}
