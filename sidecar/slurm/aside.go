package slurm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// aside translates the usable part of an invalid record (w.wrong), so that the rest of the list
// stays usable: its owner, its allocation, and why nothing is done with it. Earlier knowledge
// stays.
func (t *translator) aside(w *wireJob, before *record) *record {
	now := stateAside(w, before)
	rec := &record{id: w.id, states: stateKey(w.states), array: w.array, resv: w.resv, wants: asksForGPUs(w)}
	if before != nil {
		known := *before
		rec, known.states = &known, rec.states
		rec.jobs = slices.Clone(before.jobs)
		if len(rec.jobs) > 1 && now != cluster.Waiting { // it now stands for the last of the array's tasks
			rec.jobs = rec.jobs[:1]
			rec.jobs[0].ID, rec.jobs[0].UnsplitArray, rec.tasks = w.jobID(), false, 0
		}
	} else if held := t.heldAside(w, now); rec.wants || len(held) > 0 {
		rec.jobs = []cluster.Job{{
			ID: w.jobID(), Record: w.id, Name: w.name, User: w.user, UID: uint32(w.uid.n), Account: w.account, QOS: w.qos,
			Partitions: w.partition, PendingReason: because(w), Batch: w.batch, Holds: held,
			Submit: instant(w.submit), Restarts: w.restarts,
		}}
	}
	for i := range rec.jobs {
		j := &rec.jobs[i]
		j.Aside = w.wrong
		if j.State = now; j.State == cluster.Waiting {
			continue
		}
		j.Blur = half
		if j.Start == 0 {
			j.Start = within(w.start)
		}
		if len(j.Holds) == 0 {
			j.Holds = t.heldAside(w, now)
		}
		if j.State == cluster.Done {
			j.Holds, j.End, j.Outcome = nil, within(w.end), cmp.Or(outcome(w.states), w.states[0])
		}
	}
	return rec
}

// stateAside is the state of an invalid record. Of one whose state is not known it is the one before, else that of a job that occupies
// its nodes and gets no lease.
func stateAside(w *wireJob, before *record) cluster.JobState {
	switch s := state(w); {
	case s != "":
		return s
	case before != nil && len(before.jobs) > 0:
		return before.jobs[0].State
	case w.nodes != "":
		return cluster.Completing
	}
	return cluster.Waiting
}

// asksForGPUs tells whether a record mentions GPUs in any form.
func asksForGPUs(w *wireJob) bool {
	return slices.ContainsFunc([]string{w.wanted, w.got, w.perJob, w.perNode, w.perSocket, w.perTask}, func(s string) bool { return strings.Contains(s, "gpu") })
}

// heldAside gives the part of the allocation that is readable.
func (t *translator) heldAside(w *wireJob, now cluster.JobState) []cluster.Holding {
	if !holds(now) {
		return nil
	}
	out, _, err := t.holdings(w)
	if err == nil {
		return out
	}
	rest := *w
	rest.detail = nil
	out, _, _ = t.holdings(&rest)
	return out
}
