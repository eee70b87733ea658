package papers

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// The centre is a point of the program with the largest smallest level, which water filling finds too.
func TestTheCentreHasTheLargestLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p policy.Problem
		for range rapid.IntRange(1, 3).Draw(t, "models") {
			p.Models = append(p.Models, policy.Model{Name: "m", GPUs: float64(rapid.IntRange(1, 12).Draw(t, "gpus"))})
		}
		for id := range rapid.IntRange(1, 12).Draw(t, "jobs") {
			j := policy.Job{ID: int64(id), Gang: rapid.IntRange(1, 8).Draw(t, "gang"), Weight: 1}
			for range p.Models {
				j.Speed = append(j.Speed, rapid.Float64Range(.1, 1).Draw(t, "speed"))
			}
			p.Jobs = append(p.Jobs, j)
		}
		want, err := policy.Gavel("las", p, policy.Options{})
		if err != nil || want.Why != "" {
			t.Fatal(err, want.Why)
		}
		c := newCentre(p)
		for m, j := range p.Jobs {
			equal, gpus := 0.0, 0.0
			for i, v := range j.Speed {
				equal, gpus = equal+v*p.Models[i].GPUs, gpus+p.Models[i].GPUs
			}
			for i, v := range j.Speed {
				c.level[m][i] = float64(j.Gang) * v / (equal / gpus)
			}
		}
		least, used := math.Inf(1), make([]float64, len(p.Models))
		for m, x := range c.solve() {
			level, time := 0.0, 0.0
			for i, part := range x {
				if part < 0 {
					t.Fatalf("job %d has a part of %v", m, part)
				}
				level, time, used[i] = level+c.level[m][i]*part, time+part, used[i]+float64(p.Jobs[m].Gang)*part
			}
			least = min(least, level)
			if time > 1 {
				t.Fatalf("job %d runs %v of the time", m, time)
			}
		}
		for i, model := range p.Models {
			if used[i] > model.GPUs {
				t.Fatalf("%v of %v GPUs are used", used[i], model.GPUs)
			}
		}
		if math.Abs(least-want.Objective) > 1e-5*want.Objective {
			t.Fatalf("the smallest level is %v, and can be %v", least, want.Objective)
		}
	})
}

// Two jobs and as many fast GPUs: the one that gains most from them has slow ones as well, since the other binds.
func TestTheCentreLeavesFastGPUsIdle(t *testing.T) {
	p := policy.Problem{Models: []policy.Model{{Name: "k80", GPUs: 2}, {Name: "v100", GPUs: 2}},
		Jobs: []policy.Job{{ID: 1, Gang: 1, Weight: 1, Speed: []float64{1, 2}}, {ID: 2, Gang: 1, Weight: 1, Speed: []float64{1, 10}}}}
	s, err := lasInterior(p)
	if err != nil {
		t.Fatal(err)
	}
	filled, err := policy.Gavel("las", p, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if x := s.Time; x[0][1] < .999 || x[1][0] < .05 || x[1][1] > .95 || filled.Time[1][1] < .999 {
		t.Errorf("shares %v; with water filling %v", x, filled.Time)
	}
}
