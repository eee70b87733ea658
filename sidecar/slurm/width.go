package slurm

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

// A list of required nodes that reaches a running job shrinks the job to that list, even where
// slurmctld refuses the rest of the request (error 2073). slurmctld aborts when a step with GPUs
// ends that was shrunk so. A list is harmless if it names all nodes of the job, or one that the job
// does not have (error 2018). So no list is sent to a job that may have started on more nodes than
// the list names.
//
// A new maximum of nodes is refused as a whole if the job has started, and changes nothing else of
// one that waits. After it has been accepted, the job has at most that many nodes, whenever it starts.

// anyWidth is the maximum of nodes that stands for no limit: Slurm cannot take a maximum away.
const anyWidth = 60_000

// most is the maximum number of nodes that a job may have started on since the last look; 0 = no limit.
func (c arrays) most(record int64) int {
	rec := c.seen.records[record]
	if rec == nil || len(rec.jobs) == 0 {
		return 0
	}
	return rec.jobs[0].Request.MostNodes()
}

// narrow limits a job to the number of nodes of its grant, unless it is limited to that already, and
// reads it back.
func (c arrays) narrow(ctx context.Context, id int64, a cluster.Action) error {
	if most := c.most(a.Record); most > 0 && most <= len(a.Nodes) {
		return nil
	}
	if err := c.update(ctx, id, change{"maximum_nodes": len(a.Nodes)}); err != nil {
		return err
	}
	w, err := grants(c).waits(ctx, id)
	if err == nil && w.maxNodes != len(a.Nodes) {
		return fmt.Errorf("grant of %v on %d nodes: Slurm agreed to that maximum, but the job has %d", a.ID, len(a.Nodes), w.maxNodes)
	}
	return err
}

// cuts tells whether the user's own list of nodes names fewer nodes than the job may have started on.
func (c grants) cuts(a cluster.Action) bool {
	list, err := hostlist.Expand(strings.Join(a.NodeList, ","))
	if len(a.NodeList) == 0 {
		return false
	}
	most := arrays(c).most(a.Record)
	return err != nil || most == 0 || most > len(list)
}

// shutFirst shuts a job's gate by a request of its own, without a list of nodes, and makes sure that
// the job waits behind it.
func (c gates) shutFirst(ctx context.Context, id int64, a cluster.Action, ch change) error {
	gate := maps.Clone(ch)
	delete(gate, "required_nodes")
	if a.Verb == cluster.Open {
		gate = change{"begin_time": beginAt(c.now().Add(cluster.Minute))}
	}
	if err := c.update(ctx, id, gate); err != nil {
		return err
	}
	_, err := grants(c).waits(ctx, id)
	return err
}

// waits reads a record again. It is a skip unless the job waits.
func (c grants) waits(ctx context.Context, id int64) (*wireJob, error) {
	all, err := c.readRecord(ctx, id)
	if err != nil {
		return nil, moot(err)
	}
	for i := range all {
		if all[i].id == id && all[i].is("PENDING") {
			return &all[i], nil
		}
	}
	return nil, skip("it is no longer waiting")
}

// listed makes a change that has a list of nodes. Slurm refuses the list where the job has started on
// other nodes.
func (c grants) listed(ctx context.Context, id int64, ch change) error {
	err := c.update(ctx, id, ch)
	if codeOf(err) != codeInvalidNodes {
		return err
	}
	if _, why := c.waits(ctx, id); why != nil {
		return why
	}
	return err
}
