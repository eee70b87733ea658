package spending_test

import (
	"math"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Each state of a job, each kind of request and limit, and the period's end as the bound of all. An h100 costs 4, any other model 1.
func TestPlanned(t *testing.T) {
	a := account(1000)
	a.At = a.End.Add(-100 * cluster.Hour)
	holds := []cluster.Holding{{Node: "n1", Model: "h100", Size: cluster.Whole(2)}, {Node: "n2", Model: "a100", Size: cluster.Whole(1)}}
	waits := func(model string, gpus int, limit cluster.Span) cluster.Job {
		return cluster.Job{State: cluster.Waiting, Request: cluster.Request{Size: cluster.Whole(gpus), Model: model}, Limit: limit}
	}
	runs := func(limit cluster.Span) cluster.Job {
		return cluster.Job{State: cluster.Running, Holds: holds, Start: a.At.Add(-5 * cluster.Hour), Limit: limit}
	}
	for _, c := range []struct {
		name   string
		job    cluster.Job
		change func(*cluster.Case)
		want   float64
	}{
		{"it waits, for any model", waits("", 8, 10*cluster.Hour), nil, 80},
		{"for the dear one", waits("h100", 8, 10*cluster.Hour), nil, 320},
		{"for a model without a price", waits("k80", 8, 10*cluster.Hour), nil, 80},
		{"with features, of any model", func() cluster.Job { j := waits("", 8, 10*cluster.Hour); j.Request.Features = "new"; return j }(), nil, 320},
		{"with features, of a model", func() cluster.Job { j := waits("a100", 8, 10*cluster.Hour); j.Request.Features = "new"; return j }(), nil, 80},
		{"its begin time is 30 hours before the end", waits("", 1, 0), func(c *cluster.Case) { c.Record.UserBegin = a.End.Add(-30 * cluster.Hour) }, 30},
		{"with a limit that fits then", waits("", 1, 10*cluster.Hour), func(c *cluster.Case) { c.Record.UserBegin = a.End.Add(-30 * cluster.Hour) }, 10},
		{"its begin time is in the next period", waits("", 1, 10*cluster.Hour), func(c *cluster.Case) { c.Record.UserBegin = a.End.Add(cluster.Hour) }, 0},
		{"its begin time is over", waits("", 1, 0), func(c *cluster.Case) { c.Record.UserBegin = a.At.Add(-cluster.Hour) }, 100},
		{"without a limit", waits("", 1, 0), nil, 100},
		{"with a limit beyond the period", waits("", 1, 200*cluster.Hour), nil, 100},
		{"it runs for ten more hours", runs(15 * cluster.Hour), nil, 90},
		{"it runs into the next period", runs(200 * cluster.Hour), nil, 900},
		{"it runs without a limit", runs(0), nil, 900},
		{"it should have ended", runs(4 * cluster.Hour), nil, 0},
		{"it was suspended for three hours", func() cluster.Job { j := runs(12 * cluster.Hour); j.Suspend = 3 * cluster.Hour; return j }(), nil, 90},
		{"it is suspended", func() cluster.Job { j := runs(0); j.State = cluster.Suspended; return j }(), nil, 900},
		{"it completes", func() cluster.Job { j := runs(0); j.State = cluster.Completing; return j }(), nil, 0},
		{"it is over", func() cluster.Job { j := runs(0); j.State = cluster.Done; return j }(), nil, 0},
		{"a component whose lease is another's", func() cluster.Job { j := waits("", 8, cluster.Hour); j.Het = 7; return j }(), nil, 0},
		{"the component that has the lease of all", func() cluster.Job { j := waits("", 8, cluster.Hour); j.Het, j.Parts = 7, 2; return j }(), nil, 8},
		{"another tenant's", waits("", 8, cluster.Hour), func(c *cluster.Case) { c.Record.Tenant = "bio" }, 0},
		{"left alone", waits("", 8, cluster.Hour), func(c *cluster.Case) { c.Control = cluster.Unmanaged }, 0},
		{"gone", runs(0), func(c *cluster.Case) { c.Gone = true }, 0},
	} {
		x := cluster.Case{Job: c.job, Record: cluster.Record{Tenant: "nlp"}, Control: cluster.FullControl}
		if c.change != nil {
			c.change(&x)
		}
		s := cluster.Snapshot{Cases: []cluster.Case{x}, Nodes: []cluster.Node{{GPUs: []cluster.GPUs{{Model: "h100", Count: 8}, {Model: "a100", Count: 8}}}}}
		if got := a.Planned(&s); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v GPU-hours, want %v", c.name, got, c.want)
		}
		s.Cases = append(s.Cases, s.Cases[0])
		if got := a.Planned(&s); math.Abs(got-2*c.want) > 1e-9 {
			t.Errorf("%s, twice: %v GPU-hours, want %v", c.name, got, 2*c.want)
		}
	}
	s := cluster.Snapshot{Nodes: []cluster.Node{{GPUs: []cluster.GPUs{{Model: "h100", Count: 8}}}}, Cases: []cluster.Case{{Job: waits("", 1, cluster.Hour), Record: cluster.Record{Tenant: "nlp"}}}}
	if got := a.Planned(&s); got != 4 {
		t.Errorf("any model, where there are h100 only: %v GPU-hours, want 4", got)
	}
	s.Settings.Worths = []cluster.Worth{{Model: "h100", Worth: cluster.WholeGPU / 4}}
	if got := a.Planned(&s); got != 1 {
		t.Errorf("where an h100 counts as a quarter of a GPU: %v GPU-hours, want 1", got)
	}
}
