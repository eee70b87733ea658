package main

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/fairlease/fairlease/research/gavel"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// gavelData is where the authors' table and jobs are, from the root of the repository.
const gavelData = "sidecar/sim/trace/testdata/gavel"

// prices is what Gavel's cost policies go by: dollars of a GPU and hour, Google's of then.
var prices = map[string]float64{"v100": 2.48, "p100": 1.46, "k80": 0.45}

// lab is what Gavel's experiments have in common.
type lab struct {
	table  *trace.Throughputs
	beside sim.Beside
	fleet  experiment.Fleet
}

// onGavel repeats Gavel's simulated experiments (§7.3) on 36 GPUs of each model; of = one of them, or all.
func onGavel(of string, seed uint64) error {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	table, err := trace.OpenThroughputs(filepath.Join(gavelData, "simulation_throughputs.json.gz"))
	if err != nil {
		return err
	}
	l := lab{table: table, beside: experiment.BesideOf(table, trace.GavelReference)}
	if l.fleet, err = experiment.ParseFleet(gavel.Fleet); err != nil {
		return err
	}
	experiments := []struct {
		name string
		run  func() error
	}{
		{"single", func() error {
			return l.steady("single", []float64{2.8, 4.4, 5.6}, "fifo:random", "fifo:settled", "fifo:fastest", "gavel:las", "gavel:las-blind")
		}},
		{"idle", func() error {
			if err := l.steady("single", []float64{0.4}, "fifo:fastest", "gavel:las", "las:interior"); err != nil {
				return err
			}
			return l.steady("multiple", []float64{0.4, 1, 2}, "gavel:las", "las:interior")
		}},
		{"single+ss", func() error { return l.steady("single", []float64{5.6}, "gavel:las+ss", "gandiva:packing") }},
		{"multiple", func() error { return l.steady("multiple", []float64{1, 2, 2.6}, "gavel:las", "gavel:las-blind") }},
		{"multiple+ss", func() error { return l.steady("multiple", []float64{2.6}, "gavel:las+ss", "gandiva:packing") }},
		{"ftf", func() error { return l.steady("multiple", []float64{2.6}, "gavel:ftf", "gavel:ftf-blind") }},
		{"makespan", func() error {
			return l.makespan(700, "fifo:random", "fifo:settled", "fifo:fastest", "gavel:makespan", "gandiva:packing")
		}},
		{"makespan+ss", func() error { return l.makespan(300, "gavel:makespan+ss") }},
		{"estimates", l.estimates},
		{"cost", func() error { return l.costs(seed) }},
	}
	known := false
	for _, x := range experiments {
		if of == x.name || of == "all" {
			known = true
			if err := x.run(); err != nil {
				return err
			}
		}
	}
	if !known {
		return fmt.Errorf("-gavel %s is not known; write all, single, idle, single+ss, multiple, multiple+ss, ftf, makespan, makespan+ss, estimates or cost", of)
	}
	return nil
}

// stream gives the authors' own jobs.
func (l *lab) stream(name string, perHour float64) (experiment.Load, error) {
	t, err := trace.Open(filepath.Join(gavelData, "gavel_trace_"+name+"_seed0.csv.gz"), trace.Options{Throughputs: l.table, PerHour: perHour})
	if err != nil {
		return experiment.Load{}, err
	}
	return experiment.Of(t), nil
}

func (l *lab) setup(by string, load experiment.Load) experiment.Setup {
	s := gavel.Setup(by, load, l.fleet, experiment.SpeedsOf(l.table, trace.GavelReference))
	s.Beside = l.beside
	return s
}

// steady gives the mean hours of jobs 4000 to 5000 and their finish-time fairness (Figures 9 to 11).
func (l *lab) steady(name string, rates []float64, by ...string) error {
	fmt.Printf("\ncontinuous-%s\n\n| scheduler | jobs an hour | mean JCT h | finish-time fairness |\n|---|---|---|---|\n", name)
	type run struct {
		by      string
		perHour float64
	}
	var runs []run
	for _, b := range by {
		for _, r := range rates {
			runs = append(runs, run{b, r})
		}
	}
	return sideBySide(runs, func(r run) (string, error) {
		load, err := l.stream(name, r.perHour)
		if err != nil {
			return "", err
		}
		s := l.setup(r.by, load)
		f, err := gavel.Follow(context.Background(), s, 4000, 5000)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("| %s | %v | %.2f | %.2f |\n", r.by, r.perHour, f.Hours(), f.Fairness(&s)), nil
	})
}

// makespan gives the hours until the first so many jobs are done that are all there from the start, for every hundred up to most.
func (l *lab) makespan(most int, by ...string) error {
	fmt.Print("\nstatic-multiple\n\n| scheduler | jobs | makespan h |\n|---|---|---|\n")
	type run struct {
		by   string
		jobs int
	}
	var runs []run
	for _, b := range by {
		for n := 100; n <= most; n += 100 {
			runs = append(runs, run{b, n})
		}
	}
	return sideBySide(runs, func(r run) (string, error) {
		load, err := l.stream("multiple", 1)
		if err != nil {
			return "", err
		}
		load.Jobs = atOnce(load.Jobs, r.jobs)
		f, err := gavel.Follow(context.Background(), l.setup(r.by, load), 0, r.jobs)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("| %s | %d | %.0f |\n", r.by, r.jobs, f.Until.Duration().Hours()), nil
	})
}

// estimates gives the mean hours of jobs 200 to 700 of continuous-single on four GPUs of each model (Figure 16): where nobody
// shares GPUs, where what pairs do is known, and where it is estimated until they have met.
func (l *lab) estimates() error {
	fleet, err := experiment.ParseFleet("1x4:v100+1x4:p100+1x4:k80")
	if err != nil {
		return err
	}
	expected, err := gavel.Estimate(l.table, trace.GavelReference, "p100", 5)
	if err != nil {
		return err
	}
	fmt.Print("\nestimates\n\n| scheduler | pairs | jobs an hour | mean JCT h |\n|---|---|---|---|\n")
	type run struct {
		by, pairs string
		expected  sim.Beside
		perHour   float64
	}
	var runs []run
	for _, perHour := range []float64{0.4, 0.6, 0.8} {
		runs = append(runs, run{"gavel:las", "-", nil, perHour}, run{"gavel:las+ss", "known", nil, perHour},
			run{"gavel:las+ss", "estimated", expected, perHour})
	}
	return sideBySide(runs, func(r run) (string, error) {
		load, err := l.stream("single", r.perHour)
		if err != nil {
			return "", err
		}
		s := l.setup(r.by, load)
		s.Fleet, s.Expected = fleet, r.expected
		f, err := gavel.Follow(context.Background(), s, 200, 700)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("| %s | %s | %v | %.2f |\n", r.by, r.pairs, r.perHour, f.Hours()), nil
	})
}

// atOnce gives the first jobs, all of them there from the start.
func atOnce(jobs iter.Seq[trace.Job], n int) iter.Seq[trace.Job] {
	first := slices.Collect(jobs)[:n]
	for i := range first {
		first[i].Submit = 0
	}
	return slices.Values(first)
}

// costs is §7.3's: 500 jobs of ResNet-50 and A3C, of half a day to eight days, to be done within 1.2, 2 or 10
// times that. The paper does not say how often one comes: here one in two hours, so that nobody has to wait for GPUs.
func (l *lab) costs(seed uint64) error {
	fmt.Print("\ncost\n\n| scheduler | dollars | late % |\n|---|---|---|\n")
	rng := rand.New(rand.NewPCG(seed, 500))
	kinds := []string{"A3C"}
	for _, batch := range []int{16, 32, 64, 128} {
		kinds = append(kinds, fmt.Sprintf("ResNet-50 (batch size %d)", batch))
	}
	var jobs []trace.Job
	within, at := map[string]cluster.Span{}, 0.0
	for i := range 500 {
		j := trace.Job{ID: strconv.Itoa(i), Tenant: "all", GPUs: 1, Submit: cluster.Span(at * float64(cluster.Hour)),
			Kind: kinds[0], Runs: cluster.Day / 2 << rng.IntN(5), Outcome: trace.Completed}
		if rng.IntN(2) == 0 {
			j.Kind = kinds[1+rng.IntN(4)]
		}
		within[j.ID] = cluster.Span([]float64{1.2, 2, 10}[rng.IntN(3)] * float64(j.Runs))
		jobs, at = append(jobs, j), at+2*rng.ExpFloat64()
	}
	return sideBySide([]string{"gavel:throughput", "gavel:cost-sum", "gavel:cost-sum-slo"}, func(by string) (string, error) {
		s := l.setup(by, experiment.Load{Name: "costs", Jobs: slices.Values(jobs)})
		s.Prices, s.Within = prices, within
		f, err := gavel.Follow(context.Background(), s, 0, len(jobs))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("| %s | %.0f | %.1f |\n", by, f.Dollars(prices), 100*f.Late(within)), nil
	})
}

// sideBySide runs all on as many cores as there are, and prints what each gives in their order.
func sideBySide[T any](runs []T, one func(T) (string, error)) error {
	type line struct {
		text string
		err  error
	}
	lines := make([]chan line, len(runs))
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, r := range runs {
		lines[i] = make(chan line, 1)
		go func() {
			room <- struct{}{}
			text, err := one(r)
			<-room
			lines[i] <- line{text, err}
		}()
	}
	for _, c := range lines {
		l := <-c
		if l.err != nil {
			return l.err
		}
		fmt.Print(l.text)
	}
	return nil
}
