package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster/objective"
)

// The daemon counts first leases, GPU time and beats, and writes that down every minute. Two jobs of nlp wait until leases end, which is too late. One job of vision begins in
// time. The other one asks for more GPUs than there are: it could never start, and does not count.
func TestObjectives(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		on, live := newShared(), newLive()
		live.submit("nlp", 4, 4)
		r := start(t, "a", on, live, dir, short+"objectives: {first_lease: {within: 4s}}\n")
		pass(30 * time.Second)
		live.submit("vision", 1, 4)
		live.submit("vision", 1, 400)
		pass(5 * time.Minute)
		r.end(t)
		on.mu.Lock()
		defer on.mu.Unlock()
		got := map[objective.Name]map[string]objective.Count{}
		for _, c := range on.counts {
			if got[c.Objective] == nil {
				got[c.Objective] = map[string]objective.Count{}
			}
			got[c.Objective][c.Tenant] = c
		}
		if c := got[objective.FirstLease]["vision"]; c.Total != 1 || c.Bad != 0 {
			t.Errorf("first leases of vision: %+v", c)
		}
		if all, nlp := got[objective.FirstLease][""], got[objective.FirstLease]["nlp"]; nlp.Total != 2 || nlp.Bad != 2 || all.Total != 3 || all.Bad != 2 {
			t.Errorf("first leases of all: %+v, of nlp: %+v", all, nlp)
		}
		if c := got[objective.Rounds][""]; c.Total < 240 || c.Total > 331 || c.Bad != 0 {
			t.Errorf("beats: %+v", c)
		}
		if c := got[objective.GPUs][""]; c.Total == 0 || c.Bad > c.Total {
			t.Errorf("GPU time: %+v", c)
		}
	})
}
