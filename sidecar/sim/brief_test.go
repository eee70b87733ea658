package sim_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// A loop that reuses the buffers of its snapshots decides the same, byte for byte, while jobs
// come, end and are dropped, nodes fail, and shares and weights change.
func TestBriefSnapshotsChangeNothing(t *testing.T) {
	seeds.Slow(t)
	tell := func(brief bool) [][]byte {
		var rounds [][]byte
		w := simtest.New(t, simtest.Product(), simtest.Nodes("n", "v100", 4, 8), "nlp", "speech", "vision")
		w.Loop.Brief, w.Forget, w.Lend = brief, true, true
		decide := w.Loop.Decide
		w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			before, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			rounds = append(rounds, before)
			return decide(s)
		}
		w.Check = func(r loop.Report) {
			plan, err := json.Marshal(r.Plan)
			if err != nil {
				t.Fatal(err)
			}
			rounds = append(rounds, plan)
		}
		for i := range 12 {
			w.Submit([]string{"nlp", "speech", "vision"}[i%3], 12, 1+i%4, cluster.Span(5+7*i)*cluster.Minute)
			w.Run(20 * cluster.Minute)
			switch i {
			case 3:
				w.SetNode("n02", "down")
			case 5:
				w.SetShares("nlp", 7)
			case 7:
				w.SetNode("n02", "")
			case 9:
				w.Rules.Weights = map[string]int64{"nlp": 1, "vision": 2}
			}
		}
		return rounds
	}
	brief, whole := tell(true), tell(false)
	if len(brief) != len(whole) || len(whole) < 150 {
		t.Fatalf("%d and %d snapshots and plans", len(brief), len(whole))
	}
	for i := range whole {
		if !bytes.Equal(brief[i], whole[i]) {
			t.Fatalf("they differ from the %d. on:\n%s\n%s", i, brief[i], whole[i])
		}
	}
}
