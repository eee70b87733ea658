package sim

import (
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Costs is what leases cost a job beside its work.
type Costs struct {
	// Save and Load are how long it takes to write and to read a checkpoint.
	Save, Load cluster.Span
	// ColdStart comes before a load: containers, imports, caches that are empty.
	ColdStart cluster.Span
	// Completing is how long a job that is requeued holds its GPUs on.
	Completing cluster.Span
	// RequeueDelay is Slurm's own delay after a requeue without a gate.
	RequeueDelay cluster.Span
}

// Start gives what a start from a checkpoint costs.
func (c *Costs) Start() cluster.Span { return c.ColdStart + c.Load }

// DefaultCosts gives what a simulation charges unless told otherwise: saving and
// loading take 5 s together ("the time needed to load and save checkpoints for our target
// models is < 5 seconds": Gavel §7.5), in
// halves; 30 s for a cold start is our own assumption. The rest is Slurm's.
func DefaultCosts() Costs {
	return Costs{Save: 2500 * cluster.Millisecond, Load: 2500 * cluster.Millisecond, ColdStart: 30 * cluster.Second,
		Completing: cluster.Second, RequeueDelay: 2 * cluster.Minute}
}

// Saves says when a job writes checkpoints.
type Saves int

const (
	// Always is the ideal that most simulators assume: nothing is ever lost, and saving
	// costs nothing.
	Always Saves = iota
	// AtEnd saves only when told that the lease will not be renewed, as late as it can
	// (Gavel's lease renewal, §6): the save is done when the lease ends. After a requeue that
	// comes without notice it saves between SIGTERM and SIGKILL.
	AtEnd
	// AtNotice saves at once when told so: what it does afterwards is lost.
	AtNotice
	// EachTerm saves at the end of every term, renewed or not, and heeds no notice.
	EachTerm
	// Periodic saves whenever it has worked for Every, and heeds no notice.
	Periodic
	// Never saves nothing: every requeue begins anew.
	Never
	// OnTerm saves when it hears SIGTERM, between that and SIGKILL, and heeds no notice.
	OnTerm
)

// Speed is throughput in millionths of that on the reference model.
type Speed int64

const (
	// Reference is the speed of work on the reference model.
	Reference Speed = 1_000_000
	// Halt is that of work where it does not run at all.
	Halt Speed = 1
)

// Task is a kind of work on so many GPUs; 0 = on any number for which there is no task of its own.
type Task struct {
	Kind string
	GPUs int
}

// Rate is how fast a task is on a model. Apart is of a gang on more nodes than it needs; 0 = as fast.
type Rate struct{ Speed, Apart Speed }

// Speeds gives the rates of tasks on GPU models, both as multiples of what the task does by itself,
// consolidated, on the reference model: with that many GPUs its work is as long as its Runs. What is not
// listed, or is not above 0, goes at Reference.
type Speeds map[Task]map[string]Rate

func (s Speeds) of(t Task, model string, apart bool) Speed {
	rates, ok := s[t]
	if !ok {
		rates = s[Task{Kind: t.Kind}]
	}
	r := rates[model]
	switch {
	case apart && r.Apart > 0:
		return r.Apart
	case r.Speed > 0:
		return r.Speed
	}
	return Reference
}

// slowest gives the speed of a gang: that of its slowest model.
func (s Speeds) slowest(t Task, holds []cluster.Holding, apart bool) Speed {
	slow := Speed(math.MaxInt64)
	for i := range holds {
		slow = min(slow, s.of(t, holds[i].Model, apart))
	}
	return slow
}

// stage is what a job that runs spends its time on.
type stage int

const (
	working stage = iota
	starting
	loading
	saving
	stages
)

// amount is work in millionths of a millisecond on the reference model, so that work at
// any speed adds up without rounding.
type amount int64

func amountOf(s cluster.Span) amount     { return amount(s) * amount(Reference) }
func (a amount) span() cluster.Span      { return cluster.Span(a / amount(Reference)) }
func (a amount) at(s Speed) cluster.Span { return cluster.Span((a + amount(s) - 1) / amount(s)) }

// progress is how far a job has come. done and saved last; the rest is of one attempt.
type progress struct {
	at    cluster.Instant // as of when the rest is
	stage stage
	until cluster.Instant // when the stage is over, unless it is working
	save  cluster.Instant // when the next save begins; 0 = none is planned
	kept  cluster.Instant // when the newest save was done; 0 = none yet

	done, saved amount
	spent       [stages]cluster.Span
}

// pace is what the progress in one attempt depends on.
type pace struct {
	Costs
	saves Saves
	every cluster.Span // between saves: of EachTerm the term, whose ends are its multiples
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

// plan gives when a job that nobody tells anything saves next, after at.
func (c *pace) plan(at cluster.Instant) cluster.Instant {
	switch {
	case c.every <= 0:
	case c.saves == EachTerm: // to be done with it when the term ends
		done := at.Add(c.Save)
		return (done - done%cluster.Instant(c.every)).Add(c.every - c.Save)
	case c.saves == Periodic:
		return at.Add(c.every)
	}
	return 0
}

// notice tells a job, at the moment p.at, that its lease ends at end.
func (c *pace) notice(p progress, end cluster.Instant) progress {
	switch {
	case c.saves == AtEnd:
		p.save = max(p.at, end.Add(-c.Save))
	case c.saves == AtNotice && p.stage == working:
		p.save = p.at
	}
	return p
}

// walk lets a job run on until to, or until its work is done if that is sooner.
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

// next leaves a stage that is over.
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

// nextSave gives when the next planned save will be done; 0 = none is planned before the work is done.
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

// finish gives when the work will be done if nothing comes in between.
func (c *pace) finish(p progress) cluster.Instant { return c.walk(p, math.MaxInt64/2).at }

// killWait is how long Slurm leaves a job between SIGTERM and SIGKILL (KillWait's default).
const killWait = 30 * cluster.Second

// terminate tells a job, at the moment p.at, that it is requeued. It gives how much longer
// the job needs, to save what it has not yet saved.
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

// cut gives what remains of the progress at a requeue, and the work that is lost.
func (c *pace) cut(p progress) (progress, amount) {
	if c.saves == Always {
		p.saved = p.done
	}
	lost := p.done - p.saved
	p.done = p.saved
	return p, lost
}
