package slurm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// whom gives the flag for the processes that receive a signal (see Settings.SignalTo).
var whom = map[string]string{"steps": "FULL_STEPS_ONLY", "batch": "BATCH_JOB", "all": "FULL_JOB"}

// notify sends the notice's signal, if it has one. Slurm answers 200 for every result; the real one is in status[].
func (c stops) notify(ctx context.Context, a cluster.Action) error {
	if a.Resume {
		var e *Error // if Slurm refuses, somebody was faster
		if _, err := c.scontrol(ctx, "resume", a.ID.String()); err != nil && (!errors.As(err, &e) || e.Unknown) {
			return fmt.Errorf("resuming %v before its notice: %w", a.ID, err)
		}
	}
	if a.Signal == "" {
		return nil
	}
	flag, ok := whom[a.SignalTo]
	if !ok {
		return fmt.Errorf("notice to %v: signal %q to %q: say steps, batch or all", a.ID, a.Signal, a.SignalTo)
	}
	q := url.Values{"signal": {a.Signal}, "flags": {flag}}
	var bad *problem
	heard := false
	err := c.rest.put(ctx, http.MethodDelete, c.path("job/%v?%s", a.ID, q.Encode()), nil, func(r *reader, name string) bool {
		if name != "status" {
			return false
		}
		r.array(func() {
			if p := readStatus(r); p.code != 0 {
				bad = &p
			} else {
				heard = true
			}
		})
		return true
	})
	if err != nil || heard || bad == nil {
		return moot(err)
	}
	switch bad.code {
	case codeFinished, codeUnknownJob:
		return skip("it has finished")
	case codePending:
		return skip("it waits")
	}
	return &Error{Doing: fmt.Sprintf("signal %s to %v", a.Signal, a.ID), Code: bad.code, Err: errors.New(bad.words())}
}

// readStatus reads one entry of a DELETE's status[].
func readStatus(r *reader) problem {
	var p problem
	r.object(func(name string) {
		if name != "error" || r.kind() != '{' {
			r.skip()
			return
		}
		r.object(func(name string) {
			switch name {
			case "code":
				p.code = int(r.number().n)
			case "string":
				p.text = r.text()
			case "message":
				p.description = r.text()
			default:
				r.skip()
			}
		})
	})
	return p
}

// reclaim requeues the job, never one that has finished, and at once gates it far ahead. A future
// begin time that is set while the job cleans up survives that; "now" would not. If the version
// forbids this (see gatesCompleting), Slurm's own delay of two minutes after a requeue must last
// until the next round's gate. A job that its owner has made not requeueable since its grant is made requeueable first.
func (c stops) reclaim(ctx context.Context, a cluster.Action, stopped *cluster.Instant) error {
	w, err := c.readJob(ctx, a.Record, a.ID)
	if err != nil {
		return err
	}
	requeued := func() bool { return w.restarts > a.Restarts && w.is("PENDING") }
	switch {
	case requeued():
	case finished(w):
		return skip("it has finished")
	case w.restarts > a.Restarts:
		return skip("it was requeued and runs again")
	case w.is("PENDING"):
		return skip("it is not running")
	default:
		if !w.requeue && w.batch {
			if err := c.update(ctx, w.id, change{"requeue": true}); err != nil {
				return err
			}
		}
		sent := c.now()
		if err := c.requeue(ctx, a, w); err != nil {
			return err
		}
		*stopped = sent.Add(c.now().Sub(sent) / 2)
		if w, err = c.readJob(ctx, a.Record, a.ID); err != nil {
			return err
		}
		switch {
		case requeued():
		case finished(w):
			return skip("it has finished")
		default:
			return fmt.Errorf("requeue of %v: Slurm agreed, but the job is %s and was restarted %d times as before", a.ID, strings.Join(w.states, ","), w.restarts)
		}
	}
	ch := grants(c).asTheUserHadIt(a, beginAt(a.Until))
	if w.is("COMPLETING") && !c.speech.version.gatesCompleting() {
		delete(ch, "begin_time")
	}
	if (grants(c)).cuts(a) {
		err = gates(c).shutFirst(ctx, w.id, a, ch)
	}
	if err == nil {
		err = c.update(ctx, w.id, ch)
	}
	var moved skip
	switch {
	case errors.As(err, &moved):
		return fmt.Errorf("%v was requeued, but its gate could not be set: %s", a.ID, string(moved))
	case err != nil:
		return fmt.Errorf("%v was requeued, but its gate could not be set: %w", a.ID, err)
	}
	return nil
}

func finished(w *wireJob) bool { return !w.is("PENDING") && !w.is("RUNNING") && !w.is("SUSPENDED") }

// requeue uses the one request that never revives a job which has just finished. A suspended job
// is resumed first: otherwise it would not receive the signal, and would come out of it held.
func (c stops) requeue(ctx context.Context, a cluster.Action, w *wireJob) error {
	if w.is("SUSPENDED") {
		if _, err := c.scontrol(ctx, "resume", a.ID.String()); err != nil {
			return fmt.Errorf("resuming %v before its requeue: %w", a.ID, err)
		}
	}
	if !c.speech.version.requeues() {
		_, err := c.scontrol(ctx, "requeue", "Incomplete", a.ID.String())
		return moot(err)
	}
	body := map[string]any{"jobs": []string{a.ID.String()}, "flags": []string{"Incomplete"}}
	return moot(c.rest.put(ctx, http.MethodPost, c.path("jobs/requeue"), body, nil))
}

// readJob reads one job again. It is a skip if Slurm no longer knows the job.
func (c stops) readJob(ctx context.Context, id int64, job cluster.JobID) (*wireJob, error) {
	all, err := c.readRecord(ctx, id)
	if err != nil {
		return nil, moot(err)
	}
	_, isTask := job.Index()
	for i := range all {
		if all[i].jobID() == job || all[i].id == id && (!isTask || len(all) == 1) {
			if all[i].wrong != "" {
				return nil, skip("its record makes no sense: " + all[i].wrong)
			}
			return &all[i], nil
		}
	}
	return nil, skip("Slurm no longer knows it")
}
