package simtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// FloorPresets are presets by which tenants have weights, and so repay each other.
var FloorPresets = []string{"astraea", "drf", "gandiva-fair", "oef:coop", "oef:noncoop", "gavel:las"}

// Floors is what tenants kept in the hours of a history in which some repaid others; of four terms in place of an hour if a term is above half
// an hour.
type Floors struct {
	Hours int     // tenants' hours in a pool in which others' GPUs could be taken back
	Worst float64 // the least GPU time held, and a term of the tenant's largest gang, in percent of what it was due and wanted, as with a floor of 75 %
	What  string  // of the worst
}

// FloorsOf draws a history in which tenants hold others' GPUs for days in jobs that cannot be stopped, after which all want more than
// there is; and looks at the hours after it, of tenants that repay, of those that are repaid and of others. Hours in which a tenant's jobs say
// that stops wait for the limits are left out.
func FloorsOf(t testing.TB, seed uint64, limits cluster.StopsPerHour) Floors {
	r := rand.New(rand.NewPCG(seed, 75))
	set := Product()
	set.Interval, set.StopsPerHour = cluster.Minute, limits
	set.Preset = FloorPresets[r.IntN(len(FloorPresets))]
	if seed%2 == 0 {
		set.Preset = FloorPresets[0]
	}
	if set.Preset != FloorPresets[0] {
		set.Divide, set.DivideJobs, set.Mechanism = set.Preset, preset.OfJobs(set.Preset), preset.Mechanism(set.Preset, "")
	}
	set.Term = []cluster.Span{10, 15, 15, 30, 40, 60, 120}[r.IntN(7)] * cluster.Minute
	set.RepayFloorPercent = []int{50, 75, 75, 90}[r.IntN(4)]
	set.CreditCap = []cluster.Span{2, 2, 24}[r.IntN(3)] * cluster.Hour
	names := []string{"a", "b", "c", "d"}[:2+r.IntN(3)]
	var nodes []cluster.Node
	for p := range 1 + r.IntN(2) {
		nodes = append(nodes, Nodes(fmt.Sprintf("n%d_", p), model(p), 2+r.IntN(2), 8)...)
	}
	w := New(t, set, nodes, names...)
	for _, name := range names {
		if r.IntN(3) == 0 {
			w.SetShares(name, 1+r.Int64N(3))
		}
	}
	span := cluster.Span(4+r.IntN(44)) * cluster.Hour
	for range 4 + 6*len(nodes)/2 {
		w.Virtual.Submit(sim.Work{Name: "hold", User: "u", Account: names[r.IntN(len(names)-1)], Partition: "gpu", Request: Gang(1 + r.IntN(2)),
			Runs: span - cluster.Span(r.IntN(60))*cluster.Minute, NoRequeue: true})
	}
	w.Run(set.Interval)
	gangs := make([]int, len(names))
	want := func(k int) {
		gangs[k] = []int{1, 1, 2, 4, 8}[r.IntN(5)]
		for left := 16 * len(nodes); left > 0; left -= gangs[k] {
			w.Virtual.Submit(sim.Work{Name: "train", User: names[k] + "_user", Account: names[k], Partition: "gpu", Request: Gang(gangs[k]),
				Runs: cluster.Span(1+r.IntN(200)) * cluster.Hour, Saves: sim.OnTerm, Comment: "saves=term"})
		}
	}
	want(len(names) - 1)
	w.Run(span / 2)
	for k := range len(names) - 1 {
		want(k)
	}
	w.Run(span / 2)
	f := newWatch(w, names, gangs, nodes)
	w.Check = f.look
	w.Run(24 * cluster.Hour)
	f.out.What = fmt.Sprintf("seed %d, %s, floor %d, credit.cap %s, term %s: %s", seed, set.Preset, set.RepayFloorPercent, set.CreditCap, set.Term, f.out.What)
	return f.out
}

// watch sums what tenants held and wanted in each hour.
type watch struct {
	w     *World
	names []string
	gangs []int
	nodes []cluster.Node
	rows  map[[2]string]*hour
	out   Floors
}

// hour is one of a tenant in a pool.
type hour struct {
	begin, last cluster.Instant
	not         bool // nothing was repaid for a time, or it could not get GPUs
	held, due   cluster.GPUTime
	now, wants  cluster.MicroGPU // since last
}

func newWatch(w *World, names []string, gangs []int, nodes []cluster.Node) *watch {
	return &watch{w: w, names: names, gangs: gangs, nodes: nodes, rows: map[[2]string]*hour{}, out: Floors{Worst: 1000}}
}

// look takes a round into account.
func (f *watch) look(rep loop.Report) {
	at, rows, pools := rep.Plan.At, rep.Plan.State.Ledger.Tenants, len(rep.Plan.State.Ledger.Pools)
	for i := range rows {
		t := &rows[i]
		key := [2]string{t.Tenant, t.Pool}
		h := f.rows[key]
		if h == nil {
			h = &hour{begin: at, last: at, not: true}
			f.rows[key] = h
		}
		dt := at.Sub(h.last)
		h.held, h.due = h.held+ltgf.Credit(h.now, dt), h.due+ltgf.Credit(h.wants, dt)
		gang := f.gangs[slices.Index(f.names, t.Tenant)]
		if at.Sub(h.begin) >= f.span() {
			f.close(h, key, gang)
			*h = hour{begin: at}
		}
		h.last = at
		h.wants = min(t.Own(), t.Demand)
		h.now = 0
		for _, st := range rep.Plan.Tenants {
			if st.Tenant == t.Tenant && st.Pool == t.Pool {
				h.now = cluster.MicroGPU(st.Holds)
			}
		}
		h.now += f.ended(&rep.Plan, t)
		h.not = h.not || f.stops(&rep.Plan, t) || !ltgf.Repaid(rows, pools, i%pools) || f.late(&rep.Plan, t) || !f.room(&rep.Plan, t.Pool)
	}
}

// ended gives the GPUs of a tenant's jobs that have just ended by themselves: nobody took them, and the next job comes with the next round.
func (f *watch) ended(p *cluster.Plan, t *cluster.TenantPool) (out cluster.MicroGPU) {
	for k := range p.Ended {
		l := &p.Ended[k]
		if l.Why == "finished" && l.Pool == t.Pool && tenantOf(p, l.Job) == t.Tenant {
			out += cluster.MicroGPU(l.Size.Devices) * cluster.WholeGPU
		}
	}
	return out
}

// stops reports whether jobs of a tenant wait in a pool since no more may be stopped within the hour, and say so.
func (f *watch) stops(p *cluster.Plan, t *cluster.TenantPool) bool {
	return slices.ContainsFunc(p.Statuses, func(s cluster.JobStatus) bool {
		return s.Reason.Code == cluster.ReasonStops && s.Reason.Pool == t.Pool && tenantOf(p, s.Job) == t.Tenant
	})
}

// span is the length of the hours.
func (f *watch) span() cluster.Span {
	if term := f.w.Settings.Term; term > cluster.Hour/2 {
		return 4 * term
	}
	return cluster.Hour
}

// late reports whether GPUs that were claimed for a tenant have not been taken back in time, since a job that holds them may not be stopped
// after all.
func (f *watch) late(p *cluster.Plan, t *cluster.TenantPool) bool {
	held := map[string]bool{} // nodes with jobs that may not be stopped
	f.bound(p, func(l *cluster.Lease) {
		for _, n := range l.Nodes {
			held[n.Node] = true
		}
	})
	for k := range p.State.Claims {
		cl := &p.State.Claims[k]
		on := slices.ContainsFunc(cl.Nodes, func(n cluster.Holding) bool { return held[n.Node] })
		if on && tenantOf(p, cl.Job) == t.Tenant && cl.Pool == t.Pool && cl.At < p.At {
			return true
		}
	}
	return false
}

// bound calls for each lease of a job that cannot be stopped.
func (f *watch) bound(p *cluster.Plan, call func(*cluster.Lease)) {
	bound := map[cluster.JobKey]bool{}
	for k := range p.Bound {
		bound[p.Bound[k].Job] = true
	}
	for k := range p.State.Leases {
		if l := &p.State.Leases[k]; bound[l.Job] {
			call(l)
		}
	}
}

// room reports whether the GPUs of a pool without those of jobs that cannot be stopped are enough for the floors of all tenants and a gang
// of each, on nodes in whole gangs of the largest.
func (f *watch) room(p *cluster.Plan, pool string) bool {
	left, has := map[string]int{}, map[string]int{}
	for _, n := range f.nodes {
		for _, g := range n.GPUs {
			if g.Model == pool {
				left[n.Name] += g.Count
			}
		}
	}
	f.bound(p, func(l *cluster.Lease) {
		for _, n := range l.Nodes {
			if n.Model == pool {
				left[n.Node] -= n.Size.Devices
				has[tenantOf(p, l.Job)] += n.Size.Devices
			}
		}
	})
	free, gang := 0, slices.Max(f.gangs)
	for _, n := range left {
		free += n / max(gang, 1) * gang
	}
	need := cluster.MicroGPU(0)
	for k := range p.State.Ledger.Tenants {
		if t := &p.State.Ledger.Tenants[k]; t.Pool == pool {
			own := f.gangs[slices.Index(f.names, t.Tenant)]
			need += max(ltgf.Floor(t, &f.w.Settings)+cluster.MicroGPU(own-has[t.Tenant])*cluster.WholeGPU, 0)
		}
	}
	return cluster.MicroGPU(free)*cluster.WholeGPU >= need
}

// close judges an hour.
func (f *watch) close(h *hour, of [2]string, gang int) {
	if h.not || h.due == 0 {
		return
	}
	f.out.Hours++
	s := &f.w.Settings
	kept := 100 * float64(h.held+cluster.Times(gang, s.Term)) / float64(h.due) * 75 / float64(s.RepayFloorPercent)
	if kept < f.out.Worst {
		f.out.Worst = kept
		f.out.What = fmt.Sprintf("%s held %.2f of %.2f GPU-hours of %s in the hour from %s, gangs of %d", of[0], h.held.Hours(), h.due.Hours(), of[1], h.begin.Sub(Start), gang)
	}
}

// tenantOf returns the tenant of a job; empty = it is not known.
func tenantOf(p *cluster.Plan, job cluster.JobKey) string {
	i, ok := slices.BinarySearchFunc(p.State.Records, job, func(r cluster.Record, key cluster.JobKey) int { return cmp.Compare(r.Key, key) })
	if !ok {
		return ""
	}
	return p.State.Records[i].Tenant
}
