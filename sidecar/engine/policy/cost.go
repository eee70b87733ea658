package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// costSum maximises the throughput per dollar, summed over the jobs as in the released code:
//
//	max Σ_m Σ_j throughput_mj / cost_j · X_mj
//
// The paper's fraction, costRatio, is optimal with only the job and model of the highest
// throughput per dollar, and leaves all others idle: costSum is the policy for use. A GPU's price
// counts for each GPU of the gang, and once for a pair.
func costSum(d *division) error {
	if err := d.cheapest(); err != nil {
		return err
	}
	d.objective = d.over(func(u use, speed float64) float64 { return speed / d.in.price(u) })
	return nil
}

// cheapest takes an answer with the maximum sum of throughputs per dollar.
func (d *division) cheapest() error {
	if d.in.plain() && !d.in.slo {
		return d.sell(func(m, model int) float64 {
			return d.in.p.Jobs[m].Speed[model] / d.in.price(use{a: m, model: model})
		})
	}
	v := d.solve(d.in.space(nil), nil)
	if err := v.deadlines(); err != nil {
		return err
	}
	if err := v.best(func(x way) float64 { return (x.speedA + x.speedB) / v.price(x) }); err != nil {
		return err
	}
	return v.rest()
}

// costRatio maximises throughput over cost (Gavel §4.2):
//
//	max Σ_m throughput(m, X) / Σ_m Σ_j cost_j X_mj
//
// by Dinkelbach's method: for a ratio R, max Σ throughput - R · Σ cost is above 0 while there is
// a better ratio, which its answer has. The last answer is, among the best, one with the maximum
// throughput.
func costRatio(d *division) error {
	v := d.solve(d.in.space(nil), nil)
	if err := v.deadlines(); err != nil {
		return err
	}
	for ratio := 0.0; ; {
		before := d.uses
		if err := v.best(func(x way) float64 { return x.speedA + x.speedB - ratio*v.price(x) }); err != nil {
			return err
		}
		steps, dollars := d.over(func(_ use, speed float64) float64 { return speed }), d.over(func(u use, _ float64) float64 { return d.in.price(u) })
		if dollars == 0 || steps/dollars <= ratio*(1+1e-9) {
			if before != nil {
				d.take(before)
			}
			d.objective = ratio
			return nil
		}
		ratio = steps / dollars
	}
}

// leastCost minimises the hourly cost of meeting the SLOs; jobs without one get nothing.
func leastCost(d *division) error {
	v := d.solve(d.in.space(nil), nil)
	if err := v.deadlines(); err != nil {
		return err
	}
	if err := v.best(func(x way) float64 { return -v.price(x) }); err != nil {
		return err
	}
	d.objective = d.over(func(u use, _ float64) float64 { return d.in.price(u) })
	return nil
}

// price gives the hourly cost of a way.
func (v *solver) price(x way) float64 { return v.d.in.p.Models[x.model].Price * v.gang(x) }

func (g *given) price(u use) float64 {
	return g.p.Models[u.model].Price * float64(g.p.Jobs[u.a].Gang)
}

// best maximises the sum of the ways' worth, and takes the answer.
func (v *solver) best(worth func(way) float64) error {
	largest := 0.0
	for _, x := range v.s.ways {
		largest = max(largest, math.Abs(worth(x)))
	}
	if largest == 0 {
		largest = 1
	}
	v.gain(func(x way) float64 { return worth(x) / largest })
	if err := v.run(); err != nil {
		return err
	}
	v.d.take(v.uses())
	return nil
}

// over sums of over the uses; speed is that of both jobs of a pair.
func (d *division) over(of func(u use, speed float64) float64) float64 {
	sum := 0.0
	d.shares()
	for _, u := range d.uses {
		x, y := d.in.speeds(u)
		sum += u.part * of(u, x+y)
	}
	return sum
}

// deadlines requires every job with an SLO to finish its steps in time (Gavel §4.2). If that is
// infeasible, the minimum number of jobs with the least slack is left out.
func (v *solver) deadlines() error {
	d := v.d
	if !d.in.slo {
		return nil
	}
	var jobs []int
	slack := make([]float64, len(d.in.p.Jobs)) // the time left after a job's run alone
	for m, j := range d.in.p.Jobs {
		if j.Within > 0 {
			jobs = append(jobs, m)
			slack[m] = math.Inf(-1)
			if d.in.top[m] > 0 {
				slack[m] = 1 - j.Steps/(v.most(m)*j.Within)
			}
		}
	}
	slices.SortStableFunc(jobs, func(a, b int) int { return cmp.Compare(slack[b], slack[a]) })
	keep := func(n int) {
		for i, m := range jobs {
			want := 0.0
			if i < n {
				want = d.in.p.Jobs[m].Steps / d.in.p.Jobs[m].Within
			}
			v.floor(m, want)
		}
	}
	v.gain(func(way) float64 { return 0 })
	v.add(v.absent())         // a pair may make it feasible
	n, over := 0, len(jobs)+1 // n can be met, over cannot
	for try := len(jobs); over-n > 1; try = (n + over) / 2 {
		keep(try)
		if v.p.Solve(lp.Dual) == nil {
			n = try
		} else {
			over = try
		}
	}
	keep(n)
	for _, m := range jobs[n:] {
		d.late = append(d.late, d.in.p.Jobs[m].ID)
	}
	slices.Sort(d.late)
	return nil
}
