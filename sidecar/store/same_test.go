package store

import (
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Frames say what a round was, though only rows are read that may have changed, in whatever memory a decider makes its plans. Quiet rounds are few
// bytes.
func TestFramesOfWhatChanged(t *testing.T) {
	for _, site := range []simtest.Site{{Nodes: 20, Jobs: 300, Tenants: 4, Gangs: 5}, {Nodes: 20, Jobs: 300, Tenants: 4, Varied: true}, {Nodes: 20, Jobs: 300, Tenants: 4, Unversioned: true}} {
		live, err := site.Open()
		if err != nil {
			t.Fatal(err)
		}
		var log snapshotLog
		var frames reel
		var want []texts
		short, rounds := 0, 0
		see := func(snap cluster.Snapshot, plan cluster.Plan) {
			encoded, err := log.encode(snap, plan)
			if err != nil {
				t.Fatal(err)
			}
			if rounds++; rounds%10 == 5 { // this one could not be written: the loop opens the journal again
				log, frames, want = snapshotLog{}, nil, nil
				return
			}
			log.keep(encoded)
			frames, want = append(frames, encoded), append(want, textsOf(t, snap, plan))
			if encoded.link > 0 && len(encoded.snapshot.packed)+len(encoded.plan.packed) < 1500 {
				short++
			}
		}
		if site.Unversioned { // a plan belongs to its caller
			live.Loop.Decide = new(engine.Decider).Decide
		}
		live.Loop.Journal = &watched{live.Loop.Journal, see}
		for k := range 120 {
			if _, err := live.Turn(k % 5 / 4 * 10); err != nil {
				t.Fatal(err)
			}
			if rounds%10 == 4 && len(frames) > 0 {
				for i, got := range frames.told(t) {
					if !got.equal(want[i]) {
						t.Fatalf("%+v: round %d is told as\n%s\n%s, not\n%s\n%s", site, frames[i].round, got.snapshot, got.plan, want[i].snapshot, want[i].plan)
					}
				}
			}
		}
		if rounds < 60 || short < rounds/4 {
			t.Errorf("%+v: %d rounds, %d of them short", site, rounds, short)
		}
	}
}

// Statuses may say anything, of jobs that change tenant or request, come and go, or have no record.
func TestStatusesOfAnyReason(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	names := []string{"", "a", "b"}
	text := func() string { return names[random.IntN(len(names))] }
	span := func() cluster.Span { return cluster.Span(random.IntN(3)-1) * cluster.Minute }
	reason := func() (r cluster.Reason) {
		r = cluster.Reason{Code: cluster.ReasonBehind, Pool: text(), Behind: span(), Other: text(), OtherBehind: span(), Rank: random.IntN(3)}
		switch random.IntN(8) {
		case 0:
			r.Inside = &cluster.Inside{User: text(), Level: int32(random.IntN(2))}
		case 1:
			r.Budget = &cluster.TenantBudget{Until: cluster.Instant(random.IntN(2))}
		case 2:
			r.Bound = &cluster.BindLimit{Tenant: text(), Held: cluster.MicroGPU(random.IntN(2))}
		case 3:
			r.Queue, r.Behind, r.Rho = cluster.JobQueues, cluster.DueNothing, cluster.Rho(random.IntN(2))
		case 4:
			r.Code, r.Until, r.For, r.Note = cluster.ReasonHolding, cluster.Instant(random.IntN(2)), cluster.JobKey(random.IntN(2)), text()
		}
		return r
	}
	for range 40 {
		var log snapshotLog
		var frames reel
		var want []texts
		var plan cluster.Plan
		for round := range 12 {
			snap := cluster.Snapshot{Round: int64(round + 1), Now: cluster.Instant(1000 * round)}
			last := plan.Statuses
			plan = cluster.Plan{Round: snap.Round, At: snap.Now, Statuses: []cluster.JobStatus{}, State: cluster.State{Records: []cluster.Record{}}}
			for key := range cluster.JobKey(30) {
				if random.IntN(10) == 0 {
					continue
				}
				v := cluster.JobStatus{Job: key + 1, Reason: reason()}
				for i := range last {
					if last[i].Job == v.Job && random.IntN(4) > 0 {
						v = last[i] // with the same pointers
					}
				}
				r := cluster.Record{Key: v.Job, Tenant: text(), Alloc: cluster.GPUTime(random.IntN(2)), Due: 1}
				if plan.Statuses = append(plan.Statuses, v); random.IntN(10) > 0 {
					plan.State.Records = append(plan.State.Records, r)
				}
				snap.Cases = append(snap.Cases, cluster.Case{Record: r, Job: cluster.Job{Request: cluster.Request{Model: text(), Size: cluster.Whole(random.IntN(3))}}})
			}
			encoded, err := log.encode(snap, plan)
			if err != nil {
				t.Fatal(err)
			}
			log.keep(encoded)
			frames, want = append(frames, encoded), append(want, textsOf(t, snap, plan))
		}
		for i, got := range frames.told(t) {
			if !got.equal(want[i]) {
				t.Fatalf("round %d is told as\n%s\n%s, not\n%s\n%s", i, got.snapshot, got.plan, want[i].snapshot, want[i].plan)
			}
		}
	}
}
