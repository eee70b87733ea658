package scenetest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// Past makes up the history of a site. With Err, it has none.
type Past struct {
	Site  Site
	Facts scene.Facts
	Err   error // of every method
}

// Past gives the made-up history of a site.
func (site Site) Past() *Past { return &Past{Site: site, Facts: site.Facts()} }

// Job explains a job that has ended: those of the site have ids below 900,000, and this one has any other. It is of the first tenant.
func (p *Past) Job(_ context.Context, scope scene.Scope, id cluster.JobID) (store.Explanation, error) {
	tenant := p.Facts.Snapshot.Tenants[0].Name
	if p.Err == nil && (id.ID < 900_000 || !scope.Sees(tenant)) {
		return store.Explanation{}, fmt.Errorf("job %s: %w", id, scene.ErrNone)
	}
	done := p.Facts.Plan.At.Time().Add(-time.Hour)
	return store.Explanation{Job: store.Job{Key: cluster.JobKey(id.ID), SlurmID: id.String(), Name: "ended", User: "u", Tenant: tenant, State: "done", Outcome: "COMPLETED", GPUs: cluster.CountOf(4), Done: &done, Partitions: []string{"gpu"}},
		Round: p.Facts.Plan.Round, At: p.Facts.Plan.At, NumbersAt: p.Facts.Plan.At, Leases: []store.Lease{}, Actions: []store.Action{}}, p.Err
}

// Find gives such a job; its key is its id.
func (p *Past) Find(ctx context.Context, scope scene.Scope, id cluster.JobID, key cluster.JobKey) (store.Job, error) {
	x, err := p.Job(ctx, scope, id)
	if err == nil && key != 0 && key != x.Job.Key {
		return store.Job{}, fmt.Errorf("job %s: %w", id, scene.ErrNone)
	}
	return x.Job, err
}

// Told gives a lease, an action, a remark and a forecast of any job.
func (p *Past) Told(_ context.Context, job *store.Job) (scene.Told, error) {
	ended, ok := p.Facts.Plan.At.Time().Add(-time.Hour), true
	key, soon, later := job.Key, ended.Add(2*time.Hour), ended.Add(9*time.Hour)
	l := store.Lease{Job: key, SlurmID: job.SlurmID, Term: 1, Class: "shared", State: "over", Pool: "v100", GPUs: cluster.CountOf(4), Nodes: []string{"n00001"}, Granted: ended.Add(-time.Hour), Ends: ended, Ended: &ended, Why: "renewed"}
	a := store.Action{Round: 3, At: l.Granted, Verb: "grant", Job: &key, SlurmID: l.SlurmID, Nodes: l.Nodes, Reason: "granted", OK: &ok}
	if p.Err != nil {
		return scene.Told{}, p.Err
	}
	return scene.Told{Leases: []store.Lease{l}, Actions: []store.Action{a},
		Remarks: []store.Remark{{Job: job.SlurmID, Key: key, User: job.User, Kind: "straggler", Node: "n00001", Since: ended, Text: "GPU 3 of n00001 has done half of what the job's other GPUs do"}},
		Forecast: &store.JobForecast{Key: key, SlurmID: job.SlurmID, State: job.State, Forecast: store.Forecast{Waits: job.State == "waiting", StartP10: &soon, StartP50: &soon, StartP90: &later, EndP10: &later, EndP50: &later,
			AsOf: ended, Runs: 100, Horizon: 7 * 24 * time.Hour}}}, nil
}

// GPUHours gives a day of any job.
func (p *Past) GPUHours(context.Context, cluster.JobKey, int) (out []store.GPUHour, _ error) {
	for i := range 24 {
		util := 0.5 + 0.4*math.Sin(float64(i)/4)
		out = append(out, store.GPUHour{Hour: p.Facts.Plan.At.Time().Truncate(time.Hour).Add(-time.Duration(i) * time.Hour), Model: "v100", Held: 4 * 3_600_000, Seen: 4 * 3_600_000, Util: &util, Memory: 30 << 30})
	}
	return out, p.Err
}

// Leases gives the present leases, and six ended ones before each.
func (p *Past) Leases(_ context.Context, scope scene.Scope, w store.LeaseWindow) (out []store.Lease, _ error) {
	for _, l := range p.Facts.Leases {
		if !scope.Sees(l.Tenant) || w.Nodes != nil && !slices.ContainsFunc(l.Nodes, func(n string) bool { return slices.Contains(w.Nodes, n) }) || w.Job != 0 && l.Job != w.Job {
			continue
		}
		for term := range 7 {
			x := l
			x.Term = 7 - term
			x.Granted, x.Ends = l.Granted.Add(-time.Duration(term)*15*time.Minute), l.Ends.Add(-time.Duration(term)*15*time.Minute)
			start := x.Granted
			if x.Started = &start; term > 0 {
				end := x.Ends
				x.Ended, x.State, x.Why = &end, "over", "renewed"
			}
			if b := w.Before; b == nil || cmp.Or(x.Granted.Compare(b.Granted), cmp.Compare(x.Job, b.Job), cmp.Compare(x.Term, b.Term)) < 0 {
				if x.Ended == nil || !x.Ended.Before(w.Since) {
					out = append(out, x)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b store.Lease) int {
		return cmp.Or(b.Granted.Compare(a.Granted), cmp.Compare(b.Job, a.Job), cmp.Compare(b.Term, a.Term))
	})
	if w.Limit > 0 && len(out) > w.Limit {
		out = out[:w.Limit]
	}
	return out, p.Err
}

// Rounds gives as many rounds as the site's number says.
func (p *Past) Rounds(_ context.Context, before int64, limit int) (out []store.Round, _ error) {
	last := p.Facts.Plan.Round
	if before > 0 {
		last = min(last, before-1)
	}
	for n := last; n > 0 && len(out) < cmp.Or(limit, scene.MaxRows); n-- {
		at := p.Facts.Plan.At.Time().Add(time.Duration(n-p.Facts.Plan.Round) * 10 * time.Second)
		out = append(out, store.Round{Number: n, At: at, Recorded: at, Nodes: len(p.Facts.Snapshot.Nodes), Tenants: len(p.Facts.Snapshot.Tenants), Jobs: len(p.Facts.Snapshot.Cases), Leases: len(p.Facts.Leases), Actions: int(n % 5), Replayable: n == p.Facts.Plan.Round})
	}
	return out, p.Err
}

// Decided gives the site's round, and no other.
func (p *Past) Decided(_ context.Context, scope scene.Scope, number int64) (store.Edge, error) {
	if p.Err == nil && (!scope.All || number != p.Facts.Plan.Round) {
		return store.Edge{}, fmt.Errorf("round %d: %w", number, scene.ErrNone)
	}
	return store.Edge{Snapshot: p.Facts.Snapshot, Plan: p.Facts.Plan}, p.Err
}

// Acts gives two settings and an override, within the bounds of the selection's row and limit.
func (p *Past) Acts(_ context.Context, scope scene.Scope, of store.Acts) (out []store.Act, _ error) {
	if p.Err == nil && !scope.All {
		return nil, scene.ErrNone
	}
	text := func(t string) *string { return &t }
	at := p.Facts.Plan.At.Time()
	for _, a := range []store.Act{
		{ID: 3, At: at, Kind: "override", Key: "tenant nlp", After: text("boost until tomorrow"), By: "root (SUDO_USER \"ann\")", Why: "deadline", DatabaseUser: "ann"},
		{ID: 2, At: at.Add(-time.Hour), Round: 7, Kind: store.OfSetting, Key: "mode", Before: text("observe"), After: text("act"), By: "root, owner of fairlease.yaml", Why: "reload", DatabaseUser: "fairlease"},
		{ID: 1, At: at.Add(-time.Hour), Round: 7, Kind: store.OfSetting, Key: "tenants.weights.nlp", After: text("3"), By: "root, owner of fairlease.yaml", Why: "reload", DatabaseUser: "fairlease"},
	} {
		if (of.Before == 0 || a.ID < of.Before) && (of.Key == "" || of.Key == a.Key || of.Key == a.Kind) && len(out) < of.Limit {
			out = append(out, a)
		}
	}
	return out, p.Err
}

// Events gives 120 events.
func (p *Past) Events(_ context.Context, scope scene.Scope, round int64, _, limit int) (out []store.Noted, _ error) {
	for _, e := range p.Site.events(&p.Facts) {
		if (round == 0 || e.Round < round) && (scope.All || e.Tenant != "" && scope.Sees(e.Tenant) || e.SlurmID == nil && e.Node != "") && (limit <= 0 || len(out) < limit) {
			out = append(out, e)
		}
	}
	return out, p.Err
}

// Trades gives the trades in force, and one that was undone.
func (p *Past) Trades(_ context.Context, _ scene.Scope, _ int) (out []store.Trade, _ error) {
	out = slices.Clone(p.Facts.Trades)
	if len(out) > 0 {
		x, at := out[0], p.Facts.Plan.At.Time()
		x.ID, x.InForce, x.Undone, x.Why, x.UndoneFastGPUs, x.UndoneSlowGPUs = 999, false, &at, "speedups", x.FastGPUs, x.SlowGPUs
		out = append(out, x)
	}
	return out, p.Err
}

// Shares gives waves: every tenant has now more, now less than it is due.
func (p *Past) Shares(_ context.Context, since, until time.Time, step time.Duration) (out []store.Share, _ error) {
	since, step = scene.Steps(since, until, step)
	for i := range p.Facts.Plan.Tenants {
		t := &p.Facts.Plan.Tenants[i]
		due := float64(t.Entitlement) / float64(cluster.WholeGPU)
		for at, k := since, 0; at.Before(until); at, k = at.Add(step), k+1 {
			out = append(out, store.Share{Tenant: t.Tenant, Pool: t.Pool, At: at, Due: due, Entitlement: due, Holds: math.Round(due * (1 + 0.5*math.Sin(float64(k+7*i)/9)))})
		}
	}
	return out, p.Err
}
