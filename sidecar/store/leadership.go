package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlease/fairlease/sql"
)

// ErrDeposed means that the leadership has ended: another daemon may act now, and nothing was
// written.
var ErrDeposed = errors.New("leadership was lost: another daemon may act now")

// TakenError names the holder of the lead.
type TakenError struct {
	Holder string
	Term   int64
	Silent time.Duration // since its last sign of life
	Left   time.Duration // until it may be taken over
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s leads (term %d, seen %s ago); leadership is free in %s without another sign of life",
		e.Holder, e.Term, e.Silent.Round(time.Millisecond), e.Left.Round(time.Millisecond))
}

// Leadership is the right to write rounds, for one term of leadership. Signs of life keep it: every
// commit is one, Keep another. It is safe for concurrent use.
type Leadership struct {
	Term   int64
	Holder string

	store *Store
	lost  chan struct{}
	gpus  *gpuTables // as the leader wrote them last; nil = unknown

	mu   sync.Mutex
	sure time.Time // no other daemon can have taken over before
	over bool
}

var (
	leaderQueue  = sql.Query("leader_queue")
	leaderRetire = sql.Query("leader_retire")
	leaderTake   = sql.Query("leader_take")
	leaderLast   = sql.Query("leader_last")
	leaderCrash  = sql.Query("leader_crashed")
	leaderHold   = sql.Query("leader_hold")
	leaderRenew  = sql.Query("leader_renew")
	leaderResign = sql.Query("leader_resign")
)

// Acquire takes the lead for holder (a display name: host and process). It fails with *TakenError
// while another daemon holds it and lives.
func (s *Store) Acquire(ctx context.Context, holder string) (*Leadership, error) {
	return s.acquire(ctx, holder, 0)
}

// Succeed takes the lead at once after a term whose holder is known to have crashed. It fails
// with *TakenError if any daemon led after that term, even if it no longer is.
func (s *Store) Succeed(ctx context.Context, holder string, crashed int64) (*Leadership, error) {
	return s.acquire(ctx, holder, crashed)
}

// acquire takes the lead: after the term crashed only, or with 0 after any term that has ended.
func (s *Store) acquire(ctx context.Context, holder string, crashed int64) (*Leadership, error) {
	asked := time.Now()
	lead := &Leadership{Holder: holder, store: s, lost: make(chan struct{})}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// A holder in the middle of a commit locks its row: it lives, do not wait for it.
		if _, err := tx.Exec(ctx, "set local lock_timeout = '1s'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, leaderQueue); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, leaderRetire); err != nil {
			return err
		}
		if crashed > 0 {
			if _, err := tx.Exec(ctx, leaderCrash, crashed); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, leaderTake, holder, s.config.Takeover, crashed).Scan(&lead.Term)
	})
	const locked = "55P03"
	var refused *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &refused) && refused.Code == locked {
		return nil, s.taken(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("taking leadership: %w", err)
	}
	lead.heard(asked)
	return lead, nil
}

// LastLeadership is the newest term of leadership.
type LastLeadership struct {
	Term     int64
	Holder   string
	Renewed  time.Time     `db:"renewed_at"`
	Takeover time.Time     `db:"takeover_at"`
	Silent   time.Duration `db:"silent_for"`
	Ended    bool          // resigned, taken over or crashed
}

// LastLeadership gives the last holder, current or not; nil = there was none.
func (s *Store) LastLeadership(ctx context.Context) (*LastLeadership, error) {
	all, err := collect[LastLeadership](ctx, s, "reading the last leader", leaderLast)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// taken names the holder of the lead.
func (s *Store) taken(ctx context.Context) error {
	now, err := s.Leader(ctx)
	if err != nil {
		return err
	}
	if now == nil { // it has just resigned
		return &TakenError{Holder: "nobody any more"}
	}
	return &TakenError{Holder: now.Holder, Term: now.Term, Silent: now.Silent, Left: max(now.Takeover.Sub(now.Renewed)-now.Silent, 0)}
}

// Keep gives a sign of life; it does not wait for a running commit. It fails with ErrDeposed when
// the term is over. After any other error the state is unknown: see Sure.
func (s *Leadership) Keep(ctx context.Context) error {
	asked := time.Now()
	if err := s.learn(asked, s.renew(ctx, s.store.pool)); err != nil {
		return fmt.Errorf("keeping leadership: %w", err)
	}
	return nil
}

// renew dates the sign of life, in a transaction if db is one.
func (s *Leadership) renew(ctx context.Context, db interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}) error {
	done, err := db.Exec(ctx, leaderRenew, s.Term)
	if err == nil && done.RowsAffected() == 0 {
		return ErrDeposed
	}
	return err
}

// Resign gives up the lead, so that another daemon need not wait. A lost lead is no error.
func (s *Leadership) Resign(ctx context.Context) error {
	_, err := s.store.pool.Exec(ctx, leaderResign, s.Term)
	s.lose()
	if err != nil {
		return fmt.Errorf("giving up leadership (another daemon can take it in %s): %w", s.store.config.Takeover, err)
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

// inTerm does work in a transaction. The term stays in force throughout, however long it takes,
// and its end is a sign of life. If the term is over, inTerm writes nothing and fails with
// ErrDeposed.
//
// The lead's row is locked throughout, so that no other daemon takes over, but changed only at
// the very end: the keeper's signs of life change it too, and would have to wait.
func (s *Leadership) inTerm(ctx context.Context, work func(pgx.Tx) error) error {
	var asked time.Time
	err := pgx.BeginFunc(ctx, s.store.pool, func(tx pgx.Tx) error {
		switch held, err := tx.Exec(ctx, leaderHold, s.Term); {
		case err != nil:
			return err
		case held.RowsAffected() == 0:
			return ErrDeposed
		}
		if err := work(tx); err != nil {
			return err
		}
		asked = time.Now()
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
