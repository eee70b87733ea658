package policy_test

import (
	"math"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// plenty is what a tenant with more jobs than GPUs wants.
const plenty = 1_000_000 * gpu

// anywhere is one want, on all models.
func anywhere(gpus cluster.MicroGPU) []policy.Want { return []policy.Want{{GPUs: gpus}} }

// due gives what each claim is due of each model.
func due(parts [][]policy.Part) [][]cluster.MicroGPU {
	out := make([][]cluster.MicroGPU, len(parts))
	for i := range parts {
		for _, p := range parts[i] {
			out[i] = append(out[i], p.Due)
		}
	}
	return out
}

func sameDue(t *testing.T, what string, got [][]policy.Part, want ...[]cluster.MicroGPU) {
	t.Helper()
	if !slices.EqualFunc(due(got), want, slices.Equal) {
		t.Errorf("%s: got %v, want %v", what, due(got), want)
	}
}

// Gandiva_fair §2.1, Figure 1: two servers of four GPUs. "User C's fair share in this
// example is 8 GPUs / 3 active users = 2.66 GPUs … but since the user has only one
// 2-GPU job, user C's fair share is 2 GPUs. … the remaining 6 GPUs needs to be divided
// equally between user A and user B, resulting in 3 GPUs for each of them".
func TestGandivaFairFigure1Tickets(t *testing.T) {
	got := policy.Tickets([]cluster.MicroGPU{8 * gpu}, []policy.Claim{
		{Weight: 100, Wants: anywhere(4 * gpu)}, {Weight: 100, Wants: anywhere(4 * gpu)}, {Weight: 100, Wants: anywhere(2 * gpu)},
	})
	sameDue(t, "A, B and C", got, []cluster.MicroGPU{3 * gpu}, []cluster.MicroGPU{3 * gpu}, []cluster.MicroGPU{2 * gpu})
}

// Gandiva_fair §1: "if the cluster had 5000 V100 and 10000 P100 GPUs, a user with a 20 %
// share of the cluster would be entitled to 1000 V100s and 2000 P100s".
func TestGandivaFairIntroductionTickets(t *testing.T) {
	got := policy.Tickets([]cluster.MicroGPU{5000 * gpu, 10000 * gpu}, []policy.Claim{
		{Weight: 20, Wants: anywhere(plenty)}, {Weight: 80, Wants: anywhere(plenty)},
	})
	sameDue(t, "20 %", got[:1], []cluster.MicroGPU{1000 * gpu, 2000 * gpu})
}

// Gandiva_fair §5.4, Figure 10: 12 V100, 24 P100, 64 K80 and four users with 150 jobs each:
// "3 V100s, 6 P100s and 16 K80s. … the remaining three users now get an equal share of about
// 4 V100s, 8 P100s and 21.3 K80s".
func TestGandivaFairFigure10Tickets(t *testing.T) {
	fleet := []cluster.MicroGPU{12 * gpu, 24 * gpu, 64 * gpu}
	user := func(gang cluster.MicroGPU) policy.Claim {
		return policy.Claim{Weight: 100, Wants: anywhere(150 * gang * gpu)}
	}
	users := []policy.Claim{user(1), user(2), user(4), user(1)}
	for _, u := range policy.Tickets(fleet, users) {
		sameDue(t, "each of four", [][]policy.Part{u}, []cluster.MicroGPU{3 * gpu, 6 * gpu, 16 * gpu})
	}
	got := policy.Tickets(fleet, users[1:])
	sameDue(t, "each of three", got,
		[]cluster.MicroGPU{4 * gpu, 8 * gpu, 21_333_334}, []cluster.MicroGPU{4 * gpu, 8 * gpu, 21_333_333},
		[]cluster.MicroGPU{4 * gpu, 8 * gpu, 21_333_333})
}

// Gandiva_fair §5.3, Figures 6 and 7.
func TestGandivaFairFigures6And7Tickets(t *testing.T) {
	// 62 users with a job of 1 GPU, 3 of 2, 3 of 4, 2 of 8, tickets equal to the size of
	// the job, on 48 P100s; then the large jobs are done.
	var claims []policy.Claim
	for _, class := range []struct{ users, size int64 }{{62, 1}, {3, 2}, {3, 4}, {2, 8}} {
		for range class.users {
			claims = append(claims, policy.Claim{Weight: class.size, Wants: anywhere(cluster.MicroGPU(class.size) * gpu)})
		}
	}
	for i, p := range policy.Tickets([]cluster.MicroGPU{48 * gpu}, claims) {
		if want := cluster.MicroGPU(claims[i].Weight) * gpu / 2; p[0].Due != want {
			t.Errorf("Figure 6, user %d: got %d, want %d", i, p[0].Due, want)
		}
	}
	for i, p := range policy.Tickets([]cluster.MicroGPU{48 * gpu}, claims[:68]) {
		if want := cluster.MicroGPU(claims[i].Weight) * gpu * 6 / 10; p[0].Due != want {
			t.Errorf("Figure 6 without the large jobs, user %d: got %d, want %d", i, p[0].Due, want)
		}
	}
	three := []policy.Claim{{Weight: 100, Wants: anywhere(128 * gpu)}, {Weight: 100, Wants: anywhere(512 * gpu)}, {Weight: 100, Wants: anywhere(256 * gpu)}}
	for _, c := range []struct {
		users int
		each  cluster.MicroGPU
	}{{3, 64 * gpu / 3}, {2, 32 * gpu}, {1, 64 * gpu}} {
		for i, p := range policy.Tickets([]cluster.MicroGPU{64 * gpu}, three[:c.users]) {
			if p[0].Due-c.each > 1 || p[0].Due < c.each {
				t.Errorf("Figure 7, user %d of %d: got %d, want %d", i+1, c.users, p[0].Due, c.each)
			}
		}
	}
}

// Jobs that can run anywhere count once, on the newest models first; jobs that name a model take
// from their tenant's share of it first, and have no right to more (§3.4).
func TestTicketsCountEveryGPUOnce(t *testing.T) {
	fleet := []cluster.MicroGPU{12 * gpu, 60 * gpu}
	v100, k80 := []bool{true, false}, []bool{false, true}
	for name, c := range map[string]struct {
		claims []policy.Claim
		want   [][]policy.Part
	}{
		"few jobs, some jobs, many jobs": {
			[]policy.Claim{{1, anywhere(2 * gpu)}, {1, anywhere(8 * gpu)}, {1, []policy.Want{{plenty, nil}, {4 * gpu, v100}}}},
			[][]policy.Part{
				{{2 * gpu, []cluster.MicroGPU{2 * gpu}}, {0, []cluster.MicroGPU{0}}},
				{{5 * gpu, []cluster.MicroGPU{5 * gpu}}, {3 * gpu, []cluster.MicroGPU{3 * gpu}}},
				{{5 * gpu, []cluster.MicroGPU{gpu, 4 * gpu}}, {57 * gpu, []cluster.MicroGPU{57 * gpu, 0}}},
			},
		},
		"jobs that name a model": {
			[]policy.Claim{{1, []policy.Want{{100 * gpu, v100}}}, {1, anywhere(plenty)}, {2, []policy.Want{{plenty, k80}}}},
			[][]policy.Part{
				{{6 * gpu, []cluster.MicroGPU{6 * gpu}}, {0, []cluster.MicroGPU{0}}},
				{{6 * gpu, []cluster.MicroGPU{6 * gpu}}, {20 * gpu, []cluster.MicroGPU{20 * gpu}}},
				{{0, []cluster.MicroGPU{0}}, {40 * gpu, []cluster.MicroGPU{40 * gpu}}},
			},
		},
		"kinds that may use different models": {
			[]policy.Claim{{1, []policy.Want{{2 * gpu, v100}, {10 * gpu, k80}, {30 * gpu, nil}, {10 * gpu, nil}}}, {1, anywhere(plenty)}},
			[][]policy.Part{
				{{6 * gpu, []cluster.MicroGPU{2 * gpu, 0, 3 * gpu, gpu}}, {30 * gpu, []cluster.MicroGPU{0, 10 * gpu, 15 * gpu, 5 * gpu}}},
				{{6 * gpu, []cluster.MicroGPU{6 * gpu}}, {30 * gpu, []cluster.MicroGPU{30 * gpu}}},
			},
		},
	} {
		if got := policy.Tickets(fleet, c.claims); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestReadjust(t *testing.T) {
	for _, c := range []struct {
		name    string
		total   cluster.MicroGPU
		weights []int64
		wants   []cluster.MicroGPU
		parts   []cluster.MicroGPU
	}{
		{"nobody", gpu, nil, nil, []cluster.MicroGPU{}},
		{"no GPUs", 0, []int64{1, 1}, []cluster.MicroGPU{gpu, gpu}, []cluster.MicroGPU{0, 0}},
		{"less than no GPUs", -gpu, []int64{1}, []cluster.MicroGPU{gpu}, []cluster.MicroGPU{0}},
		{"by weight", 4 * gpu, []int64{1, 3}, []cluster.MicroGPU{plenty, plenty}, []cluster.MicroGPU{gpu, 3 * gpu}},
		{"one after the other is satisfied", 12 * gpu, []int64{1, 1, 1, 1}, []cluster.MicroGPU{plenty, gpu, 3 * gpu, plenty}, []cluster.MicroGPU{4 * gpu, gpu, 3 * gpu, 4 * gpu}},
		{"nobody wants the rest", 12 * gpu, []int64{1, 2}, []cluster.MicroGPU{2 * gpu, gpu}, []cluster.MicroGPU{5 * gpu, 7 * gpu}},
		{"weight 0 gets nothing, also of what nobody wants", 4 * gpu, []int64{0, 1}, []cluster.MicroGPU{gpu, gpu}, []cluster.MicroGPU{0, 4 * gpu}},
		{"all weights 0", 4 * gpu, []int64{0, 0}, []cluster.MicroGPU{gpu, gpu}, []cluster.MicroGPU{0, 0}},
		{"negative is 0", 4 * gpu, []int64{-1, 1, 1}, []cluster.MicroGPU{gpu, -gpu, gpu}, []cluster.MicroGPU{0, 3 * gpu / 2, 5 * gpu / 2}},
		{"the largest numbers", math.MaxInt64, []int64{math.MaxInt64, math.MaxInt64}, []cluster.MicroGPU{math.MaxInt64, math.MaxInt64}, []cluster.MicroGPU{1 << 62, 1<<62 - 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := policy.Readjust(c.total, c.weights, c.wants); !slices.Equal(got, c.parts) {
				t.Errorf("got %v, want %v", got, c.parts)
			}
		})
	}
}

// Whatever is wanted: the parts of each model sum to its GPUs exactly, nobody gets less than
// the smaller of its share and its want, nobody gets what it does not want while somebody
// else wants it, who could use more has no less per ticket than anybody, and no GPU that is
// wanted counts twice.
func TestTicketsAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cluster.MicroGPU {
			return cluster.MicroGPU(rapid.IntRange(0, 64).Draw(t, "GPUs")) * gpu
		}), 1, 4).Draw(t, "fleet")
		claims := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) policy.Claim {
			c := policy.Claim{Weight: rapid.Int64Range(0, 5).Draw(t, "weight")}
			for range rapid.IntRange(0, 3).Draw(t, "kinds") {
				w := policy.Want{GPUs: cluster.MicroGPU(rapid.Int64Range(0, int64(100*gpu)).Draw(t, "wants"))}
				for range fleet {
					w.May = append(w.May, rapid.IntRange(0, 3).Draw(t, "may") > 0)
				}
				c.Wants = append(c.Wants, w)
			}
			return c
		}), 1, 8).Draw(t, "claims")
		sum := int64(0)
		for i := range claims {
			sum += claims[i].Weight
		}
		if sum == 0 {
			return
		}
		parts := policy.Tickets(fleet, claims)
		for m := range fleet {
			total, unwanted, wanting := cluster.MicroGPU(0), cluster.MicroGPU(0), false
			most, least := new(big.Rat), big.NewRat(math.MaxInt64, 1)
			for i, c := range claims {
				p := parts[i][m]
				total += p.Due
				used, wants := cluster.MicroGPU(0), cluster.MicroGPU(0)
				for k, w := range c.Wants {
					used += p.For[k]
					open := w.GPUs
					for before := range m {
						open -= parts[i][before].For[k]
					}
					if p.For[k] < 0 || p.For[k] > open || p.For[k] > 0 && !w.May[m] {
						t.Fatalf("claim %d has %d of model %d for its want %d, of which %d are open", i, p.For[k], m, k, open)
					}
					if w.May[m] {
						wants += open
					}
				}
				if used != min(p.Due, wants) {
					t.Fatalf("claim %d is due %d of model %d, wants %d and uses %d", i, p.Due, m, wants, used)
				}
				unwanted += p.Due - used
				if c.Weight == 0 {
					continue
				}
				if share := cluster.MulDiv(int64(fleet[m]), c.Weight, sum); p.Due < min(cluster.MicroGPU(share), wants) {
					t.Fatalf("claim %d is due %d of model %d, has a share of %d and wants %d", i, p.Due, m, share, wants)
				}
				perTicket := big.NewRat(int64(used), c.Weight)
				if most.Cmp(perTicket) < 0 {
					most = perTicket
				}
				if used < wants {
					wanting = true
					if least.Cmp(perTicket) > 0 {
						least = perTicket
					}
				}
			}
			if total != fleet[m] {
				t.Fatalf("the parts of model %d sum to %d, not to %d", m, total, fleet[m])
			}
			if wanting && unwanted > 0 {
				t.Fatalf("%d of model %d go to those who do not want them", unwanted, m)
			}
			if wanting && new(big.Rat).Sub(most, least).Cmp(big.NewRat(2, 1)) > 0 {
				t.Fatalf("somebody has %s per ticket of model %d, and somebody who wants more %s", most.FloatString(3), m, least.FloatString(3))
			}
		}
		reversed := slices.Clone(claims)
		slices.Reverse(reversed)
		for i, p := range policy.Tickets(fleet, reversed) {
			for m := range fleet {
				if off := p[m].Due - parts[len(claims)-1-i][m].Due; off > 8 || off < -8 {
					t.Fatalf("claim %d is due %d more of model %d in another order", i, off, m)
				}
			}
		}
	})
}
