package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/daemon/syslog"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// syslogEvery is how often the record of administration is looked at for what waits to go to syslog.
const syslogEvery = 10 * time.Second

// copier sends the record of administration to syslog beside the rounds, which do not wait for that.
type copier struct {
	report *reporter
	busy   atomic.Bool
	syslog syslog.Sender
}

// send sends what waits, if this daemon leads.
func (x *copier) send(ctx context.Context, lead *Leadership) {
	if lead == nil || !x.busy.CompareAndSwap(false, true) {
		return
	}
	defer x.busy.Store(false)
	leading, cancel := acting(ctx, lead)
	defer cancel()
	err := x.sent(leading, lead)
	if leading.Err() != nil {
		return // the next leader goes on
	}
	x.report.about("syslog", err)
}

// sent is send without a word. A panic is an error.
func (x *copier) sent(ctx context.Context, lead *Leadership) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = loop.BreakdownOf(cause)
		}
	}()
	return x.syslog.Send(ctx, lead.Syslog)
}
