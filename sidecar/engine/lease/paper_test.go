package lease

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// paperJob is a job in Algorithms 1 and 2.
type paperJob struct {
	tenant, demand int
	rho            int64 // eq. 15
}

// paperTenant is a tenant in Algorithms 1 and 2. rho of eq. 12 is alloc / fair.
type paperTenant struct{ alloc, fair int64 }

func (t paperTenant) rho() *big.Rat { return big.NewRat(t.alloc, t.fair) }

// selectJob is Algorithm 2, line by line.
func selectJob(jobs []paperJob, list []int) int {
	// 2-3: forall each job i in J do i.reward = -rho_i
	reward := func(i int) int64 { return -jobs[i].rho }
	// 4: i* = arg max i.reward
	best := list[0]
	for _, i := range list {
		if reward(i) > reward(best) {
			best = i
		}
	}
	return best // 5
}

// allocateJob is Algorithm 1, line by line, on a cluster in which every gang fits if there are enough free
// GPUs.
func allocateJob(tenants []paperTenant, jobs []paperJob, free int, lease int64) []int {
	tenants = slices.Clone(tenants)
	pending := make([][]int, len(tenants))
	var inT []int // T
	for j := range tenants {
		inT = append(inT, j)
	}
	for i, job := range jobs {
		pending[job.tenant] = append(pending[job.tenant], i)
	}
	var granted []int
	waiting := func() bool { // 4: there exist pending jobs ∈ N with demand r ≤ M of a tenant that is left
		for _, j := range inT {
			for _, i := range pending[j] {
				if jobs[i].demand <= free {
					return true
				}
			}
		}
		return false
	}
	for waiting() {
		// "If this tenant does not have any pending jobs, the scheduler will skip it."
		inT = slices.DeleteFunc(inT, func(j int) bool { return len(pending[j]) == 0 })
		// 5: p* = arg min rho
		p := inT[0]
		for _, j := range inT {
			if tenants[j].rho().Cmp(tenants[p].rho()) < 0 {
				p = j
			}
		}
		// 6-8
		i := selectJob(jobs, pending[p])
		r := jobs[i].demand
		// 9-10: Placement finds GPUs whenever r ≤ M
		if r <= free {
			granted = append(granted, i)                                                           // 11
			free -= r                                                                              // 12
			pending[p] = slices.DeleteFunc(pending[p], func(other int) bool { return other == i }) // 13
			tenants[p].alloc += int64(r) * lease                                                   // 14-15
		} else {
			inT = slices.DeleteFunc(inT, func(j int) bool { return j == p }) // 17: T = T \ {p*}
		}
	}
	slices.Sort(granted)
	return granted
}

// machine is one node: the simplest Board.
type machine struct {
	idle int
	soft map[int]int // GPUs of leases that end
	of   map[int]int // their tenants
	line []int       // those leases, first displaced last
}

func (m *machine) Fit(a Ask) (Placement, bool) {
	if a.Shape <= m.idle {
		return Placement{Nodes: []cluster.Holding{{Node: "n", Size: cluster.Whole(a.Shape)}}, At: a.Now}, true
	}
	if a.Displace == ofNobody {
		return Placement{}, false
	}
	p := Placement{Nodes: []cluster.Holding{{Node: "n", Size: cluster.Whole(a.Shape)}}, At: a.Now}
	free := m.idle
	for _, key := range slices.Backward(m.line) {
		if gpus, ok := m.soft[key]; ok && (a.Displace == ofAnybody || a.Displace == ofOwner+m.of[key]) {
			p.Displaced = append(p.Displaced, key)
			if free += gpus; free >= a.Shape {
				return p, a.Max < 0 || len(p.Displaced) <= a.Max
			}
		}
	}
	return Placement{}, false
}

func (m *machine) Take(p Placement) {
	for _, key := range p.Displaced {
		m.idle += m.soft[key]
		delete(m.soft, key)
	}
	m.idle -= p.Nodes[0].Size.Devices
}

func (m *machine) Renew(key int) bool {
	_, ok := m.soft[key]
	delete(m.soft, key)
	return ok
}

func (m *machine) Claim([]cluster.Holding, cluster.Instant) {}
func (m *machine) Idle(int) int                             { return m.idle }
func (m *machine) Free(int) []int                           { return []int{m.idle} }
func (m *machine) Prefer(int)                               {}

const (
	term   = 15 * cluster.Minute
	origin = cluster.Instant(0) // of every integral: behind = quota·now - alloc
	now    = origin + cluster.Instant(40*term)
)

// contest is an input for both algorithms.
type contest struct {
	quota   []int   // by tenant
	alloc   []int64 // GPU-milliseconds by tenant
	jobs    []paperJob
	running []bool // by job
	free    int    // free GPUs of the machine, including those of running jobs
}

func settings() *cluster.Settings { return &cluster.Settings{Term: term} }

// paper returns the jobs that the paper's algorithm selects. Under §5.1.2 step (1) it "treats all the jobs as
// in the pending state, and all the resources as available".
func (c *contest) paper() []int {
	tenants := make([]paperTenant, len(c.quota))
	for j := range tenants {
		tenants[j] = paperTenant{alloc: c.alloc[j], fair: int64(c.quota[j]) * int64(now)} // eq. 16
	}
	return allocateJob(tenants, c.jobs, c.free, int64(term))
}

// ours returns the jobs that Choose selects.
func (c *contest) ours() []int {
	in := Input{Now: now, Settings: settings()}
	m := &machine{idle: c.free, soft: map[int]int{}, of: map[int]int{}}
	for i, job := range c.jobs {
		k := Candidate{Case: i, Key: cluster.JobKey(i + 1), Tenant: job.tenant, Pools: []int{0}, Shape: job.demand,
			GPUs: cluster.Micro(job.demand), Running: c.running[i], Priority: Priority{Rho: cluster.Rho(job.rho)}}
		in.Candidates = append(in.Candidates, k)
	}
	for j, quota := range c.quota {
		t := Tenant{Name: fmt.Sprint(j)}
		entitled := cluster.MicroGPU(quota) * cluster.WholeGPU
		behind := cluster.Span(int64(now) - c.alloc[j]/int64(quota)) // (quota·now - alloc) / quota
		t.Shares = []Share{{Behind: behind, Entitlement: entitled}}
		for i := range c.jobs {
			if c.jobs[i].tenant == j {
				t.Jobs = append(t.Jobs, i)
			}
		}
		new(Sorter).Order(in.Candidates, t.Jobs, 0)
		in.Tenants = append(in.Tenants, t)
	}
	for _, i := range LastFirst(&in) {
		m.line = append(m.line, i)
		gpus := in.Candidates[i].GPUs.Devices()
		m.soft[i], m.of[i] = gpus, in.Candidates[i].Tenant
		m.idle -= gpus
	}
	choice := Choose(in, m, 1)
	out := slices.Clone(choice.Renewed)
	for _, g := range choice.Grants {
		out = append(out, g.Candidate)
	}
	slices.Sort(out)
	return out
}

// draw returns a contest in which all jobs have one size, no scores tie, and some of the jobs run if run is
// set.
func draw(rng *rand.Rand, tenants, jobs, demand int, run bool) contest {
	c := contest{free: demand * (1 + rng.IntN(jobs+2))}
	for j := range tenants {
		quota := 1 + rng.IntN(4)
		c.quota = append(c.quota, quota)
		c.alloc = append(c.alloc, int64(quota)*(int64(rng.IntN(40))*int64(term)/4+int64(j)))
	}
	left := c.free
	for i := range jobs {
		c.jobs = append(c.jobs, paperJob{tenant: rng.IntN(tenants), demand: demand, rho: int64(rng.IntN(1000)*jobs + i)})
		c.running = append(c.running, run && left >= demand && rng.IntN(2) == 0)
		if c.running[i] {
			left -= demand
		}
	}
	return c
}

// If all gangs have the same size, a gang that does not fit for one tenant fits for none. Line 17 of
// Algorithm 1 makes no difference then, and Choose must select the same jobs as Algorithm 1.
func TestAlgorithm1AndChooseSelectTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { selectTheSame(t, false) })
}

// §5.1.2: "(1) The scheduler treats all the jobs as in the pending state, and all
// the resources as available. [...] (2) For each running job in the current lease
// term, if it is selected by the scheduler, then its lease renewal is successful".
func TestAlgorithm1AndChooseRenewTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { selectTheSame(t, true) })
}

// selectTheSame compares Choose with Algorithm 1 on random cases, in which some jobs run if run is set.
func selectTheSame(t *rapid.T, run bool) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
	for n := range 30 {
		c := draw(rng, 1+n%3, 1+rng.IntN(8), 1+rng.IntN(3), run)
		if got, want := c.ours(), c.paper(); !slices.Equal(got, want) {
			t.Fatalf("%+v: selected %v, the paper's algorithm %v", c, got, want)
		}
	}
}

// Line 17 makes no difference either if everything fits, whatever the sizes.
func TestAlgorithm1AndChooseSelectAllThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		for range 10 {
			c := draw(rng, 3, 6, 1, true)
			c.free = 0
			for i := range c.jobs {
				c.jobs[i].demand = 1 + rng.IntN(8)
				c.free += c.jobs[i].demand
			}
			if got, want := c.ours(), c.paper(); !slices.Equal(got, want) || len(got) != len(c.jobs) {
				t.Fatalf("%+v: selected %v, the paper's algorithm %v, want all", c, got, want)
			}
		}
	})
}

// Choose differs from Algorithm 1 on purpose: "A job that does not fit is passed over and its tenant's next
// jobs are tried", while the paper "will skip to the next tenant to prevent starvation" (line 17). A claim
// prevents starvation of the gang instead, and no GPU that a waiting job could use stays idle.
func TestWhereChooseDiffersFromAlgorithm1(t *testing.T) {
	c := contest{free: 3, quota: []int{1, 1}, alloc: []int64{0, 1}, running: make([]bool, 3), jobs: []paperJob{
		{tenant: 0, demand: 8, rho: 1}, // the furthest behind, and does not fit
		{tenant: 0, demand: 2, rho: 2}, // fits, of the same tenant
		{tenant: 1, demand: 1, rho: 1},
	}}
	if got := c.paper(); !slices.Equal(got, []int{2}) {
		t.Errorf("Algorithm 1 selects %v, want only the other tenant's job: two GPUs stay idle", got)
	}
	if got := c.ours(); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("Choose selects %v, want both that fit", got)
	}
}

// Algorithm 2: "it selects the job with the maximal reward (e.g., smallest fairness
// index) as the candidate."
func TestAlgorithm2IsTheOrderOfATenantsJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		for range 2 {
			c := draw(rng, 1, 1+rng.IntN(12), 1, false)
			var cs []Candidate
			var list, order []int
			for i, job := range c.jobs {
				cs = append(cs, Candidate{Key: cluster.JobKey(i + 1), GPUs: cluster.WholeGPU, Priority: Priority{Rho: cluster.Rho(job.rho)}})
				list, order = append(list, i), append(order, i)
			}
			new(Sorter).Order(cs, order, 0)
			for _, got := range order {
				want := selectJob(c.jobs, list)
				if got != want {
					t.Fatalf("%+v: job %d is next, Algorithm 2 takes %d", c.jobs, got, want)
				}
				list = slices.DeleteFunc(list, func(i int) bool { return i == want })
			}
		}
	})
}
