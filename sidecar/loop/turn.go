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

// Loop runs turns. It is not safe for use by several goroutines.
type Loop struct {
	Cluster Cluster
	Journal Journal
	// Decide is the engine.
	Decide func(cluster.Snapshot) cluster.Plan
	// Divide answers a plan's question, which depends on nothing else; nil = nobody does. With Beside
	// it works while rounds go on, in a goroutine of its own, one question at a time.
	Divide func(cluster.Question) cluster.Division
	Beside bool
	// Configure gives the rules and settings in force; it is asked every turn. Lists
	// that it gave are not changed afterwards, only replaced.
	Configure func() (Rules, cluster.Settings)
	// Brief tells that the snapshot that Decide and the journal are handed is good until the next
	// turn only: its room is then used again.
	Brief bool
	// Keep is told of a snapshot over which the engine broke down, and how; the round is made without the jobs to which
	// that is due. nil = a breakdown is a panic.
	Keep func(cluster.Snapshot, *Breakdown)

	aside  map[cluster.JobKey]string // jobs that are set aside, and why
	desk   desk
	memory cluster.Memory
	opened bool
	roll   []cluster.Member   // of tenants, as the journal has them; nil = not known
	next   cluster.Instant    // of the last plan
	was    *config            // of the last round that was written down; nil = whatever is seen is news
	heard  []cluster.Progress // since the last round that was written down
	answer chan answered      // of the question that is being answered; nil = none is
	asked  cluster.Instant    // it was
	broke  string             // what ended an answering that is yet to be reported
}

// answered is what comes of a question.
type answered struct {
	cluster.Division
	broke string // what ended the answering, and where; "" = nothing did
}

// config is what a turn was decided with besides the cluster.
type config struct {
	rules    Rules
	settings cluster.Settings
	orders   []cluster.Override
}

// Report is what a turn did.
type Report struct {
	Plan     cluster.Plan
	Outcomes []cluster.Outcome
	// Quiet is true where nothing had changed and time alone changes nothing yet:
	// nothing was decided or written.
	Quiet bool
	Jobs  int
	// Waits is for how long the answer to a question has been waited for; 0 = none is. Broke tells, once, what ended
	// the answering of one and where.
	Waits cluster.Span
	Broke string
}

// ErrJournal marks an error of the journal: nothing was done in this turn.
var ErrJournal = errors.New("journal")

// Turn makes one round. An error means that the round did not happen: nothing
// was guessed; what had been committed is settled by looking again next time.
func (l *Loop) Turn(ctx context.Context) (Report, error) {
	if err := l.open(ctx); err != nil {
		return Report{}, err
	}
	l.hear()
	// Look.
	seen, err := l.Cluster.Observe(ctx, l.memory.Ledger.At)
	if err != nil {
		return Report{}, fmt.Errorf("look at the cluster: %w", err)
	}
	l.heard = telling(l.heard, seen.Progress)
	seen.Progress = l.heard
	orders, err := l.Journal.Overrides(ctx, seen.Now)
	if err != nil {
		l.was = nil // what this look found to have changed is news to the next
		return Report{}, fmt.Errorf("%w: read overrides: %w", ErrJournal, err)
	}
	rules, settings := l.Configure()
	now := &config{rules, settings, orders}
	if seen.Unchanged && !saved(l.heard) && l.was != nil && reflect.DeepEqual(now, l.was) && (l.next == 0 || seen.Now < l.next) {
		return Report{Quiet: true, Jobs: len(seen.Jobs), Waits: l.waits(seen.Now)}, nil
	}
	l.was = nil // until this round is written down, what has changed is news
	// Remember.
	snap, err := l.desk.remember(l.memory, seen, orders, rules, settings)
	if err != nil {
		return Report{}, err
	}
	if l.Brief {
		l.desk.cases = snap.Cases
	}
	// Decide, and write down.
	plan, err := l.commit(func(s cluster.Snapshot, p cluster.Plan) error { return l.Journal.Commit(ctx, s, p) }, snap)
	var broke *Breakdown
	if errors.As(err, &broke) {
		return Report{}, fmt.Errorf("round %d: %w", snap.Round, err)
	}
	if err != nil {
		l.opened = false // what is remembered may differ from what is written
		return Report{}, fmt.Errorf("%w: commit round %d: %w", ErrJournal, plan.Round, err)
	}
	l.memory, l.next, l.was, l.heard = plan.Memory, plan.Next, now, nil
	if plan.Question != nil && l.Divide != nil {
		l.ask(*plan.Question)
	}
	// Act.
	outcomes := l.act(ctx, plan.Actions)
	if len(plan.Actions) > 0 {
		l.next = seen.Now // what was asked for must be seen to have happened
		l.memory.Records = l.desk.acted(l.memory.Records, plan.Actions, outcomes)
	}
	report := Report{Plan: plan, Outcomes: outcomes, Jobs: len(seen.Jobs), Waits: l.waits(seen.Now), Broke: l.broke}
	l.broke = ""
	if err := l.Journal.Settle(ctx, plan, outcomes); err != nil {
		return report, fmt.Errorf("%w: settle round %d: %w", ErrJournal, plan.Round, err)
	}
	if err := l.enrol(ctx, seen.Members); err != nil {
		return report, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return report, nil
}

// enrol has the journal keep the users of tenants, where they have changed.
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

// ask has a question answered, unless another is being answered still: then it comes again.
func (l *Loop) ask(q cluster.Question) {
	switch {
	case !l.Beside && l.Keep == nil:
		d := l.Divide(q)
		d.At = q.At
		l.learn(d)
		return
	case !l.Beside:
		a := attempt(l.Divide, q)
		l.broke = cmp.Or(a.broke, l.broke)
		l.learn(a.Division)
		return
	}
	if l.answer == nil {
		answers, divide := make(chan answered, 1), l.Divide
		l.answer, l.asked = answers, q.At
		go func() { answers <- attempt(divide, q) }()
	}
}

// attempt answers a question. A policy that breaks down leaves everybody the share by weight.
func attempt(divide func(cluster.Question) cluster.Division, q cluster.Question) (a answered) {
	defer func() {
		if cause := recover(); cause != nil {
			a.Division = cluster.Division{Policy: q.Policy, Digest: q.Digest, NextTrade: q.NextTrade, Why: fmt.Sprintf("the policy broke down: %v", cause)}
			a.broke = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
		a.At = q.At
	}()
	return answered{Division: divide(q)}
}

// hear takes the answer that is there.
func (l *Loop) hear() {
	select {
	case a := <-l.answer:
		l.answer = nil
		l.broke = cmp.Or(a.broke, l.broke)
		l.learn(a.Division)
	default:
	}
}

// waits gives for how long an answer has been waited for; 0 = none is.
func (l *Loop) waits(now cluster.Instant) cluster.Span {
	if l.answer == nil {
		return 0
	}
	return max(now.Sub(l.asked), 0)
}

// learn puts a division in the place of the last one. That is news to the next round.
func (l *Loop) learn(d cluster.Division) {
	l.memory.Division, l.was, l.next = &d, nil, l.memory.Ledger.At
}

// saved tells whether a job has reported a save: the time just after it is when it may be stopped.
func saved(reports []cluster.Progress) bool {
	return slices.ContainsFunc(reports, func(r cluster.Progress) bool { return r.Saved > 0 })
}

// telling gives the reports of every job that tell most, by job: the last one, with the newest of its saves, and the first
// one that shows progress. How soon after a start that came tells what the start cost and whether the job resumed; rounds
// may be quiet for a whole term.
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

// Next gives the moment from which a turn is not quiet even if nothing changes in the
// cluster; 0 = none is known.
func (l *Loop) Next() cluster.Instant { return l.next }

// Preview decides without writing or acting: what Turn would do now.
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
	l.was = nil // what has been seen to change here is still news to Turn
	rules, settings := l.Configure()
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
	l.memory, l.opened, l.next, l.was = m, true, 0, nil
	return nil
}

// act carries out what is not withheld; there is one outcome for every action.
func (l *Loop) act(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	outcomes := make([]cluster.Outcome, len(actions))
	withheld := 0
	for i := range actions {
		if actions[i].Withheld {
			outcomes[i] = cluster.Outcome{Skipped: true, Error: "withheld: not acting on this partition"}
			withheld++
		}
	}
	if withheld == 0 && len(actions) > 0 {
		copy(outcomes, l.Cluster.Apply(ctx, actions))
		return outcomes
	}
	var todo []cluster.Action
	var at []int
	for i := range actions {
		if !actions[i].Withheld {
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

// acted gives records that know when their jobs were granted leases and requeued: an attempt begins
// after the one, and goes on from the look at which the other was decided until it is done.
func (d *desk) acted(records []cluster.Record, actions []cluster.Action, outcomes []cluster.Outcome) []cluster.Record {
	copied := false
	for i := range actions {
		if v := actions[i].Verb; v != cluster.Reclaim && v != cluster.Grant || !outcomes[i].OK {
			continue
		}
		if !copied { // the plan's are written down
			d.records = append(d.records[:0], records...)
			records, copied = d.records, true
		}
		k, ok := slices.BinarySearchFunc(records, actions[i].Job, func(r cluster.Record, key cluster.JobKey) int { return cmp.Compare(r.Key, key) })
		if ok {
			records[k].Acted = outcomes[i].At.Add(outcomes[i].Took)
		}
	}
	return records
}
