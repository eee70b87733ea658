package playground

import (
	"context"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
)

// mostListed is the maximum number of waiting jobs that a round lists: the first ones in the order of submission.
const mostListed = 100

// Round is what fairlease knows and says at the end of a round.
type Round struct {
	Round   int64     `json:"round"`
	At      int64     `json:"at"` // seconds since the start of the run
	Holds   []Job     `json:"holds"`
	Waits   []Job     `json:"waits"`   // the first of them
	Waiting int       `json:"waiting"` // all of them
	Tenants []Account `json:"tenants"`
}

// Job is a job that holds GPUs or waits for them.
type Job struct {
	Name   string           `json:"name"`
	Tenant string           `json:"tenant"`
	User   string           `json:"user"`
	GPUs   cluster.GPUCount `json:"gpus"`
	Nodes  []Hold           `json:"nodes,omitempty"` // that it holds
	Why    string           `json:"why"`             // a sentence without its subject
}

// Hold is the GPUs of a job on a node.
type Hold struct {
	Node string           `json:"node"`
	GPUs cluster.GPUCount `json:"gpus"`
}

// Account is a tenant in a round. Due is in GPUs.
type Account struct {
	Name    string           `json:"name"`
	Holds   cluster.GPUCount `json:"holds"`
	Due     float64          `json:"due"`
	Waiting int              `json:"waiting"`
}

// Nodes gives the nodes of the chosen cluster.
func Nodes(c *Choice) ([]Hold, error) {
	f, err := experiment.ParseFleet(c.Nodes)
	if err != nil {
		return nil, err
	}
	var out []Hold
	for _, n := range f.Nodes() {
		h := Hold{Node: n.Name}
		for _, g := range n.GPUs {
			h.GPUs += cluster.CountOf(g.Count)
		}
		out = append(out, h)
	}
	return out, nil
}

// midnight shows the start of a run as midnight.
var midnight = time.FixedZone("", -int(experiment.Start.Time().UTC().Sub(experiment.Start.Time().UTC().Truncate(24*time.Hour))/time.Second))

// Replay simulates fairlease and calls see with each round from a time since the start on, until see returns false or the run ends.
func (w *World) Replay(c *Choice, from cluster.Span, see func(*Round) bool) error {
	s, err := w.setup(c, Schedulers()[0])
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	_, err = experiment.Watch(ctx, s, nil, func(p *cluster.Plan) {
		if p.At >= experiment.Start.Add(from) && ctx.Err() == nil && !see(roundOf(p)) {
			stop()
		}
	})
	return err
}

// roundOf gives the round of a plan.
func roundOf(p *cluster.Plan) *Round {
	r := &Round{Round: p.Round, At: int64(p.At.Sub(experiment.Start) / cluster.Second), Holds: []Job{}, Waits: []Job{}}
	at := func(key cluster.JobKey) *cluster.Record {
		i, ok := slices.BinarySearchFunc(p.State.Records, key, func(r cluster.Record, key cluster.JobKey) int { return int(r.Key - key) })
		if !ok {
			return nil
		}
		return &p.State.Records[i]
	}
	words := explain.Words{Now: p.At, Zone: midnight, Job: func(key cluster.JobKey) string {
		if rec := at(key); rec != nil {
			return rec.Name
		}
		return ""
	}}
	leases := map[cluster.JobKey]*cluster.Lease{}
	for i := range p.State.Leases {
		leases[p.State.Leases[i].Job] = &p.State.Leases[i]
	}
	for i := range p.Statuses {
		rec := at(p.Statuses[i].Job)
		if rec == nil || rec.Done != 0 {
			continue
		}
		reason := p.Statuses[i].Reason
		j := Job{Name: rec.Name, Tenant: rec.Tenant, User: rec.User, GPUs: reason.Need, Why: words.Reason(reason)}
		l := leases[rec.Key]
		if l == nil || l.Behind != 0 || l.State == cluster.Ending { // behind another job there are no GPUs yet; those of a lease that ends may be granted again
			if r.Waiting++; len(r.Waits) < mostListed {
				r.Waits = append(r.Waits, j)
			}
			continue
		}
		j.GPUs = l.Size.Count()
		for _, h := range l.Nodes {
			j.Nodes = append(j.Nodes, Hold{Node: h.Node, GPUs: h.Size.Count()})
		}
		r.Holds = append(r.Holds, j)
	}
	for i := range p.Tenants {
		t := &p.Tenants[i]
		r.Tenants = append(r.Tenants, Account{Name: t.Tenant, Holds: t.Holds, Due: float64(t.Entitlement) / float64(cluster.WholeGPU), Waiting: t.Waiting})
	}
	return r
}
