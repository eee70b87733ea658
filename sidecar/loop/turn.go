package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Loop makes turns. It is for one goroutine.
type Loop struct {
	Cluster Cluster
	Journal Journal
	// Decide is the engine.
	Decide func(cluster.Snapshot) cluster.Plan
	// Divide answers a plan's question, which is its only input; nil = questions stay unanswered.
	// With Beside it runs beside the rounds, in its own goroutine, one question at a time.
	Divide func(cluster.AllocationRequest) cluster.Allocation
	Beside bool
	// Schedulers gives the virtual clusters' own schedulers after a round, with what each is asked; nil = there are none. With Beside they are asked,
	// each in its own goroutine; without, none is.
	Schedulers func(cluster.Snapshot, cluster.Plan) []Scheduler
	// Past gives the ended attempts of the accounting history up to a moment; nil = there is none. It is called once, in its
	// own goroutine with Beside, where run times are learnt from and none is remembered. It reports its own errors.
	Past func(until cluster.Instant) []cluster.Attempt
	// Configure gives the rules and settings in force. Every turn calls it. Its lists are never
	// modified afterwards, only replaced.
	Configure func() (Rules, cluster.Settings)
	// Brief says that the snapshot given to Decide and the journal is valid until the next turn
	// only: its buffers are then reused.
	Brief bool
	// Keep receives a snapshot on which the engine panicked, and the panic. The round is made
	// without the jobs that caused it. nil = a breakdown is a panic. It receives one for which the engine made a wrong plan, too, and has corrected
	// it.
	Keep func(cluster.Snapshot, *Breakdown)

	aside  map[cluster.JobKey]string // jobs that are set aside, and why
	desk   desk
	memory cluster.State
	opened bool
	roll   []cluster.Member   // of tenants, as in the journal; nil = unknown
	next   cluster.Instant    // of the last plan
	was    *config            // of the last committed round; nil = every observation is news
	heard  []cluster.Progress // since the last committed round
	past   []cluster.Attempt  // not learnt from yet
	recall chan []cluster.Attempt
	answer chan answered   // of the pending question; nil = none
	asked  cluster.Instant // when it was asked
	orders orders
	broke  string // cause of a failed answer that is not yet reported
}

// answered is the result of a question.
type answered struct {
	cluster.Allocation
	broke string // panic and place; "" = none
}

// config is the input of a turn besides the cluster.
type config struct {
	rules    Rules
	settings cluster.Settings
	orders   []cluster.Override
}

// Report is the result of a turn.
type Report struct {
	Plan     cluster.Plan
	Outcomes []cluster.Outcome
	// Quiet is true if nothing had changed and time alone changes nothing yet: nothing was
	// decided or written.
	Quiet bool
	Jobs  int
	// Waits is how long the answer to a question has been pending; 0 = none is. Broke reports,
	// once, the panic in an answer and its place.
	Waits cluster.Span
	Broke string
	// Recalled are the last known limits, if Slurm has given none since the start of the daemon; nil = it has, or none are known.
	Recalled *cluster.Limits
}

// ErrJournal marks an error of the journal: nothing was done in this turn.
var ErrJournal = errors.New("journal")

// Turn makes one round. An error means that the round did not happen and nothing was guessed. The
// next look settles what had been committed.
func (l *Loop) Turn(ctx context.Context) (Report, error) {
	if err := l.open(ctx); err != nil {
		return Report{}, err
	}
	l.hear()
	news, cause := l.orders.hear()
	if l.broke = cmp.Or(l.broke, cause); news {
		l.was, l.next = nil, l.memory.Ledger.At
	}
	// Look.
	seen, err := l.Cluster.Observe(ctx, l.memory.Ledger.At)
	if err != nil {
		return Report{}, fmt.Errorf("look at the cluster: %w", err)
	}
	l.heard = telling(l.heard, seen.Progress)
	seen.Progress = l.heard
	orders, err := l.Journal.Overrides(ctx, seen.Now)
	if err != nil {
		l.was = nil // changes found by this look are news to the next
		return Report{}, fmt.Errorf("%w: read overrides: %w", ErrJournal, err)
	}
	rules, settings := l.configure()
	l.orders.keep(rules.Cells)
	seen.VCOrders = l.orders.last
	l.remind(&seen, &settings)
	now := &config{rules, settings, orders}
	if seen.Unchanged && !saved(l.heard) && len(l.past) == 0 && l.was != nil && reflect.DeepEqual(now, l.was) && (l.next == 0 || seen.Now < l.next) {
		return Report{Quiet: true, Jobs: len(seen.Jobs), Waits: l.waits(seen.Now)}, nil
	}
	l.was = nil // until this round is committed, changes are news
	// Remember.
	snap, err := l.desk.remember(l.memory, seen, orders, rules, settings)
	if err != nil {
		return Report{}, err
	}
	settled := l.desk.settled
	l.desk.cases, l.desk.brief, l.desk.settled = snap.Cases, l.Brief, nil
	if !l.Brief && !numbered(seen.Jobs) { // no case will be known to be as it was
		l.desk.cases = nil
	}
	// Decide, and write down.
	plan, err := l.commit(func(s cluster.Snapshot, p cluster.Plan) error { return l.Journal.Commit(ctx, s, p) }, snap)
	var broke *Breakdown
	if errors.As(err, &broke) {
		return Report{}, fmt.Errorf("round %d: %w", snap.Round, err)
	}
	if err != nil {
		l.opened = false // memory and journal may differ
		return Report{}, fmt.Errorf("%w: commit round %d: %w", ErrJournal, plan.Round, err)
	}
	l.memory, l.next, l.was, l.heard, l.past, l.desk.acts = plan.State, plan.Next, now, nil, nil, l.desk.acts[:0]
	l.memory.Limits = snap.Limits()
	if len(l.aside) == 0 {
		l.desk.settled = settled
	}
	if plan.AllocationRequest != nil && l.Divide != nil {
		l.ask(*plan.AllocationRequest)
	}
	if l.Schedulers != nil && l.Beside {
		l.orders.ask(l.Schedulers(snap, plan), snap.Now)
	}
	// Act.
	outcomes := l.act(ctx, plan.Actions)
	if len(plan.Actions) > 0 {
		l.next = seen.Now // the effects of the actions must be observed
		l.desk.acted(plan.Actions, outcomes)
	}
	report := Report{Plan: plan, Outcomes: outcomes, Jobs: len(seen.Jobs), Waits: l.waits(seen.Now), Broke: l.broke}
	if seen.Limits.Read == 0 {
		report.Recalled = snap.Limits()
	}
	l.broke = ""
	if err := l.Journal.Settle(ctx, plan, outcomes); err != nil {
		return report, fmt.Errorf("%w: settle round %d: %w", ErrJournal, plan.Round, err)
	}
	if err := l.enrol(ctx, seen.Members); err != nil {
		return report, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return report, nil
}

// configure gives the rules and settings in force. After a trip of the breaker nothing is acted on.
func (l *Loop) configure() (Rules, cluster.Settings) {
	rules, settings := l.Configure()
	rules.Tripped = l.memory.Breaker.Open(&rules.Resumed)
	return rules, settings
}

// enrol stores the users of tenants in the journal, if they have changed.
func (l *Loop) enrol(ctx context.Context, accounts []cluster.Member) error {
	roll := make([]cluster.Member, 0, len(accounts))
	for _, m := range accounts {
		if m.Tenant = l.desk.tree.tenant(m.Tenant); m.Tenant != "" {
			roll = append(roll, m)
		}
	}
	if l.roll != nil && slices.Equal(roll, l.roll) {
		return nil
	}
	if err := l.Journal.Enrol(ctx, roll); err != nil {
		return err
	}
	l.roll = roll
	return nil
}

// ask starts answering a question. While another is pending, it does nothing: the question will
// be asked again.
func (l *Loop) ask(q cluster.AllocationRequest) {
	switch {
	case !l.Beside && l.Keep == nil:
		d := l.Divide(q)
		d.At = q.At
		l.learn(d)
		return
	case !l.Beside:
		a := attempt(l.Divide, q)
		l.broke = cmp.Or(a.broke, l.broke)
		l.learn(a.Allocation)
		return
	}
	if l.answer == nil {
		answers, divide := make(chan answered, 1), l.Divide
		l.answer, l.asked = answers, q.At
		go func() { answers <- attempt(divide, q) }()
	}
}

// attempt answers a question. If the policy panics, all tenants get weighted shares.
func attempt(divide func(cluster.AllocationRequest) cluster.Allocation, q cluster.AllocationRequest) (a answered) {
	defer func() {
		if cause := recover(); cause != nil {
			a.Allocation = cluster.Allocation{Policy: q.Policy, Digest: q.Digest, NextTrade: q.NextTrade, Why: fmt.Sprintf("the policy broke down: %v", cause)}
			a.broke = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
		a.At = q.At
	}()
	return answered{Allocation: divide(q)}
}

// hear takes the answer, if there is one.
func (l *Loop) hear() {
	select {
	case a := <-l.answer:
		l.answer = nil
		l.broke = cmp.Or(a.broke, l.broke)
		l.learn(a.Allocation)
	default:
	}
}

// remind adds the accounting history to a look, if run times can be learnt from it. No round waits for it.
func (l *Loop) remind(seen *cluster.Observation, s *cluster.Settings) {
	if l.Past == nil || !s.Divides() || s.NoEstimates || s.NoCompletions {
		return
	}
	if l.recall == nil {
		l.recall = make(chan []cluster.Attempt, 1)
		if until := cmp.Or(l.memory.Ledger.At, seen.Now); len(l.memory.Completions) > 0 {
			return // it was learnt from before
		} else if l.Beside {
			go func(to chan<- []cluster.Attempt, past func(cluster.Instant) []cluster.Attempt) { to <- past(until) }(l.recall, l.Past)
		} else {
			l.recall <- l.Past(until)
		}
	}
	select {
	case past := <-l.recall:
		l.past = append(l.past, past...)
	default:
	}
	seen.History = l.past
}

// waits gives how long an answer has been pending; 0 = none is.
func (l *Loop) waits(now cluster.Instant) cluster.Span {
	if l.answer == nil {
		return 0
	}
	return max(now.Sub(l.asked), 0)
}

// learn replaces the last division. That is news to the next round.
func (l *Loop) learn(d cluster.Allocation) {
	l.memory.Allocation, l.was, l.next = &d, nil, l.memory.Ledger.At
}

// saved tells whether a job has reported a save: just after it is the time to stop the job.
func saved(reports []cluster.Progress) bool {
	return slices.ContainsFunc(reports, func(r cluster.Progress) bool { return r.Saved > 0 })
}

// telling gives the most informative reports of every job, by job: the last one, with the newest
// of its saves, and the first one that shows progress. Its delay after a start shows the cost of
// the start and whether the job resumed; rounds may be quiet for a whole term.
func telling(old, reports []cluster.Progress) []cluster.Progress {
	if len(reports) == 0 {
		return old
	}
	all := slices.Concat(old, reports)
	slices.SortStableFunc(all, func(a, b cluster.Progress) int { return cmp.Or(a.Job.Compare(b.Job), cmp.Compare(a.At, b.At)) })
	kept, began := all[:0], false
	for i := range all {
		x := all[i]
		last := i+1 == len(all) || all[i+1].Job != x.Job
		if !last {
			all[i+1].Saved = max(all[i+1].Saved, x.Saved)
		}
		if first := !began && x.Steps > 0; first || last {
			kept, began = append(kept, x), began || first
		}
		began = began && !last
	}
	return kept
}

// Next gives the moment from which a turn is not quiet even if the cluster does not change; 0 =
// unknown.
func (l *Loop) Next() cluster.Instant { return l.next }

// Preview decides as Turn would now, without writing or acting.
func (l *Loop) Preview(ctx context.Context) (cluster.Snapshot, cluster.Plan, error) {
	if err := l.open(ctx); err != nil {
		return cluster.Snapshot{}, cluster.Plan{}, err
	}
	seen, err := l.Cluster.Observe(ctx, l.memory.Ledger.At)
	if err != nil {
		return cluster.Snapshot{}, cluster.Plan{}, fmt.Errorf("look at the cluster: %w", err)
	}
	orders, err := l.Journal.Overrides(ctx, seen.Now)
	if err != nil {
		return cluster.Snapshot{}, cluster.Plan{}, fmt.Errorf("%w: read overrides: %w", ErrJournal, err)
	}
	l.was = nil // changes seen here are still news to Turn
	rules, settings := l.configure()
	l.orders.keep(rules.Cells)
	seen.VCOrders = l.orders.last
	snap, err := l.desk.remember(l.memory, seen, orders, rules, settings)
	if err != nil {
		return cluster.Snapshot{}, cluster.Plan{}, err
	}
	snap, plan, err := l.decide(snap)
	return snap, plan, err
}

func (l *Loop) open(ctx context.Context) error {
	if l.opened {
		return nil
	}
	m, err := l.Journal.Open(ctx)
	if err != nil {
		return fmt.Errorf("%w: open: %w", ErrJournal, err)
	}
	l.memory, l.opened, l.next, l.was, l.desk.acts = m, true, 0, nil, nil
	return nil
}

// act carries out all actions that are not suppressed; there is one outcome per action.
func (l *Loop) act(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	outcomes := make([]cluster.Outcome, len(actions))
	suppressed := 0
	for i := range actions {
		if actions[i].Suppressed {
			outcomes[i] = cluster.Outcome{Skipped: true, Error: "suppressed: not acting on this partition"}
			suppressed++
		}
	}
	if suppressed == 0 && len(actions) > 0 {
		copy(outcomes, l.Cluster.Apply(ctx, actions))
		return outcomes
	}
	var todo []cluster.Action
	var at []int
	for i := range actions {
		if !actions[i].Suppressed {
			todo, at = append(todo, actions[i]), append(at, i)
		}
	}
	if len(todo) == 0 {
		return outcomes
	}
	for k, o := range l.Cluster.Apply(ctx, todo) {
		outcomes[at[k]] = o
	}
	return outcomes
}

// numbered tells whether jobs have versions.
func numbered(jobs []cluster.Job) bool {
	for i := range jobs {
		if jobs[i].Version != 0 {
			return true
		}
	}
	return false
}

// act is a grant, a requeue or a suspension that was carried out.
type act struct {
	job      cluster.JobKey
	at       cluster.Instant
	suspends bool
}

// acted notes when jobs were granted leases and requeued, for their records. An attempt begins after its grant, and continues from
// the look that decided the requeue until the requeue.
func (d *desk) acted(actions []cluster.Action, outcomes []cluster.Outcome) {
	for i := range actions {
		if v := actions[i].Verb; (v == cluster.Reclaim || v == cluster.Grant || v == cluster.Suspend) && outcomes[i].OK {
			d.acts = append(d.acts, act{actions[i].Job, cmp.Or(outcomes[i].Stopped, outcomes[i].At.Add(outcomes[i].Took)), v == cluster.Suspend})
		}
	}
}
