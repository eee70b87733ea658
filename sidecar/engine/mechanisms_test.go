package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/rounds"
	"github.com/fairlease/fairlease/sidecar/engine/stride"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// division is an allocation that a mechanism must carry out, round after round.
type division struct {
	gpus []int       // by pool, the slowest first, on nodes of 8
	due  [][]float64 // GPUs, by tenant and pool
	jobs [][]int     // gangs, by tenant
}

// divisions returns a random division of all GPUs between three to six tenants. Each tenant has gangs of one
// of the given sizes, for twice its entitlement.
func divisions(seed uint64, gangs []int) (d division) {
	r := rand.New(rand.NewPCG(seed, uint64(len(gangs))))
	for range 1 + r.IntN(3) {
		d.gpus = append(d.gpus, 8*(1+r.IntN(2)))
	}
	n := 3 + r.IntN(4)
	d.due, d.jobs = make([][]float64, n), make([][]int, n)
	for t := range n {
		for range d.gpus {
			d.due[t] = append(d.due[t], float64(r.IntN(3))*r.ExpFloat64())
		}
	}
	for p, gpus := range d.gpus {
		sum := 0.0
		for t := range n {
			sum += d.due[t][p]
		}
		if sum == 0 {
			d.due[0][p], sum = 1, 1
		}
		for t := range n {
			d.due[t][p] *= float64(gpus) / sum
		}
	}
	for t := range n {
		gang := gangs[r.IntN(len(gangs))]
		for k := 0; k == 0 || float64(k*gang) < 2*total(d.due[t]); k++ {
			d.jobs[t] = append(d.jobs[t], gang)
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

// apart returns the division between jobs: each job is a tenant of its own, with an equal part of its
// tenant's entitlement.
func (d *division) apart() (out division) {
	out.gpus = d.gpus
	for t, gangs := range d.jobs {
		for _, gang := range gangs {
			var due []float64
			for _, x := range d.due[t] {
				due = append(due, x/float64(len(gangs)))
			}
			out.due, out.jobs = append(out.due, due), append(out.jobs, []int{gang})
		}
	}
	return out
}

// course is the result of a mechanism: GPUs by round, tenant and pool.
type course [][][]float64

// carried runs a mechanism for some rounds over a division.
type carried func(*testing.T, division, int) course

// mechanisms lists all mechanisms by name. Bounds are in rounds of a gang: the largest error of a tenant in a
// pool, with one-GPU jobs and with gangs; 0 = no bound. Some divisions of gangs are impossible, so that the
// error grows with the rounds there.
var mechanisms = []struct {
	name  string
	jobs  bool       // parties are jobs
	first [2]float64 // bounds for the first division, up to 50 rounds
	all   [2]float64 // bounds for all twelve, up to 200
	run   carried
}{
	{"hall", false, [2]float64{6, 7}, [2]float64{6, 55}, func(t *testing.T, d division, n int) course { return inHall(t, d, n, false) }},
	{"hall, parties are jobs", true, [2]float64{3, 4}, [2]float64{5, 23}, func(t *testing.T, d division, n int) course { return inHall(t, d, n, true) }},
	{"Algorithm 1 with moves", true, [2]float64{4, 4}, [2]float64{4, 6}, byGavel},
	{"OEF §4.3", false, [2]float64{1, 0}, [2]float64{1, 0}, byOEF},
	{"split stride", false, [2]float64{}, [2]float64{}, byStride},
}

// nothing is the empty holding of all tenants in a round.
func (d *division) nothing() [][]float64 {
	had := make([][]float64, len(d.due))
	for t := range had {
		had[t] = make([]float64, len(d.gpus))
	}
	return had
}

// inHall makes the engine carry out a division on a virtual cluster with instant hand-overs. Any job may be
// stopped in any round, as in the papers, because a spent stop budget would delay hand-overs.
func inHall(t *testing.T, d division, n int, jobs bool) (c course) {
	set := simtest.Product()
	set.Divide, set.DivideJobs, set.Interval = "test", jobs, minute
	set.StopAllowance, set.StopOverheadMilli = 0, 0
	var nodes []cluster.Node
	var tenants []string
	for p, gpus := range d.gpus {
		nodes = append(nodes, simtest.Nodes(fmt.Sprintf("n%d_", p), model(p), gpus/8, 8)...)
	}
	for l := range d.due {
		tenants = append(tenants, fmt.Sprintf("t%03d", l))
	}
	w := simtest.New(t, set, nodes, tenants...)
	w.Gate, w.Completing = set.GateTTL, 0
	w.Loop.Divide = func(q cluster.AllocationRequest) cluster.Allocation {
		a := cluster.Allocation{Policy: q.Policy, Digest: q.Digest}
		for _, p := range q.Pools {
			a.Pools = append(a.Pools, p.Model)
		}
		for i := range q.Bids {
			l := slices.Index(tenants, q.Bids[i].Tenant)
			part := cluster.Part{Party: q.Bids[i].Party}
			for _, x := range d.due[l] {
				part.GPUs = append(part.GPUs, cluster.MicroGPU(x*float64(q.Bids[i].Demand)/total(ints(d.jobs[l]))*float64(cluster.WholeGPU)))
			}
			a.Parts = append(a.Parts, part)
		}
		return a
	}
	for l, gangs := range d.jobs {
		w.Submit(tenants[l], len(gangs), gangs[0], forever)
	}
	before := d.nothing()
	for range n + 1 {
		w.Run(w.Settings.Term)
		had := d.nothing()
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

// byGavel carries out a division by rows of jobs, which share their tenant's entitlement equally.
func byGavel(_ *testing.T, d division, n int) (c course) {
	var rows []rounds.Row
	var of []int
	for l, gangs := range d.jobs {
		for _, gang := range gangs {
			r := rounds.Row{Job: cluster.JobKey(len(rows) + 1), Gang: gang, Due: make([]cluster.Span, len(d.gpus)), Time: make([]cluster.Span, len(d.gpus))}
			for _, x := range d.due[l] {
				r.Share = append(r.Share, x/total(ints(gangs)))
			}
			rows, of = append(rows, r), append(of, l)
		}
	}
	for range n {
		grants, had := rounds.Gavel(d.gpus, rows, term), d.nothing()
		for _, g := range grants {
			had[of[g.Row]][g.Model] += float64(rows[g.Row].Gang)
			rows[g.Row].Time[g.Model] += term
		}
		for i := range rows {
			for p, x := range rows[i].Share {
				rows[i].Due[p] += cluster.Span(x * float64(term))
			}
		}
		c = append(c, had)
	}
	return c
}

// byOEF carries out a division by OEF's rounding; had is the present GPUs of jobs.
func byOEF(_ *testing.T, d division, n int) (c course) {
	tenants := make([]rounds.Tenant, len(d.due))
	for l := range tenants {
		tenants[l] = rounds.Tenant{Ideal: d.due[l], Dev: make([]float64, len(d.gpus))}
		for k, gang := range d.jobs[l] {
			tenants[l].Jobs = append(tenants[l].Jobs, rounds.Job{Key: cluster.JobKey(k + 1), Gang: gang})
		}
	}
	for range n {
		_, after, runs := rounds.OEF(d.gpus, tenants, rounds.Settings{})
		had := d.nothing()
		for _, r := range runs {
			had[r.Tenant][r.Model] += float64(d.jobs[r.Tenant][r.Job])
		}
		tenants, c = after, append(c, had)
	}
	return c
}

// byStride carries out a division by the method of Gandiva_fair: jobs are placed by tickets and balanced,
// then scheduled by split stride on each model.
func byStride(t *testing.T, d division, n int) (c course) {
	s := stride.State{Models: len(d.gpus)}
	splits := make([]stride.Split, len(d.gpus))
	at := []int{} // by server: its index among those of its model
	for p, gpus := range d.gpus {
		for range gpus / 8 {
			at = append(at, len(splits[p].Nodes))
			s.Servers = append(s.Servers, stride.Server{Model: p, GPUs: 8})
			splits[p].Nodes = append(splits[p].Nodes, stride.Node{GPUs: 8})
		}
	}
	var queue []stride.Queued
	for l, gangs := range d.jobs {
		s.Users = append(s.Users, stride.User{})
		for _, x := range d.due[l] {
			s.Users[l].Tickets = append(s.Users[l].Tickets, cluster.MicroGPU(x*float64(cluster.WholeGPU)))
		}
		for _, gang := range gangs {
			queue = append(queue, stride.Queued{Key: cluster.JobKey(len(queue) + 1), User: l, GPUs: gang, Speed: slices.Repeat([]float64{1}, len(d.gpus))})
		}
	}
	wanted := d.nothing()
	for len(queue) > 0 {
		k, ok := s.Place(queue)
		if !ok {
			t.Fatal("no place")
		}
		q := queue[k.Job]
		s.Jobs = append(s.Jobs, stride.Placed{Key: q.Key, User: q.User, On: k.On})
		wanted[q.User][k.Model] += float64(q.GPUs)
		queue = slices.Delete(queue, k.Job, k.Job+1)
	}
	for k, ok := s.Balance(cluster.WholeGPU / 100); ok; k, ok = s.Balance(cluster.WholeGPU / 100) {
		s.Jobs[k.Job].On = k.On
	}
	user := map[cluster.JobKey]int{}
	for _, j := range s.Jobs {
		p := s.Servers[j.On[0].Node].Model
		job := stride.Job{Key: j.Key, GPUs: j.On[0].GPUs, Pass: stride.Never, Stride: stride.Stride(int(wanted[j.User][p]), s.Users[j.User].Tickets[p])}
		splits[p] = splits[p].WithSmall(at[j.On[0].Node], job)
		user[j.Key] = j.User
	}
	for range n {
		had := d.nothing()
		for p := range splits {
			turn := splits[p].Next()
			for node, run := range turn.Small {
				for _, k := range run {
					j := &splits[p].Nodes[node].Jobs[k]
					had[user[j.Key]][p] += float64(j.GPUs)
				}
			}
			splits[p] = splits[p].After(turn, term, term)
		}
		c = append(c, had)
	}
	return c
}

// off returns the largest error of any tenant after so many rounds, in rounds of one of its gangs. pool is
// the largest error in one pool, all in all pools together.
func (c course) off(d *division, after int) (pool, all float64) {
	for l := range d.due {
		sum, gang := 0.0, float64(d.jobs[l][0])
		for p, x := range d.due[l] {
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

// waits returns the longest time without GPUs of tenants whose entitlement is less than one of their gangs.
// Its unit is gang/due, the time in which a tenant is due one gang.
func (c course) waits(d *division) (most float64) {
	for l := range d.due {
		gang, due, waits := float64(d.jobs[l][0]), total(d.due[l]), 0
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

// idle returns the part of all GPU time that no tenant used.
func (c course) idle(d *division) float64 {
	sum := 0.0
	for _, had := range c {
		for l := range had {
			sum += total(had[l])
		}
	}
	return 1 - sum/total(ints(d.gpus))/float64(len(c))
}

// The test compares the mechanisms: how far tenants are from their entitlements over rounds. The full test
// makes the table of docs/results.md.
func TestMechanisms(t *testing.T) {
	t.Parallel()
	for mix, gangs := range [][]int{{1}, {1, 2, 4, 8}} {
		for _, m := range mechanisms {
			t.Run(fmt.Sprintf("%v/%s", gangs, m.name), func(t *testing.T) {
				looks, most := []int{5, 20, 50, 100, 200}[:seeds.Some(3, 5)], m.first[mix]
				if seeds.Full() {
					most = m.all[mix]
				}
				pool, all := make([]float64, len(looks)), make([]float64, len(looks))
				waits, idle := 0.0, 0.0
				for seed := range uint64(seeds.Some(1, 12)) {
					d := divisions(seed, gangs)
					if m.jobs {
						d = d.apart()
					}
					c := m.run(t, d, slices.Max(looks))
					for i, after := range looks {
						p, a := c.off(&d, after)
						pool[i], all[i] = max(pool[i], p), max(all[i], a)
					}
					waits, idle = max(waits, c.waits(&d)), max(idle, c.idle(&d))
				}
				if worst := slices.Max(pool); most > 0 && worst > most {
					t.Errorf("a tenant is off by %.1f rounds of a gang, want %.0f at most", worst, most)
				}
				var line strings.Builder
				for i, after := range looks {
					fmt.Fprintf(&line, "  %d: %.1f, %.1f", after, pool[i], all[i])
				}
				t.Logf("off in rounds of a gang, of a pool and of all, after%s; longest wait %.1f gang/due, idle %.1f %%", line.String(), waits, 100*idle)
			})
		}
	}
}

// The accounts of parties are in the journal: a daemon that restarts in the middle of a term continues as the
// old one would.
func TestARestartChangesNoParty(t *testing.T) {
	run := func(restart bool) cluster.State {
		w := newMarket(t, 1, 1, false, nil, "a", "b")
		w.Loop.Divide = parts(map[string]map[string]cluster.MicroGPU{"a": {"k80": 1, "v100": 3}, "b": {"k80": 3, "v100": 1}})
		w.Submit("a", 6, 2, forever)
		w.Submit("b", 3, 4, forever)
		w.Run(3*term + 4*minute)
		if restart {
			old := w.Loop
			w.Loop = &loop.Loop{Cluster: old.Cluster, Journal: old.Journal, Decide: engine.Decide, Divide: old.Divide, Configure: old.Configure}
		}
		w.Run(6 * term)
		return w.Last.State
	}
	through, anew := run(false), run(true)
	if len(through.Parties) == 0 || len(through.Leases) == 0 {
		t.Fatalf("%d parties, %d leases", len(through.Parties), len(through.Leases))
	}
	if d := cmp.Diff(through.Parties, anew.Parties); d != "" {
		t.Errorf("what parties are owed (-without a restart +with one):\n%s", d)
	}
	if d := cmp.Diff(through.Leases, anew.Leases); d != "" {
		t.Errorf("leases (-without a restart +with one):\n%s", d)
	}
}
