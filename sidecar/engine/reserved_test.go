package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// A busy reservation of some CPUs of a node leaves the node's GPUs to jobs that need no more than the other CPUs.
func TestABusyReservationOfCPUs(t *testing.T) {
	var d engine.Decider // used again: what was in the reservation in the round before does not count
	for _, c := range []struct {
		name   string
		within string // the reservation of the job without GPUs
		cpus   int    // that the waiting job asks for
		grants bool
	}{{"in the reservation", "half", 16, true}, {"too many CPUs", "half", 17, false}, {"outside of it", "", 16, false}} {
		s := boundary(4)
		s.Nodes[0].CPUs = 32
		s.Reservations = []cluster.Reservation{{Name: "half", Nodes: []string{s.Nodes[0].Name}, Start: s.Now.Add(-hour), End: s.Now.Add(hour),
			Parts: []cluster.ReservedPart{{Node: s.Nodes[0].Name, CPUs: 16}}}}
		other, job := caseOf(1, "a", 0), waits(2, "b", 4)
		other.Control, other.Left, other.ControlWhy = cluster.Unmanaged, cluster.LeftReservation, "uses a reservation"
		other.Job.Reservation, other.Job.State, other.Record.State = c.within, cluster.Running, cluster.Running
		other.Job.Holds = []cluster.Holding{{Node: s.Nodes[0].Name, Model: "v100", CPUs: 16, MemoryMB: 1}}
		job.Job.Request.CPUs = c.cpus
		s.Cases = []cluster.Case{other, job}
		p := d.Decide(s)
		if got := slices.ContainsFunc(p.Actions, func(a cluster.Action) bool { return a.Verb == cluster.Grant }); got != c.grants {
			t.Errorf("%s: granted %v, want %v: %+v", c.name, got, c.grants, p.Statuses)
		}
	}
}

// A requeued job keeps what its earlier attempts have left of its time limit, in whole minutes: Slurm does not start it before a reservation
// that begins within that.
func TestWhatIsLeftOfATimeLimitBeforeAReservation(t *testing.T) {
	for _, c := range []struct {
		starts cluster.Span
		grants bool
	}{{52*minute + 40*second, false}, {53 * minute, true}} {
		s := boundary(4)
		s.Reservations = []cluster.Reservation{{Name: "repair", Nodes: []string{s.Nodes[0].Name}, Start: s.Now.Add(c.starts), End: s.Now.Add(2 * hour)}}
		job := waits(1, "a", 4)
		job.Job.Limit, job.Record.UserLimit, job.Record.Ran = hour, hour, 7*minute+30*second
		s.Cases = []cluster.Case{job}
		p := engine.Decide(s)
		if got := slices.ContainsFunc(p.Actions, func(a cluster.Action) bool { return a.Verb == cluster.Grant }); got != c.grants {
			t.Errorf("%s ahead: granted %v, want %v: %+v", c.starts, got, c.grants, p.Statuses)
		}
	}
}

// A job whose required nodes Slurm does not have cannot start, and is told which they are. An excluded node that Slurm does not have changes nothing.
func TestNodesThatSlurmDoesNotHave(t *testing.T) {
	s := boundary(4)
	gone, other := waits(1, "a", 2), waits(2, "b", 2)
	gone.Record.UserNodes, gone.Job.NodeList = []string{"gone", "r[7-8]", "x[0-999999]"}, []string{"gone", "r[7-8]", "x[0-999999]"}
	other.Job.Exclude = []string{"gone", "r[7-8]"}
	s.Cases = []cluster.Case{gone, other}
	p := engine.Decide(s)
	for _, st := range p.Statuses {
		if st.Job == 1 && (st.Reason.Code != cluster.ReasonTooBig || st.Reason.Note != "gone, r7, r8") {
			t.Errorf("%+v", st.Reason)
		}
	}
	if !slices.ContainsFunc(p.Actions, func(a cluster.Action) bool { return a.Verb == cluster.Grant && a.Job == 2 }) {
		t.Errorf("the job that excludes it is not granted GPUs: %+v", p.Statuses)
	}
}
