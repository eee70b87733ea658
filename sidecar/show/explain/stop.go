package explain

import (
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Saving says in words when a job saves. span writes lengths of time; nil = for people, exactly what a person declared.
func Saving(s *cluster.Saving, span func(cluster.Span) string) string {
	if span == nil {
		span = cluster.Span.String
		if s.Source == cluster.FromDeclaration || s.Source == cluster.FromSite {
			span = cluster.Span.Exact
		}
	}
	takes := ""
	if s.Takes > 0 {
		takes = ", which takes " + span(s.Takes)
	}
	switch s.Manner {
	case cluster.SavesOnNotice:
		if s.Signal == cluster.NoSignal {
			return "on the notice, without a signal" + takes
		}
		return "on the notice" + before(" ", s.Signal) + takes
	case cluster.SavesOnTerm:
		return "on SIGTERM, within Slurm's KillWait" + takes
	case cluster.SavesEvery:
		return "every " + span(s.Every) + takes
	case cluster.SavesNever:
		return "never"
	}
	return "unknown, which counts as never"
}

// Saves says how a job saves, and the evidence with its age, in lines.
func (w Words) Saves(r *cluster.StopReport) []string {
	s := &r.Saving
	out := []string{Saving(s, nil)}
	if s.Source != cluster.FromNowhere {
		known := join(": ", rank[s.Source], s.Evidence)
		if s.At > 0 {
			known += ", " + w.Time(s.At)
		}
		out = append(out, known)
	} else {
		out = append(out, "no evidence: it has no declaration (--comment=saves=30m), and no requeue of its type was observed")
	}
	if s.Source == cluster.FromConduct && s.Resumes == cluster.UnknownResumption {
		out = append(out, "a resumption from its saves has not been observed yet")
	}
	if h := r.Habit; h != nil && h.Resumed+h.Restarted > 0 {
		out = append(out, fmt.Sprintf("of its type, %d resumed from a save after a requeue, %d restarted from the beginning", h.Resumed, h.Restarted))
	}
	if r.Short {
		out = append(out, fmt.Sprintf("the notice is too short for that: %s of %s (lease.notice); it counts as never", r.Notice, s.Takes))
	}
	return out
}

// rank names the kind of evidence.
var rank = map[cluster.SavingSource]string{
	cluster.FromConduct:     "observed",
	cluster.FromDeclaration: "declared",
	cluster.FromSite:        "configured",
}

// Stops says when a job may be stopped, what a stop would cost and what its stops have cost, in
// lines.
func (w Words) Stops(r *cluster.StopReport) []string {
	if r.Off {
		return []string{"may be stopped at any time: the site has no stop budget (stop.allowance, stop.overhead)"}
	}
	so := "was never stopped"
	if r.Stops > 0 {
		so = fmt.Sprintf("%s so far, which cost it %s", times(r.Stops), r.Spent)
		if r.Beyond > 0 {
			so += fmt.Sprintf("; %s beyond its stop budget, for recalls of lent GPUs or overrides", times(r.Beyond))
		}
	}
	budget := max(r.Budget, 0)
	out := []string{so, fmt.Sprintf("a stop now would cost it %s, including a start of %s; its budget is %s", r.Cost.Beside(budget), r.Begin, budget.Beside(r.Cost))}
	switch {
	case r.Dear != "":
		return append(out, "is not stopped now: the cost of all stops on "+r.Dear+" GPUs has reached its limit (stop.total)")
	case r.May && w.past(r.Until):
		return append(out, "could be stopped until "+w.Time(r.Until)+w.then(r))
	case r.May && r.Until > 0:
		return append(out, "may be stopped until "+w.Time(r.Until)+w.then(r))
	case r.May:
		return append(out, "may be stopped when its lease ends")
	case w.past(r.From):
		return append(out, "may be stopped since "+w.Time(r.From))
	case r.From > 0:
		return append(out, "may be stopped from "+w.Time(r.From)+" on")
	case r.Saving.Resumes == cluster.Restarted:
		return append(out, "it will not be stopped again before it ends, since it would restart from the beginning")
	}
	return append(out, "it will not be stopped before it ends, since that would exceed its budget")
}

// Destroyed says what a job's stops destroyed, and how certain that is; "" = nothing.
func Destroyed(r *cluster.Record) string {
	known, unknown := r.KnownLost, r.UnknownLost
	bounded := r.Lost - known - unknown
	var parts []string
	add := func(how string, time cluster.GPUTime) { parts = append(parts, fmt.Sprintf(how, GPUTime(time))) }
	if known > 0 {
		add("exactly %s, by its reported saves, or since it restarts from the beginning", known)
	}
	switch most := r.MostLost - known - unknown; {
	case most > bounded:
		add("at most %s", most)
		if bounded > 0 {
			add("%s if it saves as it declares or is known to", bounded)
		} else {
			parts = append(parts, "nothing if it saves as it declares or is known to")
		}
	case bounded > 0:
		add("%s if it saves as it declares or is known to", bounded)
	}
	if unknown > 0 {
		add("at most %s: how it saves is unknown, so this assumes that it never does", unknown)
	}
	if len(parts) == 0 {
		return ""
	}
	return "its stops destroyed " + strings.Join(parts, "; ") + "; this is overhead and does not count as received"
}

// GPUTime gives GPU time in a suitable unit.
func GPUTime(g cluster.GPUTime) string {
	if h := g.Hours(); h >= 1 {
		return fmt.Sprintf("%.2f GPU-hours", h)
	}
	return fmt.Sprintf("%.2f GPU-minutes", 60*g.Hours())
}

// then says what follows the last moment at which a job may be stopped.
func (w Words) then(r *cluster.StopReport) string {
	if r.Saving.Manner == cluster.SavesEvery {
		return ", and again after its next save"
	}
	return ", then not before it ends"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// before puts a lead before a non-empty text.
func before(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}
