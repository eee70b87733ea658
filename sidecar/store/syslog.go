package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sql"
)

var (
	syslogPlace   = sql.Query("syslog_place")
	syslogWaiting = query[Act]("syslog_waiting")
	syslogSent    = sql.Query("syslog_sent")
	syslogState   = sql.Query("syslog_state")
)

// Syslog is the part of the record of administration that has not gone to syslog yet, for the leader.
type Syslog struct{ Lead *Leadership }

// Waiting gives the value of audit.syslog that was recorded last ("" = the default), and at most limit rows that wait, oldest first.
func (s Syslog) Waiting(ctx context.Context, limit int) (place string, acts []Act, err error) {
	var recorded *string
	if err := s.Lead.store.pool.QueryRow(ctx, syslogPlace).Scan(&recorded); err != nil {
		return "", nil, fmt.Errorf("reading where the record of administration goes: %w", denied(err))
	}
	if recorded != nil {
		place = *recorded
	}
	acts, err = collect[Act](ctx, s.Lead.store.base, "reading the record of administration", syslogWaiting, limit)
	return place, acts, err
}

// Sent notes rows that have gone to syslog, or need not, and why others wait ("" = none do). It fails with ErrDeposed when the lead is lost.
func (s Syslog) Sent(ctx context.Context, ids []int64, why string) error {
	err := s.Lead.inTerm(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, syslogSent, ids, foreign(why))
		return err
	})
	if err != nil {
		return fmt.Errorf("noting what went to syslog: %w", err)
	}
	return nil
}

// SyslogState says what waits to go to syslog.
type SyslogState struct {
	Waiting int
	Since   *time.Time // when the oldest was recorded; nil = none waits
	Error   string     // of the last try; "" = it succeeded
}

// Syslog gives the changes that wait to go to syslog.
func (s Administration) Syslog(ctx context.Context) (x SyslogState, err error) {
	if err = s.pool.QueryRow(ctx, syslogState).Scan(&x.Waiting, &x.Since, &x.Error); err != nil {
		err = fmt.Errorf("reading what went to syslog: %w", denied(err))
	}
	return x, err
}
