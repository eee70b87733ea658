package slurm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// mostSplit is the maximum number of tasks that one scontrol splits off.
const mostSplit = 64

// needsRecord tells whether an action is for one task of a waiting array that has no record of its own yet.
func needsRecord(a *cluster.Action) bool {
	return a.UnsplitArray && !a.Array && !a.Suppressed && (a.Verb == cluster.Grant || a.Verb == cluster.RevokeGrant || a.Verb == cluster.Open)
}

// splitOff gives the tasks of the actions records of their own, with one scontrol for many. Tasks
// for which that fails are retried singly in their turn.
func (c arrays) splitOff(ctx context.Context, actions []cluster.Action) {
	clear(c.split)
	tasks := map[int64][]string{} // by record
	ids := map[int64][]cluster.JobID{}
	for i := range actions {
		if a := &actions[i]; needsRecord(a) {
			tasks[a.Record], ids[a.Record] = append(tasks[a.Record], a.ID.String()), append(ids[a.Record], a.ID)
		}
	}
	for _, record := range slices.Sorted(maps.Keys(tasks)) {
		for from := 0; from < len(tasks[record]); from += mostSplit {
			to := min(from+mostSplit, len(tasks[record]))
			if ctx.Err() != nil || (gates(c)).gateTasks(ctx, strings.Join(tasks[record][from:to], ","), c.splitUntil(record)) != nil {
				continue
			}
			for _, id := range ids[record][from:to] {
				if c.split == nil {
					c.split = map[cluster.JobID]bool{}
				}
				c.split[id] = true
			}
		}
	}
}

// splitUntil is the begin time of split-off tasks, so that the split does not start them.
func (c arrays) splitUntil(record int64) cluster.Instant {
	gate := c.now().Add(cluster.Minute)
	if rec := c.seen.records[record]; rec != nil && len(rec.jobs) > 0 {
		gate = max(gate, rec.jobs[0].Eligible)
	}
	return gate
}

// ownRecord is the record by which REST addresses this job alone. A task of a waiting array gets
// one when it is split off, which does not start it.
func (c arrays) ownRecord(ctx context.Context, a cluster.Action) (int64, error) {
	if !a.UnsplitArray || a.Array {
		return a.Record, nil
	}
	if !c.split[a.ID] {
		if err := (gates(c)).gateTask(ctx, a.ID, c.splitUntil(a.Record)); err != nil {
			return 0, err
		}
	}
	states, _, err := c.states(ctx, "?job_id="+a.ID.String(), 0)
	if err != nil {
		return 0, moot(err)
	}
	index, _ := a.ID.Index()
	for _, record := range slices.Sorted(maps.Keys(states)) {
		if slices.Contains(states[record].tasks, int(index)) {
			c.touch(record)
			return record, nil
		}
	}
	return 0, skip(fmt.Sprintf("Slurm no longer knows %v", a.ID))
}
