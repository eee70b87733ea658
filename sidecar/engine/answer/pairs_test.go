package answer

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// sharing gives bids of jobs of one GPU each: so many of each type, with speeds on the one model.
func sharing(gpus int, types map[string]float64, jobs ...string) cluster.AllocationRequest {
	q := cluster.AllocationRequest{Pools: []cluster.GPUs{{Model: "v100", Count: gpus}}}
	for i, t := range jobs {
		b := job("a", "", i+1, 1, types[t])
		b.Type = t
		q.Bids = append(q.Bids, b)
	}
	return q
}

func pair(a, b string, partA, partB float64) cluster.TypePair {
	return cluster.TypePair{A: a, B: b, PartA: []float64{partA}, PartB: []float64{partB}}
}

// Gavel §3.1: two jobs share a V100, on which they do 40 and 15 steps a second alone, "T = ((40.0, 20.0, 10.0), (15.0, 10.0, 5.0), ((20.0, 7.5), 0.0, 0.0))":
// beside each other each does half, which is as much as in turns. If they do more, they have the GPU together.
func TestPairsHaveGPUs(t *testing.T) {
	if !lp.Available {
		t.Skip("this build has no solver")
	}
	for _, c := range []struct {
		name     string
		gpus     int
		jobs     []string
		pairs    []cluster.TypePair
		least    float64            // the smallest part of its speed alone that a job has
		together map[string]float64 // GPUs by types
	}{
		{"the paper's", 1, []string{"lm", "cv"}, []cluster.TypePair{pair("cv", "lm", 0.5, 0.5)}, 0.5, map[string]float64{"cv+lm": 0}},
		{"it pays", 1, []string{"lm", "cv"}, []cluster.TypePair{pair("cv", "lm", 0.8, 0.75)}, 0.7619, map[string]float64{"cv+lm": 0.9524}},
		{"not for one of them", 1, []string{"lm", "cv"}, []cluster.TypePair{pair("cv", "lm", 0.9, 0.6)}, 0.6923, map[string]float64{"cv+lm": 0.7692}},
		{"enough GPUs", 2, []string{"lm", "cv"}, []cluster.TypePair{pair("cv", "lm", 0.8, 0.75)}, 1, map[string]float64{"cv+lm": 0}},
		{"two of a type", 1, []string{"cv", "cv"}, []cluster.TypePair{pair("cv", "cv", 0.7, 0.7)}, 0.7, map[string]float64{"cv+cv": 1}},
		{"one of a type", 1, []string{"cv", "lm"}, []cluster.TypePair{pair("cv", "cv", 0.7, 0.7)}, 0.5, map[string]float64{"cv+cv": 0}},
		{"three jobs", 1, []string{"cv", "cv", "cv"}, []cluster.TypePair{pair("cv", "cv", 0.9, 0.9)}, 0.6, map[string]float64{"cv+cv": 1}},
		{"the better pair", 1, []string{"cv", "cv", "lm", "lm"}, []cluster.TypePair{pair("cv", "cv", 0.6, 0.6), pair("cv", "lm", 0.9, 0.9)}, 0.45, map[string]float64{"cv+cv": 0, "cv+lm": 1}},
		{"a stranger", 1, []string{"lm", "cv", ""}, []cluster.TypePair{pair("cv", "lm", 1, 1)}, 0.5, map[string]float64{"cv+lm": 0.5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := sharing(c.gpus, map[string]float64{"lm": 40, "cv": 15, "": 1}, c.jobs...)
			q.Pairs = c.pairs
			d := Divide(q, ByTime("las"))
			if d.Why != "" || math.Abs(d.Objective-c.least) > 1e-4 {
				t.Fatalf("the smallest part is %.4f (%s), want %.4f", d.Objective, d.Why, c.least)
			}
			for _, x := range d.Pairs {
				if got, want := float64(x.GPUs[0])/float64(cluster.WholeGPU), c.together[x.A+"+"+x.B]; math.Abs(got-want) > 1e-4 {
					t.Errorf("%s and %s have %.4f GPUs together, want %.4f", x.A, x.B, got, want)
				}
			}
			fits(t, &q, &d)
		})
	}
}

// fits checks that parts add up to the GPUs at most, and that a job has a GPU at most: half of one while it is beside another.
func fits(t interface{ Fatalf(string, ...any) }, q *cluster.AllocationRequest, d *cluster.Allocation) {
	for p := range q.Pools {
		sum := cluster.MicroGPU(0)
		for i := range d.Parts {
			if sum += d.Parts[i].GPUs[p]; d.Parts[i].GPUs[p] > cluster.MicroGPU(q.Bids[i].Gang)*cluster.WholeGPU {
				t.Fatalf("job %d has %d millionths of a GPU", i, d.Parts[i].GPUs[p])
			}
		}
		if most := cluster.MicroGPU(q.Pools[p].Count)*cluster.WholeGPU + cluster.MicroGPU(len(d.Parts)*len(d.Parts)); sum > most {
			t.Fatalf("jobs have %d millionths of %d GPUs", sum, q.Pools[p].Count)
		}
	}
}

// Of many alike jobs not all pairs are in the program, and the answer is as good as with all.
func TestFewPairsOfManyJobs(t *testing.T) {
	if !lp.Available {
		t.Skip("this build has no solver")
	}
	for _, n := range [][2]int{{40, 40}, {33, 90}, {2, 600}, {50, 0}} {
		var jobs []string
		for i := range n[0] + n[1] {
			jobs = append(jobs, map[bool]string{true: "a", false: "b"}[i < n[0]])
		}
		q := sharing((n[0]+n[1])/3, map[string]float64{"a": 2, "b": 3}, jobs...)
		q.Pairs = []cluster.TypePair{pair("a", "a", 0.6, 0.6), pair("a", "b", 0.9, 0.7), pair("b", "b", 0.55, 0.55)}
		at, order := []int{0}, make([]int, len(jobs))
		p := policy.Problem{Models: []policy.Model{{Name: "v100", GPUs: float64(q.Pools[0].Count)}}}
		for i := range jobs {
			order[i] = i
			p.Jobs = append(p.Jobs, policy.Job{ID: int64(i + 1), Gang: 1, Weight: 1, Speed: q.Bids[i].Speeds})
		}
		few := couples(&q, at, order, p.Jobs)
		if n[1] == 0 {
			q.Pairs = q.Pairs[:1]
		}
		for k := range q.Pairs {
			x := &q.Pairs[k]
			for i := range jobs {
				for j := range i {
					switch a, b := jobs[i], jobs[j]; {
					case a == x.A && b == x.B:
						p.Pairs = append(p.Pairs, policy.Pair{A: j, B: i, SpeedA: []float64{q.Bids[j].Speeds[0] * x.PartB[0]}, SpeedB: []float64{q.Bids[i].Speeds[0] * x.PartA[0]}})
					case a == x.B && b == x.A:
						p.Pairs = append(p.Pairs, policy.Pair{A: j, B: i, SpeedA: []float64{q.Bids[j].Speeds[0] * x.PartA[0]}, SpeedB: []float64{q.Bids[i].Speeds[0] * x.PartB[0]}})
					}
				}
			}
		}
		all := len(p.Pairs)
		whole, err := policy.Gavel("las", p, policy.Options{Eligible: true})
		if err != nil || whole.Why != "" {
			t.Fatal(err, whole.Why)
		}
		p.Pairs = few
		part, err := policy.Gavel("las", p, policy.Options{Eligible: true})
		if err != nil || part.Why != "" {
			t.Fatal(err, part.Why)
		}
		if len(few) >= all || len(few) > 3*mostCouples {
			t.Errorf("%v: %d pairs of %d", n, len(few), all)
		}
		if math.Abs(whole.Objective-part.Objective) > 1e-6 {
			t.Errorf("%v: the smallest level is %v with %d pairs, %v with all %d", n, part.Objective, len(few), whole.Objective, all)
		}
	}
}

// With pairs no objective is worse than without, and where tenants share, no job does less.
func TestPairsNeverHurt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pools := rapid.IntRange(1, 2).Draw(t, "pools")
		q := cluster.AllocationRequest{}
		for p := range pools {
			q.Together = append(q.Together, rapid.SampledFrom([]int{500, 1000}).Draw(t, "together"))
			q.Pools = append(q.Pools, cluster.GPUs{Model: fmt.Sprint("m", p), Count: rapid.IntRange(1, 4).Draw(t, "gpus")})
		}
		number := rapid.Float64Range(0.1, 10)
		speeds := map[string][]float64{}
		types := []string{"", "x", "y", "z"}
		for _, name := range types {
			for range pools {
				speeds[name] = append(speeds[name], number.Draw(t, "speed"))
			}
		}
		for i := range rapid.IntRange(2, 10).Draw(t, "jobs") {
			b := job(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), "", i+1, 1)
			if b.Type = rapid.SampledFrom(types).Draw(t, "type"); b.Type == "" {
				b.Gang = rapid.IntRange(1, 2).Draw(t, "gang")
			}
			if b.Gang == 2 && rapid.Bool().Draw(t, "apart") {
				b.Apart = slices.Repeat([]float64{rapid.SampledFrom([]float64{0.4, 0.8}).Draw(t, "keeps")}, pools)
			}
			b.Demand, b.Speeds = b.Gang, speeds[b.Type]
			b.Steps, b.Elapsed = 1000*number.Draw(t, "steps"), cluster.Span(1000*number.Draw(t, "elapsed"))*cluster.Second
			b.Milli = rapid.SampledFrom([]int64{1000, 1000, 3000}).Draw(t, "milli")
			q.Bids = append(q.Bids, b)
		}
		alone := q
		part := rapid.SampledFrom([]float64{0, 0.5, 0.6, 0.8, 1})
		for i, a := range types[1:] {
			for _, b := range types[1+i:] {
				x := cluster.TypePair{A: a, B: b}
				for range pools {
					one, other := part.Draw(t, "part"), part.Draw(t, "part")
					if a == b {
						other = one
					}
					x.PartA, x.PartB = append(x.PartA, one), append(x.PartB, other)
				}
				q.Pairs = append(q.Pairs, x)
			}
		}
		for name, c := range map[string]struct {
			by   Policy
			less bool // is better
		}{
			"las-jobs": {by: ByTime("las")}, "ftf": {by: ByTime("ftf"), less: true}, "makespan": {by: ByTime("makespan"), less: true},
			"throughput": {by: ByTime("throughput")}, "las": {by: ByTenants(policy.Ways{})}, "las-fifo": {by: ByTenants(policy.Ways{FIFO: true})},
		} {
			with, without := Divide(q, c.by), Divide(alone, c.by)
			if with.Why+without.Why != "" {
				t.Fatalf("%s: %s%s", name, with.Why, without.Why)
			}
			better := with.Objective - without.Objective
			if c.less {
				better = -better
			}
			if better < -1e-6*without.Objective {
				t.Fatalf("%s: %v with pairs, %v without", name, with.Objective, without.Objective)
			}
			fits(t, &q, &with)
		}
	})
}

// A tenant whose jobs say that they do less beside each other than they do has the same GPUs, and so do the others.
func TestSpeedsOfPairsGainNoGPUs(t *testing.T) {
	if !lp.Available {
		t.Skip("this build has no solver")
	}
	for _, said := range []float64{0, 0.61, 0.8, 0.95} {
		q := cluster.AllocationRequest{Pools: []cluster.GPUs{{Model: "v100", Count: 10}}}
		for i := range 80 {
			b := job([]string{"a", "b"}[i%2], "", i+1, 1, 1)
			b.Type = b.Tenant
			q.Bids = append(q.Bids, b)
		}
		q.Pairs = []cluster.TypePair{pair("a", "a", said, said), pair("b", "b", 0.8, 0.8)}
		d := Divide(q, ByTenants(policy.Ways{}))
		has := map[string]cluster.MicroGPU{}
		for i := range d.Parts {
			has[q.Bids[i].Tenant] += d.Parts[i].GPUs[0]
		}
		if want := 5 * cluster.WholeGPU; d.Why != "" || math.Abs(float64(has["a"]-want)) > 100 || math.Abs(float64(has["b"]-want)) > 100 {
			t.Errorf("%v: %v (%s)", said, has, d.Why)
		}
		if both := d.Pairs[len(d.Pairs)-1]; both.A != "b" || math.Abs(float64(both.GPUs[0]-5*cluster.WholeGPU)) > 100 {
			t.Errorf("%v: pairs of b have %d", said, both.GPUs[0])
		}
	}
}
