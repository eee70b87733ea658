package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
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

// reservationFlags: IGNORE_JOBS, since the nodes are busy when it is made. FLEX, or its end would
// kill the jobs in it. NO_HOLD_JOBS_AFTER_END, or its end would hold a job that still waits for
// it. OVERLAP, so that one node can be handed over twice in a row.
var reservationFlags = []string{"IGNORE_JOBS", "FLEX", "NO_HOLD_JOBS_AFTER_END", "OVERLAP"}

// reserve makes the reservation, or changes an existing one. It may have changed since the last
// look, so the other request is tried too.
func (c reservations) reserve(ctx context.Context, a cluster.Action) error {
	c.seen.reservations.ask = 0
	reserve := c.reserveByREST
	if !c.speech.version.reserves() {
		reserve = c.reserveByScontrol
	}
	there := c.knowsReservation(a.Reservation)
	err := reserve(ctx, a, !there)
	switch code := codeOf(err); {
	case there && code == codeUnknownResv, !there && (code == codeResvStarted || code == codeDuplicateResv):
		return reserve(ctx, a, there)
	}
	return err
}

func (c reservations) reserveByREST(ctx context.Context, a cluster.Action, create bool) error {
	body := map[string]any{
		"name":      a.Reservation,
		"accounts":  a.Accounts,
		"node_list": a.Nodes,
		"end_time":  beginAt(a.Until),
	}
	if create { // changing the start time of a started reservation is refused
		body["start_time"] = beginNow(c.now())
		body["flags"] = reservationFlags
	}
	return c.rest.put(ctx, http.MethodPost, c.path("reservation"), body, nil)
}

func (c reservations) reserveByScontrol(ctx context.Context, a cluster.Action, create bool) error {
	args := []string{
		"update", "reservation",
		"ReservationName=" + a.Reservation,
		"Accounts=" + strings.Join(a.Accounts, ","),
		"Nodes=" + strings.Join(a.Nodes, ","),
		"EndTime=" + scontrolTime(a.Until),
	}
	if create {
		args[0] = "create"
		args = append(args, "StartTime=now", "Flags="+strings.Join(reservationFlags, ","))
	}
	_, err := c.scontrol(ctx, args...)
	return err
}

func (c reservations) knowsReservation(name string) bool {
	for _, r := range c.seen.last.Reservations {
		if r.Name == name {
			return true
		}
	}
	return false
}

// release removes a running job from its reservation, so that the reservation can be deleted
// while the job continues.
func (c reservations) release(ctx context.Context, a cluster.Action) error {
	ch := gates(c).licensed(a, change{"reservation": ""})
	if c.cfg.SiteFactor != 0 {
		ch["site_factor"] = siteFactor(a.SiteFactor)
	}
	err := c.update(ctx, a.Record, ch)
	var moved skip
	if err != nil && !errors.As(err, &moved) {
		return err
	}
	err = c.deleteReservation(ctx, a.Reservation)
	if codeOf(err) == codeResvInUse {
		return nil // by another beneficiary, whose release deletes it
	}
	return err
}

// unreserve deletes a reservation after taking it from all jobs that name it.
func (c reservations) unreserve(ctx context.Context, a cluster.Action) error {
	for _, id := range slices.Sorted(maps.Keys(c.seen.records)) {
		if c.seen.records[id].resv != a.Reservation {
			continue
		}
		c.touch(id)
		err := c.update(ctx, id, change{"reservation": ""})
		var moved skip
		if err != nil && !errors.As(err, &moved) {
			return err
		}
	}
	return c.deleteReservation(ctx, a.Reservation)
}

func (c reservations) deleteReservation(ctx context.Context, name string) error {
	c.seen.reservations.ask = 0
	var err error
	if c.speech.version.reserves() {
		err = c.rest.put(ctx, http.MethodDelete, c.path("reservation/%s", url.PathEscape(name)), nil, nil)
	} else {
		_, err = c.scontrol(ctx, "delete", "reservation="+name)
	}
	if codeOf(err) == codeUnknownResv {
		return nil // gone already
	}
	return err
}

// watchTouched is how long after an action its record is read at every look until it is stable: a
// granted job that does not start gets its true reason only seconds later.
const watchTouched = 2 * cluster.Minute

func (c *link) touch(record int64) {
	if c.seen.touched == nil {
		c.seen.touched = map[int64]cluster.Instant{}
	}
	c.seen.touched[record] = c.now().Add(watchTouched)
}
