package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// near fails unless got is within percent of want.
func near(t *testing.T, what string, got, want cluster.GPUTime, percent float64) {
	t.Helper()
	if d := float64(got-want) / float64(want) * 100; d > percent || d < -percent {
		t.Errorf("%s: got %.2f GPU-hours, want %.2f (%.1f %% off, at most %.1f)", what, got.Hours(), want.Hours(), d, percent)
	}
}

func TestTwoTenantsSaturatedShareByWeight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		shares       int64
		partA, partB float64
	}{{"3:1", 3, .75, .25}, {"1:1", 1, .5, .5}}[:seeds.Some(1, 2)] {
		t.Run(c.name, func(t *testing.T) {
			set := simtest.Product()
			set.Interval = minute
			w := simtest.New(t, set, simtest.Nodes("n", "v100", 2, 8), "a", "b")
			w.SetShares("a", c.shares)
			for _, gang := range []int{1, 2, 4, 8} {
				w.Submit("a", 8, gang, 1000*cluster.Hour)
				w.Submit("b", 8, gang, 1000*cluster.Hour)
			}
			w.Run(24 * cluster.Hour)
			all := cluster.Times(16, 24*cluster.Hour)
			used := w.Used("a") + w.Used("b")
			if float64(used) < .98*float64(all) {
				t.Errorf("only %.1f of %.1f GPU-hours were used", used.Hours(), all.Hours())
			}
			near(t, "a", w.Used("a"), cluster.GPUTime(c.partA*float64(all)), 5)
			near(t, "b", w.Used("b"), cluster.GPUTime(c.partB*float64(all)), 5)
			for _, v := range w.Last.Statuses {
				if w.Last.State.Records[v.Job-1].Terms == 0 {
					t.Errorf("job %d was never served: %+v", v.Job, v.Reason)
				}
			}
		})
	}
}

// An 8-GPU gang among one-GPU jobs of another tenant gets its node at the next boundary or the one after,
// every time it is due.
func TestGangAmongSmallJobs(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 1, 3}[:seeds.Some(1, 3)] {
		set := simtest.Product()
		set.Interval = 30 * second
		w := simtest.New(t, set, simtest.Nodes("n", "v100", nodes, 8), "small", "big")
		w.Submit("small", 8*nodes+5, 1, 1000*cluster.Hour)
		w.Run(17 * cluster.Minute)
		gang := w.Submit("big", 1, 8, 1000*cluster.Hour)[0]
		w.Run(30 * cluster.Minute)
		if got := w.Job(gang).State; got != cluster.Running && w.Alloc(gang) == 0 {
			t.Errorf("%d nodes: the gang is %s two boundaries after it came: %+v", nodes, got, w.Reason(gang))
		}
		w.Run(24 * cluster.Hour)
		due := min(8, 4*nodes)
		near(t, "the gang", w.Alloc(gang), cluster.Times(due, 24*cluster.Hour), 6)
	}
}

func TestIdleGPUsAreLentAndComeBackWithinATerm(t *testing.T) {
	w := simtest.New(t, simtest.Product(), simtest.Nodes("n", "v100", 2, 8), "busy", "idle")
	w.Submit("busy", 32, 1, 1000*cluster.Hour)
	w.Run(5 * cluster.Hour)
	near(t, "busy while the other is idle", w.Used("busy"), cluster.Times(16, 5*cluster.Hour), 2)
	w.Submit("idle", 16, 1, 1000*cluster.Hour)
	w.Run(16 * cluster.Minute)
	if s := w.Standing("idle", "v100"); s.Holds < cluster.CountOf(8) {
		t.Errorf("a term after it came back the idle tenant holds %s GPUs, want its 8 at least", s.Holds)
	}
}

// A tenant that was idle for a week does not take the cluster for a week. The short test uses two days.
func TestCreditCapBoundsWhatAnIdleTenantTakes(t *testing.T) {
	t.Parallel()
	set := simtest.Product()
	set.CreditCap, set.Interval = 2*cluster.Hour, cluster.Minute
	w := simtest.New(t, set, simtest.Nodes("n", "v100", 1, 8), "busy", "idle")
	w.Submit("busy", 16, 1, 1000*cluster.Hour)
	w.Run(cluster.Span(seeds.Some(2, 7)) * cluster.Day)
	w.Submit("idle", 16, 1, 1000*cluster.Hour)
	before := w.Used("busy")
	w.Run(12 * cluster.Hour)
	// The idle tenant is owed 2 h of its 4 GPUs. It takes all 8 until both are equally far behind, after an
	// hour. Then both share equally.
	near(t, "busy after the idle one came back", w.Used("busy")-before, cluster.Times(4, 11*cluster.Hour), 5)
	if w.Used("busy") == before {
		t.Error("the busy tenant got nothing")
	}
}

func TestWeightZeroGetsIdleGPUsOnly(t *testing.T) {
	w := simtest.New(t, simtest.Product(), simtest.Nodes("n", "v100", 1, 8), "a", "zero")
	w.SetShares("zero", 0)
	w.Submit("zero", 8, 1, 1000*cluster.Hour)
	w.Run(cluster.Hour)
	near(t, "zero on an idle cluster", w.Used("zero"), cluster.Times(8, cluster.Hour), 3)
	w.Submit("a", 8, 1, 1000*cluster.Hour)
	w.Run(16 * cluster.Minute)
	before := w.Used("zero")
	w.Run(3 * cluster.Hour)
	if got := w.Used("zero") - before; got != 0 {
		t.Errorf("weight 0 got %.2f GPU-hours while a tenant with weight waited", got.Hours())
	}
}

// "the product promises |∫Alloc - due| ≤ threshold + one term × demand." The test checks every hour of two
// days. Weights are very different, jobs just fill the cluster or queue, and jobs have one GPU or are gangs.
func TestNobodyIsFurtherFromItsDueThanPromised(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gpus, extra int
		gangs       int
		shares      []int64
	}{
		{4, 3, 1, []int64{15, 1}},
		{8, 0, 2, []int64{5, 1}},
		{4, 0, 1, []int64{15, 1}},
		{2, 0, 1, []int64{7, 1}},
		{8, 8, 1, []int64{3, 2, 1}},
		{1, 1, 1, []int64{1, 1, 1}},
	}[:seeds.Some(2, 6)] {
		t.Run(fmt.Sprintf("%d GPUs, %v", c.gpus, c.shares), func(t *testing.T) {
			set := simtest.Product()
			set.Interval = minute
			names := []string{"a", "b", "c"}[:len(c.shares)]
			w := simtest.New(t, set, simtest.Nodes("n", "v100", 1, c.gpus), names...)
			var sum int64
			for i, name := range names {
				w.SetShares(name, c.shares[i])
				sum += c.shares[i]
				w.Submit(name, c.gpus/c.gangs+c.extra, c.gangs, forever)
			}
			for range 48 {
				w.Run(hour)
				var all cluster.GPUTime
				for _, name := range names {
					all += w.Used(name)
				}
				for i, name := range names {
					due := cluster.GPUTime(cluster.MulDiv(int64(all), c.shares[i], sum))
					off := max(w.Used(name)-due, due-w.Used(name))
					if most := cluster.Times(c.gpus, term+set.Threshold); off > most {
						t.Fatalf("after %s tenant %s is %.2f GPU-hours from its due of %.2f, at most %.2f are promised",
							w.Now().Sub(simtest.Start), name, off.Hours(), due.Hours(), most.Hours())
					}
				}
			}
		})
	}
}

// If jobs cannot fill the cluster (twos and threes on six GPUs), all tenants fall behind their entitlement.
// This counts against none of them: none stands far behind beyond what others owe it. The weights still count when it has
// lasted for much longer than the credit cap.
func TestWasteDoesNotDrownTheWeights(t *testing.T) {
	t.Parallel()
	for _, every := range []cluster.Span{0, minute}[:seeds.Some(1, 2)] { // at any interval of rounds
		set := simtest.Product()
		set.CreditCap, set.Interval = hour, minute
		w := simtest.New(t, set, simtest.Nodes("n", "v100", 1, 6), "early", "late")
		w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			p := engine.Decide(s)
			if every > 0 {
				p.Next = min(p.Next, s.Now.Add(every))
			}
			return p
		}
		w.SetShares("late", 2)
		w.Submit("early", 6, 2, forever)
		w.Submit("late", 4, 3, forever)
		w.Run(cluster.Day)
		early, late := w.Used("early"), w.Used("late")
		for range 4 * 24 {
			w.Run(hour)
			for tenant, due := range map[string]cluster.Span{"early": 2, "late": 4} {
				st := w.Standing(tenant, "v100")
				if beyond := st.Behind - cluster.Span(max(st.Owed, 0))/due; beyond > 2*term {
					t.Errorf("%s from its begin tenant %s stands %s behind, %s beyond what it is owed", w.Now().Sub(simtest.Start), tenant, st.Behind, beyond)
				}
			}
		}
		near(t, "twice the weight", w.Used("late")-late, 2*(w.Used("early")-early), 5)
	}
}

// A tenant repays the GPU time that its --no-requeue jobs held of another tenant's entitlement, starting as
// soon as they end. Repayment takes as long as the jobs held that time, and never goes below the floor. Then
// both tenants are even.
func TestWhatWasHeldIsRepaid(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	set := simtest.Product()
	set.Interval, set.RepayFloorPercent = minute, 50
	w := simtest.NewHolding(t, set)
	near(t, "held", w.Used("a"), 3*w.Used("b"), .5)
	if owed := w.Standing("b", "v100").Owed; owed != -w.Standing("a", "v100").Owed {
		t.Errorf("b is owed %d GPU-ms, a owes %d", owed, -w.Standing("a", "v100").Owed)
	} else {
		near(t, "the debt", owed, simtest.HoldingDebt, .5)
	}
	w.Run(2 * term) // a's jobs come at the next boundary
	began, hours, repaid := w.Used("a"), 0, w.Used("b")
	for ; hours < 60 && w.Standing("b", "v100").Repays > 0; hours++ {
		w.Run(hour)
		if got := w.Used("a") - began; got < cluster.Times(4, cluster.Span(hours+1)*hour-set.Threshold) {
			t.Errorf("%d h after the holding a has had %.2f GPU-hours, its floor is 4 an hour", hours+1, got.Hours())
		}
	}
	if repaid = w.Used("b") - repaid; hours > 49 { // a's new jobs have taken their places after an hour
		t.Errorf("b has been repaid for %d h, and is not even: %.2f GPU-hours", hours, (repaid - cluster.Times(8, cluster.Span(hours)*hour)).Hours())
	}
	if off := max(w.Used("a")-w.Used("b"), w.Used("b")-w.Used("a")); off > 2*cluster.Times(8, set.Threshold)+2*cluster.GPUTime(term) {
		t.Errorf("after its repayment b is %.2f GPU-hours off a", off.Hours()) // each may be off by the threshold and a term of a job
	}
	b := w.Used("b")
	w.Run(48 * hour)
	near(t, "b once it is even", w.Used("b")-b, cluster.Times(8, 48*hour), 1)
}

// The test checks the figure repaid_pct: a debt is repaid completely.
func TestRepaidPercent(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	for floor, times := range map[int]int64{50: 1, 75: 2} {
		set := simtest.Product()
		set.Interval, set.RepayFloorPercent = minute, floor
		least := 98.0
		if floor == 75 {
			least = 96 // two GPUs an hour repay it in just this time, and the debtor comes down from its due to its floor within some hours
		}
		if got := simtest.NewHolding(t, set).RepaidPercent(times); got < least || got > 102 {
			t.Errorf("with a floor of %d, %.1f %% of the debt were repaid, want %.0f at least", floor, got, least)
		}
	}
}

// past is a history that leaves debts: idle spells, protected jobs, drains, restarts and new weights.
type past struct {
	*rand.Rand
	w     *simtest.World
	names []string
	idle  bool // there are idle spells
	holds []cluster.JobID
}

func (p *past) protect() {
	p.holds = append(p.holds, p.w.Virtual.Submit(sim.Work{Name: "hold", User: "u", Account: p.names[p.IntN(3)], Partition: "gpu",
		Request: simtest.Gang(1 + p.IntN(4)), Runs: cluster.Span(2+p.IntN(23)) * hour, NoRequeue: true}))
}

// outlast runs until all protected jobs have ended. Those beyond their tenant's due wait for days (bind.max).
func (p *past) outlast(t *testing.T) {
	protected := func(id cluster.JobID) bool { return p.w.Job(id).State != cluster.Done }
	for days := 0; slices.ContainsFunc(p.holds, protected); days++ {
		if days > 60 {
			t.Fatal("protected jobs have not ended")
		}
		p.w.Run(cluster.Day)
	}
}

func (p *past) event() {
	switch p.IntN(6) {
	case 0, 1:
		for range 4 {
			p.protect()
		}
	case 2:
		p.w.SetNode("n02", []string{"", "drain"}[p.IntN(2)])
	case 3:
		p.w.Loop = &loop.Loop{Cluster: p.w.Virtual, Journal: p.w.Loop.Journal, Decide: engine.Decide, Divide: engine.Divide, Configure: p.w.Loop.Configure}
	case 4:
		p.w.SetShares(p.names[p.IntN(3)], 1+p.Int64N(3))
	case 5:
		if p.idle {
			p.w.Submit(p.names[p.IntN(3)], 8, 1, cluster.Span(1+p.IntN(12))*hour)
		}
	}
	p.w.Run(cluster.Span(1+p.IntN(8)) * hour)
}

// After any history, a long enough time of full demand from all tenants makes all of them even. The rest of a
// debt is at most five terms of the tenant's entitlement.
//
// "Long enough" is eight days after the last protected job, plus two more spans: the largest debt at the pace of the floor,
// and the largest credit at the pace of the burst limit. In eight days credit.cap falls below 1 %.
//
// Without idle tenants, the rho of all tenants over the window are within 2 % of each other, counting the
// rest of debts as repaid. The 2 % are needed because recovered deficits are not booked and do not cancel
// exactly.
func TestAllAreEvenAfterASaturatedTime(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	for seed := range seeds.Of(t, 6) {
		set := simtest.Product()
		set.Interval = 5 * minute
		p := &past{Rand: rand.New(rand.NewPCG(seed, 1)), names: []string{"a", "b", "c"}, idle: seed%2 == 1}
		p.w = simtest.New(t, set, simtest.Nodes("n", "v100", 2, 8), p.names...)
		if !p.idle {
			p.saturate()
		}
		for range 6 {
			p.event()
		}
		p.w.SetNode("n02", "")
		if p.idle {
			p.saturate()
		}
		p.outlast(t)
		p.w.Run(8 * cluster.Day)
		var pays, gets cluster.Span
		for _, st := range p.w.Last.Tenants {
			own := max((st.Entitlement-st.Repays)/2, 1)
			if st.Owed < 0 {
				pays = max(pays, cluster.Span(cluster.MulDiv(int64(-st.Owed), int64(cluster.WholeGPU), int64(own))))
			} else {
				gets = max(gets, cluster.Span(cluster.MulDiv(int64(st.Owed), int64(cluster.WholeGPU), int64(2*own))))
			}
		}
		p.w.Run(pays + gets + 2*hour)
		least, most := 2.0, 0.0
		for _, st := range p.w.Last.Tenants {
			own := st.Entitlement - st.Repays
			if left := max(st.Owed, -st.Owed); left > cluster.GPUTime(cluster.MulDiv(int64(own), 5*int64(term), int64(cluster.WholeGPU))) {
				t.Errorf("history %d: %s after %s: %s is owed %.2f GPU-hours at a due of %.2f GPUs", seed, p.w.Now().Sub(simtest.Start), pays+gets, st.Tenant, st.Owed.Hours(), float64(own)/1e6)
			}
			rho := float64(st.Rho)/1e6 + p.outstanding(&st)
			least, most = min(least, rho), max(most, rho)
		}
		if !p.idle && most-least > .02 {
			t.Errorf("history %d: rho are from %.4f to %.4f", seed, least, most)
		}
	}
}

// outstanding returns what a tenant is still owed, as a part of its entitlement in the window.
func (p *past) outstanding(st *cluster.TenantStatus) float64 {
	due := cluster.GPUTime(1)
	for _, row := range p.w.Last.State.Ledger.Tenants {
		if row.Tenant == st.Tenant && row.Pool == st.Pool {
			for _, b := range row.Buckets {
				due += b.Due
			}
		}
	}
	return float64(st.Owed) / float64(due)
}

func (p *past) saturate() {
	for _, name := range p.names {
		p.w.Submit(name, 20, 1, forever)
	}
}
