package gavel

import (
	"context"
	"fmt"

	_ "github.com/fairlease/fairlease/research/papers"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
)

// round is the length of Gavel's rounds in its evaluation (§7.3).
const round = 6 * cluster.Minute

// Fleet is its simulated cluster, 36 GPUs of each model, with no more nodes than models: as in its simulator gangs are
// never apart.
const Fleet = "1x36:v100+1x36:p100+1x36:k80"

// Setup gives a setup as Gavel's simulator has it: rounds of six minutes at whose beginnings
// alone jobs start, nothing lost and nothing paid at a change.
func Setup(scheduler string, load experiment.Load, fleet experiment.Fleet, speeds sim.Speeds) experiment.Setup {
	s := experiment.Default()
	s.Scheduler, s.Load, s.Fleet, s.Speeds = scheduler, load, fleet, speeds
	s.Weights = experiment.EqualWeights(experiment.Survey(load))
	s.Costs, s.Saves = sim.Costs{}, experiment.Only(sim.Always)
	s.Settings.Term, s.Settings.Interval = round, cluster.Second
	s.Settings.MinLease, s.Settings.Notice = 0, 0
	if scheduler == "fifo:random" { // it starts jobs at every look
		s.Settings.Interval = round
	}
	return s
}

// Done is a job that is over, as Gavel's experiments look at it.
type Done struct {
	ID         string
	GPUs       int
	Submit     cluster.Instant
	Took       cluster.Span            // from submission to end
	Runs       cluster.Span            // that it would take by itself on the reference model
	Held       map[string]cluster.Span // by model, of the gang
	Contenders float64                 // jobs that were there, itself among them, on average over its time
	kind       string
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
func (f *Finished) Fairness(s *experiment.Setup) float64 {
	sum := 0.0
	for i := range f.Jobs {
		sum += f.Jobs[i].Fairness(s)
	}
	return sum / float64(len(f.Jobs))
}

// Fairness gives the finish-time fairness of a job (§4.2): the time that it took over the time that it would have
// taken with one nth of the cluster to itself, n being the jobs that were there on average.
func (j *Done) Fairness(s *experiment.Setup) float64 {
	rate, time := 0.0, 0.0
	for _, m := range s.Fleet.Models() {
		x := float64(m.Count) / (j.Contenders * float64(j.GPUs))
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
func Follow(ctx context.Context, s experiment.Setup, first, last int) (Finished, error) {
	var out Finished
	there := crowd{at: experiment.Start}
	order, jobs := 0, map[cluster.JobID]*Done{}
	inner, enough := context.WithCancel(ctx)
	defer enough()
	run, err := experiment.Open(&s, func(e sim.Event) {
		sum := there.pass(e.At)
		switch e.What {
		case sim.Submitted:
			there.n++
			if order++; order > first && order <= last {
				jobs[e.Job] = &Done{ID: e.Work.Name, GPUs: e.Work.Request.Size.Devices, Submit: e.At, Runs: e.Work.Runs, kind: e.Work.Kind,
					Contenders: sum, Held: map[string]cluster.Span{}}
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
				j.Took, out.Until = e.At.Sub(j.Submit), e.At.Sub(experiment.Start)
				j.Contenders = (sum - j.Contenders) / float64(j.Took)
				out.Jobs = append(out.Jobs, *j)
			}
			if len(out.Jobs) == last-first {
				enough()
			}
		}
	})
	if err != nil {
		return Finished{}, err
	}
	defer run.Close()
	err = run.To(inner, experiment.Forever)
	out.Turns = run.Turns
	switch {
	case len(out.Jobs) == last-first:
		return out, nil
	case err != nil:
		return out, err
	}
	return out, fmt.Errorf("%s on %s: %d of %d jobs are over, and no other comes", s.Scheduler, s.Fleet, len(out.Jobs), last-first)
}
