package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

func statusCommand(p *program) *cobra.Command {
	var l view.Form
	var server string
	c := &cobra.Command{Use: "status", Short: "show the state of the daemon, the GPUs and the jobs", Args: exactly(),
		Long: `Show the leading daemon, those that stand by, the time of the last round, and the state of GPUs and jobs,
from the journal.
OUT_OF_REACH counts healthy GPUs, busy or idle, that cannot be leased: jobs that fairlease leaves alone hold
them, or others have reserved them. Where the preset divides heterogeneous GPU models, status also shows each
tenant's throughput on:

  NOW            the GPUs that its jobs hold
  DUE            the GPUs that it is due, after division and trades
  BY_WEIGHT      the part of its share by weight that its jobs can use, without trades
  RATIO          NOW over BY_WEIGHT: above 1, division and trades raise its throughput

The exit code is 1 when no daemon gives signs of life.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withSite(c.Context(), server, func(s *ask.Site) error {
				st, err := s.Status(c.Context())
				if err != nil {
					return err
				}
				page := p.page(l)
				if l.JSON {
					err = page.Encode(st)
				} else {
					st.Write(page)
				}
				if err == nil && !st.Alive {
					return failure.Quiet(failure.No)
				}
				return err
			})
		}}
	listFlags(c, &l)
	serverFlag(c, &server)
	return c
}
