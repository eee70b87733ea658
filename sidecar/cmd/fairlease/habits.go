package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

func habitsCommand(p *program) *cobra.Command {
	var l view.Form
	c := &cobra.Command{Use: "habits [USER]", Short: "list how each job type saves, and the cost of its starts", Args: cobra.MaximumNArgs(1),
		Long: `List the evidence on each job type, as of the newest round. A job type is one user's submissions of one
command line with the same number of GPUs. Numbers in a command line are shown as #.

  SAVES      when it saves, by observation only; fairlease explain JOB shows a job's declaration
  RESUMED    attempts after a requeue, or completed jobs, that resumed from a save
  RESTARTED  attempts that started from the beginning
  REPORTS    reported saves
  COMPLETED  jobs that completed without a requeue, and their run time
  STARTS     time from a start to the first progress, by GPU model
  AGE        of the newest evidence`,
		RunE: func(c *cobra.Command, args []string) error {
			return remembered[view.Habit]{
				of: func(_ *cluster.Snapshot, plan *cluster.Plan) ([]view.Habit, error) {
					return view.Habits(plan.State.Habits), nil
				},
				fits:  func(x *view.Habit, user string) bool { return x.Type.User == user },
				none:  "the journal has no evidence on jobs of %s",
				table: view.HabitTable,
			}.show(c, p, l, args)
		}}
	listFlags(c, &l)
	return c
}
