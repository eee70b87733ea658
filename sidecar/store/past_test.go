package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// The journal's data of a window, of a daemon in observe mode: jobs that began before, in and
// after it, a node that fails, and the time when the daemon acted.
func TestThePast(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	s, db := openStore(t, store.Config{DSN: dsn}), storetest.Connect(t, dsn)
	if _, err := s.Rounds.Past(t.Context(), time.Time{}, time.Time{}); !errors.Is(err, store.ErrNone) {
		t.Errorf("of an empty journal: %v", err)
	}
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 2, 4), "bio", "chem")
	w.Rules.Mode = loop.Observe
	w.Loop.Journal = takeLead(t, s).Journal()
	at := func(hours int) time.Time { return simtest.Start.Add(cluster.Span(hours) * cluster.Hour).Time() }
	hour := func(work func()) {
		t.Helper()
		work()
		if _, err := w.Loop.Turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Run(cluster.Hour)
	}
	hour(func() { w.Submit("bio", 1, 4, 30*cluster.Minute); w.Submit("bio", 1, 4, 90*cluster.Minute) })
	hour(func() { w.Submit("chem", 1, 4, 5*cluster.Minute) })
	hour(func() { w.SetNode("v02", "down") })
	hour(func() { w.SetNode("v02", "") })
	hour(func() { w.Submit("chem", 1, 2, 10*cluster.Hour) })
	if _, err := w.Loop.Journal.Open(t.Context()); err != nil { // begins a keyframe
		t.Fatal(err)
	}
	hour(func() { w.Rules.Mode = loop.Act; w.Submit("bio", 2, 4, cluster.Hour) })
	p, err := s.Rounds.Past(t.Context(), at(1), at(4))
	if err != nil {
		t.Fatal(err)
	}
	if from, to := p.Begin.Plan.At.Time(), p.End.Plan.At.Time(); !from.Equal(at(1)) || to.After(at(4)) || to.Before(at(3)) {
		t.Errorf("the window is from %s to %s", from, to)
	}
	// The window omits the job that ended before it, and the job that came at its end.
	if len(p.Jobs) != 2 || p.Jobs[0].SlurmID != "2" || p.Jobs[1].SlurmID != "3" {
		t.Fatalf("%+v", p.Jobs)
	}
	j := p.Jobs[0]
	if !j.Started.Equal(at(0)) || !j.Done.Equal(at(0).Add(90*time.Minute)) || j.GPUs != cluster.CountOf(4) || j.Alloc != cluster.Times(4, 90*cluster.Minute) || j.Control != cluster.ObserveOnly {
		t.Errorf("%+v", j)
	}
	j = p.Jobs[1]
	if !j.Started.Equal(at(1)) || !j.Done.Equal(at(1).Add(5*time.Minute)) || j.Tenant != "chem" {
		t.Errorf("%+v", j)
	}
	if g := p.GPUs; len(g) != 3 || g[0].GPUs != 8 || g[1].GPUs != 4 || g[2].GPUs != 8 || !g[1].At.Equal(at(2)) || !g[2].At.Equal(at(3)) {
		t.Errorf("%+v", g)
	}
	for range 2 { // the iteration is repeatable
		var stood []store.PastTenant
		for x, err := range p.Tenants {
			if err != nil {
				t.Fatal(err)
			}
			stood = append(stood, x)
		}
		if len(stood) == 0 || !stood[0].At.After(at(1)) || stood[len(stood)-1].At.After(p.End.Plan.At.Time()) {
			t.Errorf("%+v", stood)
		}
	}
	for x, err := range p.Tenants {
		if err != nil || x.Tenant == "" {
			t.Errorf("%+v, %v", x, err)
		}
		break // returns the connection
	}
	gone, cancel := context.WithCancel(t.Context())
	broken, err := s.Rounds.Past(gone, at(1), at(4))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	var last error
	for _, last = range broken.Tenants {
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("of a connection that is gone: %v", last)
	}
	if p.Acted != (store.Acted{}) {
		t.Errorf("it watched only, but acted: %+v", p.Acted)
	}
	p, err = s.Rounds.Past(t.Context(), time.Time{}, time.Time{})
	if err != nil || p.Acted.Rounds == 0 || p.Acted.First.Before(at(5)) || p.Acted.Last.Before(*p.Acted.First) || len(p.Jobs) != 6 {
		t.Errorf("%v: acted %+v, %d jobs", err, p.Acted, len(p.Jobs))
	}
	var none *store.WindowError
	if _, err := s.Rounds.Past(t.Context(), at(7), time.Time{}); !errors.As(err, &none) || none.Pruned || !none.Oldest.Equal(at(0)) || none.Newest.Before(at(5)) {
		t.Errorf("of the future: %v", err)
	}
	if _, err := s.Rounds.Past(t.Context(), at(-9), at(-8)); !errors.As(err, &none) || none.Pruned {
		t.Errorf("of the time before: %v", err)
	}
	if _, err := s.Rounds.Past(t.Context(), at(-9), at(1)); err != nil {
		t.Errorf("from before the first round: %v", err)
	}
	if _, err := db.Exec(t.Context(), "delete from fairlease.round_blobs where keyframe < (select max(keyframe) from fairlease.round_blobs)"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rounds.Past(t.Context(), at(1), time.Time{}); !errors.As(err, &none) || !none.Pruned {
		t.Errorf("of what is pruned: %v", err)
	}
	if p, err := s.Rounds.Past(t.Context(), time.Time{}, time.Time{}); err != nil || !p.Begin.Plan.At.Time().Equal(none.Oldest) {
		t.Errorf("of what is left: %v", err)
	}
}
