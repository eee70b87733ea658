package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Apply implements loop.Cluster.
func (v *Virtual) Apply(_ context.Context, actions []cluster.Action) []cluster.Outcome {
	out := make([]cluster.Outcome, len(actions))
	for i := range actions {
		out[i] = cluster.Outcome{OK: true, At: v.now}
		if err := v.apply(&actions[i]); err != nil {
			out[i] = cluster.Outcome{Error: err.Error(), At: v.now}
		}
		v.changed = true
	}
	v.schedule()
	return out
}

func (v *Virtual) apply(a *cluster.Action) error {
	switch a.Verb {
	case cluster.Lock:
		v.lock(a.Until)
		return nil
	case cluster.Reserve:
		v.unreserve(a.Reservation)
		v.reservations.all = append(v.reservations.all, cluster.Reservation{Name: a.Reservation, Nodes: a.Nodes, Accounts: a.Accounts,
			Start: v.now, End: a.Until, Ours: true})
		v.reservations.byNode = nil
		return nil
	case cluster.Unreserve:
		v.unreserve(a.Reservation)
		return nil
	}
	j, ok := v.jobs[a.ID]
	if !ok {
		return fmt.Errorf("job %s is unknown", a.ID)
	}
	return v.change(j, a)
}

func (v *Virtual) change(j *work, a *cluster.Action) error {
	switch a.Verb {
	case cluster.Notify:
		v.notify(j, a)
	case cluster.Release:
		j.job.Locked = j.job.Locked || a.Lock
		v.reserve(j, "")
		if v.holders[a.Reservation] == 0 {
			v.unreserve(a.Reservation)
		}
	case cluster.Gate, cluster.RevokeGrant, cluster.Open, cluster.Grant:
		if a.Verb == cluster.Gate && j.job.State == cluster.Running && (a.Lock || a.Unlock) {
			j.job.Locked = a.Lock
			v.moved(j)
			return nil
		}
		if j.job.State != cluster.Waiting {
			return fmt.Errorf("job %s is no longer pending", a.ID)
		}
		if a.Array && j.array != nil {
			for _, task := range j.array.tasks {
				v.steer(task, a)
			}
			return nil
		}
		v.split(j)
		if err := ask(v, j, a.Ask); err != nil {
			return err
		}
		v.steer(j, a)
	case cluster.Suspend:
		return suspend(v, j)
	case cluster.Resume:
		if j.job.State != cluster.Suspended {
			return fmt.Errorf("job %s is not suspended", a.ID)
		}
		resume(v, j)
	case cluster.Reclaim:
		if j.job.State == cluster.Done {
			return nil
		}
		if !j.job.Batch {
			return fmt.Errorf("job %s: only batch jobs are accepted or processed", a.ID)
		}
		j.job.Requeueable = true
		if v.requeue(j, true, true) {
			v.steer(j, a)
		}
	default:
		return fmt.Errorf("no such action: %q", a.Verb)
	}
	return nil
}

// notify sends a job its signal. The job reads the lease's end from the lease's record.
func (v *Virtual) notify(j *work, a *cluster.Action) {
	if !v.Forget {
		v.Log = append(v.Log, fmt.Sprintf("%s %s to %s", a.ID, a.Signal, a.SignalTo))
	}
	if a.Resume {
		resume(v, j)
	}
	if j.job.State != cluster.Running {
		return
	}
	j.progress = j.pace.notice(j.pace.walk(j.progress, v.now), a.Reason.Until)
	v.plan(j)
}

// steer applies an update of a job.
func (v *Virtual) steer(j *work, a *cluster.Action) {
	defer v.moved(j)
	if j.priority = a.SiteFactor; !a.Lock {
		j.job.Eligible = a.Until
	}
	j.job.Locked = a.Lock || j.job.Locked && !a.Unlock
	switch a.Verb {
	case cluster.Gate:
		return
	case cluster.Grant:
		j.job.Eligible, j.job.NodeList = v.now, slices.Clone(a.Nodes)
		v.reserve(j, a.Reservation)
		if a.Scatter {
			j.job.Request.Unplaceable = ""
		}
		if a.Limit > 0 {
			j.job.Limit = a.Limit
		}
		return
	case cluster.Open:
		j.job.Eligible = max(a.Until, v.now)
	}
	j.job.NodeList = slices.Clone(a.NodeList)
	v.reserve(j, "")
}
