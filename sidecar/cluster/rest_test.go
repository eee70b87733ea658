package cluster_test

import (
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A record that rests says at each moment what one says that is written anew in each round.
func TestDueAtRest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	rested := 0
	for range 200 {
		var due cluster.GPUTime
		var carry int64
		rate, at := cluster.MicroGPU(0), cluster.Instant(1_000_000)
		kept := cluster.Record{}
		for range 30 {
			now := at.Add(cluster.Span(random.IntN(20_000)))
			if random.IntN(10) == 0 { // the clock goes back
				now = at.Add(-cluster.Span(random.IntN(30_000)))
			}
			more, left := cluster.Accrue(rate, max(now.Sub(at), 0), carry)
			due, carry = due+more, left
			next := rate
			if random.IntN(4) == 0 {
				next = cluster.MicroGPU(random.IntN(3) * random.IntN(3_000_000))
			}
			was := kept
			kept = cluster.Record{Due: due, DueCarry: carry, DueRate: next}
			cluster.Rest(&kept, &was, at, now)
			if kept.Due == was.Due && kept.DueSince == was.DueSince && next > 0 && now > at {
				rested++
			}
			rate, at = next, now
			if got, left := cluster.DueBy(&kept, at); got != due || left != carry {
				t.Fatalf("%d and %d millionths are due, not %d and %d", got, left, due, carry)
			}
			kept.ChargedTo = 1
			if x := cluster.AsOf(&kept, at); x.Due != due || x.DueCarry != carry || x.ChargedTo != at || next > 0 && x.DueSince != at {
				t.Fatalf("the record as of %s is %+v", at, x)
			}
		}
	}
	if rested < 1000 {
		t.Errorf("%d records rested", rested)
	}
}
