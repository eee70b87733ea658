package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// plainly draws a problem of jobs alone.
func plainly(t *rapid.T) Problem {
	p := drawn(t)
	p.Pairs = nil
	for m := range p.Jobs {
		p.Jobs[m].Apart = nil
	}
	return p
}

// A division by prices is worth as much as CLP's.
func TestSalesAreWorthWhatCLPFinds(t *testing.T) {
	needsCLP(t)
	for name, worth := range map[string]func(d *division, m, j int) float64{
		"throughput": func(d *division, m, j int) float64 { return d.in.p.Jobs[m].Speed[j] },
		"cost-sum": func(d *division, m, j int) float64 {
			return d.in.p.Jobs[m].Speed[j] / d.in.price(use{a: m, model: j})
		},
		"fifo": func(d *division, m, j int) float64 {
			return float64(len(d.in.p.Jobs)-m) * d.in.p.Jobs[m].Speed[j] / max(d.in.top[m], 1)
		},
		"trifles": func(d *division, m, j int) float64 { return math.Pow(10, -3*float64(m)) * d.in.p.Jobs[m].Speed[j] },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				d := newDivision(plainly(t), Options{}, false)
				defer d.keep(nil)
				l := d.lot()
				if err := l.sell(func(m, j int) float64 { return worth(d, m, j) }); err != nil {
					t.Fatal(err)
				}
				got, largest, k := 0.0, 0.0, len(d.in.p.Models)
				for i, x := range l.x {
					got += x * worth(d, i/k, i%k)
					largest = max(largest, worth(d, i/k, i%k))
				}
				unseen := 0.0 // by CLP, which treats such reduced costs as zero
				for i := range l.x {
					if w := worth(d, i/k, i%k); w < 1e-7*largest {
						unseen += w
					}
				}
				want := d.judged(t, func(m, j int) float64 { return worth(d, m, j) })
				if got < want*(1-1e-9) || got > want*(1+1e-9)+unseen {
					t.Fatalf("%.12g, and %.12g by CLP", got, want)
				}
			})
		})
	}
}

// judged gives the largest sum by CLP. Where floors of throughputs are given, by job, they are kept.
func (d *division) judged(t *rapid.T, worth func(m, j int) float64, floors ...float64) float64 {
	v := d.solve(d.in.space(nil), nil)
	largest := 1e-30
	for _, x := range v.s.ways {
		largest = max(largest, worth(x.a, x.model))
	}
	v.gain(func(x way) float64 { return worth(x.a, x.model) / largest })
	for m, floor := range floors {
		v.floor(m, floor)
	}
	if err := v.run(); err != nil {
		t.Fatal(err)
	}
	return v.p.Objective() * largest
}

// The shortest job has all that it can use, and the others are as well off as CLP finds; what a little less of the first
// would buy them does not count.
func TestShortestFirstIsAsCLPHasIt(t *testing.T) {
	needsCLP(t)
	rapid.Check(t, func(t *rapid.T) {
		p := plainly(t)
		got := solved2(t, "sjf", p)
		d := newDivision(p, Options{}, false)
		defer d.keep(nil)
		first, shortest := -1, math.Inf(1)
		for m, j := range p.Jobs {
			if _, throughput, _ := d.lot().solo(m); throughput > 0 && j.Steps/throughput < shortest {
				first, shortest = m, j.Steps/throughput
			}
		}
		if first < 0 {
			return
		}
		if math.Abs(got.Objective-shortest) > 1e-8*shortest {
			t.Fatalf("the shortest takes %v, not %v", got.Objective, shortest)
		}
		order := make([]int, len(p.Jobs))
		for m := range order {
			order[m] = m
		}
		slices.SortStableFunc(order, func(a, b int) int {
			one, other := math.Inf(1), math.Inf(1)
			if d.in.top[a] > 0 {
				_, x, _ := d.lot().solo(a)
				one = p.Jobs[a].Steps / x
			}
			if d.in.top[b] > 0 {
				_, x, _ := d.lot().solo(b)
				other = p.Jobs[b].Steps / x
			}
			return cmp.Compare(one, other)
		})
		gain := d.in.queued(order)
		sum := func(part float64) float64 {
			floors := make([]float64, len(p.Jobs))
			floors[first] = p.Jobs[first].Steps / shortest * (1 - part)
			return d.judged(t, func(m, j int) float64 { return gain[m] * p.Jobs[m].Speed[j] }, floors...)
		}
		now, want := 0.0, sum(1e-9)
		for m, x := range achieved(p, got) {
			now += gain[m] * x
		}
		rounding := sum(2e-9) - want
		for m := range p.Jobs { // to grains
			rounding += gain[m] * d.in.top[m] * float64(len(p.Models)) / grain
		}
		if math.Abs(now-want) > 1e-9*want+4*rounding {
			t.Fatalf("%.12g, and %.12g by CLP", now, want)
		}
	})
}

func TestNothingOfUseIsIdle(t *testing.T) {
	for _, name := range []string{"fifo", "fifo-blind", "sjf", "throughput", "cost-sum"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := plainly(t)
				if idle := idle(p, solved2(t, name, p)); idle != "" {
					t.Fatal(idle)
				}
			})
		})
	}
}

// idle says which job could use what lies idle, by more than rounding to grains explains.
func idle(p Problem, s Shares) string {
	n, k := len(p.Jobs), len(p.Models)
	time, gpus := make([]float64, n), make([]float64, k)
	for m, row := range s.Time {
		for j, x := range row {
			time[m] += x
			gpus[j] += x * float64(p.Jobs[m].Gang)
		}
	}
	for m, j := range p.Jobs {
		for i, v := range j.Speed {
			grains := 2 * float64(n) / grain
			if left := p.Models[i].GPUs - gpus[i]; v > 0 && time[m] < 1-grains && left > grains*float64(j.Gang) {
				return fmt.Sprintf("job %d runs %v of its time, and %v GPUs of model %d are idle", m, time[m], left, i)
			}
		}
	}
	return ""
}
