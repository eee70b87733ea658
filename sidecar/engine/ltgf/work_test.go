package ltgf

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const one = int64(cluster.WholeGPU)

// worker opens the accounts of a tenant in pools of 8 GPUs each, of all of them its base.
func worker(pools int) *books {
	b := &books{settings: &cluster.Settings{RhoSelect: 16, Divide: "gandiva-fair", Window: 14 * cluster.Day, Term: 15 * minute}, now: begin}
	for p := range pools {
		name := fmt.Sprint("p", p)
		b.ledger.Pools = append(b.ledger.Pools, cluster.PoolAccount{Pool: name, GPUs: cluster.CountOf(8)})
		b.ledger.Tenants = append(b.ledger.Tenants, cluster.TenantPool{Tenant: "t", Pool: name, Base: 8 * gpu, Entitlement: 8 * gpu})
	}
	return b
}

// wants sets the speedups, and demands of a job each for any pool.
func (b *books) wants(faster []int64, gpus ...int) {
	var jobs []Claimant
	for i, n := range gpus {
		jobs = append(jobs, Claimant{Case: i, GPUs: cluster.Micro(n), Weight: 1000, Pools: upTo(len(b.ledger.Pools))})
	}
	Due(&b.ledger, make([]Rate, len(gpus)), [][]Claimant{jobs}, nil, func(int) []int64 { return faster })
}

// use lets the tenant have GPUs of each pool for a while.
func (b *books) use(dt cluster.Span, gpus ...cluster.MicroGPU) {
	b.from, b.now = b.now, b.now.Add(dt)
	b.usage, b.pools = new(lists).usage(len(b.ledger.Tenants)), make([]spent, len(b.ledger.Pools))
	for i, g := range gpus {
		b.used[i] = Credit(g, dt)
	}
	b.ledger = b.close()
}

func (b *books) rho() cluster.Rho { return Rho(b.ledger.Tenants, b.now, 0) }

// A tenant that sells fast GPUs at a price that is worth it has at least its due in work, with however many trades, and
// exactly its due without one. In GPU time it would seem to lose where it buys fast GPUs.
func TestPropertyATradeDoesNotLowerRho(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const rounding = 3 // millionths
		b := worker(2)
		slow := rapid.Int64Range(one/2, 2*one).Draw(rt, "slow")
		fast := rapid.Int64Range(slow, 10*one).Draw(rt, "fast")
		traded := false
		for range rapid.IntRange(1, 20).Draw(rt, "looks") {
			b.wants([]int64{fast - one, slow - one}, 64)
			has := []cluster.MicroGPU{8 * gpu, 8 * gpu}
			switch rapid.IntRange(0, 2).Draw(rt, "trade") {
			case 1: // sells fast ones for at least what they are worth to it
				sold := rapid.Int64Range(0, 8*one).Draw(rt, "GPUs")
				has[0], has[1] = has[0]-cluster.MicroGPU(sold), has[1]+cluster.MicroGPU(cluster.MulDiv(sold, fast, slow)+1)
				traded = true
			case 2: // buys fast ones for at most that
				paid := rapid.Int64Range(0, 8*one).Draw(rt, "GPUs")
				has[0], has[1] = has[0]+cluster.MicroGPU(cluster.MulDiv(paid, slow, fast)+1), has[1]-cluster.MicroGPU(paid)
				traded = true
			}
			b.use(cluster.Span(rapid.IntRange(1, 600).Draw(rt, "minutes"))*minute, has...)
		}
		if got := b.rho(); got < cluster.Fair-rounding || !traded && got > cluster.Fair+rounding {
			rt.Fatalf("rho is %d millionths; speedups %d and %d, traded: %t", got, fast, slow, traded)
		}
	})
}

// Work counts at the speedup of its time: a later estimate changes no past work.
func TestPastWorkStaysAsItWasCounted(t *testing.T) {
	b := worker(1)
	b.wants([]int64{one}, 16) // twice as fast
	b.use(cluster.Hour, 4*gpu)
	if got := b.rho(); got != 500_000 {
		t.Errorf("4 of 8 GPUs: rho %s, want 0.500", got)
	}
	b.wants([]int64{3 * one}, 16)
	b.use(cluster.Hour, 8*gpu)
	x := b.ledger.Tenants[0]
	if got, want := x.Alloc+x.Extra.Alloc, 2*cluster.Times(4, cluster.Hour)+4*cluster.Times(8, cluster.Hour); got != want {
		t.Errorf("work %.2f reference GPU-hours, want %.2f", got.Hours(), want.Hours())
	}
	if x.Alloc != cluster.Times(12, cluster.Hour) {
		t.Errorf("GPU time %.2f GPU-hours, want 12", x.Alloc.Hours())
	}
}

// Due are the fastest GPUs of the base that the tenant's jobs can use, at the mean of their speedups.
func TestWorkDueIsThatOfTheUsableBase(t *testing.T) {
	for _, c := range []struct {
		what   string
		faster []int64
		gpus   []int
		usable []cluster.MicroGPU
		due    cluster.GPUTime // in an hour
	}{
		{"all", []int64{0, 2 * one}, []int{64}, []cluster.MicroGPU{8 * gpu, 8 * gpu}, cluster.Times(8+24, cluster.Hour)},
		{"the fastest first", []int64{0, 2 * one}, []int{6, 4}, []cluster.MicroGPU{2 * gpu, 8 * gpu}, cluster.Times(2+24, cluster.Hour)},
		{"of no use", []int64{0, -one}, []int{64}, []cluster.MicroGPU{8 * gpu, 8 * gpu}, cluster.Times(8, cluster.Hour)},
		{"no job", []int64{0, one}, nil, []cluster.MicroGPU{0, 0}, 0},
	} {
		b := worker(2)
		b.wants(c.faster, c.gpus...)
		for p, want := range c.usable {
			if got := b.ledger.Tenants[p].Usable; got != want {
				t.Errorf("%s: %d microGPUs of pool %d are usable, want %d", c.what, got, p, want)
			}
		}
		b.use(cluster.Hour)
		var due cluster.GPUTime
		for _, x := range b.ledger.Tenants {
			due += x.Due + x.Extra.Due
		}
		if due != c.due {
			t.Errorf("%s: due %.2f reference GPU-hours, want %.2f", c.what, due.Hours(), c.due.Hours())
		}
	}
}

// Jobs of different speedups count by their GPUs, and only where they can run.
func TestATenantsSpeedupIsTheMeanOfItsJobs(t *testing.T) {
	b := worker(2)
	speeds := [][]int64{{0, 3 * one}, {one, -one}}
	jobs := []Claimant{{Case: 0, GPUs: cluster.Micro(1), Weight: 1000, Pools: []int{1}}, {Case: 1, GPUs: cluster.Micro(3), Weight: 1000, Pools: []int{0}}}
	rates := make([]Rate, 2)
	Due(&b.ledger, rates, [][]Claimant{jobs}, nil, func(i int) []int64 { return speeds[i] })
	for p, want := range []int64{3 * one / 4, 3 * one} {
		if got := b.ledger.Tenants[p].Extra.Faster; got != want {
			t.Errorf("pool %d: faster by %d millionths, want %d", p, got, want)
		}
	}
	if rates[0].Faster != 3*one || rates[1].Faster != one {
		t.Errorf("jobs: faster by %d and %d, want those of the pools in which they count", rates[0].Faster, rates[1].Faster)
	}
}

// Accounts without work, of an older fairlease or of times without a policy, count their GPU time as work. So
// do policies that know no speedup.
func TestGPUTimeIsWorkWithoutSpeedups(t *testing.T) {
	b := worker(2)
	for i := range b.ledger.Tenants {
		x := &b.ledger.Tenants[i]
		x.Demand, x.Alloc, x.Due = 8*gpu, 1000, 2000
		x.Buckets = []cluster.Bucket{{Start: begin, Alloc: 1000, Due: 2000}}
	}
	if got := b.rho(); got != 500_000 {
		t.Errorf("rho %s, want 0.500", got)
	}
	b.use(cluster.Hour, 8*gpu, 4*gpu)
	Due(&b.ledger, nil, nil, nil, nil)
	b.use(cluster.Hour, 8*gpu, 4*gpu)
	for i := range b.ledger.Tenants {
		if x := &b.ledger.Tenants[i]; x.Extra != (cluster.Extra{}) {
			t.Errorf("%s: work beyond GPU time: %+v", x.Pool, x.Extra)
		}
	}
}

// Destroyed GPU time takes its part of the work with it, so no work is negative, and the rest of a slice of the window keeps
// its speedup.
func TestDestroyedTimeTakesItsWork(t *testing.T) {
	b := worker(1)
	b.wants([]int64{-one / 2}, 16)
	b.use(cluster.Hour, 8*gpu)
	b.wants([]int64{9 * one}, 16)
	b.usage, b.pools = new(lists).usage(1), make([]spent, 1)
	b.wasted[0] = cluster.Times(2, cluster.Hour)
	b.from = b.now
	b.ledger = b.close()
	x := b.ledger.Tenants[0]
	if got, want := x.Alloc+x.Extra.Alloc, cluster.Times(3, cluster.Hour); got != want {
		t.Errorf("work %.2f reference GPU-hours, want %.2f", got.Hours(), want.Hours())
	}
	if got, want := x.Buckets[0].Alloc+x.Buckets[0].Extra, cluster.Times(3, cluster.Hour); got != want {
		t.Errorf("in the window %.2f, want %.2f", got.Hours(), want.Hours())
	}
}
