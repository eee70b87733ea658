package rounds

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/tests/seeds"
)

const term = 6 * cluster.Minute // Gavel's round (§3.2)

// rowsOf gives jobs with shares, of one GPU each where gangs is nil.
func rowsOf(x [][]float64, gangs []int) []Row {
	out := make([]Row, len(x))
	for i := range x {
		out[i] = Row{Job: cluster.JobKey(i + 1), Gang: 1, Share: x[i], Due: make([]cluster.Span, len(x[i])), Time: make([]cluster.Span, len(x[i]))}
		if gangs != nil {
			out[i].Gang = gangs[i]
		}
	}
	return out
}

// algorithm1 is Gavel's Algorithm 1 by itself.
func algorithm1(gpus []int, rows []Row) []Grant {
	m := newMatch(gpus, rows, 0)
	m.greedy(order(rows, len(gpus)), false)
	return m.grants()
}

// pass books a round: what each row should have had, and what those with a grant had.
func pass(rows []Row, grants []Grant) []Row {
	out := make([]Row, len(rows))
	for i := range rows {
		out[i] = rows[i].After(term)
	}
	for _, g := range grants {
		out[g.Row].Time[g.Model] += term
	}
	return out
}

// behind gives by how many rounds the row that is furthest behind its share is behind.
func behind(rows []Row) float64 {
	w := 0.0
	for i := range rows {
		for j := range rows[i].Share {
			w = max(w, float64(rows[i].Due[j]-rows[i].Time[j])/float64(term))
		}
	}
	return w
}

// example is X^example of Gavel §3.1, one worker a model: V100, P100, K80.
func example() []Row {
	return rowsOf([][]float64{{0.6, 0.4, 0}, {0.2, 0.6, 0.2}, {0.2, 0, 0.8}}, nil)
}

// Gavel §3.2: "a priority score for every job and accelerator type combination that is high when
// a job has received a smaller time fraction than the optimal allocation"; Figure 5: it is
// X over rounds_received, "element-wise division". After n rounds in which every model was
// in use f is received/n, so the priorities are these times n.
func TestGavelFigure5Priorities(t *testing.T) {
	rows := example()
	received := [][]int{{3, 2, 0}, {1, 3, 1}, {2, 0, 5}}
	const n = 6
	for i := range rows {
		for j, x := range rows[i].Share {
			rows[i].Due[j], rows[i].Time[j] = cluster.Span(x*n*float64(term)), cluster.Span(received[i][j])*term
		}
	}
	for _, e := range order(rows, 3) {
		want := rows[e.Row].Share[e.Model] / float64(received[e.Row][e.Model]) * n
		if math.Abs(e.priority-want) > 1e-5 {
			t.Errorf("job %d on model %d: priority %g, want %g", e.Row, e.Model, e.priority, want)
		}
	}
	if e := order(rows, 3)[0]; (e.Grant != Grant{0, 0}) && (e.Grant != Grant{0, 1}) {
		t.Errorf("%+v is first, want job 0, at 0.2 n on both of its models", e)
	}
}

// Gavel Figure 3: the cumulative time that each job spends on each model is what X^example
// says; in five rounds to the round. received/R - X shrinks like 1/R ever after.
func TestGavelFigure3CumulativeTime(t *testing.T) {
	for name, pick := range map[string]func([]Row) []Grant{
		"Algorithm 1": func(r []Row) []Grant { return algorithm1([]int{1, 1, 1}, r) },
		"ours":        func(r []Row) []Grant { return Gavel([]int{1, 1, 1}, r, term) },
	} {
		rows := example()
		for round := 1; round <= 1000; round++ {
			rows = pass(rows, pick(rows))
			if b := behind(rows); b > 1 {
				t.Fatalf("%s: after %d rounds somebody is %.2f rounds behind, want 1 at most", name, round, b)
			}
			if round != 5 {
				continue
			}
			var got [][]int
			for i := range rows {
				var line []int
				for _, s := range rows[i].Time {
					line = append(line, int(s/term))
				}
				got = append(got, line)
			}
			if d := cmp.Diff([][]int{{3, 2, 0}, {1, 3, 1}, {1, 0, 4}}, got); d != "" {
				t.Errorf("%s: rounds received after five (-want +got):\n%s", name, d)
			}
		}
	}
}

// Gavel §5, Algorithm 1: the combination with the highest priority is taken, one with a larger
// scale factor than there are workers left is passed over ("continue"), and "all j' that
// conflict (share a job k) with j" are removed.
func TestGavelAlgorithm1(t *testing.T) {
	row := func(job, with cluster.JobKey, gang int, priority float64) Row {
		return Row{Job: job, With: with, Gang: gang, Share: []float64{0.5}, Due: []cluster.Span{cluster.Span(priority * float64(term))}, Time: []cluster.Span{term}}
	}
	rows := []Row{row(1, 0, 1, 1), row(2, 0, 4, 3), row(1, 2, 1, 4), row(3, 0, 4, 2), row(4, 0, 1, 0.5), row(5, 0, 2, 0.4)}
	// 4 workers: the pair (1, 2) is first, so 1 and 2 alone are out; 3 takes 4 and has
	// 3; then 4 and 5.
	want := []Grant{{5, 0}, {2, 0}, {4, 0}} // larger gangs first
	if d := cmp.Diff(want, algorithm1([]int{4}, rows)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Gavel Figure 7: with space sharing the rounds realise an allocation of jobs and pairs. "Each
// distinct job can have <= 1 job combination running in a given round" (§5).
func TestGavelFigure7SpaceSharing(t *testing.T) {
	rows := rowsOf([][]float64{{0.25, 0}, {0.25, 0.25}, {0, 0.5}, {0.5, 0}, {0, 0.25}}, nil)
	rows[3].Job, rows[3].With = 1, 2 // jobs 1 and 2 on the first model
	rows[4].Job, rows[4].With = 1, 3
	for round := range 1000 {
		grants := Gavel([]int{1, 1}, rows, term)
		seen := map[cluster.JobKey]bool{}
		for _, g := range grants {
			for _, job := range []cluster.JobKey{rows[g.Row].Job, rows[g.Row].With} {
				if job != 0 && seen[job] {
					t.Fatalf("round %d: job %d runs twice", round, job)
				}
				seen[job] = true
			}
		}
		rows = pass(rows, grants)
		if b := behind(rows); b > 2 {
			t.Fatalf("round %d: somebody is %.2f rounds behind, want 2 at most", round, b)
		}
	}
}

// figure15 gives jobs of Gavel's single-GPU or multi-GPU trace (§7.1) with shares such as a
// policy's program gives at a vertex: all of the 36 GPUs of each of three models given out, jobs by
// speedup along the models, so that few have a share of two.
func figure15(seed uint64, jobs int, multi bool) (gpus []int, rows []Row) {
	r := rand.New(rand.NewPCG(seed, 15))
	gpus = []int{36, 36, 36}
	gangs, level, need := make([]int, jobs), make([]float64, jobs), 0.0
	for i := range gangs {
		gangs[i] = 1
		if x := r.Float64(); multi && x >= 0.95 { // 5 % of eight, 25 % of two to four
			gangs[i] = 8
		} else if multi && x >= 0.7 {
			gangs[i] = 2 + r.IntN(3)
		}
		level[i] = 0.2 + r.Float64()
		need += level[i] * float64(gangs[i])
	}
	x := make([][]float64, jobs)
	left := []float64{36, 36, 36}
	j := 0
	for i := range x {
		x[i] = make([]float64, 3)
		for rest := min(level[i]*108/need, 1); rest > 1e-9 && j < 3; {
			part := min(rest, left[j]/float64(gangs[i]))
			x[i][j] += part
			rest -= part
			if left[j] -= part * float64(gangs[i]); left[j] < 1e-9 {
				j++
			}
		}
	}
	rows = rowsOf(x, gangs)
	r.Shuffle(jobs, func(a, b int) { rows[a].Job, rows[b].Job = rows[b].Job, rows[a].Job })
	return gpus, rows
}

// Gavel §7.5, Figure 15: "the true fraction of time each job spends on different resources
// closely resembles the optimal allocation". Bound: nobody is ever more than two rounds behind
// its share, so after R rounds its part of the time is off by 2/R at most.
func TestGavelFigure15TheMechanismApproachesTheShares(t *testing.T) {
	for _, multi := range []bool{false, true} {
		for _, jobs := range []int{150, 400}[:seeds.Some(1, 2)] {
			most := map[int]float64{}
			ever, plain := 0.0, 0.0
			for seed := range seeds.Of(t, 2) {
				gpus, rows := figure15(seed, jobs, multi)
				_, other := figure15(seed, jobs, multi)
				for round := 1; round <= 1000; round++ {
					rows = pass(rows, Gavel(gpus, rows, term))
					other = pass(other, algorithm1(gpus, other))
					ever, plain = max(ever, behind(rows)), max(plain, behind(other))
					if round == 10 || round == 100 || round == 1000 {
						most[round] = max(most[round], behind(rows)/float64(round))
					}
				}
			}
			t.Logf("multi-GPU %v, %d jobs on 36:36:36: part of the time behind X at most %.4f after 10 rounds, %.5f after 100, %.6f after 1,000; never more than %.2f rounds (Algorithm 1 alone: %.2f)",
				multi, jobs, most[10], most[100], most[1000], ever, plain)
			if ever > 2 {
				t.Errorf("multi-GPU %v, %d jobs: %.2f rounds behind, want 2 at most", multi, jobs, ever)
			}
		}
	}
}

// No GPU is idle under these shares, so a round in which one is is lost for good: Algorithm 1
// falls behind further and further, by eleven rounds in 400 at worst here; Gavel stays within four.
func TestSharesThatLeaveNoGPUIdle(t *testing.T) {
	ours, plain := 0.0, 0.0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		n := rapid.IntRange(3, 6).Draw(t, "jobs")
		gpus, x := make([]int, n), make([][]float64, n)
		for i := range x {
			x[i], gpus[i] = make([]float64, n), 1
			for j := range x[i] {
				x[i][j] = r.ExpFloat64()
			}
		}
		for range 500 { // rows and columns of 1 (Sinkhorn)
			for i := range x {
				scale(x, i, -1)
			}
			for j := range x {
				scale(x, -1, j)
			}
		}
		a, b := rowsOf(x, nil), rowsOf(x, nil)
		for range 400 {
			a, b = pass(a, Gavel(gpus, a, term)), pass(b, algorithm1(gpus, b))
			ours = max(ours, behind(a))
		}
		plain = max(plain, behind(b))
	})
	t.Logf("400 rounds, 3 to 6 jobs and models: %.2f rounds behind at most; Algorithm 1: %.2f", ours, plain)
	if ours > 4 || plain < 4 {
		t.Errorf("%.2f rounds behind, Algorithm 1 %.2f; want 4 at most, and more", ours, plain)
	}
}

// scale makes a row, or a column, of a matrix sum to 1.
func scale(x [][]float64, row, column int) {
	sum := 0.0
	for i := range x {
		for j := range x[i] {
			if i == row || j == column {
				sum += x[i][j]
			}
		}
	}
	for i := range x {
		for j := range x[i] {
			if i == row || j == column {
				x[i][j] /= sum
			}
		}
	}
}

// tenants of one job size each, with as many jobs as there are GPUs.
func tenantsOf(ideal [][]float64, gangs []int, gpus int) []Tenant {
	out := make([]Tenant, len(ideal))
	for l := range ideal {
		out[l] = Tenant{Ideal: ideal[l], Dev: make([]float64, len(ideal[l]))}
		for k := range max(gpus/gangs[l], 1) {
			out[l].Jobs = append(out[l].Jobs, Job{Key: cluster.JobKey(100*l + k), Gang: gangs[l]})
		}
	}
	return out
}

// OEF §4.3: "real_j(t) = round(ideal_j(t) + dev_j(t))", "dev_j(t+1) = dev_j(t) +
// (ideal_j(t) - real_j(t))". §4.2.3's weighted division: u1 has GPU1 and a third of GPU2, u2
// two thirds of GPU2.
func TestOEF43RoundingWithCarriedDeviation(t *testing.T) {
	ts := tenantsOf([][]float64{{1, 1. / 3}, {0, 2. / 3}}, []int{1, 1}, 2)
	sum := make([][]int, 2)
	for l := range sum {
		sum[l] = make([]int, 2)
	}
	for round := 1; round <= 300; round++ {
		has, after, _ := OEF([]int{1, 1}, ts)
		for l := range has {
			for j := range has[l] {
				sum[l][j] += has[l][j]
				want := ts[l].Dev[j] + ts[l].Ideal[j] - float64(has[l][j])
				if math.Abs(after[l].Dev[j]-want) > 1e-9 || math.Abs(want) > 1 {
					t.Fatalf("round %d, tenant %d, model %d: deviation %g, want %g, within 1", round, l, j, after[l].Dev[j], want)
				}
			}
		}
		ts = after
	}
	if d := cmp.Diff([][]int{{300, 100}, {0, 200}}, sum); d != "" {
		t.Errorf("GPUs and rounds after 300 (-want +got):\n%s", d)
	}
	// round itself, where nobody else is there
	for _, x := range []struct {
		ideal, dev float64
		want       int
	}{{2.4, 0, 2}, {2.5, 0, 3}, {2.4, 0.3, 3}, {2.4, -0.9, 2}, {0.4, 0, 0}, {5, 2, 6}} {
		ts := tenantsOf([][]float64{{x.ideal}}, []int{1}, 6)
		ts[0].Dev[0] = x.dev
		if has, _, _ := OEF([]int{6}, ts); has[0][0] != x.want {
			t.Errorf("ideal %g, owed %g: %d, want %d", x.ideal, x.dev, has[0][0], x.want)
		}
	}
}

// OEF §4.3: "the placer adjusts real_j(t) to 0 if it falls below min_k demand_k"; "by
// progressively accumulating the deviation value over time, tenants who experience resource
// starvation are assured a real_j(t) greater than min_k demand_k".
func TestOEF43MinimumDemand(t *testing.T) {
	ts := tenantsOf([][]float64{{1}, {7}}, []int{4, 1}, 8)
	var got []int
	for range 12 {
		has, after, runs := OEF([]int{8}, ts)
		got = append(got, has[0][0])
		for _, r := range runs {
			if r.Tenant == 0 && has[0][0] != 4 {
				t.Errorf("a gang of 4 runs on %d GPUs", has[0][0])
			}
		}
		ts = after
	}
	if d := cmp.Diff([]int{0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4}, got); d != "" {
		t.Errorf("one GPU is due, jobs of 4 (-want +got):\n%s", d)
	}
}

// OEF §4.3: "the placer grants placement priority to jobs with more workers"; Figure 2's
// jobs that have starved longest run first, each on one model (§4.4).
func TestOEF43JobsLargerFirstOnOneModel(t *testing.T) {
	ts := []Tenant{{Ideal: []float64{3, 2}, Dev: []float64{0, 0}, Jobs: []Job{
		{Key: 1, Gang: 1, Starved: 1}, {Key: 2, Gang: 2, Starved: 5}, {Key: 3, Gang: 3}, {Key: 4, Gang: 4, Starved: 9}}}}
	_, after, runs := OEF([]int{3, 2}, ts)
	// 4 fits on no model; 2 is on the faster, then 1 on the slower, and 3 no longer fits
	if d := cmp.Diff([]Run{{0, 1, 1}, {0, 0, 0}}, runs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var starved []int
	for _, j := range after[0].Jobs {
		starved = append(starved, j.Starved)
	}
	if d := cmp.Diff([]int{0, 0, 1, 10}, starved); d != "" {
		t.Errorf("starved for (-want +got):\n%s", d)
	}
}
