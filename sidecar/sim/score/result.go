package score

import (
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Scores ends the run at to, not before the last sample, whose state lasts until then. The meter
// is unusable afterwards. The error is Sample's.
func (m *Meter) Scores(to cluster.Instant) (Scores, error) {
	names := slices.Sorted(maps.Keys(m.tenants))
	if err := m.Sample(m.final(names, to)); err != nil {
		return Scores{}, err
	}
	for i, length := range m.opt.Periods {
		if m.setting.From.Add(cluster.Span(m.closed[i])*length) < to {
			m.close(i, to, Sample{At: to})
		}
	}
	out := Scores{
		Setting: m.setting, To: to, Jobs: m.all.counts,
		Completion: m.all.completion.stats(second), Wait: m.all.wait.stats(second), FirstWait: m.firstWait.stats(second),
		Slowdown: m.slowdown.stats(millionths), JobRho: m.rho.stats(millionths), Loss: m.all.result(m.opt.Loss),
		SlowdownCDF: m.slowdown.cdf(millionths), JobRhoCDF: m.rho.cdf(millionths),
		Utilisation: share(m.used, m.capacity), Fragmented: share(m.fragmented, m.capacity), BindIdle: share(m.bound, m.capacity),
		Preemptions: m.preemptions, Preempted: m.preempted,
		Overhead: Overhead{OfRun: share(m.over, m.run), OfCompletion: share(m.over, m.completion), GPUHours: m.overGPU.Hours(),
			Lost: Lost{OfRun: share(m.lost, m.run), GPUHours: m.lostGPU.Hours(), Jobs: m.losers}},
		Makespan: float64(max(0, m.last.Sub(m.first))) / second,
	}
	out.Use = m.useResult(names, to)
	out.Arrivals = m.arrivalsResult()
	pooled := make([]period, len(m.opt.Periods))
	for _, name := range names {
		t := m.tenants[name]
		x := Tenant{Tenant: name, Jobs: t.counts, Rho: share(t.alloc-t.alloc0, t.due-t.due0),
			Alloc: (t.alloc - t.alloc0).Hours(), Due: (t.due - t.due0).Hours(),
			Completion: t.completion.stats(second), Wait: t.wait.stats(second), Loss: t.result(m.opt.Loss)}
		for i, model := range m.setting.Models {
			x.On = append(x.On, OnModel{Model: model.Model, Held: t.had[i].Hours()})
		}
		for i := range t.periods {
			x.Periods = append(x.Periods, t.periods[i].result(m.opt.Periods[i], m.opt.Tolerance))
			pooled[i].join(&t.periods[i])
		}
		out.Tenants = append(out.Tenants, x)
	}
	for i := range pooled {
		out.Periods = append(out.Periods, pooled[i].result(m.opt.Periods[i], m.opt.Tolerance))
	}
	return out, nil
}

// The units of the integers in a spread.
const (
	second     = float64(cluster.Second)
	millionths = float64(cluster.Fair)
)

// final gives the state at the end of the run, extrapolated from the last sample.
func (m *Meter) final(names []string, to cluster.Instant) Sample {
	s := m.state
	s.At = to
	if m.now == 0 {
		return s
	}
	for _, name := range names {
		t := m.tenants[name]
		due, _ := cluster.Accrue(t.rate, max(0, to.Sub(m.now)), 0)
		s.Tenants = append(s.Tenants, TenantSample{Tenant: name, Holds: t.holds, On: t.on, Due: t.rate,
			Alloc: t.alloc + t.holds.Over(to.Sub(m.now)), DueTotal: t.due + due, Repaid: t.repaid})
	}
	return s
}

func (t *tally) result(bound cluster.Rho) Loss {
	return Loss{Below: float64(bound) / millionths, Jobs: t.loss, Share: ratio(t.loss, t.rhos), Unfinished: t.unfinished}
}

func (p *period) result(length cluster.Span, tolerance cluster.Rho) Period {
	return Period{Hours: float64(length) / float64(cluster.Hour), Rho: p.rho.stats(millionths),
		Tolerance: float64(tolerance) / millionths, Unfair: p.unfair, Repaying: p.repaying, Below: p.below, NoDue: p.noDue, Lacking: p.lacking.Hours()}
}

// join adds q's periods to p's.
func (p *period) join(q *period) {
	p.rho.join(&q.rho)
	p.unfair += q.unfair
	p.repaying += q.repaying
	p.below += q.below
	p.noDue += q.noDue
	p.lacking += q.lacking
}

func (m *Meter) useResult(names []string, to cluster.Instant) Use {
	n := m.use.steps(to)
	u := Use{Step: float64(m.use.step) / second, Capacity: m.use.means(m.useCap, n, to),
		Used: m.use.means(m.useUsed, n, to), Fragmented: m.use.means(m.useFragmented, n, to)}
	for _, name := range names {
		u.Tenants = append(u.Tenants, Line{Tenant: name, GPUs: m.use.means(m.tenants[name].line, n, to)})
	}
	for i, model := range m.setting.Models {
		of := ModelUse{Model: model.Model, Used: m.use.means(m.useModel[i], n, to)}
		for _, name := range names {
			of.Tenants = append(of.Tenants, Line{Tenant: name, GPUs: m.use.means(m.tenants[name].onLines[i], n, to)})
		}
		u.Models = append(u.Models, of)
	}
	return u
}

func (m *Meter) arrivalsResult() Arrivals {
	a := Arrivals{Step: float64(m.arrivals.step) / second, Jobs: m.arrivals.lines[m.arrived]}
	for _, ms := range m.arrivals.lines[m.arrivedMS] {
		a.Wait = append(a.Wait, float64(ms)/second)
	}
	return a
}

// share gives a/b, or 0 if b is 0.
func share[T ~int64](a, b T) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
