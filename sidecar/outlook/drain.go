package outlook

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/view"
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
		if slices.ContainsFunc(c.Job.Holds, func(o cluster.Holding) bool { return slices.Contains(d.Nodes, o.Node) }) {
			h.On++
		}
		switch was, is := a.End.P50, b.End.P50; {
		case was == 0:
		case is == 0:
			h.Lost++
		default:
			late := is.Sub(was)
			h.Delay += late
			counted[h.Tenant]++
			if late > max(was.Sub(before.At)/10, 5*cluster.Minute) {
				h.Later++
			}
		}
	}
	var out []Hurt
	for _, h := range of {
		h.Delay /= cluster.Span(max(counted[h.Tenant], 1))
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b Hurt) int {
		return cmp.Or(cmp.Compare(b.Lost+b.Later, a.Lost+a.Later), cmp.Compare(b.Delay, a.Delay), strings.Compare(a.Tenant, b.Tenant))
	})
	return out
}

// WriteHurts writes whom a drain hurts.
func WriteHurts(p *view.Page, list []Hurt) error {
	t := &view.Table{Head: []string{"TENANT", ">JOBS", ">ON_NODES", ">END_LATER", ">NOT_FINISHED", ">MEAN_DELAY"}}
	for i := range list {
		h := &list[i]
		t.Add(cmp.Or(h.Tenant, "none"), fmt.Sprint(h.Jobs), fmt.Sprint(h.On), fmt.Sprint(h.Later), fmt.Sprint(h.Lost), h.Delay.String())
	}
	return p.List(t, list)
}
