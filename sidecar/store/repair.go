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

// ErrNotAhead means that the journal's newest round is not in the future: there is nothing to
// repair.
var ErrNotAhead = errors.New("the books are not ahead of the time")

// ahead is the tolerance before a round counts as being in the future.
const ahead = time.Minute

var (
	clockNewest = sql.Query("clock_newest")
	clockRight  = sql.Query("clock_right")
	clockRounds = sql.Query("clock_rounds")
	// These repair the data of rounds in the future: since the last right round, by time, or
	// both.
	clockBoth    = queries("clock_round_times", "clock_events", "clock_actions", "clock_blobs")
	clockByRound = queries("clock_losses", "clock_leases")
	// The new entry ends the leases that its round does not contain: leases of the wrong rounds
	// never existed.
	clockAfter  = queries("clock_leases_of_later")
	clockByTime = queries("clock_claims", "clock_buckets", "clock_tenant_history", "clock_pool_history", "clock_vc_cell_history",
		"clock_fragmentation_history", "clock_entitlement_history", "clock_audits")
	clockZeros = queries("clock_charges", "clock_lending_days")
)

func queries(names ...string) []string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = sql.Query(name)
	}
	return texts
}

// SetBack is the result of a repair.
type SetBack struct {
	Newest   int64     // the newest round, in the future
	At       time.Time // its time
	Right    int64     // the last round before the wrong ones, to which the journal went back; 0 = it starts anew
	RightAt  time.Time
	Repaired int64 // the round that records the repair
}

// SetBack repairs a journal that is more than a minute ahead of now, because of a wrong clock:
// rounds would stop until that time. The journal goes back to the last round before. Charges of
// later rounds are reverted, and the next round charges the GPU time since then again. It fails
// with ErrNotAhead if no round is in the future.
func (s *Leadership) SetBack(ctx context.Context, now time.Time, r Repair) (SetBack, error) {
	var b SetBack
	err := s.store.pool.QueryRow(ctx, clockNewest).Scan(&b.Newest, &b.At)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !b.At.After(now.Add(ahead)) {
		return b, ErrNotAhead
	}
	if err != nil {
		return b, fmt.Errorf("reading the newest round: %w", err)
	}
	if err := s.store.pool.QueryRow(ctx, clockRight, now.Add(ahead)).Scan(&b.Right); err != nil {
		return b, fmt.Errorf("looking for the last round before the wrong time: %w", err)
	}
	j := s.Journal()
	wrong, err := j.Open(ctx)
	if err != nil {
		return b, err
	}
	snap, plan, back, err := s.store.Rounds.goBack(ctx, b.Right)
	if err != nil {
		return b, err
	}
	b.RightAt = plan.At.Time()
	b.Repaired = b.Newest + 1
	plan.Round, plan.State.Round, snap.Round = b.Repaired, b.Repaired, b.Repaired
	plan.At, plan.State.NextKey = cluster.InstantOf(now), max(wrong.NextKey, plan.State.NextKey)
	plan.Actions, plan.Ended, plan.Losses, plan.AllocationRequest = nil, nil, nil, nil
	found := fmt.Sprintf("round %d was at %s, ahead of the time", b.Newest, b.At.UTC().Format(time.RFC3339))
	done := fmt.Sprintf("the books went back to round %d at %s", b.Right, b.RightAt.UTC().Format(time.RFC3339))
	if b.Right == 0 {
		done = "no round from before is kept: the books begin anew"
	}
	plan.Events = []cluster.Event{{Kind: cluster.EventRepaired, Text: found + "; " + done}}
	j.was.boundaries = nil
	e := j.was.entry(snap, plan, cluster.SpanOf(s.store.config.Sample))
	e.round.LeaderTerm, e.charges, e.lendingDays, e.marks = s.Term, back.charges, back.lendingDays, nil
	encoded, err := j.log.encode(snap, plan)
	if err != nil {
		return b, err
	}
	rows, err := e.texts()
	if err != nil {
		return b, err
	}
	err = s.inTerm(ctx, func(tx pgx.Tx) error {
		each := func(texts []string, args ...any) (err error) {
			for _, text := range texts {
				if err == nil {
					_, err = tx.Exec(ctx, text, args...)
				}
			}
			return err
		}
		if err := errors.Join(each(clockBoth, now, b.Right), each(clockByRound, b.Right), each(clockByTime, now)); err != nil {
			return err
		}
		if err := send(ctx, tx, b.Newest, rows); err != nil {
			return err
		}
		if err := errors.Join(sendFrame(ctx, tx, &encoded), each(clockAfter, now), each(clockZeros)); err != nil {
			return err
		}
		return r.noted(ctx, tx, "clock", found, done)
	})
	if err != nil {
		return b, fmt.Errorf("setting the books back: %w", err)
	}
	return b, nil
}

// goBack gives the original round right, and the entry that reverts the daily sums of the later
// rounds.
func (s Rounds) goBack(ctx context.Context, right int64) (snap cluster.Snapshot, plan cluster.Plan, back entry, err error) {
	rows, err := s.pool.Query(ctx, clockRounds, right)
	if err != nil {
		return snap, plan, back, fmt.Errorf("listing the rounds: %w", err)
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return snap, plan, back, fmt.Errorf("listing the rounds: %w", err)
	}
	w := newWritten(cluster.SpanOf(s.config.Refresh))
	view := s.viewer()
	for i, n := range numbers {
		at, did, err := view.round(ctx, n)
		if err != nil {
			return snap, plan, back, err
		}
		e := w.entry(at, did, 0)
		w.keep(e, did.State)
		if n == right {
			snap, plan = at, did
		}
		if i == 0 { // its own additions stay
			continue
		}
		for _, c := range e.charges {
			c.Time = -c.Time
			back.charges = append(back.charges, c)
		}
		for _, l := range e.lendingDays {
			l.Time = -l.Time
			back.lendingDays = append(back.lendingDays, l)
		}
	}
	back.charges = summed(back.charges, func(r chargeRow) chargeKey { return r.chargeKey }, func(a *chargeRow, b chargeRow) { a.Time += b.Time })
	back.lendingDays = summed(back.lendingDays, func(r lendingDayRow) lendingDayKey { return lendingDayKey{r.Day, r.lendingKey} }, func(a *lendingDayRow, b lendingDayRow) { a.Time += b.Time })
	return snap, plan, back, nil
}

// lendingDayKey is the key of lending_days.
type lendingDayKey struct {
	Day date
	lendingKey
}

// summed adds up rows of the same key, since one statement must not write a row twice.
func summed[R any, K comparable](rows []R, key func(R) K, add func(*R, R)) []R {
	at := map[K]int{}
	var out []R
	for _, r := range rows {
		if i, ok := at[key(r)]; ok {
			add(&out[i], r)
			continue
		}
		at[key(r)] = len(out)
		out = append(out, r)
	}
	return out
}
