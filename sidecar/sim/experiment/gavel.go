package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// gavelRound is the length of Gavel's rounds in its evaluation (§7.3).
const gavelRound = 6 * cluster.Minute

// GavelFleet is its simulated cluster, 36 GPUs of each model, with no more nodes than models: as in its simulator gangs are
// never apart.
const GavelFleet = "1x36:v100+1x36:p100+1x36:k80"

// SpeedsOf makes speeds of a table: multiples of what a task does on the model that run times are on.
// Tasks that do not run there have none.
func SpeedsOf(t *trace.Throughputs, reference string) sim.Speeds {
	out := sim.Speeds{}
	for _, task := range t.Tasks() {
		base := t.Alone(reference, task, false)
		if base == 0 {
			continue
		}
		rates := map[string]sim.Rate{}
		speed := func(model string, apart bool) sim.Speed {
			return max(sim.Halt, sim.Speed(math.Round(t.Alone(model, task, apart)/base*float64(sim.Reference))))
		}
		for _, m := range t.Models {
			rates[m] = sim.Rate{Speed: speed(m, false), Apart: speed(m, true)}
		}
		out[sim.Task{Kind: task.Kind, GPUs: task.GPUs}] = rates
	}
	return out
}

// OnGavel gives a setup as Gavel's simulator has it: rounds of six minutes at whose beginnings
// alone jobs start, nothing lost and nothing paid at a change.
func OnGavel(scheduler string, load Load, fleet Fleet, speeds sim.Speeds) Setup {
	s := Default()
	s.Scheduler, s.Load, s.Fleet, s.Speeds = scheduler, load, fleet, speeds
	s.Weights = EqualWeights(Survey(load))
	s.Costs, s.Saves = sim.Costs{}, Only(sim.Always)
	s.Settings.Term, s.Settings.Interval = gavelRound, cluster.Second
	s.Settings.MinLease, s.Settings.Notice = 0, 0
	if scheduler == "fifo:random" { // it starts jobs at every look
		s.Settings.Interval = gavelRound
	}
	return s
}

// Done is a job that is over, as Gavel's experiments look at it.
type Done struct {
	ID     string
	GPUs   int
	Submit cluster.Instant
	Took   cluster.Span            // from submission to end
	Runs   cluster.Span            // that it would take by itself on the reference model
	Held   map[string]cluster.Span // by model, of the gang
	Rivals float64                 // jobs that were there, itself among them, on average over its time
	kind   string
}

// Finished is what came of a run of Gavel's experiments.
type Finished struct {
	Jobs  []Done       // those that were looked at, in order of their ends
	Until cluster.Span // when the last of these ended
	Turns int
}

// Hours gives the mean time of the jobs from submission to end.
func (f *Finished) Hours() float64 {
	sum := 0.0
	for i := range f.Jobs {
		sum += f.Jobs[i].Took.Duration().Hours()
	}
	return sum / float64(len(f.Jobs))
}

// Dollars gives what the jobs' GPUs cost, by prices of a GPU and hour.
func (f *Finished) Dollars(prices map[string]float64) float64 {
	sum := 0.0
	for _, j := range f.Jobs {
		for model, held := range j.Held {
			sum += held.Duration().Hours() * float64(j.GPUs) * prices[model]
		}
	}
	return sum
}

// Late gives the part of the jobs that took longer than they were to.
func (f *Finished) Late(within map[string]cluster.Span) float64 {
	n := 0
	for _, j := range f.Jobs {
		if at := within[j.ID]; at > 0 && j.Took > at {
			n++
		}
	}
	return float64(n) / float64(len(f.Jobs))
}

// Fairness gives the mean finish-time fairness of the jobs.
func (f *Finished) Fairness(s *Setup) float64 {
	sum := 0.0
	for i := range f.Jobs {
		sum += f.Jobs[i].Fairness(s)
	}
	return sum / float64(len(f.Jobs))
}

// Fairness gives the finish-time fairness of a job (§4.2): the time that it took over the time that it would have
// taken with one nth of the cluster to itself, n being the jobs that were there on average.
func (j *Done) Fairness(s *Setup) float64 {
	rate, time := 0.0, 0.0
	for _, m := range s.Fleet.models() {
		x := float64(m.Count) / (j.Rivals * float64(j.GPUs))
		speed := s.Speeds[sim.Task{Kind: j.kind, GPUs: j.GPUs}][m.Model].Speed
		rate, time = rate+x*float64(speed)/float64(sim.Reference), time+x
	}
	return float64(j.Took) * rate / max(1, time) / float64(j.Runs)
}

// crowd keeps how many jobs are there, over time.
type crowd struct {
	at  cluster.Instant
	n   int
	sum float64 // of jobs × time, in milliseconds
}

// pass lets time pass, and gives the sum up to then.
func (c *crowd) pass(to cluster.Instant) float64 {
	c.sum += float64(c.n) * float64(to.Sub(c.at))
	c.at = to
	return c.sum
}

// Follow runs a setup until the jobs of the load from the first up to before the last are over, counted from
// 0 in order of arrival: those in which Gavel looks at the steady state (§7.1). New ones go on arriving. When ctx ends that
// is an error.
func Follow(ctx context.Context, s Setup, first, last int) (Finished, error) {
	if err := s.Check(); err != nil {
		return Finished{}, err
	}
	r, err := newRun(&s)
	if err != nil {
		return Finished{}, err
	}
	var out Finished
	there := crowd{at: start}
	order, jobs := 0, map[cluster.JobID]*Done{}
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watch := r.world.Watch
	r.world.Watch = func(e sim.Event) {
		watch(e)
		sum := there.pass(e.At)
		switch e.What {
		case sim.Submitted:
			there.n++
			if order++; order > first && order <= last {
				jobs[e.Job] = &Done{ID: e.Work.Name, GPUs: e.Work.Request.GPUs, Submit: e.At, Runs: e.Work.Runs, kind: e.Work.Kind,
					Rivals: sum, Held: map[string]cluster.Span{}}
			}
		case sim.Requeued, sim.Ended:
			if e.What == sim.Ended {
				there.n--
			}
			j := jobs[e.Job]
			if j == nil {
				return
			}
			if len(e.Holds) > 0 {
				j.Held[e.Holds[0].Model] += e.At.Sub(e.Start)
			}
			if e.What == sim.Ended {
				j.Took, out.Until = e.At.Sub(j.Submit), e.At.Sub(start)
				j.Rivals = (sum - j.Rivals) / float64(j.Took)
				out.Jobs = append(out.Jobs, *j)
			}
			if len(out.Jobs) == last-first {
				stop(errEnough)
			}
		}
	}
	defer r.world.Feed(s.arrivals(&r.result.Refused))()
	err = sim.Run(inner, r.world.Virtual, r.loop, s.Settings.Interval, start.Add(forever), func(report loop.Report) {
		out.Turns++
		r.witness.turn(&report.Plan, nil)
		if r.witness.running == 0 && r.world.Now().Sub(r.witness.stirred) > idleFor && len(r.witness.jobs) > 0 {
			stop(errStuck)
		}
	})
	switch {
	case errors.Is(context.Cause(inner), errEnough):
		return out, nil
	case errors.Is(context.Cause(inner), errStuck):
		return out, r.stuck()
	case err != nil:
		return out, err
	}
	return out, fmt.Errorf("%s on %s: %d of %d jobs are over, and no other comes", s.Scheduler, s.Fleet, len(out.Jobs), last-first)
}
