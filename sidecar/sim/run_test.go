package sim_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Idle time costs nothing: turns are made after events or near the end of a lease, not at every
// interval.
func TestIdleTimeCostsNothing(t *testing.T) {
	w := simtest.New(t, simtest.Product(), simtest.Nodes("n", "v100", 1, 4), "a")
	observed := 0
	w.Loop.Cluster = watched{w.Virtual, &observed}
	w.Run(cluster.Day)
	if observed > 4 {
		t.Errorf("%d looks at an empty cluster in a day", observed)
	}
	observed = 0
	id := w.Submit("a", 1, 4, 10*hour)[0]
	w.Run(cluster.Day)
	// A term of 15 minutes has a notice and an end.
	if most := 40*2 + 10; observed > most || w.Job(id).State != cluster.Done {
		t.Errorf("%d looks at one job of ten hours, want at most %d", observed, most)
	}
}

type watched struct {
	*sim.Virtual
	looks *int
}

func (w watched) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	*w.looks++
	return w.Virtual.Observe(ctx, since)
}

// Each job is fetched after the previous one arrived, and the run ends with the last.
func TestARunIsFed(t *testing.T) {
	v := sim.NewVirtual(start, simtest.Nodes("n", "v100", 1, 1), []cluster.Account{{Name: "root"}, {Name: "a", Parent: "root", Shares: 1}})
	asked, come, done := 0, 0, 0
	v.Watch = func(e sim.Event) {
		switch e.What {
		case sim.Submitted:
			if come++; asked != come {
				t.Errorf("job %d came when %d had been asked for", come, asked)
			}
		case sim.Ended:
			done++
		}
	}
	defer v.Feed(func(yield func(sim.Arrival) bool) {
		for i := range cluster.Span(5) {
			asked++
			if !yield(sim.Arrival{At: start.Add(i * hour), Work: work(90*minute, nil)}) {
				return
			}
		}
	})()
	l := &loop.Loop{Cluster: v, Journal: sim.NewMemory(), Decide: simtest.Checked(t), Configure: func() (loop.Rules, cluster.Settings) {
		return loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}, simtest.Product()
	}}
	var last loop.Report
	err := sim.Run(context.Background(), v, l, 10*second, start.Add(365*cluster.Day), func(r loop.Report) { last = r })
	if err != nil || done != 5 || !v.Drained() || v.Now() > start.Add(9*hour) {
		t.Errorf("%d of 5 jobs done, at %s: %v", done, v.Now(), err)
	}
	if got := last.Plan.State.Ledger.Tenants[0].Alloc; got != cluster.Times(1, 5*90*minute) {
		t.Errorf("the books end at %d GPU-ms, want all five jobs in them", got)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := sim.Run(gone, v, l, 10*second, start.Add(999*cluster.Day), nil); err == nil {
		t.Error("a run goes on though its context is over")
	}
}

// week is a week of 20 tenants on two GPU models with failing nodes and jobs of every kind, and
// its results.
type week struct {
	v         *sim.Virtual
	bytes     [32]byte // hash of every event, action and plan
	truth     map[string]cluster.GPUTime
	destroyed map[string]cluster.GPUTime // by tenant: booked
	work      map[cluster.JobID]cluster.Span
	became    map[string]int
	last      cluster.Plan
	jobs      int
	lost      cluster.Span
}

func (w *week) arrivals(seed uint64, n int) iter.Seq[sim.Arrival] {
	return func(yield func(sim.Arrival) bool) {
		rng := rand.New(rand.NewPCG(seed, 2))
		at := start
		for range n {
			at = at.Add(cluster.Span(rng.ExpFloat64() * float64(7*cluster.Day) / float64(n)))
			j := sim.Work{Name: "train", User: "u", Account: fmt.Sprintf("t%02d", rng.IntN(20)), Partition: "gpu",
				Request: simtest.Gang([]int{1, 1, 1, 2, 4, 8}[rng.IntN(6)]), Runs: minute + cluster.Span(rng.ExpFloat64()*float64(9*hour)),
				Saves: sim.Saves(rng.IntN(6)), Every: 20 * minute, Kind: []string{"", "lstm"}[rng.IntN(2)], NoRequeue: rng.IntN(10) == 0}
			if rng.IntN(10) == 0 {
				j.Request = cluster.Request{Size: cluster.Whole(16), Nodes: 2, PerNode: 8, Model: "v100"}
			}
			switch rng.IntN(20) {
			case 0:
				j.Outcome = "FAILED"
			case 1:
				j.Cancel = at.Add(cluster.Span(rng.ExpFloat64() * float64(5*hour)))
			case 2:
				j.Limit = 3 * hour
			}
			w.jobs++
			if !yield(sim.Arrival{At: at, Work: j}) {
				return
			}
		}
	}
}

// weekJobs is how many jobs the week has.
func weekJobs() int { return seeds.Some(150, 300) }

// live runs the week until every job has ended, or for most. lend avoids copies.
func live(t *testing.T, seed uint64, lend bool, most cluster.Span) *week {
	t.Helper()
	accounts := []cluster.Account{{Name: "root"}}
	for i := range 20 {
		accounts = append(accounts, cluster.Account{Name: fmt.Sprintf("t%02d", i), Parent: "root", Shares: int64(1 + i%3)})
	}
	nodes := append(simtest.Nodes("k", "k80", 3, 8), simtest.Nodes("v", "v100", 6, 8)...)
	v := sim.NewVirtual(start, nodes, accounts)
	v.Costs, v.Term, v.Gate, v.History = sim.DefaultCosts(), 15*minute, 10*minute, true
	v.Speeds = sim.Speeds{{Kind: "lstm"}: {"k80": {Speed: sim.Reference / 3}}}
	v.Lend, v.Forget = lend, lend
	v.Fail(sim.Failures(seed, nodes, start, start.Add(30*cluster.Day), 2*cluster.Day, 3*hour)...)
	w := &week{v: v, truth: map[string]cluster.GPUTime{}, destroyed: map[string]cluster.GPUTime{}, work: map[cluster.JobID]cluster.Span{}, became: map[string]int{}}
	sum := sha256.New()
	write := func(x any) {
		if err := json.NewEncoder(sum).Encode(x); err != nil {
			t.Fatal(err)
		}
	}
	v.Watch = func(e sim.Event) {
		write(e)
		if e.What == sim.Ended {
			w.became[e.Outcome]++
			defer delete(w.work, e.Job)
		}
		if e.Start == 0 || e.What == sim.Started {
			return
		}
		if e.Worked < 0 || e.Lost < 0 || e.Work.Kind == "" && e.Cold+e.Loading+e.Saving+e.Worked+e.Lost != e.At.Sub(e.Start) {
			t.Errorf("an attempt of %s does not add up: %+v", e.At.Sub(e.Start), e)
		}
		for _, h := range e.Holds {
			w.truth[e.Work.Account] += h.Size.Over(e.At.Sub(e.Start))
		}
		w.work[e.Job] += e.Worked
		w.lost += e.Lost
		if (e.Outcome == "COMPLETED" || e.Outcome == "FAILED") && w.work[e.Job] != e.Work.Runs {
			t.Errorf("job %s is %s after %s of work, want %s", e.Job, e.Outcome, w.work[e.Job], e.Work.Runs)
		}
	}
	memory := sim.NewMemory()
	memory.Trust = lend
	set := simtest.Product()
	l := &loop.Loop{Cluster: v, Journal: memory, Decide: simtest.Checked(t), Configure: func() (loop.Rules, cluster.Settings) {
		return loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}, set
	}}
	defer v.Feed(w.arrivals(seed, weekJobs()))()
	err := sim.Run(context.Background(), v, l, 30*second, start.Add(most), func(r loop.Report) {
		for _, x := range r.Plan.Losses {
			i := slices.IndexFunc(r.Plan.State.Records, func(r cluster.Record) bool { return r.Key == x.Job })
			w.destroyed[r.Plan.State.Records[i].Tenant] += x.Time
		}
		if w.last = r.Plan; r.Plan.Round%100 == 0 {
			write(r.Plan) // it contains the whole past
		} else {
			write(r.Plan.Actions)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	copy(w.bytes[:], sum.Sum(nil))
	return w
}

func TestAWeek(t *testing.T) {
	for seed := range seeds.Of(t, 1) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { aWeek(t, seed+1) })
	}
}

func aWeek(t *testing.T, seed uint64) {
	w := live(t, seed, true, 30*cluster.Day)
	// No job is lost, and every one ran to its end.
	ended := 0
	for _, n := range w.became {
		ended += n
	}
	if ended != w.jobs || w.jobs != weekJobs() || !w.v.Drained() || len(w.work) != 0 {
		t.Errorf("%d of %d jobs ended: %v", ended, w.jobs, w.became)
	}
	for _, outcome := range []string{"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"} {
		if w.became[outcome] == 0 {
			t.Errorf("no job is %s: the week is too tame (%v)", outcome, w.became)
		}
	}
	if w.lost == 0 {
		t.Error("no work was lost: the week is too tame")
	}
	// The ledger equals what the cluster gave, less the work destroyed by stops, to the
	// GPU-millisecond.
	booked := map[string]cluster.GPUTime{}
	var tenants cluster.GPUTime
	for _, row := range w.last.State.Ledger.Tenants {
		booked[row.Tenant] += row.Alloc
		tenants += row.Alloc
	}
	overhead := cluster.GPUTime(0)
	for tenant, lost := range w.destroyed {
		booked[tenant] += lost
		overhead += lost
	}
	if overhead == 0 {
		t.Error("stops destroyed nothing: the week is too tame")
	}
	maps.DeleteFunc(booked, func(_ string, g cluster.GPUTime) bool { return g == 0 })
	if diff := cmp.Diff(w.truth, booked); diff != "" {
		t.Errorf("GPU time of tenants (-held +received and destroyed):\n%s", diff)
	}
	for _, p := range w.last.State.Ledger.Pools {
		if sum := p.Tenants + p.Untouchable + p.Overhead + p.Idle + p.Bad; sum != p.Capacity || p.Idle < 0 || p.Bad == 0 {
			t.Errorf("pool %s has %d GPU-ms booked of %d: %+v", p.Pool, sum, p.Capacity, p)
		}
		tenants -= p.Tenants
		overhead -= p.Overhead
	}
	if overhead > 0 {
		t.Errorf("%d GPU-ms that stops destroyed are not overhead of the pools", overhead)
	}
	if tenants != 0 {
		t.Errorf("tenants and pools differ by %d GPU-ms", tenants)
	}
	// Equal seeds give equal bytes, whether lists are copied or lent.
	if again := live(t, seed, false, 30*cluster.Day); again.bytes != w.bytes {
		t.Error("the same week again gives other bytes")
	}
	if live(t, seed, true, 6*hour).bytes == live(t, seed+1, true, 6*hour).bytes {
		t.Error("another seed gives the same bytes")
	}
}
