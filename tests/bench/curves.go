package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlease/fairlease/research/svg"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/tests/traces"
)

// The axes of the curves.
var (
	savers = []float64{0, 50, 100} // percent of jobs that save
	starts = []cluster.Span{30 * cluster.Second, 5 * cluster.Minute}
)

// measures of the curves, with the names of a panel's axis and a table's column.
var curveMeasures = []struct {
	title, y, column string
	format           string
	of               func(values) float64
	pictured         bool
}{
	{"Unfair tenant hours", "% of tenant hours", "unfair tenant hours %", "%.0f", func(v values) float64 { return v.hours }, false},
	{"Unfair tenant days", "% of tenant days", "unfair tenant days %", "%.0f", func(v values) float64 { return v.unfair }, true},
	{"Lowest rho of a tenant", "rho", "lowest tenant ρ", "%.2f", func(v values) float64 { return v.lowest }, false},
	{"Sharing-loss jobs", "% of jobs", "sharing-loss jobs %", "%.0f", func(v values) float64 { return v.loss }, false},
	{"Mean completion time", "hours", "mean JCT h", "%.1f", func(v values) float64 { return v.jct }, true},
	{"Overhead", "% of run time", "overhead % of run", "%.1f", func(v values) float64 { return v.overhead }, true},
	{"Unfinished jobs", "jobs", "unfinished", "%.0f", func(v values) float64 { return v.unfinished }, false},
}

// onCurves compares astraea and all baselines by the part of jobs that save, on each scene that only names, or all. It prints a
// table for each cost of a start, with the least and the most of the runs of a point, and writes their means: a CSV for each
// table, and for each scene a page and a picture of the most important measures.
//
// Run k of each point draws the jobs that save by seed k, with rounds of k times 10 s.
func onCurves(dir, folder, only string, seeds int) error {
	if seeds < 1 {
		return fmt.Errorf("-seeds is %d: each point needs one run", seeds)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, x := range traces.Scenes {
		if only != "" && !strings.HasPrefix(x.Name, only) {
			continue
		}
		base, err := scene(x, dir)
		if err != nil {
			return err
		}
		if err := drawCurves(x.Name, folder, base, seeds); err != nil {
			return err
		}
	}
	return nil
}

func drawCurves(scene, folder string, base experiment.Setup, seeds int) error {
	var charts, pictures []report.Chart
	for _, start := range starts {
		chart, err := curve(scene, base, start, seeds)
		if err != nil {
			return err
		}
		if err := into(filepath.Join(folder, chart.Name+".csv"), chart.CSV); err != nil {
			return err
		}
		charts = append(charts, chart)
		picture := chart
		picture.Panels = nil
		for i, m := range curveMeasures {
			if m.pictured {
				picture.Panels = append(picture.Panels, chart.Panels[i])
			}
		}
		pictures = append(pictures, picture)
	}
	title := fmt.Sprintf("%s on %s: what fairness costs by how many jobs save", base.Load.Name, base.Fleet)
	if err := into(filepath.Join(folder, "saving-"+scene+".html"), func(w io.Writer) error { return report.Charts(w, title, charts) }); err != nil {
		return err
	}
	return into(filepath.Join(folder, "saving-"+scene+".svg"), func(w io.Writer) error { return svg.Write(w, title, pictures) })
}

// curve runs every scheduler at every point, prints the table and gives the chart.
func curve(scene string, base experiment.Setup, start cluster.Span, seeds int) (report.Chart, error) {
	schedulers := experiment.Schedulers()
	var setups []experiment.Setup
	for _, by := range schedulers {
		for _, x := range savers {
			for k := 1; k <= seeds; k++ {
				m := manner{saves: fmt.Sprintf("never:%g,at-end:%g", 100-x, x), byJob: true, start: start, seed: uint64(k)}
				s := base
				s.Scheduler = by
				s.Settings.Interval *= cluster.Span(k)
				s.Settings = experiment.Fit(s.Settings)
				if err := m.onto(&s); err != nil {
					return report.Chart{}, err
				}
				setups = append(setups, s)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "%s, starts of %s: %d runs ...\n", scene, start, len(setups))
	results, err := together(setups)
	if err != nil {
		return report.Chart{}, err
	}
	out := report.Chart{Name: fmt.Sprintf("saving-%s-start-%ds", scene, start/cluster.Second), Title: fmt.Sprintf("A start costs %s", start),
		Theirs: "every job saves when it is told to.",
		Ours: fmt.Sprintf("%s on %s for %d days; means of the runs by seed (%d to %d), with rounds of 10 to %d s.", base.Load.Name, base.Fleet,
			savingUntil/cluster.Day, 1, seeds, 10*seeds)}
	cells := make([][]string, len(schedulers)) // by scheduler and measure
	for _, m := range curveMeasures {
		p := report.Panel{Title: m.title, X: "% of jobs that save", Y: m.y}
		for i, by := range schedulers {
			line := report.Curve{Name: by, X: savers}
			var points []string
			for k := range savers {
				runs := results[(i*len(savers)+k)*seeds:][:seeds]
				mean, spread := spreadOf(runs, m.of, m.format)
				line.Y, points = append(line.Y, mean), append(points, spread)
			}
			p.Curves = append(p.Curves, line)
			cells[i] = append(cells[i], strings.Join(points, " · "))
		}
		out.Panels = append(out.Panels, p)
	}
	fmt.Printf("\n%s on %s, starts of %s, 0 · 50 · 100 %% of jobs save:\n\n| scheduler |", base.Load.Name, base.Fleet, start)
	for _, m := range curveMeasures {
		fmt.Printf(" %s |", m.column)
	}
	fmt.Printf("\n|%s\n", strings.Repeat("---|", len(curveMeasures)+1))
	for i, by := range schedulers {
		fmt.Printf("| %s | %s |\n", by, strings.Join(cells[i], " | "))
	}
	return out, nil
}

// spreadOf gives the mean of a measure over runs, and the least and the most of it as text.
func spreadOf(runs []experiment.Result, of func(values) float64, format string) (mean float64, spread string) {
	least, most := of(valuesOf(&runs[0].Scores)), of(valuesOf(&runs[0].Scores))
	for i := range runs {
		v := of(valuesOf(&runs[i].Scores))
		least, most, mean = min(least, v), max(most, v), mean+v/float64(len(runs))
	}
	if a, b := fmt.Sprintf(format, least), fmt.Sprintf(format, most); a != b {
		return mean, a + " to " + b
	}
	return mean, fmt.Sprintf(format, least)
}
