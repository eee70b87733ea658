package policy

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawn is a problem with jobs of all sorts: gangs, weights, models that they cannot run
// on, some that run nowhere, steps, SLOs, entities, pairs, gangs apart.
func drawn(t *rapid.T) Problem {
	k := rapid.IntRange(1, 4).Draw(t, "models")
	n := rapid.IntRange(0, 9).Draw(t, "jobs")
	number := rapid.Map(rapid.IntRange(1, 400), func(x int) float64 { return float64(x) / 20 })
	var p Problem
	for range k {
		p.Models = append(p.Models, Model{Name: "m", GPUs: float64(rapid.IntRange(1, 6).Draw(t, "gpus")), Price: number.Draw(t, "price")})
	}
	for e := range 3 {
		p.Entities = append(p.Entities, Entity{Weight: number.Draw(t, "weight"), FIFO: e == 1})
	}
	for m := range n {
		j := Job{ID: int64(10 + m), Gang: 1 << rapid.IntRange(0, 2).Draw(t, "gang"), Weight: number.Draw(t, "weight"),
			Steps: 100 * number.Draw(t, "steps"), Elapsed: 10 * number.Draw(t, "elapsed"), ElapsedAlone: 10 * number.Draw(t, "alone"),
			Entity: rapid.IntRange(0, 2).Draw(t, "entity"), Speed: make([]float64, k)}
		if rapid.Bool().Draw(t, "slo") {
			j.Within = 100 * number.Draw(t, "within")
		}
		apart := rapid.IntRange(0, 3).Draw(t, "apart") == 0
		if apart {
			j.Apart = make([]float64, k)
		}
		for i := range k {
			if rapid.IntRange(0, 4).Draw(t, "runs") > 0 {
				j.Speed[i] = number.Draw(t, "speed")
				if apart {
					j.Apart[i] = j.Speed[i] * rapid.SampledFrom([]float64{0, .5, 1, 1.25}).Draw(t, "apart")
				}
			}
		}
		p.Jobs = append(p.Jobs, j)
	}
	if rapid.Bool().Draw(t, "confined") {
		p.Models[0].Together = new(p.Models[0].GPUs * float64(rapid.IntRange(0, 1).Draw(t, "half")) / 2)
	}
	p.Pairs = pairsOf(t, p.Jobs)
	return p
}

// pairsOf draws pairs of jobs.
func pairsOf(t *rapid.T, jobs []Job) (out []Pair) {
	for b := range jobs {
		for a := range b {
			x, y := jobs[a], jobs[b]
			if x.Gang != y.Gang || rapid.Bool().Draw(t, "pair") {
				continue
			}
			q := Pair{A: a, B: b, SpeedA: make([]float64, len(x.Speed)), SpeedB: make([]float64, len(x.Speed))}
			for i := range x.Speed {
				f := rapid.SampledFrom([]float64{0, .4, .6, .9, 1}).Draw(t, "beside")
				if x.Speed[i] > 0 && y.Speed[i] > 0 {
					q.SpeedA[i], q.SpeedB[i] = f*x.Speed[i], f*y.Speed[i]
				}
			}
			out = append(out, q)
		}
	}
	return out
}

// Every policy gives feasible shares of any sane problem, has an optimum, and gives the same bits again.
func TestEveryPolicyIsFeasibleAndRepeats(t *testing.T) {
	needsCLP(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		for _, name := range Names() {
			s := solved2(t, name, p)
			if again := solved2(t, name, p); !reflect.DeepEqual(s, again) {
				t.Fatalf("%s: another answer the second time", name)
			}
		}
	})
}

func solved2(t *rapid.T, name string, p Problem) Shares {
	s, err := Gavel(name, p, Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if why := infeasible(p, s) + s.Why; why != "" {
		t.Fatalf("%s: %s", name, why)
	}
	if len(s.Time) != len(p.Jobs) || math.IsNaN(s.Objective) || math.IsInf(s.Objective, 0) {
		t.Fatalf("%s: %d rows, objective %v", name, len(s.Time), s.Objective)
	}
	return s
}

// Gavel §4.4, sharing incentive: 1/n of every model for everybody is feasible, so the objective is
// at least as good as that.
func TestSharingIncentive(t *testing.T) {
	needsCLP(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		d := newDivision(p, Options{}, false)
		las, ftf, makespan := math.Inf(1), 0.0, 0.0
		need := d.in.ones(true)
		for m, j := range p.Jobs {
			if d.in.top[m] == 0 {
				continue
			}
			alone := d.in.alone(m)
			if j.Apart != nil && p.Models[0].Together != nil {
				return // an nth of confined GPUs is not an nth of all
			}
			las = min(las, alone/need[m])
			ftf = max(ftf, (j.Elapsed+j.Steps/alone)/(j.ElapsedAlone+j.Steps/alone))
			makespan = max(makespan, j.Steps/alone)
		}
		if makespan == 0 {
			return
		}
		if got := solved2(t, "las", p).Objective; got < las*(1-1e-6) {
			t.Fatalf("las: %v, isolated %v", got, las)
		}
		if got := solved2(t, "ftf", p).Objective; got > ftf*(1+1e-6) {
			t.Fatalf("ftf: %v, isolated %v", got, ftf)
		}
		if got := solved2(t, "makespan", p).Objective; got > makespan*(1+1e-6) {
			t.Fatalf("makespan: %v, isolated %v", got, makespan)
		}
	})
}

// Gavel §4.4, Pareto efficiency: no throughput can rise without lowering another. A program
// searches for the maximum of all throughputs together, relative to each job's fastest, without a
// loser.
func TestParetoEfficiency(t *testing.T) {
	needsCLP(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		for _, name := range []string{"las", "makespan"} {
			efficient(t, name, p, solved2(t, name, p))
		}
	})
}

// efficient fails if somebody could have more with nobody worse off.
func efficient(t *rapid.T, name string, p Problem, s Shares) {
	before := 0.0
	most := func(part float64) float64 { // with nobody below by more than a part
		before = 0
		d := newDivision(p, Options{}, false)
		defer d.keep(nil)
		v := d.solve(d.in.space(nil), nil)
		v.add(v.absent())
		gain := make([]float64, len(p.Jobs))
		for m, x := range achieved(p, s) {
			if d.in.top[m] > 0 {
				gain[m] = 1 / d.in.top[m]
				before += x / d.in.top[m]
			}
			v.floor(m, x*(1-part))
		}
		if err := v.total(gain); err != nil {
			t.Fatal(err)
		}
		return d.sum(gain)
	}
	// A little of a job that is slow everywhere may buy thousands of times as much of others: what
	// rounding of all throughputs buys does not count.
	after := most(1e-9)
	if rounding := most(2e-9) - after; after > before+1e-4+10*rounding {
		t.Fatalf("%s: %v of all can be %v with nobody worse off", name, before, after)
	}
}

// Pairs, and jobs that are alike sharing a row, change nothing but the time that it takes: the
// whole program has the same optimum.
func TestPairsAndRowsAreExact(t *testing.T) {
	needsCLP(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		// Some jobs twice, pairs and all.
		n := len(p.Jobs)
		copies := min(n, rapid.IntRange(0, 4).Draw(t, "copies"))
		for m := range copies {
			j := p.Jobs[m]
			j.ID = int64(100 + m)
			p.Jobs = append(p.Jobs, j)
		}
		for _, q := range p.Pairs {
			if q.A < copies {
				p.Pairs = append(p.Pairs, Pair{A: q.B, B: n + q.A, SpeedA: q.SpeedB, SpeedB: q.SpeedA})
			}
			if q.B < copies {
				p.Pairs = append(p.Pairs, Pair{A: q.A, B: n + q.B, SpeedA: q.SpeedA, SpeedB: q.SpeedB})
			}
			if q.B < copies {
				p.Pairs = append(p.Pairs, Pair{A: n + q.A, B: n + q.B, SpeedA: q.SpeedA, SpeedB: q.SpeedB})
			}
		}
		for _, name := range []string{"las", "makespan", "ftf"} {
			s := solved2(t, name, p)
			whole, err := Gavel(name, p, Options{Whole: true})
			if err != nil || whole.Why != "" {
				t.Fatal(err, whole.Why)
			}
			// Some of these jobs need 1e-4 of the time or less, and shares are told to 1e-9.
			if math.Abs(s.Objective-whole.Objective) > 1e-5*whole.Objective {
				t.Fatalf("%s: %v, as a whole %v", name, s.Objective, whole.Objective)
			}
		}
	})
}

// An nth of the cluster for each job cannot be had where half of the GPUs are too far apart: then the least finish-time
// fairness is above 1, and everybody's is the least that is possible.
func TestFinishTimeFairnessWhereNthsDoNotFit(t *testing.T) {
	needsCLP(t)
	j := Job{Gang: 1, Weight: 1, Speed: []float64{.05}, Steps: 5, Elapsed: .5, ElapsedAlone: .5}
	one, two := j, j
	one.Apart, two.Gang = []float64{0}, 2
	p := Problem{Models: []Model{{Name: "m", GPUs: 1, Together: new(.5)}}, Jobs: []Job{one, two, one}}
	for i := range p.Jobs {
		p.Jobs[i].ID = int64(1 + i)
	}
	for _, whole := range []bool{false, true} {
		s, err := Gavel("ftf", p, Options{Whole: whole})
		if err != nil {
			t.Fatal(err)
		}
		// A quarter of the time each for the two jobs that must be together, who would have a third alone.
		if want := (.5 + 5/(.05*.25)) / (.5 + 5/(.05/3)); math.Abs(s.Objective-want) > 1e-6 {
			t.Errorf("as a whole %t: finish-time fairness %v, want %v (%v)", whole, s.Objective, want, s.Time)
		}
	}
}

// A kind of three jobs that pair within and with another kind of two: all five in two rows.
func TestAlikeJobsShareARow(t *testing.T) {
	needsCLP(t)
	fast, slow := []float64{4, 2}, []float64{2, 2}
	p := Problem{Models: gpus(1, 1), Jobs: jobs(fast, fast, slow, fast, slow)}
	kind := []int{0, 0, 1, 0, 1}
	for b := range kind {
		for a := range b {
			q := Pair{A: a, B: b, SpeedA: []float64{3, 0}, SpeedB: []float64{3, 0}}
			if kind[a] != kind[b] {
				q.SpeedA, q.SpeedB = []float64{3.5, 0}, []float64{1.5, 0}
				if kind[a] == 1 {
					q.SpeedA, q.SpeedB = q.SpeedB, q.SpeedA
				}
			} else if kind[a] == 1 {
				q.SpeedA, q.SpeedB = []float64{1, 1}, []float64{1, 1}
			}
			p.Pairs = append(p.Pairs, q)
		}
	}
	key := func(int) []float64 { return nil }
	d := newDivision(p, Options{}, false)
	if rows := d.in.space(key).rows; !reflect.DeepEqual(rows, [][]int{{0, 1, 3}, {2, 4}}) {
		t.Errorf("rows %v", rows)
	}
	s := solved(t, "las", p)
	whole, err := Gavel("las", p, Options{Whole: true})
	if err != nil || math.Abs(whole.Objective-s.Objective) > 1e-8 {
		t.Errorf("%v, as a whole %v (%v)", s.Objective, whole.Objective, err)
	}
	// One pair that differs, and its rows fall apart.
	p.Pairs[0].SpeedA = []float64{3.9, 0}
	d = newDivision(p, Options{}, false)
	if rows := d.in.space(key).rows; len(rows) != 4 {
		t.Errorf("with an odd pair: rows %v", rows)
	}
}

// sane is a problem that all policies take.
func sane() Problem {
	p := Problem{Models: gpus(2, 3), Jobs: jobs([]float64{4, 1}, []float64{2, 2}, []float64{3, 0})}
	for j := range p.Models {
		p.Models[j].Price = float64(3 - j)
	}
	for m := range p.Jobs {
		p.Jobs[m].ID += 40
		p.Jobs[m].Steps = 100
	}
	p.Entities = []Entity{{Name: "all", Weight: 1}}
	p.Pairs = []Pair{{A: 0, B: 1, SpeedA: []float64{3, 1}, SpeedB: []float64{1, 1}}}
	return p
}

// Input without a program is an error that names the job and the model.
func TestFaultsAreNamed(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for want, spoil := range map[string]func(p *Problem){
		"there is no GPU model":                                                   func(p *Problem) { p.Models = nil },
		"model p100: NaN GPUs":                                                    func(p *Problem) { p.Models[1].GPUs = nan },
		"model v100: 0 GPUs":                                                      func(p *Problem) { p.Models[0].GPUs = 0 },
		"model v100: 9 of 2 GPUs together":                                        func(p *Problem) { p.Models[0].Together = new(9.0) },
		"job 41: model v100: throughput NaN":                                      func(p *Problem) { p.Jobs[0].Speed[0] = nan },
		"job 42: model p100: throughput -1":                                       func(p *Problem) { p.Jobs[1].Speed[1] = -1 },
		"job 43: model v100: throughput +Inf":                                     func(p *Problem) { p.Jobs[2].Speed[0] = inf },
		"job 43: model v100: throughput 1e+300":                                   func(p *Problem) { p.Jobs[2].Speed[0] = 1e300 },
		"job 42: 1 throughputs and 0 apart for 2 models":                          func(p *Problem) { p.Jobs[1].Speed = p.Jobs[1].Speed[:1] },
		"job 42: 2 throughputs and 3 apart for 2 models":                          func(p *Problem) { p.Jobs[1].Apart = make([]float64, 3) },
		"job 43: model p100: throughput 2 apart, but none together":               func(p *Problem) { p.Jobs[2].Apart = []float64{1, 2} },
		"job 42: model v100: throughput NaN apart":                                func(p *Problem) { p.Jobs[1].Apart = []float64{nan, 2} },
		"job 41: gang of 0 GPUs":                                                  func(p *Problem) { p.Jobs[0].Gang = 0 },
		"job 41: gang of -4 GPUs":                                                 func(p *Problem) { p.Jobs[0].Gang = -4 },
		"job 43: weight 0":                                                        func(p *Problem) { p.Jobs[2].Weight = 0 },
		"job 43: weight NaN":                                                      func(p *Problem) { p.Jobs[2].Weight = nan },
		"job 43: steps NaN":                                                       func(p *Problem) { p.Jobs[2].Steps = nan },
		"job 41: comes after job 42":                                              func(p *Problem) { p.Jobs[0], p.Jobs[1] = p.Jobs[1], p.Jobs[0] },
		"a pair of jobs 0 and 7 of 3":                                             func(p *Problem) { p.Pairs[0].B = 7 },
		"a pair of jobs 1 and 1 of 3":                                             func(p *Problem) { p.Pairs[0].A = 1 },
		"job 41: with job 42: gangs of 1 and 2 GPUs":                              func(p *Problem) { p.Jobs[1].Gang = 2 },
		"job 41: with job 42: 1 and 2 throughputs for 2 models":                   func(p *Problem) { p.Pairs[0].SpeedA = []float64{1} },
		"job 41: model p100: with job 42: throughputs 1 and NaN":                  func(p *Problem) { p.Pairs[0].SpeedB[1] = nan },
		"job 41: model p100: with job 43: throughputs 1 and 1, but alone 1 and 0": func(p *Problem) { p.Pairs[0].B = 2 },
	} {
		p := sane()
		spoil(&p)
		for _, name := range Names() {
			_, err := Gavel(name, p, Options{})
			var f *Fault
			if !errors.As(err, &f) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want %q, got %v", name, want, err)
			}
		}
	}
	for name, spoil := range map[string]func(p *Problem){
		"ftf":          func(p *Problem) { p.Jobs[1].Steps = 0 },
		"makespan":     func(p *Problem) { p.Jobs[1].Steps = 0 },
		"sjf":          func(p *Problem) { p.Jobs[1].Steps = 0 },
		"cost-sum-slo": func(p *Problem) { p.Jobs[1].Steps, p.Jobs[1].Within = 0, 5 },
		"cost-sum":     func(p *Problem) { p.Models[1].Price = 0 },
		"hierarchical": func(p *Problem) { p.Jobs[1].Entity = 1 },
	} {
		p := sane()
		spoil(&p)
		if _, err := Gavel(name, p, Options{}); err == nil {
			t.Errorf("%s takes it", name)
		}
		if _, err := Gavel("las", p, Options{}); err != nil {
			t.Errorf("las does not need it: %v", err)
		}
	}
	if _, err := Gavel("lass", sane(), Options{}); err == nil || !strings.Contains(err.Error(), "las-blind") {
		t.Errorf("an unknown policy: %v", err)
	}
}

// No jobs, one model, more models than jobs, a job that runs nowhere: all have an answer.
func TestOddProblemsHaveAnAnswer(t *testing.T) {
	needsCLP(t)
	for what, p := range map[string]Problem{
		"no jobs":               {Models: gpus(1, 1)},
		"one job on one model":  {Models: gpus(1), Jobs: jobs([]float64{3})},
		"more models than jobs": {Models: gpus(1, 2, 3), Jobs: jobs([]float64{3, 2, 1})},
		"a job runs nowhere":    {Models: gpus(1, 2), Jobs: jobs([]float64{3, 2}, []float64{0, 0})},
		"nobody runs anywhere":  {Models: gpus(1, 2), Jobs: jobs([]float64{0, 0}, []float64{0, 0})},
		"a gang is too large":   {Models: gpus(1, 2), Jobs: []Job{{ID: 1, Gang: 8, Weight: 1, Speed: []float64{1, 1}}}},
	} {
		p.Entities = []Entity{{Name: "all", Weight: 1}}
		for j := range p.Models {
			p.Models[j].Price = 1
		}
		for m := range p.Jobs {
			p.Jobs[m].Steps, p.Jobs[m].Within = 10, 1e6
		}
		for _, name := range Names() {
			s := solved(t, name, p)
			if s.Why != "" {
				t.Errorf("%s, %s: %s", what, name, s.Why)
			}
			if what == "a job runs nowhere" && s.Time[1][0]+s.Time[1][1] != 0 {
				t.Errorf("%s: it gets %v", name, s.Time)
			}
			if what == "a job runs nowhere" && !slices.Contains([]string{"cost", "cost-slo", "cost-least-slo"}, name) && s.Time[0][0]+s.Time[0][1] != 1 {
				t.Errorf("%s: the other one gets %v", name, s.Time)
			}
		}
	}
}

// A tenant that reports a billion steps a second, on one model or all, takes nothing that
// was the others' by max-min: their levels are no lower than with an nth of all.
func TestABoastTakesNothing(t *testing.T) {
	for _, boast := range [][]float64{{1e9, 1e9}, {1e9, 1}, {1e9, 1e-3}} {
		p := Problem{Models: gpus(2, 2), Jobs: jobs([]float64{4, 1}, boast, []float64{3, 2}, []float64{1, 1}, []float64{2, 1})}
		p.Entities = []Entity{{Weight: 1}}
		for _, name := range []string{"las", "hierarchical"} {
			s := solved(t, name, p)
			for m, x := range achieved(p, s) {
				if nth := 2. / 5 * (p.Jobs[m].Speed[0] + p.Jobs[m].Speed[1]); x < nth*(1-1e-6) {
					t.Errorf("%s, %v: job %d has %v, an nth of all is %v", name, boast, m, x, nth)
				}
			}
		}
	}
}

// SLOs that cannot be kept: the fewest are left out, with the least slack, by name.
func TestLateJobsAreNamed(t *testing.T) {
	needsCLP(t)
	p := sane()
	p.Models = p.Models[:1]
	p.Models[0].GPUs = 1
	p.Pairs = nil
	for m := range p.Jobs {
		p.Jobs[m].Speed, p.Jobs[m].Steps, p.Jobs[m].Within = []float64{1}, 50, 100
	}
	p.Jobs[0].Within = 40 // never
	p.Jobs[1].Within = 90 // 5/9 of the GPU, and the last half of it
	s := solved(t, "cost-sum-slo", p)
	if !slices.Equal(s.Late, []int64{41, 42}) {
		t.Errorf("late: %v", s.Late)
	}
	if x := achieved(p, s)[2]; x < .5-1e-8 {
		t.Errorf("job 43 does %v steps a second, and needs 0.5", x)
	}
}

// Where the program has no answer everybody has the fixed share, and the reason is told.
func TestFixedShares(t *testing.T) {
	needsCLP(t)
	objectives["broken"] = objective{divide: func(d *division) error {
		v := d.solve(d.in.space(nil), nil)
		v.floor(0, 1e6)
		return v.total([]float64{1, 1, 1})
	}}
	objectives["broken too"] = objective{divide: func(d *division) error {
		v := d.solve(d.in.space(nil), nil)
		v.height(1, math.Inf(1))
		return v.run()
	}}
	defer delete(objectives, "broken")
	defer delete(objectives, "broken too")
	p := sane()
	p.Jobs[0].Weight = 3
	for name, why := range map[string]string{"broken": "infeasible", "broken too": "unbounded"} {
		s := solved(t, name, p)
		if !strings.Contains(s.Why, why) {
			t.Errorf("%s: %q", name, s.Why)
		}
		close2(t, name, s.Time, [][]float64{{.4, .6}, {.4, .6}, {.4, 0}}, .05)
	}
}

// Numbers of any size that a problem may have, side by side: the shares are feasible, and where a
// program gives up it says so.
func TestWideNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		wide := rapid.Map(rapid.Float64Range(-8.9, 8.9), func(x float64) float64 { return math.Pow(10, x) })
		for m := range p.Jobs {
			j := &p.Jobs[m]
			j.Weight, j.Steps, j.Elapsed = wide.Draw(t, "weight"), wide.Draw(t, "steps"), wide.Draw(t, "elapsed")
			for i := range j.Speed {
				if j.Speed[i] > 0 {
					j.Speed[i] = wide.Draw(t, "speed")
				}
			}
			if j.Apart != nil {
				for i := range j.Apart {
					if j.Apart[i] > 0 {
						j.Apart[i] = j.Speed[i] / 2
					}
				}
			}
		}
		for i := range p.Pairs {
			q := &p.Pairs[i]
			for j := range q.SpeedA {
				if q.SpeedA[j] > 0 {
					q.SpeedA[j], q.SpeedB[j] = .7*p.Jobs[q.A].Speed[j], .6*p.Jobs[q.B].Speed[j]
				}
			}
		}
		for _, name := range Names() {
			s, err := Gavel(name, p, Options{})
			if err != nil {
				continue // a product is out of range
			}
			if why := infeasible(p, s); why != "" || math.IsNaN(s.Objective) {
				t.Fatalf("%s: %s %v", name, why, s.Objective)
			}
			if s.Why != "" && s.Objective != 0 {
				t.Fatalf("%s: %v of fixed shares", name, s.Objective)
			}
		}
	})
}

// FuzzGavel: no number crashes a policy, and divisions are feasible.
func FuzzGavel(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, int64(1), uint8(0))
	f.Add(1e9, 1e-9, 0.0, 1e12, 1e-12, 1.0, int64(8), uint8(3))
	f.Add(math.NaN(), -1.0, math.Inf(1), 5e-324, 1.0, 1.0, int64(0), uint8(5))
	f.Fuzz(func(t *testing.T, a, b, c, d, e, w float64, gang int64, which uint8) {
		p := sane()
		p.Jobs[0].Speed = []float64{a, b}
		p.Jobs[1].Speed = []float64{c, d}
		p.Jobs[0].Gang, p.Jobs[1].Gang = int(gang), int(gang)
		p.Jobs[0].Weight, p.Jobs[1].Steps, p.Jobs[1].Within = w, e, e
		p.Models[0].GPUs, p.Models[1].Price = e, c
		names := Names()
		name := names[int(which)%len(names)]
		s, err := Gavel(name, p, Options{})
		if err != nil {
			return
		}
		if why := infeasible(p, s); why != "" {
			t.Fatalf("%s: %s", name, why)
		}
		if math.IsNaN(s.Objective) {
			t.Fatalf("%s: no number", name)
		}
	})
}
