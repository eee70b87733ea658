package policy

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// plenty is what a tenant with more jobs than GPUs wants.
const plenty = 1_000_000 * gpu

// due gives what each claim is due of each model.
func due(parts [][]Part) [][]cluster.MicroGPU {
	out := make([][]cluster.MicroGPU, len(parts))
	for i := range parts {
		for _, p := range parts[i] {
			out[i] = append(out[i], p.Due)
		}
	}
	return out
}

func sameDue(t *testing.T, what string, got [][]Part, want ...[]cluster.MicroGPU) {
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
	got := Tickets([]cluster.MicroGPU{8 * gpu}, []Claim{
		{Weight: 100, Free: 4 * gpu}, {Weight: 100, Free: 4 * gpu}, {Weight: 100, Free: 2 * gpu},
	})
	sameDue(t, "A, B and C", got, []cluster.MicroGPU{3 * gpu}, []cluster.MicroGPU{3 * gpu}, []cluster.MicroGPU{2 * gpu})
}

// Gandiva_fair §1: "if the cluster had 5000 V100 and 10000 P100 GPUs, a user with a 20 %
// share of the cluster would be entitled to 1000 V100s and 2000 P100s".
func TestGandivaFairIntroductionTickets(t *testing.T) {
	got := Tickets([]cluster.MicroGPU{5000 * gpu, 10000 * gpu}, []Claim{
		{Weight: 20, Free: plenty}, {Weight: 80, Free: plenty},
	})
	sameDue(t, "20 %", got[:1], []cluster.MicroGPU{1000 * gpu, 2000 * gpu})
}

// Gandiva_fair §5.4, Figure 10: 12 V100, 24 P100, 64 K80 and four users with 150 jobs each:
// "3 V100s, 6 P100s and 16 K80s. … the remaining three users now get an equal share of about
// 4 V100s, 8 P100s and 21.3 K80s".
func TestGandivaFairFigure10Tickets(t *testing.T) {
	fleet := []cluster.MicroGPU{12 * gpu, 24 * gpu, 64 * gpu}
	user := func(gang cluster.MicroGPU) Claim { return Claim{Weight: 100, Free: 150 * gang * gpu} }
	users := []Claim{user(1), user(2), user(4), user(1)}
	for _, u := range Tickets(fleet, users) {
		sameDue(t, "each of four", [][]Part{u}, []cluster.MicroGPU{3 * gpu, 6 * gpu, 16 * gpu})
	}
	got := Tickets(fleet, users[1:])
	sameDue(t, "each of three", got,
		[]cluster.MicroGPU{4 * gpu, 8 * gpu, 21_333_334}, []cluster.MicroGPU{4 * gpu, 8 * gpu, 21_333_333},
		[]cluster.MicroGPU{4 * gpu, 8 * gpu, 21_333_333})
}

// Gandiva_fair §5.3, Figures 6 and 7.
func TestGandivaFairFigures6And7Tickets(t *testing.T) {
	// 62 users with a job of 1 GPU, 3 of 2, 3 of 4, 2 of 8, tickets equal to the size of
	// the job, on 48 P100s; then the large jobs are done.
	var claims []Claim
	for _, class := range []struct{ users, size int64 }{{62, 1}, {3, 2}, {3, 4}, {2, 8}} {
		for range class.users {
			claims = append(claims, Claim{Weight: class.size, Free: cluster.MicroGPU(class.size) * gpu})
		}
	}
	for i, p := range Tickets([]cluster.MicroGPU{48 * gpu}, claims) {
		if want := cluster.MicroGPU(claims[i].Weight) * gpu / 2; p[0].Due != want {
			t.Errorf("Figure 6, user %d: got %d, want %d", i, p[0].Due, want)
		}
	}
	for i, p := range Tickets([]cluster.MicroGPU{48 * gpu}, claims[:68]) {
		if want := cluster.MicroGPU(claims[i].Weight) * gpu * 6 / 10; p[0].Due != want {
			t.Errorf("Figure 6 without the large jobs, user %d: got %d, want %d", i, p[0].Due, want)
		}
	}
	three := []Claim{{Weight: 100, Free: 128 * gpu}, {Weight: 100, Free: 512 * gpu}, {Weight: 100, Free: 256 * gpu}}
	for _, c := range []struct {
		users int
		each  cluster.MicroGPU
	}{{3, 64 * gpu / 3}, {2, 32 * gpu}, {1, 64 * gpu}} {
		for i, p := range Tickets([]cluster.MicroGPU{64 * gpu}, three[:c.users]) {
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
	got := Tickets(fleet, []Claim{
		{Weight: 1, Free: 2 * gpu},
		{Weight: 1, Free: 8 * gpu},
		{Weight: 1, Free: plenty, Pinned: []cluster.MicroGPU{4 * gpu, 0}},
	})
	want := [][]Part{
		{{Due: 2 * gpu, Free: 2 * gpu}, {}},
		{{Due: 5 * gpu, Free: 5 * gpu}, {Due: 3 * gpu, Free: 3 * gpu}},
		{{Due: 5 * gpu, Pinned: 4 * gpu, Free: gpu}, {Due: 57 * gpu, Free: 57 * gpu}},
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
	got = Tickets(fleet, []Claim{
		{Weight: 1, Pinned: []cluster.MicroGPU{100 * gpu, 0}},
		{Weight: 1, Free: plenty},
		{Weight: 2, Free: plenty, May: []bool{false, true}},
	})
	want = [][]Part{
		{{Due: 6 * gpu, Pinned: 6 * gpu}, {}},
		{{Due: 6 * gpu, Free: 6 * gpu}, {Due: 20 * gpu, Free: 20 * gpu}},
		{{}, {Due: 40 * gpu, Free: 40 * gpu}},
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
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
			if got := Readjust(c.total, c.weights, c.wants); !slices.Equal(got, c.parts) {
				t.Errorf("got %v, want %v", got, c.parts)
			}
		})
	}
}

// Whatever is wanted: the parts of each model sum to its GPUs exactly, nobody gets less than
// the smaller of its share and its want, nobody gets what it does not want while somebody
// else wants it, and who could use more has no less per ticket than anybody.
func TestTicketsAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cluster.MicroGPU {
			return cluster.MicroGPU(rapid.IntRange(0, 64).Draw(t, "GPUs")) * gpu
		}), 1, 4).Draw(t, "fleet")
		claims := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Claim {
			c := Claim{
				Weight: rapid.Int64Range(0, 5).Draw(t, "weight"),
				Free:   cluster.MicroGPU(rapid.Int64Range(0, int64(100*gpu)).Draw(t, "free")),
			}
			for range fleet {
				c.Pinned = append(c.Pinned, cluster.MicroGPU(rapid.IntRange(0, 8).Draw(t, "pinned"))*gpu)
				c.May = append(c.May, rapid.IntRange(0, 3).Draw(t, "may") > 0)
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
		parts := Tickets(fleet, claims)
		for m := range fleet {
			total, unwanted, wanting := cluster.MicroGPU(0), cluster.MicroGPU(0), false
			most, least := new(big.Rat), big.NewRat(math.MaxInt64, 1)
			for i, c := range claims {
				p := parts[i][m]
				total += p.Due
				if p.Pinned > c.Pinned[m] || p.Free > 0 && !c.May[m] || p.Pinned+p.Free > p.Due {
					t.Fatalf("claim %d has %+v of model %d", i, p, m)
				}
				unwanted += p.Due - p.Pinned - p.Free
				if c.Weight == 0 {
					continue
				}
				wants := c.Pinned[m]
				if c.May[m] {
					wants += c.Free
					for before := range m {
						wants -= parts[i][before].Free
					}
				}
				if share := cluster.MulDiv(int64(fleet[m]), c.Weight, sum); p.Due < min(cluster.MicroGPU(share), wants) {
					t.Fatalf("claim %d is due %d of model %d, has a share of %d and wants %d", i, p.Due, m, share, wants)
				}
				perTicket := big.NewRat(int64(p.Pinned+p.Free), c.Weight)
				if most.Cmp(perTicket) < 0 {
					most = perTicket
				}
				if p.Pinned+p.Free < wants {
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
		for i, p := range Tickets(fleet, reversed) {
			for m := range fleet {
				if off := p[m].Due - parts[len(claims)-1-i][m].Due; off > 4 || off < -4 {
					t.Fatalf("claim %d is due %d more of model %d in another order", i, off, m)
				}
			}
		}
		for i := range claims {
			used := cluster.MicroGPU(0)
			for m := range fleet {
				used += parts[i][m].Free
			}
			if used > claims[i].Free {
				t.Fatalf("claim %d wants %d anywhere and counts %d", i, claims[i].Free, used)
			}
		}
	})
}
