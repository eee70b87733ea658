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
	"github.com/fairlease/fairlease/tests/traces"
)

// The two weeks of a trace: each forecast is corrected by what became of every other earlier one, as a daemon's is by one in six hours. Those from
// the second week on are judged. Each looks three days ahead, and the last ones end with the trace.
const (
	learnFrom = 2 * cluster.Day
	judgeFrom = 7 * cluster.Day
	every     = 3 * cluster.Hour
	lookAhead = 3 * cluster.Day
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
		ran[x.Record.ID] = cluster.Span(cluster.Received(&x.Record)) / cluster.Span(max(x.Job.Request.Size.Devices, 1))
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
	of := map[cluster.JobKey]*cluster.Case{}
	for i := range snap.Cases {
		of[snap.Cases[i].Record.Key] = &snap.Cases[i]
	}
	for _, j := range f.Jobs {
		r := &of[j.Key].Record
		add := func(kind forecast.Kind, raw, said forecast.Times) {
			out = append(out, statement{forecast.Outcome{Kind: kind, Job: j.Key, Tenant: r.Tenant, GPUs: of[j.Key].Job.Request.Size.Count(), At: f.At, Horizon: f.Horizon, Raw: raw, Said: said}, r.ID})
		}
		switch {
		case j.Why != "":
		case j.Waits:
			add(forecast.Starts, j.RawStart, j.Start)
			add(forecast.Returns, j.RawEnd, j.End)
		default:
			add(forecast.Ends, j.RawEnd, j.End)
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

// forecastWindow is a part of a trace on a fleet, whose forecasts are judged until a moment.
type forecastWindow struct {
	traces.Scene
	site  string // one of forecastSites; "" = as it is
	until cluster.Span
}

// judgedWindows are those of the figures. newWindows are other weeks, on fleets as congested: nothing was chosen by them.
var (
	judgedWindows = []forecastWindow{
		{traces.Scenes[0], "", 11 * cluster.Day},
		{traces.Scenes[2], "", 11 * cluster.Day},
		{traces.Scenes[0], "cells", 11 * cluster.Day},
		{traces.Scenes[2], "cells", 11 * cluster.Day},
	}
	newWindows = []forecastWindow{
		{traces.VenusOf("venus_before", "venus_gpu_20d.csv.gz", 60), "", 11 * cluster.Day},
		{traces.VenusOf("venus_before", "venus_gpu_20d.csv.gz", 60), "cells", 11 * cluster.Day},
		{traces.PhillyOf("philly_before", "philly_3w_before.csv.gz", 50), "", 14 * cluster.Day},
		{traces.PhillyOf("philly_before", "philly_3w_before.csv.gz", 50), "cells", 14 * cluster.Day},
		{traces.PhillyOf("philly_late", "philly_4w_late.csv.gz", 25), "", 16 * cluster.Day},
		{traces.PhillyOf("philly_late", "philly_4w_late.csv.gz", 25), "cells", 16 * cluster.Day},
	}
)

// enough is the number of statements from which a class counts in forecast_class_worst_pct.
const enough = 1000

// onForecasts measures how long a forecast takes, and in each window how many statements kept their word, and the median error beside that of
// Slurm's estimates. The figures without a window's name are of the worst one.
//
// With only, it measures instead one of forecastSites, on Venus, or the new windows.
func onForecasts(dir, only string) error {
	windows := judgedWindows
	switch {
	case only == "new":
		windows = newWindows
	case only != "":
		if forecastSites[only] == nil {
			return fmt.Errorf("-only: of -forecast there are new, %s", strings.Join(slices.Sorted(maps.Keys(forecastSites)), ", "))
		}
		windows = []forecastWindow{{traces.Scenes[0], only, 11 * cluster.Day}}
	default:
		forecastOf10k()
	}
	if dir == "" {
		fmt.Println("the figures of how good forecasts are are left out: FAIRLEASE_TRACES names no folder with the traces")
		return nil
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2, runtime.NumCPU())))
	coverage, class, ratio := float64(forecast.Promised), float64(forecast.Promised), 0.0
	farther := func(a, b float64) float64 {
		if math.Abs(b-forecast.Promised) > math.Abs(a-forecast.Promised) {
			return b
		}
		return a
	}
	for i := range windows {
		g, err := onForecastWindow(dir, &windows[i])
		if err != nil {
			return err
		}
		coverage, class, ratio = farther(coverage, g.all), farther(class, g.worst), max(ratio, g.ratio)
	}
	if only == "" {
		figure("forecast_coverage_pct", coverage, "%")
		figure("forecast_class_worst_pct", class, "%")
		figure("forecast_error_over_slurm", ratio, "")
	}
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

// onForecastWindow measures a window.
func onForecastWindow(dir string, x *forecastWindow) (g grades, err error) {
	s, err := scene(x.Scene, dir)
	name := x.Name
	if x.site != "" && err == nil {
		err = forecastSites[x.site](&s)
		name += "_" + x.site
	}
	if err != nil {
		return g, err
	}
	s.Until = 0
	likely, tight := askedLimits(&s), tightLimits(&s)
	var byAsked, byTight []guess
	var told []*forecast.Question
	ctx := context.Background()
	c, judged, err := foretell(ctx, &s, forecast.DefaultRuns, judgeFrom, x.until, func(snap *cluster.Snapshot, plan *cluster.Plan) {
		if len(told) == 0 || snap.Now.Sub(told[len(told)-1].Snapshot.Now) >= 7*cluster.Hour {
			told = append(told, apart(snap, plan))
		}
		byAsked, byTight = append(byAsked, likely.estimate(snap)...), append(byTight, tight.estimate(snap)...)
	})
	if err != nil {
		return g, err
	}
	fmt.Printf("%s on %s%s: forecasts from the second week on, %v ahead\n", s.Load.Name, s.Fleet, strings.TrimSuffix(", "+x.site, ", "), lookAhead)
	if err := faithful(ctx, name, c, told); err != nil {
		return g, err
	}
	return judge(name, c, judged, byAsked, byTight), nil
}

// foretell runs a setup, makes forecasts, each corrected by what became of every other earlier one, and gives the statements that are
// judged. It shows the rounds of these to see.
func foretell(ctx context.Context, s *experiment.Setup, runs int, from, until cluster.Span, see func(*cluster.Snapshot, *cluster.Plan)) (*course, []statement, error) {
	c := &course{jobs: map[cluster.JobID]*recorded{}}
	run, err := experiment.Open(s, c.see)
	if err != nil {
		return nil, nil, err
	}
	defer run.Close()
	var lessons, judged []statement
	for at := learnFrom; at <= until; at += every {
		if err := run.To(ctx, at); err != nil {
			return nil, nil, err
		}
		snap, plan, err := run.Preview(ctx)
		if err != nil {
			return nil, nil, err
		}
		f, err := forecast.Make(ctx, &forecast.Question{Snapshot: &snap, Plan: &plan, Past: c.past(&snap), Runs: runs, Seed: 1, Horizon: lookAhead, Outcomes: c.known(lessons, snap.Now)})
		if err != nil {
			return nil, nil, err
		}
		said := stated(f, &snap)
		if (at-learnFrom)/every%2 == 0 {
			lessons = append(lessons, said...)
		}
		if at >= from {
			judged = append(judged, said...)
			see(&snap, &plan)
		}
	}
	return c, judged, run.To(ctx, until+lookAhead)
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

// grades are the figures of a window: how many statements kept their word, in percent, of all and of the class farthest from what is promised
// that has enough; and the median error over Slurm's.
type grades struct{ all, worst, ratio float64 }

// judge prints the figures of a window.
func judge(name string, c *course, said []statement, byAsked, byTight []guess) grades {
	kept := forecast.Cover(c.known(said, said[len(said)-1].At.Add(lookAhead)))
	out := grades{worst: forecast.Promised}
	for _, x := range kept {
		if x.By != "" {
			fmt.Printf("    %s, %s %s: %.1f %% (%.0f to %.0f) of %d statements kept their word\n", x.Kind, x.By, x.Class, x.Percent, x.Low, x.High, x.Statements)
			continue
		}
		fmt.Printf("  %s: %.1f %% (%.0f to %.0f) of %d statements of %d forecasts kept their word\n", x.Kind, x.Percent, x.Low, x.High, x.Statements, x.Forecasts)
		figure("forecast_coverage_pct_"+name+"_"+x.Kind, x.Percent, "%")
		if out.all += x.Percent * float64(x.Statements) / float64(len(said)); x.Statements >= enough && math.Abs(x.Percent-forecast.Promised) > math.Abs(out.worst-forecast.Promised) {
			out.worst = x.Percent
		}
	}
	var errors [len(kindNames)][3][]float64 // in hours: ours, Slurm's by limits as users ask for, and by tight ones
	asked, tight := map[statementKey]cluster.Instant{}, map[statementKey]cluster.Instant{}
	for i := range byAsked {
		asked[byAsked[i].statementKey], tight[byTight[i].statementKey] = byAsked[i].at, byTight[i].at
	}
	for _, s := range said {
		end := s.At.Add(s.Horizon)
		within := func(t cluster.Instant) cluster.Instant {
			if t == 0 || t > end {
				return end
			}
			return t
		}
		was, key := within(c.happened(s.job, s.Kind, s.At)), statementKey{s.At, s.job, s.Kind}
		for i, t := range []cluster.Instant{s.Said.P50, asked[key], tight[key]} {
			off := math.Abs(float64(was.Sub(within(t)))) / float64(cluster.Hour)
			for _, k := range []int{int(s.Kind), len(kindNames) - 1} {
				errors[k][i] = append(errors[k][i], off)
			}
		}
	}
	for k := range errors {
		x := &errors[k]
		if len(x[0]) == 0 {
			continue
		}
		ours, theirs, best := median(x[0]), median(x[1]), median(x[2])
		fmt.Printf("  %d statements%s: median error %.2f h, Slurm's %.2f h by limits as users ask for, %.2f h by tight ones\n", len(x[0]), kindNames[k], ours, theirs, best)
		if theirs > 0 { // else both are beyond the horizon in most cases
			ratio := ours / theirs
			if kindNames[k] == "" {
				out.ratio = ratio
			}
			figure("forecast_error_over_slurm_"+name+kindNames[k], ratio, "")
		}
	}
	figure("forecast_coverage_pct_"+name, out.all, "%")
	return out
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
