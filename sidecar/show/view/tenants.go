package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/store"
)

// TenantTable lists tenants, with their shares if whole says that these are all of them.
func TenantTable(f Form, all []store.Tenant, whole bool) *Table {
	sums := map[string]int64{}
	for i := range all {
		sums[all[i].Pool] += all[i].Weight
	}
	t := &Table{Head: []string{"TENANT", "POOL", ">SHARE", ">DUE", ">WANTS", ">HAS", ">LENT", ">WAITING", ">BEHIND", ">RHO", ">RHO_ALL", ">OWED", ">REPAYS", ">EVEN"},
		None: "There are no tenants yet: no round has seen an account of Slurm with GPUs to share."}
	for i := range all {
		x := &all[i]
		share := "-"
		if whole {
			share = fmt.Sprintf("%.1f%%", 100*float64(x.Weight)/float64(max(sums[x.Pool], 1)))
		}
		t.Add(x.Tenant, x.Pool, share, gpuCount(x.Entitlement), gpuCount(x.Demand), fmt.Sprint(x.Holds),
			gpuCount(x.Lent), fmt.Sprint(x.Waiting), behind(f, x.Late()), Rho(x.Rho, x.Demand), Rho(x.RhoAll, x.Demand),
			gpuHours(float64(x.Owed)), gpuCount(x.Repays), even(f, x))
	}
	t.Tint = func(row, column int) string {
		if t.Head[column] != ">RHO" || all[row].Demand == 0 {
			return ""
		}
		return rhoTint(all[row].Rho)
	}
	return t
}

// behind gives how far a tenant is behind; "-" if it is due nothing.
func behind(f Form, s cluster.Span) string {
	if explain.DueNothing(s) {
		return "-"
	}
	return Span(f, s)
}

// UserTable lists users by tenant: what they received and were due inside it in the last half window to whole window,
// the ratio of the two, and what they are owed and lent to the others.
func UserTable(users []cluster.UserAccount) *Table {
	t := &Table{Head: []string{"TENANT", "USER", ">WANTS", ">HAD", ">DUE", ">RHO", ">OWED", ">LENT"},
		None: "No tenant is shared equally between its users (setting users)."}
	for i := range users {
		u := &users[i]
		wants, had := cluster.MicroGPU(0), u.Received()
		for _, w := range u.Wants {
			wants += w.GPUs
		}
		t.Add(u.Tenant, u.User, gpuCount(wants), gpuHours(float64(had.Alloc)), gpuHours(float64(had.Due)),
			JobRho(had.Alloc, had.Due), gpuHours(float64(u.Owed)), gpuHours(float64(u.Lent)))
	}
	return t
}

// DebtTable lists debts, with the time until they are settled.
func DebtTable(f Form, debts []store.Debt, all []store.Tenant) *Table {
	t := &Table{Head: []string{"POOL", "CREDITOR", "DEBTOR", ">OWED", ">EVEN"},
		None: "Nobody owes anything."}
	for i := range debts {
		d := &debts[i]
		when := paused
		for k := range all {
			if x := &all[k]; x.Tenant == d.Creditor && x.Pool == d.Pool {
				when = even(f, x)
			}
		}
		t.Add(d.Pool, d.Creditor, d.Debtor, gpuHours(d.Time), when)
	}
	return t
}

// paused stands for the end of a debt that nobody repays now.
const paused = "paused"

// even gives the time until a tenant's debt is settled, at the current rate; "-" if it is so small that it is written as 0.
func even(f Form, x *store.Tenant) string {
	switch {
	case gpuHours(float64(x.Owed)) == gpuHours(0):
		return "-"
	case x.EvenIn == nil:
		return paused
	}
	return Span(f, cluster.SpanOf(*x.EvenIn))
}

func gpuHours(gpuMS float64) string { return hundredths(gpuMS / 3_600_000) }

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

// LeaseTable lists leases; with over, also why past ones ended. Where there are forecasts, it says when their jobs end.
func (p *Page) LeaseTable(all []store.Lease, over bool) *Table {
	w, at := p.words(nil), p.Now
	none := "No lease is in force; --all lists those that have ended, too."
	if over {
		none = "No lease was granted that is remembered still."
	}
	t := &Table{Head: []string{"JOB", "TENANT", "USER", ">GPUS", "POOL", "NODES", ">TERM", "STATE", "CLASS", "SINCE", "UNTIL", ">LEFT"}, None: none}
	if over {
		t.Head = append(t.Head, "WHY")
	}
	ahead := p.Parsable || slices.ContainsFunc(all, func(l store.Lease) bool { return l.Ahead != nil })
	if ahead {
		t.Head = append(t.Head, "FORECAST")
	}
	moment := func(at *time.Time) string {
		if at == nil || at.IsZero() {
			return "-"
		}
		return clock(w, cluster.InstantOf(*at))
	}
	for i := range all {
		x := &all[i]
		until, left := &x.Ends, Span(p.Form, max(cluster.InstantOf(x.Ends).Sub(at), 0))
		if x.Ended != nil {
			until, left = x.Ended, "-"
		} else if x.Ends.IsZero() {
			left = "-"
		}
		cells := []string{x.SlurmID, x.Tenant, x.User, fmt.Sprint(x.GPUs), x.Pool, hostlist.Compress(x.Nodes), fmt.Sprint(x.Term), x.State, x.Class,
			moment(x.Started), moment(until), left}
		if over {
			cells = append(cells, x.Why)
		}
		if ahead {
			words := "-"
			if x.Ahead != nil {
				words = p.ends(x.Ahead)
			}
			cells = append(cells, words)
		}
		t.Add(cells...)
	}
	t.Tint = func(row, column int) string {
		if t.Head[column] != "STATE" {
			return ""
		}
		return stateTints[all[row].State]
	}
	return t
}
