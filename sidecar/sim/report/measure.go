package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// measure is a score in tables.
type measure struct {
	Name, Unit string
	Better     int // 1 = higher is better, -1 = lower, 0 = neither
	digits     int
	of         func(score.Scores) (float64, bool) // false if the run has no such value
}

// part is a block of related measures, narrow enough for a terminal.
type part struct {
	Name     string
	Measures []measure
}

// Text gives a run's value for display; "-" if there is none.
func (m measure) Text(s score.Scores) string {
	v, ok := m.of(s)
	if !ok {
		return "-"
	}
	return grouped(strconv.FormatFloat(v, 'f', m.digits, 64))
}

// grouped puts commas between thousands.
func grouped(s string) string {
	whole, rest, dot := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		whole += "." + rest
	}
	return whole
}

// stat gives a value of a Stats that may be empty.
func stat(x score.Stats, v, unit float64) (float64, bool) { return v / unit, x.Count > 0 }

const hour, percent = 3600.0, 0.01

var (
	completionMean = measure{"mean JCT", "h", -1, 2, func(s score.Scores) (float64, bool) { return stat(s.Completion, s.Completion.Mean, hour) }}
	completionP95  = measure{"p95 JCT", "h", -1, 2, func(s score.Scores) (float64, bool) { return stat(s.Completion, s.Completion.P95, hour) }}
	utilisation    = measure{"utilisation", "% of GPUs", 1, 1, func(s score.Scores) (float64, bool) { return s.Utilisation / percent, len(s.Use.Capacity) > 0 }}
	delayMean      = measure{"mean delay", "h", -1, 2, func(s score.Scores) (float64, bool) { return stat(s.Wait, s.Wait.Mean, hour) }}
	slowdownMean   = measure{"mean slowdown", "×", -1, 2, func(s score.Scores) (float64, bool) { return stat(s.Slowdown, s.Slowdown.Mean, 1) }}
	overheadOfRun  = measure{"overhead", "% of run", -1, 2, func(s score.Scores) (float64, bool) { return stat(s.Completion, s.Overhead.OfRun, percent) }}
	lossShare      = measure{"sharing loss", "% of jobs", -1, 1, func(s score.Scores) (float64, bool) { return stat(s.JobRho, s.Loss.Share, percent) }}
)

var lowestRho = measure{"lowest rho", "of a tenant", 1, 3, Lowest}

// Lowest gives the smallest rho of a tenant over the whole run, of those that were due something; false if none was.
func Lowest(s score.Scores) (float64, bool) {
	due := slices.DeleteFunc(slices.Clone(s.Tenants), func(t score.Tenant) bool { return t.Due == 0 })
	if len(due) == 0 {
		return 0, false
	}
	return slices.MinFunc(due, func(a, b score.Tenant) int { return cmp.Compare(a.Rho, b.Rho) }).Rho, true
}

// unfair gives the share of a run's unfair tenant periods, of the i-th length.
func unfair(i int, hours float64) measure {
	return measure{"unfair " + length(hours), "% of periods", -1, 1, func(s score.Scores) (float64, bool) {
		if i >= len(s.Periods) {
			return 0, false
		}
		return stat(s.Periods[i].Rho, s.Periods[i].Ratio(), percent)
	}}
}

// parts gives the measures in tables of these runs.
func parts(runs []score.Scores) []part {
	fairness := part{Name: "Fairness"}
	if len(runs) > 0 {
		for i, p := range runs[0].Periods {
			fairness.Measures = append(fairness.Measures, unfair(i, p.Hours))
		}
		for i, p := range runs[0].Periods {
			fairness.Measures = append(fairness.Measures, measure{"median rho " + length(p.Hours), "of tenants", 0, 3, func(s score.Scores) (float64, bool) {
				if i >= len(s.Periods) {
					return 0, false
				}
				return stat(s.Periods[i].Rho, s.Periods[i].Rho.Median, 1)
			}})
		}
	}
	fairness.Measures = append(fairness.Measures,
		lowestRho,
		lossShare,
		measure{"median rho", "of jobs", 0, 3, func(s score.Scores) (float64, bool) { return stat(s.JobRho, s.JobRho.Median, 1) }},
		measure{"wait longer", "tenants", -1, 0, func(s score.Scores) (float64, bool) {
			longer := 0
			for _, a := range s.Audit {
				if a.Longer {
					longer++
				}
			}
			return float64(longer), s.Audit != nil
		}})
	return []part{fairness, {Name: "Time", Measures: []measure{
		completionMean,
		{"median JCT", "h", -1, 2, func(s score.Scores) (float64, bool) { return stat(s.Completion, s.Completion.Median, hour) }},
		completionP95,
		{"p99 JCT", "h", -1, 2, func(s score.Scores) (float64, bool) { return stat(s.Completion, s.Completion.P99, hour) }},
		delayMean,
		{"p95 delay", "h", -1, 2, func(s score.Scores) (float64, bool) { return stat(s.Wait, s.Wait.P95, hour) }},
		slowdownMean,
		{"p95 slowdown", "×", -1, 2, func(s score.Scores) (float64, bool) { return stat(s.Slowdown, s.Slowdown.P95, 1) }},
		{"makespan", "h", -1, 1, func(s score.Scores) (float64, bool) { return stat(s.Completion, s.Makespan, hour) }},
	}}, {Name: "Use", Measures: []measure{
		utilisation,
		{"fragmented", "% of GPUs", -1, 2, func(s score.Scores) (float64, bool) {
			return s.Fragmented / percent, len(s.Use.Capacity) > 0 && s.Fragmented >= 0
		}},
		{"preemptions", "", 0, 0, func(s score.Scores) (float64, bool) { return float64(s.Preemptions), true }},
		overheadOfRun,
		{"work lost", "% of run", -1, 2, func(s score.Scores) (float64, bool) { return stat(s.Completion, s.Overhead.Lost.OfRun, percent) }},
		{"overhead", "% of JCT", 0, 2, func(s score.Scores) (float64, bool) { return stat(s.Completion, s.Overhead.OfCompletion, percent) }},
		{"finished", "jobs", 0, 0, func(s score.Scores) (float64, bool) { return float64(s.Jobs.Finished), true }},
		{"withdrawn", "jobs", 0, 0, func(s score.Scores) (float64, bool) { return float64(s.Jobs.Withdrawn), true }},
		{"unfinished", "jobs", 0, 0, func(s score.Scores) (float64, bool) { return float64(s.Jobs.Unfinished), true }},
	}}}
}

// ended gives the runs that leave no more jobs unfinished than others, but for one in a hundred. The means of the others leave out the jobs
// that would make them worse.
func ended(runs []score.Scores) []score.Scores {
	least := math.MaxInt
	for i := range runs {
		least = min(least, runs[i].Jobs.Unfinished)
	}
	return slices.DeleteFunc(slices.Clone(runs), func(s score.Scores) bool {
		return (s.Jobs.Unfinished-least)*100 > s.Jobs.Finished+s.Jobs.Unfinished
	})
}

// leads tells whether a run has the best value of some runs.
func (m measure) leads(s score.Scores, runs []score.Scores) bool {
	return m.Text(s) == m.best(runs) && slices.ContainsFunc(ended(runs), func(r score.Scores) bool { return r.Scheduler == s.Scheduler })
}

// best gives the text of the best value of some runs; "" if fewer than two values differ. Runs that do not end count for nothing.
func (m measure) best(runs []score.Scores) string {
	best, text, differ := 0.0, "", false
	for _, s := range ended(runs) {
		v, ok := m.of(s)
		if !ok {
			continue
		}
		t := m.Text(s)
		differ = differ || text != "" && t != text
		if text == "" || float64(m.Better)*(v-best) > 0 {
			best, text = v, t
		}
	}
	if m.Better == 0 || !differ {
		return ""
	}
	return text
}

// title gives a figure's title with the best run or, for a single one, its value.
func (m measure) title(best string, runs []score.Scores) string {
	if len(runs) > 1 {
		return best + ": " + m.winners(runs)
	}
	unit, _, _ := strings.Cut(m.Unit, " ")
	return strings.ToUpper(m.Name[:1]) + m.Name[1:] + ": " + m.Text(runs[0]) + " " + unit
}

// winners names the best runs, as the end of a title.
func (m measure) winners(runs []score.Scores) string {
	best := m.best(runs)
	if best == "" {
		return "no difference"
	}
	var names []string
	for _, s := range runs {
		if m.leads(s, runs) {
			names = append(names, s.Scheduler)
		}
	}
	if len(names) > 2 {
		names = []string{fmt.Sprintf("%d schedulers", len(names))}
	}
	unit, _, _ := strings.Cut(m.Unit, " ")
	return fmt.Sprintf("%s (%s %s)", strings.Join(names, " and "), best, unit)
}

// length names a period.
func length(hours float64) string { return strconv.FormatFloat(hours, 'f', -1, 64) + " h" }

// group is the runs of one trace on one size of cluster.
type group struct {
	Trace       string
	Nodes, GPUs int
	Runs        []score.Scores
}

// groups collects comparable runs: traces in their order, then sizes, small ones first, and
// schedulers in their order.
func groups(runs []score.Scores) []group {
	var out []group
	order := map[string]int{}
	for _, s := range runs {
		if _, ok := order[s.Trace]; !ok {
			order[s.Trace] = len(order)
		}
		i := slices.IndexFunc(out, func(g group) bool { return g.Trace == s.Trace && g.Nodes == s.Nodes && g.GPUs == s.GPUs })
		if i < 0 {
			i = len(out)
			out = append(out, group{Trace: s.Trace, Nodes: s.Nodes, GPUs: s.GPUs})
		}
		out[i].Runs = append(out[i].Runs, s)
	}
	slices.SortStableFunc(out, func(a, b group) int {
		return cmp.Or(cmp.Compare(order[a.Trace], order[b.Trace]), cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.Nodes, b.Nodes))
	})
	return out
}

// Size names the cluster's size.
func (g group) Size() string {
	nodes := "nodes"
	if g.Nodes == 1 {
		nodes = "node"
	}
	return fmt.Sprintf("%s %s, %s GPUs", grouped(strconv.Itoa(g.Nodes)), nodes, grouped(strconv.Itoa(g.GPUs)))
}

// Saves says how jobs were assumed to save. If runs differ in it, each is named.
func (g group) Saves() []string {
	var lines []string
	for _, s := range g.Runs {
		if line := "Jobs are taken to save: " + s.Saves; s.Saves != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) < 2 && !slices.ContainsFunc(g.Runs, func(s score.Scores) bool { return s.Saves == "" }) {
		return lines
	}
	lines = nil
	for _, s := range g.Runs {
		if s.Saves != "" {
			lines = append(lines, "Jobs are taken to save, in "+s.Scheduler+": "+s.Saves)
		}
	}
	return lines
}
