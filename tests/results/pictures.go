package main

import (
	"os"
	"path/filepath"

	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// draw writes a picture beside docs/results.md.
func draw(name, title string, charts []report.Chart) error {
	f, err := os.Create(filepath.Join("docs", name+".svg"))
	if err != nil {
		return err
	}
	if err := report.Picture(f, title, charts); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// bySaving draws how scores depend on the part of jobs that save, as means over the runs of each group of each row.
func bySaving(rows []row, has map[run]*score.Scores) error {
	drawn := []measure{unfairDays, meanJCT, lost}
	var charts []report.Chart
	for _, r := range rows {
		if scene := r.names[0] + " nodes"; len(charts) == 0 || charts[len(charts)-1].Title != scene {
			c := report.Chart{Title: scene}
			for _, m := range drawn {
				c.Panels = append(c.Panels, report.Panel{Title: m.head, X: "% of jobs that save", Y: "mean of the runs"})
			}
			charts = append(charts, c)
		}
		for p, m := range drawn {
			c := report.Curve{Name: r.names[1], X: []float64{0, 50, 100}}
			for _, group := range r.runs {
				sum := 0.0
				for _, x := range group {
					sum += m.of(has[x])
				}
				c.Y = append(c.Y, sum/float64(len(group)))
			}
			panel := &charts[len(charts)-1].Panels[p]
			panel.Curves = append(panel.Curves, c)
		}
	}
	return draw("results-first-day", "Fairness, completion times and lost work by how many jobs save", charts)
}

// distributions draws how jobs fare under each scheduler: ASTRAEA's Figures 10 and 12, of the runs with rounds of 10 s.
func distributions(scenes []string, has map[run]*score.Scores) error {
	var charts []report.Chart
	for _, scene := range scenes {
		rho := report.Panel{Title: "jobs by ρ", X: "ρ of a job", Y: "% of jobs at or below"}
		slow := report.Panel{Title: "jobs by slowdown", X: "slowdown, log scale", Y: "% of jobs at or below", LogX: true}
		for _, by := range compared {
			s := has[run{Scene: scene, Scheduler: by, Round: 10}]
			rho.Curves = append(rho.Curves, cumulated(by, s.JobRhoCDF, 0, 2))
			slow.Curves = append(slow.Curves, cumulated(by, s.SlowdownCDF, 1, 1000))
		}
		charts = append(charts, report.Chart{Title: sceneName(scene) + " nodes", Panels: []report.Panel{rho, slow}})
	}
	return draw("results-jobs", "How jobs fare", charts)
}

// cumulated makes a curve of values at equal steps of share, between bounds.
func cumulated(name string, values []float64, least, most float64) report.Curve {
	c := report.Curve{Name: name}
	for i, v := range values {
		c.X, c.Y = append(c.X, min(max(v, least), most)), append(c.Y, 100*float64(i)/float64(len(values)-1))
	}
	return c
}
