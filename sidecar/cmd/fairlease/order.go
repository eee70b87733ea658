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
		Long: "Order fairlease to " + short + `.

What it is for: a job id (123, 123_4 for one task of an array, the array's 123 for all of them), or
a user's or tenant's name; where both a user and a tenant have that name, write user:NAME or
tenant:NAME. The narrowest order counts: a task's, then its array's, its user's, its tenant's.
Every order has an end and a reason, which others read in explain. It takes effect in the next
round; fairlease override lists and ends orders.`,
		Example: fmt.Sprintf("  fairlease %s 4711 --until 2h --reason 'paper deadline'\n  fairlease %s tenant:nlp --until 2030-01-31T18:00 --reason 'as agreed'", kind, kind),
		RunE: func(c *cobra.Command, args []string) error {
			end, err := moment.Ahead(until, p.clock().In(p.zone()))
			if err != nil {
				return &failure.Error{Code: failure.Misuse, What: "--until " + err.Error()}
			}
			if strings.TrimSpace(reason) == "" {
				return &failure.Error{Code: failure.Misuse, What: "an order needs a reason, others will ask", Next: "add --reason 'why'"}
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
					return &failure.Error{Code: failure.No, What: "the order was not given", Err: err, Next: connect.OrRole(err, "")}
				}
				p.printf("order %d: %s %s %s until %s; it takes effect in the next round\n", id, kind, scope, name, p.page(view.Form{}).Time(cluster.InstantOf(end)))
				return nil
			})
		}}
	c.Flags().StringVar(&until, "until", "", "`WHEN` it ends: 2h, 1-12:00:00, 2030-01-31, 2030-01-31T18:00")
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why")
	return c
}

func (p *program) override() *cobra.Command {
	c := &cobra.Command{Use: "override", Short: "list and end the orders exempt, boost and freeze",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(p.overrideList(), p.overrideEnd())
	return c
}

func (p *program) overrideList() *cobra.Command {
	var l view.Form
	var all bool
	c := &cobra.Command{Use: "list", Short: "list orders in force", Args: exactly(),
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
	c.Flags().BoolVarP(&all, "all", "a", false, "orders that are over, too")
	listFlags(c, &l)
	return c
}

func (p *program) overrideEnd() *cobra.Command {
	return &cobra.Command{Use: "end ID", Short: "end an order before its time", Args: exactly("the number of an order"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%q is no order's number", args[0]), Next: "fairlease override list has them"}
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				if err := s.EndOverride(c.Context(), id, override.By(p.getenv("SUDO_USER"))); err != nil {
					return &failure.Error{Code: failure.No, What: fmt.Sprintf("order %d was not ended", id), Err: err, Next: connect.OrRole(err, "fairlease override list has those in force")}
				}
				p.printf("order %d is ended; that takes effect in the next round\n", id)
				return nil
			})
		}}
}
