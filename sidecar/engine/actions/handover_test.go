package actions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
)

const now = roundtest.Now

// list returns the actions of a round in words, and its events. leases are by case.
func list(s *cluster.Snapshot, leases []*cluster.Lease, change func(in *Input)) (out, events []string) {
	in, _ := roundtest.Facts(s)
	x := &Input{In: in, Found: new(eligible.Nodes).Find(in, leases, nil), Leases: leases, Marks: make([]round.Mark, len(leases))}
	if change != nil {
		change(x)
	}
	all, _, said := new(Workspace).List(x, round.BeneficiariesOf(leases, x.Claims, x.Marks), nil)
	for k := range all {
		a := &all[k]
		text := string(a.Verb)
		if a.Job > 0 {
			text += fmt.Sprintf(" job %d", a.Job)
		}
		if a.Reservation != "" {
			text += " " + strings.TrimPrefix(a.Reservation, cluster.ReservationPrefix)
		}
		if len(a.Nodes) > 0 {
			text += " on " + strings.Join(a.Nodes, "+")
		}
		if len(a.Accounts) > 0 {
			text += " for " + strings.Join(a.Accounts, "+")
		}
		if a.Suppressed {
			text += " (not)"
		}
		out = append(out, text)
	}
	for _, e := range said {
		events = append(events, e.Text)
	}
	return out, events
}

func lease(job cluster.JobKey, state cluster.LeaseState, nodes ...string) *cluster.Lease {
	l := &cluster.Lease{Job: job, Term: 1, State: state, Pool: "v100", Size: cluster.Whole(len(nodes)), Granted: now, End: now.Add(cluster.Hour)}
	for _, n := range nodes {
		l.Nodes = append(l.Nodes, cluster.Holding{Node: n, Model: "v100", Size: cluster.Whole(1)})
	}
	return l
}

// GPUs are handed over in the only order in which no third job wins a race: the reservation, the grants, and then the requeues.
func TestHandOvers(t *testing.T) {
	waits := func(id int64, tenant string) cluster.Case { return roundtest.Job(id, tenant, 1, cluster.Waiting) }
	runs := func(id int64, node string) cluster.Case {
		return roundtest.On(roundtest.Job(id, "bio", 1, cluster.Running), node, "v100", 1)
	}
	claim := func(at cluster.Span) func(in *Input) {
		return func(in *Input) {
			in.Claims = []cluster.Claim{{Job: 1, Pool: "v100", Nodes: []cluster.Holding{{Node: "a", Size: cluster.Whole(1)}}, At: now.Add(at)}}
		}
	}
	both := func(in *Input) {
		claim(0)(in)
		in.Claims[0].Nodes = append(in.Claims[0].Nodes, cluster.Holding{Node: "b", Size: cluster.Whole(1)})
	}
	started := func(job cluster.JobKey) *cluster.Lease {
		l := lease(job, cluster.Granted, "a")
		l.Granted = now - 1
		return l
	}
	fence := cluster.Reservation{Name: cluster.ReservationPrefix + "next", Ours: true, Nodes: []string{"a"}, Accounts: []string{"bio"}, End: now.Add(3 * cluster.Minute)}
	for _, c := range []struct {
		name   string
		cases  []cluster.Case
		leases []*cluster.Lease
		change func(s *cluster.Snapshot)
		choice func(in *Input)
		want   []string
	}{
		{"GPUs are idle: no reservation", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{lease(1, cluster.Granted, "a")}, nil, nil, []string{"grant job 1 on a"}},
		{"a job leaves its GPUs to another", []cluster.Case{waits(7, "bio"), runs(8, "a")}, []*cluster.Lease{lease(1, cluster.Granted, "a"), lease(2, cluster.Ending, "a")}, nil, nil,
			[]string{"reserve 1_1 on a for bio", "grant job 1 1_1 on a", "reclaim job 2"}},
		{"it has left already", []cluster.Case{waits(7, "bio"), waits(8, "bio")}, []*cluster.Lease{lease(1, cluster.Granted, "a"), lease(2, cluster.Ending, "a")}, nil, nil, []string{"grant job 1 on a"}},
		{"a gang joins the hand-overs of two nodes", []cluster.Case{waits(7, "nlp"), waits(8, "bio"), runs(9, "b"), waits(10, "bio")},
			[]*cluster.Lease{lease(1, cluster.Granted, "a"), lease(2, cluster.Granted, "b"), lease(3, cluster.Ending, "b"), lease(4, cluster.Granted, "a", "b")}, nil, nil,
			[]string{"reserve 1_1 on a+b for bio+nlp", "grant job 1 1_1 on a", "grant job 2 1_1 on b", "grant job 4 1_1 on a+b", "reclaim job 3"}},
		{"hand-overs of other nodes stay apart", []cluster.Case{waits(7, "bio"), waits(8, "nlp"), runs(9, "b")}, []*cluster.Lease{lease(1, cluster.Granted, "a"), lease(2, cluster.Granted, "b"), lease(3, cluster.Ending, "b")}, nil, nil,
			[]string{"grant job 1 on a", "reserve 2_1 on b for nlp", "grant job 2 2_1 on b", "reclaim job 3"}},
		{"an observed job's hand-over is not joined", []cluster.Case{waits(7, "bio"), waits(8, "nlp")}, []*cluster.Lease{lease(1, cluster.Granted, "a"), lease(2, cluster.Granted, "a")},
			func(s *cluster.Snapshot) { s.Cases[1].Control = cluster.ObserveOnly }, nil, []string{"grant job 1 on a", "grant job 2 on a (not)"}},
		{"the granted job is about to start: only the others are told to leave", []cluster.Case{waits(7, "bio"), runs(8, "a")}, []*cluster.Lease{lease(1, cluster.Granted, "a"), lease(2, cluster.Ending, "a")},
			func(s *cluster.Snapshot) {
				s.Cases[0].Job.Eligible, s.Cases[0].Job.NodeList, s.Cases[0].Record.Pinned, s.Cases[0].Record.Basis = now, []string{"a"}, true, &cluster.Basis{}
			}, nil, []string{"reclaim job 2"}},
		{"its turn comes within the notice: a fence", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, nil, claim(cluster.Minute), []string{"reserve next on a for bio"}},
		{"its turn comes later", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, nil, claim(cluster.Minute + 1), nil},
		{"its turn is overdue", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, nil, claim(-2 * cluster.Minute), nil},
		{"a job granted before starts there: its node joins when it runs", []cluster.Case{waits(7, "bio"), waits(8, "nlp")}, []*cluster.Lease{nil, started(2)}, func(s *cluster.Snapshot) {
			s.Cases[1].Job.Eligible, s.Cases[1].Job.NodeList, s.Cases[1].Record.Pinned, s.Cases[1].Record.Basis = now, []string{"a"}, true, &cluster.Basis{}
		}, both, []string{"reserve next on b for bio"}},
		{"a job granted now starts there, in a reservation of its own", []cluster.Case{waits(7, "bio"), waits(8, "nlp")}, []*cluster.Lease{nil, lease(2, cluster.Granted, "a")}, nil, both,
			[]string{"reserve 2_1 on a for nlp", "grant job 2 2_1 on a", "reserve next on a+b for bio"}},
		{"it is not, for a millisecond", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, nil, claim(-2*cluster.Minute + 1), []string{"reserve next on a for bio"}},
		{"GPUs are only gathered", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, nil, func(in *Input) { claim(0)(in); in.Claims[0].Gathers = true }, nil},
		{"the claim is of a job that is only observed", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.ObserveOnly }, claim(0), nil},
		{"the fence stands, and is long enough", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, func(s *cluster.Snapshot) { s.Reservations = []cluster.Reservation{fence} }, claim(cluster.Minute), nil},
		{"it ends a millisecond early", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, func(s *cluster.Snapshot) { fence := fence; fence.End--; s.Reservations = []cluster.Reservation{fence} }, claim(cluster.Minute), []string{"reserve next on a for bio"}},
		{"it is around another node", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, func(s *cluster.Snapshot) {
			fence := fence
			fence.Nodes = []string{"b"}
			s.Reservations = []cluster.Reservation{fence}
		}, claim(cluster.Minute), []string{"reserve next on a for bio"}},
		{"it is wanted no more", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, func(s *cluster.Snapshot) { s.Reservations = []cluster.Reservation{fence} }, nil, []string{"unreserve next"}},
		{"a job starts inside of it: its grant needs a reservation", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{lease(1, cluster.Granted, "a")}, func(s *cluster.Snapshot) { s.Reservations = []cluster.Reservation{fence} }, nil,
			[]string{"reserve 1_1 on a for bio", "grant job 1 1_1 on a", "unreserve next"}},
		{"the nodes of a virtual cluster", []cluster.Case{waits(7, "bio")}, []*cluster.Lease{nil}, nil, func(in *Input) { in.Fences = map[string][]string{"nlp": {"b"}, "bio": {"a"}} }, []string{"reserve cell_bio on a for bio", "reserve cell_nlp on b for nlp"}},
		{"a job that began leaves its reservation", []cluster.Case{runs(7, "a")}, []*cluster.Lease{lease(1, cluster.Active, "a")}, func(s *cluster.Snapshot) { s.Cases[0].Job.Reservation = cluster.ReservationPrefix + "1_1" }, nil, []string{"release job 1 1_1"}},
		{"a reservation of its user stays", []cluster.Case{runs(7, "a")}, []*cluster.Lease{lease(1, cluster.Active, "a")}, func(s *cluster.Snapshot) { s.Cases[0].Job.Reservation = "maintenance" }, nil, nil},
		{"a reservation of ours that no job names has ended", []cluster.Case{runs(7, "a")}, []*cluster.Lease{lease(1, cluster.Active, "a")}, func(s *cluster.Snapshot) {
			s.Reservations = []cluster.Reservation{{Name: cluster.ReservationPrefix + "9_1", Ours: true, End: now}}
		}, nil, nil},
		{"it is another's, and has such a name", []cluster.Case{runs(7, "a")}, []*cluster.Lease{lease(1, cluster.Active, "a")}, func(s *cluster.Snapshot) {
			s.Reservations = []cluster.Reservation{{Name: cluster.ReservationPrefix + "9_1", End: now + 1}}
		}, nil, nil},
	} {
		s := roundtest.Snapshot(c.cases...)
		if c.change != nil {
			c.change(s)
		}
		if got, _ := list(s, c.leases, c.choice); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A running job gets the licence back in its first two minutes, then once an hour, unless it is not acted on.
func TestLicenceOfRunningJobs(t *testing.T) {
	for _, c := range []struct {
		name   string
		ran    cluster.Span
		change func(c *cluster.Case)
		want   []string
		events int
	}{
		{"it has just begun", cluster.Minute, nil, []string{"gate job 1"}, 0},
		{"it ends its second minute", 2*cluster.Minute - 1, nil, []string{"gate job 1"}, 0},
		{"it has run for two minutes", 2 * cluster.Minute, nil, nil, 0},
		{"it has run for an hour since the last look", cluster.Hour, nil, []string{"gate job 1"}, 1},
		{"it will in a millisecond", cluster.Hour - 1, nil, nil, 0},
		{"it had run for it at the last look", cluster.Hour + 10*cluster.Second, nil, nil, 0},
		{"it has the licence", cluster.Minute, func(c *cluster.Case) { c.Job.Locked = true }, nil, 0},
		{"it is not managed, and has the licence of ours", cluster.Hour, func(c *cluster.Case) { c.Control, c.Job.Locked, c.Record.Locked = cluster.Unmanaged, true, true }, []string{"gate job 1"}, 0},
		{"it is not managed, and asked for the licence itself", cluster.Hour, func(c *cluster.Case) { c.Control, c.Job.Locked = cluster.Unmanaged, true }, nil, 0},
		{"it is only observed", cluster.Minute, func(c *cluster.Case) { c.Control = cluster.ObserveOnly }, nil, 0},
		{"it asks for one of several licences", cluster.Minute, func(c *cluster.Case) { c.Job.Either = true }, nil, 0},
		{"it is the first part of a heterogeneous job", cluster.Minute, func(c *cluster.Case) { c.Job.Het = c.Job.Record }, []string{"gate job 1"}, 0},
		{"it is another part", cluster.Minute, func(c *cluster.Case) { c.Job.Het = c.Job.Record - 1 }, nil, 0},
		{"it is suspended", cluster.Minute, func(c *cluster.Case) { c.Job.State = cluster.Suspended }, nil, 0},
	} {
		job := roundtest.On(roundtest.Job(7, "bio", 1, cluster.Running), "a", "v100", 1)
		job.Job.Start, job.Record.State = now.Add(-c.ran), cluster.Running
		if c.change != nil {
			c.change(&job)
		}
		s := roundtest.Snapshot(job)
		s.License = cluster.License{Name: "fairlease", Total: 5, Reserved: 5}
		s.Reservations = []cluster.Reservation{{Name: cluster.GateReservation, Ours: true, End: now.Add(cluster.Hour)}}
		if got, events := list(s, []*cluster.Lease{lease(1, cluster.Active, "a")}, nil); !slices.Equal(got, c.want) || len(events) != c.events {
			t.Errorf("%s: %q, want %q; events %q", c.name, got, c.want, events)
		}
	}
}

// The lock is put again before it lapses, and an event says when waiting jobs could have started without it.
func TestLock(t *testing.T) {
	for _, c := range []struct {
		name   string
		left   cluster.Span // of the lock; 0 = there is none
		free   int64        // licences
		relied bool         // a job waits that asked for it
		want   []string
		events int
	}{
		{"half of its time is left", 30 * cluster.Minute, 0, true, nil, 0},
		{"a millisecond less is", 30*cluster.Minute - 1, 0, true, []string{"lock gate"}, 0},
		{"a licence is free", cluster.Hour, 1, true, []string{"lock gate"}, 1},
		{"there is none, and a job relied on it", 0, 5, true, []string{"lock gate"}, 1},
		{"it is the first", 0, 5, false, []string{"lock gate"}, 0},
	} {
		s := roundtest.Snapshot(roundtest.Job(7, "bio", 1, cluster.Waiting))
		s.Cases[0].Job.Locked, s.Cases[0].Record.Locked = c.relied, c.relied
		s.License = cluster.License{Name: "fairlease", Total: 5, Reserved: 5 - c.free}
		if c.left > 0 {
			s.Reservations = []cluster.Reservation{{Name: cluster.GateReservation, Ours: true, End: now.Add(c.left)}}
		}
		got, events := list(s, []*cluster.Lease{nil}, nil)
		got = slices.DeleteFunc(got, func(a string) bool { return strings.HasPrefix(a, "gate job") })
		if !slices.Equal(got, c.want) || len(events) != c.events {
			t.Errorf("%s: %q, want %q; events %q", c.name, got, c.want, events)
		}
	}
}
