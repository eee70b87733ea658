package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
	"github.com/fairlease/fairlease/sidecar/explain"
)

func (p *program) habits() *cobra.Command {
	var l listing
	c := &cobra.Command{Use: "habits [USER]", Short: "how each type of job saves, and what its starts cost", Args: cobra.MaximumNArgs(1),
		Long: `List what was learnt of each type of job (one user's submissions of one command line with as many GPUs),
as of the newest round. Numbers in a command line are written as #.

  SAVES      when it saves, by what it was seen to do alone: declarations are of single jobs (fairlease explain)
  RESUMED    attempts after a requeue, or completed jobs, that went on from a save
  RESTARTED  those that started from the beginning
  REPORTS    reported saves
  COMPLETED  jobs that completed without a requeue, and how long these ran
  STARTS     time from a start to the first progress, by GPU model
  AGE        of the newest evidence`,
		RunE: func(c *cobra.Command, args []string) error {
			return remembered[habitShown]{
				of: func(_ *cluster.Snapshot, plan *cluster.Plan) ([]habitShown, error) {
					return habitsShown(plan.Memory.Habits), nil
				},
				fits:  func(x *habitShown, user string) bool { return x.Type.User == user },
				none:  "nothing was learnt of jobs of %s",
				table: habitTable,
			}.show(c, p, l, args)
		}}
	l.flags(c)
	return c
}

// habitShown is a habit with what it tells.
type habitShown struct {
	cluster.Habit
	Saving cluster.Saving `json:"saving"`
}

func habitsShown(list []cluster.Habit) []habitShown {
	all := make([]habitShown, 0, len(list))
	for _, h := range list {
		all = append(all, habitShown{Habit: h, Saving: stop.Resolve(nil, &h, cluster.Saving{}, cluster.Saving{})})
	}
	return all
}

func habitTable(all []habitShown, now cluster.Instant) *table {
	t := &table{head: []string{"USER", "COMMAND", ">GPUS", "SAVES", ">RESUMED", ">RESTARTED", ">REPORTS", "COMPLETED", "STARTS", ">AGE"}}
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
		t.add(x.Type.User, x.Type.Command, fmt.Sprint(x.Type.GPUs), saves, fmt.Sprint(x.Resumed), fmt.Sprint(x.Restarted), fmt.Sprint(x.Reports), completed,
			strings.Join(starts, ", "), now.Sub(x.At).String())
	}
	return t
}
