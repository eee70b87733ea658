package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/ask"
)

func tenantsCommand(p *program) *cobra.Command {
	var l view.Form
	var server string
	var debts, users bool
	var bound string
	c := &cobra.Command{Use: "tenants", Short: "list what each tenant is due, has and is owed, and its rho", Args: spanBeside(&bound),
		Long: `List every tenant in every pool (the GPUs of one model):

  SHARE     its part of the weights
  DUE       GPUs that it is due now if it wants them
  WANTS     GPUs that its jobs ask for
  HAS       GPUs that its jobs hold
  LENT      GPUs that it is due and others hold
  WAITING   number of its waiting jobs
  BEHIND    its deficit, as time at its due; negative = ahead
  RHO       GPU time received over GPU time due, in the window; 1 = exactly fair. Where the
            preset divides GPU models: work over work, on all models together
  RHO_ALL   the same since the first round
  OWED      GPU-hours of its due that others had while it wanted them; negative = it owes
            GPU-hours of others' dues. The debts of a pool sum to 0.
  REPAYS    GPUs of others' dues that it gets now as repayment; negative = it gives them
  EVEN      time until nothing is owed, at the present pace; paused = nothing is repaid now,
            - = nothing is owed

BEHIND is - for a tenant that is due nothing, and RHO for one that wants and has received nothing.

With --debts, list which tenant owes which other tenant, and how much. A pool has one account per
tenant, so each credit is spread over the debtors in proportion to their debts.
With --users, list the users of each tenant, if they share it equally (users: equal).
With --bound, list the GPUs of running jobs that cannot be taken back soon, by tenant, user and way:

  WAY       no_requeue, contiguous, session, het, other: words of opt_out (docs/gates.md)
            no_gpus: it has no GPUs, and others idle since it holds their CPUs or memory
            age: ran too long since its start; a stop would cost more than its stop budget
            saves: its saves are rare or slow; min_lease: its minimum lease has hours to go
            pool: its pool cannot afford its stop; exempt: by an administrator
            excluded, reservation, no_tenant, aside: left alone
  LONGER    GPUs bound for longer than SPAN (--bound=SPAN)
  BEYOND    GPUs beyond what the tenant is due now; jobs bound for longer come first
  SINCE     when the job that is bound the longest could last have been stopped
  UNTIL     when that job ends by its time limit, or can be stopped; - = not known
  JOB       that job`,
		RunE: func(c *cobra.Command, _ []string) error {
			span, err := boundSpan(c, bound)
			if err != nil {
				return err
			}
			return p.withSite(c.Context(), server, func(s *ask.Site) error {
				if c.Flags().Changed("bound") {
					return showBound(p, c, p.page(l), s, span)
				}
				if users {
					list, err := s.Users(c.Context())
					if err == nil {
						err = p.list(c, p.page(l), s, view.UserTable(list), list)
					}
					return err
				}
				all, whole, err := s.Tenants(c.Context())
				if err != nil {
					return err
				}
				if debts {
					owed, err := s.Debts(c.Context())
					if err != nil {
						return err
					}
					return p.list(c, p.page(l), s, view.DebtTable(l, owed, all), owed)
				}
				page := p.page(l)
				if err := p.list(c, page, s, view.TenantTable(l, all, whole), all); err != nil || !page.ForPeople() {
					return err
				}
				budgets, err := s.Budgets(c.Context())
				for _, note := range page.BudgetNotes(budgets) {
					page.Printf("%s\n", note)
				}
				return err
			})
		}}
	c.Flags().BoolVar(&debts, "debts", false, "list which tenant owes which, how much, and until when at this pace")
	c.Flags().BoolVar(&users, "users", false, "list what each user received and was due inside its tenant")
	c.Flags().StringVar(&bound, "bound", "", "list GPUs that cannot be taken back soon, and those bound for longer than `SPAN`, as in --bound=4h")
	c.Flags().Lookup("bound").NoOptDefVal = "1h"
	c.MarkFlagsMutuallyExclusive("debts", "users", "bound")
	listFlags(c, &l)
	serverFlag(c, &server)
	return c
}

// spanBeside allows no argument, and tells how to write the span of --bound that stands beside its flag.
func spanBeside(bound *string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 && *bound != "" {
			if _, err := cluster.ParseSpan(args[0]); err == nil {
				return &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%q is no argument of %s", args[0], c.CommandPath()), Next: "write --bound=" + args[0]}
			}
		}
		return exactly()(c, args)
	}
}

// boundSpan gives the span of --bound; 0 without the flag.
func boundSpan(c *cobra.Command, text string) (cluster.Span, error) {
	if !c.Flags().Changed("bound") {
		return 0, nil
	}
	span, err := cluster.ParseSpan(text)
	if err != nil {
		return 0, &failure.Error{Code: failure.Misuse, What: "--bound: " + err.Error(), Next: "write --bound=4h, or --bound for one hour"}
	}
	return span, nil
}

// showBound lists the GPUs that cannot be taken back soon.
func showBound(p *program, c *cobra.Command, page *view.Page, s *ask.Site, span cluster.Span) error {
	jobs, err := s.BoundGPUs(c.Context())
	if err != nil {
		return err
	}
	list := view.BoundOf(jobs, span, page.Now)
	if !page.ForPeople() {
		return page.List(page.BoundTable(list), list)
	}
	if len(list) > 0 {
		page.Table(page.BoundTable(list))
		page.Printf("\n")
	}
	page.Printf("%s\n", view.BoundNote(list, span))
	return p.asOf(c, page, s)
}

func budgetsCommand(p *program) *cobra.Command {
	var l view.Form
	var server string
	c := &cobra.Command{Use: "budgets", Short: "list what tenants have used of their budgets of GPU hours", Args: exactly(),
		Long: `List the budgets of tenants in their present periods (budgets in the configuration):

  BUDGET    GPU-hours, at the prices of models
  USED      of them, with running leases
  PER_DAY   used a day, by the last seven days
  USED_UP   when the budget was used up, or will be at that rate; - = not in this period
  AT_UNTIL  percent of the budget that will be used at the end of the period, at that rate
  AT_END    what follows when it is used up: warn, idle-only, or refuse (idle-only, and jobs that
            may use more than is left are refused at submission); (now) = the tenant gets only GPUs
            that no other tenant wants`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withSite(c.Context(), server, func(s *ask.Site) error {
				list, err := s.Budgets(c.Context())
				if err != nil {
					return err
				}
				page := p.page(l)
				return p.list(c, page, s, page.BudgetTable(list), append([]store.Budget{}, list...))
			})
		}}
	listFlags(c, &l)
	serverFlag(c, &server)
	return c
}

func leasesCommand(p *program) *cobra.Command {
	var l view.Form
	var server string
	var all bool
	var limit int
	c := &cobra.Command{Use: "leases", Short: "list the jobs that hold GPUs, and the ends of their leases", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withSite(c.Context(), server, func(s *ask.Site) error {
				list, err := s.Leases(c.Context(), all, limit)
				if err != nil {
					return err
				}
				page := p.page(l)
				return p.list(c, page, s, page.LeaseTable(list, all), list)
			})
		}}
	c.Flags().BoolVarP(&all, "all", "a", false, "include leases that have ended")
	c.Flags().IntVar(&limit, "limit", 1000, "at most `N`, the newest")
	listFlags(c, &l)
	serverFlag(c, &server)
	return c
}
