package main

import (
	"time"

	"github.com/fairlease/fairlease/sidecar/handback"
	"github.com/fairlease/fairlease/sidecar/view"
	"github.com/spf13/cobra"
)

func (p *program) release() *cobra.Command {
	var l view.Form
	var dry, force, afterCrash bool
	var patience time.Duration
	c := &cobra.Command{Use: "release", Short: "give every job back to Slurm, leave no trace", Args: exactly(),
		Long: `Give every waiting job back to Slurm as its user had it: begin time, required nodes, time
limit, priority; remove our reservations. Running jobs run on. It works without PostgreSQL: what
is ours it knows from the local state file and from Slurm (the submit plugin's mark, the names of
reservations), and from the journal where that can be reached.

Stop the daemon first, or set mode: observe, else the daemon gates again.

With --after-crash, as the systemd unit has it, it looks at what ended the daemon ($SERVICE_RESULT)
and does nothing after a clean stop: then gates lapse by themselves, or a restart goes on with them.
It releases only if this host's daemon was the last one in the seat and no daemon is seated now: a
standby that crashes owns nothing in Slurm. While PostgreSQL cannot tell, it releases nothing.
During the release it holds the seat itself.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if result := p.getenv("SERVICE_RESULT"); afterCrash && (result == "success" || result == "") {
				p.printf("the daemon stopped cleanly: nothing is released, gates lapse by themselves\n")
				return nil
			}
			cfg, err := p.config()
			if err != nil {
				return err
			}
			b := &handback.Back{Config: cfg, Patience: patience, DryRun: dry, Errors: p.err}
			if afterCrash {
				return b.AfterCrash(c.Context(), p.page(l))
			}
			return b.ByHand(c.Context(), p.page(l), force)
		}}
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done")
	c.Flags().BoolVar(&force, "force", false, "though a daemon is seated")
	c.Flags().BoolVar(&afterCrash, "after-crash", false, "only if the service did not stop cleanly")
	c.Flags().DurationVar(&patience, "patience", time.Minute, "`TIME` to wait for jobs that still clean up after a requeue")
	c.Flags().BoolVar(&l.JSON, "json", false, "write JSON")
	return c
}
