package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Store is where the seat is and the journal is kept.
type Store interface {
	// Acquire takes the seat. It fails with ErrTaken while another holds it.
	Acquire(ctx context.Context) (Seat, error)
	// Claim makes the journal this cluster's if it is nobody's yet. It fails with
	// ErrCluster if it is another's.
	Claim(ctx context.Context, is cluster.Identity) error
	// Quiet gives for how long nobody has committed a round.
	Quiet(ctx context.Context) (time.Duration, error)
	// Prune deletes what is older than is kept and gives the number of rows.
	Prune(ctx context.Context, keepRounds, keep time.Duration) (days int, rows int64, err error)
}

// Seat is the right to act, for as long as signs of life are given.
type Seat interface {
	// Term is the number of this time in the seat; it grows from holder to holder.
	Term() int64
	// Keep gives a sign of life; every commit to the journal is another.
	Keep(ctx context.Context) error
	// Resign gives the seat up.
	Resign(ctx context.Context) error
	// Lost is closed once it is known that the seat is another's.
	Lost() <-chan struct{}
	// Sure is until when nobody else can be seated, whatever happens. Whoever acts
	// must be done by then.
	Sure() time.Time
	// Clock gives the time by the journal's own clock.
	Clock(ctx context.Context) (time.Time, error)
	// Journal writes rounds down by this right.
	Journal() loop.Journal
	// Audit writes an audit down by this right.
	Audit(ctx context.Context, a cluster.Audit) error
}

// ErrTaken is in the error of Acquire when another has the seat; the rest of the
// error tells who.
var ErrTaken = errors.New("another daemon leads")

// ErrSchema is in errors of a database whose schema does not fit: waiting does not
// help, the administrator must migrate it.
var ErrSchema = errors.New("the database's schema does not fit")

// ErrCluster is in errors of a journal that is another cluster's; the rest of the error
// names the two.
var ErrCluster = errors.New("the journal is another cluster's")

// errDeposed is why a turn was cut short.
var errDeposed = errors.New("leadership was lost: another daemon may act now")

// acting gives a context that ends at once when the seat is lost, or can no
// longer be proved to be ours.
func acting(ctx context.Context, s Seat) (context.Context, context.CancelFunc) {
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

// lost tells whether it is known that the seat is another's.
func lost(s Seat) bool {
	select {
	case <-s.Lost():
		return true
	default:
		return false
	}
}

// Hold keeps the seat with signs of life until the returned function is called. The
// context ends at once when the seat is lost or can no longer be proved to be ours.
func Hold(ctx context.Context, s Seat) (context.Context, func()) {
	keep, unkeep := context.WithCancel(context.WithoutCancel(ctx))
	go keeper(keep, s, keepEvery)
	act, cancel := acting(ctx, s)
	return act, func() { cancel(); unkeep() }
}

// keeper gives signs of life between rounds, and during long ones, until ctx ends
// or the seat is lost. That one fails is no matter as long as a later one does not.
func keeper(ctx context.Context, s Seat, every time.Duration) {
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
			_ = s.Keep(once) // Sure and Lost tell what follows from it
			cancel()
		}
	}
}
