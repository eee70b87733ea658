package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/connect"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/moment"
	"github.com/fairlease/fairlease/sidecar/override"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
)

// order makes the command exempt, boost or freeze.
func (p *program) order(kind, short string) *cobra.Command {
	var until, reason string
	c := &cobra.Command{Use: kind + " JOB|USER|TENANT --until WHEN --reason TEXT", Short: short, Args: exactly("a job, a user or a tenant"),
		Long: "Override fairlease: " + short + `.

  JOB      a job id: 123; 123_4 for one task of an array; the array's id for all its tasks
  USER     a user's name; user:NAME where a tenant has the same name
  TENANT   a tenant's name; tenant:NAME where a user has the same name

The narrowest override counts: a task's, then its array's, its user's, its tenant's. Every override
has an end and a reason, which explain shows. It takes effect in the next round. fairlease override
lists and ends overrides.`,
		Example: fmt.Sprintf("  fairlease %s 4711 --until 2h --reason 'paper deadline'\n  fairlease %s tenant:nlp --until 2030-01-31T18:00 --reason 'as agreed'", kind, kind),
		RunE: func(c *cobra.Command, args []string) error {
			end, err := moment.Ahead(until, p.clock().In(p.zone()))
			if err != nil {
				return &failure.Error{Code: failure.Misuse, What: "--until " + err.Error()}
			}
			if strings.TrimSpace(reason) == "" {
				return &failure.Error{Code: failure.Misuse, What: "an override needs a reason", Next: "add --reason 'why'"}
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				scope, name, err := override.Target(args[0], func() (cluster.Snapshot, error) {
					snap, _, err := s.Last(c.Context())
					return snap, err
				})
				if err != nil {
					return err
				}
				id, err := s.AddOverride(c.Context(), cluster.Override{Kind: cluster.OverrideKind(kind), Scope: scope, Name: name,
					Until: cluster.InstantOf(end), Reason: strings.TrimSpace(reason), By: override.By(p.getenv("SUDO_USER"))})
				if err != nil {
					return &failure.Error{Code: failure.No, What: "the override was not recorded", Err: err, Next: connect.OrRole(err, "")}
				}
				p.printf("override %d: %s %s %s until %s; it takes effect in the next round\n", id, kind, scope, name, p.page(view.Form{}).Time(cluster.InstantOf(end)))
				return nil
			})
		}}
	c.Flags().StringVar(&until, "until", "", "`WHEN` it ends: 2h, 1-12:00:00, 2030-01-31, 2030-01-31T18:00")
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` that explain shows")
	return c
}

func (p *program) override() *cobra.Command {
	c := &cobra.Command{Use: "override", Short: "list and end overrides: exempt, boost, freeze",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(p.overrideList(), p.overrideEnd())
	return c
}

func (p *program) overrideList() *cobra.Command {
	var l view.Form
	var all bool
	c := &cobra.Command{Use: "list", Short: "list the overrides in force", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				orders, err := s.Overrides(c.Context(), 1000)
				if err != nil {
					return err
				}
				if !all {
					orders = slices.DeleteFunc(orders, func(o store.Order) bool { return o.Ended != nil || o.Until.Before(p.clock()) })
				}
				page := p.page(l)
				return page.List(page.OrderTable(orders), orders)
			})
		}}
	c.Flags().BoolVarP(&all, "all", "a", false, "include overrides that have ended")
	listFlags(c, &l)
	return c
}

func (p *program) overrideEnd() *cobra.Command {
	return &cobra.Command{Use: "end ID", Short: "end an override before its time", Args: exactly("the number of an override"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%q is not the number of an override", args[0]), Next: "fairlease override list shows the numbers"}
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				if err := s.EndOverride(c.Context(), id, override.By(p.getenv("SUDO_USER"))); err != nil {
					return &failure.Error{Code: failure.No, What: fmt.Sprintf("override %d was not ended", id), Err: err, Next: connect.OrRole(err, "fairlease override list shows those in force")}
				}
				p.printf("override %d has ended; this takes effect in the next round\n", id)
				return nil
			})
		}}
}
