package simtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// Division is an allocation that a mechanism must carry out, round after round.
type Division struct {
	GPUs []int       // by pool, the slowest first, on nodes of 8
	Due  [][]float64 // GPUs, by tenant and pool
	Jobs [][]int     // gangs, by tenant
}

// NewDivision returns a random division of all GPUs between three to six tenants. Each tenant has gangs of one
// of the given sizes, for twice its entitlement.
func NewDivision(seed uint64, gangs []int) (d Division) {
	r := rand.New(rand.NewPCG(seed, uint64(len(gangs))))
	for range 1 + r.IntN(3) {
		d.GPUs = append(d.GPUs, 8*(1+r.IntN(2)))
	}
	n := 3 + r.IntN(4)
	d.Due, d.Jobs = make([][]float64, n), make([][]int, n)
	for t := range n {
		for range d.GPUs {
			d.Due[t] = append(d.Due[t], float64(r.IntN(3))*r.ExpFloat64())
		}
	}
	for p, gpus := range d.GPUs {
		sum := 0.0
		for t := range n {
			sum += d.Due[t][p]
		}
		if sum == 0 {
			d.Due[0][p], sum = 1, 1
		}
		for t := range n {
			d.Due[t][p] *= float64(gpus) / sum
		}
	}
	for t := range n {
		gang := gangs[r.IntN(len(gangs))]
		for k := 0; k == 0 || float64(k*gang) < 2*total(d.Due[t]); k++ {
			d.Jobs[t] = append(d.Jobs[t], gang)
		}
	}
	return d
}

func total(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum
}

// Apart returns the division between jobs: each job is a tenant of its own, with an equal part of its
// tenant's entitlement.
func (d *Division) Apart() (out Division) {
	out.GPUs = d.GPUs
	for t, gangs := range d.Jobs {
		for _, gang := range gangs {
			var due []float64
			for _, x := range d.Due[t] {
				due = append(due, x/float64(len(gangs)))
			}
			out.Due, out.Jobs = append(out.Due, due), append(out.Jobs, []int{gang})
		}
	}
	return out
}

// Course is the result of a mechanism: GPUs by round, tenant and pool.
type Course [][][]float64

// Nothing is the empty holding of all tenants in a round.
func (d *Division) Nothing() [][]float64 {
	had := make([][]float64, len(d.Due))
	for t := range had {
		had[t] = make([]float64, len(d.GPUs))
	}
	return had
}

// CarryOut makes the engine carry out a division for n rounds on a virtual cluster with instant hand-overs, under a preset and a
// mechanism. Any job may be stopped in any round, as in the papers, because a spent stop budget would delay hand-overs.
func (d *Division) CarryOut(t testing.TB, by, mechanism string, n int) (c Course) {
	set := Product()
	set.Divide, set.DivideJobs, set.Mechanism, set.Interval = by, preset.OfJobs(by), mechanism, cluster.Minute
	set.StopAllowance, set.StopOverheadMilli = 0, 0
	var nodes []cluster.Node
	var tenants []string
	for p, gpus := range d.GPUs {
		nodes = append(nodes, Nodes(fmt.Sprintf("n%d_", p), model(p), gpus/8, 8)...)
	}
	for l := range d.Due {
		tenants = append(tenants, fmt.Sprintf("t%03d", l))
	}
	w := New(t, set, nodes, tenants...)
	w.Gate, w.Completing = set.GateTTL, 0
	w.Loop.Divide = func(q cluster.AllocationRequest) cluster.Allocation {
		a := cluster.Allocation{Policy: q.Policy, Digest: q.Digest}
		for _, p := range q.Pools {
			a.Pools = append(a.Pools, p.Model)
		}
		for i := range q.Bids {
			l := slices.Index(tenants, q.Bids[i].Tenant)
			part := cluster.Part{Party: q.Bids[i].Party}
			for _, x := range d.Due[l] {
				part.GPUs = append(part.GPUs, cluster.MicroGPU(x*float64(q.Bids[i].Demand)/total(ints(d.Jobs[l]))*float64(cluster.WholeGPU)))
			}
			a.Parts = append(a.Parts, part)
		}
		return a
	}
	for l, gangs := range d.Jobs {
		w.Submit(tenants[l], len(gangs), gangs[0], 1000*cluster.Hour)
	}
	before := d.Nothing()
	for range n + 1 {
		w.Run(w.Settings.Term)
		had := d.Nothing()
		for _, row := range w.Last.State.Ledger.Tenants {
			l, p := slices.Index(tenants, row.Tenant), int(row.Pool[1]-'0')
			now := float64(row.Alloc) / float64(w.Settings.Term)
			had[l][p], before[l][p] = now-before[l][p], now
		}
		c = append(c, had)
	}
	return c[1:] // in the first there was no division yet
}

func model(p int) string { return fmt.Sprintf("m%d", p) }

func ints(list []int) (out []float64) {
	for _, n := range list {
		out = append(out, float64(n))
	}
	return out
}

// Off returns the largest error of any tenant after so many rounds, in rounds of one of its gangs. pool is
// the largest error in one pool, all in all pools together.
func (c Course) Off(d *Division, after int) (pool, all float64) {
	for l := range d.Due {
		sum, gang := 0.0, float64(d.Jobs[l][0])
		for p, x := range d.Due[l] {
			off := -x * float64(after)
			for _, had := range c[:after] {
				off += had[l][p]
			}
			pool, sum = max(pool, math.Abs(off)/gang), sum+off
		}
		all = max(all, math.Abs(sum)/gang)
	}
	return pool, all
}

// Short returns the largest shortfall of any tenant in a pool after so many rounds, in rounds of one of its gangs. Unlike Off, it leaves
// out the GPUs that a tenant gets only because nobody else can use them.
func (c Course) Short(d *Division, after int) (most float64) {
	for l := range d.Due {
		for p, x := range d.Due[l] {
			short := x * float64(after)
			for _, had := range c[:after] {
				short -= had[l][p]
			}
			most = max(most, short/float64(d.Jobs[l][0]))
		}
	}
	return most
}

// Waits returns the longest time without GPUs of tenants whose entitlement is less than one of their gangs.
// Its unit is gang/due, the time in which a tenant is due one gang.
func (c Course) Waits(d *Division) (most float64) {
	for l := range d.Due {
		gang, due, waits := float64(d.Jobs[l][0]), total(d.Due[l]), 0
		if due < gang/50 || due >= gang {
			continue
		}
		for _, had := range c {
			if waits++; total(had[l]) >= gang/2 {
				waits = 0
			}
			most = max(most, float64(waits)*due/gang)
		}
	}
	return most
}

// Idle returns the part of all GPU time that no tenant used.
func (c Course) Idle(d *Division) float64 {
	sum := 0.0
	for _, had := range c {
		for l := range had {
			sum += total(had[l])
		}
	}
	return 1 - sum/total(ints(d.GPUs))/float64(len(c))
}

// WorstRounds returns the largest error of any tenant in a pool after 200 terms, in rounds of one of its gangs: the worst of twelve random
// divisions with gangs of 1 to 8 GPUs. Presets that divide GPU models differ here only in their parties, so one of each kind carries them
// out, with the default mechanism.
func WorstRounds(t testing.TB) float64 { return worstRounds(t, (*Division).CarryOut) }

// WorstCellRounds is WorstRounds inside one virtual cluster, between job types or jobs of its tenant.
func WorstCellRounds(t testing.TB) float64 { return worstRounds(t, (*Division).CarryOutInCells) }

func worstRounds(t testing.TB, carryOut func(d *Division, t testing.TB, by, mechanism string, n int) Course) (worst float64) {
	for _, by := range preset.Kinds() {
		for seed := range uint64(12) {
			d := NewDivision(seed, []int{1, 2, 4, 8})
			if preset.OfJobs(by) {
				d = d.Apart()
			}
			c := carryOut(&d, t, by, "", 200)
			pool, _ := c.Off(&d, 200)
			worst = max(worst, pool)
		}
	}
	return worst
}
