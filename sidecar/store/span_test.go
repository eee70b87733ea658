package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// Where rounds are kept, both ways to read a window agree: what jobs had received, lost and held at its edges, and how tenants stood. Once
// they are pruned, Span reads the same.
func TestTheSpanOfAWindow(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	s, db := openStore(t, store.Config{DSN: dsn}), storetest.Connect(t, dsn)
	if _, _, err := s.Rounds.Span(t.Context(), simtest.Start.Time(), simtest.Start.Time()); !errors.Is(err, store.ErrNone) {
		t.Errorf("of an empty journal: %v", err)
	}
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 2, 4), "bio", "chem")
	w.Loop.Journal = takeLead(t, s).Journal()
	at := func(span cluster.Span) time.Time { return simtest.Start.Add(span).Time() }
	w.Submit("bio", 4, 4, 3*cluster.Hour)
	w.Run(20 * cluster.Minute)
	w.Submit("chem", 3, 2, 90*cluster.Minute)
	for range 2 { // they lose work
		w.Virtual.Submit(sim.Work{Name: "train", User: "chem_user", Account: "chem", Partition: "gpu", Request: simtest.Gang(4), Runs: cluster.Hour, Saves: sim.Never})
	}
	w.Run(4 * cluster.Hour)
	from, to := at(40*cluster.Minute), at(3*cluster.Hour+7*cluster.Minute)
	past, err := s.Rounds.Past(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	same := func(p *store.Past) {
		t.Helper()
		held, received := 0, 0
		edge := func(name string, want, got *cluster.Plan) {
			t.Helper()
			if d := want.At.Sub(got.At); d != 0 {
				t.Errorf("%s: apart by %s", name, d)
			}
			of := map[cluster.JobKey]cluster.Record{}
			for _, r := range got.State.Records {
				of[r.Key] = r
			}
			for r := range want.State.All() {
				x, ok := of[r.Key]
				if r.Done != 0 {
					continue
				}
				slack := 4 * 20 * cluster.Second // two rounds: by how much a lease's start may be seen late
				if d := cluster.Span(x.Alloc - r.Alloc); !ok || d > slack || d < -slack || x.Lost != r.Lost || (len(x.Held) > 0) != (len(r.Held) > 0) {
					t.Errorf("%s: job %d has received %d, lost %d, holds %v; its record says %d, %d, %v", name, r.Key, x.Alloc, x.Lost, x.Held, r.Alloc, r.Lost, r.Held)
				}
				if r.Alloc > 0 {
					received++
				}
				held += len(x.Held)
			}
			for i, a := range want.State.Ledger.Tenants {
				b := got.State.Ledger.Tenants[i]
				slack := cluster.Times(8, cluster.Minute+20*cluster.Second) // a sample is a minute old
				if a.Tenant != b.Tenant || b.Alloc > a.Alloc || a.Alloc-b.Alloc > slack || b.Due > a.Due || a.Due-b.Due > slack {
					t.Errorf("%s: tenant %s received %d and was due %d; its account says %d, %d", name, b.Tenant, b.Alloc, b.Due, a.Alloc, a.Due)
				}
			}
		}
		edge("begin", &past.Begin.Plan, &p.Begin.Plan)
		edge("end", &past.End.Plan, &p.End.Plan)
		if len(p.Jobs) != len(past.Jobs) || len(p.GPUs) != 1 || p.GPUs[0].GPUs != 8 || p.Acted.Rounds == 0 || len(p.End.Snapshot.Nodes) != 2 || held < 3 || received < 5 {
			t.Errorf("%d jobs, GPUs %+v, acted %+v, %d nodes, %d held, %d received", len(p.Jobs), p.GPUs, p.Acted, len(p.End.Snapshot.Nodes), held, received)
		}
	}
	p, ends, err := s.Rounds.Span(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	same(&p)
	var want store.Ends
	if err := db.QueryRow(t.Context(), "select count(*) filter (where why = 'renewed'), count(*) filter (where why = 'reclaimed'), count(*) filter (where why = 'recalled') from fairlease.leases where ended_at > $1 and ended_at <= $2",
		p.Begin.Plan.At.Time(), p.End.Plan.At.Time()).Scan(&want.Renewed, &want.Reclaimed, &want.Recalled); err != nil || ends != want || want.Renewed == 0 || want.Reclaimed == 0 {
		t.Errorf("%v: %+v, want %+v", err, ends, want)
	}
	if _, err := db.Exec(t.Context(), "delete from fairlease.round_blobs where round < (select max(round) from fairlease.round_blobs where round = keyframe)"); err != nil {
		t.Fatal(err)
	}
	if p, _, err = s.Rounds.Span(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	same(&p)
	var none *store.WindowError
	if _, _, err := s.Rounds.Span(t.Context(), at(-cluster.Day), at(-cluster.Hour)); !errors.As(err, &none) || !none.Oldest.Equal(at(0)) {
		t.Errorf("of the time before: %v", err)
	}
}
