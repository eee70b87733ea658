package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
)

func (p *program) profiles() *cobra.Command {
	var l view.Form
	c := &cobra.Command{Use: "profiles [KIND]", Short: "how fast each kind of job is on each GPU model", Args: cobra.MaximumNArgs(1),
		Long: `List what is known of how fast each kind of job runs on each GPU model, as of the newest round:

  KIND      tenant/name; without a tenant it is the site's, a reference for everybody
  BESIDE    kind of the jobs that share its GPUs
  STEPS/S   of the whole gang; 0 = it does not run there
  SPEEDUP   over the slowest model, of what counts; nothing = something surer counts
  BOUNDS    of the speedup
  SOURCE    observed, declared, or estimated from kinds that are like it
  SAMPLES   reports that an observed rate is the average of, or estimates' references
  SPREAD    standard deviation of these
  BASIS     who declared it (file = the administrator), or what an estimate was made of`,
		RunE: func(c *cobra.Command, args []string) error {
			return remembered[view.Profile]{
				of: func(snap *cluster.Snapshot, plan *cluster.Plan) ([]view.Profile, error) {
					if snap.Settings.Divide == "" {
						return nil, &failure.Error{Code: failure.No, What: "no policy divides unlike GPU models in the newest round",
							Next: "set preset to one of " + strings.Join(preset.Dividing(), ", ") + "; fairlease status tells whether rounds are made"}
					}
					return view.Profiles(snap, plan), nil
				},
				fits:  func(x *view.Profile, kind string) bool { return string(x.Kind) == kind || x.Kind.Name() == kind },
				none:  "nothing is known of a kind %q",
				table: view.ProfileTable,
			}.show(c, p, l, args)
		}}
	listFlags(c, &l)
	return c
}

func (p *program) trades() *cobra.Command {
	var l view.Form
	var all bool
	var limit int
	c := &cobra.Command{Use: "trades", Short: "which tenants have traded GPUs of unlike models", Args: exactly(),
		Long: `List the swaps of what tenants are due of a fast and a slow GPU model (preset gandiva-fair), those in
force first, newest first:

  FAST_TO    kind of jobs that gets fast GPUs and gives slow ones
  SLOW_TO    kind of jobs that gets slow GPUs and gives fast ones
  PRICE      slow GPUs for a fast one
  SPEEDUPS   what a fast GPU was worth to the two when they traded, in slow ones
  GAINS      what each gains, in GPUs of the model that is slowest to it
  UNDONE     how much went back, when, and why`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				list, err := s.Trades(c.Context(), all, limit)
				if err != nil {
					return err
				}
				page := p.page(l)
				if len(list) > 0 || l.JSON || l.Parsable {
					return p.list(c, page, s, page.TradeTable(list), list)
				}
				snap, plan, err := s.Last(c.Context())
				if err != nil {
					return err
				}
				page.NoTrades(&snap, &plan, all)
				return p.asOf(c, page, s)
			})
		}}
	c.Flags().BoolVarP(&all, "all", "a", false, "trades that are over, too")
	c.Flags().IntVar(&limit, "limit", 1000, "no more than `N`, the newest")
	listFlags(c, &l)
	return c
}
