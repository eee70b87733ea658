package papers

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// welfare gives the longest remaining time after the window, and the weighted sum of logarithms.
func welfare(w *window) (longest, sum float64) {
	longest = math.Inf(-1)
	for i := range w.bids {
		b := &w.bids[i]
		longest = max(longest, b.left-float64(b.rounds)*w.round)
		sum += math.Pow(b.rho, urgency) * logarithm(min(1, (b.ran+float64(b.rounds)*w.round)/(b.ran+b.left)))
	}
	return max(longest, 0), sum
}

// best tries every number of rounds for every job.
func best(w *window, i, room int) (longest, sum float64) {
	if i == len(w.bids) {
		return welfare(w)
	}
	longest, sum = math.Inf(1), math.Inf(-1)
	for n := 0; n <= w.rounds && n*w.bids[i].gpus <= room; n++ {
		w.bids[i].rounds = n
		if l, s := best(w, i+1, room-n*w.bids[i].gpus); l < longest || l == longest && s > sum {
			longest, sum = l, s
		}
	}
	return longest, sum
}

// A market equilibrium maximises Nash social welfare over time (Shockwave §4): for gangs of equal size the plan reaches the
// maximum among those with the shortest time after the window.
func TestShockwavePlansTheMarketEquilibrium(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		gang := rapid.IntRange(1, 3).Draw(rt, "gang")
		w := &window{gpus: gang * rapid.IntRange(1, 3).Draw(rt, "places"), rounds: rapid.IntRange(1, 3).Draw(rt, "rounds"), round: 10}
		for range rapid.IntRange(1, 5).Draw(rt, "jobs") {
			w.bids = append(w.bids, bid{gpus: gang, ran: float64(rapid.IntRange(0, 60).Draw(rt, "ran")),
				left: float64(rapid.IntRange(1, 60).Draw(rt, "left")), rho: float64(rapid.IntRange(5, 20).Draw(rt, "rho")) / 10})
		}
		plan(w.bids, w.gpus, w.rounds, w.round)
		longest, sum := welfare(w)
		wantLongest, wantSum := best(w, 0, w.gpus*w.rounds)
		if longest != wantLongest || sum < wantSum-1e-9*math.Abs(wantSum) {
			rt.Fatalf("longest %g, sum %g; the best plan has %g, %g", longest, sum, wantLongest, wantSum)
		}
	})
}

// The logarithm is that of the authors' bases at these, below the true one between them, and concave.
func TestShockwavesLogarithm(t *testing.T) {
	last := math.Inf(1)
	for i := 1; i <= 100; i++ {
		x := float64(i) / 100
		rise := logarithm(x) - logarithm(x-0.01)
		if rise > last+1e-9 {
			t.Errorf("it rises by %g at %g, and by %g before", rise, x, last)
		}
		last = rise
		if d := math.Log(x) - logarithm(x); d < -1e-9 || i%20 == 0 && d > 1e-9 {
			t.Errorf("%g instead of %g at %g", logarithm(x), math.Log(x), x)
		}
	}
}

// In the first round jobs run that need every round, then the other jobs of the plan, the least fair first, then the longest.
func TestShockwavesFirstRound(t *testing.T) {
	bids := []bid{
		{gpus: 1, left: 500, rho: 1},
		{gpus: 8, left: 400, rho: 1},
		{gpus: 8, left: 900, rho: 1},
		{gpus: 1, ran: 5, left: 5, rho: 1},
		{gpus: 1, ran: 5, left: 5, rho: 2},
		{gpus: 1, left: 2000, rho: 1},
	}
	got := plan(bids, 2, 2, 10)
	for i, want := range []int{5, 4, 0, 2, 1, 3} {
		if got[i] != want {
			t.Fatalf("the order is %v, with %+v", got, bids)
		}
	}
}

// The posterior is restated by what is observed: the time that a job has run rules out that it is one of its user's short jobs (Shockwave §5).
func TestLengthsAreRestated(t *testing.T) {
	past := lengths{}
	of := func(user string) *cluster.Job {
		return &cluster.Job{User: user, Name: "train", Request: cluster.Request{Size: cluster.Whole(1)}}
	}
	for _, ran := range []cluster.Span{20, 20, 20, 240} {
		past.add(of("a"), ran*cluster.Minute)
	}
	past.add(of("b"), 400*cluster.Minute)
	for _, c := range []struct {
		user      string
		ran, left cluster.Span
	}{{"a", 0, 75}, {"a", 19, 56}, {"a", 20, 220}, {"a", 30, 210}, {"a", 300, 100}, {"a", 500, 500}, {"new", 0, 140}} {
		if got := past.left(of(c.user), c.ran*cluster.Minute); got != c.left*cluster.Minute {
			t.Errorf("a job of %s that has run for %d min: %s, want %d min", c.user, c.ran, got, c.left)
		}
	}
}

// A sample keeps the last jobs only.
func TestLengthsForget(t *testing.T) {
	past, j := lengths{}, &cluster.Job{User: "a", Request: cluster.Request{Size: cluster.Whole(1)}}
	past.add(j, cluster.Day)
	for range kept {
		past.add(j, cluster.Hour)
	}
	if got := past.left(j, 0); got != cluster.Hour {
		t.Errorf("%s after %d jobs of an hour", got, kept)
	}
}
