package view

import (
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

// Habit is a habit with its conclusion.
type Habit struct {
	cluster.Habit
	Saving cluster.Saving `json:"saving"`
}

// Habits concludes how jobs of each type save.
func Habits(list []cluster.Habit) []Habit {
	all := make([]Habit, 0, len(list))
	for _, h := range list {
		if h.Type.Command == "" {
			continue // jobs of several types together, counted for jobs.order expected
		}
		all = append(all, Habit{Habit: h, Saving: stop.Resolve(nil, &h, cluster.Saving{}, cluster.Saving{})})
	}
	return all
}

// age gives the time since a moment; "" if it is not known.
func age(p *Page, at cluster.Instant) string {
	if at <= 0 || p.Now <= 0 {
		return ""
	}
	return Span(p.Form, max(p.Now.Sub(at), 0))
}

// HabitTable lists habits.
func HabitTable(p *Page, all []Habit) *Table {
	t := &Table{Head: []string{"USER", "COMMAND", ">GPUS", "SAVES", ">RESUMED", ">RESTARTED", ">REPORTS", "COMPLETED", "STARTS", ">AGE"},
		None: "No type of jobs is known yet: that takes reports, requeues or jobs that end by themselves."}
	var span func(cluster.Span) string
	if p.Parsable {
		span = cluster.Span.Slurm
	}
	for i := range all {
		x := &all[i]
		completed := ""
		if x.Completed > 0 {
			completed = fmt.Sprintf("%d in %s", x.Completed, Span(p.Form, x.Shortest))
			if x.Longest > x.Shortest {
				completed += " to " + Span(p.Form, x.Longest)
			}
		}
		var starts []string
		for _, s := range x.Starts {
			starts = append(starts, s.Model+" "+Span(p.Form, s.Mean))
		}
		saves := "unknown"
		if x.Saving.Manner != cluster.UnknownManner {
			saves = explain.Saving(&x.Saving, span)
		}
		t.Add(x.Type.User, x.Type.Command, fmt.Sprint(x.Type.GPUs), saves, fmt.Sprint(x.Resumed), fmt.Sprint(x.Restarted), fmt.Sprint(x.Reports), completed,
			strings.Join(starts, ", "), age(p, x.At))
	}
	return t
}
