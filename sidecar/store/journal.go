package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// errStale means that the journal has, or may have, changed since this one read it: open it again
// before the next round.
var errStale = errors.New("the journal is not as it was left: open it again")

// ErrYounger means that the journal has lost rounds that this daemon wrote: a dump was restored under it.
var ErrYounger = errors.New("the journal got younger")

// Journal writes rounds with a lead. It is for one goroutine.
type Journal struct {
	lead *Leadership
	was  *written // nil: not open
	log  snapshotLog
	days date // up to which partitions were made, or attempted
}

// Journal gives a journal that writes from the lead.
func (s *Leadership) Journal() *Journal { return &Journal{lead: s} }

// Open gives back the memory of the newest round; an empty one if there is none.
func (j *Journal) Open(ctx context.Context) (cluster.State, error) {
	j.was = nil
	snap, plan, err := j.lead.store.Rounds.Last(ctx)
	if err != nil {
		return cluster.State{}, fmt.Errorf("opening the journal: %w", err)
	}
	w := newWritten(cluster.SpanOf(j.lead.store.config.Refresh))
	if plan.Round > 0 {
		if w.speeds, err = j.lead.store.Tenants.speeds(ctx); err != nil {
			return cluster.State{}, fmt.Errorf("opening the journal: reading what GPUs are worth to tenants: %w", err)
		}
		// The tables match that round; its differences to nothing are not written again. Yet the
		// next one corrects the tables once more.
		w.nextKey = snap.NextKey
		w.keep(w.entry(snap, plan, 0), plan.State)
		w.doubt()
		if w.boundaries, err = j.lead.store.Rounds.boundaries(ctx); err != nil {
			return cluster.State{}, fmt.Errorf("opening the journal: reading the leases that are renewed: %w", err)
		}
	}
	j.was, j.log = w, snapshotLog{}
	plan.State.Limits = snap.Limits()
	return plan.State, nil
}

var (
	lastRound  = sql.Query("last_round")
	putBlobs   = sql.Query("put_blobs")
	boundaries = sql.Query("boundaries")
)

// boundaries reads the future ends of leases.
func (s Rounds) boundaries(ctx context.Context) ([]boundary, error) {
	rows, err := s.pool.Query(ctx, boundaries)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (b boundary, err error) {
		var at time.Time
		err = row.Scan(&b.Job, &b.Term, &b.next, &at)
		b.at, b.renewed = cluster.InstantOf(at), true
		return b, err
	})
}

// Commit writes a round, all of it or nothing. It fails with ErrDeposed when the lead is lost. It
// fails with errStale when the journal must be opened again: the round's number is not above all
// others, or the result of the previous commit is unknown because the connection broke. A
// RefusedError names jobs whose data PostgreSQL refuses.
func (j *Journal) Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error {
	if j.was == nil {
		return fmt.Errorf("writing round %d down: the journal was not opened", plan.Round)
	}
	if plan.Round <= j.was.round {
		return fmt.Errorf("writing round %d down: %w: it has got to round %d", plan.Round, errStale, j.was.round)
	}
	if day := dateOf(plan.At) + date(cluster.Day); day > j.days {
		j.days = day
		_ = j.lead.store.makeDays(ctx, plan.At.Time()) // Prune reports why it fails
	}
	var encoded frame
	var encodeErr error
	done := make(chan struct{})
	go func() { // slow with many waiting jobs, as are the rows and the database's work on them
		defer close(done)
		encoded, encodeErr = j.log.encode(snap, plan)
	}()
	defer func() { <-done }()
	e := j.was.entry(snap, plan, cluster.SpanOf(j.lead.store.config.Sample))
	e.round.LeaderTerm = j.lead.Term
	caused := j.lead.Notices.of(&snap, &plan)
	rows, err := e.texts()
	if err != nil {
		return fmt.Errorf("writing round %d down: %w", plan.Round, err)
	}
	write := func() error {
		return j.lead.inTerm(ctx, func(tx pgx.Tx) error {
			if err := send(ctx, tx, j.was.round, rows); err != nil {
				return err
			}
			if err := endOverrides(ctx, tx, plan.EndedOverrides); err != nil {
				return err
			}
			if err := j.lead.record(ctx, tx, plan.Round); err != nil {
				return err
			}
			if err := j.lead.Notices.put(ctx, tx, caused); err != nil {
				return err
			}
			if <-done; encodeErr != nil {
				return encodeErr
			}
			return sendFrame(ctx, tx, &encoded)
		})
	}
	if err = write(); isRefusal(err) {
		left, why := j.withoutRefused(ctx, &e, snap, rows)
		if why != nil {
			err = why
		} else if left != nil {
			rows = left
			err = write()
		}
	}
	if err != nil {
		return fmt.Errorf("writing round %d down: %w", plan.Round, err)
	}
	j.lead.settings.Store(nil)
	j.was.keep(e, plan.State)
	j.log.keep(encoded)
	return nil
}

var (
	settleActions  = sql.Query("settle_actions")
	putFailedGates = sql.Query("put_failed_gates")
	settleRound    = sql.Query("settle_round")
)

// Settle adds the outcomes of a committed plan's actions, one each, in their order. It may be
// repeated. It fails with ErrDeposed when the lead is lost.
func (j *Journal) Settle(ctx context.Context, plan cluster.Plan, outcomes []cluster.Outcome) error {
	if len(outcomes) != len(plan.Actions) {
		return fmt.Errorf("settling round %d: %d outcomes for %d actions", plan.Round, len(outcomes), len(plan.Actions))
	}
	var rows []outcomeRow
	var failed []failedGate
	var acting cluster.Span
	for i, o := range outcomes {
		acting += o.Took
		switch {
		case !isGate(plan.Actions[i]):
			rows = append(rows, outcomeRow{
				Round: plan.Round, Ordinal: i, OK: o.OK, Skipped: o.Skipped, Error: o.Error, Done: stamp(o.At), Took: o.Took,
			})
		case !o.OK && !o.Skipped:
			failed = append(failed, failedGate{actionRowOf(plan, i), o.OK, o.Skipped, o.Error, stamp(o.At), o.Took})
		}
	}
	w := &writer{}
	add(w, settleActions, rows)
	add(w, putFailedGates, failed)
	if w.err != nil {
		return fmt.Errorf("settling round %d: %w", plan.Round, w.err)
	}
	at := plan.At.Time()
	err := j.lead.inTerm(ctx, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, settleRound, plan.Round, acting, len(outcomes), at)
		if err != nil {
			return err
		}
		if done.RowsAffected() == 0 {
			return errors.New("there is no such round with as many actions in the journal")
		}
		for _, r := range w.rows {
			args := []any{r.text}
			if r.query == settleActions {
				args = append(args, at)
			}
			if _, err := tx.Exec(ctx, r.query, args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("settling round %d: %w", plan.Round, err)
	}
	return nil
}

// Overrides gives the orders in force at now, sorted by id.
func (j *Journal) Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	return j.lead.store.Overrides.At(ctx, now)
}
