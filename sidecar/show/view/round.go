package view

import (
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

// Decisions is what a round decided; Outcomes are those of the plan's actions, nil where nothing was acted on.
type Decisions struct {
	Snapshot *cluster.Snapshot
	Plan     *cluster.Plan
	Outcomes []cluster.Outcome
}

// Write writes new and renewed leases, notices, requeues and claims, and a line for everything
// unchanged.
func (d *Decisions) Write(p *Page) {
	snap, plan := d.Snapshot, d.Plan
	who := people(snap)
	w := p.wordsAt(plan.At, who.name)
	statuses := map[cluster.JobKey]*cluster.JobStatus{}
	for i := range plan.Statuses {
		statuses[plan.Statuses[i].Job] = &plan.Statuses[i]
	}
	t := &Table{Head: []string{"WHAT", "JOB", "TENANT", "USER", ">GPUS", "MODEL", "NODES", "UNTIL", "WHY"}}
	row := func(what string, key cluster.JobKey, gpus cluster.GPUCount, pool string, nodes []string, until cluster.Instant) {
		why, c := "", who[key]
		if v := statuses[key]; v != nil {
			why = w.Reason(v.Reason)
		}
		if c.Control == cluster.ObserveOnly {
			what = "would " + what
		}
		t.Add(what, who.name(key), c.Record.Tenant, c.Record.User, fmt.Sprint(gpus), pool, hostlist.Compress(nodes), clock(w, until), why)
	}
	for i := range plan.State.Leases {
		le := &plan.State.Leases[i]
		if v := statuses[le.Job]; v != nil && news[v.Reason.Code] != "" {
			row(news[v.Reason.Code], le.Job, le.Size.Count(), le.Pool, nodeNames(le.Nodes), le.End)
		}
	}
	for i := range plan.Actions {
		a := &plan.Actions[i]
		if a.Suppressed && (a.Verb == cluster.Grant || a.Verb == cluster.Reclaim) { // its lease is not stored
			row(string(a.Verb), a.Job, who[a.Job].Job.Request.Size.Count(), a.Reason.Pool, a.Nodes, a.Reason.Until)
		}
	}
	for i := range plan.State.Claims {
		cl := &plan.State.Claims[i]
		row("claim", cl.Job, cluster.CountHeld(cl.Nodes), cl.Pool, nodeNames(cl.Nodes), cl.At)
	}
	if len(t.rows) > 0 || p.Parsable {
		p.Table(t)
	} else {
		p.Printf("No lease begins, ends or is renewed now.\n")
	}
	if p.Parsable || p.NoHeader {
		return
	}
	p.Printf("\n")
	d.summary(p)
}

// news words a round's decision on a lease, by the code of its job's status; other codes are not
// news.
var news = map[cluster.Code]string{
	cluster.ReasonGranted:  "grant",
	cluster.ReasonRenewed:  "renew",
	cluster.ReasonAdopted:  "adopt",
	cluster.ReasonNotice:   "notice",
	cluster.ReasonEnding:   "reclaim",
	cluster.ReasonRecalled: "recall",
}

// summary counts the other observations and actions of a round.
func (d *Decisions) summary(p *Page) {
	plan := d.Plan
	verbs, suppressed, failed := map[cluster.Verb]int{}, 0, 0
	for i := range plan.Actions {
		if plan.Actions[i].Suppressed {
			suppressed++
			continue
		}
		verbs[plan.Actions[i].Verb]++
	}
	for i := range d.Outcomes {
		if !d.Outcomes[i].OK && !d.Outcomes[i].Skipped {
			failed++
		}
	}
	var parts []string
	for _, v := range cluster.Verbs {
		if n := verbs[cluster.Verb(v.Name)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", v.Name, n))
		}
	}
	if suppressed > 0 {
		parts = append(parts, fmt.Sprintf("suppressed %d (the mode forbids them)", suppressed))
	}
	if failed > 0 {
		parts = append(parts, p.Paint(fmt.Sprintf("failed %d", failed), "red"))
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	if s := d.Snapshot.Settings.Schedule; s != nil {
		p.Printf("Schedule: %s\n", scheduleWords(p, s))
	}
	if words := tunedWords(p, d.Snapshot.Settings.Tuned, d.Snapshot.Settings.Term); words != "" {
		p.Printf("Term:    %s\n", words)
	}
	p.Printf("Actions: %s\n", strings.Join(parts, ", "))
	counts := map[cluster.Code]int{}
	for i := range plan.Statuses {
		counts[plan.Statuses[i].Reason.Code]++
	}
	p.Printf("Jobs:    %s\n", Reasons(counts))
	for i := range plan.Events {
		p.Printf("Event:   %s\n", plan.Events[i].Text)
	}
	if plan.Next > 0 {
		p.Printf("Next:    without other changes, something happens%s\n", p.wordsAt(plan.At, nil).At(plan.Next))
	}
}
