package figures

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/research/gavel"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// lab is what Gavel's simulated experiments have in common (§7.1): its authors' throughputs and jobs, and a cluster.
type lab struct {
	dir         string // of the authors' data
	table       *trace.Throughputs
	gpus        int              // of each model
	first, last int              // the jobs that count, in order of arrival
	say         func(run string) // is told of each run that is over
}

// quarter gives a quarter of Gavel's cluster, on which fewer jobs count.
func quarter(dir string, say func(string)) (*lab, error) {
	table, err := trace.OpenThroughputs(filepath.Join(dir, "simulation_throughputs.json.gz"))
	return &lab{dir: dir, table: table, gpus: 9, first: 300, last: 600, say: say}, err
}

// size says how small the cluster is.
func (l *lab) size() string {
	return fmt.Sprintf("on %d GPUs of each model, a quarter of the paper's, at a quarter of its loads (jobs %d to %d)", l.gpus, l.first, l.last)
}

// way is a curve: a scheduler, and what is special of its runs.
type way struct {
	name, by string
	round    cluster.Span       // 0 = Gavel's
	expected sim.Beside         // of pairs; nil = known
	weighs   map[string]float64 // of jobs, by their ids; nil = 1
	pairs    bool               // by fairlease's own rounds, with sharing.pairs
	apart    bool               // each GPU is a node
	jobs     int                // so many of the first jobs, which are all there at the beginning and say how many steps they have; 0 = the stream as it is
}

// outcome is what came of a run: its jobs, their mean hours, sorted hours, and sorted finish-time fairness.
type outcome struct {
	jobs      []gavel.Done
	hours     float64
	until     float64 // hours until the last of them was over
	took, rho []float64
}

func (l *lab) load(stream string, perHour float64) (experiment.Load, error) {
	t, err := trace.Open(filepath.Join(l.dir, "gavel_trace_"+stream+"_seed0.csv.gz"), trace.Options{Throughputs: l.table, PerHour: perHour})
	if err != nil {
		return experiment.Load{}, err
	}
	return experiment.Of(t), nil
}

func (l *lab) run(ctx context.Context, stream string, perHour float64, w way) (outcome, error) {
	load, err := l.load(stream, perHour)
	if err != nil {
		return outcome{}, err
	}
	first, last := l.first, l.last
	if w.jobs > 0 {
		load, first, last = atOnce(load, w.jobs), 0, w.jobs
		load.Steps = true
	}
	nodes := "1x%d:v100+1x%[1]d:p100+1x%[1]d:k80"
	if w.apart { // on a node, pairs that start at the same time are on one GPU: Slurm takes the first with room
		nodes = "%dx1:v100+%[1]dx1:p100+%[1]dx1:k80"
	}
	fleet, err := experiment.ParseFleet(fmt.Sprintf(nodes, l.gpus))
	if err != nil {
		return outcome{}, err
	}
	s := gavel.Setup(w.by, load, fleet, experiment.SpeedsOf(l.table, trace.GavelReference))
	s.Beside, s.Expected, s.Weighs = experiment.BesideOf(l.table, trace.GavelReference), w.expected, w.weighs
	if w.round > 0 {
		s.Settings.Term = w.round
	}
	if w.pairs {
		s.Settings.Interval, s.Settings.Slices = cluster.Minute, &cluster.Slices{Quantum: cluster.Minute, Pairs: true}
	}
	f, err := gavel.Follow(ctx, s, first, last)
	if err != nil {
		return outcome{}, fmt.Errorf("%s, %s: %w", stream, w.name, err)
	}
	out := outcome{jobs: f.Jobs, hours: f.Hours(), until: f.Until.Duration().Hours()}
	for i := range f.Jobs {
		out.took, out.rho = append(out.took, f.Jobs[i].Took.Duration().Hours()), append(out.rho, f.Jobs[i].Fairness(&s))
	}
	slices.Sort(out.took)
	slices.Sort(out.rho)
	l.say(fmt.Sprintf("%s, %s, %v jobs an hour: %.2f h, until %.1f h", stream, w.name, perHour, out.hours, out.until))
	return out, nil
}

// sweep runs all ways at all loads, as many at once as there are cores. It gives the mean completion times over the load, and for
// each way what came of the highest load, the last.
func (l *lab) sweep(ctx context.Context, stream string, loads []float64, ways []way) (report.Panel, []outcome, error) {
	p := report.Panel{Title: "mean completion time", X: "jobs an hour", Y: "hours"}
	got, errs := make([]outcome, len(ways)*len(loads)), make(chan error)
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range got {
		go func() {
			room <- struct{}{}
			var err error
			got[i], err = l.run(ctx, stream, loads[i%len(loads)], ways[i/len(loads)])
			<-room
			errs <- err
		}()
	}
	var err error
	for range got {
		err = errors.Join(err, <-errs)
	}
	var high []outcome
	for k, w := range ways {
		c := report.Curve{Name: w.name, X: loads}
		for i := range loads {
			c.Y = append(c.Y, got[k*len(loads)+i].hours)
		}
		p.Curves, high = append(p.Curves, c), append(high, got[(k+1)*len(loads)-1])
	}
	return p, high, err
}

// parts gives the distribution of a number over the jobs of each way, sorted.
func parts(title, x string, logX bool, ways []way, of func(way int) []float64) report.Panel {
	p := report.Panel{Title: title, X: x, Y: "% of the jobs", LogX: logX}
	for k, w := range ways {
		c := report.Curve{Name: w.name, X: of(k)}
		for i := range c.X {
			c.Y = append(c.Y, 100*float64(i+1)/float64(len(c.X)))
		}
		p.Curves = append(p.Curves, c)
	}
	return p
}

// lasWays are the curves of Figures 9 and 10 but AlloX.
var lasWays = []way{{name: "LAS, blind", by: "gavel:las-blind"}, {name: "with Gandiva's packing", by: "gandiva:packing"},
	{name: "Gavel", by: "gavel:las"}, {name: "Gavel, space sharing", by: "gavel:las+ss"}}

// live is space sharing by fairlease's own rounds under one of Gavel's presets. Pairs that start at the same time on a node are on one GPU, since Slurm takes
// the first with room: so each GPU is a node. fairlease has no pairs of gangs.
func live(preset string) way {
	return way{name: "fairlease, space sharing", by: "fairlease:gavel:" + preset, pairs: true, apart: true}
}

// atOnce gives the first jobs of a load, all there at the beginning.
func atOnce(load experiment.Load, n int) experiment.Load {
	all := load.Jobs
	load.Jobs = func(yield func(trace.Job) bool) {
		k := 0
		for j := range all {
			if j.Submit = 0; k == n || !yield(j) {
				return
			}
			k++
		}
	}
	return load
}

// las makes Gavel's Figure 9 or 10: completion times over the load, and their distribution at the last, of a stream, single or multiple.
func (l *lab) las(ctx context.Context, figure, stream, theirs string, loads []float64) ([]report.Chart, error) {
	ways := append(slices.Clone(lasWays), live("las-jobs"))
	means, high, err := l.sweep(ctx, stream, loads, ways)
	if err != nil {
		return nil, err
	}
	top := loads[len(loads)-1]
	over := func(a, b int) float64 { return high[a].hours / high[b].hours }
	ours := fmt.Sprintf(" With fairlease's rounds and pairs (gavel:las-jobs, sharing.pairs) it is %.1f times shorter than blind, and %.2f times as long as by the paper's mechanism.", over(0, 4), over(4, 3))
	return []report.Chart{{Name: "gavel-" + figure, Title: fmt.Sprintf("Gavel, Figure %s: least attained service, continuous-%s", figure, stream), Theirs: theirs,
		Ours: fmt.Sprintf("%s: at %v jobs an hour knowing the models makes the mean %.1f times shorter, with space sharing %.1f times; with its pairs it is %.1f times shorter than with Gandiva's.",
			l.size(), top, over(0, 2), over(0, 3), over(1, 3)) + ours,
		Panels: []report.Panel{means, parts(fmt.Sprintf("completion times at %v jobs an hour", top), "hours, log scale", true, ways, func(k int) []float64 { return high[k].took })}}}, nil
}

// fairness makes Gavel's Figure 11: finish-time fairness, with and without knowing the models.
func (l *lab) fairness(ctx context.Context, loads []float64) ([]report.Chart, error) {
	ways := []way{{name: "FTF, blind", by: "gavel:ftf-blind"}, {name: "Gavel", by: "gavel:ftf"}}
	means, high, err := l.sweep(ctx, "multiple", loads, ways)
	if err != nil {
		return nil, err
	}
	average := func(v []float64) float64 {
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		return sum / float64(len(v))
	}
	top := loads[len(loads)-1]
	blind, knows := average(high[0].rho), average(high[1].rho)
	return []report.Chart{{Name: "gavel-11", Title: "Gavel, Figure 11: finish-time fairness, continuous-multiple",
		Theirs: "completion times 3 times shorter, finish-time fairness 2.8 times better (§7.3).",
		Ours: fmt.Sprintf("%s: at %v jobs an hour the mean is %.1f times shorter, finish-time fairness %.2f instead of %.2f, %.1f times better.",
			l.size(), top, high[0].hours/high[1].hours, knows, blind, blind/knows),
		Panels: []report.Panel{means, parts(fmt.Sprintf("finish-time fairness at %v jobs an hour", top), "time taken over that with 1/n of the cluster", false, ways, func(k int) []float64 { return high[k].rho })}}}, nil
}

// roundLengths makes Gavel's Figure 15a: completion times with rounds of several lengths.
func (l *lab) roundLengths(ctx context.Context, loads []float64, minutes ...int) ([]report.Chart, error) {
	var ways []way
	for _, m := range minutes {
		ways = append(ways, way{name: fmt.Sprintf("%d min", m), by: "gavel:las", round: cluster.Span(m) * cluster.Minute})
	}
	means, high, err := l.sweep(ctx, "single", loads, ways)
	if err != nil {
		return nil, err
	}
	c := report.Chart{Name: "gavel-15a", Title: "Gavel, Figure 15a: length of rounds", Panels: []report.Panel{means},
		Theirs: "shorter rounds come closer to the allocation (§7.5).",
		Ours:   fmt.Sprintf("%s: mean hours at %v jobs an hour:", l.size(), loads[len(loads)-1])}
	for k, w := range ways {
		c.Ours += fmt.Sprintf(" %s %.2f;", w.name, high[k].hours)
	}
	c.Ours = strings.TrimSuffix(c.Ours, ";") + "."
	return []report.Chart{c}, nil
}

// mechanism makes Gavel's Figure 15b: completion times with rounds, and with every allocation exactly as it is.
func (l *lab) mechanism(ctx context.Context, loads []float64) ([]report.Chart, error) {
	means, _, err := l.sweep(ctx, "single", loads, []way{{name: "Gavel, rounds of 6 min", by: "gavel:las"}})
	if err != nil {
		return nil, err
	}
	ideal, most := report.Curve{Name: "ideal", X: loads}, 0.0
	for i, perHour := range loads {
		hours, err := l.ideal("single", perHour)
		if err != nil {
			return nil, err
		}
		ideal.Y, most = append(ideal.Y, hours), max(most, means.Curves[0].Y[i]/hours-1)
	}
	means.Curves = append(means.Curves, ideal)
	return []report.Chart{{Name: "gavel-15b", Title: "Gavel, Figure 15b: the mechanism and its allocation", Panels: []report.Panel{means},
		Theirs: "rounds of six minutes do almost as well as having the allocation exactly (§7.5).",
		Ours:   fmt.Sprintf("%s: rounds make the mean at most %.1f %% longer.", l.size(), 100*most)}}, nil
}

// ideal gives the mean hours of the jobs that count where at any time each has exactly what LAS allots it: no rounds, no moves.
func (l *lab) ideal(stream string, perHour float64) (float64, error) {
	load, err := l.load(stream, perHour)
	if err != nil {
		return 0, err
	}
	type active struct {
		order      int
		came, left float64 // seconds; of work on the reference model
		does       float64 // its rate now
	}
	var jobs []active
	p := policy.Problem{}
	for _, m := range []string{"v100", "p100", "k80"} {
		p.Models = append(p.Models, policy.Model{Name: m, GPUs: float64(l.gpus)})
	}
	speeds := experiment.SpeedsOf(l.table, trace.GavelReference)
	now, hours, done := 0.0, 0.0, 0
	// pass lets time pass up to a moment, with an end of a job after another.
	pass := func(to float64) error {
		for len(jobs) > 0 {
			las, err := policy.Gavel("las", p, policy.Options{})
			if err != nil {
				return err
			}
			next, at := -1, to
			for i := range jobs {
				jobs[i].does = worth(p.Jobs[i].Speed, las.Time[i])
				if end := now + jobs[i].left/jobs[i].does; end < at {
					next, at = i, end
				}
			}
			for i := range jobs {
				jobs[i].left -= (at - now) * jobs[i].does
			}
			if now = at; next < 0 {
				return nil
			}
			if j := jobs[next]; j.order >= l.first && j.order < l.last {
				hours, done = hours+(now-j.came)/3600, done+1
			}
			jobs, p.Jobs = slices.Delete(jobs, next, next+1), slices.Delete(p.Jobs, next, next+1)
		}
		now = to
		return nil
	}
	order := 0
	for j := range load.Jobs {
		if err := pass(j.Submit.Duration().Seconds()); err != nil {
			return 0, err
		}
		if done == l.last-l.first {
			break
		}
		jobs = append(jobs, active{order: order, came: now, left: j.Runs.Duration().Seconds()})
		row := policy.Job{ID: int64(order + 1), Gang: j.GPUs, Weight: 1}
		for _, m := range p.Models {
			row.Speed = append(row.Speed, float64(speeds[sim.Task{Kind: j.Kind, GPUs: j.GPUs}][m.Name].Speed)/float64(sim.Reference))
		}
		p.Jobs = append(p.Jobs, row)
		order++
	}
	if done < l.last-l.first {
		return 0, fmt.Errorf("%d of %d jobs are over, and no other comes", done, l.last-l.first)
	}
	l.say(fmt.Sprintf("%s, ideal, %v jobs an hour: %.2f h", stream, perHour, hours/float64(done)))
	return hours / float64(done), nil
}

// estimates makes Gavel's Figure 16, on 12 GPUs: space sharing where what pairs do is estimated until they have met.
func (l *lab) estimates(ctx context.Context, loads []float64) ([]report.Chart, error) {
	expected, err := gavel.Estimate(l.table, trace.GavelReference, "p100", 5)
	if err != nil {
		return nil, err
	}
	small := *l
	small.gpus = 4
	without := live("las-jobs")
	without.name, without.pairs = "fairlease, no space sharing", false
	means, high, err := small.sweep(ctx, "single", loads, []way{{name: "no space sharing", by: "gavel:las"},
		{name: "estimated", by: "gavel:las+ss", expected: expected}, {name: "known", by: "gavel:las+ss"}, without, live("las-jobs")})
	if err != nil {
		return nil, err
	}
	return []report.Chart{{Name: "gavel-16", Title: "Gavel, Figure 16: estimated throughputs of pairs", Panels: []report.Panel{means},
		Theirs: "on 12 GPUs, estimates make the mean very slightly longer at high load (§7.6).",
		Ours: fmt.Sprintf("on 12 GPUs too (jobs %d to %d): at %v jobs an hour %.1f h without, %.1f h estimated, %.1f h known; fairlease %.1f h without, %.1f h where it learns and estimates what pairs do.",
			small.first, small.last, loads[len(loads)-1], high[0].hours, high[1].hours, high[2].hours, high[3].hours, high[4].hours)}}, nil
}

// scaling makes Gavel's Figure 14: how long policies take over the number of jobs of one GPU, with a GPU of each model for eight jobs,
// and with all pairs up to so many jobs. No two jobs are alike. Real seconds: no two runs are equal.
func (l *lab) scaling(paired int, many ...int) ([]report.Chart, error) {
	p := report.Panel{Title: "time to divide", X: "jobs, log scale", Y: "seconds, log scale", Log: true}
	c := report.Chart{Name: "gavel-14", Title: "Gavel, Figure 14: time to divide",
		Theirs: "the hierarchical policy takes less than ten minutes with 2048 jobs, or with 512 that share GPUs, LAS much less (§7.4).", Ours: "seconds:"}
	for _, w := range []struct {
		name, by string
		pairs    bool
	}{{"LAS", "las", false}, {"LAS, space sharing", "las", true}, {"hierarchical", "hierarchical", false}, {"hierarchical, space sharing", "hierarchical", true}} {
		curve := report.Curve{Name: w.name}
		for _, n := range many {
			if w.pairs && n > paired {
				break
			}
			q, err := simtest.Packing(l.table, n, false)
			if err != nil {
				return nil, err
			}
			if !w.pairs {
				q.Pairs = nil
			}
			q.Entities = []policy.Entity{{Name: "0", Weight: 1}, {Name: "1", Weight: 2}, {Name: "2", Weight: 3}}
			for i := range q.Jobs {
				q.Jobs[i].Entity = i % 3
			}
			runtime.GC()
			began := time.Now()
			got, err := policy.Gavel(w.by, q, policy.Options{})
			took := time.Since(began).Seconds()
			if err != nil {
				return nil, err
			}
			if got.Why != "" {
				return nil, fmt.Errorf("%s, %d jobs: %s", w.name, n, got.Why)
			}
			curve.X, curve.Y = append(curve.X, float64(n)), append(curve.Y, took)
			l.say(fmt.Sprintf("%s, %d jobs: %.4f s", w.name, n, took))
		}
		c.Ours += fmt.Sprintf(" %s %.3f (%v jobs);", w.name, curve.Y[len(curve.Y)-1], curve.X[len(curve.X)-1])
		p.Curves = append(p.Curves, curve)
	}
	c.Ours, c.Panels = strings.TrimSuffix(c.Ours, ";")+".", []report.Panel{p}
	return []report.Chart{c}, nil
}
