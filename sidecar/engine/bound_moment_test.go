package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// minutesAsSeconds gives the default settings with terms of 10 s, and all other times as much shorter.
func minutesAsSeconds() cluster.Settings {
	s := simtest.Product()
	s.Term, s.Interval, s.Notice, s.GrantTimeout, s.GateTTL, s.StopTotalMilli = 10*second, second, second, 4*second, 27*second, 30
	for _, x := range []*cluster.Span{&s.MinLease, &s.Threshold, &s.CreditCap, &s.StopAllowance, &s.Patience, &s.BindQuiet} {
		*x = *x * s.Term / (15 * minute)
	}
	s.StartCost = 5 * minute * s.Term / (15 * minute)
	return s
}

// Both tenants have worked, and have cancelled all. Two terms before the other one comes back, a tenant submits jobs that never save, and
// outlast everything. It holds its due for good, and one job more at most, however rounds, submissions, starts and stops fall.
func TestTheFirstComerBindsItsDueAtAnyMoment(t *testing.T) {
	t.Parallel()
	for seed := range seeds.Of(t, 120) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := newWorld(t, minutesAsSeconds(), []int{4, 4, 4, 4}, "a", "b")
		w.Gate = w.Settings.GateTTL
		if rng.IntN(2) == 0 {
			w.License = 1_000_000
		}
		gpus, seconds := []int{1, 2, 1, 4, 1, 2, 1, 2}, []cluster.Span{15, 25, 40, 20, 30, 10, 20, 35}
		jobs := map[string][]cluster.JobID{}
		waiting := func(tenant string) (n int) { return w.waitIn(jobs[tenant]) }
		works := func(tenant string, cancels cluster.Instant) {
			for waiting(tenant) < 10 {
				n := len(jobs[tenant]) % len(gpus)
				jobs[tenant] = append(jobs[tenant], w.submit(tenant, gpus[n], seconds[n]*second, func(j *sim.Work) { neverSaves(j); j.Cancel = cancels }))
			}
		}
		pause := func() { w.Run(cluster.Span(500 + rng.IntN(800))) }
		for cancels := w.Now().Add(20*second + cluster.Span(rng.IntN(3000))); w.Now() < cancels; pause() {
			works("a", cancels)
			works("b", cancels)
		}
		w.Run(cluster.Span(1000 + rng.IntN(3000)))
		clear(jobs)
		for came := w.Now(); w.Now().Sub(came) < 80*second; pause() {
			for waiting("a") < 6 {
				n := len(jobs["a"]) % 4
				jobs["a"] = append(jobs["a"], w.submit("a", []int{4, 2, 1, 1}[n], hour, func(j *sim.Work) { neverSaves(j); j.Limit = 90 * minute }))
			}
			if w.Now().Sub(came) > 2*w.Settings.Term {
				works("b", 0)
			}
		}
		if got := w.holdsIn(jobs["a"]); got > 9 {
			t.Errorf("seed %d: the first comer has %d GPUs for good, its due is 8", seed, got)
		}
	}
}
