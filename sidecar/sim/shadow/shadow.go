package shadow

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/study"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/store"
)

// The names of both in tables; Acted is that of what happened where fairlease had a hand in it.
const (
	Was   = "slurm (as it was)"
	Acted = "as it was (fairlease on)"
	Would = "fairlease (would be)"
)

// Shadow is a window of time, twice.
type Shadow struct {
	Was   score.Run
	Setup study.Setup // of the window alone; see Setups
	Jobs  Jobs
	// Least and Most are the fewest and the most healthy GPUs that there were.
	Least, Most int
}

// Jobs says which jobs of the window are compared, and which are left out.
type Jobs struct {
	Compared int
	There    int // of them: there already when it begins
	Running  int // of them: still ran when it ends
	Waiting  int // of them: had not started when it ends
	Alone    int // of them: left alone by fairlease (interactive, excluded, …), but leased in the shadow

	NeverRan int // left out: over before they ran, or could not have started
	Unseen   int // left out: came and went while nobody looked
	NoTenant int // left out: of no tenant
	// OutTime is what those left out received.
	OutTime cluster.GPUTime
}

// Of makes both from what the journal tells. name is what tables call the window.
func Of(p *store.Past, name string) Shadow {
	b := newBuilder(p)
	for i := range p.Jobs {
		b.job(&p.Jobs[i])
	}
	slices.SortFunc(b.load, func(x, y trace.Job) int {
		return cmp.Or(cmp.Compare(x.Submit, y.Submit), cmp.Compare(x.ID, y.ID))
	})
	s := Shadow{Jobs: b.jobs, Setup: study.Default()}
	s.Least, s.Most = bounds(p.GPUs)
	s.Setup.Load = study.Load{Name: name, Jobs: slices.Values(b.load)}
	s.Setup.Fleet, s.Setup.Weights = fleet(p), weights(p)
	s.Setup.Settings = p.End.Snapshot.Settings
	s.Setup.Until = b.to.Sub(b.from)
	s.Was = score.Run{To: b.to, Jobs: b.was, Samples: samples(p)}
	nodes, gpus := s.Setup.Fleet.Count()
	s.Was.Setting = score.Setting{Scheduler: Was, Trace: name, Nodes: nodes, GPUs: gpus, From: b.from}
	if p.Acted.Rounds > 0 {
		s.Was.Scheduler = Acted
	}
	return s
}

// Score gives the scores of what happened.
func (s *Shadow) Score() (score.Scores, error) {
	out, err := score.Of(s.Was, s.Setup.Measures)
	out.Fragmented, out.Use.Fragmented = -1, nil
	return out, err
}

// beyond is for how many windows in all jobs of the shadow are followed.
const beyond = 4

// Setups gives the runs of the shadow: one to the window's end, for tenants and GPUs, and one
// that follows jobs beyond it, where no more arrive.
func (s *Shadow) Setups() []study.Setup {
	long := s.Setup
	long.Until *= beyond
	return []study.Setup{s.Setup, long}
}

// Join gives the scores of the shadow from those of its two runs.
func Join(window, long score.Scores) score.Scores {
	out := long
	out.Scheduler, out.To = Would, window.To
	out.Periods, out.Preemptions, out.Preempted = window.Periods, window.Preemptions, window.Preempted
	out.Utilisation, out.Fragmented, out.Use = window.Utilisation, window.Fragmented, window.Use
	out.Tenants = slices.Clone(window.Tenants) // the same in both, by name
	for i := range out.Tenants {
		t, l := &out.Tenants[i], &long.Tenants[i]
		t.Jobs, t.Completion, t.Wait, t.Loss = l.Jobs, l.Completion, l.Wait, l.Loss
	}
	return out
}

func bounds(gpus []store.GPUsThen) (least, most int) {
	for i, g := range gpus {
		if i == 0 {
			least = g.GPUs
		}
		least, most = min(least, g.GPUs), max(most, g.GPUs)
	}
	return least, most
}

// fleet gives the nodes that were healthy at the beginning or the end.
func fleet(p *store.Past) study.Fleet {
	nodes := map[string]cluster.Node{}
	for _, snap := range []*cluster.Snapshot{&p.Begin.Snapshot, &p.End.Snapshot} {
		for _, n := range snap.Nodes {
			if n.Bad == "" {
				nodes[n.Name] = n
			}
		}
	}
	racks := map[study.Rack]int{} // of one node
	for _, n := range nodes {
		for _, g := range n.GPUs {
			if g.Count > 0 {
				racks[study.Rack{Nodes: 1, GPUs: g.Count, Model: strings.ToLower(g.Model)}]++
			}
		}
	}
	var f study.Fleet
	for r, n := range racks {
		r.Nodes = n
		f.Racks = append(f.Racks, r)
	}
	slices.SortFunc(f.Racks, func(a, b study.Rack) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(b.GPUs, a.GPUs))
	})
	return f
}

// weights gives those of the end; of tenants that were gone by then, those of the beginning.
func weights(p *store.Past) map[string]int64 {
	out := map[string]int64{}
	for _, snap := range []*cluster.Snapshot{&p.Begin.Snapshot, &p.End.Snapshot} {
		for _, t := range snap.Tenants {
			out[t.Name] = t.Weight
		}
	}
	return out
}

// account is a tenant's part of a pool, as of a moment.
type account struct {
	holds      int
	rate       cluster.MicroGPU // due, ASTRAEA eq. 8
	alloc, due cluster.GPUTime
}

type accountKey struct{ tenant, pool string }

// samples gives the states that the cluster went through. Where nothing is told of a
// tenant in a pool at some moment, what was told before still holds.
func samples(p *store.Past) []score.Sample {
	books := map[accountKey]account{}
	top := map[string]score.TenantSample{} // sums never shrink, though time may move between pools
	edge := func(e *store.Edge) {
		for _, t := range e.Plan.Memory.Ledger.Tenants {
			books[accountKey{t.Tenant, t.Pool}] = account{rate: min(t.Entitlement, t.Demand), alloc: t.Alloc, due: t.Due}
		}
		for _, t := range e.Plan.Tenants {
			k := accountKey{t.Tenant, t.Pool}
			a := books[k]
			a.holds = t.Holds
			books[k] = a
		}
	}
	gpus := 0
	sample := func(at cluster.Instant) score.Sample {
		out := score.Sample{At: at, Capacity: gpus}
		sums := map[string]score.TenantSample{}
		for k, a := range books {
			t := sums[k.tenant]
			sums[k.tenant] = score.TenantSample{Tenant: k.tenant, Holds: t.Holds + a.holds, Due: t.Due + a.rate,
				Alloc: t.Alloc + a.alloc, DueTotal: t.DueTotal + a.due}
		}
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			t := sums[name]
			t.Alloc, t.DueTotal = max(t.Alloc, top[name].Alloc), max(t.DueTotal, top[name].DueTotal)
			top[name] = t
			out.Used += t.Holds
			out.Tenants = append(out.Tenants, t)
		}
		return out
	}
	edge(&p.Begin)
	var out []score.Sample
	tenants, counts := p.Tenants, p.GPUs
	for at := p.Begin.Plan.At; at < p.End.Plan.At; at = soonest(tenants, counts, p.End.Plan.At) {
		for ; len(counts) > 0 && cluster.InstantOf(counts[0].At) <= at; counts = counts[1:] {
			gpus = counts[0].GPUs
		}
		for ; len(tenants) > 0 && cluster.InstantOf(tenants[0].At) <= at; tenants = tenants[1:] {
			t := &tenants[0]
			books[accountKey{t.Tenant, t.Pool}] = account{holds: t.Holds, rate: min(t.Entitlement, t.Demand), alloc: t.Alloc, due: t.Due}
		}
		out = append(out, sample(at))
	}
	edge(&p.End)
	return append(out, sample(p.End.Plan.At))
}

// soonest gives when something is told next, or the end.
func soonest(tenants []store.TenantThen, counts []store.GPUsThen, end cluster.Instant) cluster.Instant {
	if len(tenants) > 0 {
		end = min(end, cluster.InstantOf(tenants[0].At))
	}
	if len(counts) > 0 {
		end = min(end, cluster.InstantOf(counts[0].At))
	}
	return end
}
