package score

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Options are the settings of the measures.
type Options struct {
	Periods   []cluster.Span // over which a tenant's rho is computed
	Tolerance cluster.Rho    // a tenant period below 1 minus this is unfair
	Loss      cluster.Rho    // a job below this has a sharing loss
}

// Standard gives periods of an hour and of a day, a tolerance of 0.01 (a new job starts at the
// earliest one round later, so no scheduler reaches 1 exactly) and ASTRAEA's bound of 0.95
// (§6.3).
func Standard() Options {
	return Options{Periods: []cluster.Span{cluster.Hour, cluster.Day}, Tolerance: 10_000, Loss: 950_000}
}

// Meter collects scores during a run. It keeps none of its arguments.
type Meter struct {
	setting Setting
	opt     Options

	tenants     map[string]*tenant
	list        []*tenant // all tenants; those of a sample come mostly in this order
	all         tally
	firstWait   spread
	slowdown    spread
	rho         spread
	preemptions int
	preempted   int
	run, over   cluster.Span // sums over finished jobs
	completion  cluster.Span
	overGPU     cluster.GPUTime
	lost        cluster.Span // sum over finished jobs
	lostGPU     cluster.GPUTime
	losers      int             // finished jobs with lost work
	first, last cluster.Instant // submission, end

	now                cluster.Instant // of the last sample; 0 = none yet
	state              Sample          // the last sample, without tenants
	capacity, used     cluster.GPUTime
	fragmented, bound  cluster.GPUTime
	use                *timeline
	useCap, useUsed    int // lines of use
	useFragmented      int
	useModel           []int // lines of use, by model
	arrivals           *timeline
	arrived, arrivedMS int   // lines of arrivals: jobs, and the sum of their waits
	closed             []int // ended periods, by length
}

// tally is the counts of all jobs and of each tenant's.
type tally struct {
	counts           Counts
	loss, unfinished int // sharing losses
	rhos             int // jobs with a rho
	completion, wait spread
}

// tenant is a tenant's account, as of the last sample.
type tenant struct {
	name string
	tally
	holds        cluster.MicroGPU
	on           []cluster.MicroGPU // by model
	had          []cluster.GPUTime  // by model
	onLines      []int              // of use, by model
	rate         cluster.MicroGPU
	alloc, due   cluster.GPUTime
	repaid       cluster.GPUTime
	alloc0, due0 cluster.GPUTime // at the first sample
	periods      []period
	line         int // of use
	seen         cluster.Instant
}

// period is a tenant's rho over periods of one length.
type period struct {
	alloc, due    cluster.GPUTime // at the start of the current period
	repaid        cluster.GPUTime
	rho           spread
	unfair, below int
	repaying      int // subset of unfair
	noDue         int
	lacking       cluster.GPUTime
}

// NewMeter starts a run at setting.From, which must be above 0.
func NewMeter(setting Setting, opt Options) *Meter {
	m := &Meter{setting: setting, opt: opt, tenants: map[string]*tenant{}, closed: make([]int, len(opt.Periods)),
		use: newTimeline(setting.From), arrivals: newTimeline(setting.From)}
	m.useCap, m.useUsed, m.useFragmented = m.use.line(), m.use.line(), m.use.line()
	for range setting.Models {
		m.useModel = append(m.useModel, m.use.line())
	}
	m.arrived, m.arrivedMS = m.arrivals.line(), m.arrivals.line()
	return m
}

// at gives the tenant that is the i-th of a sample.
func (m *Meter) at(i int, name string) *tenant {
	if i < len(m.list) && m.list[i].name == name {
		return m.list[i]
	}
	return m.tenant(name)
}

func (m *Meter) tenant(name string) *tenant {
	t := m.tenants[name]
	if t == nil {
		t = &tenant{name: name, periods: make([]period, len(m.opt.Periods)), line: m.use.line()}
		for range m.setting.Models {
			t.onLines = append(t.onLines, m.use.line())
		}
		t.on, t.had = make([]cluster.MicroGPU, len(t.onLines)), make([]cluster.GPUTime, len(t.onLines))
		for i := range t.periods {
			t.periods[i].noDue = m.closed[i] // it was due nothing before
		}
		m.tenants[name], m.list = t, append(m.list, t)
	}
	return t
}

// Job adds an ended job, or at the end of the run one without an end. Every job is added once.
// The error names a job with contradictory times.
func (m *Meter) Job(j Job) error {
	if err := j.check(); err != nil {
		return fmt.Errorf("score: %w", err)
	}
	if j.Submit < m.setting.From {
		return fmt.Errorf("score: job %s: submitted at %s, before the run began at %s", j.ID, j.Submit, m.setting.From)
	}
	if m.first == 0 || j.Submit < m.first {
		m.first = j.Submit
	}
	m.last = max(m.last, j.End)
	m.preemptions += j.Preemptions
	if j.Preemptions > 0 {
		m.preempted++
	}
	t := m.tenant(j.Tenant)
	m.all.add(j, m.opt.Loss)
	t.add(j, m.opt.Loss)
	if j.End == 0 {
		return nil
	}
	if j.Due > 0 {
		m.rho.add(int64(cluster.RhoOf(j.Alloc, j.Due)))
	}
	*m.arrivals.cell(m.arrived, j.Submit)++
	*m.arrivals.cell(m.arrivedMS, j.Submit) += int64(j.Wait(j.End))
	if j.Start == 0 {
		return nil
	}
	m.firstWait.add(int64(j.Start.Sub(j.Submit)))
	m.run += j.Runs
	m.over += j.Overhead
	m.completion += j.completion()
	m.overGPU += cluster.Times(j.GPUs, j.Overhead)
	m.lost += j.Lost
	m.lostGPU += cluster.Times(j.GPUs, j.Lost)
	if j.Lost > 0 {
		m.losers++
	}
	if j.Runs > 0 {
		m.slowdown.add(cluster.MulDiv(int64(j.completion()), int64(cluster.Fair), int64(j.Runs)))
	}
	return nil
}

func (t *tally) add(j Job, bound cluster.Rho) {
	t.counts.All++
	lost := j.Due > 0 && cluster.RhoOf(j.Alloc, j.Due) < bound
	if j.End == 0 {
		t.counts.Unfinished++
		if j.Start == 0 {
			t.counts.Unstarted++
		}
		if lost {
			t.unfinished++
		}
		return
	}
	t.wait.add(int64(j.Wait(j.End)))
	if j.Due > 0 {
		t.rhos++
	} else {
		t.counts.NoDue++
	}
	if lost {
		t.loss++
	}
	if j.Start == 0 {
		t.counts.Withdrawn++
		return
	}
	t.counts.Finished++
	t.completion.add(int64(j.completion()))
	if j.Runs == 0 {
		t.counts.NoRun++
	}
}

// Sample adds the next state. Samples come in order of time; of several for one moment the last
// counts. The error names a late sample or shrinking sums.
func (m *Meter) Sample(s Sample) error {
	if s.At < max(m.now, m.setting.From, 1) {
		return fmt.Errorf("score: a sample of %s comes after one of %s, or before the run began at %s", s.At, m.now, m.setting.From)
	}
	begin := m.now == 0
	for i := range s.Tenants {
		x := &s.Tenants[i]
		t := m.at(i, x.Tenant)
		if begin {
			t.repaid = x.Repaid
			t.alloc, t.due, t.alloc0, t.due0 = x.Alloc, x.DueTotal, x.Alloc, x.DueTotal
			for i := range t.periods {
				t.periods[i].alloc, t.periods[i].due, t.periods[i].repaid = x.Alloc, x.DueTotal, x.Repaid
			}
		}
		if x.Alloc < t.alloc || x.DueTotal < t.due {
			return fmt.Errorf("score: sample of %s: what tenant %s received or was due has shrunk", s.At, x.Tenant)
		}
	}
	if !begin {
		m.pass(s)
	}
	for i := range s.Tenants {
		x := &s.Tenants[i]
		t := m.at(i, x.Tenant)
		copy(t.on, x.On)
		t.holds, t.rate, t.alloc, t.due, t.repaid, t.seen = x.Holds, x.Due, x.Alloc, x.DueTotal, x.Repaid, s.At
	}
	for _, t := range m.list {
		if t.seen != s.At {
			t.holds, t.rate = 0, 0 // not in this sample: idle
			clear(t.on)
		}
	}
	m.now, m.state = s.At, s
	m.state.Tenants = nil
	return nil
}

// pass charges the time since the last sample, with its state.
func (m *Meter) pass(s Sample) {
	gone := s.At.Sub(m.now)
	m.capacity += cluster.Times(m.state.Capacity, gone)
	m.used += cluster.Times(m.state.Used, gone)
	m.fragmented += cluster.Times(m.state.Fragmented, gone)
	m.bound += cluster.Times(m.state.Bound, gone)
	m.use.fill(m.useCap, m.now, s.At, cluster.Micro(m.state.Capacity))
	m.use.fill(m.useUsed, m.now, s.At, cluster.Micro(m.state.Used))
	m.use.fill(m.useFragmented, m.now, s.At, cluster.Micro(m.state.Fragmented))
	for _, t := range m.list {
		m.use.fill(t.line, m.now, s.At, t.holds)
		for i, n := range t.on {
			m.use.fill(t.onLines[i], m.now, s.At, n)
			m.use.fill(m.useModel[i], m.now, s.At, n)
			t.had[i] += n.Over(gone)
		}
	}
	for i, length := range m.opt.Periods {
		for {
			end := m.setting.From.Add(cluster.Span(m.closed[i]+1) * length)
			if end > s.At {
				break
			}
			m.close(i, end, s)
		}
	}
}

// close ends a period of every tenant at the moment end, between the last sample and s. It
// interpolates linearly between the two.
func (m *Meter) close(i int, end cluster.Instant, s Sample) {
	between := func(a, b cluster.GPUTime) cluster.GPUTime {
		if s.At == m.now {
			return b
		}
		return a + cluster.GPUTime(cluster.MulDiv(int64(b-a), int64(end.Sub(m.now)), int64(s.At.Sub(m.now))))
	}
	next := make(map[string]TenantSample, len(s.Tenants))
	for _, x := range s.Tenants {
		next[x.Tenant] = x
	}
	for _, t := range m.tenants {
		alloc, due, repaid := t.alloc, t.due, t.repaid
		if x, ok := next[t.name]; ok {
			alloc, due, repaid = between(alloc, x.Alloc), between(due, x.DueTotal), between(repaid, x.Repaid)
		}
		t.periods[i].close(alloc, due, repaid, m.opt.Tolerance)
	}
	m.closed[i]++
}

// close records the rho of the period that ends with these sums and begins the next.
func (p *period) close(alloc, due, repaid cluster.GPUTime, tolerance cluster.Rho) {
	if due == p.due {
		p.noDue++
	} else {
		rho := cluster.RhoOf(alloc-p.alloc, due-p.due)
		p.rho.add(int64(rho))
		p.lacking += max(0, due-p.due-(alloc-p.alloc))
		if rho < cluster.Fair {
			p.below++
		}
		if rho < cluster.Fair-tolerance {
			p.unfair++
			if net := due - p.due - (repaid - p.repaid); net <= 0 || cluster.RhoOf(alloc-p.alloc, net) >= cluster.Fair-tolerance {
				p.repaying++
			}
		}
	}
	p.alloc, p.due, p.repaid = alloc, due, repaid
}
