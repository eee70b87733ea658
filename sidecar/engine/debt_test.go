package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// holding makes a world of 32 GPUs in which a tenant "debtor" holds so many for a time in jobs that cannot be stopped, while a tenant "creditor"
// of the same weight asks for asked; both have 1-GPU jobs.
func holding(t *testing.T, set cluster.Settings, shares int64, held, asked int, span cluster.Span) *simtest.World {
	w := simtest.New(t, set, simtest.Nodes("n", "v100", 4, 8), "creditor", "debtor")
	w.SetShares("creditor", shares)
	for range held {
		w.Virtual.Submit(sim.Work{Name: "hold", User: "d", Account: "debtor", Partition: "gpu", Request: simtest.Gang(1), Runs: span, NoRequeue: true})
	}
	w.Run(set.Interval)
	w.Submit("creditor", asked, 1, 1000*hour)
	w.Run(span)
	return w
}

// GPU time that a creditor has beyond its due while nobody lacks any makes up for what it is owed: the debtor, which left its GPUs to it for so long, owes it
// nothing more.
func TestGPUsThatNobodyWantsMakeUpForADebt(t *testing.T) {
	t.Parallel()
	set := simtest.Product()
	set.Interval = minute
	w := holding(t, set, 1, 24, 64, 10*hour) // 8 of the creditor's 16 GPUs were held
	near := func(want cluster.GPUTime) {
		t.Helper()
		c, d := w.Standing("creditor", "v100").Owed, w.Standing("debtor", "v100").Owed
		if c+d != 0 || max(c-want, want-c) > cluster.Times(16, 3*minute) {
			t.Errorf("the creditor is owed %.2f and the debtor %.2f GPU-hours, want %.2f of the creditor's", c.Hours(), d.Hours(), want.Hours())
		}
	}
	near(cluster.Times(8, 10*hour))
	w.Run(2 * hour) // the creditor has all 32
	near(cluster.Times(8, 10*hour) - cluster.Times(16, 2*hour))
	w.Run(5 * hour)
	near(0)
}

// A debt is repaid within the time that the docs give: one and a half times the debt over the smaller of what the debtor gives above its floor and
// what the creditor gets within its burst, and four terms. It takes longer than the debt over that rate where the rate is less than a GPU: jobs have
// whole ones, for a term. By then no more than a term of the creditor's due is left, for which no repayment begins.
func TestDebtsAreRepaidInTime(t *testing.T) {
	t.Parallel()
	for seed := range seeds.Of(t, 16) {
		r := rand.New(rand.NewPCG(seed, 40))
		set := simtest.Product()
		set.Interval = minute
		set.RepayFloorPercent, set.BurstMaxMilli = []int{50, 75, 90}[r.IntN(3)], []int64{1250, 1500, 2000}[r.IntN(3)]
		shares := 1 + r.Int64N(3)
		held, span := 28-4*int(shares)+r.IntN(8), cluster.Span(4+r.IntN(20))*hour
		w := holding(t, set, shares, held, 40, span)
		w.Submit("debtor", 40, 1, 1000*hour)
		owed := w.Standing("creditor", "v100").Owed
		due := float64(32*shares) / float64(1+shares)
		rate := min((32-due)*float64(100-set.RepayFloorPercent)/100, due*float64(set.BurstMaxMilli-1000)/1000)
		bound := cluster.Span(1.5*float64(owed)/rate) + 4*term
		if owed <= 0 {
			t.Fatalf("seed %d: nothing is owed", seed)
		}
		w.Run(bound)
		if left := w.Standing("creditor", "v100").Owed; left > cluster.GPUTime(due*float64(term)) {
			t.Errorf("seed %d: floor %d, burst %d, %d shares, %d GPUs held for %s: after %s %.2f of %.2f GPU-hours are owed", seed, set.RepayFloorPercent, set.BurstMaxMilli, shares,
				held, span, bound, left.Hours(), owed.Hours())
		}
	}
}

// A tenant that asks for more than it is due is owed no more for it. One that asks for less is owed only what it asks for: so jobs that it does not
// need raise what it is owed, where others' jobs on its GPUs cannot be stopped. In the last minute these have ended, and it has all that it asks for.
func TestAskingRaisesADebtUpToTheDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked int
		owed  cluster.GPUTime
	}{{8, 0}, {12, cluster.Times(4, 10*hour)}, {16, cluster.Times(8, 10*hour)}, {64, cluster.Times(8, 10*hour) - cluster.Times(16, minute)}} {
		set := simtest.Product()
		set.Interval = minute
		w := holding(t, set, 1, 24, c.asked, 10*hour)
		if got := w.Standing("creditor", "v100").Owed; max(got-c.owed, c.owed-got) > cluster.Times(8, 2*minute) {
			t.Errorf("a tenant that asks for %d of its 16 GPUs and has 8 is owed %.2f GPU-hours, want %.2f", c.asked, got.Hours(), c.owed.Hours())
		}
	}
}
