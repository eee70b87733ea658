package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// ErrDeposed means that the leadership has ended: another daemon may act now, and nothing was
// written.
var ErrDeposed = errors.New("leadership was lost: another daemon may act now")

// TakenError names the holder of the lead.
type TakenError struct {
	Holder string
	Term   int64
	Silent time.Duration // since this process saw its last sign of life, by this host's clock
	Left   time.Duration // until it may be taken over
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s leads (term %d, seen %s ago); leadership is free in %s without another sign of life",
		e.Holder, e.Term, cluster.SpanOf(e.Silent), cluster.SpanOf(e.Left))
}

// Leadership is the right to write rounds, for one term of leadership. Signs of life keep it: every
// commit is one, Keep another. It is safe for concurrent use.
type Leadership struct {
	Term   int64
	Holder string
	// Notices are written beside rounds, and sent by the leader.
	Notices *Outbox

	store *Store
	lost  chan struct{}
	turns atomic.Int64
	gpus  *gpuTables // as the leader wrote them last; nil = unknown
	// settings are for the record of administration, with the next commit; nil = none.
	settings atomic.Pointer[[]Setting]

	mu   sync.Mutex
	sure time.Time // no other daemon can have taken over before
	over bool
}

var (
	leaderQueue  = sql.Query("leader_queue")
	leaderRetire = sql.Query("leader_retire")
	leaderSkip   = sql.Query("leader_skip")
	leaderTake   = sql.Query("leader_take")
	leaderLast   = sql.Query("leader_last")
	leaderCrash  = sql.Query("leader_crashed")
	leaderHold   = sql.Query("leader_hold")
	leaderRenew  = sql.Query("leader_renew")
	leaderTurns  = sql.Query("leader_turns")
	leaderResign = sql.Query("leader_resign")
)

// Acquire takes the lead for holder (a display name: host and process). It fails with *TakenError
// while another daemon holds it and lives.
func (s *Store) Acquire(ctx context.Context, holder string) (*Leadership, error) {
	return s.acquire(ctx, holder, 0, 0)
}

// AcquireAbove is Acquire with a term above one that this host knows of: a journal that was restored from a dump has
// forgotten it.
func (s *Store) AcquireAbove(ctx context.Context, holder string, term int64) (*Leadership, error) {
	return s.acquire(ctx, holder, 0, term)
}

// Succeed takes the lead at once after a term whose holder is known to have crashed. It fails
// with *TakenError if any daemon led after that term, even if it no longer is.
func (s *Store) Succeed(ctx context.Context, holder string, crashed int64) (*Leadership, error) {
	return s.acquire(ctx, holder, crashed, 0)
}

// Await takes the lead like Acquire, and watches a holder that may be dead until it gives a sign of
// life (*TakenError) or has been silent for long enough. watched is called before it waits.
func (s *Store) Await(ctx context.Context, holder string, watched func(*TakenError)) (*Leadership, error) {
	var first *TakenError
	for {
		lead, err := s.Acquire(ctx, holder)
		var taken *TakenError
		switch {
		case !errors.As(err, &taken):
			return lead, err
		case first == nil:
			watched(taken)
		case taken.Term != first.Term || taken.Silent <= first.Silent:
			return nil, err
		}
		first = taken
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(watchEvery):
		}
	}
}

// acquire takes the lead: after the term crashed only, or with 0 after any term that has ended. Its number is above another one.
func (s *Store) acquire(ctx context.Context, holder string, crashed, above int64) (*Leadership, error) {
	asked := s.now()
	lead := &Leadership{Holder: holder, store: s, lost: make(chan struct{})}
	lead.Notices = &Outbox{lead: lead}
	var taken *TakenError
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// A holder in the middle of a commit locks its row: it lives, do not wait for it.
		if _, err := tx.Exec(ctx, "set local lock_timeout = '1s'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, leaderQueue); err != nil {
			return err
		}
		open, err := readLast(ctx, tx, true)
		if err != nil {
			return err
		}
		if open != nil && open.Term != crashed {
			silent := s.silent(open)
			if taken = open.taken(silent); taken.Left > 0 {
				return taken
			}
			if _, err := tx.Exec(ctx, leaderRetire, open.Term, open.Sign); err != nil {
				return err
			}
		}
		if crashed > 0 {
			if _, err := tx.Exec(ctx, leaderCrash, crashed); err != nil {
				return err
			}
		}
		if above > 0 {
			if _, err := tx.Exec(ctx, leaderSkip, above, migrate.Latest()); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, leaderTake, holder, s.config.Takeover, crashed, migrate.Latest()).Scan(&lead.Term)
	})
	const locked = "55P03"
	var refused *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &refused) && refused.Code == locked {
		if err := s.current(ctx); err != nil {
			return nil, err
		}
		return nil, s.taken(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("taking leadership: %w", err)
	}
	lead.heard(asked)
	return lead, nil
}

// now is the present, by this host's monotonic clock.
func (s *Store) now() time.Time {
	if s.config.Now != nil {
		return s.config.Now()
	}
	return time.Now()
}

// watchEvery is how often a command looks for the next sign of life of a leader.
const watchEvery = 500 * time.Millisecond

// Lives tells whether the holder of a term gives another sign of life before that term may be taken over. It waits for that.
// A term that has ended does not live; where another daemon leads meanwhile, that one does.
func (s *Store) Lives(ctx context.Context, last *LastLeadership) (bool, error) {
	for {
		if last.Ended || last.taken(s.silent(last)).Left <= 0 {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(watchEvery):
		}
		now, err := s.LastLeadership(ctx)
		switch {
		case err != nil:
			return false, err
		case now == nil || now.Ended:
			return false, nil
		case now.Term != last.Term || now.Sign != last.Sign:
			return true, nil
		}
	}
}

// watch is the last sign of life that was seen of another leader.
type watch struct {
	mu    sync.Mutex
	term  int64
	sign  string
	since time.Time // when it was first seen
}

// silent gives the time since the leader's last sign of life was first seen here. It runs on this host's monotonic
// clock, from after the sign was read: so it is no longer than on the leader's, which runs from before it was given.
// A clock of PostgreSQL's that was set changes nothing.
func (s *Store) silent(l *LastLeadership) time.Duration {
	now := s.now()
	w := &s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.term != l.Term || w.sign != l.Sign {
		w.term, w.sign, w.since = l.Term, l.Sign, now
	}
	return now.Sub(w.since)
}

// LastLeadership is the newest term of leadership.
type LastLeadership struct {
	Term   int64
	Holder string
	// Sign changes with every sign of life.
	Sign     string
	Takeover time.Duration // the silence after which another daemon may lead
	Ended    bool          // resigned, taken over or crashed
}

// drift is the part of a takeover timeout by which two hosts' monotonic clocks may run apart.
const drift = 100

// taken describes a leader that has been silent for so long.
func (l *LastLeadership) taken(silent time.Duration) *TakenError {
	return &TakenError{Holder: l.Holder, Term: l.Term, Silent: silent, Left: l.Takeover + l.Takeover/drift - silent}
}

// readLast reads the last leader, or only one that has not ended its term; nil = there is none.
func readLast(ctx context.Context, db querier, open bool) (*LastLeadership, error) {
	rows, err := db.Query(ctx, leaderLast, open)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[LastLeadership])
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// querier is a pool or a transaction.
type querier interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}

// LastLeadership gives the last holder, current or not; nil = there was none.
func (s *Store) LastLeadership(ctx context.Context) (*LastLeadership, error) {
	last, err := readLast(ctx, s.pool, false)
	if err != nil {
		err = fmt.Errorf("reading the last leader: %w", err)
	}
	return last, err
}

// taken names the holder of the lead.
func (s *Store) taken(ctx context.Context) error {
	open, err := readLast(ctx, s.pool, true)
	if err != nil {
		return fmt.Errorf("reading the leader: %w", err)
	}
	if open == nil { // it has just resigned
		return &TakenError{Holder: "nobody any more"}
	}
	taken := open.taken(s.silent(open))
	taken.Left = max(taken.Left, 0)
	return taken
}

// Keep gives a sign of life; it does not wait for a running commit. It fails with ErrDeposed when
// the term is over. After any other error the state is unknown: see Sure.
func (s *Leadership) Keep(ctx context.Context) error {
	asked := s.store.now()
	if err := s.learn(asked, s.renew(ctx, s.store.pool)); err != nil {
		return fmt.Errorf("keeping leadership: %w", err)
	}
	return nil
}

// renew dates the sign of life, in a transaction if db is one.
func (s *Leadership) renew(ctx context.Context, db interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}) error {
	done, err := db.Exec(ctx, leaderRenew, s.Term, s.turns.Load(), s.Holder)
	if err == nil && done.RowsAffected() == 0 {
		return ErrDeposed
	}
	return err
}

// Resign gives up the lead, so that another daemon need not wait. A lost lead is no error.
func (s *Leadership) Resign(ctx context.Context) error {
	_, err := s.store.pool.Exec(ctx, leaderResign, s.Term, s.Holder)
	s.lose()
	if err != nil {
		return fmt.Errorf("giving up leadership (another daemon can take it in %s): %w", cluster.SpanOf(s.store.config.Takeover), err)
	}
	return nil
}

// Lost is closed once it is known that the term is over.
func (s *Leadership) Lost() <-chan struct{} { return s.lost }

// Sure gives the moment until which no other daemon can lead, whatever happens to the
// database or the network. All actions must end by then.
func (s *Leadership) Sure() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sure
}

// Turned counts a turn that succeeded. The next sign of life tells it to standbys.
func (s *Leadership) Turned() { s.turns.Add(1) }

// Turns gives the leader's term, how many of its turns have succeeded, and the newest round; zeros = nobody leads.
func (s *Store) Turns(ctx context.Context) (term, turns, round int64, err error) {
	err = s.pool.QueryRow(ctx, leaderTurns).Scan(&term, &turns, &round)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, 0, nil
	}
	if err != nil {
		err = fmt.Errorf("asking how the leader gets on: %w", err)
	}
	return term, turns, round, err
}

// inTerm does work in a transaction. The term stays in force throughout, however long it takes,
// and its end is a sign of life. If the term is over, inTerm writes nothing and fails with
// ErrDeposed.
//
// The lead's row is locked throughout, so that no other daemon takes over, but changed only at
// the very end: the keeper's signs of life change it too, and would have to wait.
func (s *Leadership) inTerm(ctx context.Context, work func(pgx.Tx) error) error {
	var asked time.Time
	err := pgx.BeginFunc(ctx, s.store.pool, func(tx pgx.Tx) error {
		switch held, err := tx.Exec(ctx, leaderHold, s.Term, migrate.Latest(), s.Holder); {
		case err != nil:
			return err
		case held.RowsAffected() == 0:
			if err := s.store.current(ctx); err != nil {
				return err
			}
			return ErrDeposed
		}
		if err := work(tx); err != nil {
			return err
		}
		asked = s.store.now()
		return s.renew(ctx, tx)
	})
	return s.learn(asked, err)
}

// learn records the result of a sign of life requested at asked, and gives its error.
func (s *Leadership) learn(asked time.Time, err error) error {
	switch {
	case err == nil:
		s.heard(asked)
	case errors.Is(err, ErrDeposed):
		s.lose()
	}
	return err
}

// heard records a sign of life that the database dated no earlier than asked.
func (s *Leadership) heard(asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := asked.Add(s.store.config.Takeover); until.After(s.sure) {
		s.sure = until
	}
}

func (s *Leadership) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		s.sure = time.Time{}
		close(s.lost)
	}
}
