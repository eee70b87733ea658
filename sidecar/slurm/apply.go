package slurm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Apply carries out the actions in order and gives one outcome each. Consecutive gates are
// independent and use several connections. An action is skipped if it needs a reservation that
// could not be made, or if its beneficiary got no grant. No change is ever sent twice.
func (c *Client) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]cluster.Outcome, len(actions))
	if err := c.talk(ctx); err != nil {
		for i := range out {
			out[i] = cluster.Outcome{Error: err.Error(), At: c.now()}
		}
		return out
	}
	b := batch{client: c, courier: &courier{until: time.Now().Add(planLife)}, broken: map[string]string{}, granted: map[string]bool{}}
	for _, a := range actions {
		if a.Record != 0 && !a.Suppressed {
			c.touch(a.Record)
		}
	}
	arrays{c.link}.splitOff(ctx, actions)
	for from := 0; from < len(actions); {
		to := from + 1
		verb := actions[from].Verb
		for together[verb] && to < len(actions) && actions[to].Verb == verb {
			to++
		}
		if verb == cluster.Suspend || verb == cluster.Resume {
			b.turn(ctx, verb, actions[from:to], out[from:to])
		} else {
			b.carryOut(ctx, actions[from:to], out[from:to])
		}
		from = to
	}
	return out
}

// together are the verbs whose consecutive actions are independent of each other.
var together = map[cluster.Verb]bool{cluster.Gate: true, cluster.Suspend: true, cluster.Resume: true}

// batch is one call of Apply.
type batch struct {
	client  *Client
	courier *courier
	// broken says why a reservation is unusable: actions that need it are skipped. granted are
	// the reservations with at least one successful grant.
	broken  map[string]string
	granted map[string]bool
	// suspended is true once a job was.
	suspended bool
}

// carryOut does the actions: one, or several gates in parallel.
func (b *batch) carryOut(ctx context.Context, actions []cluster.Action, out []cluster.Outcome) {
	if len(actions) == 1 {
		out[0] = b.one(ctx, actions[0])
		return
	}
	next := make(chan int)
	var all sync.WaitGroup
	for range min(connections, len(actions)) {
		all.Go(func() {
			for i := range next {
				out[i] = b.one(ctx, actions[i])
			}
		})
	}
	for i := range actions {
		next <- i
	}
	close(next)
	all.Wait()
}

// skip is the error of an action that was rightly not carried out.
type skip string

func (s skip) Error() string { return string(s) }

func (b *batch) one(ctx context.Context, a cluster.Action) cluster.Outcome {
	now, began := b.client.now(), time.Now()
	var stopped cluster.Instant
	err := b.do(ctx, a, &stopped)
	b.courier.heard(err)
	b.remember(a, err)
	o := outcomeOf(err, now, cluster.SpanOf(time.Since(began)))
	o.Stopped = stopped
	return o
}

func outcomeOf(err error, at cluster.Instant, took cluster.Span) cluster.Outcome {
	o := cluster.Outcome{At: at, Took: took}
	var s skip
	var e *Error
	switch {
	case err == nil:
		o.OK = true
	case errors.As(err, &s):
		o.Skipped, o.Error = true, err.Error()
	case errors.As(err, &e) && e.Unknown:
		o.Error = err.Error() + " (outcome unknown; not repeated, the next round checks)"
	default:
		o.Error = err.Error()
	}
	return o
}

// remember keeps the results that later actions need.
func (b *batch) remember(a cluster.Action, err error) {
	switch {
	case a.Reservation == "":
	case a.Verb == cluster.Reserve && err != nil:
		b.broken[a.Reservation] = err.Error()
	case a.Verb == cluster.Grant && err == nil:
		b.granted[a.Reservation] = true
		delete(b.broken, a.Reservation)
	case a.Verb == cluster.Grant && !b.granted[a.Reservation] && b.broken[a.Reservation] == "":
		b.broken[a.Reservation] = fmt.Sprintf("the grant of %v failed: %v", a.ID, err)
	}
}

// do carries out one action. A reclaim sets stopped; see cluster.Outcome.
func (b *batch) do(ctx context.Context, a cluster.Action, stopped *cluster.Instant) error {
	c := b.client
	if a.Suppressed {
		return skip("suppressed")
	}
	if ctx.Err() != nil {
		return skip("stopped before its turn")
	}
	if why := b.courier.stopped(); why != "" {
		return skip(why)
	}
	if why := b.broken[a.Reservation]; why != "" && (a.Verb == cluster.Grant || a.Verb == cluster.Reclaim) {
		return skip(fmt.Sprintf("skipped: reservation %s could not be made: %s", a.Reservation, why))
	}
	switch a.Verb {
	case cluster.Gate:
		return gates{c.link}.gate(ctx, a)
	case cluster.Reserve:
		return reservations{c.link}.reserve(ctx, a)
	case cluster.Lock:
		return gates{c.link}.lock(ctx, a)
	case cluster.Grant:
		grants{c.link}.settle(ctx, a.Record)
		return grants{c.link}.grant(ctx, a)
	case cluster.RevokeGrant:
		return grants{c.link}.putBack(ctx, a, beginAt(a.Until))
	case cluster.Open:
		grants{c.link}.settle(ctx, a.Record)
		begin := beginNow(c.now())
		if a.Until > c.now() { // the user's own begin time
			begin = beginAt(a.Until)
		}
		return grants{c.link}.putBack(ctx, a, begin)
	case cluster.Notify:
		return stops{c.link}.notify(ctx, a)
	case cluster.Reclaim:
		return stops{c.link}.reclaim(ctx, a, stopped)
	case cluster.Release:
		return reservations{c.link}.release(ctx, a)
	case cluster.Unreserve:
		return reservations{c.link}.unreserve(ctx, a)
	}
	return fmt.Errorf("no such action: %q", a.Verb)
}

// change is the body of POST /job/{id}.
type change map[string]any

// num is a number in Slurm's syntax. An omitted number means "no change"; {"set":false} does not:
// as a begin time it means "now".
func num(n int64) map[string]any {
	return map[string]any{"set": true, "infinite": false, "number": n}
}

// beginAt is a begin time in whole seconds, never before t.
func beginAt(t cluster.Instant) map[string]any { return num(ceil(int64(t), 1000)) }

// beginNow is a begin time in the past on every clock that differs by less than a minute from
// ours; slurmctld takes any past moment as now.
func beginNow(now cluster.Instant) map[string]any { return num(int64(now)/1000 - 60) }

func ceil(n, unit int64) int64 { return (n + unit - 1) / unit }

// nodeList is a node list for an update: [""] clears, [] changes nothing.
func nodeList(nodes []string) []string {
	if len(nodes) == 0 {
		return []string{""}
	}
	return nodes
}

// siteFactor is the REST value for a site factor of n: Slurm's raw number, an offset from 1<<31.
func siteFactor(n int64) int64 { return 1<<31 + n }

func (c *link) update(ctx context.Context, record int64, ch change) error {
	err := moot(c.rest.put(ctx, http.MethodPost, c.path("job/%d", record), ch, nil))
	return c.looked(ctx, record, ch, err)
}

// moot turns refusals because of a changed job state into skips.
func moot(err error) error {
	switch codeOf(err) {
	case codeNotPending:
		return skip("it is no longer waiting")
	case codeUnknownJob:
		return skip("Slurm no longer knows it")
	case codeFinished, codeJobFinished:
		return skip("it has finished")
	}
	return err
}

// gate shuts the gate of one job.
func (c gates) gate(ctx context.Context, a cluster.Action) error {
	ch, err := c.gateChange(a)
	switch {
	case err != nil:
		return err
	case ch == nil:
		if a.Lock {
			_, err := c.scontrol(ctx, "update", "jobid="+a.ID.String(), "Licenses="+c.locked(a))
			return moot(err)
		}
		until, err := c.gateUntil(a)
		if err != nil {
			return err
		}
		return c.gateTask(ctx, a.ID, until)
	}
	return c.update(ctx, a.Record, ch)
}

// gateChange gives the change that shuts the gate; nil = REST cannot do it, use scontrol.
func (c gates) gateChange(a cluster.Action) (change, error) {
	rec := c.seen.records[a.Record]
	if !a.Lock && rec != nil && len(rec.jobs) > 0 && rec.jobs[0].State == cluster.Completing && !c.speech.version.gatesCompleting() {
		return nil, skip("it still cleans up")
	}
	if a.UnsplitArray && !a.Array {
		return nil, nil
	}
	if a.Unlock && rec != nil && len(rec.jobs) > 0 && holds(rec.jobs[0].State) && rec.jobs[0].State != cluster.Completing {
		return change{"licenses": a.Licenses}, nil
	}
	if a.Lock {
		ch := c.licensed(a, change{})
		if a.SiteFactor != 0 {
			ch["site_factor"] = siteFactor(a.SiteFactor)
		}
		return ch, nil
	}
	until, err := c.gateUntil(a)
	if err != nil {
		return nil, err
	}
	return c.licensed(a, change{"begin_time": beginAt(until)}), nil
}

// gateUntil is a.Until, or less if the job's deadline comes first: Slurm kills a job that still
// waits then. A moment in the past would open the gate.
func (c gates) gateUntil(a cluster.Action) (cluster.Instant, error) {
	last := c.seen.records[a.Record].lastStart()
	if last == 0 || a.Until <= last {
		return a.Until, nil
	}
	if last <= c.now() {
		return 0, skip("its deadline leaves no time to wait behind a gate")
	}
	return last, nil
}

// lastStart is the latest start with which a job can meet its deadline; 0 = no deadline.
func (r *record) lastStart() cluster.Instant {
	if r == nil || len(r.jobs) == 0 || r.jobs[0].Deadline == 0 {
		return 0
	}
	return r.jobs[0].Deadline.Add(-max(r.least, cluster.Minute))
}

// gateTask shuts the gate of one task of a waiting array. The task gets a record of its own,
// which REST can address from then on.
func (c gates) gateTask(ctx context.Context, id cluster.JobID, until cluster.Instant) error {
	return c.gateTasks(ctx, id.String(), until)
}

// gateTasks is gateTask for several tasks, separated by commas.
func (c gates) gateTasks(ctx context.Context, tasks string, until cluster.Instant) error {
	_, err := c.scontrol(ctx, "update", "jobid="+tasks, "StartTime="+scontrolTime(until))
	return moot(err)
}

func scontrolTime(t cluster.Instant) string { return fmt.Sprintf("uts%d", ceil(int64(t), 1000)) }

// watchTouched is how long after an action its record is read at every look until it is stable: a
// granted job that does not start gets its true reason only seconds later.
const watchTouched = 2 * cluster.Minute

func (c *link) touch(record int64) {
	if c.seen.touched == nil {
		c.seen.touched = map[int64]cluster.Instant{}
	}
	c.seen.touched[record] = c.now().Add(watchTouched)
}
