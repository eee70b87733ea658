package playground

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// World is jobs, from a trace or generated.
type World struct {
	load   experiment.Load
	trace  *trace.Trace // nil = generated
	census experiment.Census
}

// Recipe is what generated jobs are like: those of Philly's papers, in a week.
type Recipe struct {
	Nodes   string  `json:"nodes"` // the cluster that Load refers to
	Tenants int     `json:"tenants"`
	Load    float64 `json:"load"` // GPU time that the jobs need, in clusters
	Seed    uint64  `json:"seed"`
}

// mostTenants is the maximum number of tenants of generated jobs: more are not told apart on a page.
const mostTenants = 1000

// Read reads a trace in any format that `fairlease simulate` reads, gzipped or not. An error names the line and says what to do next.
func Read(name string, text []byte) (*World, error) {
	t, err := trace.Read(bytes.NewReader(text), name, trace.Options{})
	if err != nil {
		return nil, err
	}
	w := &World{load: experiment.Of(t), trace: t}
	if w.census = experiment.Survey(w.load); w.census.Jobs > 0 {
		return w, nil
	}
	switch {
	case len(t.Bad) > 0:
		return nil, fmt.Errorf("%s has no job with GPUs and a run time: %s; look at line %d: %s", name, t.Counts.LeftOut(), t.Bad[0].Line, t.Bad[0].What)
	case t.Counts.CPUOnly > 0:
		return nil, fmt.Errorf("%s has no job with GPUs and a run time: %s; if jobs had GPUs, Slurm's accounting does not record them: AccountingStorageTRES in slurm.conf has to name gres/gpu",
			name, t.Counts.LeftOut())
	}
	return nil, fmt.Errorf("%s has no job with GPUs and a run time: ask for more: sacct -S for a longer time, and -a for all users' jobs", name)
}

// Generate makes up a week of jobs, as `fairlease simulate --generate philly` does.
func Generate(r Recipe) (*World, error) {
	fleet, err := experiment.ParseFleet(r.Nodes)
	if err != nil {
		return nil, err
	}
	if r.Tenants < 1 || r.Tenants > mostTenants {
		return nil, fmt.Errorf("%d tenants: write 1 to %d", r.Tenants, mostTenants)
	}
	like := trace.LikePhilly(r.Seed, 1)
	like.Length, like.Tenants = 7*cluster.Day, trace.Shifts(r.Tenants, 0.8)
	_, gpus := fleet.Count()
	like.PerHour = r.Load * float64(gpus) / like.MeanDemand()
	jobs, err := trace.Generate(like)
	if err != nil {
		return nil, err
	}
	w := &World{load: experiment.Load{Name: "like philly", Jobs: jobs}}
	if w.census = experiment.Survey(w.load); w.census.Jobs == 0 {
		return nil, fmt.Errorf("no job arrives in a week at a load of %g: write a larger one", r.Load)
	}
	return w, nil
}

// Facts is what a page shows of a world before it is simulated.
type Facts struct {
	Name    string   `json:"name"`
	Jobs    int      `json:"jobs"`
	Hours   float64  `json:"hours"`  // from the first submission to the last
	Demand  float64  `json:"demand"` // GPUs that the jobs need, on average over that time
	Gang    int      `json:"gang"`   // GPUs of the largest job
	LeftOut string   `json:"left_out"`
	Bad     []string `json:"bad"` // the first rows that make no sense
	Tenants []Tenant `json:"tenants"`
}

// Tenant is a tenant's part of the jobs.
type Tenant struct {
	Name  string  `json:"name"`
	Jobs  int     `json:"jobs"`
	Share float64 `json:"share"` // of all GPU time
}

// Facts describes the jobs.
func (w *World) Facts() Facts {
	c := &w.census
	f := Facts{Name: w.load.Name, Jobs: c.Jobs, Hours: float64(c.Last) / float64(cluster.Hour),
		Demand: float64(c.Demand()) / float64(max(c.Last, cluster.Hour))}
	for _, t := range c.Tenants {
		f.Gang = max(f.Gang, t.Gang)
		f.Tenants = append(f.Tenants, Tenant{Name: t.Tenant, Jobs: t.Jobs, Share: float64(t.Demand) / float64(max(c.Demand(), 1))})
	}
	if w.trace != nil {
		f.LeftOut = w.trace.Counts.LeftOut()
		for _, b := range w.trace.Bad {
			f.Bad = append(f.Bad, fmt.Sprintf("line %d: %s", b.Line, b.What))
		}
	}
	return f
}

// Choice is what a person chooses for a simulation. The rest is as in a new fairlease.yaml.
type Choice struct {
	Nodes    string           `json:"nodes"`
	Weights  map[string]int64 `json:"weights"` // nil = all weigh the same
	Saves    string           `json:"saves"`   // how jobs save; "" = never
	Interval string           `json:"interval"`
	Until    string           `json:"until"` // simulated time at which to end; "" = when all jobs are done
}

// setup gives the run of a scheduler.
func (w *World) setup(c *Choice, scheduler string) (experiment.Setup, error) {
	s := experiment.Default()
	s.Scheduler, s.Load, s.Seed, s.Measures = scheduler, w.load, 1, score.Standard()
	var err error
	if s.Fleet, err = experiment.ParseFleet(c.Nodes); err != nil {
		return s, err
	}
	saves := c.Saves
	if saves == "" {
		saves = "never"
	}
	if s.Saves, err = experiment.ParseMixture(saves, 0); err != nil {
		return s, fmt.Errorf("how jobs save: %w", err)
	}
	if err := cmp.Or(length("the time between rounds", c.Interval, &s.Settings.Interval), length("the end", c.Until, &s.Until)); err != nil {
		return s, err
	}
	s.Settings = experiment.Fit(s.Settings)
	if s.Weights = experiment.EqualWeights(w.census); c.Weights != nil {
		s.Weights = c.Weights
	}
	sum := int64(0)
	for tenant, weight := range s.Weights {
		if weight < 0 || weight > mostWeight {
			return s, fmt.Errorf("account %s has a weight of %d: write a whole number from 0 to %d", tenant, weight, mostWeight)
		}
		sum += weight
	}
	if sum == 0 {
		return s, fmt.Errorf("all accounts have a weight of 0: give one of them more")
	}
	return s, s.Check()
}

// length reads a time; an empty one changes nothing.
func length(what, text string, to *cluster.Span) error {
	if text == "" {
		return nil
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	*to = d.Span()
	return nil
}

// mostWeight keeps sums of weights exact in JavaScript, too.
const mostWeight = 1_000_000_000
