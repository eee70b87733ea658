package view

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Live is a job that holds GPUs by a lease, or waits.
type Live struct {
	Key              cluster.JobKey
	ID, Tenant, User string
	GPUs             cluster.GPUCount
	Model            string
	State            string          // of the lease, or waiting
	Ends             cluster.Instant // of the lease; 0 = it waits, or the end is not known yet
	Since            cluster.Instant // eligible since then; 0 = unknown, or it holds a lease
	Why              string          // right and nodes of the lease, or what the job waits for
}

// LiveJobs lists leases, then waiting jobs.
func LiveJobs(leases []store.Lease, waiting []store.Waiting) []Live {
	out := make([]Live, 0, len(leases)+len(waiting))
	for i := range leases {
		l := &leases[i]
		x := Live{Key: l.Job, ID: l.SlurmID, Tenant: l.Tenant, User: l.User, GPUs: l.GPUs, Model: l.Pool, State: l.State, Why: l.Class + " on " + hostlist.Compress(l.Nodes)}
		if !l.Ends.IsZero() {
			x.Ends = cluster.InstantOf(l.Ends)
		}
		out = append(out, x)
	}
	for i := range waiting {
		w := &waiting[i]
		x := Live{Key: w.Job, ID: w.SlurmID, Tenant: w.Tenant, User: w.User, GPUs: w.GPUs, Model: cmp.Or(w.Model, "any"), State: string(cluster.Waiting), Why: w.Reason}
		if w.Eligible != nil {
			x.Since = cluster.InstantOf(*w.Eligible)
		}
		out = append(out, x)
	}
	return out
}

// LiveTable lists jobs in lines that fit 80 columns but for the last one: TIME is the time left of a lease, or the time that a job has waited.
func LiveTable(f Form, jobs []Live, now cluster.Instant) *Table {
	t := &Table{Head: []string{"JOB", "TENANT", "USER", ">GPUS", "MODEL", "STATE", ">TIME", "WHY"}, None: "No job holds a lease or waits."}
	for i := range jobs {
		x := &jobs[i]
		time := "-"
		switch {
		case x.Ends > 0:
			time = Span(f, max(x.Ends.Sub(now), 0))
		case x.Since > 0:
			time = Span(f, max(now.Sub(x.Since), 0))
		}
		t.Add(plain(x.ID, 12), plain(x.Tenant, 10), plain(x.User, 10), fmt.Sprint(x.GPUs), plain(x.Model, 8), x.State, time, plain(x.Why, 0))
	}
	t.Tint = func(row, column int) string {
		if column != 5 {
			return ""
		}
		return stateTints[jobs[row].State]
	}
	return t
}

// stateTints are the colours of states of leases.
var stateTints = map[string]string{"granted": "yellow", "active": "green", "noticed": "yellow", "ending": "red"}

// ShortTenantTable lists tenants in lines that fit 80 columns.
func ShortTenantTable(all []store.Tenant) *Table {
	t := &Table{Head: []string{"TENANT", "POOL", ">DUE", ">WANTS", ">HAS", ">LENT", ">WAITING", ">BEHIND", ">RHO"}, None: "There are no tenants yet."}
	for i := range all {
		x := &all[i]
		t.Add(plain(x.Tenant, 14), plain(x.Pool, 8), gpuCount(x.Entitlement), gpuCount(x.Demand), fmt.Sprint(x.Holds), gpuCount(x.Lent), fmt.Sprint(x.Waiting), behind(Form{}, x.Late()), Rho(x.Rho, x.Demand))
	}
	t.Tint = func(row, column int) string {
		if column != len(t.Head)-1 || all[row].Demand == 0 {
			return ""
		}
		return rhoTint(all[row].Rho)
	}
	return t
}

// plain gives a text without control characters, which terminals obey, cut to a number of letters; 0 = not cut.
func plain(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if letters := []rune(text); most > 0 && len(letters) > most {
		return string(letters[:most-1]) + "+"
	}
	return text
}

// Summary gives the state of the daemon, the jobs and the GPUs in a few lines.
func (st *Status) Summary(p *Page) []string {
	var out []string
	switch {
	case st.Leader == nil:
		out = append(out, p.Paint("no daemon leads, so no rounds are made; start one: systemctl start fairlease", "red"))
	case !st.Alive:
		out = append(out, p.Paint(fmt.Sprintf("the daemon is away: %s leads, but gave no sign of life for %s", plain(st.Leader.Holder, 0), cluster.SpanOf(st.Leader.Silent)), "red"))
	default:
		out = append(out, fmt.Sprintf("%s leads, seen %s ago", plain(st.Leader.Holder, 0), max(cluster.SpanOf(st.Leader.Silent), 0)))
	}
	if st.Tripped != nil {
		out = append(out, p.Paint("the breaker has tripped, and nothing is acted on: "+st.Tripped.Says(), "red"))
	}
	if st.Round == 0 {
		return append(out, "no round has been recorded yet")
	}
	at := explain.Unknown
	if st.At != nil {
		at = p.Time(cluster.InstantOf(*st.At))
	}
	out = append(out, fmt.Sprintf("round %d at %s, mode %s", st.Round, at, st.Mode), fmt.Sprintf("jobs: %s; %s%s", Counts(st.Jobs), Plural(st.Leases, "lease"), st.nextEnd(p)))
	if len(st.Reasons) > 0 {
		out = append(out, "waiting: "+Reasons(st.Reasons))
	}
	if st.Own {
		out = append(out, "jobs and leases are those of your own tenants; this database user may not see others")
	}
	for _, x := range st.Pools {
		out = append(out, fmt.Sprintf("%s: %s GPUs, %s busy, %s idle, %s claimed, %s bad, %s out of reach", plain(x.Pool, 20), x.GPUs, x.Busy, x.Idle, x.Claim, x.Bad, x.Out))
	}
	return out
}
