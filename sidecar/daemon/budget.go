package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// budgets is what a leading daemon knows of budgets.
type budgets struct {
	meter    *metrics.Meter
	book     spending.Book
	read     bool                           // from the journal
	written  cluster.Instant                // 0 = not since it changed
	at       cluster.Instant                // of standing; 0 = there was no round yet
	standing map[string][]spending.Standing // by tenant
	looked   time.Time                      // when the last look at the cluster began
	accounts []cluster.Account              // as of it
	members  []cluster.Member               // of these
}

// spend brings the accounts of all budgets, which are in the journal, up to a turn. They are written down every minute, and when a limit was reached: so the
// next leader goes on from there.
func (p *budgets) spend(ctx context.Context, in Budgets, all []spending.Budget, now cluster.Instant) error {
	if !p.read {
		book, err := in.Accounts(ctx)
		if err != nil {
			return err
		}
		p.book, p.read = book, true
	}
	had, reached := len(p.book), p.reached()
	book, missing := p.book.Configure(all, now)
	p.book = book
	for _, b := range missing {
		// A round in the period must come first: the GPU time before the period is read between two samples.
		if start, _ := b.Period(now); p.at > start {
			a, err := in.OpenAccount(ctx, b, now)
			if err != nil {
				return err
			}
			p.book = append(p.book, a)
		}
	}
	for i := range p.book {
		if a := &p.book[i]; p.at > 0 {
			a.Count(p.standing[a.Tenant], p.at, now)
		}
	}
	if len(p.book) == had && slices.Equal(p.reached(), reached) && (had == 0 || p.written > 0 && now.Sub(p.written) < cluster.Minute) {
		return nil
	}
	if err := in.Spend(ctx, p.book); err != nil {
		return err
	}
	p.written = now
	p.meter.Budgets(p.book)
	return nil
}

// reached gives the limits that have been reached, by account.
func (p *budgets) reached() []int {
	var out []int
	for i := range p.book {
		out = append(out, p.book[i].Reached())
	}
	return out
}

// spent takes over the GPU time of tenants from a round that was decided. configured is how many budgets there are. That round has told which limits were reached.
func (p *budgets) spent(r *loop.Report, configured int) {
	if r.Quiet || configured+len(p.book) == 0 {
		return
	}
	p.at, p.standing = r.Plan.At, map[string][]spending.Standing{}
	for i := range r.Plan.Tenants { // as the ledger's, in the same order
		t := &r.Plan.Tenants[i]
		p.standing[t.Tenant] = append(p.standing[t.Tenant], spending.Standing{Model: t.Pool, Received: r.Plan.State.Ledger.Tenants[i].Alloc, Holds: t.Holds})
	}
	for i := range p.book {
		if a := &p.book[i]; a.Reached() > a.Told {
			a.Told, p.written = a.Reached(), 0
		}
	}
}

// list tells the submit plugin what is left of the budgets that refuse jobs; nil = no budget does. It begins with the second from which on accepted jobs are
// not counted. The line of an account has the account, its tenant, the GPU hours at prices that are left besides those of accepted jobs, the budget, the period's
// length, its end as a second and in words, and prices by model: * is the cheapest. A line of the form @USER ACCOUNT,ACCOUNT has those of these accounts that a user may use. of
// gives the tenant of an account.
func (p *budgets) list(s *cluster.Snapshot, of func(string) string) []byte {
	var text []byte
	may := map[string][]string{} // accounts by user
	for i := range p.book {
		a := &p.book[i]
		if a.AtEnd != spending.Refuse || p.at == 0 {
			continue
		}
		if text == nil {
			text = fmt.Appendf(nil, "%d\n", p.looked.Unix())
		}
		rest := fmt.Sprintf("%.3f %s %s %d %s %s\n", a.Hours-a.Used-a.Planned(s), strconv.FormatFloat(a.Hours, 'g', -1, 64), a.Per, a.End.Time().Unix(),
			a.End.Time().In(a.Zone).Format("2006-01-02T15:04"), prices(&a.Budget, s))
		for _, account := range p.accounts {
			if of(account.Name) == a.Tenant && !strings.ContainsAny(account.Name, " \t\n,") {
				text = fmt.Appendf(text, "%s %s %s", account.Name, a.Tenant, rest)
			}
		}
		for _, m := range p.members {
			if of(m.Tenant) == a.Tenant {
				may[m.User] = append(may[m.User], m.Tenant)
			}
		}
	}
	for _, user := range slices.Sorted(maps.Keys(may)) {
		slices.Sort(may[user])
		text = fmt.Appendf(text, "@%s %s\n", user, strings.Join(slices.Compact(may[user]), ","))
	}
	return text
}

// prices gives the prices of devices of the models that cost more than the cheapest.
func prices(b *spending.Budget, s *cluster.Snapshot) string {
	least, _ := b.Range(s)
	costs := map[string]float64{}
	for i := range s.Nodes {
		for _, g := range s.Nodes[i].GPUs {
			if price := b.DevicePrice(&s.Settings, g.Model); price > least {
				costs[g.Model] = price
			}
		}
	}
	text := "*=" + strconv.FormatFloat(least, 'g', -1, 64)
	for _, model := range slices.Sorted(maps.Keys(costs)) {
		text += "," + model + "=" + strconv.FormatFloat(costs[model], 'g', -1, 64)
	}
	return text
}
