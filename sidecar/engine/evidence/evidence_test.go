package evidence

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func on(model string, ran cluster.Span) []cluster.ModelTime {
	return []cluster.ModelTime{{Model: model, Ran: ran}}
}

func text(t *testing.T, x any) string {
	out, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestEnded(t *testing.T) {
	const h = cluster.Hour
	var b Book
	of := cluster.Completion{Kind: "t/k", Gang: 2}
	for _, x := range []struct {
		of  cluster.Completion
		ran []cluster.ModelTime
	}{
		{of, on("v100", Shortest-1)}, {of, on("", h)}, {of, nil}, {of, on("v100", -h)},
		{cluster.Completion{Kind: "k", Gang: 2}, on("v100", h)}, {cluster.Completion{Kind: "t/k"}, on("v100", h)},
	} {
		if b.Ended(x.of, x.ran, End{Done: true}, 1); len(b.Completions) > 0 {
			t.Fatalf("%+v is kept", x)
		}
	}
	for i := range 6 {
		b.Ended(of, on("v100", h), End{Done: true}, cluster.Instant(i))
		b.Ended(of, append(on("k80", 2*h), on("v100", h)...), End{Done: true}, cluster.Instant(i))
	}
	before := text(t, b)
	after := Book{Completions: b.Completions, Usages: b.Usages}
	after.Ended(of, on("a100", 3*h), End{}, 100)
	if text(t, b) != before {
		t.Error("the input was changed")
	}
	if c := after.Completions[0]; !slices.Equal(c.Models, []string{"a100", "k80", "v100"}) || len(c.Jobs) != 13 || c.At != 100 || c.Jobs[1].Began != "k80" || c.Jobs[1].Back {
		t.Errorf("%+v", c)
	}
	// The jobs of a model stay when a kind is no longer sent there.
	for i := range 2 * maxRan {
		after.Ended(of, on("v100", h), End{Done: true}, cluster.Instant(200+i))
	}
	after.Fit(1000, func(cluster.Kind, int) [][]cluster.ModelTime { return nil })
	if len(after.Completions[0].Rates) != 3 || after.stale != nil {
		t.Errorf("not fitted: %+v", after.Completions[0].Rates)
	}
	if n, m := after.Jobs("t/k", 2, "k80"), after.Jobs("t/k", 2, "v100"); n != 6 || m != maxRan {
		t.Errorf("%d jobs on k80 and %d on v100 are remembered", n, m)
	}
}

// Property: kinds never mix, tenants do not displace each other's, and nothing grows without bound.
func TestBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var b Book
	b.Ended(cluster.Completion{Kind: "quiet/k", Gang: 1}, on("v100", cluster.Hour), End{Done: true}, 1)
	for i := range 3 * maxTenant {
		now := cluster.Instant(2 + i)
		b.Ended(cluster.Completion{Kind: cluster.Kind(fmt.Sprintf("loud/k%d", i)), Gang: 1}, on("v100", cluster.Hour), End{Done: rng.IntN(2) == 0}, now)
		b.Used(cluster.Usage{Kind: cluster.Kind(fmt.Sprintf("loud/k%d", i)), Gang: 1, Model: "v100"}, &cluster.GPUUse{At: now, DRAM: cluster.Mean{Value: 0.5, Count: samples}})
	}
	if len(b.Completions) != maxTenant+1 || len(b.Usages) != maxTenant || b.Jobs("quiet/k", 1, "v100") != 1 || b.Jobs("loud/k0", 1, "v100") != 0 {
		t.Errorf("%d and %d entries", len(b.Completions), len(b.Usages))
	}
	if !slices.IsSortedFunc(b.Completions, func(x, y cluster.Completion) int { return x.CompareSubject(&y) }) {
		t.Error("not sorted")
	}
	b.Ended(cluster.Completion{Kind: "new/k", Gang: 1}, on("v100", cluster.Hour), End{Done: true}, cluster.Instant(maxAge)+cluster.Instant(cluster.Hour))
	if len(b.Completions) != 1 {
		t.Errorf("%d entries after %s", len(b.Completions), maxAge)
	}
}

// Counters: garbage moves a level little, blanks and broken counters not at all.
func TestUsed(t *testing.T) {
	var b Book
	of := cluster.Usage{Kind: "t/k", Gang: 1, Model: "v100"}
	use := func(x float64, n int) {
		b.Used(of, &cluster.GPUUse{At: 5, DRAM: cluster.Mean{Value: x, Count: n}})
	}
	for range 8 {
		use(0.4, samples)
	}
	for _, x := range []float64{0, math.NaN(), math.Inf(1), -1} {
		use(x, samples)
	}
	use(0.9, samples-1)
	if u := b.Usages[0]; u.DRAM.Jobs != 8 || math.Abs(u.DRAM.Mean-math.Log(0.4)) > 1e-9 || u.Tensor.Jobs != 0 {
		t.Errorf("%+v", u)
	}
	use(4000, samples)
	if u := b.Usages[0]; math.Abs(u.DRAM.Mean-math.Log(0.4)) > 0.1 {
		t.Errorf("garbage moves the level to %v", math.Exp(u.DRAM.Mean))
	}
}

// Jobs are remembered by when they began, with those that go on: of many that begin together, those that end last are no fair sample.
func TestJobsThatBeganTogether(t *testing.T) {
	const h = cluster.Hour
	var b Book
	of := cluster.Completion{Kind: "t/k", Gang: 1}
	for i := range 3 * maxRan {
		ran := cluster.Span(1+i) * h
		b.Ended(of, on("v100", ran), End{Done: true}, cluster.Instant(ran))
	}
	now := cluster.Instant(1000 * h)
	b.Ended(of, on("v100", h), End{Done: true}, now)
	if c := &b.Completions[0]; len(c.Jobs) != maxRan || c.Jobs[maxRan-1].Since == 0 {
		t.Fatalf("%d jobs, the last of %s", len(c.Jobs), c.Jobs[maxRan-1].Since)
	}
	going := contemporary(&b.Completions[0], [][]cluster.ModelTime{on("v100", 3*h), on("v100", 1001*h), on("a100", h), on("v100", Shortest-1), append(on("v100", h), on("a100", h)...)}, now)
	if len(going) != 1 || going[0].Ran[0] != 3*h {
		t.Errorf("jobs that go on %+v", going)
	}
	b = Book{}
	b.Ended(of, append(append(on("v100", h), on("k80", h)...), on("v100", h)...), End{Done: true, Chosen: true}, now)
	if j := b.Completions[0].Jobs[0]; j.Began != "v100" || !j.Back || !j.Chosen || j.Since != now.Add(-3*h) {
		t.Errorf("a job that came back: %+v", j)
	}
}

// Property: however many jobs of many kinds end, those that are remembered are bounded, and other tenants keep theirs.
func TestJobsAreBounded(t *testing.T) {
	var b Book
	none := func(cluster.Kind, int) [][]cluster.ModelTime { return nil }
	b.Ended(cluster.Completion{Kind: "quiet/k", Gang: 1}, on("v100", cluster.Hour), End{Done: true}, 1)
	for i := range maxTenant {
		for k := range maxRan {
			b.Ended(cluster.Completion{Kind: cluster.Kind(fmt.Sprintf("loud/k%d", i)), Gang: 1}, on("v100", cluster.Hour), End{}, cluster.Instant(1000*i+k))
		}
	}
	b.stale = map[subject]bool{}
	b.Fit(cluster.Instant(cluster.Day), none)
	jobs := 0
	for i := range b.Completions {
		jobs += len(b.Completions[i].Jobs)
	}
	if jobs > maxJobs+1 || jobs < maxJobs-maxRan || b.Jobs("quiet/k", 1, "v100") != 1 || b.Jobs(cluster.Kind(fmt.Sprintf("loud/k%d", maxTenant-1)), 1, "v100") != maxRan {
		t.Errorf("%d jobs in %d entries", jobs, len(b.Completions))
	}
}
