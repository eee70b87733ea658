// Package notice has what people are told by mail or by a webhook: what causes a notice, its words, and when it is not wanted.
//
// A notice is caused once. Its kind, job and event tell it apart from all others of its user.
package notice

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The kinds of notices. Digest stands for the others of a user that were too many, or came in quiet hours.
const (
	Stop   = "stop"
	Start  = "start"
	Idle   = "idle"
	Budget = "budget"
	Slip   = "slip"
	Digest = "digest"
)

// Kinds are all kinds that have a cause of their own, with words.
var Kinds = []cluster.Named{
	{Name: Stop, Words: "a job will be stopped, and when"},
	{Name: Start, Words: "a job that waited has started"},
	{Name: Idle, Words: "a job holds GPUs that it does not use"},
	{Name: Budget, Words: "a tenant with jobs of the user has used 80 or 100 % of its budget"},
	{Name: Slip, Words: "a job is expected to start later than was forecast"},
}

// Names lists the names of Kinds.
func Names() []string {
	var out []string
	for _, k := range Kinds {
		out = append(out, k.Name)
	}
	return out
}

// Notice is a notice to a user.
type Notice struct {
	Kind string         `json:"kind"`
	Job  cluster.JobKey `json:"job"` // 0 = of no job
	// Event tells notices of a kind about a job apart: the term of a lease, the number of restarts, a moment.
	Event string `json:"event"`
	User  string `json:"user"`
	Facts Facts  `json:"facts"`
}

// Facts are what a notice tells. Its texts are of users or of Slurm: Clean them.
type Facts struct {
	ID     string           `json:"job,omitempty"` // in Slurm
	Name   string           `json:"name,omitempty"`
	Tenant string           `json:"tenant,omitempty"`
	GPUs   cluster.GPUCount `json:"gpus,omitempty"`
	At     cluster.Instant  `json:"at,omitempty"`  // when it is stopped, has started, or is expected to start; 0 = unknown
	Was    cluster.Instant  `json:"was,omitempty"` // when it was expected to start at the latest
	Text   string           `json:"text,omitempty"`
	Counts map[string]int   `json:"counts,omitempty"` // of a digest, by kind
}

// longest is the maximum length of a text, in runes.
const longest = 200

// Clean makes a text of a user safe for a line of a letter: control and format characters become blanks, and long texts are cut.
func Clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsGraphic(r) || unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text)
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > longest {
		runes = append(runes[:longest-1], '…')
	}
	return string(runes)
}

// Of gives the notices that a round causes: of stops, starts and budgets.
func Of(s *cluster.Snapshot, p *cluster.Plan) []Notice {
	var out []Notice
	for i := range p.Actions {
		if n, ok := stop(s, p, &p.Actions[i]); ok {
			out = append(out, n)
		}
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		waited := c.Record.State == cluster.Waiting || c.Record.State == cluster.Configuring
		if waited && c.Job.User != "" && c.Job.State == cluster.Running && c.Control != cluster.Unmanaged && c.Job.Request.Size.Devices > 0 {
			n := of(Start, c, strconv.Itoa(c.Job.Restarts))
			n.Facts.At = c.Job.Start
			out = append(out, n)
		}
	}
	return append(out, budgets(s)...)
}

// of gives a notice about a job.
func of(kind string, c *cluster.Case, event string) Notice {
	return Notice{Kind: kind, Job: c.Record.Key, Event: event, User: c.Job.User,
		Facts: Facts{ID: c.Job.ID.String(), Name: Clean(c.Job.Name), Tenant: Clean(c.Record.Tenant), GPUs: c.Job.Request.Size.Count()}}
}

// stop gives the notice of an action that stops a job, or announces that: one for each lease.
func stop(s *cluster.Snapshot, p *cluster.Plan, a *cluster.Action) (n Notice, ok bool) {
	if a.Verb != cluster.Notify && a.Verb != cluster.Reclaim || a.Suppressed {
		return n, false
	}
	byJob := func(l cluster.Lease, key cluster.JobKey) int { return cmp.Compare(l.Job, key) }
	c, known := slices.BinarySearchFunc(s.Cases, a.Job, func(c cluster.Case, key cluster.JobKey) int { return cmp.Compare(c.Record.Key, key) })
	l, leased := slices.BinarySearchFunc(s.Leases, a.Job, byJob)
	if !known || !leased || s.Leases[l].State == cluster.Noticed || s.Leases[l].State == cluster.Ending {
		return n, false // it was told before
	}
	n = of(Stop, &s.Cases[c], strconv.Itoa(s.Leases[l].Term))
	n.Facts.At = p.At
	if now, is := slices.BinarySearchFunc(p.State.Leases, a.Job, byJob); is && a.Verb == cluster.Notify {
		n.Facts.At = p.State.Leases[now].End
	}
	return n, true
}

// budgets gives the notices of budgets whose limits were reached, for each user with a live job of the tenant.
func budgets(s *cluster.Snapshot) (out []Notice) {
	for i := range s.Tenants {
		t := &s.Tenants[i]
		if t.Budget.News == "" {
			continue
		}
		told := map[string]bool{}
		for k := range s.Cases {
			c := &s.Cases[k]
			if c.Record.Tenant != t.Name || c.Job.State == cluster.Done || c.Gone || told[c.Job.User] {
				continue
			}
			told[c.Job.User] = true
			out = append(out, Notice{Kind: Budget, Event: t.Name + " " + strconv.FormatInt(s.Round, 10), User: c.Job.User,
				Facts: Facts{Tenant: Clean(t.Name), Text: Clean(t.Budget.News)}})
		}
	}
	return out
}
