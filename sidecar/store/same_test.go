package store

import (
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
