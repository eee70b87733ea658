package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// worths lets devices of some models count as parts of a GPU.
func worths(of map[string]cluster.MicroGPU) []cluster.Worth {
	var out []cluster.Worth
	for _, model := range []string{"1g", "3g", "k80", "v100"} {
		if w := of[model]; w > 0 {
			out = append(out, cluster.Worth{Model: model, Worth: w})
		}
	}
	return out
}

// story plays a drawn history, whatever devices are worth, and tells all that was decided.
func story(t *testing.T, seed uint64, worths []cluster.Worth) (told []string, w *simtest.World) {
	rng := rand.New(rand.NewPCG(seed, 1))
	pick := func(list ...int) int { return list[rng.IntN(len(list))] }
	set := simtest.Product()
	set.Worths, set.JobOrder = worths, cluster.ByRho // other orders know small jobs by their GPU time
	set.Term, set.MinLease = cluster.Span(pick(10, 15))*cluster.Minute, cluster.Span(pick(1, 5))*cluster.Minute
	set.Threshold = cluster.Span(pick(0, 15)) * cluster.Minute
	set.BurstMaxMilli, set.RhoSelect = int64(pick(0, 1000, 2000)), pick(8, 16)
	set.RecallFirst, set.StopTotalMilli = pick(0, 1) == 1, int64(pick(0, 20))
	set.StopsPerHour.Site = pick(0, 50)
	if pick(0, 1) == 1 {
		set.Users = cluster.UsersEqual
	}
	nodes := append(simtest.Nodes("a", "v100", 2, 4), simtest.Nodes("b", "k80", 1, 4)...)
	if pick(0, 0, 1) == 1 {
		for i := range nodes {
			nodes[i].Shards = 4
		}
	}
	tenants := []string{"bio", "nlp", "vision"}
	w = simtest.New(t, set, nodes, tenants...)
	was := map[cluster.JobKey]string{}
	w.Check = func(r loop.Report) {
		for _, a := range r.Plan.Actions {
			told = append(told, fmt.Sprint(r.Plan.At, a.Verb, a.ID, a.Nodes, a.Reason.Code))
		}
		for _, l := range r.Plan.State.Leases { // rounds without news come at times that rounding moves
			if now := fmt.Sprint(l.Job, l.State, l.End, l.Size.Devices, l.Nodes); was[l.Job] != now {
				told, was[l.Job] = append(told, now), now
			}
		}
	}
	var ids []cluster.JobID
	for range 40 {
		switch what := rng.IntN(10); {
		case what < 7 || len(ids) == 0:
			request := simtest.Gang(pick(1, 1, 1, 2, 4, 8))
			if request.Size.Devices == 8 {
				request.Nodes, request.PerNode, request.CPUs = 2, 4, 8
			}
			request.Model = []string{"", "", "v100", "k80"}[rng.IntN(4)]
			if nodes[0].Shards > 0 && pick(0, 1) == 1 {
				request = simtest.Shard(pick(1, 2), 4)
			}
			ids = append(ids, w.Virtual.Submit(sim.Work{User: []string{"alice", "bob"}[rng.IntN(2)], Account: append(tenants, "stranger")[pick(0, 0, 0, 1, 1, 2, 2, 3)], Partition: "gpu",
				Request: request, Runs: cluster.Span(pick(2, 10, 40, 200)) * cluster.Minute, NoRequeue: pick(0, 0, 0, 1) == 1}))
		case what == 7:
			w.Cancel(ids[rng.IntN(len(ids))])
		case what == 8:
			w.Requeue(ids[rng.IntN(len(ids))])
		default:
			w.SetNode(nodes[rng.IntN(len(nodes))].Name, []string{"", "down"}[rng.IntN(2)])
		}
		w.Run(cluster.Span(pick(10, 60, 300, 900))*cluster.Second + cluster.Span(2*rng.IntN(5000))) // by odd times, few things are equal but for rounding
	}
	return told, w
}

// Where the devices of all models are worth the same part of a GPU, all is decided as if they were GPUs, and all accounts have that part. Rounding may
// turn a tie, but hardly by halves, quarters and eighths.
func TestWorthOfAllDevices(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		whole, full := story(t, seed, nil)
		wrong := ""
		for _, n := range []int64{2, 4, 8} {
			worth := cluster.WholeGPU / cluster.MicroGPU(n)
			parts, part := story(t, seed, worths(map[string]cluster.MicroGPU{"v100": worth, "k80": worth}))
			if wrong = differs(whole, parts, full, part, n); wrong == "" {
				return
			}
		}
		rt.Fatalf("seed %d: %s", seed, wrong)
	})
}

// differs says how a history differs that should have an n-th of another one's GPU time; "" = it does not.
func differs(whole, parts []string, full, part *simtest.World, n int64) string {
	for i := range min(len(whole), len(parts)) {
		if whole[i] != parts[i] {
			return fmt.Sprintf("\n%s\nby parts:\n%s", strings.Join(whole[max(i-3, 0):i+1], "\n"), strings.Join(parts[max(i-3, 0):i+1], "\n"))
		}
	}
	if len(whole) != len(parts) {
		return fmt.Sprintf("%d decisions, by parts %d", len(whole), len(parts))
	}
	wrong := ""
	near := func(what string, a, b int64) {
		if b < a/n-10_000 || b > a/n+10_000 { // rounding, of each job in each interval
			wrong = fmt.Sprintf("%s: %d, by parts %d", what, a, b)
		}
	}
	for i, a := range full.Last.State.Ledger.Pools {
		b := part.Last.State.Ledger.Pools[i]
		near("GPUs of "+a.Pool, int64(a.GPUs), int64(b.GPUs))
		near("capacity of "+a.Pool, int64(a.Capacity), int64(b.Capacity))
		near("idle time of "+a.Pool, int64(a.Idle), int64(b.Idle))
		near("overhead of "+a.Pool, int64(a.Overhead), int64(b.Overhead))
		near("time of strangers on "+a.Pool, int64(a.Untouchable), int64(b.Untouchable))
	}
	for i, a := range full.Last.State.Ledger.Tenants {
		b, of := part.Last.State.Ledger.Tenants[i], a.Tenant+" on "+a.Pool
		near("received by "+of, int64(a.Alloc), int64(b.Alloc))
		near("due to "+of, int64(a.Due), int64(b.Due))
		near("deficit of "+of, int64(a.Deficit), int64(b.Deficit))
		near("debt of "+of, int64(a.Owed), int64(b.Owed))
	}
	for i, a := range full.Last.Tenants {
		b, of := part.Last.Tenants[i], a.Tenant+" on "+a.Pool
		near("entitlement of "+of, int64(a.Entitlement), int64(b.Entitlement))
		near("demand of "+of, int64(a.Demand), int64(b.Demand))
		near("GPUs of "+of, int64(a.Holds), int64(b.Holds))
	}
	for i := range full.Last.State.Leases {
		near("lease", int64(full.Last.State.Leases[i].Size.Amount()), int64(part.Last.State.Leases[i].Size.Amount()))
	}
	return wrong
}

// mig is a node with a GPU in seven instances, one in two of three sevenths, and a node with two whole GPUs.
func mig(t *testing.T, change func(*cluster.Settings)) *simtest.World {
	set := simtest.Product()
	set.Worths = worths(map[string]cluster.MicroGPU{"1g": cluster.WholeGPU / 7, "3g": 3 * cluster.WholeGPU / 7})
	if change != nil {
		change(&set)
	}
	nodes := append(simtest.Nodes("a", "1g", 1, 7), simtest.Nodes("b", "v100", 1, 2)...)
	nodes = append(nodes, simtest.Nodes("c", "3g", 1, 2)...)
	return simtest.New(t, set, nodes, "bio", "nlp")
}

func submit(w *simtest.World, tenant, model string, n int, runs cluster.Span) (ids []cluster.JobID) {
	for range n {
		request := simtest.Gang(1)
		request.Model = model
		ids = append(ids, w.Virtual.Submit(sim.Work{User: "alice", Account: tenant, Partition: "gpu", Request: request, Runs: runs}))
	}
	return ids
}

// One tenant uses instances, the other one whole GPUs. Each is due half of the worth of all, is charged for what its devices count, and nothing of the
// capacity is lost.
func TestWorthOfInstances(t *testing.T) {
	w := mig(t, nil)
	submit(w, "bio", "1g", 7, 10*cluster.Hour)
	submit(w, "nlp", "v100", 2, 10*cluster.Hour)
	w.Run(cluster.Hour)
	all, due := cluster.MicroGPU(0), map[string]cluster.MicroGPU{}
	for i := range w.Last.State.Ledger.Pools {
		p := &w.Last.State.Ledger.Pools[i]
		all += cluster.MicroGPU(p.GPUs)
		if sum := p.Tenants + p.Untouchable + p.Overhead + p.Idle + p.Bad; p.Capacity != sum {
			t.Errorf("%s: %d GPU-ms of %d", p.Pool, sum, p.Capacity)
		}
		if want := cluster.MicroGPU(p.GPUs).Over(cluster.Hour); p.Capacity > want || p.Capacity < want-cluster.GPUTime(cluster.Hour/w.Settings.Interval) {
			t.Errorf("%s: %d GPU-ms within an hour, want %d", p.Pool, p.Capacity, want)
		}
		if p.Idle < 0 {
			t.Errorf("%s: %d GPU-ms idle", p.Pool, p.Idle)
		}
	}
	if want := 2*cluster.WholeGPU + 7*(cluster.WholeGPU/7) + 2*(3*cluster.WholeGPU/7); all != want {
		t.Errorf("the cluster has %d millionths of a GPU, want %d", all, want)
	}
	for _, st := range w.Last.Tenants {
		due[st.Tenant] += st.Entitlement
	}
	for tenant, n := range due {
		if n < all/2-3 || n > all/2+3 {
			t.Errorf("%s is due %d millionths of %d", tenant, n, all)
		}
	}
	// All started in the first round, and began within a second.
	if got := w.Used("bio").Hours(); got < 0.99 || got > 1 {
		t.Errorf("seven instances had %.3f GPU hours in an hour", got)
	}
	if got := w.Used("nlp").Hours(); got < 1.99 || got > 2 {
		t.Errorf("two GPUs had %.3f GPU hours in an hour", got)
	}
	if st := w.Standing("bio", "1g"); cluster.MicroGPU(st.Holds) != 7*(cluster.WholeGPU/7) || st.Demand != 7*(cluster.WholeGPU/7) {
		t.Errorf("seven instances: holds %d, wants %d", st.Holds, st.Demand)
	}
}

// A job that names no model counts as what the pool is worth in which it runs.
func TestWorthOfAnyModel(t *testing.T) {
	w := mig(t, nil)
	ids := submit(w, "bio", "", 11, 10*cluster.Hour)
	w.Run(cluster.Hour)
	worth := map[string]cluster.MicroGPU{"1g": cluster.WholeGPU / 7, "3g": 3 * cluster.WholeGPU / 7, "v100": cluster.WholeGPU}
	seen := map[string]int{}
	for _, id := range ids {
		r := w.Record(id)
		if len(r.Held) != 1 || r.Held[0].Size != (cluster.Size{Devices: 1, Part: worth[r.Held[0].Model]}) {
			t.Fatalf("job %s holds %v", id, r.Held)
		}
		seen[r.Held[0].Model]++
		if want := r.Held[0].Size.Over(cluster.Hour); r.Alloc > want || r.Alloc < want*98/100 {
			t.Errorf("job %s on %s has %d GPU-ms after an hour, want %d", id, r.Held[0].Model, r.Alloc, want)
		}
	}
	if seen["1g"] != 7 || seen["3g"] != 2 || seen["v100"] != 2 {
		t.Errorf("the jobs run on %v", seen)
	}
}

// A change of the worth counts from then on: what was charged stays, and so does the balance of the pool.
func TestWorthChanges(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after cluster.MicroGPU
	}{{"it is set", cluster.WholeGPU, cluster.WholeGPU / 4}, {"it rises", cluster.WholeGPU / 4, cluster.WholeGPU / 2}, {"it falls", cluster.WholeGPU / 2, cluster.WholeGPU / 4}, {"it is taken away", cluster.WholeGPU / 4, cluster.WholeGPU}} {
		t.Run(c.name, func(t *testing.T) {
			set := func(worth cluster.MicroGPU) []cluster.Worth {
				if worth == cluster.WholeGPU {
					return worths(map[string]cluster.MicroGPU{"3g": cluster.WholeGPU / 2})
				}
				return worths(map[string]cluster.MicroGPU{"1g": worth, "3g": cluster.WholeGPU / 2})
			}
			w := mig(t, func(s *cluster.Settings) { s.Worths = set(c.before) })
			ids := submit(w, "bio", "1g", 7, 10*cluster.Hour)
			w.Run(cluster.Hour)
			was := w.Alloc(ids[0])
			if want := c.before.Over(cluster.Hour); was > want || was < want*98/100 {
				t.Fatalf("charged %d GPU-ms in the first hour, want %d", was, want)
			}
			w.Settings.Worths = set(c.after)
			w.Run(cluster.Hour)
			got, slack := w.Alloc(ids[0])-was, cluster.WholeGPU.Over(w.Settings.Interval)
			if want := c.after.Over(cluster.Hour); got > want+slack || got < want-slack {
				t.Errorf("charged %d GPU-ms in the second hour, want %d", got, want)
			}
			for _, l := range w.Last.State.Leases {
				if l.Pool == "1g" && l.Size.Part != c.after {
					t.Errorf("a lease counts %d", l.Size.Part)
				}
			}
			i := slices.IndexFunc(w.Last.State.Ledger.Pools, func(p cluster.PoolAccount) bool { return p.Pool == "1g" })
			p := w.Last.State.Ledger.Pools[i]
			if p.Capacity != p.Tenants+p.Untouchable+p.Overhead+p.Idle+p.Bad || p.Idle < 0 || cluster.MicroGPU(p.GPUs) != 7*c.after {
				t.Errorf("the pool is %+v", p)
			}
		})
	}
}
