package simtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/kinds"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// Fleet is a made-up cluster whose users submit the same commands again and again.
//
// Its speeds are given. Its jobs show them inexactly: the work of a command differs from run to run, some
// runs fail or reach their time limit, every attempt costs its start and the saves between. Counters go with the speed
// up to an efficiency that differs by command and model; some commands have their input in memory, some GPUs are
// too old for a counter, some exporters are broken, some rows are missing, and some samples are garbage.
type Fleet struct {
	Tenants  int
	Commands int // of each tenant
	Jobs     int // of each command that are there at any time
	Nodes    int // of each model, with four GPUs each
	Seed     uint64
	Work     cluster.Span // of a command in the middle, on the reference model
	Speeds   sim.Speeds
	// Spread is the standard deviation of the logarithm of the run times of a command; 0 = 0.25.
	Spread float64
	// Each is whether tenants take tasks in turn, in the order of their names; else they are drawn.
	Each bool
}

// Knowledge is what the cluster is told of speeds.
type Knowledge struct {
	Declared  bool // by the administrator, the truth
	Reporting int  // percent of the commands whose jobs report their progress
	Blind     bool // nothing is learnt from jobs that do not report
}

// command is a command of a user.
type command struct {
	tenant, line string
	task         sim.Task
	kind         cluster.Kind
	work         cluster.Span // the median, on the reference model
	reports      bool
	label        string
	// Counters show work: per step by counter, and how much of it by model.
	shows [3]float64
	bends map[string][3]float64
}

// fleet is a Fleet that runs.
type fleet struct {
	*sim.Virtual
	of       *Fleet
	rng      *rand.Rand
	commands []*command
	jobs     map[cluster.JobID]*command
	alive    map[*command]int
	worked   map[cluster.JobID]cluster.Span // by ended attempts
	total    map[string]float64             // by tenant: of ended attempts, in GPU time on the slowest model
	ended    int                            // jobs
	broken   map[string]bool                // exporters, by node
	samples  map[cluster.JobID]cluster.GPUUse
	Loop     *loop.Loop
}

// Observe implements loop.Cluster: with the reports of those that report, and the counters.
func (f *fleet) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := f.Virtual.Observe(ctx, since)
	seen.Progress = slices.DeleteFunc(seen.Progress, func(p cluster.Progress) bool { c := f.jobs[p.Job]; return c == nil || !c.reports })
	seen.Uses = f.counters(seen.Jobs)
	return seen, err
}

// counters gives what exporters show of running jobs.
func (f *fleet) counters(jobs []cluster.Job) (out []cluster.GPUUse) {
	for i := range jobs {
		j := &jobs[i]
		c := f.jobs[j.ID]
		if c == nil || j.State != cluster.Running || len(j.Holds) == 0 || f.broken[j.Holds[0].Node] {
			continue
		}
		u, ok := f.samples[j.ID]
		if !ok || u.Start != j.Start {
			u = f.sample(c, j)
			f.samples[j.ID] = u
		}
		if u.At = f.Now(); u.At > u.From {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b cluster.GPUUse) int { return a.Compare(&b) })
	return out
}

// sample draws the counters of an attempt.
func (f *fleet) sample(c *command, j *cluster.Job) cluster.GPUUse {
	model := j.Holds[0].Model
	u := cluster.GPUUse{Job: j.ID, Model: model, Start: j.Start, GPUs: j.GPUsHeld(), From: j.Start.Add(30 * cluster.Second)}
	speed := f.Speed(j.ID, model)
	rate := float64(speed) / float64(sim.Reference)
	for k, mean := range []*cluster.Mean{&u.PCIeRX, &u.DRAM, &u.Tensor} {
		bend, shown := c.bends[model]
		if !shown || bend[k] == 0 || f.rng.IntN(100) < 15 { // the GPU has none, or the rows are missing
			continue
		}
		x := c.shows[k] * rate * bend[k] * math.Exp(0.05*f.rng.NormFloat64())
		if f.rng.IntN(100) < 3 { // garbage
			x *= math.Exp(2 * f.rng.NormFloat64())
		}
		if k > 0 {
			x = min(x, 0.95)
		}
		*mean = cluster.Mean{Value: x, Count: 20}
	}
	return u
}

// draw draws the commands.
func (x *Fleet) draw(know Knowledge) *fleet {
	f := &fleet{of: x, rng: rand.New(rand.NewPCG(x.Seed, 99)), jobs: map[cluster.JobID]*command{}, alive: map[*command]int{},
		worked: map[cluster.JobID]cluster.Span{}, total: map[string]float64{}, broken: map[string]bool{}, samples: map[cluster.JobID]cluster.GPUUse{}}
	tasks := slices.SortedFunc(maps.Keys(x.Speeds), func(a, b sim.Task) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.GPUs, b.GPUs)) })
	tasks = slices.DeleteFunc(tasks, func(t sim.Task) bool { // a job of a task that does not run on a model would fail there
		return t.GPUs > 4 || slices.ContainsFunc(slices.Collect(maps.Values(x.Speeds[t])), func(r sim.Rate) bool { return r.Speed <= sim.Halt })
	})
	n := 0
	for t := range x.Tenants {
		for k := range x.Commands {
			c := &command{tenant: fmt.Sprintf("t%02d", t), task: tasks[f.rng.IntN(len(tasks))], bends: map[string][3]float64{},
				work: cluster.Span(math.Exp(0.6*f.rng.NormFloat64()) * float64(x.Work))}
			if x.Each {
				c.task = tasks[t%len(tasks)]
			}
			c.line = fmt.Sprintf("sbatch -J run%%d --gres=gpu:%d train.sh --model net%c --epochs %d --seed %%d --out /data/run_%%d", c.task.GPUs, 'a'+rune(k), 10*(t+1))
			c.label = kinds.Command{Line: c.submit(1), Dir: "/home/" + c.tenant}.Label()
			c.kind = profile.KindOf(nil, c.tenant, c.tenant+"-u", "", "", c.label)
			c.reports = (n*100/(x.Tenants*x.Commands)+know.Reporting)%100 < know.Reporting && know.Reporting > 0
			c.shows = [3]float64{1e8 * math.Exp(f.rng.NormFloat64()), 0.15 * math.Exp(0.5*f.rng.NormFloat64()), 0.1 * math.Exp(0.7*f.rng.NormFloat64())}
			if f.rng.IntN(10) < 3 { // its input is in memory
				c.shows[0] = 1e4
			}
			for m, model := range x.models() {
				bend := [3]float64{1, 1 / (1 + float64(m)), 1 / (1 + 2*float64(m))}
				for k, sd := range []float64{0.05, 0.15, 0.1} {
					bend[k] *= math.Exp(sd * f.rng.NormFloat64())
				}
				if m == 0 { // no tensor cores
					bend[2] = 0
				}
				c.bends[model] = bend
			}
			f.commands = append(f.commands, c)
			n++
		}
	}
	f.rng.Shuffle(len(f.commands), func(i, j int) {
		a, b := f.commands[i], f.commands[j]
		a.reports, b.reports = b.reports, a.reports
	})
	return f
}

// submit gives the submit line of the n-th run.
func (c *command) submit(n int) string { return fmt.Sprintf(c.line, n, n*7919, n) }

// models gives the models from the slowest on, by the mean of all tasks.
func (x *Fleet) models() []string {
	sums := map[string]float64{}
	for _, of := range x.Speeds {
		for model, r := range of {
			sums[model] += math.Log(max(float64(r.Speed)/float64(sim.Reference), 1e-3))
		}
	}
	return slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[a], sums[b]), cmp.Compare(a, b)) })
}

// Rate lets the cluster learn under gavel:las-jobs for a time, and gives the throughput in the time after, in GPUs of the model on
// which the work is slowest. It gives the last plan as well.
func (x *Fleet) Rate(know Knowledge, learns, counts cluster.Span) (rate float64, last cluster.Plan, err error) {
	f, set := x.start("gavel:las-jobs", know)
	before := 0.0
	for at := cluster.Span(0); at < learns+counts; at += set.Interval {
		if at == learns {
			before = sum(f.done())
		}
		if err := f.pass(set.Interval, func(r loop.Report) { last = r.Plan }); err != nil {
			return 0, last, err
		}
	}
	return (sum(f.done()) - before) / counts.Duration().Hours(), last, nil
}

func sum(of map[string]float64) (all float64) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all += of[name]
	}
	return all
}

// Paid is the throughput of each tenant as its jobs show it, in GPUs of the model on which its work is slowest.
type Paid struct {
	Early, Late map[string]float64 // while the first jobs end, and in the time after
	Traded      int                // how many jobs had ended at the first trade; -1 = none was made
	Ended       cluster.Span       // until when the first jobs ended
}

// Traded lets tenants trade under gandiva-fair while that many jobs end, and for a time after.
func (x *Fleet) Traded(know Knowledge, jobs int, counts cluster.Span) (p Paid, err error) {
	f, set := x.start("gandiva-fair", know)
	p.Traded = -1
	since := f.Now()
	pass := func() error {
		return f.pass(set.Interval, func(r loop.Report) {
			if a := r.Plan.State.Allocation; a != nil && len(a.Trades) > 0 && p.Traded < 0 {
				p.Traded = f.ended
			}
		})
	}
	mean := func(before map[string]float64, span cluster.Span) map[string]float64 {
		out := f.done()
		for tenant := range out {
			out[tenant] = (out[tenant] - before[tenant]) / span.Duration().Hours()
		}
		return out
	}
	for f.ended < jobs {
		if err := pass(); err != nil {
			return p, err
		}
	}
	p.Ended = f.Now().Sub(since)
	p.Early = mean(nil, p.Ended)
	before := f.done()
	for end := f.Now().Add(counts); f.Now() < end; {
		if err := pass(); err != nil {
			return p, err
		}
	}
	p.Late = mean(before, counts)
	return p, nil
}

// pass lets a span of time pass.
func (f *fleet) pass(span cluster.Span, look func(loop.Report)) error {
	f.refill()
	return sim.Run(context.Background(), f.Virtual, f.Loop, span, f.Now().Add(span), look)
}

// start starts a cluster under a policy.
func (x *Fleet) start(policy string, know Knowledge) (*fleet, cluster.Settings) {
	set := Product()
	set.Preset, set.Divide, set.DivideJobs, set.DivideEvery, set.Interval = policy, policy, preset.OfJobs(policy), 3, 5*cluster.Minute
	set.NoCompletions, set.NoCounters = know.Blind, know.Blind
	f := x.draw(know)
	var nodes []cluster.Node
	for _, m := range x.models() {
		nodes = append(nodes, Nodes(m, m, x.Nodes, 4)...)
		f.broken[nodes[len(nodes)-1].Name] = f.rng.IntN(2) == 0
	}
	var names []string
	for t := range x.Tenants {
		names = append(names, fmt.Sprintf("t%02d", t))
	}
	rules := loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}
	if know.Declared {
		for _, c := range f.commands {
			for model, r := range x.Speeds[c.task] {
				rules.Profiles = append(rules.Profiles, cluster.Profile{Kind: c.kind, Model: model, Gang: c.task.GPUs, Source: cluster.Declared,
					Rate: max(float64(r.Speed)/float64(sim.Reference), 1e-6)})
			}
		}
		slices.SortFunc(rules.Profiles, func(a, b cluster.Profile) int { return a.Compare(&b) })
	}
	w := New(nil, set, nodes, names...)
	f.Virtual = w.Virtual
	f.Costs, f.Speeds, f.Reports, f.Forget, f.Term = sim.DefaultCosts(), x.Speeds, 5*cluster.Minute, false, set.Term
	f.Watch = f.watch
	f.Loop = &loop.Loop{Cluster: f, Journal: sim.NewMemory(), Decide: engine.Decide, Divide: engine.Divide,
		Configure: func() (loop.Rules, cluster.Settings) { return rules, set }}
	return f, set
}

// watch counts the work of ended attempts.
func (f *fleet) watch(e sim.Event) {
	if c := f.jobs[e.Job]; c != nil && (e.What == sim.Requeued || e.What == sim.Ended) {
		f.worked[e.Job] += e.Worked
		f.total[c.tenant] += f.worth(c, e.Worked)
		if e.What == sim.Ended {
			f.ended++
			f.alive[c]--
			delete(f.jobs, e.Job)
			delete(f.samples, e.Job)
			delete(f.worked, e.Job)
		}
	}
}

// worth gives work in GPU-hours of the model on which it is slowest.
func (f *fleet) worth(c *command, work cluster.Span) float64 {
	slowest := math.Inf(1)
	for _, r := range f.of.Speeds[c.task] {
		if r.Speed > sim.Halt {
			slowest = min(slowest, float64(r.Speed)/float64(sim.Reference))
		}
	}
	return work.Duration().Hours() * float64(c.task.GPUs) / slowest
}

// done gives all work so far, by tenant.
func (f *fleet) done() map[string]float64 {
	out := maps.Clone(f.total)
	for _, id := range slices.SortedFunc(maps.Keys(f.jobs), cluster.JobID.Compare) {
		out[f.jobs[id].tenant] += f.worth(f.jobs[id], f.Progress(id)-f.worked[id])
	}
	return out
}

// refill submits jobs until each command has its number.
func (f *fleet) refill() {
	for _, c := range f.commands {
		for ; f.alive[c] < f.of.Jobs; f.alive[c]++ {
			n := f.rng.IntN(1 << 20)
			w := sim.Work{Name: fmt.Sprintf("run%d", n), Command: c.label, Line: c.submit(n), Dir: "/home/" + c.tenant, User: c.tenant + "-u", Account: c.tenant,
				Partition: "gpu", Request: Gang(c.task.GPUs), Kind: c.task.Kind, Saves: sim.AtEnd, Limit: 2 * cluster.Day,
				Runs: cluster.Span(math.Exp(cmp.Or(f.of.Spread, 0.25)*f.rng.NormFloat64()) * float64(c.work))}
			if f.rng.IntN(10) == 0 { // it fails on the way
				w.Runs, w.Outcome = max(cluster.Span(f.rng.Float64()*float64(w.Runs)), cluster.Second), "FAILED"
			}
			f.jobs[f.Submit(w)] = c
		}
	}
}

// Traders is a fleet of two models on which two tenants have one command each, whose run times have a spread of e. One gains 1.25 on the fast
// model, the other 6.
func Traders(seed uint64) *Fleet {
	at := func(fast float64) map[string]sim.Rate {
		return map[string]sim.Rate{"k80": {Speed: sim.Reference}, "v100": {Speed: sim.Speed(fast * float64(sim.Reference))}}
	}
	return &Fleet{Tenants: 2, Commands: 1, Jobs: 40, Nodes: 4, Seed: seed, Work: cluster.Hour, Spread: 1, Each: true,
		Speeds: sim.Speeds{{Kind: "little", GPUs: 1}: at(1.25), {Kind: "much", GPUs: 1}: at(6)}}
}
