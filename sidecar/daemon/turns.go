package daemon

import (
	"sync/atomic"
	"time"
)

// turnstile lets one through at a time.
type turnstile chan struct{}

func (t turnstile) enter() { t <- struct{}{} }
func (t turnstile) leave() { <-t }

// try enters if the turnstile is free.
func (t turnstile) try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// turns are the times of turns. It is safe for concurrent use.
type turns struct {
	began  atomic.Int64              // start of the current turn, unix ms; 0 = none is running
	ended  atomic.Int64              // end of the last turn
	waits  atomic.Pointer[time.Time] // when another daemon was last seen to lead; nil = this one may
	missed atomic.Int64              // beats that were skipped because a turn was running, since the last log line
}

// begin notes that a turn begins; the returned function notes its end.
func (t *turns) begin(now time.Time) (end func()) {
	t.began.Store(now.UnixMilli())
	return func() {
		t.ended.Store(time.Now().UnixMilli())
		t.began.Store(0)
	}
}

// stalled tells whether beats have stopped although no turn is running.
func (t *turns) stalled(now time.Time) bool {
	ended := t.ended.Load()
	return t.began.Load() == 0 && ended != 0 && now.UnixMilli() < ended-time.Minute.Milliseconds()
}

// alive tells whether no turn hangs.
func (t *turns) alive(now time.Time) bool {
	began := t.began.Load()
	return began == 0 || now.Sub(time.UnixMilli(began)) < turnLimit+time.Minute
}

// stands tells whether a standby should look again whether the leader is silent, however long rounds are apart.
func (t *turns) stands() bool {
	looked := t.waits.Load()
	return looked != nil && time.Since(*looked) >= keepEvery
}
