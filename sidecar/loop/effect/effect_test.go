package effect_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/loop/effect"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// recorded gives the snapshots of a busy hour: two tenants on 16 GPUs, with more jobs than fit.
func recorded(t *testing.T) (all []cluster.Snapshot, setup effect.Setup) {
	t.Helper()
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 2, 8), "nlp", "vision")
	decide := w.Loop.Decide
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		all = append(all, s)
		return decide(s)
	}
	w.Submit("nlp", 6, 4, 3*cluster.Hour)
	w.Run(10 * cluster.Minute)
	w.Submit("vision", 6, 4, 3*cluster.Hour)
	w.Run(50 * cluster.Minute)
	setup.Rules, setup.Settings = w.Loop.Configure()
	return all, setup
}

// Under the rules and settings of its record, a snapshot is as it was, and the same is decided.
func TestUnderItsOwnRules(t *testing.T) {
	all, setup := recorded(t)
	if len(all) < 50 {
		t.Fatalf("only %d rounds", len(all))
	}
	for i := range all {
		s := &all[i]
		under, unknown := loop.Under(*s, &setup.Rules, &setup.Rules, setup.Settings)
		was := *s
		was.Follows, was.NodesVersion = false, 0
		for _, list := range []*[]cluster.Case{&was.Cases, &under.Cases} {
			*list = append([]cluster.Case(nil), *list...)
			for k := range *list {
				(*list)[k].Was = 0
			}
		}
		if len(unknown) > 0 || !reflect.DeepEqual(was.Cases, under.Cases) || !reflect.DeepEqual(was.Tenants, under.Tenants) {
			t.Fatalf("round %d: %v, another snapshot", s.Round, unknown)
		}
		if !reflect.DeepEqual(engine.Decide(was), engine.Decide(under)) {
			t.Fatalf("round %d: another plan", s.Round)
		}
		if e := effect.Of(s, &setup, &setup, engine.Decide, engine.Divide); !e.None() || e.Percent() != 0 || e.String() != "the next round would decide as it does now" {
			t.Fatalf("round %d: %v", s.Round, e)
		}
	}
}

// Other settings have the effects that they are known for.
func TestEffects(t *testing.T) {
	all, setup := recorded(t)
	change := func(change func(*effect.Setup)) []*effect.Effect {
		now := setup
		change(&now)
		var out []*effect.Effect
		for i := range all {
			out = append(out, effect.Of(&all[i], &setup, &now, engine.Decide, engine.Divide))
		}
		return out
	}
	last := func(list []*effect.Effect) *effect.Effect { return list[len(list)-1] }
	sum := func(list []*effect.Effect, of func(*effect.Effect) []effect.Job) (n int) {
		for _, e := range list {
			n += len(of(e))
		}
		return n
	}

	e := last(change(func(s *effect.Setup) { s.Rules.Weights = map[string]int64{"nlp": 3, "vision": 1} }))
	if len(e.Tenants) != 2 || e.Moved != 4*cluster.WholeGPU || e.Percent() != 25 || !strings.Contains(e.String(), "move the entitlement to 4.0 GPUs") {
		t.Errorf("weights of 3 to 1 in place of 1 to 1: %v, %+v", e, e)
	}
	for _, x := range e.Tenants {
		if want := map[string]int64{"nlp": 750_000, "vision": 250_000}[x.Tenant]; x.Was.Share != 500_000 || x.Now.Share != want {
			t.Errorf("%s has %d and then %d millionths of the weight, want half and then %d", x.Tenant, x.Was.Share, x.Now.Share, want)
		}
	}
	worst := 0.0
	for i, e := range change(func(s *effect.Setup) { s.Rules.Partitions = []string{"other"} }) {
		if len(e.Left) != len(all[i].Cases) {
			t.Errorf("another partition: round %d leaves %d of %d jobs alone", e.Round, len(e.Left), len(all[i].Cases))
		}
		worst = max(worst, e.Percent())
	}
	if worst != 100 {
		t.Errorf("another partition ends the leases on %.1f%% of the GPUs at most", worst)
	}
	if e := last(change(func(s *effect.Setup) { s.Rules.TenantLevel = 2 })); len(e.Unknown) != 1 && e.None() {
		t.Errorf("another level of tenants: %v, %v", e, e.Unknown)
	}
	observed := change(func(s *effect.Setup) { s.Rules.Mode = loop.Observe })
	if stops, starts := sum(observed, func(e *effect.Effect) []effect.Job { return e.Kept }), sum(observed, func(e *effect.Effect) []effect.Job { return e.Waits }); stops == 0 || starts == 0 {
		t.Errorf("mode observe stops nobody and grants nothing: %d stops and %d grants less", stops, starts)
	}
	longer := change(func(s *effect.Setup) { s.Settings.Term = 4 * cluster.Hour })
	if n := sum(longer, func(e *effect.Effect) []effect.Job { return e.Ends }) + sum(longer, func(e *effect.Effect) []effect.Job { return e.Kept }) + sum(longer, func(e *effect.Effect) []effect.Job { return e.Starts }) + sum(longer, func(e *effect.Effect) []effect.Job { return e.Waits }); n == 0 {
		t.Error("another term changes no decision of an hour")
	}
}
