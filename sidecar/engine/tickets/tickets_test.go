package tickets

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The time of a GPU goes to tenants by weight, then to users, then to jobs.
func TestTimes(t *testing.T) {
	const whole, minute = cluster.WholeGPU, cluster.Minute
	under := func(name string, weight int64, above ...string) cluster.Tenant {
		return cluster.Tenant{Name: name, Weight: weight, Under: above[0], Above: above}
	}
	used := cluster.TenantBudget{Since: 1}
	equal := []cluster.Tenant{{Name: "nlp", Weight: 1}, {Name: "vision", Weight: 1}}
	for _, c := range []struct {
		name    string
		tenants []cluster.Tenant
		jobs    []Job
		set     cluster.Settings
		quantum cluster.Span
		want    []cluster.MicroGPU // nil = equal
	}{
		{name: "a job alone", tenants: equal, jobs: []Job{{"nlp", "a"}}},
		{name: "equal weights", tenants: equal, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}},
		{name: "two jobs of a tenant", tenants: equal, jobs: []Job{{"nlp", "a"}, {"nlp", "b"}}},
		{name: "weights 2 and 1", tenants: []cluster.Tenant{{Name: "nlp", Weight: 2}, {Name: "vision", Weight: 1}}, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}, want: []cluster.MicroGPU{666666, 333334}},
		{name: "weights that differ by rounding", tenants: []cluster.Tenant{{Name: "nlp", Weight: 333_334}, {Name: "vision", Weight: 333_333}}, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}},
		{name: "three equal tenants", tenants: append(equal, cluster.Tenant{Name: "bio", Weight: 1}), jobs: []Job{{"bio", "a"}, {"nlp", "a"}, {"vision", "a"}}},
		{name: "two jobs of one tenant and one of another", tenants: equal, jobs: []Job{{"nlp", "a"}, {"vision", "b"}, {"nlp", "a"}}, want: []cluster.MicroGPU{whole / 4, whole / 2, whole / 4}},
		{name: "three jobs of a tenant, whose users do not matter", tenants: equal, jobs: []Job{{"nlp", "a"}, {"nlp", "b"}, {"nlp", "a"}}},
		{name: "users that share equally", tenants: equal, jobs: []Job{{"nlp", "a"}, {"nlp", "b"}, {"nlp", "a"}}, set: cluster.Settings{Users: cluster.UsersEqual}, want: []cluster.MicroGPU{whole / 4, whole / 2, whole / 4}},
		{name: "a user of two tenants", tenants: equal, jobs: []Job{{"nlp", "a"}, {"vision", "a"}}, set: cluster.Settings{Users: cluster.UsersEqual}},
		{name: "a policy divides GPU models", tenants: []cluster.Tenant{{Name: "nlp", Weight: 2}, {Name: "vision", Weight: 1}}, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}, set: cluster.Settings{Divide: "gavel:ftf"}},
		{name: "one that has a large weight leaves a turn in five minutes", tenants: []cluster.Tenant{{Name: "nlp", Weight: 99}, {Name: "vision", Weight: 1}}, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}, want: []cluster.MicroGPU{833334, 166666}},
		{name: "longer turns", tenants: []cluster.Tenant{{Name: "nlp", Weight: 99}, {Name: "vision", Weight: 1}}, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}, quantum: 4 * minute, want: []cluster.MicroGPU{555556, 444444}},
		{name: "turns as long as the longest suspension are equal", tenants: []cluster.Tenant{{Name: "nlp", Weight: 99}, {Name: "vision", Weight: 1}}, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}, quantum: 5 * minute},
		{name: "no weight", tenants: []cluster.Tenant{{Name: "nlp"}, {Name: "vision", Weight: 1}}, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}, want: []cluster.MicroGPU{166666, 833334}},
		{name: "no weights", tenants: []cluster.Tenant{{Name: "nlp"}, {Name: "vision"}}, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}},
		{name: "its budget is used up", tenants: []cluster.Tenant{{Name: "nlp", Weight: 1, Budget: used}, {Name: "vision", Weight: 1}}, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}, want: []cluster.MicroGPU{166666, 833334}},
		{name: "all budgets are used up", tenants: []cluster.Tenant{{Name: "nlp", Weight: 1, Budget: used}, {Name: "vision", Weight: 1, Budget: used}}, jobs: []Job{{"nlp", "a"}, {"vision", "b"}}},
		{name: "an account that is split in two, with a job of one", tenants: []cluster.Tenant{under("nlp-1", 1, "nlp"), under("nlp-2", 1, "nlp"), {Name: "vision", Weight: 2}}, jobs: []Job{{"nlp-1", "a"}, {"vision", "b"}}},
		{name: "an account that is split in two, with jobs of both", tenants: []cluster.Tenant{under("nlp-1", 2, "nlp"), under("nlp-2", 1, "nlp"), {Name: "vision", Weight: 3}}, jobs: []Job{{"nlp-1", "a"}, {"nlp-2", "a"}, {"vision", "b"}}, want: []cluster.MicroGPU{333333, 166667, 500000}},
		{name: "two levels of accounts", tenants: []cluster.Tenant{under("x", 1, "nlp", "nlp-1"), under("y", 1, "nlp", "nlp-1"), under("z", 2, "nlp", "nlp-2")}, jobs: []Job{{"x", "a"}, {"z", "a"}}},
		{name: "a tenant that is gone", tenants: equal, jobs: []Job{{"bio", "a"}, {"nlp", "b"}}, want: []cluster.MicroGPU{166666, 833334}},
	} {
		c.set.Slices = &cluster.Slices{Quantum: cmp.Or(c.quantum, minute)}
		if got := RuleOf(&c.set, c.tenants).Times(c.jobs); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// The shortest turn is a quantum, and the parts of the GPU in accounts are those of its time.
func TestTurns(t *testing.T) {
	const minute = cluster.Minute
	s := &cluster.Settings{Slices: &cluster.Slices{Quantum: minute}}
	r := RuleOf(s, []cluster.Tenant{{Name: "nlp", Weight: 2}, {Name: "vision", Weight: 2}, {Name: "bio", Weight: 4}})
	for _, c := range []struct {
		jobs []Job
		all  cluster.MicroGPU
		want []cluster.Turn
	}{
		{[]Job{{"nlp", "a"}, {"vision", "b"}}, cluster.WholeGPU, nil},
		{[]Job{{"nlp", "a"}, {"vision", "b"}, {"bio", "c"}}, cluster.WholeGPU, []cluster.Turn{
			{Part: 250000, Lasts: minute, Away: 3 * minute}, {Part: 250000, Lasts: minute, Away: 3 * minute}, {Part: 500000, Lasts: 2 * minute, Away: 2 * minute}}},
		{[]Job{{"nlp", "a"}, {"bio", "c"}}, 600000, []cluster.Turn{{Part: 200000, Lasts: minute, Away: 2*minute + 1}, {Part: 400000, Lasts: 2*minute + 1, Away: minute}}},
	} {
		got := r.Turns(c.jobs, c.all)
		near := slices.EqualFunc(got, c.want, func(a, b cluster.Turn) bool {
			return max(a.Part-b.Part, b.Part-a.Part) <= 1 && max(a.Lasts-b.Lasts, b.Lasts-a.Lasts) <= 1 && max(a.Away-b.Away, b.Away-a.Away) <= 1
		})
		if !near {
			t.Errorf("%v: %v, want %v", c.jobs, got, c.want)
		}
	}
}

// Whatever the weights, the parts are a whole GPU together, each turn is a quantum at least, and no job is suspended for longer than the bound. A user, a
// tenant or an account has no more of a GPU with two jobs there than with one, and no more in two parts than as one.
func TestPropertiesOfTurns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		s := &cluster.Settings{Slices: &cluster.Slices{Quantum: cluster.Span(30+rng.IntN(271)) * cluster.Second, Jobs: 3}}
		if rng.IntN(2) == 0 {
			s.Users = cluster.UsersEqual
		}
		weight := func() int64 { return int64(rng.IntN(20)) * int64(1+rng.IntN(3)) }
		whole, split := weight(), []int64{weight(), weight()}
		tenants := []cluster.Tenant{{Name: "b", Weight: weight()}, {Name: "c", Weight: weight()}, {Name: "x1", Weight: split[0], Under: "x", Above: []string{"x"}}, {Name: "x2", Weight: split[1], Under: "x", Above: []string{"x"}},
			{Name: "y", Weight: whole}, {Name: "z", Weight: split[0] + split[1]}}
		r := RuleOf(s, tenants)
		names, jobs := []string{"b", "c", "x1", "x2", "y"}, []Job{}
		for range 2 + rng.IntN(2) {
			jobs = append(jobs, Job{names[rng.IntN(len(names))], fmt.Sprint(rng.IntN(2))})
		}
		part := func(jobs []Job, of func(Job) bool) (sum cluster.MicroGPU) {
			times := r.Times(jobs)
			for k := range jobs {
				if of(jobs[k]) {
					if times == nil {
						sum += cluster.WholeGPU / cluster.MicroGPU(len(jobs))
					} else {
						sum += times[k]
					}
				}
			}
			return sum
		}
		const all = cluster.WholeGPU - 1
		turns, sum, cycle := r.Turns(jobs, all), cluster.MicroGPU(0), cluster.Span(0)
		for _, x := range turns {
			sum, cycle = sum+x.Part, cycle+x.Lasts
		}
		for k, x := range turns {
			if sum != all || x.Part <= 0 || x.Lasts < s.Slices.Quantum || x.Away != cycle-x.Lasts || x.Away > max(Longest, s.Slices.Quantum*cluster.Span(len(jobs)-1))+2 {
				t.Fatalf("%+v with turns of %s: turn %d is %+v of %+v", jobs, s.Slices.Quantum, k, x, turns)
			}
		}
		bound := least(s.Slices.Quantum, 3)
		y := func(j Job) bool { return j.Tenant == "y" }
		if one, two := part([]Job{{"y", "a"}, {"b", "b"}}, y), part([]Job{{"y", "a"}, {"y", "a"}, {"b", "b"}}, y); two > max(one, 2*bound)+alike {
			t.Fatalf("a tenant has %d of a GPU with a job, and %d with two: %+v", one, two, tenants)
		}
		if one, two := part([]Job{{"z", "a"}, {"b", "b"}}, func(j Job) bool { return j.Tenant == "z" }), part([]Job{{"x1", "a"}, {"x2", "a"}, {"b", "b"}}, func(j Job) bool { return j.Tenant != "b" }); two > max(one, 2*bound)+alike {
			t.Fatalf("an account has %d of a GPU, and %d if it is split: %+v", one, two, tenants)
		}
	}
}
