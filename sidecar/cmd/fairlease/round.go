package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/round"
	"github.com/fairlease/fairlease/sidecar/view"
)

func (p *program) round() *cobra.Command {
	var l view.Form
	var dry, audit bool
	c := &cobra.Command{Use: "round [--dry-run [--audit]]", Short: "make one round by hand, or show what it would do", Args: exactly(),
		Long: `Make one round by hand: look, decide, write down, act as far as the mode allows. It takes the
seat for that; while a daemon is seated it refuses.

With --dry-run nothing is written and nothing changed, whoever is seated. Without a configured
database it decides as if it had never looked before. Where the preset divides GPU models that are not alike,
it tells who would be due what of each model, and the trades; with --audit also how fair that is:

  INCENTIVE   what a tenant is due, over a part of every model by weight: below 1 it would rather be alone
  MOST_ENVY   what it would have with another's GPUs, over what it has: above 1 it would rather have those
  SAYS+20%    what it would gain by speedups said to be a fifth higher than they are (-20%: lower)`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			if dry {
				return round.Preview(c.Context(), cfg, p.page(l), audit)
			}
			if audit {
				return &failure.Error{Code: failure.Misuse, What: "--audit goes with --dry-run only", Next: "see " + c.CommandPath() + " --help"}
			}
			return round.Once(c.Context(), cfg, p.page(l))
		}}
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done")
	c.Flags().BoolVar(&audit, "audit", false, "with --dry-run, tell how fair it is what the preset divides")
	listFlags(c, &l)
	return c
}
