package remark

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

// measure is a rate of work of a job.
type measure int

// The measures, the most telling one first. Utilization is none of drift: it says only that some kernel ran.
const (
	steps measure = iota
	tensor
	dram
	pcie
	util
	measures
)

// counted are the measures that counters give: the meaning, and the least value that is told from noise.
var counted = [measures]struct {
	meaning gpu.Meaning
	least   float64
	name    string
}{
	steps:  {name: "speed"},
	tensor: {gpu.Tensor, 0.005, "tensor activity"},
	dram:   {gpu.DRAM, 0.005, "memory activity"},
	pcie:   {gpu.PCIeRX, 1e6, "PCIe read rate"},
	util:   {gpu.Util, 0.01, "utilization"},
}

// of gives the mean over a job's GPUs; NaN = some lack it. Steps are no counter.
func (m measure) of(seen []*gpu.GPU) float64 {
	if m == steps || len(seen) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, g := range seen {
		sum += g.Values[counted[m].meaning]
	}
	return sum / float64(len(seen))
}

// words gives a value of the measure.
func (m measure) words(x float64) string {
	switch m {
	case steps:
		return round(x) + " steps/s"
	case pcie:
		return round(x/1e6) + " MB/s"
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

// The baseline of a type settles with ten jobs, the one of an attempt in two hours; it begins anew eight hours after a
// change. A job counts for its type after oneJob blocks.
var (
	jobs   = settling{least: 10, patience: 10, most: 50}
	blocks = settling{least: 24, patience: 96, most: 200}
)

const oneJob = 6

// subject is what a baseline is of.
type subject struct {
	kind    cluster.JobType
	model   string
	measure measure
}

// kind is what is usual for a type.
type kind struct {
	level
	at cluster.Instant // of the newest job
}

// Baseline is what is usual for jobs of a type on a GPU model: the mean and spread of the logarithm of a measure over
// jobs.
type Baseline struct {
	Type    cluster.JobType
	Model   string
	Measure string
	cluster.Level
	Apart int             // newest jobs in a row that were far off
	At    cluster.Instant // of the newest job
}

// baseline gives what is usual for a job: for its type, else for the attempt itself; nil = that has not settled.
func (j *Judge) baseline(x *job, m measure) (l *level, words string) {
	if k := j.usual[subject{x.holder.Type, x.model, m}]; x.holder.Typed && k != nil && k.Jobs >= jobs.least {
		return &k.level, fmt.Sprintf("of %d jobs of its type on %s", k.Jobs, x.model)
	}
	if x.own[m].Jobs >= blocks.least {
		return &x.own[m], "of the job itself"
	}
	return nil, ""
}

// drift compares a block's measures with the baselines, and learns from them. Of a job that reports steps, only these
// count: its activity may change with the data.
func (j *Judge) drift(x *job, report cluster.Progress) {
	b := &x.block
	if b.quiet {
		x.steps = cluster.Progress{} // the steps of this block took longer
	}
	rate := x.rate(report)
	if b.looks < 2 || 2*b.looks <= b.all {
		return
	}
	drifts, reports := false, x.steps.At > 0
	for m := range util {
		v := rate
		if m != steps {
			v = math.Log(b.means[m].value())
		}
		s := &x.drifts[m]
		if v >= math.Log(counted[m].least) {
			base, where := j.baseline(x, m)
			off := 0.0
			if base != nil {
				off = v - base.Mean
			}
			s.next(base != nil && base.far(v), off > 0, b.from)
			if s.blocks >= lasting && !drifts && (m == steps || !reports) {
				j.stand(x, gpu.Remark{Kind: Drift, GPU: -1, Since: s.since, Text: fmt.Sprintf("its %s has been %s since %s, %.2f times the usual %s (%s)",
					counted[m].name, m.words(math.Exp(v)), clock(s.since), math.Exp(off), m.words(math.Exp(base.Mean)), where)})
			}
			x.own[m].add(v, blocks)
		}
		drifts = drifts || s.blocks >= lasting && (m == steps || !reports)
	}
	if !drifts {
		x.end(Drift)
	}
}

// rate gives the logarithm of the steps/s since the report that was used last; NaN = there is no newer one.
func (x *job) rate(report cluster.Progress) float64 {
	last := x.steps
	if report.At <= last.At {
		return math.NaN()
	}
	x.steps = report
	rate := (report.Steps - last.Steps) / max(report.At.Sub(last.At), 1).Duration().Seconds()
	if last.At == 0 || !(rate > 0) {
		return math.NaN()
	}
	return math.Log(rate)
}

// learn takes an attempt that is over into the baselines of its type.
func (j *Judge) learn(now cluster.Instant, x *job) {
	for m := range util {
		if x.own[m].Jobs < oneJob || !x.holder.Typed || x.model == "" {
			continue
		}
		if j.usual == nil {
			j.usual = map[subject]*kind{}
		}
		of := subject{x.holder.Type, x.model, m}
		if j.usual[of] == nil {
			j.usual[of] = &kind{}
		}
		j.usual[of].add(x.own[m].Mean, jobs)
		j.usual[of].at = now
	}
}

// Baselines gives what is usual for types of jobs, by type, model and measure.
func (j *Judge) Baselines() []Baseline {
	out := make([]Baseline, 0, len(j.usual))
	for of, k := range j.usual {
		out = append(out, Baseline{of.kind, of.model, counted[of.measure].name, k.Level, k.apart, k.at})
	}
	slices.SortFunc(out, func(a, b Baseline) int {
		return cmp.Or(a.Type.Compare(b.Type), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Measure, b.Measure))
	})
	return out
}

// Recall gives the judge the baselines of an earlier one. Measures that it does not know are left out.
func (j *Judge) Recall(list []Baseline) {
	j.usual = map[subject]*kind{}
	for _, b := range list {
		for m := range util {
			if counted[m].name == b.Measure {
				j.usual[subject{b.Type, b.Model, m}] = &kind{level{b.Level, b.Apart}, b.At}
			}
		}
	}
}
