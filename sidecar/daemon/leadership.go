package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/objective"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/daemon/syslog"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/telemetry/remark"
)

// Store holds the lead and the journal.
type Store interface {
	// Acquire takes the lead, with a term above one that is known. It fails with ErrTaken while another holds it.
	Acquire(ctx context.Context, above int64) (*Leadership, error)
	// Claim assigns the journal to this cluster if it belongs to none yet. It fails with
	// ErrCluster if it belongs to another one.
	Claim(ctx context.Context, is cluster.Identity) error
	// Known gives the journal's cluster, and the records of its newest round, which was made at at.
	Known(ctx context.Context) (of cluster.Identity, records []cluster.Record, at cluster.Instant, err error)
	// Turns gives the term of the leader, how many of its turns have succeeded, and the newest round.
	Turns(ctx context.Context) (term, turns, round int64, err error)
	// Attend tells the journal that this daemon runs, whether it leads or not. It counts as gone after so long without another
	// word. 0 = it ends.
	Attend(ctx context.Context, silence time.Duration) error
	// Size gives the size of the journal in bytes.
	Size(ctx context.Context) (int64, error)
	// Prune deletes rows older than the given ages. It returns the number of days and of rows.
	Prune(ctx context.Context, keepRounds, keep time.Duration) (days int, rows int64, err error)
}

// Leadership is the right to act, for as long as signs of life are given. The writers among its parts fail once another daemon leads.
type Leadership struct {
	Lead
	Term int64 // it grows from holder to holder
	// Clock gives the time of the journal's own clock.
	Clock   func(context.Context) (time.Time, error)
	Journal loop.Journal
	GPUs    GPUs
	Terms   Terms
	Budgets Budgets
	Records Records
	Notices Notices
	Syslog  syslog.Box
	// Objectives are counted in the journal.
	Objectives Objectives
	// Audit and Forecast write one down.
	Audit    func(context.Context, cluster.Audit) error
	Forecast func(context.Context, *forecast.Forecast) error
}

// Lead is what keeps and gives up a leadership.
type Lead interface {
	// Keep gives a sign of life; every commit to the journal is another.
	Keep(ctx context.Context) error
	// Turned counts a turn that succeeded; the next sign of life tells it to standbys.
	Turned()
	// Resign gives up the lead.
	Resign(ctx context.Context) error
	// Lost is closed once it is known that another daemon has the lead.
	Lost() <-chan struct{}
	// Sure is the moment until which no other daemon can get the lead. All actions must end by
	// then.
	Sure() time.Time
}

// GPUs is what the journal knows of GPUs.
type GPUs interface {
	// Look writes down a look at all GPUs.
	Look(ctx context.Context, l *store.Look) error
	// Memory gives the memory that types of jobs used, and that models have.
	Memory(ctx context.Context) ([]cluster.MemoryUse, []cluster.GPUMemory, error)
	// Baselines gives the newest baselines of types of jobs.
	Baselines(ctx context.Context) ([]remark.Baseline, error)
}

// Terms is what the journal knows of changes of the lease term.
type Terms interface {
	// Tuning gives the newest change that determines the term in force, without its study; nil = none.
	Tuning(ctx context.Context) (*tune.Change, error)
	// Tunings gives the changes since a time, newest first, at most limit; among them always the one of Tuning.
	Tunings(ctx context.Context, since time.Time, limit int) ([]tune.Change, error)
	// Tune records a change; Told the first round that named a change.
	Tune(ctx context.Context, c tune.Change) error
	Told(ctx context.Context, id, round int64) error
}

// Budgets is what the journal has of the present periods of budgets.
type Budgets interface {
	Accounts(ctx context.Context) (spending.Book, error)
	// OpenAccount gives the account of a budget that Accounts does not have.
	OpenAccount(ctx context.Context, b spending.Budget, at cluster.Instant) (spending.Account, error)
	Spend(ctx context.Context, b spending.Book) error
}

// Objectives is where events of objectives are counted.
type Objectives interface {
	Count(ctx context.Context, counts objective.Counts, targets objective.Targets) error
}

// ErrTaken is in the error of Acquire when another daemon has the lead; the error's text names
// it.
var ErrTaken = errors.New("another daemon leads")

// ErrSchema is in errors of a database schema that does not fit. Waiting does not help: the
// administrator must migrate it.
var ErrSchema = errors.New("the database's schema does not fit")

// ErrCluster is in errors of a journal that belongs to another cluster; the error's text names
// both.
var ErrCluster = errors.New("the journal is another cluster's")

// errDeposed is the cause of a turn that was cut short.
var errDeposed = errors.New("leadership was lost: another daemon may act now")

// acting gives a context that ends at once when the lead is lost, or when it can no longer be
// proved that this daemon has it.
func acting(ctx context.Context, s Lead) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			left := time.Until(s.Sure())
			if left <= 0 {
				cancel(fmt.Errorf("%w (it could not be renewed in time)", errDeposed))
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-s.Lost():
				cancel(errDeposed)
				return
			case <-time.After(left):
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// lost tells whether it is known that another daemon has the lead.
func lost(s Lead) bool {
	select {
	case <-s.Lost():
		return true
	default:
		return false
	}
}

// Hold keeps the lead with signs of life until the returned function is called. The context ends
// at once when the lead is lost, or when it can no longer be proved that this daemon has it.
func Hold(ctx context.Context, s Lead) (context.Context, func()) {
	keep, unkeep := context.WithCancel(context.WithoutCancel(ctx))
	go keeper(keep, s, keepEvery)
	act, cancel := acting(ctx, s)
	return act, func() { cancel(); unkeep() }
}

// keeper gives signs of life between rounds, and during long ones, until ctx ends or the lead is
// lost. One failure does not matter if a later attempt succeeds.
func keeper(ctx context.Context, s Lead, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Lost():
			return
		case <-tick.C:
			once, cancel := context.WithTimeout(ctx, every)
			_ = s.Keep(once) // Sure and Lost show the consequences
			cancel()
		}
	}
}
