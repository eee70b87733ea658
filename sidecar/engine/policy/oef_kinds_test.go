package policy

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// kinded draws a market of up to 6 tenants with up to 4 kinds each, of up to 2 users.
func kinded(t *rapid.T, zeros bool) Market {
	k := rapid.IntRange(1, 4).Draw(t, "models")
	gpus := make([]float64, k)
	for j := range gpus {
		gpus[j] = float64(rapid.IntRange(1, 32).Draw(t, "gpus"))
	}
	m := market(nil, gpus)
	for l := range rapid.IntRange(1, 6).Draw(t, "tenants") {
		tenant := Tenant{Name: fmt.Sprint("tenant", l), Weight: float64(rapid.IntRange(1, 4).Draw(t, "weight"))}
		for i := range rapid.IntRange(1, 4).Draw(t, "kinds") {
			kind := Kind{User: fmt.Sprint(rapid.IntRange(1, 2).Draw(t, "user")), Demand: float64(rapid.IntRange(1, 24).Draw(t, "demand"))}
			if rapid.IntRange(0, 3).Draw(t, "any") == 0 {
				kind.Demand = inf
			}
			for j := range k {
				w := 1.0
				if j > 0 {
					w = kind.Speedup[j-1] * rapid.Float64Range(1, 2).Draw(t, "step")
				}
				kind.Speedup = append(kind.Speedup, w)
			}
			if zeros && k > 1 && rapid.IntRange(0, 3).Draw(t, "of no use") == 0 {
				kind.Speedup[rapid.IntRange(0, k-1).Draw(t, "model")] = 0
			}
			if i > 0 {
				tenant.Others = append(tenant.Others, kind)
			} else {
				tenant.Kind = kind
			}
		}
		m.Tenants = append(m.Tenants, tenant)
	}
	return m
}

// A tenant's kinds together envy nobody's part, and have at least what its share is worth; without demands each kind has what it would have
// if the tenant divided its share inside.
func TestCooperativeOfKinds(t *testing.T) {
	needsCLP(t)
	for _, zeros := range []bool{false, true} {
		t.Run(fmt.Sprint("zeros=", zeros), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := kinded(t, zeros)
				p := must(t, OEFCooperative, m)
				f, room := audit(t, m, p), unknown
				if m.blurred() {
					room = 3 * unknown
				}
				present := m.present()
				for _, i := range present {
					tenant := &m.Tenants[i]
					for l, x := range f.Envy[i] {
						if x > 1+room {
							t.Fatalf("%d has %v and envies %d, whose part is %v times as good", i, p.GPUs[i], l, x)
						}
					}
					share := m.share(i, m.weights(present))
					if has, of := tenant.most(p.GPUs[i]).Worth, tenant.most(share).Worth; has < of*(1-room) {
						t.Fatalf("%d can make %v of its part, and %v of its share", i, has, of)
					}
					if f.Incentive[i] < 1-room {
						t.Fatalf("%d has %v of what its share would give it", i, f.Incentive[i])
					}
					if slices.ContainsFunc(tenant.kinds(), func(k Kind) bool { return k.Demand < inf }) {
						continue
					}
					for at, part := range tenant.inside(share) {
						w := tenant.kinds()[at].Speedup
						if has, of := worth(w, p.Kinds[i][at]), worth(w, part); has < of*(1-room)-1e-9 {
							t.Fatalf("kind %d of %d has %v, and %v of the tenant's share", at, i, has, of)
						}
					}
				}
			})
		})
	}
}

// A small kind's rest stays with its tenant: 14 and 1 against 16 are 8 and 8, not 6 and 10.
func TestASmallKindCostsItsTenantNothing(t *testing.T) {
	for name, divide := range map[string]Division{"coop": OEFCooperative, "noncoop": OEFNonCooperative} {
		if name == "coop" {
			needsCLP(t)
		}
		for small := range 4 {
			m := market([][]float64{{1}, {1}}, []float64{16})
			m.Tenants[0].Demand, m.Tenants[1].Demand = 14, 16
			for range small {
				m.Tenants[0].Others = append(m.Tenants[0].Others, Kind{Speedup: []float64{1}, Demand: 1})
			}
			p := must(t, divide, m)
			if math.Abs(p.GPUs[0][0]-8) > 1e-8 || math.Abs(p.GPUs[1][0]-8) > 1e-8 {
				t.Errorf("%s, %d small kinds: %v", name, small, p.GPUs)
			}
		}
	}
}

// A tenant does not gain by splitting a kind of its jobs in two, or, what is the same, by merging two that are alike; nor do its jobs
// by small ones beside them.
func TestSplittingKindsGainsNothing(t *testing.T) {
	needsCLP(t)
	rapid.Check(t, func(t *rapid.T) {
		m := kinded(t, rapid.Bool().Draw(t, "zeros"))
		tenant := &m.Tenants[0]
		tenant.Others, tenant.User = nil, "1"
		whole := must(t, OEFNonCooperative, m)
		before := tenant.has(whole.Kinds[0])
		split := tenant.Kind
		if split.Demand < inf {
			split.Demand *= rapid.Float64Range(.01, .5).Draw(t, "part")
			tenant.Demand -= split.Demand
		}
		tenant.Others = []Kind{split}
		p := must(t, OEFNonCooperative, m)
		if after := tenant.has(p.Kinds[0]); !near(after, before, unknown) {
			t.Fatalf("it has %v as two kinds, and %v as one: %+v %v %v", after, before, m, whole.Kinds, p.Kinds)
		}
		small := Kind{User: "1", Speedup: slices.Repeat([]float64{1}, len(m.Models)), Demand: 1}
		tenant.Others = append(tenant.Others, small)
		p = must(t, OEFNonCooperative, m)
		if jobs := tenant.has(p.Kinds[0]) - worth(small.Speedup, p.Kinds[0][2]); jobs > before*(1+unknown)+1e-9 {
			t.Fatalf("its jobs have %v beside a small one, and %v without", jobs, before)
		}
	})
}

// A kind that can use no GPU changes nothing.
func TestAKindWithoutDemand(t *testing.T) {
	needsCLP(t)
	for name, divide := range map[string]Division{"coop": OEFCooperative, "noncoop": OEFNonCooperative} {
		m := market([][]float64{{1, 2}, {1, 3}}, []float64{4, 4})
		want := must(t, divide, m).Objective
		m.Tenants[0].Others = []Kind{{Speedup: []float64{1, 2}}, {Speedup: []float64{0, 0}, Demand: 3}}
		if p := must(t, divide, m); !near(p.Objective, want, 1e-6) {
			t.Errorf("%s: the sum is %v beside kinds without use, and %v without", name, p.Objective, want)
		}
	}
}
