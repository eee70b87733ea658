package place_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// A site is kept as long as all that it was made of is as it was, and no longer.
func TestResurvey(t *testing.T) {
	const now = cluster.Instant(1_800_000_000_000)
	type world struct {
		pools        []string
		nodes        []cluster.Node
		reservations []cluster.Reservation
		claims       bool
	}
	ours := []cluster.Reservation{{Name: "fairlease_1", Nodes: []string{"n1"}, Start: now, End: now + 1, Ours: true}}
	fresh := func() world {
		return world{pools: []string{"v100"}, reservations: ours, nodes: []cluster.Node{{Name: "n1", CPUs: 4, MemoryMB: 8,
			GPUs: []cluster.GPUs{{Model: "v100", Count: 2}}, Partitions: []string{"gpu"}, Features: []string{"ib"}}}}
	}
	for name, change := range map[string]func(*world){
		"":           func(*world) {},
		"kept: busy": func(w *world) { w.nodes[0].Busy = "completing" },
		"kept: it is over": func(w *world) {
			w.reservations = append(w.reservations, cluster.Reservation{Name: "maintenance", Nodes: []string{"n1"}, Start: now, End: now + 1})
		},
		"name": func(w *world) { w.nodes[0].Name = "n2" },
		"bad":  func(w *world) { w.nodes[0].Bad = "down" },

		"cpus":      func(w *world) { w.nodes[0].CPUs++ },
		"memory":    func(w *world) { w.nodes[0].MemoryMB++ },
		"gpus":      func(w *world) { w.nodes[0].GPUs[0].Count++ },
		"partition": func(w *world) { w.nodes[0].Partitions[0] = "cpu" },
		"feature":   func(w *world) { w.nodes[0].Features[0] = "eth" },
		"shards":    func(w *world) { w.nodes[0].Shards = 2 },
		"another":   func(w *world) { w.nodes = append(w.nodes, cluster.Node{Name: "n2"}) },
		"pool":      func(w *world) { w.pools = []string{"k80", "v100"} },
		"claims":    func(w *world) { w.claims = true },
		"reservation": func(w *world) {
			w.reservations = []cluster.Reservation{{Name: "maintenance", Start: now, End: now + 10}}
		},
	} {
		w := fresh()
		old := place.Resurvey(nil, w.pools, w.nodes, false, w.reservations, now, w.claims, 1)
		w.nodes = slices.Clone(w.nodes)
		change(&w) // the lists within the nodes in place, as who lent them may
		if kept := place.Resurvey(old, w.pools, w.nodes, false, w.reservations, now+1, w.claims, 1) == old; kept != (name == "" || strings.HasPrefix(name, "kept")) {
			t.Errorf("change %q: kept is %v", name, kept)
		}
	}
}

// With reservations of others a site is kept as long as these are as they were.
func TestResurveyOfReservations(t *testing.T) {
	const now = cluster.Instant(1_800_000_000_000)
	nodes := []cluster.Node{{Name: "n1", CPUs: 4, MemoryMB: 8, GPUs: []cluster.GPUs{{Model: "v100", Count: 2}}, Partitions: []string{"gpu"}}}
	for name, change := range map[string]func(*cluster.Reservation){
		"":        func(*cluster.Reservation) {},
		"name":    func(r *cluster.Reservation) { r.Name = "other" },
		"start":   func(r *cluster.Reservation) { r.Start++ },
		"end":     func(r *cluster.Reservation) { r.End++ },
		"over":    func(r *cluster.Reservation) { r.End = now + 1 },
		"ours":    func(r *cluster.Reservation) { r.Ours = true },
		"nodes":   func(r *cluster.Reservation) { r.Nodes[0] = "n2" },
		"account": func(r *cluster.Reservation) { r.Accounts[0] = "x" },
		"user":    func(r *cluster.Reservation) { r.Users[0] = "u" },
		"flag":    func(r *cluster.Reservation) { r.Flags[0] = cluster.Magnetic },
		"part":    func(r *cluster.Reservation) { r.Parts[0].CPUs++ },
	} {
		for _, claims := range []bool{false, true} {
			theirs := []cluster.Reservation{{Name: "maintenance", Nodes: []string{"n1"}, Accounts: []string{"root"}, Users: []string{"root"}, Flags: []string{"MAINT"}, Start: now, End: now + 10,
				Parts: []cluster.ReservedPart{{Node: "n1", CPUs: 2}}}}
			old := place.Resurvey(nil, []string{"v100"}, nodes, false, theirs, now, claims, 1)
			change(&theirs[0]) // in place, as who lent it may
			if kept := place.Resurvey(old, []string{"v100"}, nodes, false, theirs, now+1, claims, 1) == old; kept != (name == "") {
				t.Errorf("change %q, claims %v: kept is %v", name, claims, kept)
			}
		}
	}
}
