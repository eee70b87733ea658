package loop

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Refusal is the error of a journal that cannot store a round's data of some jobs. Nothing of the
// round was written.
type Refusal interface {
	error
	Jobs() []cluster.JobKey
	Why() string
}

// Breakdown is the error of a round on which the engine panicked, whichever jobs were set aside.
type Breakdown struct {
	Cause string
	Stack string // stack trace
}

func (e *Breakdown) Error() string { return "the engine broke down: " + e.Cause }

// BreakdownOf makes the error from a recovered panic.
func BreakdownOf(cause any) *Breakdown {
	return &Breakdown{fmt.Sprintf("%.200s", fmt.Sprint(cause)), string(debug.Stack())}
}

// mostAside is the maximum number of jobs found in one round on which the engine panics. Each
// takes about twenty decisions.
const mostAside = 16

// decide calls the engine. If it panics on some jobs, these are set aside and it is called
// without them. If there are more than one round looks for, that round excludes all jobs of those
// jobs' users; the next round looks further. The snapshot of the first panic goes to Keep.
func (l *Loop) decide(snap cluster.Snapshot) (cluster.Snapshot, cluster.Plan, error) {
	l.forgetAside(&snap)
	snap = without(snap, l.aside)
	plan, broke := l.try(snap)
	if broke == nil {
		l.keepDiffering(snap, plan.Events)
		return snap, plan, nil
	}
	l.Keep(snap, broke)
	for found := range 2 * mostAside {
		culprit, ok := l.culprit(snap)
		if !ok {
			return snap, plan, broke
		}
		if found < mostAside {
			l.setAside("the engine broke down over it: "+broke.Cause, culprit.Record.Key)
			snap = without(snap, l.aside)
		} else {
			snap = without(snap, jobsOf(culprit.Job.User, snap))
		}
		var again *Breakdown
		if plan, again = l.try(snap); again == nil {
			return snap, plan, nil
		}
		broke = again
	}
	return snap, plan, broke
}

// keepDiffering gives the snapshot of a plan that the engine corrected, by its events, to Keep.
func (l *Loop) keepDiffering(snap cluster.Snapshot, events []cluster.Event) {
	at := slices.IndexFunc(events, func(e cluster.Event) bool { return e.Kind == cluster.EventDecisionDiffers })
	if at >= 0 && l.Keep != nil {
		l.Keep(snap, &Breakdown{Cause: events[at].Text})
	}
}

// jobsOf gives all jobs of a user that are not set aside yet, with the reason for setting them
// aside in this round.
func jobsOf(user string, snap cluster.Snapshot) map[cluster.JobKey]string {
	all := map[cluster.JobKey]string{}
	for i := range snap.Cases {
		if j := &snap.Cases[i].Job; j.User == user && j.Aside == "" {
			all[snap.Cases[i].Record.Key] = "the engine breaks down over too many jobs of " + user
		}
	}
	return all
}

// commit decides and commits. Jobs that the journal cannot store are set aside, and the round is
// decided again.
func (l *Loop) commit(write func(cluster.Snapshot, cluster.Plan) error, snap cluster.Snapshot) (cluster.Plan, error) {
	for {
		fit, plan, err := l.decide(snap)
		if err != nil {
			return plan, err
		}
		err = write(fit, plan)
		var refused Refusal
		if !errors.As(err, &refused) {
			return plan, err
		}
		known := len(l.aside)
		l.setAside("the journal cannot write down what is known of it: "+refused.Why(), refused.Jobs()...)
		if len(l.aside) == known {
			return plan, err
		}
	}
}

// try decides. broke describes the engine's panic; nil = none.
func (l *Loop) try(snap cluster.Snapshot) (plan cluster.Plan, broke *Breakdown) {
	if l.Keep == nil {
		return l.Decide(snap), nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			broke = BreakdownOf(cause)
		}
	}()
	return l.Decide(snap), nil
}

// culprit finds, by bisection, the first job with which the engine panics when all later jobs are
// set aside. False = it panics even if all are set aside.
func (l *Loop) culprit(snap cluster.Snapshot) (*cluster.Case, bool) {
	breaks := func(n int) bool { // with only the first n jobs not set aside
		tried := map[cluster.JobKey]string{}
		for i := n; i < len(snap.Cases); i++ {
			tried[snap.Cases[i].Record.Key] = "for a try"
		}
		_, broke := l.try(without(snap, tried))
		return broke != nil
	}
	if breaks(0) {
		return nil, false
	}
	n := sort.Search(len(snap.Cases), func(n int) bool { return breaks(n + 1) })
	if n == len(snap.Cases) {
		return nil, false
	}
	return &snap.Cases[n], true
}

func (l *Loop) setAside(why string, keys ...cluster.JobKey) {
	if l.aside == nil {
		l.aside = map[cluster.JobKey]string{}
	}
	for _, key := range keys {
		l.aside[key] = why
	}
}

// forgetAside drops jobs that have ended from those set aside.
func (l *Loop) forgetAside(snap *cluster.Snapshot) {
	if len(l.aside) == 0 {
		return
	}
	there := map[cluster.JobKey]bool{}
	for i := range snap.Cases {
		there[snap.Cases[i].Record.Key] = !snap.Cases[i].Gone
	}
	maps.DeleteFunc(l.aside, func(key cluster.JobKey, _ string) bool { return !there[key] })
}

// without gives the snapshot with jobs set aside: only the owner and the allocation of each
// remain.
func without(snap cluster.Snapshot, aside map[cluster.JobKey]string) cluster.Snapshot {
	if len(aside) == 0 {
		return snap
	}
	gone := map[cluster.JobID]bool{}
	snap.Cases = slices.Clone(snap.Cases)
	for i := range snap.Cases {
		c := &snap.Cases[i]
		why, ok := aside[c.Record.Key]
		if !ok || c.Gone {
			continue
		}
		j := &c.Job
		gone[j.ID], c.Was = true, 0
		c.Control, c.ControlWhy, c.Left = cluster.Unmanaged, "is set aside: "+why, cluster.LeftAside
		c.Job = cluster.Job{
			ID: j.ID, Record: j.Record, UnsplitArray: j.UnsplitArray, Name: j.Name, User: j.User, UID: j.UID, Account: j.Account, QOS: j.QOS,
			Partitions: j.Partitions, State: j.State, Outcome: j.Outcome, Aside: why, Batch: j.Batch, Holds: j.Holds,
			Submit: j.Submit, Start: j.Start, End: j.End, Suspend: j.Suspend, Restarts: j.Restarts,
		}
	}
	snap.Progress = slices.DeleteFunc(slices.Clone(snap.Progress), func(p cluster.Progress) bool { return gone[p.Job] })
	return snap
}
