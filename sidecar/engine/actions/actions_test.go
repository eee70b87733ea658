package actions

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
)

// The actions of a round follow from the leases after the choice, and so does what they change of gates.
func TestWhatIsDone(t *testing.T) {
	const now = roundtest.Now
	waits := func() cluster.Case { return roundtest.Job(7, "bio", 2, cluster.Waiting) }
	runs := func() cluster.Case { return roundtest.On(roundtest.Job(7, "bio", 2, cluster.Running), "a", "v100", 2) }
	lease := func(state cluster.LeaseState) *cluster.Lease {
		return &cluster.Lease{Job: 1, Term: 1, State: state, Pool: "v100", Size: cluster.Whole(2), Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(2)}}, Granted: now, End: now.Add(cluster.Hour)}
	}
	for _, c := range []struct {
		name   string
		job    cluster.Case
		change func(s *cluster.Snapshot, j *cluster.Case, m *round.Mark)
		lease  *cluster.Lease
		want   []string // verbs, and "(not)" for what is not carried out
		gates  string   // changes of gates
	}{
		{"a job waits behind its gate", waits(), nil, nil, nil, ""},
		{"its gate lapses soon", waits(), func(_ *cluster.Snapshot, j *cluster.Case, _ *round.Mark) { j.Job.Eligible = now.Add(cluster.Minute) }, nil, []string{"gate"}, "begins later"},
		{"it is only observed", waits(), func(_ *cluster.Snapshot, j *cluster.Case, _ *round.Mark) {
			j.Job.Eligible, j.Control = now, cluster.ObserveOnly
		}, nil, nil, ""},
		{"it is granted a lease", waits(), nil, lease(cluster.Granted), []string{"grant"}, "pinned"},
		{"it is granted a lease, and only observed", waits(), func(_ *cluster.Snapshot, j *cluster.Case, _ *round.Mark) { j.Control = cluster.ObserveOnly }, lease(cluster.Granted), []string{"grant (not)"}, ""},
		{"its grant is under way", waits(), func(_ *cluster.Snapshot, j *cluster.Case, _ *round.Mark) {
			j.Job.Eligible, j.Job.NodeList, j.Record.Pinned, j.Record.Basis = now, []string{"a"}, true, &cluster.Basis{}
		}, lease(cluster.Granted), nil, ""},
		{"its pin is left from a grant", waits(), func(_ *cluster.Snapshot, j *cluster.Case, _ *round.Mark) {
			j.Job.NodeList, j.Record.Pinned = []string{"a"}, true
		}, nil, []string{"take_back"}, "begins later pinned"},
		{"it is exempt, and gated", waits(), func(s *cluster.Snapshot, _ *cluster.Case, _ *round.Mark) {
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Exempt, Scope: "tenant", Name: "bio", Until: now.Add(cluster.Hour)}}
		}, nil, []string{"open"}, ""},
		{"its partition is no longer managed", waits(), func(_ *cluster.Snapshot, j *cluster.Case, _ *round.Mark) {
			j.Job.Marked, j.Control = true, cluster.Unmanaged
		}, nil, []string{"open"}, ""},
		{"it runs in its term", runs(), nil, lease(cluster.Active), nil, ""},
		{"it gets notice", runs(), func(_ *cluster.Snapshot, _ *cluster.Case, m *round.Mark) { m.Noticed, m.Signal = true, "USR1" }, lease(cluster.Noticed), []string{"notice"}, ""},
		{"its lease is over", runs(), nil, lease(cluster.Ending), []string{"reclaim"}, "begins later"},
		{"its lease is over before its notice", runs(), func(_ *cluster.Snapshot, _ *cluster.Case, m *round.Mark) { m.Noticed = true }, lease(cluster.Ending), []string{"reclaim"}, "begins later"},
		{"its lease is over, and it has left", waits(), nil, lease(cluster.Ending), nil, ""},
		{"a reservation of ours is left", runs(), func(s *cluster.Snapshot, _ *cluster.Case, _ *round.Mark) {
			s.Reservations = []cluster.Reservation{{Name: cluster.ReservationPrefix + "9_1", Ours: true, End: now.Add(cluster.Minute)}}
		}, lease(cluster.Active), []string{"unreserve"}, ""},
		{"the licence gates it", waits(), func(s *cluster.Snapshot, j *cluster.Case, _ *round.Mark) {
			s.License, j.Job.Eligible = cluster.License{Name: "fairlease", Total: 5, Reserved: 5}, now
			s.Reservations = []cluster.Reservation{{Name: cluster.GateReservation, Ours: true, End: now.Add(cluster.Hour)}}
		}, nil, []string{"gate"}, "locked"},
		{"the lock lapses soon", waits(), func(s *cluster.Snapshot, j *cluster.Case, _ *round.Mark) {
			s.License, j.Job.Locked, j.Record.Locked = cluster.License{Name: "fairlease", Total: 5, Reserved: 5}, true, true
			s.Reservations = []cluster.Reservation{{Name: cluster.GateReservation, Ours: true, End: now.Add(cluster.Minute)}}
		}, nil, []string{"lock"}, ""},
	} {
		s, marks := roundtest.Snapshot(c.job), make([]round.Mark, 1)
		if c.change != nil {
			c.change(s, &s.Cases[0], &marks[0])
		}
		if l := c.lease; l != nil && l.State != cluster.Granted {
			s.Leases = []cluster.Lease{*l}
		}
		in, leases := roundtest.Facts(s)
		if c.lease != nil {
			leases = []*cluster.Lease{c.lease}
		}
		found := new(eligible.Nodes).Find(in, leases, nil)
		list, gates, _ := new(Workspace).List(&Input{In: in, Found: found, Leases: leases, Marks: marks}, round.BeneficiariesOf(leases, nil, marks), nil)
		var got []string
		for _, a := range list {
			if got = append(got, string(a.Verb)); a.Suppressed {
				got[len(got)-1] += " (not)"
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		said := ""
		for _, g := range gates {
			if g.Until > now {
				said += " begins later"
			}
			if g.Locked {
				said += " locked"
			}
			if g.Pinned {
				said += " pinned"
			}
		}
		if want := c.gates; said != "" && said[1:] != want || said == "" && want != "" {
			t.Errorf("%s: gates%s, want %q (%s)", c.name, said, want, fmt.Sprint(gates))
		}
		if in.Records[0].Gate != s.Cases[0].Record.Gate || in.Records[0].Pinned != s.Cases[0].Record.Pinned {
			t.Errorf("%s: the facts have another record now", c.name)
		}
	}
}
