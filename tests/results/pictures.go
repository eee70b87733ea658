package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fairlease/fairlease/research/svg"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// picture is an image beside docs/results.md.
type picture struct {
	name, title string
	charts      []report.Chart
}

// draw writes a picture, with the mark of what made it at the end.
func (p *picture) draw(mark string) error {
	var b bytes.Buffer
	if err := svg.Write(&b, p.title, p.charts); err != nil {
		return err
	}
	fmt.Fprintln(&b, mark)
	return os.WriteFile(filepath.Join("docs", p.name+".svg"), b.Bytes(), 0o644)
}

// mean is that of a measure over runs.
func (m *measure) mean(runs []run, has map[run]*score.Scores) float64 {
	sum := 0.0
	for _, r := range runs {
		sum += m.of(has[r])
	}
	return sum / float64(len(runs))
}

// bySaving draws how scores depend on the part of jobs that save, as means over the runs of each group of each row.
func bySaving(rows []row, has map[run]*score.Scores) picture {
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
				c.Y = append(c.Y, m.mean(group, has))
			}
			panel := &charts[len(charts)-1].Panels[p]
			panel.Curves = append(panel.Curves, c)
		}
	}
	return picture{"results-first-day", "Fairness, completion times and lost work by how many jobs save", charts}
}

// headline draws fairlease beside Slurm, where no job saves and where all do: bars are means, and a line is the spread of the runs. A mean
// completion time leaves out jobs that are unfinished, so their part stands beside it.
func headline(rows []row, has map[run]*score.Scores) picture {
	c := report.Chart{Title: "Two published traces of two weeks, on clusters that are too small for them"}
	for _, m := range []struct {
		measure
		x, better string
	}{{lowestRho, "GPU time received / GPU time due", "more is better"}, {unfairDays, "% of days below 99 % of the due", "less is better"}, {meanJCT, "hours from submission to end", "less is better"}} {
		p := report.Panel{Title: m.head, X: m.x, Y: m.better}
		for _, by := range []struct{ scheduler, name string }{{"astraea", "fairlease"}, {"slurm-multifactor", "plain Slurm"}, {"slurm-preempt", "Slurm's preemption"}} {
			curve := report.Curve{Name: by.name}
			p.Names = nil
			for _, r := range rows {
				if r.names[1] != by.scheduler {
					continue
				}
				for g, group := range r.runs {
					words, ok := map[string]string{"none": "no job saves", "all": "all jobs save"}[saving[g].name]
					if !ok {
						continue
					}
					least, most := m.bounds(group, has)
					text := m.spread(group, has)
					if part := 100 * unfinished.mean(group, has) / float64(has[group[0]].Jobs.All); m.head == meanJCT.head && part >= 1 {
						text += fmt.Sprintf(", %.0f %% unfinished", part)
					}
					p.Names = append(p.Names, r.names[0]+" nodes: "+words)
					curve.Y, curve.Low, curve.High = append(curve.Y, m.mean(group, has)), append(curve.Low, least), append(curve.High, most)
					curve.Texts = append(curve.Texts, text)
				}
			}
			p.Curves = append(p.Curves, curve)
		}
		c.Panels = append(c.Panels, p)
	}
	return picture{"results-headline", "Lowest tenant ρ, unfair tenant days and mean completion time of fairlease, plain Slurm and Slurm's preemption", []report.Chart{c}}
}

// distributions draws how jobs fare under each scheduler: ASTRAEA's Figures 10 and 12, of the runs with rounds of 10 s.
func distributions(scenes []string, has map[run]*score.Scores) picture {
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
	return picture{"results-jobs", "How jobs fare", charts}
}

// cumulated makes a curve of values at equal steps of share, between bounds.
func cumulated(name string, values []float64, least, most float64) report.Curve {
	c := report.Curve{Name: name}
	for i, v := range values {
		c.X, c.Y = append(c.X, min(max(v, least), most)), append(c.Y, 100*float64(i)/float64(len(values)-1))
	}
	return c
}
