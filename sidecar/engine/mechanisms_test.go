package engine_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/rounds"
	"github.com/fairlease/fairlease/sidecar/engine/stride"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// carried runs a mechanism for some rounds over a division.
type carried func(*testing.T, simtest.Division, int) simtest.Course

// mechanisms lists all mechanisms by name: those of the engine, live, under a preset of every kind of parties, and those of the
// papers by themselves. Bounds are in rounds of a gang, with one-GPU jobs and with gangs: the largest error of a tenant in a
// pool, and the largest shortfall, which leaves out GPUs that nobody else can use; 0 = no bound.
var mechanisms = []struct {
	name  string
	jobs  bool       // parties are jobs
	first [2]float64 // bounds for the first division, up to 50 rounds
	all   [2]float64 // bounds for all twelve, up to 200
	short [2]float64 // bounds of the shortfall for all twelve, after 200
	run   carried
}{
	{"live nearest, parties are kinds", false, [2]float64{6, 6}, [2]float64{6, 6}, [2]float64{6, 6}, live("gandiva-fair", "")},
	{"live nearest, parties are jobs", true, [2]float64{6, 6}, [2]float64{6, 6}, [2]float64{6, 6}, live("gavel:las", "")},
	{"live nearest, jobs queue", true, [2]float64{6, 6}, [2]float64{6, 6}, [2]float64{6, 6}, live("gavel:fifo", "")},
	{"live nearest in a VC, parties are kinds", false, [2]float64{8, 8}, [2]float64{10, 10}, [2]float64{10, 10}, inVC("gandiva-fair", "")},
	{"live nearest in a VC, parties are jobs", true, [2]float64{6, 6}, [2]float64{10, 10}, [2]float64{10, 10}, inVC("gavel:las", "")},
	{"live stride, parties are kinds", false, [2]float64{8, 10}, [2]float64{8, 45}, [2]float64{8, 20}, live("gandiva-fair", cluster.ByStride)},
	{"live stride, parties are jobs", true, [2]float64{6, 6}, [2]float64{6, 25}, [2]float64{6, 6}, live("gavel:las", cluster.ByStride)},
	{"live gavel, parties are jobs", true, [2]float64{6, 6}, [2]float64{6, 20}, [2]float64{6, 8}, live("gavel:las", cluster.ByGavel)},
	{"live oef, parties are kinds", false, [2]float64{8, 10}, [2]float64{8, 40}, [2]float64{8, 20}, live("oef:noncoop", cluster.ByOEF)},
	{"live debt, parties are kinds", false, [2]float64{8, 10}, [2]float64{8, 90}, [2]float64{8, 25}, live("gandiva-fair", cluster.ByDebt)},
	{"live debt, parties are jobs", true, [2]float64{6, 6}, [2]float64{6, 20}, [2]float64{6, 6}, live("gavel:las", cluster.ByDebt)},
	{"nearest", false, [2]float64{6, 6}, [2]float64{6, 6}, [2]float64{}, byNearest},
	{"Algorithm 1 with moves", true, [2]float64{4, 4}, [2]float64{4, 6}, [2]float64{4, 6}, byGavel},
	{"OEF §4.3", false, [2]float64{1, 0}, [2]float64{1, 0}, [2]float64{}, byOEF},
	{"split stride", false, [2]float64{}, [2]float64{}, [2]float64{}, byStride},
}

// live makes the engine carry out a division.
func live(by, mechanism string) carried {
	return func(t *testing.T, d simtest.Division, n int) simtest.Course { return d.CarryOut(t, by, mechanism, n) }
}

// inVC makes the engine carry out a division inside one virtual cluster.
func inVC(by, mechanism string) carried {
	return func(t *testing.T, d simtest.Division, n int) simtest.Course {
		return d.CarryOutInCells(t, by, mechanism, n)
	}
}

func sum(list []int) (out float64) {
	for _, n := range list {
		out += float64(n)
	}
	return out
}

// byNearest carries out a division by rounds.Nearest. Jobs that fit take the GPUs that it leaves.
func byNearest(_ *testing.T, d simtest.Division, n int) (c simtest.Course) {
	var pools []rounds.Pool
	for _, gpus := range d.GPUs {
		pools = append(pools, rounds.Pool{Free: slices.Repeat([]int{8}, gpus/8), Node: 8})
	}
	var wants []rounds.Want
	for l, gangs := range d.Jobs {
		for _, gang := range gangs {
			for p, x := range d.Due[l] {
				if x > 0 {
					pools[p].Line = append(pools[p].Line, len(wants))
				}
			}
			wants = append(wants, rounds.Want{Party: l, Tenant: l, Gang: gang, On: -1})
		}
	}
	debts := d.Nothing()
	for range n {
		left, had, runs := slices.Clone(d.GPUs), d.Nothing(), make([]bool, len(wants))
		give := func(w, p int) {
			runs[w], left[p] = true, left[p]-wants[w].Gang
			had[wants[w].Party][p] += float64(wants[w].Gang)
		}
		for l := range debts {
			for p, x := range d.Due[l] {
				debts[l][p] += x
			}
		}
		for _, g := range rounds.Nearest(pools, rounds.Debts{Parties: debts, Tenants: debts}, wants, 0) {
			give(g.Row, g.Model)
		}
		for w := range wants {
			for p := range left {
				if !runs[w] && wants[w].Gang <= left[p] {
					give(w, p)
				}
			}
		}
		for p, gpus := range d.GPUs { // time that nobody with an entitlement received is nobody's debt
			lost := float64(gpus)
			for l := range debts {
				if d.Due[l][p] > 0 {
					lost -= had[l][p]
				}
			}
			for l := range debts {
				if x := d.Due[l][p]; x > 0 {
					debts[l][p] -= had[l][p] + lost*x/float64(gpus)
				}
			}
		}
		c = append(c, had)
	}
	return c
}

// byGavel carries out a division by rows of jobs, which share their tenant's entitlement equally.
func byGavel(_ *testing.T, d simtest.Division, n int) (c simtest.Course) {
	var rows []rounds.Row
	var of []int
	for l, gangs := range d.Jobs {
		for _, gang := range gangs {
			r := rounds.Row{Job: cluster.JobKey(len(rows) + 1), Gang: gang, Due: make([]cluster.Span, len(d.GPUs)), Time: make([]cluster.Span, len(d.GPUs))}
			for _, x := range d.Due[l] {
				r.Share = append(r.Share, x/sum(gangs))
			}
			rows, of = append(rows, r), append(of, l)
		}
	}
	for range n {
		grants, had := rounds.Gavel(d.GPUs, rows, term), d.Nothing()
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
func byOEF(_ *testing.T, d simtest.Division, n int) (c simtest.Course) {
	tenants := make([]rounds.Tenant, len(d.Due))
	for l := range tenants {
		tenants[l] = rounds.Tenant{Ideal: d.Due[l], Dev: make([]float64, len(d.GPUs))}
		for k, gang := range d.Jobs[l] {
			tenants[l].Jobs = append(tenants[l].Jobs, rounds.Job{Key: cluster.JobKey(k + 1), Gang: gang})
		}
	}
	for range n {
		_, after, runs := rounds.OEF(d.GPUs, tenants)
		had := d.Nothing()
		for _, r := range runs {
			had[r.Tenant][r.Model] += float64(d.Jobs[r.Tenant][r.Job])
		}
		tenants, c = after, append(c, had)
	}
	return c
}

// byStride carries out a division by the method of Gandiva_fair: jobs are placed by tickets and balanced,
// then scheduled by split stride on each model.
func byStride(t *testing.T, d simtest.Division, n int) (c simtest.Course) {
	s := stride.State{Models: len(d.GPUs)}
	splits := make([]stride.Split, len(d.GPUs))
	at := []int{} // by server: its index among those of its model
	for p, gpus := range d.GPUs {
		for range gpus / 8 {
			at = append(at, len(splits[p].Nodes))
			s.Servers = append(s.Servers, stride.Server{Model: p, GPUs: 8})
			splits[p].Nodes = append(splits[p].Nodes, stride.Node{GPUs: 8})
		}
	}
	var queue []stride.Queued
	for l, gangs := range d.Jobs {
		s.Users = append(s.Users, stride.User{})
		for _, x := range d.Due[l] {
			s.Users[l].Tickets = append(s.Users[l].Tickets, cluster.MicroGPU(x*float64(cluster.WholeGPU)))
		}
		for _, gang := range gangs {
			queue = append(queue, stride.Queued{Key: cluster.JobKey(len(queue) + 1), User: l, GPUs: gang, Speed: slices.Repeat([]float64{1}, len(d.GPUs))})
		}
	}
	wanted := d.Nothing()
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
		had := d.Nothing()
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

// The test compares the mechanisms: how far tenants are from their entitlements over rounds. With all twelve divisions, as in
// make soak, it makes the table of research/results.md.
func TestMechanisms(t *testing.T) {
	t.Parallel()
	divisions := uint64(seeds.Some(1, 3))
	if os.Getenv("FAIRLEASE_DIVISIONS") == "all" {
		divisions = 12
	}
	for mix, gangs := range [][]int{{1}, {1, 2, 4, 8}} {
		for _, m := range mechanisms {
			t.Run(fmt.Sprintf("%v/%s", gangs, m.name), func(t *testing.T) {
				t.Parallel()
				looks, most := []int{5, 20, 50, 100, 200}[:seeds.Some(3, 5)], m.first[mix]
				if seeds.Full() {
					most = m.all[mix]
				}
				pool, all := make([]float64, len(looks)), make([]float64, len(looks))
				waits, idle, short, by := 0.0, 0.0, 0.0, []string(nil)
				for seed := range divisions {
					d := simtest.NewDivision(seed, gangs)
					if m.jobs {
						d = d.Apart()
					}
					c := m.run(t, d, slices.Max(looks))
					for i, after := range looks {
						p, a := c.Off(&d, after)
						pool[i], all[i] = max(pool[i], p), max(all[i], a)
					}
					waits, idle = max(waits, c.Waits(&d)), max(idle, c.Idle(&d))
					last, _ := c.Off(&d, slices.Max(looks))
					short, by = max(short, c.Short(&d, slices.Max(looks))), append(by, fmt.Sprintf("%.1f", last))
				}
				if most := m.short[mix]; most > 0 && short > most {
					t.Errorf("a tenant is short of %.1f rounds of a gang, want %.0f at most", short, most)
				}
				if worst := slices.Max(pool); most > 0 && worst > most {
					t.Errorf("a tenant is off by %.1f rounds of a gang, want %.0f at most", worst, most)
				}
				var line strings.Builder
				for i, after := range looks {
					fmt.Fprintf(&line, "  %d: %.1f, %.1f", after, pool[i], all[i])
				}
				t.Logf("off in rounds of a gang, of a pool and of all, after%s; by division %v; short by %.1f; longest wait %.1f gang/due, idle %.1f %%", line.String(), by, short, waits, 100*idle)
			})
		}
	}
}

// The accounts of parties are in the journal, and every mechanism decides by them: a daemon that restarts in the middle of a term continues as
// the old one would.
func TestARestartChangesNoParty(t *testing.T) {
	for _, mechanism := range cluster.Mechanisms {
		run := func(restart bool) cluster.State {
			w := newMarket(t, 1, 1, false, nil, "a", "b")
			w.Settings.Mechanism = mechanism
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
			t.Fatalf("%s: %d parties, %d leases", mechanism, len(through.Parties), len(through.Leases))
		}
		if d := cmp.Diff(through.Parties, anew.Parties); d != "" {
			t.Errorf("%s: what parties are owed (-without a restart +with one):\n%s", mechanism, d)
		}
		if d := cmp.Diff(through.Leases, anew.Leases); d != "" {
			t.Errorf("%s: leases (-without a restart +with one):\n%s", mechanism, d)
		}
	}
}

// A change of mechanism neither forgives nor doubles a debt: all accounts are the same just before and just after it.
func TestAChangeOfMechanismKeepsDebts(t *testing.T) {
	for _, from := range cluster.Mechanisms {
		for _, to := range cluster.Mechanisms {
			w := newMarket(t, 1, 1, false, nil, "a", "b")
			w.Settings.Mechanism = from
			w.Loop.Divide = parts(map[string]map[string]cluster.MicroGPU{"a": {"k80": 1, "v100": 3}, "b": {"k80": 3, "v100": 1}})
			w.Submit("a", 6, 2, forever)
			w.Submit("b", 3, 4, forever)
			w.Run(4*term + 4*minute)
			_, same, err := w.Loop.Preview(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.Settings.Mechanism = to
			_, other, err := w.Loop.Preview(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(same.State.Parties, other.State.Parties); d != "" || len(same.State.Parties) == 0 {
				t.Errorf("from %s to %s: what parties are owed (-before +after):\n%s", from, to, d)
			}
			if d := cmp.Diff(same.State.Ledger.Tenants, other.State.Ledger.Tenants); d != "" {
				t.Errorf("from %s to %s: what tenants are owed (-before +after):\n%s", from, to, d)
			}
		}
	}
}

// With every mechanism that picks jobs, a boosted tenant goes before all others, and an urgent job before the other jobs of its tenant.
func TestMechanismsObeyAdministrators(t *testing.T) {
	for _, mechanism := range []string{cluster.Nearest, cluster.ByStride, cluster.ByGavel, cluster.ByOEF} {
		for _, jobs := range []bool{false, true} {
			w := newMarket(t, 0, 2, jobs, nil, "a", "b")
			w.Settings.Mechanism, w.Settings.UrgentQOS, w.Settings.StopAllowance, w.Settings.StopOverheadMilli = mechanism, []string{"urgent"}, 0, 0
			each := cluster.MicroGPU(4)
			if jobs {
				each = 1 // each of four jobs
			}
			w.Loop.Divide = parts(map[string]map[string]cluster.MicroGPU{"a": {"v100": each}, "b": {"v100": each}})
			w.Submit("a", 4, 2, forever)
			w.Submit("b", 4, 2, forever)
			w.Run(2 * term)
			urgent := w.submit("b", 4, forever, func(k *sim.Work) { k.QOS = "urgent" })
			w.Run(3 * term)
			before := w.Alloc(urgent)
			w.Run(4 * term)
			if got := w.Alloc(urgent) - before; got < cluster.Times(4, 11*term/4) {
				t.Errorf("%s, jobs are parties %v: an urgent job of 4 GPUs received %d GPU-minutes in 4 terms", mechanism, jobs, got/cluster.GPUTime(minute))
			}
			w.order(cluster.Boost, "tenant", "a", 10)
			w.Run(term)
			before = w.Used("a")
			w.Run(4 * term)
			if got := w.Used("a") - before; got < cluster.Times(8, 11*term/4) {
				t.Errorf("%s, jobs are parties %v: a boosted tenant received %d GPU-minutes in 4 terms", mechanism, jobs, got/cluster.GPUTime(minute))
			}
		}
	}
}
