package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/tests/traces"
)

// simulations measures fairlease simulate, with the product's settings: on one core on two
// weeks of two clusters, on two cores with every scheduler on one of them, and on one core
// on a year of a large cluster. The traces are not ours to ship: where FAIRLEASE_TRACES does
// not name a folder that has them, made-up ones of the same size stand for them, under
// other names.
func simulations() error {
	all, err := published(os.Getenv("FAIRLEASE_TRACES"))
	if err != nil {
		return err
	}
	long, err := year(cluster.Minute)
	if err != nil {
		return err
	}
	return measureAll(append(all, everybody(all[len(all)-1]), long))
}

// twoWeeks measures those of two weeks by the defaults alone.
func twoWeeks() error {
	all, err := published(os.Getenv("FAIRLEASE_TRACES"))
	if err != nil {
		return err
	}
	return measureAll(all)
}

// years measures those of a year: with a round a minute, and as often as by default.
func years() error {
	var all []simulation
	for _, interval := range []cluster.Span{cluster.Minute, experiment.Default().Settings.Interval} {
		x, err := year(interval)
		if err != nil {
			return err
		}
		all = append(all, x)
	}
	return measureAll(all)
}

func measureAll(all []simulation) error {
	for _, x := range all {
		if err := x.measure(); err != nil {
			return err
		}
	}
	return nil
}

// simulation is one that has a figure.
type simulation struct {
	name  string
	setup experiment.Setup
	by    []string // schedulers; nil = that of the setup
}

func (x *simulation) measure() error {
	setups := []experiment.Setup{x.setup}
	for i, name := range x.by {
		setups = append(setups[:i], x.setup)
		setups[i].Scheduler = name
	}
	cores := min(2, len(setups))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as fairlease simulate does
	debug.FreeOSMemory()
	if err := resetPeak(); err != nil {
		return err
	}
	begin := meter()
	results, err := experiment.All(context.Background(), setups, cores, nil)
	if err != nil {
		return err
	}
	took := meter().over(begin, 1)
	for i := range results {
		r := &results[i]
		fmt.Printf("%s on %s by %s, a round every %v: %d jobs, %d rounds; mean JCT %.0f s, in use %.1f %%, sharing loss %.2f %%, unfair hours %.2f %%\n",
			x.setup.Load.Name, x.setup.Fleet, r.Scheduler, x.setup.Settings.Interval, r.Jobs.Finished, r.Turns, r.Completion.Mean,
			100*r.Utilisation, 100*r.Loss.Share, 100*r.Periods[0].Ratio())
	}
	timed(x.name+"_s", took)
	figure(x.name+"_mib", peakMiB(), "MiB")
	if prefix, venus := strings.CutSuffix(x.name, "venus40_astraea"); venus {
		timed(prefix+"round_us", took.over(timing{}, results[0].Turns))
	}
	return nil
}

// everybody gives a simulation by all schedulers.
func everybody(x simulation) simulation {
	return simulation{strings.Replace(x.name, "astraea", "all", 1), x.setup, experiment.Schedulers()}
}

// year gives a million jobs in a year on 10,000 GPUs, with 65 % of them in use. Most jobs are
// small, but most of the GPU time goes to gangs on many nodes.
func year(interval cluster.Span) (simulation, error) {
	const jobs = 1_000_000
	r := trace.LikePhilly(1, jobs/(365*cluster.Day).Duration().Hours())
	r.Jobs, r.Tenants = jobs, trace.Shifts(20, 0.8)
	r.Durations = r.Durations[:5] // none of more than six days
	r.Sizes = []trace.Size{{GPUs: 1, Share: 58.5}, {GPUs: 4, Share: 5}, {GPUs: 8, Share: 20}, {GPUs: 16, Share: 6}, {GPUs: 32, Share: 4},
		{GPUs: 64, Share: 3}, {GPUs: 128, Share: 2}, {GPUs: 256, Share: 1.5}}
	made, err := trace.Generate(r)
	if err != nil {
		return simulation{}, err
	}
	s := experiment.Default()
	s.Settings.Interval = interval
	s.Settings = experiment.Fit(s.Settings)
	s.Load = experiment.Load{Name: "a made-up year", Jobs: made}
	s.Weights = experiment.EqualWeights(experiment.Survey(s.Load))
	s.Fleet, err = experiment.ParseFleet("1250x8")
	name := "sim_1m_jobs"
	if interval != cluster.Minute {
		name = fmt.Sprintf("%s_%ds", name, interval/cluster.Second)
	}
	return simulation{name, s, nil}, err
}

// published gives the simulations of the traces in a folder; without one those of what stands for them, under other names.
func published(dir string) ([]simulation, error) {
	prefix := "sim_"
	if dir == "" {
		prefix = "sim_like_"
		fmt.Println("simulate, one core: made-up jobs; set FAIRLEASE_TRACES to a folder with philly_2w_most_demand.csv.gz, venus_2w.csv.gz and venus_tenants.csv for the real ones")
	} else {
		fmt.Println("simulate, one core: the traces in", dir)
	}
	var out []simulation
	for _, x := range []traces.Scene{traces.Philly(64), traces.Venus(40)} {
		s, err := x.MadeUp()
		if dir != "" {
			s, err = x.Setup(dir)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, simulation{prefix + x.Name + "_astraea", s, nil})
	}
	return out, nil
}
