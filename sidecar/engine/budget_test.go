package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// spend sets when the budgets of tenants were used up, until the given time; none = their budgets last.
func (w *world) spend(until cluster.Instant, tenants ...string) {
	w.Rules.Budgets = map[string]cluster.TenantBudget{}
	for _, name := range tenants {
		w.Rules.Budgets[name] = cluster.TenantBudget{Since: w.Now(), Until: until}
	}
}

// A tenant whose budget is used up keeps its GPUs to the end of the term, then gives way to others, and says why its jobs wait.
// Nothing is owed to it for that time. The next period restores its share.
func TestATenantWithoutBudgetGetsIdleGPUsOnly(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8}, "a", "b")
	w.Submit("a", 8, 1, forever)
	w.Run(hour + 5*minute)
	until := w.Now().Add(6 * hour)
	w.spend(until, "a")
	w.Submit("b", 4, 1, forever)
	w.Settings.RecallFirst = false
	w.Run(8 * minute)
	near(t, "a, to the end of the term", w.Used("a"), cluster.Times(8, hour+13*minute), 3)
	w.Run(4 * minute)
	before := w.Used("a")
	w.Run(2 * hour)
	near(t, "a, on the GPUs that b leaves idle", w.Used("a")-before, cluster.Times(4, 2*hour), 3)
	w.Submit("b", 8, 1, forever)
	w.Run(16 * minute)
	before = w.Used("a")
	w.Run(hour)
	if got := w.Used("a") - before; got != 0 {
		t.Errorf("a got %.2f GPU-hours without budget while b waited", got.Hours())
	}
	if st := w.Standing("a", "v100"); st.Owed > 0 || st.Entitlement != 0 {
		t.Errorf("a without budget: %+v", st)
	}
	waits := 0
	for _, v := range w.Last.Statuses {
		if v.Reason.Code == cluster.ReasonSpent {
			waits++
			if b := v.Reason.Budget; b == nil || b.Until != until || b.Since != simtest.Start.Add(hour+5*minute) {
				t.Errorf("job %d waits for %+v", v.Job, b)
			}
		}
	}
	if waits != 8 {
		t.Errorf("%d jobs wait for the budget, want 8", waits)
	}
	w.spend(0)
	w.Run(16 * minute)
	before = w.Used("a")
	w.Run(3 * hour)
	near(t, "a in the next period", w.Used("a")-before, cluster.Times(4, 3*hour), 5)
	w.books()
}

// Tenants share by weight if all have used up their budgets.
func TestTenantsWithoutBudgetShareByWeight(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8}, "a", "b")
	w.Submit("a", 8, 1, forever)
	w.Submit("b", 8, 1, forever)
	w.spend(w.Now().Add(cluster.Day), "a", "b")
	w.Run(8 * hour)
	near(t, "a", w.Used("a"), cluster.Times(4, 8*hour), 5)
}

// A round reports what is new about a budget once.
func TestNewsOfABudgetIsAnEvent(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8}, "a")
	w.Rules.Budgets = map[string]cluster.TenantBudget{"a": {News: "tenant a has used 80 % of its budget"}}
	w.Run(10 * second)
	w.Rules.Budgets = nil
	w.Run(hour)
	var told []cluster.Event
	for _, r := range w.reports {
		told = append(told, r.Plan.Events...)
	}
	if len(told) != 1 || told[0].Kind != "budget" || told[0].Text != "tenant a has used 80 % of its budget" {
		t.Errorf("told %+v", told)
	}
}

// Whatever the preset and the jobs, a tenant without budget gets no lease, and none of its leases is renewed, while a job of
// a tenant with budget waits that fits there. Leases end with their terms, after a notice, and the books balance.
func TestPropertiesOfBudgets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set := simtest.Product()
		set.StopAllowance, set.StopOverheadMilli, set.MaxReclaims, set.RecallFirst = 0, 0, 0, false
		set.Signals = []cluster.SignalRule{{Signal: "USR1", To: "steps"}}
		set.Threshold = rapid.SampledFrom([]cluster.Span{0, 15}).Draw(rt, "threshold") * minute
		set.BurstMaxMilli = rapid.SampledFrom([]int64{0, 1000, 2000}).Draw(rt, "burst")
		if by := rapid.SampledFrom(append([]string{""}, preset.Kinds()...)).Draw(rt, "preset"); by != "" {
			set.Divide, set.DivideJobs, set.DivideEvery = by, preset.OfJobs(by), 20
			set.Mechanism = rapid.SampledFrom(cluster.Mechanisms).Draw(rt, "mechanism")
		}
		tenants := []string{"a", "b", "c", "d"}[:rapid.IntRange(2, 4).Draw(rt, "tenants")]
		w := newWorldOn(t, set, drawNodes(rt), tenants...)
		own := w.Check
		w.Check = func(r loop.Report) {
			own(r)
			w.yields(rt, &r.Plan)
		}
		submit := func() {
			w.submit(rapid.SampledFrom(tenants).Draw(rt, "tenant"), rapid.SampledFrom([]int{1, 1, 2, 4}).Draw(rt, "gpus"),
				cluster.Span(rapid.IntRange(5, 300).Draw(rt, "minutes"))*minute, func(j *sim.Work) {
					j.Comment = fmt.Sprintf("kind=%s,steps/s.v100=%d,steps/s.k80=1", rapid.SampledFrom([]string{"slow", "fast"}).Draw(rt, "kind"), rapid.IntRange(1, 6).Draw(rt, "speed"))
				})
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			submit()
			if rapid.IntRange(0, 4).Draw(rt, "budgets") == 0 {
				w.spend(w.Now().Add(cluster.Day), tenants[:rapid.IntRange(0, len(tenants)).Draw(rt, "spent")]...)
			}
			w.Run(cluster.Span(rapid.IntRange(1, 1200).Draw(rt, "seconds")) * second)
		}
		notices := w.done(cluster.Notify)
		for _, d := range w.done(cluster.Reclaim) {
			told := slices.ContainsFunc(notices, func(n deed) bool { return n.ID == d.ID && n.at.Add(set.Notice) == d.at })
			if d.at%cluster.Instant(set.Term) != 0 || !told {
				rt.Errorf("job %s was requeued at %s: within a term, or without notice", d.ID, d.at.Sub(simtest.Start))
			}
		}
		w.books()
	})
}

// yields checks a plan: no lease that a tenant without budget got or had renewed in this round has GPUs for which a job of a
// tenant with budget waits. A claim may keep GPUs for such a job.
func (w *world) yields(t *rapid.T, p *cluster.Plan) {
	spent := func(tenant string) bool { return w.Rules.Budgets[tenant].Since > 0 }
	if !slices.ContainsFunc(w.Last.Tenants, func(s cluster.TenantStatus) bool { return !spent(s.Tenant) }) {
		return
	}
	for _, v := range p.Statuses {
		waits := recordOf(p, v.Job)
		if spent(waits.Tenant) || !slices.Contains([]cluster.Code{cluster.ReasonBehind, cluster.ReasonShape, cluster.ReasonBurst, cluster.ReasonThreshold}, v.Reason.Code) {
			continue
		}
		for _, l := range p.State.Leases {
			has := recordOf(p, l.Job)
			if !spent(has.Tenant) || l.Granted != p.At || l.Adopted { // adopted: Slurm started it
				continue
			}
			job := w.Job(waits.ID)
			if len(l.Nodes) == 1 && l.Size.Devices >= job.Request.Size.Devices && (job.Request.Model == "" || job.Request.Model == l.Pool) {
				t.Fatalf("at %s job %s of %s, without budget, got %v while job %s of %s waits: %+v", fmt.Sprint(p.At.Sub(simtest.Start)), has.ID, has.Tenant, l, waits.ID, waits.Tenant, v.Reason)
			}
		}
	}
}
