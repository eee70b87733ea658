package top

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// site counts what it is asked. Questions of one turn are one.
type site struct {
	lock  sync.Mutex
	round int64
	turns []time.Time
	lists int
}

func (s *site) turn() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.turns = append(s.turns, time.Now())
}

func (s *site) Pulse(context.Context) (int64, *store.Leader, error) {
	s.turn()
	return s.round, nil, nil
}
func (s *site) Explain(context.Context, cluster.JobID) (*view.Explanation, error) {
	s.turn()
	return nil, errors.New("unknown")
}
func (s *site) Status(context.Context) (*view.Status, error) {
	return &view.Status{Round: s.round}, nil
}
func (s *site) Tenants(context.Context) ([]store.Tenant, bool, error) {
	s.lists++
	return nil, true, nil
}
func (s *site) Leases(context.Context, bool, int) ([]store.Lease, error) { return nil, nil }
func (s *site) Waiting(context.Context, int) ([]store.Waiting, error)    { return nil, nil }

// A site is opened until it answers, and asked at most once a second, however many ask.
func TestSourceAsksAtMostOnceASecond(t *testing.T) {
	x := &site{round: 1}
	opened := 0
	source := New(func(context.Context) (Site, error) {
		if opened++; opened == 1 {
			return nil, errors.New("away")
		}
		return x, nil
	})
	if _, err := source.Look(t.Context(), nil); err == nil {
		t.Fatal("a site that cannot be opened answers")
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			if i%2 == 0 {
				_, _ = source.Look(t.Context(), nil)
			} else {
				_, _ = source.Explain(t.Context(), "7")
			}
		})
	}
	all.Wait()
	if len(x.turns) != 4 || opened != 2 {
		t.Fatalf("%d turns, opened %d times", len(x.turns), opened)
	}
	for i := 1; i < len(x.turns); i++ {
		if d := x.turns[i].Sub(x.turns[i-1]); d < pace {
			t.Errorf("%v between two questions", d)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Look(ended, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a look that is over: %v", err)
	}
}

// Lists are read anew for a new round only.
func TestSourceReadsListsOncePerRound(t *testing.T) {
	x := &site{round: 1}
	source := New(func(context.Context) (Site, error) { return x, nil })
	var was *Picture
	for i, round := range []int64{1, 1, 2} {
		x.round = round
		p, err := source.Look(t.Context(), was)
		if err != nil || p.Status.Round != round || x.lists != []int{1, 1, 2}[i] {
			t.Fatalf("look %d: %+v, %v; lists were read %d times", i, p, err, x.lists)
		}
		was = p
	}
}
