package web

import (
	"context"
	"sync"
)

// turns lets at most maxAtOnce questions be answered at the same time, and at most maxEach of one person or address: a client that
// takes its answers slowly keeps the places of others free.
type turns struct {
	all  chan struct{}
	lock sync.Mutex
	of   map[string]*turn
}

// turn is the places of one person or address.
type turn struct {
	places chan struct{}
	users  int // questions that wait or are answered
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, maxAtOnce), of: map[string]*turn{}}
}

// enter waits for a place, at most maxWait. The question must leave it; false = there is none.
func (t *turns) enter(ctx context.Context, who string) (leave func(), ok bool) {
	t.lock.Lock()
	mine := t.of[who]
	if mine == nil {
		mine = &turn{places: make(chan struct{}, maxEach)}
		t.of[who] = mine
	}
	mine.users++
	t.lock.Unlock()
	gone := func() {
		t.lock.Lock()
		defer t.lock.Unlock()
		if mine.users--; mine.users == 0 {
			delete(t.of, who)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if !take(ctx, mine.places) {
		gone()
		return nil, false
	}
	if !take(ctx, t.all) {
		<-mine.places
		gone()
		return nil, false
	}
	return func() {
		<-t.all
		<-mine.places
		gone()
	}, true
}

// take takes a place; false = there was none in time.
func take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
