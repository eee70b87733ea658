package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options are choices that the paper leaves open.
type Options struct {
	// Eligible makes X_equal (§4.1) an equal share of the models on which a job can run.
	// Otherwise it is one of all models, as in the paper, including unusable ones.
	Eligible bool
	// Whole gives CLP the programs as written: every job and every pair separately, all at once,
	// and no second objective. It serves comparisons: the smallest level is the same.
	Whole bool
}

// objective is a policy of Gavel's Table 1.
type objective struct {
	divide func(*division) error
	needs  needs
	blind  bool // every job is as fast on each model as on its fastest
	slo    bool // Job.Within is kept
	fifo   bool // inside of every entity
}

// objectives by name. The -blind ones are the baselines of §7: they see GPUs, no models.
var objectives = map[string]objective{
	"las":               {divide: las},
	"las-blind":         {divide: las, blind: true},
	"ftf":               {divide: ftf, needs: needs{steps: true}},
	"ftf-blind":         {divide: ftf, needs: needs{steps: true}, blind: true},
	"fifo":              {divide: fifo},
	"fifo-blind":        {divide: fifo, blind: true},
	"sjf":               {divide: sjf, needs: needs{steps: true}},
	"makespan":          {divide: makespan, needs: needs{steps: true}},
	"makespan-blind":    {divide: makespan, needs: needs{steps: true}, blind: true},
	"throughput":        {divide: throughput},
	"throughput-slo":    {divide: throughput, slo: true},
	"cost-sum":          {divide: costSum, needs: needs{prices: true}},
	"cost-sum-slo":      {divide: costSum, needs: needs{prices: true}, slo: true},
	"cost":              {divide: costRatio, needs: needs{prices: true}},
	"cost-slo":          {divide: costRatio, needs: needs{prices: true}, slo: true},
	"cost-least-slo":    {divide: leastCost, needs: needs{prices: true}, slo: true},
	"hierarchical":      {divide: hierarchical, needs: needs{entities: true}},
	"hierarchical-fifo": {divide: hierarchical, needs: needs{entities: true}, fifo: true},
}

// Names lists the policies that Gavel knows.
func Names() []string { return slices.Sorted(maps.Keys(objectives)) }

// Gavel divides the time of the jobs over the models by the named objective (Gavel §4). A job
// that can run on no model gets nothing, and changes nothing for the others. If the program has
// no optimum, Shares are all jobs' fixed shares, and Why says why. The error is a *Fault if a
// number of the problem is invalid.
//
// The same problem gives the same shares, to the bit.
func Gavel(name string, p Problem, o Options) (Shares, error) {
	obj, ok := objectives[name]
	if !ok {
		return Shares{}, fmt.Errorf("no policy %q; there are %s", name, strings.Join(Names(), ", "))
	}
	if err := p.check(obj.needs, obj.slo); err != nil {
		return Shares{}, err
	}
	if obj.blind {
		p = blind(p)
	}
	if obj.fifo {
		p.Entities = slices.Clone(p.Entities)
		for i := range p.Entities {
			p.Entities[i].FIFO = true
		}
	}
	d := newDivision(p, o, obj.slo)
	err := obj.divide(d)
	d.keep(nil)
	if err != nil {
		d.take(d.in.fixed(nil))
		d.objective, d.late = 0, nil
	}
	s := d.shares()
	if err != nil {
		s.Why = fmt.Sprintf("fixed shares: the program of %s has no answer: %v", name, err)
	}
	return s, nil
}

// blind is the problem as seen by a policy without models: all models on which a job can run are
// like its fastest.
func blind(p Problem) Problem {
	p.Jobs = slices.Clone(p.Jobs)
	for m := range p.Jobs {
		j := &p.Jobs[m]
		j.Speed, j.Apart = level(j.Speed), level(j.Apart)
	}
	p.Pairs = slices.Clone(p.Pairs)
	for i := range p.Pairs {
		q := &p.Pairs[i]
		q.SpeedA, q.SpeedB = level(q.SpeedA), level(q.SpeedB)
	}
	return p
}

// level gives the largest wherever there is any.
func level(speed []float64) []float64 {
	if speed == nil {
		return nil
	}
	out := make([]float64, len(speed))
	for j, v := range speed {
		if v > 0 {
			out[j] = slices.Max(speed)
		}
	}
	return out
}
