package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

func roundCommand(p *program) *cobra.Command {
	var l view.Form
	var dry, audit bool
	c := &cobra.Command{Use: "round [--dry-run [--audit]]", Short: "make one round by hand, or show what it would do", Args: exactly(),
		Long: `Make one round by hand: observe, decide, commit, and act if the mode allows it. The command leads while it
works; it refuses while a daemon leads.

With --dry-run nothing is written and nothing changes, even while a daemon leads. Without a configured
database it decides as in a first round. Where the preset divides heterogeneous GPU models, it shows what
each tenant would be due of each model, and the trades; with --audit also how fair that is:

  INCENTIVE   throughput of a tenant's share over that of its weight's part of every model; below 1: better alone
  MOST_ENVY   throughput with another tenant's GPUs over that with its own; above 1: envy
  SAYS+20%    gain from speedups declared a fifth too high (-20%: too low)`,
		RunE: func(c *cobra.Command, _ []string) error {
			read := p.config
			if dry {
				read = p.configInForce
			}
			cfg, err := read()
			if err != nil {
				return err
			}
			if dry {
				return operate.PreviewRound(c.Context(), cfg, p.page(l), audit)
			}
			if audit {
				return &failure.Error{Code: failure.Misuse, What: "--audit goes with --dry-run only", Next: "see " + c.CommandPath() + " --help"}
			}
			return operate.Round(c.Context(), cfg, p.page(l))
		}}
	c.Flags().BoolVar(&dry, "dry-run", false, "show the plan and change nothing")
	c.Flags().BoolVar(&audit, "audit", false, "with --dry-run, measure how fair the division is")
	listFlags(c, &l)
	return c
}
