package outlook

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// Drain is nodes that will not be used for a time.
type Drain struct {
	Nodes       []string
	From, Until cluster.Instant
}

// Hurt is what a drain does to a tenant: its jobs on the nodes now, and those that start or end later.
type Hurt struct {
	Tenant string       `json:"tenant"`
	On     int          `json:"jobs_on_the_nodes"`
	Later  int          `json:"jobs_that_end_later"` // by more than a tenth of the time ahead and 5 minutes, in the median
	Jobs   int          `json:"jobs"`
	Delay  cluster.Span `json:"mean_delay_ms"`     // of all its jobs that end within the horizon
	Lost   int          `json:"jobs_not_finished"` // that would have ended within the horizon
	Hurt   []HurtJob    `json:"hurt_jobs"`         // those on the nodes, and those that end later or not, the most hurt first
}

// HurtJob is what a drain does to a job.
type HurtJob struct {
	Job   string       `json:"job"`
	User  string       `json:"user"`
	On    bool         `json:"on_the_nodes"`
	Lost  bool         `json:"not_finished"` // within the horizon
	Delay cluster.Span `json:"delay_ms"`     // of its end, in the median

	tenant string
}

// compare orders jobs, the most hurt first.
func (h *HurtJob) compare(o *HurtJob) int {
	first := func(a, b bool) int {
		return cmp.Compare(map[bool]int{true: 0, false: 1}[a], map[bool]int{true: 0, false: 1}[b])
	}
	return cmp.Or(first(h.Lost, o.Lost), cmp.Compare(o.Delay, h.Delay), first(h.On, o.On), strings.Compare(h.Job, o.Job))
}

// Drained compares the forecasts without and with a drain, by the same draws, and gives the tenants, the most hurt first.
func Drained(ctx context.Context, q *forecast.Question, d *Drain) ([]Hurt, error) {
	known := map[string]bool{}
	for i := range q.Snapshot.Nodes {
		known[q.Snapshot.Nodes[i].Name] = true
	}
	for _, n := range d.Nodes {
		if !known[n] {
			return nil, failure.Usage("--drain: the cluster has no node %q with GPUs", n)
		}
	}
	end := q.Snapshot.Now.Add(q.Horizon)
	if d.From >= end {
		return nil, failure.Usage("--at: the drain begins after the forecasts' horizon, %v; set forecast.horizon", config.Duration(q.Horizon))
	}
	before, err := Make(ctx, q)
	if err != nil {
		return nil, err
	}
	drained := *q
	until := d.Until
	if until == 0 {
		until = end.Add(cluster.Day)
	}
	drained.Closed = append(slices.Clone(q.Closed), forecast.Closed{Nodes: d.Nodes, From: d.From, Until: until})
	after, err := Make(ctx, &drained)
	if err != nil {
		return nil, err
	}
	return hurts(q.Snapshot, before, after, d), nil
}

func hurts(snap *cluster.Snapshot, before, after *forecast.Forecast, d *Drain) []Hurt {
	of, cases := map[string]*Hurt{}, map[cluster.JobKey]*cluster.Case{}
	for i := range snap.Cases {
		cases[snap.Cases[i].Record.Key] = &snap.Cases[i]
	}
	counted := map[string]int{}
	for i := range before.Jobs {
		a, b := &before.Jobs[i], &after.Jobs[i]
		c := cases[a.Key]
		h := of[c.Record.Tenant]
		if h == nil {
			h = &Hurt{Tenant: c.Record.Tenant}
			of[c.Record.Tenant] = h
		}
		h.Jobs++
		job, later := HurtJob{Job: c.Record.ID.String(), User: c.Record.User, tenant: h.Tenant}, false
		if slices.ContainsFunc(c.Job.Holds, func(o cluster.Holding) bool { return slices.Contains(d.Nodes, o.Node) }) {
			h.On++
			job.On = true
		}
		switch was, is := a.End.P50, b.End.P50; {
		case was == 0:
		case is == 0:
			h.Lost++
			job.Lost = true
		default:
			late := is.Sub(was)
			h.Delay += late
			job.Delay = late
			counted[h.Tenant]++
			if late > max(was.Sub(before.At)/10, 5*cluster.Minute) {
				h.Later++
				later = true
			}
		}
		if job.On || job.Lost || later {
			h.Hurt = append(h.Hurt, job)
		}
	}
	var out []Hurt
	for _, h := range of {
		slices.SortFunc(h.Hurt, func(a, b HurtJob) int { return a.compare(&b) })
		h.Delay /= cluster.Span(max(counted[h.Tenant], 1))
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b Hurt) int {
		return cmp.Or(cmp.Compare(b.Lost+b.Later, a.Lost+a.Later), cmp.Compare(b.Delay, a.Delay), strings.Compare(a.Tenant, b.Tenant))
	})
	return out
}

// mostHurt is the maximum number of jobs in a table of those that a drain hurts; programs get them all.
const mostHurt = 20

// WriteHurts writes whom a drain hurts: a table of tenants, and one of their jobs.
func WriteHurts(p *view.Page, list []Hurt) error {
	t := &view.Table{Head: []string{"TENANT", ">JOBS", ">ON_NODES", ">END_LATER", ">NOT_FINISHED", ">MEAN_DELAY"}}
	var jobs []HurtJob
	for i := range list {
		h := &list[i]
		jobs = append(jobs, h.Hurt...)
		t.Add(cmp.Or(h.Tenant, "none"), fmt.Sprint(h.Jobs), fmt.Sprint(h.On), fmt.Sprint(h.Later), fmt.Sprint(h.Lost), view.Span(p.Form, h.Delay))
	}
	if err := p.List(t, list); err != nil || !p.ForPeople() || len(jobs) == 0 {
		return err
	}
	slices.SortStableFunc(jobs, func(a, b HurtJob) int { return a.compare(&b) })
	t = &view.Table{Head: []string{"JOB", "TENANT", "USER", "ON_NODES", ">ENDS_LATER_BY"}}
	for i := range jobs[:min(len(jobs), mostHurt)] {
		j := &jobs[i]
		by := view.Span(p.Form, j.Delay)
		if j.Lost {
			by = "not in the horizon"
		}
		t.Add(j.Job, cmp.Or(j.tenant, "none"), j.User, map[bool]string{true: "yes", false: "no"}[j.On], by)
	}
	p.Printf("\n")
	p.Table(t)
	if more := len(jobs) - mostHurt; more > 0 {
		p.Printf("and %s: --json lists all\n", view.Plural(more, "more job"))
	}
	return nil
}
