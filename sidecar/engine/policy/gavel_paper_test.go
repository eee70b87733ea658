package policy

import (
	"math"
	"testing"
)

// jobs makes one job of each row, of one GPU and weight 1.
func jobs(speed ...[]float64) []Job {
	var out []Job
	for m, s := range speed {
		out = append(out, Job{ID: int64(1 + m), Gang: 1, Weight: 1, Speed: s})
	}
	return out
}

func gpus(n ...float64) []Model {
	names := []string{"v100", "p100", "k80"}
	var out []Model
	for j, g := range n {
		out = append(out, Model{Name: names[j], GPUs: g})
	}
	return out
}

func close2(t *testing.T, what string, got [][]float64, want [][]float64, by float64) {
	t.Helper()
	for m := range want {
		for j := range want[m] {
			if math.Abs(got[m][j]-want[m][j]) > by {
				t.Errorf("%s: got %v, want %v", what, got, want)
				return
			}
		}
	}
}

// Gavel §3.1: "T = ((40.0, 20.0, 10.0), (15.0, 10.0, 5.0), ((20.0, 7.5), 0.0, 0.0))": with
// one V100 and nothing else the two share it, and each has half of what it does alone;
// "solutions with colocation are always at least as good as without" (§4.4).
func TestGavelSpaceSharing(t *testing.T) {
	needsCLP(t)
	p := Problem{Models: gpus(1), Jobs: jobs([]float64{40}, []float64{15})}
	p.Pairs = []Pair{{A: 0, B: 1, SpeedA: []float64{20}, SpeedB: []float64{7.5}}}
	s := solved(t, "las", p)
	if math.Abs(s.Objective-.5) > 1e-9 {
		t.Errorf("the smallest level is %v, want 0.5", s.Objective)
	}
	// 20/40 + 7.5/15 = 1: no better than taking turns. A little faster it is.
	p.Pairs[0].SpeedA, p.Pairs[0].SpeedB = []float64{30}, []float64{12}
	s = solved(t, "las", p)
	if s.Objective < .76 || s.PairTime[0][0] < .9 {
		t.Errorf("the smallest level is %v, together %v of the time", s.Objective, s.PairTime[0][0])
	}
}

// Gavel §4.1: X_het = ((0.45, 0.0), (0.45, 0.09), (0.09, 0.91)) on 1 V100 and 1 K80: "jobs receive about
// 10% higher throughput compared to an allocation where every user is given 1/n".
func TestGavelMaxMin(t *testing.T) {
	p := Problem{Models: gpus(1, 1), Jobs: jobs([]float64{40, 10}, []float64{12, 4}, []float64{100, 50})}
	s := solved(t, "las", p)
	close2(t, "X_het", s.Time, [][]float64{{.45, 0}, {.45, .09}, {.09, .91}}, .005)
	for m, v := range achieved(p, s) {
		isolated := (p.Jobs[m].Speed[0] + p.Jobs[m].Speed[1]) / 3
		if gain := v/isolated - 1; gain < .09 || gain > .10 {
			t.Errorf("job %d: %.1f %% more than isolated, want about 10 %% (1/11)", m, 100*gain)
		}
	}
}

// Gavel §4.1, scale factors: a job of two GPUs at a level of one of one GPU.
func TestGavelScaleFactors(t *testing.T) {
	p := Problem{Models: gpus(2), Jobs: jobs([]float64{1}, []float64{1}, []float64{1})}
	p.Jobs[0].Gang = 2
	s := solved(t, "las", p)
	// x_0·2 = x_1 = x_2, and 2 x_0 + x_1 + x_2 = 2.
	close2(t, "X", s.Time, [][]float64{{1. / 3}, {2. / 3}, {2. / 3}}, 1e-8)
}

// Gavel §4.3: "an example with 4 identical jobs: job 1 with a weight of 3.0, and jobs 2 to 4 with a weight
// of 1.0; and 4 identical GPUs": 1.0 and 0.33 at first, "in the next iteration, jobs 2
// to 4 are given full-GPU allocations".
func TestGavelWaterFilling(t *testing.T) {
	p := Problem{Models: gpus(4), Jobs: jobs([]float64{1}, []float64{1}, []float64{1}, []float64{1})}
	p.Jobs[0].Weight = 3
	s := solved(t, "las", p)
	close2(t, "X", s.Time, [][]float64{{1}, {1}, {1}, {1}}, 0)
	if math.Abs(s.Objective-1./3) > 1e-9 {
		t.Errorf("the first iteration ends at %v of the weights, want 1/3", s.Objective)
	}
}

// Gavel §4.3, Figure 6: fairness across a product and a research team of equal weight, fairness in the one
// and FIFO in the other: with one GPU the product team's three jobs have a sixth each, and the
// research team's first job has its half; "if job 4 is bottlenecked, then its weight is
// reassigned to job 5 in accordance to the FIFO policy".
func TestGavelHierarchy(t *testing.T) {
	one := []float64{1}
	p := Problem{Models: gpus(1), Jobs: jobs(one, one, one, one, one)}
	p.Entities = []Entity{{Name: "product", Weight: 1}, {Name: "research", Weight: 1, FIFO: true}}
	p.Jobs[3].Entity, p.Jobs[4].Entity = 1, 1
	close2(t, "1 GPU", solved(t, "hierarchical", p).Time, [][]float64{{1. / 6}, {1. / 6}, {1. / 6}, {.5}, {0}}, 1e-8)
	p.Models = gpus(3)
	close2(t, "3 GPUs", solved(t, "hierarchical", p).Time, [][]float64{{.5}, {.5}, {.5}, {1}, {.5}}, 1e-8)
}

// Gavel §4.2: "jobs should be placed on the fastest available accelerator type", in the order in which they came.
func TestGavelFIFO(t *testing.T) {
	p := Problem{Models: gpus(1, 1), Jobs: jobs([]float64{2, 1}, []float64{2, 1}, []float64{2, 1})}
	close2(t, "X", solved(t, "fifo", p).Time, [][]float64{{1, 0}, {0, 1}, {0, 0}}, 0)
	p.Jobs[0].Steps, p.Jobs[1].Steps, p.Jobs[2].Steps = 300, 200, 100
	s := solved(t, "sjf", p)
	close2(t, "shortest first", s.Time, [][]float64{{0, 0}, {0, 1}, {1, 0}}, 0)
	if s.Objective != 50 {
		t.Errorf("the shortest job takes %v s, want 50", s.Objective)
	}
}

// Gavel §4.2, placement as two worker types: with 4 of 8 GPUs on whole nodes a gang of 4 that is slow
// apart has these, and one that does not care has the others.
func TestGavelPlacement(t *testing.T) {
	needsCLP(t)
	p := Problem{Models: []Model{{Name: "v100", GPUs: 8, Together: new(4.0)}}, Jobs: jobs([]float64{8}, []float64{8})}
	for m, apart := range []float64{2, 8} {
		p.Jobs[m].Gang, p.Jobs[m].Apart = 4, []float64{apart}
	}
	s := solved(t, "las", p)
	if s.Time[0][0] != 1 || s.Apart[0][0] != 0 || s.Time[1][0]+s.Apart[1][0] != 1 {
		t.Errorf("together %v, apart %v", s.Time, s.Apart)
	}
	p.Models[0].Together = nil
	if s := solved(t, "las", p); s.Apart != nil || s.Time[0][0] != 1 || s.Time[1][0] != 1 {
		t.Errorf("with all together: %v, apart %v", s.Time, s.Apart)
	}
}

// achieved gives the effective throughput of every job, steps a second (Gavel §3.1).
func achieved(p Problem, s Shares) []float64 {
	out := make([]float64, len(p.Jobs))
	for m, j := range p.Jobs {
		for i, v := range j.Speed {
			out[m] += v * s.Time[m][i]
			if s.Apart != nil && j.Apart != nil {
				out[m] += j.Apart[i] * s.Apart[m][i]
			}
		}
	}
	for i, part := range s.PairTime {
		q := p.Pairs[i]
		for j, x := range part {
			out[q.A] += q.SpeedA[j] * x
			out[q.B] += q.SpeedB[j] * x
		}
	}
	return out
}
