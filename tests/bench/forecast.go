package main

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// The two weeks of a trace: forecasts of the first calibrate, those of the second are judged. Each looks three days ahead, and the last
// ones end with the trace.
const (
	learnFrom  = 2 * cluster.Day
	judgeFrom  = 7 * cluster.Day
	judgeUntil = 11 * cluster.Day
	every      = 7 * cluster.Hour
	lookAhead  = 3 * cluster.Day
)

// course is a simulated run whose course is recorded.
type course struct {
	jobs  map[cluster.JobID]*recorded
	order []cluster.JobID // by submission
}

// recorded is a job of a run.
type recorded struct {
	work        *sim.Work
	submit, end cluster.Instant
	starts      []cluster.Instant
}

func (c *course) see(e sim.Event) {
	switch j := c.jobs[e.Job]; e.What {
	case sim.Submitted:
		c.jobs[e.Job] = &recorded{work: e.Work, submit: e.At}
		c.order = append(c.order, e.Job)
	case sim.Started:
		j.starts = append(j.starts, e.At)
	case sim.Ended:
		j.end = e.At
	}
}

// past gives what a site would know at the moment of a snapshot.
func (c *course) past(snap *cluster.Snapshot) forecast.Past {
	ran := map[cluster.JobID]cluster.Span{}
	for i := range snap.Cases {
		x := &snap.Cases[i]
		work, _ := x.Record.Work()
		ran[x.Record.ID] = cluster.Span(work) / cluster.Span(max(x.Job.Request.GPUs, 1))
	}
	p := forecast.Past{From: experiment.Start}
	for _, id := range c.order {
		j := c.jobs[id]
		if j.submit > snap.Now {
			break
		}
		x := forecast.PastJob{Submit: j.submit, Tenant: j.work.Account, Ran: ran[id], Job: asked(j.work)}
		if j.end > 0 && j.end <= snap.Now {
			x.Ran, x.Ended = j.work.Runs, true
		}
		p.Jobs = append(p.Jobs, x)
	}
	return p
}

// asked gives a job as it was submitted.
func asked(w *sim.Work) cluster.Job {
	return cluster.Job{User: w.User, Name: w.Name, Command: w.Command, Request: w.Request, Partitions: []string{w.Partition}}
}

// happened gives when what a statement of a kind is about happened.
func (c *course) happened(id cluster.JobID, kind forecast.Kind, since cluster.Instant) cluster.Instant {
	j := c.jobs[id]
	if kind != forecast.Starts {
		return j.end
	}
	at, _ := slices.BinarySearch(j.starts, since)
	if at == len(j.starts) {
		return 0
	}
	return j.starts[at]
}

// statement is an outcome and its job.
type statement struct {
	forecast.Outcome
	job cluster.JobID
}

// stated lists the statements of a forecast, without outcomes.
func stated(f *forecast.Forecast, snap *cluster.Snapshot) (out []statement) {
	ids := map[cluster.JobKey]cluster.JobID{}
	for i := range snap.Cases {
		ids[snap.Cases[i].Record.Key] = snap.Cases[i].Record.ID
	}
	for _, j := range f.Jobs {
		add := func(kind forecast.Kind, said forecast.Times) {
			out = append(out, statement{forecast.Outcome{Kind: kind, At: f.At, Horizon: f.Horizon, Said: said}, ids[j.Key]})
		}
		switch {
		case j.Why != "":
		case j.Waits:
			add(forecast.Starts, j.Start)
			add(forecast.Returns, j.End)
		default:
			add(forecast.Ends, j.End)
		}
	}
	return out
}

// known fills in the outcomes as of a moment.
func (c *course) known(list []statement, at cluster.Instant) []forecast.Outcome {
	var out []forecast.Outcome
	for _, s := range list {
		o := s.Outcome
		o.Until = at
		if was := c.happened(s.job, o.Kind, o.At); was <= at {
			o.Was = was
		}
		out = append(out, o)
	}
	return out
}

// onForecasts measures how long a forecast takes, and in each scene how often the moment was in the interval for eight of ten, and
// the median error beside that of Slurm's estimates. The figures without a scene's name are of the worse scene.
//
// With only, it measures instead one of forecastSites, on Venus.
func onForecasts(dir, only string) error {
	if only != "" {
		change, ok := forecastSites[only]
		if !ok {
			return fmt.Errorf("-only: of -forecast there are %s", strings.Join(slices.Sorted(maps.Keys(forecastSites)), ", "))
		}
		_, _, err := onForecastScene(dir, &scenes[0], only, change)
		return err
	}
	forecastOf10k()
	if dir == "" {
		fmt.Println("the figures of how good forecasts are are left out: FAIRLEASE_TRACES names no folder with the traces")
		return nil
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2, runtime.NumCPU())))
	coverage, ratio := 80.0, 0.0
	for _, i := range []int{0, 2} { // venus60, philly64
		c, r, err := onForecastScene(dir, &scenes[i], scenes[i].name, nil)
		if err != nil {
			return err
		}
		if math.Abs(c-80) > math.Abs(coverage-80) {
			coverage = c
		}
		ratio = max(ratio, r)
	}
	figure("forecast_coverage_pct", coverage, "%")
	figure("forecast_error_over_slurm", ratio, "")
	return nil
}

// forecastSites are sites with what the scheduler of forecasts leaves out or simplifies: virtual clusters of whole nodes by weight; a fleet of
// two GPU models, the faster one 1.3 to 4 times as fast by the user; equal users; accounts that may use at most six tenths of their share, or
// 64 GPUs where that is less.
var forecastSites = map[string]func(*experiment.Setup) error{
	"cells": func(s *experiment.Setup) error {
		s.Scheduler = "hived"
		return nil
	},
	"models": func(s *experiment.Setup) (err error) {
		s.Scheduler = "fairlease:gandiva-fair"
		s.Fleet, err = experiment.ParseFleet("30x8:k80+30x8:v100")
		s.Speeds = sim.Speeds{}
		kinds := []string{"small", "medium", "large"}
		for i, faster := range []sim.Speed{13, 22, 40} {
			s.Speeds[sim.Task{Kind: kinds[i]}] = map[string]sim.Rate{"k80": {Speed: sim.Reference}, "v100": {Speed: sim.Reference * faster / 10}}
		}
		jobs := s.Load.Jobs
		s.Load.Jobs = func(yield func(trace.Job) bool) {
			for j := range jobs {
				h := fnv.New32a()
				_, _ = h.Write([]byte(j.User))
				j.Kind, j.Model = kinds[h.Sum32()%3], ""
				if !yield(j) {
					return
				}
			}
		}
		return err
	},
	"limits": func(s *experiment.Setup) error {
		_, gpus := s.Fleet.Count()
		sum := int64(0)
		for _, weight := range s.Weights {
			sum += weight
		}
		for tenant, weight := range s.Weights {
			most := max(int64(gpus)*weight*6/10/sum, 64)
			s.Limits.Limits.Associations = append(s.Limits.Limits.Associations, cluster.Association{Account: tenant, Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: most}}})
		}
		return nil
	},
	"users": func(s *experiment.Setup) error {
		s.Settings.Users = cluster.UsersEqual
		return nil
	},
}

// onForecastScene measures a scene, perhaps changed, and gives its coverage in percent and its error over Slurm's.
func onForecastScene(dir string, x *scene, name string, change func(*experiment.Setup) error) (coverage, ratio float64, err error) {
	s, err := x.setup(dir)
	if err == nil && change != nil {
		err = change(&s)
	}
	if err != nil {
		return 0, 0, err
	}
	s.Until = 0
	likely, tight := askedLimits(&s), tightLimits(&s)
	c := &course{jobs: map[cluster.JobID]*recorded{}}
	run, err := experiment.Open(&s, c.see)
	if err != nil {
		return 0, 0, err
	}
	defer run.Close()
	ctx := context.Background()
	var lessons, judged []statement
	var byAsked, byTight []guess
	var told []*forecast.Question
	var calibration forecast.Calibration
	for at := learnFrom; at <= judgeUntil; at += every {
		if err := run.To(ctx, at); err != nil {
			return 0, 0, err
		}
		snap, plan, err := run.Preview(ctx)
		if err != nil {
			return 0, 0, err
		}
		q := &forecast.Question{Snapshot: &snap, Plan: &plan, Past: c.past(&snap), Seed: 1, Horizon: lookAhead}
		if at >= judgeFrom {
			if judged == nil {
				calibration = forecast.Calibrate(c.known(lessons, snap.Now))
			}
			q.Calibration = calibration
		}
		f, err := forecast.Make(ctx, q)
		if err != nil {
			return 0, 0, err
		}
		if at < judgeFrom {
			lessons = append(lessons, stated(f, &snap)...)
			continue
		}
		judged = append(judged, stated(f, &snap)...)
		told = append(told, apart(&snap, &plan))
		byAsked, byTight = append(byAsked, likely.estimate(&snap)...), append(byTight, tight.estimate(&snap)...)
	}
	if err := run.To(ctx, judgeUntil+lookAhead); err != nil {
		return 0, 0, err
	}
	fmt.Printf("%s on %s: forecasts of the second week by the first, %v ahead\n", s.Load.Name, s.Fleet, lookAhead)
	if err := faithful(ctx, name, c, told); err != nil {
		return 0, 0, err
	}
	coverage, ratio = judge(name, c, judged, byAsked, byTight)
	return coverage, ratio, nil
}

// apart gives a question about a round whose buffers will be used again.
func apart(snap *cluster.Snapshot, plan *cluster.Plan) *forecast.Question {
	s, p := *snap, *plan
	s.Cases, s.Nodes = slices.Clone(s.Cases), slices.Clone(s.Nodes)
	p.State.Records, p.State.Ledger.Tenants = slices.Clone(p.State.Records), slices.Clone(p.State.Ledger.Tenants)
	return &forecast.Question{Snapshot: &s, Plan: &p, Runs: 1, Horizon: lookAhead}
}

// faithful measures the scheduler of forecasts against the engine: both are told all run times and arrivals, so they differ by
// their decisions alone.
func faithful(ctx context.Context, name string, c *course, told []*forecast.Question) error {
	var errors, leads [len(kindNames)][]float64
	for _, q := range told {
		now := q.Snapshot.Now
		q.Known, q.Future = map[cluster.JobKey]cluster.Span{}, []forecast.PastJob{}
		for i := range q.Snapshot.Cases {
			r := &q.Snapshot.Cases[i].Record
			q.Known[r.Key] = c.jobs[r.ID].work.Runs
		}
		for _, j := range c.jobs {
			if j.submit > now && j.submit <= now.Add(lookAhead) {
				q.Future = append(q.Future, forecast.PastJob{Job: asked(j.work), Tenant: j.work.Account, Submit: j.submit, Ran: j.work.Runs, Ended: true})
			}
		}
		slices.SortFunc(q.Future, func(a, b forecast.PastJob) int {
			return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.Job.Name, b.Job.Name))
		})
		f, err := forecast.Make(ctx, q)
		if err != nil {
			return err
		}
		for _, s := range stated(f, q.Snapshot) {
			was := c.happened(s.job, s.Kind, s.At)
			if was == 0 || was > now.Add(lookAhead) || s.Said.P50 == 0 {
				continue
			}
			errors[s.Kind] = append(errors[s.Kind], math.Abs(float64(s.Said.P50.Sub(was)))/float64(cluster.Hour))
			leads[s.Kind] = append(leads[s.Kind], float64(was.Sub(now))/float64(cluster.Hour))
		}
	}
	fmt.Println("  the scheduler of forecasts beside the engine, both told all run times and arrivals:")
	for k := range errors {
		if n := len(errors[k]); n > 0 {
			fmt.Printf("  %d statements%s: median error %.2f h, of %.1f h ahead\n", n, kindNames[k], median(errors[k]), median(leads[k]))
			figure("forecast_scheduler_error_h_"+name+kindNames[k], median(errors[k]), "h")
		}
	}
	return nil
}

// kindNames are the ends of the figures' names; the last is all.
var kindNames = [...]string{"_starts", "_returns", "_ends", ""}

// tally sums up the statements of a kind.
type tally struct {
	in, early, late    int
	ours, asked, tight []float64 // errors in hours
}

// judge prints the figures of a scene, and gives those of all its statements.
func judge(name string, c *course, said []statement, byAsked, byTight []guess) (coverage, ratio float64) {
	var sums [len(kindNames)]tally
	asked, tight := map[statementKey]cluster.Instant{}, map[statementKey]cluster.Instant{}
	for i := range byAsked {
		asked[byAsked[i].statementKey], tight[byTight[i].statementKey] = byAsked[i].at, byTight[i].at
	}
	for _, s := range said {
		if s.Said.P10 == 0 {
			continue // beyond the horizon: nothing is said
		}
		end := s.At.Add(s.Horizon)
		within := func(t cluster.Instant) cluster.Instant {
			if t == 0 || t > end {
				return end
			}
			return t
		}
		was, key := within(c.happened(s.job, s.Kind, s.At)), statementKey{s.At, s.job, s.Kind}
		off := func(t cluster.Instant) float64 { return math.Abs(float64(was.Sub(within(t)))) / float64(cluster.Hour) }
		for _, x := range []*tally{&sums[s.Kind], &sums[len(sums)-1]} {
			switch {
			case was < within(s.Said.P10):
				x.early++
			case was > within(s.Said.P90):
				x.late++
			default:
				x.in++
			}
			x.ours, x.asked, x.tight = append(x.ours, off(s.Said.P50)), append(x.asked, off(asked[key])), append(x.tight, off(tight[key]))
		}
	}
	for k := range sums {
		x := &sums[k]
		n := len(x.ours)
		if n == 0 {
			continue
		}
		ours, theirs, best := median(x.ours), median(x.asked), median(x.tight)
		fmt.Printf("  %d statements%s: %.1f %% came earlier, %.1f %% later than the interval; median error %.2f h, Slurm's %.2f h by limits as users ask for, %.2f h by tight ones\n",
			n, kindNames[k], 100*float64(x.early)/float64(n), 100*float64(x.late)/float64(n), ours, theirs, best)
		coverage, ratio = 100*float64(x.in)/float64(n), ours/theirs
		figure("forecast_coverage_pct_"+name+kindNames[k], coverage, "%")
		if theirs > 0 { // else both are beyond the horizon in most cases
			figure("forecast_error_over_slurm_"+name+kindNames[k], ratio, "")
		}
	}
	return coverage, ratio
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
