package sim

import (
	"cmp"
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Costs is what leases cost a job in addition to its work.
type Costs struct {
	// Save and Load are the durations of writing and reading a checkpoint.
	Save, Load cluster.Span
	// ColdStart precedes a load: containers, imports, cold caches.
	ColdStart cluster.Span
	// Completing is how long a requeued job still holds its GPUs.
	Completing cluster.Span
	// RequeueDelay is Slurm's own delay after a requeue without a gate.
	RequeueDelay cluster.Span
}

// Start gives the cost of a start from a checkpoint.
func (c *Costs) Start() cluster.Span { return c.ColdStart + c.Load }

// DefaultCosts gives a simulation's default costs. Saving and loading take 5 s together ("the
// time needed to load and save checkpoints for our target models is < 5 seconds": Gavel §7.5),
// half each. 30 s for a cold start is our own assumption. The rest are Slurm's values.
func DefaultCosts() Costs {
	return Costs{Save: 2500 * cluster.Millisecond, Load: 2500 * cluster.Millisecond, ColdStart: 30 * cluster.Second,
		Completing: cluster.Second, RequeueDelay: 2 * cluster.Minute}
}

// Saves says when a job writes checkpoints.
type Saves int

const (
	// Always is the ideal of most simulators: nothing is ever lost, and saving costs nothing.
	Always Saves = iota
	// AtEnd saves only after the notice that the lease will not be renewed, as late as possible
	// (Gavel's lease renewal, §6): the save is complete when the lease ends. After a requeue
	// without notice it saves between SIGTERM and SIGKILL.
	AtEnd
	// AtNotice saves at once after the notice: later work is lost.
	AtNotice
	// EachTerm saves at the end of every term, renewed or not, and ignores the notice.
	EachTerm
	// Periodic saves after each Every of work, and ignores the notice.
	Periodic
	// Never saves nothing: every requeue restarts it from the beginning.
	Never
	// OnTerm saves after SIGTERM, before SIGKILL, and ignores the notice.
	OnTerm
)

// Speed is throughput in millionths of that on the reference model.
type Speed int64

const (
	// Reference is the speed on the reference model.
	Reference Speed = 1_000_000
	// Halt is the speed of work that does not run at all.
	Halt Speed = 1
)

// Task is a kind of work on so many GPUs; 0 = any number without a task of its own.
type Task struct {
	Kind string
	GPUs int
}

// Rate is the speed of a task on a model. Apart is that of a gang on more nodes than it needs, and Across on
// its fewest nodes under more switches than these need; 0 = equal.
type Rate struct{ Speed, Apart, Across Speed }

// Speeds gives the rates of tasks on GPU models, relative to the same task alone and consolidated
// on the reference model: there its work takes its Runs. Missing entries, and those not above 0,
// are Reference.
type Speeds map[Task]map[string]Rate

// On gives the speed of a task on a model; Reference if it is not known.
func (s Speeds) On(t Task, model string) Speed { return s.of(t, model, "") }

// of gives the speed on nodes that are spread so.
func (s Speeds) of(t Task, model string, spread cluster.Kind) Speed {
	rates, ok := s[t]
	if !ok {
		rates = s[Task{Kind: t.Kind}]
	}
	r := rates[model]
	switch {
	case spread == cluster.Scattered && r.Apart > 0:
		return r.Apart
	case spread == cluster.AcrossSwitches && r.Across > 0:
		return r.Across
	case r.Speed > 0:
		return r.Speed
	}
	return Reference
}

// slowest gives the speed of a gang, that of its slowest model.
func (s Speeds) slowest(t Task, holds []cluster.Holding, spread cluster.Kind) Speed {
	slow := Speed(math.MaxInt64)
	for i := range holds {
		slow = min(slow, s.of(t, holds[i].Model, spread))
	}
	return slow
}

// speedOn gives the speed of a job on GPUs that it has to itself, that of its slowest node.
func speedOn(v *Virtual, j *work, holds []cluster.Holding) Speed {
	speed, slow := v.Speeds.slowest(j.task(), holds, spreadOf(v, holds)), Reference
	for i := range holds {
		slow = min(slow, cmp.Or(v.free[v.at[holds[i].Node]].speed, Reference))
	}
	return max(speed*slow/Reference, Halt)
}

// stage is the current activity of a running job.
type stage int

const (
	working stage = iota
	starting
	loading
	saving
	stages
)

// amount is work in millionths of a millisecond on the reference model, so that work at any speed
// adds up without rounding.
type amount int64

func amountOf(s cluster.Span) amount     { return amount(s) * amount(Reference) }
func (a amount) span() cluster.Span      { return cluster.Span(a / amount(Reference)) }
func (a amount) at(s Speed) cluster.Span { return cluster.Span((a + amount(s) - 1) / amount(s)) }

// progress is the progress of a job. done and saved persist; the rest concerns one attempt.
type progress struct {
	at    cluster.Instant // time of the other fields
	stage stage
	until cluster.Instant // end of the stage, unless it is working
	save  cluster.Instant // start of the next save; 0 = none is planned
	kept  cluster.Instant // end of the newest save; 0 = none yet

	done, saved amount
	spent       [stages]cluster.Span
}

// pace holds the inputs of the progress in one attempt.
type pace struct {
	Costs
	saves Saves
	every cluster.Span // between saves: for EachTerm the term, whose ends are its multiples
	goal  amount
	speed Speed
}

// begin starts an attempt.
func (c *pace) begin(p progress, at cluster.Instant) progress {
	p = progress{at: at, done: p.done, saved: p.saved, save: c.plan(at)}
	if p.saved > 0 {
		p.stage, p.until = starting, at.Add(c.ColdStart)
	}
	return p
}

// plan gives the next save after at of a job without a notice.
func (c *pace) plan(at cluster.Instant) cluster.Instant {
	switch {
	case c.every <= 0:
	case c.saves == EachTerm: // complete when the term ends
		done := at.Add(c.Save)
		return (done - done%cluster.Instant(c.every)).Add(c.every - c.Save)
	case c.saves == Periodic:
		return at.Add(c.every)
	}
	return 0
}

// notice notifies a job, at the moment p.at, that its lease ends at end.
func (c *pace) notice(p progress, end cluster.Instant) progress {
	switch {
	case c.saves == AtEnd:
		p.save = max(p.at, end.Add(-c.Save))
	case c.saves == AtNotice && p.stage == working:
		p.save = p.at
	}
	return p
}

// walk lets a job continue until to, or until its work is done.
func (c *pace) walk(p progress, to cluster.Instant) progress {
	for {
		switch {
		case p.stage != working:
			end := min(p.until, to)
			p.spent[p.stage] += end.Sub(p.at)
			if p.at = end; end < p.until {
				return p
			}
			p = c.next(p)
		case p.done >= c.goal:
			return p
		case p.save != 0 && p.save <= p.at:
			p.stage, p.until = saving, p.at.Add(c.Save)
		case p.at >= to:
			return p
		default:
			end := to
			if p.save != 0 {
				end = min(end, p.save)
			}
			if finish := p.at.Add((c.goal - p.done).at(c.speed)); finish <= end {
				end, p.done = finish, c.goal
			} else {
				p.done += amount(end.Sub(p.at)) * amount(c.speed)
			}
			p.spent[working] += end.Sub(p.at)
			p.at = end
		}
	}
}

// next leaves a finished stage.
func (c *pace) next(p progress) progress {
	switch p.stage {
	case starting:
		p.stage, p.until = loading, p.at.Add(c.Load)
		return p
	case loading:
		if p.save < p.at || c.saves == Periodic { // it had nothing to save before
			p.save = c.plan(p.at)
		}
	case saving:
		p.saved, p.save, p.kept = p.done, c.plan(p.at), p.at
	}
	p.stage = working
	return p
}

// nextSave gives the end of the next planned save; 0 = none before the work is done.
func (c *pace) nextSave(p progress) cluster.Instant {
	for p.stage == starting || p.stage == loading {
		p.at = p.until
		p = c.next(p)
	}
	switch {
	case p.stage == saving:
		return p.until
	case p.save == 0 || p.done >= c.goal:
		return 0
	}
	return max(p.save, p.at).Add(c.Save)
}

// finish gives when the work will be done without interruptions.
func (c *pace) finish(p progress) cluster.Instant { return c.walk(p, math.MaxInt64/2).at }

// killWait is Slurm's time between SIGTERM and SIGKILL (KillWait's default).
const killWait = 30 * cluster.Second

// terminate requeues a job at the moment p.at. It gives how much longer the job needs, to save
// its unsaved work.
func (c *pace) terminate(p progress) (progress, cluster.Span) {
	if c.saves != AtEnd && c.saves != OnTerm || p.done == p.saved || c.Save > killWait {
		return p, 0
	}
	rest := c.Save
	if p.stage == saving {
		rest = p.until.Sub(p.at)
	}
	p.saved = p.done
	return p, rest
}

// cut gives the remaining progress after a requeue, and the lost work.
func (c *pace) cut(p progress) (progress, amount) {
	if c.saves == Always {
		p.saved = p.done
	}
	lost := p.done - p.saved
	p.done = p.saved
	return p, lost
}
