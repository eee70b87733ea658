package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/hostlist"
	"github.com/fairlease/fairlease/sidecar/store"
)

func (p *program) tenants() *cobra.Command {
	var l listing
	var debts bool
	c := &cobra.Command{Use: "tenants", Short: "how every tenant stands: due, has, behind, owed, rho", Args: exactly(),
		Long: `List every tenant in every pool (the GPUs of one model):

  SHARE     its part of the weights
  DUE       GPUs that it is due now if it wants them
  WANTS     GPUs that its jobs ask for
  HAS       GPUs that its jobs hold
  LENT      GPUs that it is due and others hold
  WAITING   its waiting jobs
  BEHIND    how far behind its due it is, as time at its due; negative = ahead
  RHO       GPU time received over GPU time due, in the window; 1 = exactly fair
  RHO_ALL   the same since the beginning
  OWED      GPU-hours that others had of its due while it wanted them; negative = it owes
            GPU-hours that it had of others' dues. The debts of a pool sum to 0.
  REPAYS    GPUs that it is given of others' dues for that now; negative = it gives
  EVEN      how long until nothing is owed, at the pace at which GPUs are repaid now;
            never = nothing is repaid now

With --debts, list instead which tenant owes which how much. A pool has one account for each
tenant, so each claim is spread over the debtors in proportion to their debts.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				all, err := s.Tenants(c.Context())
				if err != nil {
					return err
				}
				if debts {
					owed, err := s.Debts(c.Context())
					if err == nil {
						err = p.list(l, debtTable(owed, all), owed)
					}
					if err != nil {
						return err
					}
				} else {
					whole, err := s.ReadsAll(c.Context())
					if err == nil {
						err = p.list(l, tenantTable(all, whole), all)
					}
					if err != nil {
						return err
					}
				}
				return p.asOf(c.Context(), l, s)
			})
		}}
	c.Flags().BoolVar(&debts, "debts", false, "list which tenant owes which how much, and when the creditor is even at this pace")
	l.flags(c)
	return c
}

// asOf tells people of which round a list is.
func (p *program) asOf(ctx context.Context, l listing, s *store.Store) error {
	if l.json || l.parsable || l.bare {
		return nil
	}
	number, at, err := s.Newest(ctx)
	if err != nil {
		return err
	}
	if number == 0 {
		p.printf("no round has been written down yet\n")
		return nil
	}
	as := fmt.Sprintf("as of round %d at %s", number, p.words(p.now(), nil).Time(cluster.InstantOf(at)))
	p.printf("\n%s\n", p.paint(as, "dim"))
	return nil
}

// tenantTable lists tenants; their shares only where these are all of them.
func tenantTable(all []store.Tenant, whole bool) *table {
	sums := map[string]int64{}
	for i := range all {
		sums[all[i].Pool] += all[i].Weight
	}
	t := &table{head: []string{"TENANT", "POOL", ">SHARE", ">DUE", ">WANTS", ">HAS", ">LENT", ">WAITING", ">BEHIND", ">RHO", ">RHO_ALL", ">OWED", ">REPAYS", ">EVEN"}}
	for i := range all {
		x := &all[i]
		share := "-"
		if whole {
			share = fmt.Sprintf("%.1f%%", 100*float64(x.Weight)/float64(max(sums[x.Pool], 1)))
		}
		t.add(x.Tenant, x.Pool, share, gpuCount(x.Entitlement), gpuCount(x.Demand), fmt.Sprint(x.Holds),
			gpuCount(x.Lent), fmt.Sprint(x.Waiting), cluster.SpanOf(x.Behind).String(), x.Rho.String(), x.RhoAll.String(),
			gpuHours(float64(x.Owed)), gpuCount(x.Repays), even(x))
	}
	t.tint = func(row, column int) string {
		if t.head[column] != ">RHO" || all[row].Demand == 0 {
			return ""
		}
		return rhoTint(all[row].Rho)
	}
	return t
}

// debtTable lists debts with when their creditors are even.
func debtTable(debts []store.Debt, all []store.Tenant) *table {
	t := &table{head: []string{"POOL", "CREDITOR", "DEBTOR", ">OWED", ">EVEN"}}
	for i := range debts {
		d := &debts[i]
		when := "never"
		for k := range all {
			if x := &all[k]; x.Tenant == d.Creditor && x.Pool == d.Pool {
				when = even(x)
			}
		}
		t.add(d.Pool, d.Creditor, d.Debtor, gpuHours(d.Time), when)
	}
	return t
}

// even tells how long it is until a tenant is even, at the present pace.
func even(x *store.Tenant) string {
	switch {
	case x.Owed == 0:
		return "-"
	case x.EvenIn == nil:
		return "never"
	}
	return cluster.SpanOf(*x.EvenIn).String()
}

func gpuHours(gpuMS float64) string { return fmt.Sprintf("%.2f", gpuMS/3_600_000) }

// rhoTint marks a tenant that loses by sharing.
func rhoTint(r cluster.Rho) string {
	switch {
	case r < 800_000:
		return "red"
	case r < 950_000:
		return "yellow"
	}
	return "green"
}

func (p *program) leases() *cobra.Command {
	var l listing
	var all bool
	var limit int
	c := &cobra.Command{Use: "leases", Short: "who holds GPUs until when", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				list, err := s.Leases(c.Context(), all, limit)
				if err != nil {
					return err
				}
				if err := p.list(l, p.leaseTable(list, all, p.now()), list); err != nil {
					return err
				}
				return p.asOf(c.Context(), l, s)
			})
		}}
	c.Flags().BoolVarP(&all, "all", "a", false, "leases that are over, too")
	c.Flags().IntVar(&limit, "limit", 1000, "no more than `N`, the newest")
	l.flags(c)
	return c
}

func (p *program) leaseTable(all []store.Lease, over bool, at cluster.Instant) *table {
	w := p.words(at, nil)
	t := &table{head: []string{"JOB", "TENANT", "USER", ">GPUS", "POOL", "NODES", ">TERM", "STATE", "CLASS", "SINCE", "UNTIL", ">LEFT"}}
	if over {
		t.head = append(t.head, "WHY")
	}
	moment := func(at *time.Time) string {
		if at == nil {
			return "-"
		}
		return clock(w, cluster.InstantOf(*at))
	}
	for i := range all {
		x := &all[i]
		until, left := &x.Ends, max(cluster.InstantOf(x.Ends).Sub(at), 0).String()
		if x.Ended != nil {
			until, left = x.Ended, "-"
		}
		cells := []string{x.SlurmID, x.Tenant, x.User, fmt.Sprint(x.GPUs), x.Pool, hostlist.Compress(x.Nodes), fmt.Sprint(x.Term), x.State, x.Class,
			moment(x.Started), moment(until), left}
		if over {
			cells = append(cells, x.Why)
		}
		t.add(cells...)
	}
	t.tint = func(row, column int) string {
		if t.head[column] != "STATE" {
			return ""
		}
		return map[string]string{"granted": "yellow", "active": "green", "noticed": "yellow", "ending": "red"}[all[row].State]
	}
	return t
}
