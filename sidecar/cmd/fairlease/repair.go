package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

func repairCommand(p *program) *cobra.Command {
	c := &cobra.Command{Use: "repair", Short: "repair the journal after a wrong clock, or after the cluster was renamed",
		Long: `Repair the journal where rounds cannot. Stop the daemon first: a repair leads while it works.
Every repair needs a reason. The journal's table repairs records it, with its author.`,
		Args: subcommand, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(repairClockCommand(p), repairClusterCommand(p))
	return c
}

func repairClockCommand(p *program) *cobra.Command {
	return mendingCommand(p, &cobra.Command{Use: "clock --reason TEXT", Short: "set back books that are ahead of the present time",
		Long: `Set back books that are ahead of the present time. After a wrong clock, rounds stop until that moment has
come. The repair goes back to the last round before it and takes back the GPU time that later rounds
charged, also by day. The next round charges the GPU time received since, from Slurm's history. The
present time is PostgreSQL's: check it with fairlease doctor first.`},
		func(ctx context.Context, _ *config.Config, s *store.Store, lead *store.Leadership, r store.Repair) error {
			now, err := s.Clock(ctx)
			if err != nil {
				return err
			}
			b, err := lead.SetBack(ctx, now, r)
			if errors.Is(err, store.ErrNotAhead) {
				return &failure.Error{Code: failure.No, What: "nothing was repaired: " + err.Error(), Next: "if rounds have stopped all the same, run fairlease doctor"}
			}
			if err != nil {
				return err
			}
			w := p.page(view.Form{})
			if b.Right == 0 {
				p.printf("round %d was at %s; no earlier round is kept: the books start again in round %d\n", b.Newest, w.Time(cluster.InstantOf(b.At)), b.Repaired)
				return nil
			}
			p.printf("round %d was at %s; the books went back to round %d at %s, in round %d\n",
				b.Newest, w.Time(cluster.InstantOf(b.At)), b.Right, w.Time(cluster.InstantOf(b.RightAt)), b.Repaired)
			return nil
		})
}

func repairClusterCommand(p *program) *cobra.Command {
	return mendingCommand(p, &cobra.Command{Use: "cluster --reason TEXT", Short: "give the journal to the present Slurm cluster",
		Long: `Give the journal to the present Slurm cluster, after its ClusterName was changed or its slurmctld was
installed again. Job ids start again with a new slurmctld: jobs of the journal that Slurm no longer has
count as ended. Never do this for a different cluster: that needs a journal of its own (database.schema).`},
		func(ctx context.Context, cfg *config.Config, _ *store.Store, lead *store.Leadership, r store.Repair) error {
			client, err := connect.Slurm(cfg)
			if err != nil {
				return err
			}
			defer client.Close()
			seen, err := client.Observe(ctx, 0)
			if err != nil {
				return connect.SlurmAway(cfg, err)
			}
			was, err := lead.Rename(ctx, seen.Identity(), r)
			if err == nil {
				p.printf("the journal belonged to cluster %v and now belongs to cluster %v\n", was, seen.Identity())
			}
			return err
		})
}

// mendingCommand makes a command that repairs the journal with the lead.
func mendingCommand(p *program, c *cobra.Command, mend func(context.Context, *config.Config, *store.Store, *store.Leadership, store.Repair) error) *cobra.Command {
	var reason string
	c.Args = exactly()
	c.RunE = func(c *cobra.Command, _ []string) error {
		if strings.TrimSpace(reason) == "" {
			return &failure.Error{Code: failure.Misuse, What: "a repair needs a reason", Next: "add --reason 'why'"}
		}
		return p.withStore(c.Context(), func(cfg *config.Config, s *store.Store) (err error) {
			lead, err := s.Await(c.Context(), connect.Holder(), func(taken *store.TakenError) {
				fmt.Fprintf(p.err, "fairlease: by the journal %s leads; it gets up to %s to give a sign of life\n", taken.Holder, cluster.SpanOf(taken.Left))
			})
			var taken *store.TakenError
			if errors.As(err, &taken) {
				return &failure.Error{Code: failure.No, What: "nothing was repaired: " + taken.Error(), Next: "stop the daemon (systemctl stop fairlease, on a standby's host too), then repair"}
			}
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, lead.Resign(context.WithoutCancel(c.Context()))) }()
			return mend(c.Context(), cfg, s, lead, store.Repair{By: operate.Author(p.getenv("SUDO_USER")), Reason: strings.TrimSpace(reason)})
		}, "slurm", "gate")
	}
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` that the table repairs keeps")
	return c
}
