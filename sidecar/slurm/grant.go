package slurm

import (
	"context"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// settle waits for the end of the second in which the job was requeued, by anyone: slurmd kills a
// job that starts again within it ("Job credential revoked"), and the job fails. Slurm gives a
// requeued job a new submit time, at most a second late. If that is further ahead, our clock is
// behind Slurm's and tells nothing.
func (c grants) settle(ctx context.Context, id int64) {
	rec := c.seen.records[id]
	if rec == nil {
		return
	}
	for i := range rec.jobs {
		const late = 10 * cluster.Millisecond // in slurmctld's reading of its own clock
		wait := rec.jobs[i].Submit.Add(cluster.Second + late).Sub(c.now())
		if rec.jobs[i].Restarts == 0 || wait <= 0 || wait > 2*cluster.Second+late {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait.Duration()):
		}
	}
}

// grant opens the gate on the given nodes, in one call.
func (c grants) grant(ctx context.Context, a cluster.Action) error {
	id, err := arrays(c).ownRecord(ctx, a)
	if err != nil {
		return err
	}
	ch := gates(c).licensed(a, change{})
	if !a.Unlock || a.UnsplitArray || (gates(c)).putOff(a.Record) {
		ch["begin_time"] = beginNow(c.now())
	}
	if len(a.Nodes) > 0 {
		if err := (arrays(c)).narrow(ctx, id, a); err != nil {
			return err
		}
		ch["required_nodes"] = a.Nodes
	}
	c.shorten(ch, a)
	partitioned(ch, a)
	if a.Reservation != "" {
		ch["reservation"] = a.Reservation
	}
	askFor(ch, a)
	if a.Scatter {
		ch["contiguous"] = false
	}
	if a.SiteFactor != 0 || a.Unlock {
		ch["site_factor"] = siteFactor(a.SiteFactor)
	}
	return c.listed(ctx, id, ch)
}

// putBack returns the job to its gate or to Slurm, with its user's settings.
func (c grants) putBack(ctx context.Context, a cluster.Action, begin any) error {
	id, err := arrays(c).ownRecord(ctx, a)
	if err != nil {
		return err
	}
	ch := c.asTheUserHadIt(a, begin)
	if a.Unhold { // its request last: by that, the job is known
		delete(ch, "tres_per_node")
		for _, next := range []change{ch, {"hold": false}} {
			if err := c.listed(ctx, id, next); err != nil {
				return err
			}
		}
		return c.listed(ctx, id, change{"tres_per_node": a.Ask})
	}
	if c.cuts(a) {
		if err := (gates(c)).shutFirst(ctx, id, a, ch); err != nil {
			return err
		}
	}
	return c.listed(ctx, id, ch)
}

// shorten adds a new time limit. Slurm refuses one that is shorter than --time-min.
func (c grants) shorten(ch change, a cluster.Action) {
	if a.Limit <= 0 {
		return
	}
	limit := num(ceil(int64(a.Limit), int64(cluster.Minute)))
	ch["time_limit"] = limit
	if rec := c.seen.records[a.Record]; rec != nil && len(rec.jobs) > 0 && rec.jobs[0].MinLimit > a.Limit {
		ch["time_minimum"] = limit
	}
}

// partitioned adds the job's new partitions, if there are any.
func partitioned(ch change, a cluster.Action) {
	if len(a.Partitions) > 0 {
		ch["partition"] = strings.Join(a.Partitions, ",")
	}
}

// askFor adds what the job asks for on its node, if that changes.
func askFor(ch change, a cluster.Action) {
	if a.Ask != "" {
		ch["tres_per_node"] = a.Ask
	}
}

func (c grants) asTheUserHadIt(a cluster.Action, begin any) change {
	ch := gates(c).licensed(a, change{"required_nodes": nodeList(a.NodeList)})
	if c.cfg.SiteFactor != 0 || a.Lock || a.Unlock {
		ch["site_factor"] = siteFactor(a.SiteFactor)
	}
	if !a.Lock {
		ch["begin_time"] = begin
	}
	switch {
	case a.MaxNodes < 0:
		ch["maximum_nodes"] = anyWidth
	case a.MaxNodes > 0:
		ch["maximum_nodes"] = a.MaxNodes
	}
	c.shorten(ch, a)
	partitioned(ch, a)
	askFor(ch, a)
	if rec := c.seen.records[a.Record]; rec == nil || rec.resv == "" || strings.HasPrefix(rec.resv, cluster.ReservationPrefix) {
		ch["reservation"] = ""
	}
	return ch
}
