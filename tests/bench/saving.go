package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// savingUntil is when a run of a trace ends: a month after the last jobs have come.
const savingUntil = 40 * cluster.Day

// manner is an assumption on how jobs save and what a start costs them.
type manner struct {
	name     string // behind the figures' names
	saves    string // as for fairlease simulate
	byJob    bool
	reported bool
	start    cluster.Span // 0 = as by default
	seed     uint64       // of what is drawn; 0 = 1
}

// mannersOfSaving are those that have figures.
var mannersOfSaving = []manner{
	{name: "", saves: "at-end"},
	{name: "_p50", saves: "never:50,at-end:50", byJob: true},
	{name: "_2h", saves: "periodic=2h"},
	{name: "_2h_reported", saves: "periodic=2h", reported: true},
	{name: "_never", saves: "never"},
	{name: "_start10m", saves: "at-end", start: 10 * cluster.Minute},
}

// onto sets a setup's jobs.
func (m *manner) onto(s *experiment.Setup) error {
	mixture, err := experiment.ParseMixture(m.saves, 0)
	if err != nil {
		return err
	}
	mixture.ByJob = m.byJob
	s.Saves, s.Reported, s.Seed = mixture, m.reported, max(m.seed, 1)
	if m.start > 0 {
		s.Costs.ColdStart = m.start
		s.Settings.StartCost = s.Costs.Start()
	}
	return nil
}

// scene is a trace on a cluster.
type scene struct {
	name, file, fleet string
	weights           func(dir string) (io.ReadCloser, error)
}

func philly(string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(simtest.Philly)), nil
}
func venus(dir string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(dir, "venus_tenants.csv"))
}

var scenes = []scene{
	{"venus60", "venus_2w.csv.gz", "60x8", venus},
	{"venus40", "venus_2w.csv.gz", "40x8", venus},
	{"philly64", "philly_2w_most_demand.csv.gz", "64x8", philly},
}

// setup reads a scene's trace.
func (x *scene) setup(dir string) (experiment.Setup, error) {
	s := experiment.Default()
	jobs, err := trace.Open(filepath.Join(dir, x.file), trace.Options{})
	if err != nil {
		return s, err
	}
	s.Load, s.Until = experiment.Of(jobs), savingUntil
	f, err := x.weights(dir)
	if err != nil {
		return s, err
	}
	defer func() { _ = f.Close() }()
	if s.Weights, err = experiment.ReadWeights(f, x.name); err != nil {
		return s, err
	}
	s.Fleet, err = experiment.ParseFleet(x.fleet)
	return s, err
}

// onSaving measures what is left of fairness when jobs do not save as the papers assume, on each scene that only names, or all.
func onSaving(dir, only string) error {
	for i := range scenes {
		x := &scenes[i]
		if only != "" && !strings.HasPrefix(x.name, only) {
			continue
		}
		base, err := x.setup(dir)
		if err != nil {
			return err
		}
		var setups []experiment.Setup
		var manners []manner // a run for each, but several seeds of those drawn by job
		for _, m := range mannersOfSaving {
			for m.seed = 1; m.seed == 1 || m.byJob && m.seed <= drawnSeeds; m.seed++ {
				s := base
				if err := m.onto(&s); err != nil {
					return err
				}
				setups, manners = append(setups, s), append(manners, m)
			}
		}
		results, err := together(setups)
		if err != nil {
			return err
		}
		fmt.Printf("%s on %s by %s, until %v days: how jobs save\n", base.Load.Name, base.Fleet, base.Scheduler, int64(savingUntil/cluster.Day))
		fmt.Printf("  %-14s %-42s %10s %10s %9s %7s %12s %10s %10s %9s %14s %10s\n", "variant", "jobs save", "unfinished", "overhead_%", "lost_GPUh", "JCT_h", "unfair_days%", "repaying_%", "lowest_rho", "slowdown", "sharing_loss_%", "preempted")
		for k := range results {
			v := valuesOf(&results[k].Scores)
			name := strings.TrimPrefix(manners[k].name, "_")
			if manners[k].byJob {
				name = fmt.Sprintf("%s, seed %d", name, manners[k].seed)
			}
			fmt.Printf("  %-14s %-42s %10.0f %10.2f %9.0f %7.2f %12.2f %10.2f %10.3f %9.2f %14.2f %10d\n", name, results[k].Saves,
				v.unfinished, v.overhead, results[k].Overhead.Lost.GPUHours, v.jct, v.unfair, v.repaying, v.lowest, v.slowdown, v.loss, results[k].Preemptions)
		}
		for k := range results {
			if manners[k].seed > 1 {
				continue // the table has the spread
			}
			v, of := valuesOf(&results[k].Scores), x.name+manners[k].name
			figure("unfinished_"+of, v.unfinished, "jobs")
			figure("overhead_"+of+"_pct", v.overhead, "%")
			figure("jct_"+of+"_h", v.jct, "h")
			figure("unfair_days_"+of+"_pct", v.unfair, "%")
			figure("lowest_rho_"+of, v.lowest, "rho")
			figure("slowdown_"+of, v.slowdown, "x")
			figure("sharing_loss_"+of+"_pct", v.loss, "%")
		}
	}
	return nil
}

// together runs setups side by side, as fairlease simulate does.
func together(setups []experiment.Setup) ([]experiment.Result, error) {
	cores := min(2, runtime.NumCPU(), len(setups))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	return experiment.All(context.Background(), setups, cores, nil)
}

// values are what runs of how jobs save are compared by.
// Repaying is the part of the unfair days in which a tenant went short by no more than it repaid.
type values struct{ unfinished, overhead, jct, unfair, repaying, lowest, slowdown, loss float64 }

func valuesOf(s *score.Scores) values {
	v := values{unfinished: float64(s.Jobs.Unfinished), overhead: 100 * s.Overhead.OfRun, jct: s.Completion.Mean / 3600,
		slowdown: s.Slowdown.Mean, loss: 100 * s.Loss.Share}
	for _, p := range s.Periods {
		if p.Hours == 24 {
			v.unfair = 100 * p.Ratio()
			v.repaying = 100 * float64(p.Repaying) / float64(max(p.Rho.Count, 1))
		}
	}
	first := true
	for _, t := range s.Tenants {
		if t.Due > 0 && (first || t.Rho < v.lowest) {
			v.lowest, first = t.Rho, false
		}
	}
	return v
}

// The axes of the curves.
var (
	savers     = []float64{0, 25, 50, 75, 100} // percent of jobs that save
	intervals  = []string{"30m", "2h"}
	starts     = []cluster.Span{30 * cluster.Second, 5 * cluster.Minute, 10 * cluster.Minute}
	preempting = []string{"astraea", "quota-lend", "tiresias-l", "themis", "gandiva-fair"}
)

// cut is a way through the axes: all but one are as by default.
type cut struct {
	name, title, x string
	at             []float64
	manner         func(x float64) manner
}

// cuts gives the curves' abscissas: the part of jobs that save, for each manner and cost of a start.
func cuts() []cut {
	share := func(name, title, saves string, start cluster.Span) cut {
		return cut{name, title, "% of jobs that save", savers, func(x float64) manner {
			switch x {
			case 0:
				return manner{saves: "never", start: start}
			case 100:
				return manner{saves: saves, start: start}
			}
			return manner{saves: fmt.Sprintf("never:%g,%s:%g", 100-x, saves, x), byJob: true, start: start}
		}}
	}
	var out []cut
	for _, start := range starts {
		out = append(out, share(fmt.Sprintf("at-end-start-%ds", start/cluster.Second), fmt.Sprintf("Jobs save when their lease ends; a start costs %s", start), "at-end", start))
	}
	for _, every := range intervals {
		out = append(out, share("periodic-"+every, "Jobs save every "+every+", unreported; a start costs "+starts[0].String(), "periodic="+every, starts[0]))
	}
	return out
}

// onCurves draws fairness, completion time and overhead against the part of jobs that save, under astraea and the baselines that
// preempt: a CSV for each cut, a page, and a picture of what matters most. only names a scene.
func onCurves(dir, folder, only string) error {
	x := &scenes[max(slices.IndexFunc(scenes, func(s scene) bool { return s.name == only }), 0)]
	base, err := x.setup(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var charts []report.Chart
	for _, c := range cuts() {
		chart, err := c.chart(x.name, base)
		if err != nil {
			return err
		}
		if err := into(filepath.Join(folder, chart.Name+".csv"), chart.CSV); err != nil {
			return err
		}
		charts = append(charts, chart)
	}
	title := fmt.Sprintf("%s on %s: what fairness costs by how jobs save", base.Load.Name, base.Fleet)
	if err := into(filepath.Join(folder, "saving-"+x.name+".html"), func(w io.Writer) error { return report.Charts(w, title, charts) }); err != nil {
		return err
	}
	for i := range charts {
		all := charts[i].Panels
		charts[i].Panels = []report.Panel{all[0], all[2], all[3]} // fairness, completion, overhead
	}
	return into(filepath.Join(folder, "saving-"+x.name+".svg"), func(w io.Writer) error { return report.Picture(w, title, charts) })
}

// measures of the curves, with what a panel calls them.
var curveMeasures = []struct {
	title, y string
	of       func(values) float64
}{
	{"Unfair tenant days", "% of tenant days", func(v values) float64 { return v.unfair }},
	{"Lowest rho of a tenant", "rho", func(v values) float64 { return v.lowest }},
	{"Mean completion time", "hours", func(v values) float64 { return v.jct }},
	{"Overhead", "% of run time", func(v values) float64 { return v.overhead }},
	{"Unfinished jobs", "jobs", func(v values) float64 { return v.unfinished }},
}

// chart runs every scheduler at every point of a cut.
func (c *cut) chart(scene string, base experiment.Setup) (report.Chart, error) {
	var setups []experiment.Setup
	for _, by := range preempting {
		for _, at := range c.at {
			s, m := base, c.manner(at)
			s.Scheduler = by
			if err := m.onto(&s); err != nil {
				return report.Chart{}, err
			}
			setups = append(setups, s)
		}
	}
	fmt.Fprintf(os.Stderr, "%s on %s: %d runs ...\n", c.title, scene, len(setups))
	results, err := together(setups)
	if err != nil {
		return report.Chart{}, err
	}
	out := report.Chart{Name: "saving-" + scene + "-" + c.name, Title: c.title,
		Theirs: "every job saves when it is told to.", Ours: fmt.Sprintf("%s on %s for %d days, jobs that save drawn one by one.", base.Load.Name, base.Fleet, savingUntil/cluster.Day)}
	for _, m := range curveMeasures {
		p := report.Panel{Title: m.title, X: c.x, Y: m.y}
		for i, by := range preempting {
			curve := report.Curve{Name: by, X: c.at}
			for k := range c.at {
				curve.Y = append(curve.Y, m.of(valuesOf(&results[i*len(c.at)+k].Scores)))
			}
			p.Curves = append(p.Curves, curve)
		}
		out.Panels = append(out.Panels, p)
	}
	return out, nil
}
