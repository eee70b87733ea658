package trace

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Recipe describes jobs to generate. All randomness comes from Seed.
type Recipe struct {
	Seed uint64

	// Generation ends at the first of these limits; one must be set.
	Jobs   int          // how many
	Length cluster.Span // of the time in which they arrive

	PerHour float64 // jobs that arrive in an hour, on average over a day, without bursts
	Burst   Burst

	Sizes     []Size
	Durations []Range
	Kinds     []string // each as likely as the others; none = Job.Kind ""
	// Table restricts Kinds to those with an entry for a job's GPUs; nil = no restriction.
	Table   *Throughputs
	Static  bool     // all jobs exist from the start
	Tenants []Tenant // at least one
}

// Size is a number of GPUs with its frequency.
type Size struct {
	GPUs  int
	Share float64 // of the sum of all shares
}

// Range is a part of all run times. Within it the logarithm is uniform: as many jobs from 1 to 10
// minutes as from 10 to 100.
type Range struct {
	From, To cluster.Span
	Share    float64 // of the sum of all shares
}

// Tenant describes a tenant's submissions.
type Tenant struct {
	Name  string
	Share float64      // of all arrivals, of the sum of all shares
	Users int          // 0 = one
	Swing float64      // 0 = the same all day … 1 = nothing at all twelve hours from Peak
	Peak  cluster.Span // time of day, from the epoch, with the most arrivals
}

// Burst is a parameter sweep: one tenant submits many jobs of one size and kind at once.
type Burst struct {
	Every cluster.Span // between two, on average; 0 = never
	Jobs  int          // in each, on average
}

// LikeGavel gives Gavel's continuous-multiple trace (§7.1): Poisson arrivals, run
// times of 10^x minutes with x uniform in [1.5, 3] for 80 % and in [3, 4] for 20 %
// of the jobs, 26 kinds of work. The paper gives 70 % one GPU, 25 % two to four and
// 5 % eight; that the 25 % are 10 % two and 15 % four is from its published code.
// Set Jobs or Length, and Table, so that a kind has only as many GPUs as it can use.
func LikeGavel(seed uint64, perHour float64) Recipe {
	minutes := func(x float64) cluster.Span {
		return cluster.Span(math.Round(math.Pow(10, x) * float64(cluster.Minute)))
	}
	return Recipe{
		Seed: seed, PerHour: perHour,
		Sizes:     []Size{{1, 70}, {2, 10}, {4, 15}, {8, 5}},
		Durations: []Range{{minutes(1.5), minutes(3), 80}, {minutes(3), minutes(4), 20}},
		Kinds:     gavelKinds(),
		Tenants:   []Tenant{{Name: "all", Share: 1}},
	}
}

// gavelKinds gives the 26 job types of Gavel's Table 2, as its throughput tables name them.
func gavelKinds() []string {
	kinds := []string{"A3C", "CycleGAN"}
	for _, m := range []struct {
		model   string
		batches []int
	}{
		{"LM", []int{5, 10, 20, 40, 80}},
		{"Recommendation", []int{512, 1024, 2048, 4096, 8192}},
		{"ResNet-18", []int{16, 32, 64, 128, 256}},
		{"ResNet-50", []int{16, 32, 64, 128}},
		{"Transformer", []int{16, 32, 64, 128, 256}},
	} {
		for _, b := range m.batches {
			kinds = append(kinds, fmt.Sprintf("%s (batch size %d)", m.model, b))
		}
	}
	return kinds
}

// LikePhilly gives Microsoft's Philly in numbers: 86.6 / 2.3 / 4.9 / 6.2 % of the
// jobs ask for 1 / 2 / 4 / more GPUs (Gandiva_fair §3.3), and 40.8 / 71.6 / 88.5 /
// 94.1 / 98.5 % run less than 10 min / 1 h / 6 h / 1 d / 6 d (ASTRAEA Table 1). Our
// own assumptions: more is eight, no job runs less than 10 s or more than 30 days.
// Set Jobs or Length.
func LikePhilly(seed uint64, perHour float64) Recipe {
	return Recipe{
		Seed: seed, PerHour: perHour,
		Sizes: []Size{{1, 86.6}, {2, 2.3}, {4, 4.9}, {8, 6.2}},
		Durations: []Range{
			{10 * cluster.Second, 10 * cluster.Minute, 40.8},
			{10 * cluster.Minute, cluster.Hour, 30.8},
			{cluster.Hour, 6 * cluster.Hour, 16.9},
			{6 * cluster.Hour, cluster.Day, 5.6},
			{cluster.Day, 6 * cluster.Day, 4.4},
			{6 * cluster.Day, 30 * cluster.Day, 1.5},
		},
		Tenants: []Tenant{{Name: "all", Share: 1}},
	}
}

// Shifts gives n tenants with equal shares and five users each, and peaks spread over the day:
// the case in which sharing a cluster pays off.
func Shifts(n int, swing float64) []Tenant {
	out := make([]Tenant, n)
	for i := range out {
		out[i] = Tenant{Name: fmt.Sprintf("tenant%03d", i+1), Share: 1, Users: 5, Swing: swing,
			Peak: cluster.Day * cluster.Span(i) / cluster.Span(n)}
	}
	return out
}

// check reports errors in a recipe.
func (r *Recipe) check() error {
	switch {
	case r.Jobs < 0 || r.Length < 0 || r.Jobs == 0 && r.Length == 0:
		return fmt.Errorf("a recipe needs an end: set Jobs or Length")
	case r.Static && r.Jobs == 0:
		return fmt.Errorf("a recipe of jobs that are all there from the start needs to know how many: set Jobs")
	case r.Length > longest:
		return fmt.Errorf("a recipe of %v is too long: at most 100 years", r.Length)
	case !(r.PerHour > 0) || r.PerHour > 1e9:
		return fmt.Errorf("%v jobs an hour: set PerHour to more than 0", r.PerHour)
	case r.Burst.Every < 0 || r.Burst.Every > 0 && (r.Burst.Jobs < 1 || r.Burst.Jobs > mostGPUs):
		return fmt.Errorf("bursts of %d jobs every %v: set both, or neither", r.Burst.Jobs, r.Burst.Every)
	}
	sizes, ranges, tenants := 0.0, 0.0, 0.0
	for _, s := range r.Sizes {
		if s.GPUs < 1 || s.GPUs > mostGPUs || !(s.Share >= 0) {
			return fmt.Errorf("the size of %d GPUs with share %v: both must be positive", s.GPUs, s.Share)
		}
		sizes += s.Share
	}
	for _, d := range r.Durations {
		if d.From < cluster.Second || d.To < d.From || d.To > longest || !(d.Share >= 0) {
			return fmt.Errorf("run times from %v to %v with share %v: they begin at one second and end later", d.From, d.To, d.Share)
		}
		ranges += d.Share
	}
	if err := r.checkTable(); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, t := range r.Tenants {
		if t.Name == "" || names[t.Name] || !(t.Share >= 0) || t.Users < 0 || !(t.Swing >= 0 && t.Swing <= 1) || t.Peak < 0 || t.Peak >= cluster.Day {
			return fmt.Errorf("tenant %q: a name of its own, a share, a swing from 0 to 1 and a peak within the day are needed", t.Name)
		}
		names[t.Name] = true
		tenants += t.Share
	}
	for _, sum := range []float64{sizes, ranges, tenants} {
		if !(sum > 0) || math.IsInf(sum, 0) {
			return fmt.Errorf("the shares of sizes, run times and tenants sum up to %v, %v and %v: each needs a sum above 0", sizes, ranges, tenants)
		}
	}
	return nil
}

// Generate generates the jobs of a recipe, in order of Submit and ID, one at a time: a trace of
// any length needs no memory. Times are whole seconds. Equal recipes give equal jobs, in each
// iteration.
//
// Arrivals are a Poisson process whose rate varies with each tenant's day: drawn at the highest
// rate and thinned (Lewis and Shedler 1979).
func Generate(r Recipe) (iter.Seq[Job], error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return func(yield func(Job) bool) {
		g := generator{recipe: r, rand: rand.New(rand.NewPCG(r.Seed, 0x6661_6972))}
		g.run(yield)
	}, nil
}

type generator struct {
	recipe Recipe
	rand   *rand.Rand
	made   int
}

func (g *generator) run(yield func(Job) bool) {
	r := &g.recipe
	most, shares := 0.0, 0.0 // arrivals an hour if every tenant had its peak
	for _, t := range r.Tenants {
		most += t.Share * (1 + t.Swing)
		shares += t.Share
	}
	most *= r.PerHour / shares

	next, burst := g.gap(most), math.Inf(1) // hours since the epoch
	if r.Burst.Every > 0 {
		burst = g.gap(1 / hours(r.Burst.Every))
	}
	for {
		now := min(next, burst)
		at := cluster.Span(now*3600) * cluster.Second
		if r.Static {
			at = 0
		}
		if r.Length > 0 && at >= r.Length || at > longest {
			return
		}
		var t *Tenant
		n := 1
		if burst < next {
			burst += g.gap(1 / hours(r.Burst.Every))
			t = &r.Tenants[g.pick(len(r.Tenants), func(i int) float64 { return r.Tenants[i].Share })]
			n = g.crowd(r.Burst.Jobs)
		} else {
			next += g.gap(most)
			t = &r.Tenants[g.pick(len(r.Tenants), func(i int) float64 { return r.Tenants[i].Share * (1 + r.Tenants[i].Swing) })]
			if g.rand.Float64()*(1+t.Swing) >= t.rate(at) {
				continue
			}
		}
		j := Job{Tenant: t.Name, Submit: at, Outcome: Completed, GPUs: g.size()}
		j.User = fmt.Sprintf("%s-u%d", t.Name, g.rand.IntN(max(t.Users, 1))+1)
		if kinds := r.kindsFor(j.GPUs); len(kinds) > 0 {
			j.Kind = kinds[g.rand.IntN(len(kinds))]
		}
		for range n {
			g.made++
			j.ID = fmt.Sprintf("job-%08d", g.made)
			j.Runs = g.duration()
			if !yield(j) || g.made == r.Jobs {
				return
			}
		}
	}
}

func hours(s cluster.Span) float64 { return float64(s) / float64(cluster.Hour) }

// rate is a tenant's arrival rate at a time, relative to its average.
func (t *Tenant) rate(at cluster.Span) float64 {
	return 1 + t.Swing*math.Cos(2*math.Pi*float64((at-t.Peak)%cluster.Day)/float64(cluster.Day))
}

// gap draws the hours until the next arrival at a rate per hour.
func (g *generator) gap(perHour float64) float64 { return g.rand.ExpFloat64() / perHour }

// crowd draws the size of a burst: geometric, at least 1, with the given mean.
func (g *generator) crowd(mean int) int {
	if mean <= 1 {
		return 1
	}
	n := 1 + math.Floor(g.rand.ExpFloat64()/-math.Log1p(-1/float64(mean)))
	return int(min(n, mostGPUs))
}

// pick draws an index by its share.
func (g *generator) pick(n int, share func(int) float64) int {
	sum := 0.0
	for i := range n {
		sum += share(i)
	}
	left := g.rand.Float64() * sum
	last := 0
	for i := range n {
		s := share(i)
		if s <= 0 {
			continue
		}
		if last = i; left < s {
			break
		}
		left -= s
	}
	return last
}

func (g *generator) size() int {
	s := g.recipe.Sizes
	return s[g.pick(len(s), func(i int) float64 { return s[i].Share })].GPUs
}

// duration draws a run time in whole seconds.
func (g *generator) duration() cluster.Span {
	all := g.recipe.Durations
	d := all[g.pick(len(all), func(i int) float64 { return all[i].Share })]
	from, to := math.Log(float64(d.From)), math.Log(float64(d.To))
	s := math.Exp(from + g.rand.Float64()*(to-from))
	return max(cluster.Span(math.Round(s/1000)), 1) * cluster.Second
}

// MeanDemand gives the mean number of GPUs that a recipe's jobs would hold in the long run, with
// space for all.
func (r Recipe) MeanDemand() float64 {
	gpus, sizes, length, ranges := 0.0, 0.0, 0.0, 0.0
	for _, s := range r.Sizes {
		gpus, sizes = gpus+s.Share*float64(s.GPUs), sizes+s.Share
	}
	for _, d := range r.Durations {
		from, to := hours(d.From), hours(d.To)
		at := from
		if to > from { // the mean of a log-uniform distribution
			at = (to - from) / math.Log(to/from)
		}
		length, ranges = length+d.Share*at, ranges+d.Share
	}
	jobs := r.PerHour
	if r.Burst.Every > 0 {
		jobs += float64(r.Burst.Jobs) / hours(r.Burst.Every)
	}
	return jobs * gpus / sizes * length / ranges
}
