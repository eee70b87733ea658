package engine_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// around returns the nodes of a VC's present fence, and checks the fence.
func (w *world) around(vc string) []string {
	w.t.Helper()
	for _, r := range w.look().Reservations {
		if r.Name != "fairlease_cell_"+vc {
			continue
		}
		if left := r.End.Sub(w.Now()); left < w.Settings.GateTTL-w.Settings.Interval || left > 2*w.Settings.GateTTL || !slices.Equal(r.Accounts, []string{vc}) {
			w.t.Errorf("at %s the fence of %s: %+v", w.Now(), vc, r)
		}
		return r.Nodes
	}
	return nil
}

func (w *world) look() cluster.Observation {
	w.t.Helper()
	s, err := w.Virtual.Observe(w.t.Context(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// fenced makes a world of two nodes that are also in an unmanaged partition.
func fenced(t *testing.T) *world {
	t.Helper()
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.alter = func(s *cluster.Observation) {
		s.Nodes = slices.Clone(s.Nodes)
		for i := range s.Nodes {
			s.Nodes[i].Partitions = []string{"free", "gpu"}
		}
	}
	return w
}

// A bound cell is fenced, grants in it get through, and the fence ends with the cell.
func TestABoundCellIsFenced(t *testing.T) {
	for _, by := range append([]string{""}, preset.Dividing()...) {
		t.Run(cmp.Or(by, "hived"), func(t *testing.T) {
			w := fenced(t)
			w.Settings.Divide, w.Settings.DivideJobs = by, preset.OfJobs(by)
			w.boundCellIsFenced()
		})
	}
}

func (w *world) boundCellIsFenced() {
	w.Run(minute)
	w.submit("a", 1, forever, nil)
	w.Run(minute)
	if got := w.around("a"); !slices.Equal(got, []string{"n01"}) {
		w.t.Fatalf("the fence of a is around %v", got)
	}
	second := w.submit("a", 3, forever, nil)
	w.Run(minute)
	w.class(second, cluster.Guaranteed)
	w.state(second, cluster.Running)
	guest := w.submit("a", 4, forever, nil)
	w.Run(minute)
	w.class(guest, cluster.Opportunistic)
	w.state(guest, cluster.Running)
	if got := w.around("b"); got != nil {
		w.t.Errorf("b has no bound cell, and a fence around %v", got)
	}
	his := w.submit("b", 4, forever, nil)
	w.Run(minute)
	w.state(his, cluster.Running)
	if got := w.around("b"); !slices.Equal(got, []string{"n02"}) {
		w.t.Errorf("the fence of b is around %v", got)
	}
	w.did = nil
	w.Run(hour)
	w.around("a")
	w.around("b")
	fences := func(verb cluster.Verb) (n int) {
		for _, d := range w.done(verb) {
			if strings.HasPrefix(d.Reservation, "fairlease_cell_") {
				n++
			}
		}
		return n
	}
	// Each fence is prolonged every gate TTL, to twice that.
	if n, most := fences(cluster.Reserve), 2*int(hour/(w.Settings.GateTTL-w.Settings.Interval)+1); n < 2 || n > most {
		w.t.Errorf("%d reservations were made or prolonged in an hour, want %d at most", n, most)
	}
	if n := fences(cluster.Unreserve); n > 0 {
		w.t.Errorf("%d fences were removed", n)
	}
	w.Cancel(his)
	w.Run(minute)
	if got := w.around("b"); got != nil {
		w.t.Errorf("b has no bound cell any more, and a fence around %v", got)
	}
	w.books()
}

// Nodes without unmanaged partitions, and clusters that are only observed, have no fences.
func TestNoFenceWithoutStrangers(t *testing.T) {
	for name, change := range map[string]func(*world){
		"managed partitions only": func(w *world) { w.alter = nil },
		"observe":                 func(w *world) { w.Rules.Mode = "observe" },
		"canary":                  func(w *world) { w.Rules.Mode, w.Rules.Canary = "canary", []string{"gpu"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := fenced(t)
			change(w)
			w.submit("a", 1, forever, nil)
			w.Run(5 * minute)
			if got := w.done(cluster.Reserve); len(got) > 0 {
				t.Errorf("reserved: %+v", got[0].Action)
			}
		})
	}
}
