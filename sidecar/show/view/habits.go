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
func age(at, now cluster.Instant) string {
	if at <= 0 || now <= 0 {
		return ""
	}
	return max(now.Sub(at), 0).String()
}

// HabitTable lists habits.
func HabitTable(all []Habit, now cluster.Instant) *Table {
	t := &Table{Head: []string{"USER", "COMMAND", ">GPUS", "SAVES", ">RESUMED", ">RESTARTED", ">REPORTS", "COMPLETED", "STARTS", ">AGE"},
		None: "No type of jobs is known yet: that takes reports, requeues or jobs that end by themselves."}
	for i := range all {
		x := &all[i]
		completed := ""
		if x.Completed > 0 {
			completed = fmt.Sprintf("%d in %s", x.Completed, x.Shortest)
			if x.Longest > x.Shortest {
				completed += " to " + x.Longest.String()
			}
		}
		var starts []string
		for _, s := range x.Starts {
			starts = append(starts, s.Model+" "+s.Mean.String())
		}
		saves := "unknown"
		if x.Saving.Manner != cluster.UnknownManner {
			saves = explain.Saving(&x.Saving)
		}
		t.Add(x.Type.User, x.Type.Command, fmt.Sprint(x.Type.GPUs), saves, fmt.Sprint(x.Resumed), fmt.Sprint(x.Restarted), fmt.Sprint(x.Reports), completed,
			strings.Join(starts, ", "), age(x.At, now))
	}
	return t
}
