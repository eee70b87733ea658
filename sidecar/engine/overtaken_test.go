package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// overtaken returns a round in which a job of tenant a was granted the GPUs of n01, and others have just
// started. Nodes n01 and n02 have four GPUs each.
func overtaken(others ...cluster.Case) cluster.Snapshot {
	s := boundary(4, 4)
	s.Settings.GrantTimeout = minute
	granted := waits(1, "a", 4)
	granted.Record.Pinned = true
	s.Cases = append([]cluster.Case{granted}, others...)
	s.Leases = []cluster.Lease{{Job: 1, Term: 1, State: cluster.Granted, Class: cluster.Shared, Pool: "v100", Size: cluster.Whole(4),
		Nodes:   []cluster.Holding{{Node: "n01", Model: "v100", Size: cluster.Whole(4), CPUs: 4, MemoryMB: 4096}},
		Granted: s.Now.Add(-10 * cluster.Second), End: s.Now.Add(term)}}
	return s
}

// starts returns a job that has started since the last round.
func starts(key cluster.JobKey, gpus int, node string) cluster.Case {
	c := runsOn(key, "b", gpus, node)
	c.Job.Start = simtest.Start.Add(-cluster.Second)
	c.Record.State, c.Record.Held, c.Record.HeldSince, c.Record.Terms = cluster.Waiting, nil, 0, 0
	return c
}

// An ungated job takes the GPUs that were granted to another job. The other job does not wait for the grant
// timeout: it is granted other GPUs at once. Its next grant may displace others like the first one.
func TestAGrantThatWasOvertakenIsGivenElsewhere(t *testing.T) {
	memory := starts(2, 1, "n01")
	memory.Control, memory.Job.Request, memory.Record.Tenant = cluster.Unmanaged, cluster.Request{Nodes: 1, CPUs: 1, MemoryMB: 1 << 30}, "b"
	memory.Job.Holds = []cluster.Holding{{Node: "n01", CPUs: 1, MemoryMB: simtest.Nodes("n", "v100", 1, 4)[0].MemoryMB}}
	for name, other := range map[string]cluster.Case{"GPUs": starts(2, 1, "n01"), "memory": memory} {
		p := engine.Decide(overtaken(other))
		i := slices.IndexFunc(p.State.Leases, func(l cluster.Lease) bool { return l.Job == 1 })
		if i < 0 || p.State.Leases[i].State != cluster.Granted || p.State.Leases[i].Nodes[0].Node != "n02" {
			t.Fatalf("%s: leases %+v, want a grant of n02", name, p.State.Leases)
		}
		if k := slices.IndexFunc(p.Ended, func(l cluster.Lease) bool { return l.Job == 1 }); k < 0 || !strings.Contains(p.Ended[k].Why, "job 2 started on n01 first") {
			t.Errorf("%s: ended %+v, want the old grant, with the job that was faster", name, p.Ended)
		}
		if r := p.State.Records[0]; r.Failed != 0 || r.AvoidUntil != 0 || len(r.AvoidNodes) != 0 {
			t.Errorf("%s: the job has %d failures, avoids until %s, shuns %v; want none", name, r.Failed, r.AvoidUntil, r.AvoidNodes)
		}
		if a := p.Actions[slices.IndexFunc(p.Actions, func(a cluster.Action) bool { return a.Job == 1 })]; a.Verb != cluster.Grant || !slices.Equal(a.Nodes, []string{"n02"}) {
			t.Errorf("%s: action %+v, want the grant of n02", name, a)
		}
	}
}

// A grant stays if its GPUs are still free, or will be soon.
func TestAGrantThatWasNotOvertakenStays(t *testing.T) {
	leaving := runsOn(3, "b", 4, "n01") // its lease is over: the grant is made before it is requeued
	for name, s := range map[string]cluster.Snapshot{
		"nothing started":    overtaken(),
		"started elsewhere":  overtaken(starts(2, 4, "n02")),
		"the holder leaves":  overtaken(starts(2, 4, "n02"), leaving),
		"room enough beside": overtaken(func() cluster.Case { c := starts(2, 1, "n01"); c.Job.Holds[0].Size = cluster.Size{}; return c }()),
	} {
		if len(s.Cases) == 3 {
			l := leaseOf(&s, 2)
			l.State = cluster.Ending
			s.Leases = append(s.Leases, l)
		}
		p := engine.Decide(s)
		if i := slices.IndexFunc(p.State.Leases, func(l cluster.Lease) bool { return l.Job == 1 }); i < 0 || p.State.Leases[i].Nodes[0].Node != "n01" {
			t.Errorf("%s: leases %+v, ended %+v; want the grant of n01 to stay", name, p.State.Leases, p.Ended)
		}
	}
}

// Slurm chooses where a loose job with a grant of its own runs, and may choose the GPUs of another grant. That one is given elsewhere, too, and its
// job is not at fault.
func TestAGrantThatALooseOneOvertakes(t *testing.T) {
	for chosen, want := range map[string]string{cluster.Contiguous: "n02", "": "n01"} {
		other := starts(2, 4, "n01")
		other.Job.Request.Unplaceable = chosen
		s := overtaken(other)
		s.Leases = append(s.Leases, cluster.Lease{Job: 2, Term: 1, State: cluster.Granted, Class: cluster.Shared, Pool: "v100", Size: cluster.Whole(4),
			Nodes:   []cluster.Holding{{Node: "n02", Model: "v100", Size: cluster.Whole(4), CPUs: 4, MemoryMB: 4096}},
			Granted: s.Now.Add(-10 * cluster.Second), End: s.Now.Add(term)})
		p := engine.Decide(s)
		if i := slices.IndexFunc(p.State.Leases, func(l cluster.Lease) bool { return l.Job == 1 }); i < 0 || p.State.Leases[i].Nodes[0].Node != want || p.State.Records[0].Failed != 0 {
			t.Errorf("%q: leases %+v, want the grant on %s", chosen, p.State.Leases, want)
		}
	}
}
