// Package scenetest makes up sites for tests of the web: as large and as hostile as wanted, and always the same.
package scenetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
)

// Site describes a made-up site.
type Site struct {
	Nodes, Jobs int
	// Cells divides the site into virtual clusters; Nodes is then a multiple of 200, and there are 100 tenants.
	Cells bool
	// Hostile gives tenants, users, jobs and events names that break pages which do not quote them.
	Hostile bool
	// Market has trades between GPU models; Counters has what GPUs do.
	Market, Counters bool
	Tenants          int // 0 = 8
}

// Hostile are names that a page must show as they are, and never obey.
var Hostile = []string{
	`<script>alert("x")</script>`, `"><img src=x onerror=alert(1)>`, `'; drop table jobs; --`, "\u202Egnp.exe", "a\nb\x1b[31mred\x1b[0m",
	`javascript:alert(1)`, `{{7*7}}${7*7}`, `</title></style></textarea><svg/onload=alert(1)>`, "&amp;&lt;&#39;", strings.Repeat("long", 60), "日本語 Ünïcödé 🚀",
}

// Facts makes up what the journal of a site tells. The clock of the site is that of the host.
func (site Site) Facts() scene.Facts {
	snap := site.snapshot()
	plan := engine.Decide(snap)
	now := time.Now().Truncate(time.Second)
	f := scene.Facts{Read: now, Snapshot: snap, Plan: plan, Mode: "act", Acting: []string{"gpu"},
		Leader: &store.Leader{Term: 3, Holder: "ctl1:4711", Acquired: now.Add(-time.Hour), Renewed: now, Takeover: now.Add(15 * time.Second)}}
	site.rows(&f)
	return f
}

// Of gives what the journal tells of a round, with a made-up forecast of every job.
func Of(snap cluster.Snapshot, plan cluster.Plan) scene.Facts {
	at := plan.At.Time()
	f := scene.Facts{Read: at, Snapshot: snap, Plan: plan, Mode: "act", Acting: []string{"gpu"},
		Leader: &store.Leader{Term: 3, Holder: "ctl1:4711", Acquired: at.Add(-time.Hour), Renewed: at, Takeover: at.Add(15 * time.Second)}}
	Site{}.rows(&f)
	f.Overrides = nil
	for _, o := range snap.Overrides {
		x := store.Override{ID: o.ID, Kind: string(o.Kind), Scope: o.Scope, Name: o.Name, Until: o.Until.Time(), Reason: o.Reason, By: "root", Created: at}
		if o.Job != 0 {
			submitted := o.Submit.Time()
			x.JobKey, x.JobUser, x.Submitted = &o.Job, &o.User, &submitted
		}
		f.Overrides = append(f.Overrides, x)
	}
	return f
}

// Scene makes up a site.
func (site Site) Scene() *scene.Scene { return scene.Of(site.Facts()) }

func (site Site) snapshot() cluster.Snapshot {
	tenants := site.Tenants
	if tenants == 0 {
		tenants = 8
	}
	full := 5 * site.Nodes // jobs, by which the crowd has so many nodes
	snap := simtest.Crowd(full, tenants)
	if site.Cells {
		snap = simtest.CrowdInCells(full)
	}
	if site.Jobs < full {
		snap.Cases = snap.Cases[:site.Jobs]
	}
	for i := full; i < site.Jobs; i++ { // more of those that wait
		c := snap.Cases[i%full]
		key := cluster.JobKey(i + 1)
		c.Job.ID, c.Job.Record, c.Job.State, c.Job.Holds = cluster.JobID{ID: int64(key)}, int64(key), cluster.Waiting, nil
		c.Record.Key, c.Record.ID, c.Record.State, c.Record.Held, c.Record.HeldSince = key, c.Job.ID, cluster.Waiting, nil, 0
		snap.Cases = append(snap.Cases, c)
	}
	snap.NextKey = cluster.JobKey(len(snap.Cases) + 1)
	kept := map[cluster.JobKey]bool{}
	for i := range snap.Cases {
		kept[snap.Cases[i].Record.Key] = true
	}
	leases := snap.Leases[:0]
	for _, l := range snap.Leases {
		if kept[l.Job] {
			leases = append(leases, l)
		}
	}
	snap.Leases = leases
	// The site's clock is the host's: everything happens so much later.
	shift := cluster.InstantOf(time.Now().Truncate(time.Second)) - snap.Now
	shiftTimes(&snap, shift)
	names := map[string]string{}
	if site.Hostile {
		for i := range snap.Tenants {
			names[snap.Tenants[i].Name] = Hostile[i%len(Hostile)]
		}
	}
	for i := range snap.Cases {
		c := &snap.Cases[i]
		c.Job.User = fmt.Sprintf("%s-u%d", c.Record.Tenant, i%5)
		c.Job.Name = fmt.Sprintf("train-%d", i%50)
		if site.Hostile {
			c.Job.User, c.Job.Name = Hostile[(i+3)%len(Hostile)], Hostile[(i+5)%len(Hostile)]
		}
		c.Record.User, c.Record.Name, c.Record.Account = c.Job.User, c.Job.Name, c.Job.Account
	}
	if site.Hostile && !site.Cells {
		rename(&snap, names)
	}
	if site.Nodes > 3 {
		snap.Nodes[len(snap.Nodes)-1].Bad, snap.Nodes[len(snap.Nodes)-2].Busy = "down", "maintenance"
	}
	return snap
}

func shiftTimes(s *cluster.Snapshot, by cluster.Instant) {
	add := func(times ...*cluster.Instant) {
		for _, t := range times {
			if *t != 0 {
				*t += by
			}
		}
	}
	add(&s.Now, &s.Ledger.At)
	for i := range s.Cases {
		j, r := &s.Cases[i].Job, &s.Cases[i].Record
		add(&j.Submit, &j.Eligible, &j.Start, &r.Submit, &r.First, &r.HeldSince, &r.ChargedTo, &r.DueSince)
	}
	for i := range s.Leases {
		l := &s.Leases[i]
		add(&l.Granted, &l.Start, &l.End)
	}
}

// rename gives tenants other names, and sorts them anew.
func rename(s *cluster.Snapshot, names map[string]string) {
	for i := range s.Tenants {
		s.Tenants[i].Name = names[s.Tenants[i].Name]
	}
	sortTenants(s.Tenants)
	for i := range s.Cases {
		r := &s.Cases[i].Record
		r.Tenant = names[r.Tenant]
		r.Account, s.Cases[i].Job.Account = r.Tenant, r.Tenant
	}
}
