package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/view"
)

func (p *program) habits() *cobra.Command {
	var l view.Form
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
			return remembered[view.Habit]{
				of: func(_ *cluster.Snapshot, plan *cluster.Plan) ([]view.Habit, error) {
					return view.Habits(plan.Memory.Habits), nil
				},
				fits:  func(x *view.Habit, user string) bool { return x.Type.User == user },
				none:  "nothing was learnt of jobs of %s",
				table: view.HabitTable,
			}.show(c, p, l, args)
		}}
	listFlags(c, &l)
	return c
}
