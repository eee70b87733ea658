package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

func profilesCommand(p *program) *cobra.Command {
	var l view.Form
	var check bool
	c := &cobra.Command{Use: "profiles [KIND]", Short: "list the throughput of each job type on each GPU model", Args: cobra.MaximumNArgs(1),
		Long: `List the throughput of each job type on each GPU model, as of the newest round:

  KIND      job type, tenant/name; without a tenant it is a reference of the site for all tenants
  BESIDE    job type that shares its GPUs
  STEPS/S   throughput of the whole gang; 0 = the job does not run there
  SPEEDUP   over the reference model, of the source that counts; empty = another source counts
  BOUNDS    of the speedup
  SOURCE    observed, declared, or an estimate: by completions (run times), counters (of GPUs),
            estimated from similar job types, or others (what other job types gain there)
  SAMPLES   reports in an observed average, or jobs of an estimate
  SPREAD    standard deviation of the samples; of an estimate its standard error
  BASIS     origin of a declaration (file = the administrator), or of an estimate

STEPS/S is empty if only the ratio between models is known. --check tests the sources instead. KNOWN counts the
job types and models that a source tells, OF all there are. Then what is known of a job type on one model is
hidden and estimated: TESTED counts such estimates, ERROR is the median of their errors, and nine in ten are at
most P90 off. Observations are hidden; of job types that report nothing, run times.`,
		RunE: func(c *cobra.Command, args []string) error {
			divides := func(snap *cluster.Snapshot) error {
				if snap.Settings.Divides() {
					return nil
				}
				return &failure.Error{Code: failure.No, What: "no policy divided heterogeneous GPU models in the newest round",
					Next: "set preset to one of " + strings.Join(preset.Dividing(), ", ") + "; check with fairlease status that rounds are made"}
			}
			if check && len(args) > 0 {
				return failure.Usage("--check tests the sources of all job types: leave %q out", args[0])
			}
			if check {
				return remembered[profile.Quality]{
					of: func(snap *cluster.Snapshot, plan *cluster.Plan) ([]profile.Quality, error) {
						return view.ProfileChecks(snap, plan), divides(snap)
					},
					table: view.ProfileCheckTable,
				}.show(c, p, l, nil)
			}
			return remembered[view.Profile]{
				of: func(snap *cluster.Snapshot, plan *cluster.Plan) ([]view.Profile, error) {
					list := view.Profiles(snap, plan)
					if len(list) > 0 { // other presets know of gangs, and of jobs that share GPUs
						return list, nil
					}
					return list, divides(snap)
				},
				fits:  func(x *view.Profile, kind string) bool { return string(x.Kind) == kind || x.Kind.Name() == kind },
				none:  "no throughput is known of a job type %q",
				table: view.ProfileTable,
			}.show(c, p, l, args)
		}}
	c.Flags().BoolVar(&check, "check", false, "test the sources of throughputs instead: coverage and errors")
	listFlags(c, &l)
	return c
}

func tradesCommand(p *program) *cobra.Command {
	var l view.Form
	var all bool
	var limit int
	var server string
	c := &cobra.Command{Use: "trades", Short: "list trades between GPU models", Args: exactly(),
		Long: `List trades: tenants swap entitlements of a fast and a slow GPU model (preset gandiva-fair), or tradable
cells of their virtual clusters. Trades in force come first, then the newest:

  FAST_TO    job type, or tenant, that gets fast GPUs and gives slow ones
  SLOW_TO    job type, or tenant, that gets slow GPUs and gives fast ones
  PRICE      slow GPUs per fast GPU
  SPEEDUPS   worth of a fast GPU to each side at the time of the trade, in slow GPUs
  GAINS      gain of each side, in GPUs of its slowest model
  UNDONE     amount that went back, when, and why`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withSite(c.Context(), server, func(s *ask.Site) error {
				list, err := s.Trades(c.Context(), all, limit)
				if err != nil {
					return err
				}
				page := p.page(l)
				if len(list) > 0 || l.JSON || l.Parsable {
					return p.list(c, page, s, page.TradeTable(list), list)
				}
				policy, tradable, err := s.Trading(c.Context())
				if err != nil {
					return err
				}
				if round, _, err := s.Newest(c.Context()); err == nil && round > 0 { // else asOf says so
					page.NoTrades(policy, tradable, all)
				}
				return p.asOf(c, page, s)
			})
		}}
	c.Flags().BoolVarP(&all, "all", "a", false, "include trades that have ended")
	c.Flags().IntVar(&limit, "limit", 1000, "at most `N`, the newest")
	listFlags(c, &l)
	serverFlag(c, &server)
	return c
}
