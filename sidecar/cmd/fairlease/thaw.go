package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

func thawCommand(p *program) *cobra.Command {
	var l view.Form
	var all bool
	c := &cobra.Command{Use: "thaw", Short: "resume jobs that take turns on GPUs, if nobody else does", Args: exactly(),
		Long: `Resume jobs that the daemon suspended for another job on their GPU (sharing.slices), if no daemon leads, and those
that the leading daemon should have resumed already: a turn and three rounds have passed. fairlease-thaw.timer runs
this, so that no job stays suspended when the daemon or its host is gone. It works without PostgreSQL, by the state
file and the heartbeats of this host.

With --all it resumes all such jobs at once. The unit of the daemon does that when the daemon ends. A daemon
that goes on suspends them again in turn.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.reach("database", "slurm", "files", "interval", "sharing", "partitions")
			if err != nil {
				return err
			}
			t := &operate.Thaw{Config: cfg, All: all, Errors: p.err, Now: p.clock()}
			return t.Do(c.Context(), p.page(l))
		}}
	c.Flags().BoolVar(&all, "all", false, "resume all jobs that are suspended for another job on their GPU")
	c.Flags().BoolVar(&l.JSON, "json", false, "write JSON")
	return c
}
