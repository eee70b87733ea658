package scenetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

func sortTenants(list []cluster.Tenant) {
	slices.SortFunc(list, func(a, b cluster.Tenant) int { return strings.Compare(a.Name, b.Name) })
}

// rows makes the journal's lists of a round.
func (site Site) rows(f *scene.Facts) {
	snap, plan := &f.Snapshot, &f.Plan
	cases := map[cluster.JobKey]*cluster.Case{}
	members := map[cluster.Member]bool{}
	for i := range snap.Cases {
		c := &snap.Cases[i]
		cases[c.Record.Key] = c
		members[cluster.Member{Tenant: c.Record.Tenant, User: c.Job.User}] = true
	}
	for m := range members {
		f.Members = append(f.Members, m)
	}
	slices.SortFunc(f.Members, func(a, b cluster.Member) int {
		return cmp.Or(strings.Compare(a.User, b.User), strings.Compare(a.Tenant, b.Tenant))
	})
	for i := range plan.Tenants {
		t := &plan.Tenants[i]
		f.Tenants = append(f.Tenants, store.Tenant{Tenant: t.Tenant, Pool: t.Pool, Weight: t.Weight, Entitlement: t.Entitlement, Demand: t.Demand, Holds: t.Holds,
			Borrowed: t.Borrowed, Lent: t.Lent, Waiting: t.Waiting, Rho: t.Rho, RhoAll: t.RhoAll, Behind: store.BehindOf(t.Behind), Deficit: t.Deficit,
			Owed: t.Owed, Repays: t.Repays, AsOf: plan.At.Time()})
		if in, ok := t.EvenIn(); ok {
			even := in.Duration()
			f.Tenants[len(f.Tenants)-1].EvenIn = &even
		}
	}
	for i := range plan.State.Leases {
		f.Leases = append(f.Leases, leaseRow(&plan.State.Leases[i], cases))
	}
	slices.SortFunc(f.Leases, func(a, b store.Lease) int { return cmp.Or(b.Granted.Compare(a.Granted), cmp.Compare(b.Job, a.Job)) })
	if len(snap.Tenants) > 1 {
		f.Debts = []store.Debt{{Pool: "v100", Creditor: snap.Tenants[0].Name, Debtor: snap.Tenants[1].Name, Time: 7.5e6, AsOf: plan.At.Time()}}
	}
	for i := range min(len(snap.Tenants), 3) { // one is used up, one nearly, one hardly
		b := store.Budget{Tenant: snap.Tenants[i].Name, Per: "month", Start: plan.At.Time().AddDate(0, 0, -10), End: plan.At.Time().AddDate(0, 0, 20), Hours: 100000,
			Used: float64(40000 * (3 - i)), Percent: float64(40 * (3 - i)), AtEnd: "idle-only", Prices: map[string]float64{"v100": 2}, PerDay: 4000, EndPercent: float64(120 * (3 - i)),
			Received: map[string]cluster.GPUTime{"v100": cluster.Times(20000*(3-i), cluster.Hour)}, AsOf: plan.At.Time()}
		if at := plan.At.Time().AddDate(0, 0, -2+i); i < 2 {
			b.Warned, b.UsedUp = &at, &at
			if i == 0 {
				b.Spent, b.IdleOnly = &at, true
			}
		}
		f.Budgets = append(f.Budgets, b)
	}
	f.Standbys = []store.Standby{{Holder: "ctl2:4711", Since: plan.At.Time().Add(-time.Hour), Seen: plan.At.Time(), Silent: 2 * time.Second, Alive: true}}
	within := 4 * cluster.Hour
	f.Objectives = []store.Objective{{Objective: "first_lease", Target: 95, Within: &within, Total: 1000, Bad: 20, Reached: 98, Left: 60, From: plan.At.Time().AddDate(0, 0, -27), To: plan.At.Time()}}
	for i := range min(len(snap.Tenants), 2) { // one kept it, one did not
		o := f.Objectives[0]
		o.Tenant, o.Total, o.Bad, o.Reached, o.Left = snap.Tenants[i].Name, 100, float64(3+4*i), float64(97-4*i), float64(40-80*i)
		f.Objectives = append(f.Objectives, o)
	}
	for i := range plan.State.Leases { // every third lease is bound
		if l := &plan.State.Leases[i]; i%3 == 0 {
			c := cases[l.Job]
			f.Bound = append(f.Bound, store.Bound{Job: l.Job, SlurmID: c.Record.ID.String(), Name: c.Job.Name, Tenant: c.Record.Tenant, User: c.Job.User, Way: cluster.WayAge,
				Pool: l.Pool, GPUs: l.Size.Count(), Since: plan.At.Time().Add(-time.Duration(i) * time.Minute)})
		}
	}
	f.Events = site.events(f)
	f.Forecasts = forecasts(f)
	f.Kept = []forecast.Coverage{{Kind: "waiting_start", Statements: 1234, Forecasts: 56, Percent: 78.4, Low: 70.2, High: 84.8},
		{Kind: "running_end", Statements: 2345, Forecasts: 56, Percent: 66.1, Low: 62.3, High: 69.7}}
	for i := range snap.Tenants {
		f.Kept = append(f.Kept, forecast.Coverage{Kind: "waiting_start", By: "tenant", Class: snap.Tenants[i].Name, Statements: 60 + i, Forecasts: 12, Percent: 80, Low: 66, High: 89})
	}
	if site.Market && len(snap.Tenants) > 1 {
		site.market(f)
	}
	if site.Cells {
		f.Plan.State.CellTrades = []cluster.CellTrade{{Trade: cluster.Trade{ID: 7, Fast: "h100", Slow: "k80", Price: 2,
			FastTo: cluster.PartyName{Tenant: f.Snapshot.Tenants[0].Name, Kind: "kind-0"}, SlowTo: cluster.PartyName{Tenant: f.Snapshot.Tenants[1].Name, Kind: "kind-1"}}}}
	}
	if site.Counters {
		site.counters(f, cases)
	}
}

func leaseRow(l *cluster.Lease, cases map[cluster.JobKey]*cluster.Case) store.Lease {
	c := cases[l.Job]
	row := store.Lease{Job: l.Job, SlurmID: c.Record.ID.String(), Term: l.Term, Tenant: c.Record.Tenant, User: c.Job.User, Class: string(l.Class),
		State: string(l.State), Pool: l.Pool, GPUs: l.Size.Count(), Granted: l.Granted.Time(), Ends: l.End.Time(), Why: l.Why, Adopted: l.Adopted, Nodes: []string{}}
	for _, h := range l.Nodes {
		row.Nodes = append(row.Nodes, h.Node)
	}
	if l.Start > 0 {
		at := l.Start.Time()
		row.Started = &at
	}
	return row
}

// forecasts makes up a forecast of every job.
func forecasts(f *scene.Facts) (out []store.JobForecast) {
	at := func(hours int) *time.Time {
		t := f.Plan.At.Time().Add(time.Duration(hours) * time.Hour)
		return &t
	}
	for i := range f.Snapshot.Cases {
		c := &f.Snapshot.Cases[i]
		x := store.JobForecast{Key: c.Record.Key, SlurmID: c.Record.ID.String(), Name: c.Job.Name, Tenant: c.Record.Tenant, User: c.Job.User, GPUs: c.Job.Request.Size.Count(), State: string(c.Job.State),
			Forecast: store.Forecast{Waits: c.Job.State == cluster.Waiting, EndP10: at(20 + i%40), EndP50: at(30 + i%50), AsOf: *at(0), Runs: 100, Horizon: 7 * 24 * time.Hour}}
		if x.Waits {
			x.StartP10, x.StartP50, x.StartP90 = at(i%9), at(i%9+i%4), at(i%9+i%4+i%5)
		}
		out = append(out, x)
	}
	return out
}

// events makes up events, the newest first.
func (site Site) events(f *scene.Facts) []store.Noted {
	var out []store.Noted
	const all = 120
	for i := all - 1; i >= 0 && len(f.Snapshot.Cases) > 0; i-- {
		c := &f.Snapshot.Cases[i*37%len(f.Snapshot.Cases)]
		id := c.Record.ID.String()
		e := store.Noted{Event: store.Event{At: f.Plan.At.Time().Add(time.Duration(i-all) * time.Minute), Kind: "grant", SlurmID: &id, Round: int64(i + 1), Text: "job " + id + " was granted GPUs"}, Job: c.Record.Key, Tenant: c.Record.Tenant}
		if site.Hostile {
			e.Text = Hostile[i%len(Hostile)]
		}
		switch i % 4 {
		case 0:
			e.Kind, e.SlurmID, e.Job, e.Tenant, e.Node, e.Text = "node", nil, 0, "", f.Snapshot.Nodes[i%len(f.Snapshot.Nodes)].Name, "the node is down"
		case 1:
			e.Kind, e.SlurmID, e.Tenant, e.Text = "settings", nil, "", "the configuration was read again"
		}
		out = append(out, e)
	}
	return out
}

// market makes up trades and throughputs.
func (site Site) market(f *scene.Facts) {
	f.Snapshot.Settings.Divide, f.Snapshot.Settings.Mechanism = "gandiva-fair", "stride"
	for i, t := range f.Snapshot.Tenants {
		rho := 1 + 0.05*float64(i%5)
		f.Effective = append(f.Effective, store.Effective{Tenant: t.Name, Throughput: 8 * rho, Due: 8.2 * rho, Share: 8, Rho: &rho})
		other := f.Snapshot.Tenants[(i+1)%len(f.Snapshot.Tenants)].Name
		f.Trades = append(f.Trades, store.Trade{ID: int64(i + 1), Made: f.Plan.At.Time().Add(-time.Duration(i+1) * time.Hour), InForce: true, Fast: "h100", Slow: "k80",
			FastTo: t.Name, FastToKind: "bert", SlowTo: other, SlowToKind: "resnet", FastGPUs: 2 * cluster.WholeGPU, SlowGPUs: 5 * cluster.WholeGPU, Price: 2.5,
			FastToSpeedup: 3, SlowToSpeedup: 2, FastToGain: 1, SlowToGain: 1})
	}
}

// counters makes up what the GPUs do.
func (site Site) counters(f *scene.Facts, cases map[cluster.JobKey]*cluster.Case) {
	holds := map[string]*cluster.Case{}
	for i := range f.Leases {
		for _, n := range f.Leases[i].Nodes {
			holds[n] = cases[f.Leases[i].Job]
		}
	}
	read := f.Read
	for i := range f.Snapshot.Nodes {
		n := &f.Snapshot.Nodes[i]
		for g := range n.GPUs[0].Count {
			util, power, memory, size := float64((i*7+g*13)%101)/100, float64(60+(i+g)%300), int64((i+g)%80)<<30, int64(80)<<30
			row := store.GPU{Node: n.Name, Index: g, Model: n.GPUs[0].Model, State: "fresh", Util: &util, Power: &power, Memory: &memory, Size: &size, Idle: util < 0.05, Read: &read}
			if c := holds[n.Name]; c != nil {
				id := c.Record.ID.String()
				row.Job, row.Key, row.Name, row.User, row.Tenant = &id, &c.Record.Key, &c.Job.Name, &c.Job.User, &c.Record.Tenant
			}
			f.GPUs = append(f.GPUs, row)
		}
	}
	f.GPULooks = []store.GPULook{{State: "fresh", Nodes: len(f.Snapshot.Nodes) - 1, Read: &read}, {State: "unknown", Nodes: 1}}
	f.Unseen = []store.GPUNode{{Node: f.Snapshot.Nodes[len(f.Snapshot.Nodes)-1].Name, State: "unknown", Why: fmt.Sprintf("no answer: %s", Hostile[0])}}
}
