package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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

// orderCommand makes the command exempt, boost or freeze.
func orderCommand(p *program, kind, short string) *cobra.Command {
	var until, reason string
	c := &cobra.Command{Use: kind + " JOB|USER|TENANT --until WHEN --reason TEXT", Short: short, Args: exactly("a job, a user or a tenant"),
		Long: "Override fairlease: " + short + `.

  JOB      a job id: 123; 123_4 for one task of an array; the array's id for all its tasks
  USER     a user's name; user:NAME where a tenant has the same name
  TENANT   a tenant's name; tenant:NAME where a user has the same name

The narrowest override counts: a task's, then its array's, its user's, its tenant's; an exemption and
a boost go together. Every override has an end and a reason, which explain shows. It takes effect in
the next round. One for a job ends with the job: another job that Slurm gives the same id has nothing
of it. fairlease override lists and ends overrides.`,
		Example: fmt.Sprintf("  fairlease %s 4711 --until 2h --reason 'paper deadline'\n  fairlease %s tenant:nlp --until 2030-01-31T18:00 --reason 'as agreed'", kind, kind),
		RunE: func(c *cobra.Command, args []string) error {
			end, err := operate.ParseFuture(until, p.clock().In(p.zone()))
			if err != nil {
				return &failure.Error{Code: failure.Misuse, What: "--until " + err.Error()}
			}
			if strings.TrimSpace(reason) == "" {
				return &failure.Error{Code: failure.Misuse, What: "an override needs a reason", Next: "add --reason 'why'"}
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				scope, name, err := operate.OverrideTarget(args[0], func() (cluster.Snapshot, error) {
					snap, _, err := s.Rounds.Last(c.Context())
					return snap, err
				})
				if err != nil {
					return err
				}
				o := cluster.Override{Kind: cluster.OverrideKind(kind), Scope: scope, Name: name,
					Until: cluster.InstantOf(end), Reason: strings.TrimSpace(reason), By: operate.Author(p.getenv("SUDO_USER"))}
				var to store.Target
				if scope == "job" {
					if to, err = target(c.Context(), p, s, &o); err != nil {
						return err
					}
				}
				id, err := s.Overrides.Add(c.Context(), o)
				if err != nil {
					return &failure.Error{Code: failure.No, What: "the override was not recorded", Err: err, Next: connect.OrRole(err, "")}
				}
				p.printf("override %d: %s %s %s until %s; it takes effect in the next round\n", id, kind, scope, name, p.page(view.Form{}).Time(cluster.InstantOf(end)))
				for _, line := range operate.OverrideEffect(o.Kind, scope, name, to.Waiting, to.Running) {
					p.printf("%s\n", line)
				}
				return nil
			})
		}}
	c.Flags().StringVar(&until, "until", "", "`WHEN` it ends: 2h, 1-12:00:00, 2030-01-31, 2030-01-31T18:00")
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` that explain shows")
	return c
}

// target binds an override for a job to the job that has its id now.
func target(ctx context.Context, p *program, s *store.Store, o *cluster.Override) (store.Target, error) {
	id, err := cluster.ParseJobID(o.Name)
	if err != nil {
		return store.Target{}, &failure.Error{Code: failure.Misuse, What: err.Error()}
	}
	to, err := s.Overrides.TargetOf(ctx, id)
	switch {
	case errors.Is(err, store.ErrNone):
		f := &failure.Error{Code: failure.No, What: fmt.Sprintf("there is no job %s to %s", id, o.Kind), Err: errors.New("the journal has no job with GPUs of that id"),
			Next: fmt.Sprintf("check the id with squeue -j %d; a job that was just submitted is known after the next round", id.ID)}
		if _, task := id.Index(); task {
			f.Next = fmt.Sprintf("for a task of a large array that is not known yet, %s the whole array: fairlease %s %d", o.Kind, o.Kind, id.ID)
		}
		return store.Target{}, f
	case err != nil:
		return store.Target{}, err
	case to.Done != nil:
		return store.Target{}, &failure.Error{Code: failure.No, What: fmt.Sprintf("job %s of %s has ended", id, to.User), Err: fmt.Errorf("it was last seen at %s", p.page(view.Form{}).Time(cluster.InstantOf(*to.Done))),
			Next: fmt.Sprintf("for jobs that are submitted later: fairlease %s user:%s", o.Kind, to.User)}
	}
	o.Job, o.User = to.Key, to.User
	if to.Submitted != nil {
		o.Submit = cluster.InstantOf(*to.Submitted)
	}
	return to, nil
}

func overrideCommand(p *program) *cobra.Command {
	c := &cobra.Command{Use: "override", Short: "list and end overrides: exempt, boost, freeze",
		Args: subcommand, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(overrideListCommand(p), overrideEndCommand(p))
	return c
}

func overrideListCommand(p *program) *cobra.Command {
	var l view.Form
	var all bool
	c := &cobra.Command{Use: "list", Short: "list the overrides in force", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				orders, err := s.Overrides.List(c.Context(), 1000)
				if err != nil {
					return err
				}
				if !all {
					orders = slices.DeleteFunc(orders, func(o store.Override) bool { return o.Ended != nil || o.Until.Before(p.clock()) })
				}
				page := p.page(l)
				return page.List(page.OverrideTable(orders), orders)
			})
		}}
	c.Flags().BoolVarP(&all, "all", "a", false, "include overrides that have ended")
	listFlags(c, &l)
	return c
}

func overrideEndCommand(p *program) *cobra.Command {
	return &cobra.Command{Use: "end ID|JOB|USER|TENANT", Short: "end an override before its time", Args: exactly("the number of an override, or the job, user or tenant that it is for"),
		Long: `End an override before its time.

  ID       its number, as override list shows it; id:NUMBER where a job with an override has that id
  JOB      the job that it is for: 123, 123_4; job:123 where an override has that number
  USER     the user that it is for; user:NAME where a tenant has the same name
  TENANT   the tenant that it is for; tenant:NAME where a user has the same name`,
		RunE: func(c *cobra.Command, args []string) error {
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				orders, err := s.Overrides.List(c.Context(), math.MaxInt32)
				if err != nil {
					return err
				}
				var inForce []operate.Override
				for _, o := range orders {
					if o.Ended == nil && !o.Until.Before(p.clock()) {
						inForce = append(inForce, operate.Override{ID: o.ID, Kind: o.Kind, Scope: o.Scope, Name: o.Name})
					}
				}
				slices.Reverse(inForce)
				o, err := operate.FindOverride(args[0], inForce)
				if err != nil {
					return err
				}
				if err := s.Overrides.End(c.Context(), o.ID, operate.Author(p.getenv("SUDO_USER"))); err != nil {
					return &failure.Error{Code: failure.No, What: fmt.Sprintf("override %d was not ended", o.ID), Err: err, Next: connect.OrRole(err, "fairlease override list shows those in force")}
				}
				p.printf("%s has ended; this takes effect in the next round\n", o)
				return nil
			})
		}}
}
