package main

import (
	"time"

	"github.com/fairlease/fairlease/sidecar/daemon"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/spf13/cobra"
)

func releaseCommand(p *program) *cobra.Command {
	var l view.Form
	var dry, force, afterCrash bool
	var only daemon.Whose
	var patience time.Duration
	c := &cobra.Command{Use: "release", Short: "remove everything that fairlease set in Slurm", Args: exactly(),
		Long: `Give every waiting job back to Slurm as its user submitted it (begin time, required nodes, time
limit, priority), and remove the reservations of fairlease. Running jobs run on. release works without
PostgreSQL: it finds its changes in the local state file and in Slurm (the submit plugin's mark, names of
reservations), and in the journal where that can be reached.

With --tenant or --user it gives back only the waiting jobs of that tenant or user, and leaves reservations as they
are. Where the journal cannot be reached, a tenant's jobs are those of the account of its name. A note says if
Slurm has no job of that owner.

Stop the daemon first, or set mode: observe; otherwise the daemon gates the jobs again.

With --after-crash, as in the systemd unit, it reads $SERVICE_RESULT and does nothing after a clean
stop: gates then lapse by themselves, or a restarted daemon renews them. It releases only if this host's
daemon was the last leader and no daemon leads now, since a standby that crashes owns nothing in
Slurm. While PostgreSQL cannot be asked, it releases nothing. During the release it leads itself.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if result := p.getenv("SERVICE_RESULT"); afterCrash && (result == "success" || result == "") {
				p.printf("the daemon stopped cleanly: nothing is released, gates lapse by themselves\n")
				return nil
			}
			cfg, err := p.reach("database", "slurm", "gate", "files", "partitions")
			if err != nil {
				return err
			}
			b := &operate.Release{Config: cfg, Patience: patience, DryRun: dry, Only: only, Errors: p.err, Author: operate.Author(p.getenv("SUDO_USER"))}
			if afterCrash {
				return b.AfterCrash(c.Context(), p.page(l))
			}
			return b.ByHand(c.Context(), p.page(l), force)
		}}
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done")
	c.Flags().BoolVar(&force, "force", false, "release although a daemon leads; it gates the jobs again")
	c.Flags().BoolVar(&afterCrash, "after-crash", false, "only if the service did not stop cleanly")
	c.Flags().StringVar(&only.Tenant, "tenant", "", "only the jobs of the tenant `NAME`")
	c.Flags().StringVar(&only.User, "user", "", "only the jobs of the user `NAME`")
	c.MarkFlagsMutuallyExclusive("after-crash", "tenant")
	c.MarkFlagsMutuallyExclusive("after-crash", "user")
	timeVar(c, &patience, "patience", time.Minute, "`TIME` to wait for jobs that still clean up after a requeue")
	c.Flags().BoolVar(&l.JSON, "json", false, "write JSON")
	return c
}
