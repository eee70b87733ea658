package telemetry

import (
	"context"
	"sync"
)

// Openings limits how many credentials are opened at once, and how many of one address: each takes a process. They wait in
// turn, so an address with many keeps no place from another's.
type Openings struct {
	Most int // at once; at least 1
	Each int // of them, of one address; at least 1

	once   sync.Once
	places chan struct{}
	lock   sync.Mutex
	of     map[string]*queue
}

// queue is the places of one address.
type queue struct {
	places chan struct{}
	users  int // that wait or have one
}

// Enter waits for a place until ctx ends. The credential must leave it, and then go; false = there was none.
func (o *Openings) Enter(ctx context.Context, address string) (leave, gone func(), ok bool) {
	o.once.Do(func() { o.places = make(chan struct{}, max(o.Most, 1)) })
	o.lock.Lock()
	if o.of == nil {
		o.of = map[string]*queue{}
	}
	mine := o.of[address]
	if mine == nil {
		mine = &queue{places: make(chan struct{}, max(o.Each, 1))}
		o.of[address] = mine
	}
	mine.users++
	o.lock.Unlock()
	forget := func() {
		o.lock.Lock()
		defer o.lock.Unlock()
		if mine.users--; mine.users == 0 {
			delete(o.of, address)
		}
	}
	select {
	case mine.places <- struct{}{}:
	case <-ctx.Done():
		forget()
		return nil, nil, false
	}
	select {
	case o.places <- struct{}{}:
	case <-ctx.Done():
		<-mine.places
		forget()
		return nil, nil, false
	}
	return func() { <-o.places }, func() { <-mine.places; forget() }, true
}
