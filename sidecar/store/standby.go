package store

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sql"
)

var (
	daemonAttend = sql.Query("daemon_attend")
	daemonLeave  = sql.Query("daemon_leave")
	standbys     = query[Standby]("standbys")
)

// Standby is a daemon that does not lead.
type Standby struct {
	Holder string        `json:"holder"`
	Since  time.Time     `json:"since,omitzero"`
	Seen   time.Time     `json:"seen,omitzero" db:"seen_at"`
	Silent time.Duration `json:"silent" db:"silent_for"`
	Alive  bool          `json:"alive"` // false = it is gone, and did not end by itself
}

// Attend gives a sign of life of a daemon, whether it leads or not. It counts as gone after so long without another. 0 = it ends.
func (s Daemons) Attend(ctx context.Context, holder string, silence time.Duration) (err error) {
	if silence > 0 {
		_, err = s.pool.Exec(ctx, daemonAttend, holder, silence)
	} else {
		_, err = s.pool.Exec(ctx, daemonLeave, holder)
	}
	if err != nil {
		err = fmt.Errorf("telling that this daemon runs: %w", denied(err))
	}
	return err
}

// Standbys gives the daemons that do not lead, by name: those that stand by, and for a day those that are gone.
func (s Daemons) Standbys(ctx context.Context) ([]Standby, error) {
	return collect[Standby](ctx, s.base, "reading which daemons stand by", standbys)
}
