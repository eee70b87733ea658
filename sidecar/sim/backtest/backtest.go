package backtest

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/store"
)

// The names of both in tables; Acted names the past if fairlease acted in it.
const (
	Was   = "slurm (as it was)"
	Acted = "as it was (fairlease on)"
	Would = "fairlease (would be)"
)

// Window is a window of time in both worlds: recorded and simulated.
type Window struct {
	Was   score.Run        // without Samples, since they are many: see Score
	Setup experiment.Setup // of the window alone; see Setups
	Jobs  Jobs
	// Lives are the compared jobs as the journal knows them, in the order of Setup.Load.
	Lives []Life
	// Least and Most are the minimum and maximum number of healthy GPUs.
	Least, Most int

	past *store.Past
}

// Life is what the journal knows of a job. Run times are without what stops destroyed. Runs is that within the window, and Limit is Slurm's:
// after a stop, of what is left.
type Life struct {
	trace.Job
	Before, After cluster.Span // run time before and after the window
	Ended         bool         // by now, in the window or after it
	Held          bool         // it had GPUs when the window began
	Stops         int          // since the window began
	Lost          bool         // these destroyed work
}

// Jobs counts the compared and the omitted jobs of the window.
type Jobs struct {
	Compared int
	There    int // subset present at its begin
	Running  int // subset running at its end
	Waiting  int // subset waiting at its end
	Alone    int // subset that fairlease leaves alone (interactive, excluded, …), but leased in the backtest

	NeverRan int // omitted: ended before they ran, or could not have started
	Unseen   int // omitted: came and went between two looks
	NoTenant int // omitted: of no tenant
	// OutTime is the GPU time that the omitted jobs received.
	OutTime cluster.GPUTime
}

// Of makes both worlds from the journal. name is the window's name in tables.
func Of(p *store.Past, name string) Window {
	b := newBuilder(p)
	for i := range p.Jobs {
		b.job(&p.Jobs[i])
	}
	byArrival := func(x, y trace.Job) int { return cmp.Or(cmp.Compare(x.Submit, y.Submit), cmp.Compare(x.ID, y.ID)) }
	slices.SortFunc(b.load, byArrival)
	slices.SortFunc(b.lives, func(x, y Life) int { return byArrival(x.Job, y.Job) })
	s := Window{Jobs: b.jobs, Setup: experiment.Default(), Lives: b.lives, past: p}
	s.Least, s.Most = bounds(p.GPUs)
	s.Setup.Load = experiment.Load{Name: name, Jobs: slices.Values(b.load)}
	s.Setup.Fleet, s.Setup.Weights = fleet(p), weights(p)
	s.Setup.Settings = p.End.Snapshot.Settings
	s.Setup.Settings.Slices = nil // it does not know the jobs that agreed to turns
	s.Setup.Limits = limits(p, s.Setup.Weights, b.load)
	s.Setup.Until = b.to.Sub(b.from)
	s.Was = score.Run{To: b.to, Jobs: b.was}
	nodes, gpus := s.Setup.Fleet.Count()
	s.Was.Setting = score.Setting{Scheduler: Was, Trace: name, Nodes: nodes, GPUs: gpus, From: b.from}
	if p.Acted.Rounds > 0 {
		s.Was.Scheduler = Acted
	}
	return s
}

// Score gives the scores of the recorded world. It iterates over the past's tenants.
func (s *Window) Score() (score.Scores, error) {
	m := score.NewMeter(s.Was.Setting, s.Setup.Measures)
	for _, j := range s.Was.Jobs {
		if err := m.Job(j); err != nil {
			return score.Scores{}, err
		}
	}
	for x, err := range samples(s.past) {
		if err == nil {
			err = m.Sample(x)
		}
		if err != nil {
			return score.Scores{}, err
		}
	}
	out, err := m.Scores(s.Was.To)
	out.Fragmented, out.Use.Fragmented = -1, nil
	return out, err
}

// beyond is the duration, in windows, for which the backtest follows jobs.
const beyond = 4

// Setups gives the runs of the backtest: one until the window's end, for tenants and GPUs, and
// one that continues without new arrivals until all jobs with a known end are over.
func (s *Window) Setups() []experiment.Setup {
	window, long := s.Setup, s.Setup
	window.Keep = true
	long.Until *= beyond
	long.Enough = true
	return []experiment.Setup{window, long}
}

// Join gives the scores of the backtest from its two runs.
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

// fleet gives the nodes that were healthy at the begin or the end.
func fleet(p *store.Past) experiment.Fleet {
	nodes := map[string]cluster.Node{}
	for _, snap := range []*cluster.Snapshot{&p.Begin.Snapshot, &p.End.Snapshot} {
		for _, n := range snap.Nodes {
			if n.Bad == "" {
				nodes[n.Name] = n
			}
		}
	}
	racks := map[experiment.Rack]int{} // of one node
	for _, n := range nodes {
		for _, g := range n.GPUs {
			if g.Count > 0 {
				racks[experiment.Rack{Nodes: 1, GPUs: g.Count, Model: strings.ToLower(g.Model)}]++
			}
		}
	}
	var f experiment.Fleet
	for r, n := range racks {
		r.Nodes = n
		f.Racks = append(f.Racks, r)
	}
	slices.SortFunc(f.Racks, func(a, b experiment.Rack) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(b.GPUs, a.GPUs))
	})
	return f
}

// limits gives the limits on the GPUs and jobs of tenants, of their users, and of all together at the end. A limit below the
// request of a job that was there counts as newer than the job, and is left out.
func limits(p *store.Past, weights map[string]int64, load []trace.Job) (out experiment.Admission) {
	known := p.End.Snapshot.Limits()
	if known == nil {
		return out
	}
	for _, a := range known.Associations {
		if _, ok := weights[a.Account]; a.Partition != "" || a.Account != "root" && !ok {
			continue
		}
		rules := []string{cluster.GrpTRES, cluster.GrpJobs} // those of an account
		if a.User != "" {
			rules = []string{cluster.GrpTRES, cluster.MaxJobs, cluster.MaxTRESPerJob}
		}
		caps := slices.DeleteFunc(slices.Clone(a.Caps), func(c cluster.Cap) bool {
			return !slices.Contains(rules, c.Rule) || c.TRES != "" && c.TRES != "gres/gpu" || slices.ContainsFunc(load, func(j trace.Job) bool {
				return (a.Account == "root" || j.Tenant == a.Account) && (a.User == "" || j.User == a.User) && (c.TRES != "" && int64(j.GPUs) > c.Max || c.Max == 0)
			})
		})
		if len(caps) > 0 {
			out.Limits.Associations = append(out.Limits.Associations, cluster.Association{Account: a.Account, User: a.User, Caps: caps})
		}
	}
	return out
}

// weights gives the weights at the end; for tenants that had left, those at the begin.
func weights(p *store.Past) map[string]int64 {
	out := map[string]int64{}
	for _, snap := range []*cluster.Snapshot{&p.Begin.Snapshot, &p.End.Snapshot} {
		for _, t := range snap.Tenants {
			out[t.Name] = t.Weight
		}
	}
	return out
}

// account is a tenant's account in a pool, as of a moment.
type account struct {
	holds      cluster.MicroGPU
	rate       cluster.MicroGPU // due, ASTRAEA eq. 8
	alloc, due cluster.GPUTime  // work
}

type accountKey struct{ tenant, pool string }

// samples gives the states of the cluster; each is valid until the next. If the journal has no
// row of a tenant and pool at some moment, the last one stays valid.
func samples(p *store.Past) iter.Seq2[score.Sample, error] {
	return func(yield func(score.Sample, error) bool) {
		b := books{accounts: map[accountKey]account{}, top: map[string]score.TenantSample{}}
		b.edge(&p.Begin)
		counts := p.GPUs
		now := p.Begin.Plan.At
		// to gives a sample for each change of the number of GPUs before then.
		to := func(then cluster.Instant) bool {
			for now < then {
				for ; len(counts) > 0 && cluster.InstantOf(counts[0].At) <= now; counts = counts[1:] {
					b.gpus = counts[0].GPUs
				}
				if !yield(b.sample(now), nil) {
					return false
				}
				if now = then; len(counts) > 0 {
					now = min(then, cluster.InstantOf(counts[0].At))
				}
			}
			return true
		}
		for t, err := range p.Tenants {
			if err != nil {
				yield(score.Sample{}, err)
				return
			}
			if !to(min(cluster.InstantOf(t.At), p.End.Plan.At)) {
				return
			}
			b.accounts[accountKey{t.Tenant, t.Pool}] = account{holds: cluster.MicroGPU(t.Holds), rate: t.Rate, alloc: t.Alloc, due: t.Due}
		}
		if to(p.End.Plan.At) {
			b.edge(&p.End)
			yield(b.sample(p.End.Plan.At), nil)
		}
	}
}

// books are the tenants' accounts as of a moment.
type books struct {
	accounts map[accountKey]account
	gpus     int
	top      map[string]score.TenantSample // sums never shrink, although time may move between pools
	row      []score.TenantSample
}

func (b *books) edge(e *store.Edge) {
	for _, t := range e.Plan.State.Ledger.Tenants {
		b.accounts[accountKey{t.Tenant, t.Pool}] = account{rate: min(t.Entitlement, t.Demand), alloc: t.Alloc + t.Extra.Alloc, due: t.Due + t.Extra.Due}
	}
	for _, t := range e.Plan.Tenants {
		k := accountKey{t.Tenant, t.Pool}
		a := b.accounts[k]
		a.holds = cluster.MicroGPU(t.Holds)
		b.accounts[k] = a
	}
}

// sample sums the pools.
func (b *books) sample(at cluster.Instant) score.Sample {
	out := score.Sample{At: at, Capacity: b.gpus}
	sums := map[string]score.TenantSample{}
	for k, a := range b.accounts {
		t := sums[k.tenant]
		sums[k.tenant] = score.TenantSample{Tenant: k.tenant, Holds: t.Holds + a.holds, Due: t.Due + a.rate,
			Alloc: t.Alloc + a.alloc, DueTotal: t.DueTotal + a.due}
	}
	used := cluster.MicroGPU(0)
	b.row = b.row[:0]
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		t := sums[name]
		t.Alloc, t.DueTotal = max(t.Alloc, b.top[name].Alloc), max(t.DueTotal, b.top[name].DueTotal)
		b.top[name] = t
		used += t.Holds
		b.row = append(b.row, t)
	}
	out.Used, out.Tenants = used.Devices(), b.row
	return out
}
