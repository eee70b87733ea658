package trace

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// HiveDTenant is a row of HiveD's Table 1.
type HiveDTenant struct {
	Name  string
	Jobs  [5]int  // requesting 1, 2, 4, 8, and 16 or more GPUs
	Quota float64 // percent of the cluster
	Load  float64 // not in the table: see LikeHiveD
}

// HiveDTenants is HiveD's Table 1: the 141,950 jobs that arrived in two months at a cluster of
// 279 nodes of 8 GPUs.
var HiveDTenants = []HiveDTenant{
	{"res-a", [5]int{429, 14, 260, 625, 40}, 0.37, 1.3},
	{"res-b", [5]int{18319, 1593, 931, 148, 238}, 0.73, 1.3},
	{"res-c", [5]int{3285, 161, 716, 185, 0}, 0.73, 1.3},
	{"res-d", [5]int{1754, 0, 0, 0, 0}, 1.47, 1.3},
	{"res-e", [5]int{2682, 110, 3005, 0, 0}, 1.83, 1.3},
	{"res-f", [5]int{8181, 88, 618, 1337, 559}, 28.57, 0.85},
	{"prod-a", [5]int{227, 54, 23, 1132, 138}, 8.79, 0.65},
	{"prod-b", [5]int{16446, 67, 605, 1344, 22}, 10.62, 1.3},
	{"prod-c", [5]int{4692, 301, 1905, 4415, 1206}, 11.36, 1},
	{"prod-d", [5]int{781, 6, 545, 650, 95}, 15.75, 1},
	{"prod-e", [5]int{58407, 532, 2118, 959, 2}, 19.78, 1.3},
}

// HiveD says how to generate what Table 1 lacks.
type HiveD struct {
	Seed   uint64
	Length cluster.Span // of the arrivals; 60 days have all jobs of Table 1, shorter times a part
	GPUs   int          // of the cluster that the loads refer to
	Swing  float64      // of arrivals over the day, as in Tenant
}

// LikeHiveD gives two months as the paper describes them.
//
// The paper gives no run times. Their shape here is that of Philly (LikePhilly), the origin of
// the paper's trace: heavy-tailed. Those of each tenant are stretched by one factor until they
// need Load times its quota of 200 nodes. The loads are our inference from §5.2. On 200 nodes the
// quotas are nearly used up, yet prod-a and res-f would hardly wait in private clusters
// (otherwise 7 and 132 times as long with quotas would be years). So these two, with most GPUs in
// jobs of 8 and more, have some to spare; prod-c and prod-d, with many such jobs, have just
// enough; the others have too few. All arrivals peak at 15:00. Of jobs of 16 GPUs and more, 60 %
// request 16, 25 % 32, 15 % 64.
func LikeHiveD(seed uint64) HiveD {
	return HiveD{Seed: seed, Length: hivedLength, GPUs: 1600, Swing: 0.6}
}

const (
	hivedLength = 60 * cluster.Day
	hivedMost   = 30 * cluster.Day // maximum run time of a job
)

// hivedLarge is the sizes of jobs of 16 GPUs and more.
var hivedLarge = []Size{{16, 60}, {32, 25}, {64, 15}}

// Jobs generates the jobs, in order of Submit and ID, with whole seconds. A tenant's jobs do not
// depend on other tenants.
func (h HiveD) Jobs() []Job {
	var out []Job
	for i, t := range HiveDTenants {
		out = append(out, h.of(t, h.rand(i))...)
	}
	return byArrival(out)
}

func (h HiveD) rand(i int) *rand.Rand { return rand.New(rand.NewPCG(h.Seed, 0x6869_7665+uint64(i))) }

func byArrival(jobs []Job) []Job {
	slices.SortFunc(jobs, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID)) })
	return jobs
}

// of generates the jobs of a tenant.
func (h HiveD) of(t HiveDTenant, rng *rand.Rand) []Job {
	g := generator{recipe: LikePhilly(0, 1), rand: rng}
	g.recipe.Sizes = hivedLarge
	day := Tenant{Swing: h.Swing, Peak: 15 * cluster.Hour}
	var out []Job
	for class, all := range t.Jobs {
		n := int(math.Round(float64(all) * float64(h.Length) / float64(hivedLength)))
		for range n {
			j := Job{ID: fmt.Sprintf("%s-%06d", t.Name, len(out)+1), Tenant: t.Name, User: t.Name, GPUs: 1 << class, Outcome: Completed}
			if j.GPUs > 8 {
				j.GPUs = g.size()
			}
			j.Runs = g.duration()
			for again := true; again; again = rng.Float64()*(1+h.Swing) >= day.rate(j.Submit) {
				j.Submit = cluster.Span(rng.Float64()*hours(h.Length)*3600) * cluster.Second
			}
			out = append(out, j)
		}
	}
	Stretch(out, t.Quota/100*float64(h.GPUs)*float64(h.Length)*t.Load)
	return out
}

// Stretch multiplies the run times of jobs by one factor so that together they need demand, in
// GPU-milliseconds. None becomes longer than 30 days or shorter than a second.
func Stretch(jobs []Job, demand float64) {
	by := func(j *Job, f float64) cluster.Span {
		s := min(float64(j.Runs)*f, float64(hivedMost))
		return max(cluster.Span(math.Round(s/1000)), 1) * cluster.Second
	}
	low, high := -20.0, 20.0 // logarithm of the factor
	for range 60 {
		mid, sum := (low+high)/2, 0.0
		for i := range jobs {
			sum += float64(jobs[i].GPUs) * float64(by(&jobs[i], math.Exp(mid)))
		}
		if sum < demand {
			low = mid
		} else {
			high = mid
		}
	}
	for i := range jobs {
		jobs[i].Runs = by(&jobs[i], math.Exp(low))
	}
}

// Sample draws that share of jobs, as HiveD §5.1 does for a smaller cluster.
func Sample(jobs []Job, share float64, seed uint64) []Job {
	rng := rand.New(rand.NewPCG(seed, 0x7361_6d70))
	return slices.DeleteFunc(slices.Clone(jobs), func(Job) bool { return rng.Float64() >= share })
}

// Reshape gives the workload of HiveD's Figure 8: all jobs of the named tenants request 8 GPUs,
// all others 1, with the same sum of GPUs for each tenant. Arrivals and run times are drawn from
// the tenant's jobs; each tenant requests the same GPU time as before.
func Reshape(jobs []Job, eight []string, seed uint64) []Job {
	var out []Job
	for i, t := range HiveDTenants {
		var own, made []Job
		gpus, demand := 0, 0.0
		for _, j := range jobs {
			if j.Tenant == t.Name {
				own = append(own, j)
				gpus += j.GPUs
				demand += float64(j.GPUs) * float64(j.Runs)
			}
		}
		size := 1
		if slices.Contains(eight, t.Name) {
			size = 8
		}
		rng := rand.New(rand.NewPCG(seed, 0x7368_6170+uint64(i)))
		for n := range gpus / size {
			j := own[rng.IntN(len(own))]
			j.ID, j.GPUs = fmt.Sprintf("%s-%06d", t.Name, n+1), size
			made = append(made, j)
		}
		Stretch(made, demand)
		out = append(out, made...)
	}
	return byArrival(out)
}
