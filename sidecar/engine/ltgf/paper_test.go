package ltgf

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// These tests quote the sentences of ASTRAEA §4.2 that this room stands on and
// hold the code against cases that were worked out by hand.

const gpu = cluster.WholeGPU

// rates gives one tenant jobs in one pool with an entitlement of quota, and returns its demand
// and each job's due rate.
func rates(quota cluster.MicroGPU, jobs ...Claimant) (cluster.MicroGPU, []cluster.MicroGPU) {
	l := cluster.Ledger{Pools: []cluster.PoolAccount{{Pool: "v100"}},
		Tenants: []cluster.TenantPool{{Tenant: "t", Pool: "v100", Entitlement: quota}}}
	rates := make([]Rate, len(jobs))
	for i := range jobs {
		jobs[i].Case, jobs[i].Pools = i, []int{0}
		if jobs[i].Weight == 0 {
			jobs[i].Weight = 1000
		}
	}
	Due(&l, rates, [][]Claimant{jobs}, nil, nil)
	out := make([]cluster.MicroGPU, len(jobs))
	for i := range rates {
		out[i] = rates[i].Due
	}
	return l.Tenants[0].Demand, out
}

func same(t *testing.T, what string, got []cluster.MicroGPU, want ...cluster.MicroGPU) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rates, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: job %d is due %d millionths of a GPU, want %d", what, i, got[i], want[i])
		}
	}
}

// Eq. 1 and 2: "Due to the gang scheduling feature" Alloc is 0 "if J is not
// running" and Demand "if J is running"; the service time is its integral.
func TestEquations1And2ServiceTimeIsTheIntegralOfWhatAGangHolds(t *testing.T) {
	b := open(t, 4)
	b.look(0, waiting(1, 3))
	b.pass(10*cluster.Minute, running(1, 3, b.now+cluster.Instant(10*cluster.Minute)))
	b.pass(20*cluster.Minute, running(1, 3, b.now))
	if got, want := b.record(1).Alloc, cluster.Times(3, 20*cluster.Minute); got != want {
		t.Errorf("waited 10 minutes, ran 20 on 3 GPUs: %d GPU-ms, want %d", got, want)
	}
	b.pass(5*cluster.Minute, waiting(1, 3))
	b.pass(5*cluster.Minute, waiting(1, 3))
	if got, want := b.record(1).Alloc, cluster.Times(3, 25*cluster.Minute); got != want {
		t.Errorf("after its run: %d GPU-ms, want %d", got, want)
	}
}

// Eq. 3: "its instantaneous fair number of allocated GPUs" is M·W over the sum of
// the weights of the active jobs.
func TestEquation3WeightedShareOfActiveJobs(t *testing.T) {
	_, got := rates(6*gpu, Claimant{GPUs: cluster.Micro(6)}, Claimant{GPUs: cluster.Micro(3)}, Claimant{GPUs: cluster.Micro(3)})
	same(t, "the example of §4.1", got, 2*gpu, 2*gpu, 2*gpu)
	_, got = rates(6*gpu, Claimant{GPUs: cluster.Micro(6), Weight: 3000}, Claimant{GPUs: cluster.Micro(6), Weight: 1000})
	same(t, "weights 3:1", got, 4_500_000, 1_500_000)
	_, got = rates(7*gpu, Claimant{GPUs: cluster.Micro(7)}, Claimant{GPUs: cluster.Micro(7)}, Claimant{GPUs: cluster.Micro(7)})
	same(t, "seven by three", got, 2_333_333, 2_333_333, 2_333_333)
}

// Eq. 4: "J could not use more GPUs than Demand even if FairShare has a large value."
func TestEquation4NoJobIsDueMoreThanItsDemand(t *testing.T) {
	_, got := rates(6*gpu, Claimant{GPUs: cluster.Micro(1)}, Claimant{GPUs: cluster.Micro(6)})
	same(t, "one small job, one large", got, 1*gpu, 3*gpu)
	_, got = rates(8*gpu, Claimant{GPUs: cluster.Micro(2)})
	same(t, "alone on 8 GPUs", got, 2*gpu)
}

// Eq. 5, 12, 15: rho is service time over fair service time; "rho ≥ 1 implies good
// long-term fairness".
func TestEquations5And12And15Rho(t *testing.T) {
	for _, c := range []struct {
		alloc, due cluster.GPUTime
		want       cluster.Rho
		say        string
	}{
		{1200, 1200, cluster.Fair, "1.000"},
		{600, 1200, 500_000, "0.500"},
		{2400, 1200, 2_000_000, "2.000"},
		{1, 3, 333_333, "0.333"},
		// 0/0 = 0, first; due = 0 with something received = infinite, last.
		{0, 0, 0, "0.000"},
		{0, 1200, 0, "0.000"},
		{-600, 1200, 0, "0.000"},
		{1, 0, cluster.Infinite, "inf"},
		{1 << 60, 1, cluster.Infinite, "inf"},
		// A year of 80,000 GPUs: the product leaves 64 bits, the quotient does not.
		{80_000 * 365 * cluster.GPUTime(cluster.Day), 160_000 * 365 * cluster.GPUTime(cluster.Day), 500_000, "0.500"},
	} {
		if got := cluster.RhoOf(c.alloc, c.due); got != c.want || got.String() != c.say {
			t.Errorf("rho of %d/%d: got %d (%s), want %d (%s)", c.alloc, c.due, got, got, c.want, c.say)
		}
	}
	if cluster.RhoOf(0, 0) >= cluster.RhoOf(1e6, 1e9) || cluster.RhoOf(1e6, 1e9) >= cluster.RhoOf(1, 0) {
		t.Error("new must stand before served, and served before undeserving")
	}
}

// Eq. 7: "The requested amount of GPUs by tenant j at any time is" the sum over
// its active jobs. Eq. 8: "If Demand < Quota, the tenant would not use more GPUs
// than its resource demands": FairShare = min(Demand, Quota). Eq. 9 integrates it.
func TestEquations7To9TheSmallerOfDemandAndQuota(t *testing.T) {
	for _, c := range []struct {
		quota  cluster.MicroGPU
		jobs   []int
		demand cluster.MicroGPU
		hour   cluster.GPUTime // due in an hour
	}{
		{4 * gpu, []int{8, 1}, 9 * gpu, cluster.Times(4, cluster.Hour)},
		{4 * gpu, []int{1, 2}, 3 * gpu, cluster.Times(3, cluster.Hour)},
		{4 * gpu, nil, 0, 0},
		{2_500_000, []int{1, 1, 1}, 3 * gpu, 9_000_000},
	} {
		var jobs []cluster.Case
		for i, g := range c.jobs {
			jobs = append(jobs, waiting(cluster.JobKey(i+1), g))
		}
		b := open(t, 8)
		b.look(0, jobs...)
		b.due(c.quota, jobs...)
		if got := b.row("t").Demand; got != c.demand {
			t.Errorf("jobs %v: demand %d, want %d", c.jobs, got, c.demand)
		}
		b.pass(cluster.Hour, jobs...)
		if got := b.row("t").Due; got != c.hour {
			t.Errorf("jobs %v of a quota of %d: due %d GPU-ms in an hour, want %d", c.jobs, c.quota, got, c.hour)
		}
	}
}

// Eq. 10 and 11: "The actual amount of GPUs allocated to tenant j" is the sum over
// its jobs, and its integral.
func TestEquations10And11TenantsReceiveWhatTheirJobsReceive(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 3, b.now), running(2, 4, b.now))
	b.pass(cluster.Hour, running(1, 3, b.start), running(2, 4, b.start))
	want := b.record(1).Alloc + b.record(2).Alloc
	if got := b.row("t").Alloc; got != want || got != cluster.Times(7, cluster.Hour) {
		t.Errorf("the tenant received %d GPU-ms, its jobs %d, want 7 GPU-hours", got, want)
	}
}

// Eq. 12 over the window: the reported value is received over due with eq. 8.
func TestEquation12IsReportedOverTheWindow(t *testing.T) {
	b := open(t, 8)
	b.look(0, running(1, 2, b.now), waiting(2, 2))
	b.due(4*gpu, running(1, 2, b.now), waiting(2, 2))
	b.pass(cluster.Hour, running(1, 2, b.start), waiting(2, 2))
	if got := Rho([]cluster.TenantPool{*b.row("t")}, b.now, 0); got != 500_000 {
		t.Errorf("holds 2 of the 4 GPUs that it is due: rho %s, want 0.500", got)
	}
}

// Eq. 13: a job's share is its part by weight of the tenant's FairShare, which is
// eq. 8's: "Let W be the share weight of J in its corresponding VC."
func TestEquations13And14JobsShareWhatTheirTenantIsDue(t *testing.T) {
	demand, got := rates(4*gpu, Claimant{GPUs: cluster.Micro(8)}, Claimant{GPUs: cluster.Micro(8)})
	same(t, "half of the quota each", got, 2*gpu, 2*gpu)
	if demand != 16*gpu {
		t.Errorf("demand %d, want 16 GPUs", demand)
	}
	// The tenant wants less than its quota: eq. 13 divides what it wants.
	_, got = rates(8*gpu, Claimant{GPUs: cluster.Micro(1)}, Claimant{GPUs: cluster.Micro(3)})
	same(t, "demand below the quota", got, 1*gpu, 2*gpu)
	_, got = rates(4*gpu, Claimant{GPUs: cluster.Micro(4), Weight: 2000}, Claimant{GPUs: cluster.Micro(4)}, Claimant{GPUs: cluster.Micro(1), Weight: 1000})
	same(t, "weights 2:1:1, capped by demand", got, 2*gpu, 1*gpu, 1*gpu)
	_, got = rates(0, Claimant{GPUs: cluster.Micro(4)})
	same(t, "a tenant that is due nothing", got, 0)
}

// Eq. 16, §6.1.1: FairShare(t) = Quota. "This adjusted metric can motivate a tenant
// to lend his unused resources to others and reclaim more than his share when he
// has a burst demand." With eq. 8 an idle tenant is credited nothing; nor is it for GPUs that nobody used.
func TestEquation16AgainstEquation8(t *testing.T) {
	for _, c := range []struct {
		selects int
		lends   bool
		want    cluster.GPUTime
	}{{16, true, cluster.Times(4, cluster.Hour)}, {16, false, 0}, {8, true, 0}} {
		b := open(t, 8)
		b.s.Settings.RhoSelect = c.selects
		var others []cluster.Case
		if c.lends {
			others = append(others, b.lending())
		}
		b.look(0, others...)
		b.due(4*gpu, others...)
		b.pass(cluster.Hour, others...)
		if got := b.row("t").Deficit; got != c.want {
			t.Errorf("eq. %d: an idle tenant (it lends: %t) is owed %d GPU-ms after an hour, want %d", c.selects, c.lends, got, c.want)
		}
		if got := b.row("t").Due; got != 0 {
			t.Errorf("eq. %d: what is reported as due goes by eq. 8 and is %d GPU-ms, want 0", c.selects, got)
		}
	}
}

// Behind orders tenants as rho of eq. 12 does over equal time: (quota·t - alloc) /
// quota = t·(1 - rho).
func TestBehindOrdersAsRhoDoes(t *testing.T) {
	const span = cluster.Hour
	type tenant struct {
		quota int
		alloc cluster.GPUTime
	}
	var last cluster.Span = 1 << 62
	for _, x := range []tenant{ // by rho: 0, 1/4, 1/2, 1, 3/2
		{3, 0}, {8, cluster.Times(2, span)}, {1, cluster.Times(1, span/2)}, {2, cluster.Times(2, span)}, {4, cluster.Times(6, span)},
	} {
		behind := Behind(cluster.Times(x.quota, span)-x.alloc, cluster.MicroGPU(x.quota)*gpu)
		if want := span - cluster.Span(int64(x.alloc)/int64(x.quota)); behind != want {
			t.Errorf("quota %d, received %d: behind by %s, want %s", x.quota, x.alloc, behind, want)
		}
		if behind >= last {
			t.Errorf("quota %d, received %d: a larger rho stands no later", x.quota, x.alloc)
		}
		last = behind
	}
	if got := Behind(1<<40, 0); got >= last {
		t.Errorf("due nothing: behind by %s, want last of all", got)
	}
}
