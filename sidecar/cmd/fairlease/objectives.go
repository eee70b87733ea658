package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

func objectivesCommand(p *program) *cobra.Command {
	var l view.Form
	var server string
	c := &cobra.Command{Use: "objectives", Short: "list how the site's objectives were kept over the last 28 days", Args: exactly(),
		Long: `List how the objectives of the site were kept over the last 28 days (objectives in the
configuration), for all tenants and for each:

  first_lease  jobs whose first lease began within the time that the site promises
  gpus         GPU time that was not idle while jobs waited for such GPUs
  rounds       beats of the daemon's clock with a round in time

  TARGET       percent of the events that should be good
  REACHED      percent that were
  BUDGET_LEFT  rest of the bad events that the target allows; below 0% = the objective was missed
  EVENTS, BAD  jobs, GPU-hours or beats: all, and bad ones`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withSite(c.Context(), server, func(s *ask.Site) error {
				st, err := s.Status(c.Context())
				if err != nil {
					return err
				}
				return p.list(c, p.page(l), s, view.ObjectiveTable(l, st.Objectives), append([]store.Objective{}, st.Objectives...))
			})
		}}
	listFlags(c, &l)
	serverFlag(c, &server)
	return c
}
