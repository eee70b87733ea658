package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Slurm never starts a job on nodes that it requires if a partition of its list refuses the job: it tries that one first, and keeps
// the nodes for it. So a grant leaves such partitions out. The job gets its user's list back when its grant or its attempt is over.
func TestAGrantLeavesOutPartitionsThatRefuse(t *testing.T) {
	t.Parallel()
	both, open := []string{"closed", "gpu"}, []string{"gpu"}
	for _, c := range []struct {
		name   string
		refuse func(*cluster.Rules)
		want   []string
	}{
		{"by its account", func(r *cluster.Rules) { r.AllowAccounts = []string{"b"} }, open},
		{"by the number of its nodes", func(r *cluster.Rules) { r.MinNodes = 2 }, open},
		{"none", func(*cluster.Rules) {}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
			shows := both
			w.alter = func(s *cluster.Observation) {
				closed := cluster.Partition{Name: "closed", Up: true}
				c.refuse(&closed.Rules)
				s.Partitions = append([]cluster.Partition{closed}, s.Partitions...)
				for i := range s.Jobs {
					s.Jobs[i].Partitions = shows
				}
			}
			w.before = func(actions []cluster.Action) {
				for _, a := range actions {
					if a.Partitions != nil && !a.Suppressed {
						shows = a.Partitions
					}
				}
			}
			id := w.submit("a", 4, 4*hour, func(j *sim.Work) { j.Begin = w.Now().Add(minute) })
			w.Run(10 * minute)
			grants := w.done(cluster.Grant, id)
			if len(grants) == 0 || !slices.Equal(grants[0].Partitions, c.want) {
				t.Fatalf("the grants are %+v, want partitions %v", grants, c.want)
			}
			w.submit("b", 4, hour, nil)
			w.Run(20 * minute)
			if len(w.done(cluster.Reclaim, id)) == 0 || !slices.Equal(shows, both) {
				t.Errorf("after its lease the job has partitions %v, want %v", shows, both)
			}
			if n := len(w.done(cluster.RevokeGrant, id)); c.want == nil && n > 0 {
				t.Errorf("%d grants were taken back", n)
			}
		})
	}
}

// Partitions that the user chooses while the job has those of its grant are its own from then on.
func TestPartitionsThatAUserChoosesDuringAGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
	shows := []string{"closed", "gpu"}
	w.alter = func(s *cluster.Observation) {
		s.Partitions = append([]cluster.Partition{{Name: "closed", Up: true, Rules: cluster.Rules{AllowAccounts: []string{"b"}}}}, s.Partitions...)
		for i := range s.Jobs {
			s.Jobs[i].Partitions = shows
		}
	}
	w.before = func(actions []cluster.Action) {
		for i := range actions {
			if a := &actions[i]; a.Verb == cluster.Grant {
				shows, a.Nodes, a.Reservation = []string{"gpu", "late"}, []string{"absent"}, "" // Slurm does not start it
			}
		}
	}
	id := w.submit("a", 4, hour, func(j *sim.Work) { j.Begin = w.Now().Add(minute) })
	w.Run(10 * minute)
	if len(w.done(cluster.RevokeGrant, id)) == 0 {
		t.Error("no grant was taken back")
	}
	for _, d := range w.done(cluster.RevokeGrant, id) {
		if d.Partitions != nil {
			t.Errorf("the job gets partitions %v back, but its user has chosen others", d.Partitions)
		}
	}
	if r := w.Record(id); r.UserPartitions != nil {
		t.Errorf("remembered: %v", r.UserPartitions)
	}
}
