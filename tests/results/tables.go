package main

import (
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// measure is a column.
type measure struct {
	head, format string
	of           func(*score.Scores) float64
}

var (
	unfairHours = measure{"unfair tenant hours %", "%.1f", func(s *score.Scores) float64 { return unfair(s, 1) }}
	unfairDays  = measure{"unfair tenant days %", "%.1f", func(s *score.Scores) float64 { return unfair(s, 24) }}
	lowestRho   = measure{"lowest tenant ρ", "%.2f", func(s *score.Scores) float64 { rho, _ := report.Lowest(*s); return rho }}
	lossJobs    = measure{"sharing-loss jobs %", "%.1f", func(s *score.Scores) float64 { return 100 * s.Loss.Share }}
	meanJCT     = measure{"mean JCT h", "%.1f", func(s *score.Scores) float64 { return s.Completion.Mean / 3600 }}
	p95JCT      = measure{"p95 JCT h", "%.0f", func(s *score.Scores) float64 { return s.Completion.P95 / 3600 }}
	slowdown    = measure{"mean slowdown", "%.1f", func(s *score.Scores) float64 { return s.Slowdown.Mean }}
	preemptions = measure{"preemptions", "%.0f", func(s *score.Scores) float64 { return float64(s.Preemptions) }}
	overhead    = measure{"overhead % of run", "%.2f", func(s *score.Scores) float64 { return 100 * s.Overhead.OfRun }}
	lost        = measure{"work lost % of run", "%.2f", func(s *score.Scores) float64 { return 100 * s.Overhead.Lost.OfRun }}
	unfinished  = measure{"unfinished jobs", "%.0f", func(s *score.Scores) float64 { return float64(s.Jobs.Unfinished) }}
	held        = measure{"held % of GPU time", "%.1f", func(s *score.Scores) float64 { return 100 * s.Utilisation }}
	scattered   = measure{"idle, and fits no waiting job %", "%.2f", func(s *score.Scores) float64 { return 100 * s.Fragmented }}
	inUse       = measure{"in use %", "%.1f", held.of}
)

// unfair is the percentage of the periods of so many hours in which a tenant received less than it was due.
func unfair(s *score.Scores, hours float64) float64 {
	for i := range s.Periods {
		if s.Periods[i].Hours == hours {
			return 100 * s.Periods[i].Ratio()
		}
	}
	return 0
}

// table is a table of the pages: rows of runs, whose least and most it prints.
type table struct {
	name, about string
	heads       []string // of the rows' names
	groups      []string // put before the measures' heads; nil = one group without
	measures    []measure
	rows        []row
	pictures    func(has map[run]*score.Scores) []picture
}

// row is a line of a table: its names, and the runs of each group.
type row struct {
	names []string
	runs  [][]run
}

func (t *table) runs() []run {
	var out []run
	for _, r := range t.rows {
		for _, group := range r.runs {
			out = append(out, group...)
		}
	}
	return out
}

// markdown writes the table.
func (t *table) markdown(has map[run]*score.Scores) string {
	heads := append([]string{}, t.heads...)
	for _, g := range append(t.groups, "")[:max(1, len(t.groups))] {
		for _, m := range t.measures {
			heads = append(heads, strings.TrimPrefix(g+"; "+m.head, "; "))
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, r := range t.rows {
		line := append([]string{}, r.names...)
		for _, group := range r.runs {
			for _, m := range t.measures {
				line = append(line, m.spread(group, has))
			}
		}
		fmt.Fprintf(&out, "| %s |\n", strings.Join(line, " | "))
	}
	return out.String()
}

// bounds gives the least and the most over runs.
func (m *measure) bounds(runs []run, has map[run]*score.Scores) (least, most float64) {
	least, most = m.of(has[runs[0]]), m.of(has[runs[0]])
	for _, r := range runs {
		least, most = min(least, m.of(has[r])), max(most, m.of(has[r]))
	}
	return least, most
}

// spread writes the bounds, or the one value that all runs have.
func (m *measure) spread(runs []run, has map[run]*score.Scores) string {
	least, most := m.bounds(runs, has)
	a, b := fmt.Sprintf(m.format, least), fmt.Sprintf(m.format, most)
	if a == b {
		return a
	}
	return a + " to " + b
}

// rounds gives a run with rounds of other lengths: nothing is drawn in most runs, and these are their spread.
func rounds(r run, seconds ...int) []run {
	var out []run
	for _, s := range seconds {
		r.Round = s
		out = append(out, r)
	}
	return out
}

// four are the lengths of rounds of most tables.
func four(r run) []run { return rounds(r, 10, 15, 20, 30) }

// sceneName is a scene as people write it.
func sceneName(scene string) string {
	return strings.NewReplacer("venus", "Venus, ", "philly", "Philly, ").Replace(scene)
}

// saving names manners of saving by the part of the jobs that save.
var saving = []struct{ name, saves string }{{"none", "never"}, {"half", "never:50,at-end:50"}, {"all", ""}}

// drawn gives runs with several lengths of rounds and, where half the jobs save, other draws of these.
func drawn(r run, seconds ...int) []run {
	out := rounds(r, seconds...)
	for i := range out {
		if strings.Contains(r.Saves, ",") {
			out[i].Seed = uint64(i + 1)
		}
	}
	return out
}

// tables lists all tables, the short ones first.
func tables() []table {
	return []table{window(), preemption(), order(), idle(), firstDay(), terms(), compact(), spread(), comparison(), sizes()}
}

// window is three days, with real jobs and made-up ones: a test holds it.
func window() table {
	t := table{name: "window", heads: []string{"jobs, nodes", "scheduler", "jobs save"}, measures: []measure{lowestRho, unfairHours, lossJobs, meanJCT, overhead},
		about: "The first three days of each trace, and of made-up jobs of the same shape, which run to their end within ten days; rounds of 10, 15, 20 and 30 s: least to most. A test (`go test ./tests/results`) holds it."}
	for _, madeUp := range []bool{false, true} {
		for _, scene := range map[bool][]string{false: {"venus40", "philly64"}, true: {"venus40", "philly32"}}[madeUp] {
			for _, by := range []string{"astraea", "slurm-multifactor"} {
				for _, s := range saving {
					if by != "astraea" && s.saves != "" || s.name == "half" {
						continue
					}
					name := sceneName(scene)
					if madeUp {
						name = "made up like " + name
					}
					t.rows = append(t.rows, row{[]string{name, by, s.name}, [][]run{four(run{Scene: scene, Scheduler: by, Saves: s.saves, MadeUp: madeUp, Window: 3, Days: 10})}})
				}
			}
		}
	}
	return t
}

// compared are the schedulers of the main comparison; the table of sizes has all.
var compared = []string{"astraea", "slurm-multifactor", "slurm-preempt", "quota-lend", "tiresias-l", "gandiva-fair", "shockwave", "srtf"}

// comparison is the main one, where GPUs are short.
func comparison() table {
	scenes := []string{"venus40", "philly64"}
	t := table{name: "comparison", heads: []string{"scheduler"}, measures: []measure{unfairDays, lowestRho, lossJobs, meanJCT},
		about: "Rounds of 10, 15, 20 and 30 s: least to most; all jobs save when their leases end, and run to their end."}
	for _, scene := range scenes {
		t.groups = append(t.groups, sceneName(scene))
	}
	for _, by := range compared {
		r := row{names: []string{by}}
		for _, scene := range scenes {
			r.runs = append(r.runs, four(run{Scene: scene, Scheduler: by}))
		}
		t.rows = append(t.rows, r)
	}
	t.pictures = func(has map[run]*score.Scores) []picture { return []picture{distributions(scenes, has)} }
	return t
}

// firstDay is a site on its first day, where no job saves yet, and later ones.
func firstDay() table {
	t := table{name: "first-day", heads: []string{"trace, nodes", "scheduler"}, measures: []measure{unfairDays, lowestRho, meanJCT, unfinished},
		about: "Rounds of 10, 20 and 30 s, each with other draws of the jobs that save: least to most; the runs end after 40 days. A mean leaves out the jobs that are unfinished."}
	for _, s := range saving {
		t.groups = append(t.groups, "save: "+s.name)
	}
	for _, scene := range []string{"venus60", "philly64"} {
		for _, by := range []string{"astraea", "slurm-multifactor", "slurm-preempt", "quota-lend"} {
			r := row{names: []string{sceneName(scene), by}}
			for _, s := range saving {
				r.runs = append(r.runs, drawn(run{Scene: scene, Scheduler: by, Saves: s.saves, Days: 40}, 10, 20, 30))
			}
			t.rows = append(t.rows, r)
		}
	}
	t.pictures = func(has map[run]*score.Scores) []picture {
		return []picture{headline(t.rows, has), bySaving(t.rows, has)}
	}
	return t
}

// preemption compares with Slurm's own.
func preemption() table {
	t := table{name: "preemption", heads: []string{"scheduler"}, measures: []measure{unfairDays, meanJCT, lost, unfinished},
		about: "Venus on 80 nodes until day 28, rounds of 10 and 20 s: least to most. A mean leaves out the jobs that are unfinished."}
	for _, s := range saving {
		t.groups = append(t.groups, "save: "+s.name)
	}
	for _, by := range []string{"astraea", "slurm-preempt", "slurm-multifactor"} {
		r := row{names: []string{by}}
		for _, s := range saving {
			r.runs = append(r.runs, drawn(run{Scene: "venus80", Scheduler: by, Saves: s.saves, Days: 28}, 10, 20))
		}
		t.rows = append(t.rows, r)
	}
	return t
}

// order compares the orders of a tenant's jobs.
func order() table {
	t := table{name: "order", heads: []string{"trace, nodes", "`jobs.order`"}, measures: []measure{unfairDays, lowestRho, lossJobs, meanJCT, p95JCT, preemptions, overhead},
		about: "Rounds of 10, 15, 20 and 30 s: least to most."}
	for _, scene := range []string{"venus40", "philly64"} {
		for _, o := range []string{"rho", "attained", "expected"} {
			t.rows = append(t.rows, row{[]string{sceneName(scene), o}, [][]run{four(run{Scene: scene, Scheduler: "astraea", Order: o})}})
		}
	}
	return t
}

// idle shows the GPUs that idle while jobs wait.
func idle() table {
	t := table{name: "idle", heads: []string{"scheduler"}, measures: []measure{held, scattered, meanJCT},
		about: "Rounds of 10 and 20 s: least to most. The rest of the GPU time is idle while no job waits, or is on its way to a job."}
	scenes := []string{"philly64", "venus72"}
	for _, scene := range scenes {
		t.groups = append(t.groups, sceneName(scene))
	}
	for _, x := range []struct {
		name string
		run
	}{{"astraea, `compact.max_cost` 0", run{Scheduler: "astraea", Scattered: true}}, {"astraea", run{Scheduler: "astraea"}}, {"gandiva-fair", run{Scheduler: "gandiva-fair"}}, {"tiresias-l", run{Scheduler: "tiresias-l"}}} {
		r := row{names: []string{x.name}}
		for _, scene := range scenes {
			x.Scene = scene
			r.runs = append(r.runs, rounds(x.run, 10, 20))
		}
		t.rows = append(t.rows, r)
	}
	return t
}

// compact compares settings of compact.max_cost.
func compact() table {
	t := table{name: "compact", heads: []string{"trace, nodes", "`compact.max_cost`"}, measures: []measure{unfairHours, unfairDays, lowestRho, lossJobs, meanJCT, preemptions, overhead},
		about: "Rounds of 10, 15, 20 and 30 s: least to most."}
	for _, scene := range []string{"philly64", "venus72", "venus40"} {
		for _, off := range []bool{true, false} {
			name := "25"
			if off {
				name = "0"
			}
			t.rows = append(t.rows, row{[]string{sceneName(scene), name}, [][]run{four(run{Scene: scene, Scheduler: "astraea", Scattered: off})}})
		}
	}
	return t
}

// spread is that of fairlease's runs.
func spread() table {
	t := table{name: "spread", heads: []string{"trace, nodes"}, measures: []measure{unfairHours, unfairDays, lowestRho, lossJobs, meanJCT, slowdown, overhead},
		about: "Rounds of 10, 15, 20 and 30 s: least to most."}
	for _, scene := range allScenes {
		t.rows = append(t.rows, row{[]string{sceneName(scene)}, [][]run{four(run{Scene: scene, Scheduler: "astraea"})}})
	}
	return t
}

var allScenes = []string{"venus40", "venus48", "venus60", "venus72", "venus100", "philly64", "philly140"}

// sizes is every scheduler on clusters of all sizes.
func sizes() table {
	t := table{name: "sizes", heads: []string{"trace, nodes", "scheduler"}, measures: []measure{unfairHours, unfairDays, lowestRho, lossJobs, meanJCT, p95JCT, slowdown, inUse, preemptions, overhead},
		about: "One run each, with rounds of 10 s."}
	for _, scene := range allScenes {
		for _, by := range experiment.Schedulers() {
			t.rows = append(t.rows, row{[]string{sceneName(scene), by}, [][]run{rounds(run{Scene: scene, Scheduler: by}, 10)}})
		}
	}
	return t
}

// terms is ASTRAEA's Figure 9.
func terms() table {
	t := table{name: "terms", heads: []string{"term"}, measures: []measure{unfairHours, unfairDays, lossJobs, meanJCT, preemptions, overhead},
		about: "ASTRAEA's Figure 9 on Venus with 60 nodes; rounds of 10 and 20 s: least to most."}
	for _, minutes := range []int{5, 10, 15, 20, 30, 60} {
		t.rows = append(t.rows, row{[]string{fmt.Sprintf("%d min", minutes)}, [][]run{rounds(run{Scene: "venus60", Scheduler: "astraea", Term: 60 * minutes}, 10, 20)}})
	}
	return t
}
