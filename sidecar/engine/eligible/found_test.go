package eligible

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
)

// granted returns a lease of GPUs of node a that has not begun.
func granted(job cluster.JobKey, gpus int, since cluster.Span) cluster.Lease {
	return cluster.Lease{Job: job, Term: 1, State: cluster.Granted, Pool: "v100", Size: cluster.Whole(gpus), Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(gpus)}}, Granted: roundtest.Now.Add(-since), End: roundtest.Now.Add(cluster.Hour)}
}

// A lease behind another one goes on while the job before it may still be short, and keeps its GPUs.
func TestLeasesBehindOthers(t *testing.T) {
	const now, interval = roundtest.Now, 10 * cluster.Second
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		why    string // "" = it goes on
	}{
		{"the job before it has just begun", func(*cluster.Snapshot) {}, ""},
		{"it has run for nearly two intervals", func(s *cluster.Snapshot) { s.Cases[1].Job.Start = now.Add(-2*interval) + 1 }, ""},
		{"it has run for two", func(s *cluster.Snapshot) { s.Cases[1].Job.Start = now.Add(-2 * interval) }, "job 8 before it runs for longer than jobs like it"},
		{"it has waited for nearly three intervals", func(s *cluster.Snapshot) { s.Leases[0].Granted = now.Add(-3*interval) + 1 }, ""},
		{"it has waited for three", func(s *cluster.Snapshot) { s.Leases[0].Granted = now.Add(-3 * interval) }, "job 8 before it runs for longer than jobs like it"},
		{"the job before it has no lease", func(s *cluster.Snapshot) { s.Leases = s.Leases[:1] }, "the job before it lost its lease"},
		{"the job before it is unknown", func(s *cluster.Snapshot) { s.Leases[0].Behind = 99 }, "the job before it lost its lease"},
		{"the job before it follows, too", func(s *cluster.Snapshot) { s.Leases[1].Behind = 1 }, "the job before it lost its lease"},
		{"the lease before it is over", func(s *cluster.Snapshot) { s.Leases[1].State = cluster.Ending }, "the lease of job 8 before it ends"},
		{"the lease before it had its notice", func(s *cluster.Snapshot) { s.Leases[1].State = cluster.Noticed }, "the lease of job 8 before it ends"},
		{"the lease before it is recalled", func(s *cluster.Snapshot) { s.Leases[1].Why = round.Recalled }, "the lease of job 8 before it ends"},
		{"GPUs of the node are claimed", func(s *cluster.Snapshot) { s.Claims = []cluster.Claim{{Job: 3, Nodes: []cluster.Holding{{Node: "a"}}}} }, "GPUs of a are kept for another job"},
		{"GPUs of another node are claimed", func(s *cluster.Snapshot) { s.Claims = []cluster.Claim{{Job: 3, Nodes: []cluster.Holding{{Node: "b"}}}} }, ""},
	} {
		s := roundtest.Snapshot(roundtest.Job(7, "bio", 1, cluster.Waiting), roundtest.On(roundtest.Job(8, "bio", 1, cluster.Running), "a", "v100", 1))
		s.Cases[1].Job.Start, s.Cases[1].Record.State = now-1, cluster.Running
		s.Leases = []cluster.Lease{granted(1, 0, cluster.Second), granted(2, 1, cluster.Minute)}
		s.Leases[0].Behind, s.Leases[1].State = 2, cluster.Active
		c.change(s)
		in, leases := roundtest.Facts(s)
		found := new(Nodes).Find(in, leases, nil)
		if (found.Leases[0] == nil) != (c.why != "") || c.why != "" && found.Said(0) != c.why {
			t.Errorf("%s: the lease is %+v, as %q", c.name, found.Leases[0], found.Said(0))
		}
	}
}

// A grant stands if its GPUs are still free, of two the older one, and whoever else starts is at no fault of it.
func TestWhichGrantsAreOvertaken(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(s *cluster.Snapshot)
		revoked []cluster.JobKey
	}{
		{"a job started, and two GPUs are left for the older grant", func(*cluster.Snapshot) {}, []cluster.JobKey{2}},
		{"the second grant is the older one", func(s *cluster.Snapshot) { s.Leases[1].Granted -= 1000 }, []cluster.JobKey{1}},
		{"both are as old: the first job's stands", func(s *cluster.Snapshot) { s.Leases[1].Granted = s.Leases[0].Granted }, []cluster.JobKey{2}},
		{"it ran before", func(s *cluster.Snapshot) { s.Cases[2].Record.State = cluster.Running }, nil},
		{"its nodes were made ready before", func(s *cluster.Snapshot) { s.Cases[2].Record.State = cluster.Configuring }, nil},
		{"its nodes are made ready now", func(s *cluster.Snapshot) { s.Cases[2].Job.State = cluster.Configuring }, []cluster.JobKey{2}},
		{"it started by its own lease", func(s *cluster.Snapshot) { s.Leases = append(s.Leases, active(3)) }, nil},
		{"it was adopted", func(s *cluster.Snapshot) { l := active(3); l.Adopted = true; s.Leases = append(s.Leases, l) }, []cluster.JobKey{2}},
		{"it started behind another lease", func(s *cluster.Snapshot) { l := active(3); l.Behind = 9; s.Leases = append(s.Leases, l) }, []cluster.JobKey{2}},
		{"it was adopted, and the first grant follows it", func(s *cluster.Snapshot) {
			l := active(3)
			l.Adopted, s.Cases[2].Job.Start = true, roundtest.Now-1
			s.Leases = append(s.Leases, l)
			s.Leases[0].Behind = 3
		}, nil},
		{"it started on another node", func(s *cluster.Snapshot) { s.Cases[2].Job.Holds[0].Node, s.Cases[2].Job.Holds[0].Model = "b", "k80" }, nil},
		{"the granted jobs start", func(s *cluster.Snapshot) {
			for i := range 2 {
				s.Cases[i].Job.State = cluster.Completing
			}
		}, nil},
	} {
		s := roundtest.Snapshot(roundtest.Job(7, "bio", 2, cluster.Waiting), roundtest.Job(8, "bio", 2, cluster.Waiting), roundtest.On(roundtest.Job(9, "nlp", 2, cluster.Running), "a", "v100", 2))
		s.Cases[2].Record.State = cluster.Waiting
		s.Leases = []cluster.Lease{granted(1, 2, 10*cluster.Second), granted(2, 2, 10*cluster.Second)}
		s.Leases[0].Granted -= 500
		c.change(s)
		in, leases := roundtest.Facts(s)
		if leases[2] != nil {
			leases[2].Behind = 0 // it runs, and has its GPUs
		}
		var got []cluster.JobKey
		for _, l := range new(Nodes).Find(in, leases, nil).Revoked {
			if got = append(got, l.Job); l.State != cluster.Over || l.Ended != in.Now || l.Why != "taken back: job 9 started on a first" {
				t.Errorf("%s: revoked %+v", c.name, l)
			}
		}
		if !slices.Equal(got, c.revoked) {
			t.Errorf("%s: revoked %v, want %v", c.name, got, c.revoked)
		}
	}
}

func active(job cluster.JobKey) cluster.Lease {
	l := granted(job, 2, cluster.Minute)
	l.State = cluster.Active
	return l
}

// A user whose grants do not start gets no more of them beyond four GPUs besides the largest grant, and a tenant beyond eight.
func TestGrantsThatDoNotStart(t *testing.T) {
	for _, c := range []struct {
		name  string
		gpus  []int                      // of grants of ann
		wait  cluster.Span               // since they were made
		other func(c *cluster.Case) bool // changes the waiting job; reports whether it is eligible
	}{
		{"of three and one GPUs beside the largest", []int{4, 3}, 11 * cluster.Second, func(*cluster.Case) bool { return true }},
		{"of four beside the largest", []int{4, 4}, 11 * cluster.Second, func(*cluster.Case) bool { return false }},
		{"of one grant alone", []int{16}, 11 * cluster.Second, func(*cluster.Case) bool { return true }},
		{"they are as young as usual", []int{4, 4}, 10 * cluster.Second, func(*cluster.Case) bool { return true }},
		{"of another user of the tenant", []int{4, 4}, 11 * cluster.Second, func(c *cluster.Case) bool { c.Record.User = "bob"; return true }},
		{"of another user of the tenant, eight beside the largest", []int{4, 4, 4}, 11 * cluster.Second, func(c *cluster.Case) bool { c.Record.User = "bob"; return false }},
		{"of the user in another tenant", []int{4, 4, 4}, 11 * cluster.Second, func(c *cluster.Case) bool { c.Record.Tenant = "nlp"; return true }},
	} {
		var cases []cluster.Case
		for i, n := range c.gpus {
			cases = append(cases, roundtest.Job(int64(i+7), "bio", n, cluster.Waiting))
		}
		next := roundtest.Job(99, "bio", 1, cluster.Waiting)
		want := c.other(&next)
		s := roundtest.Snapshot(append(cases, next)...)
		s.Nodes[0].GPUs[0].Count = 16
		for i, n := range c.gpus {
			s.Leases = append(s.Leases, granted(cluster.JobKey(i+1), n, c.wait))
		}
		in, leases := roundtest.Facts(s)
		if can := new(Nodes).Find(in, leases, nil).Can[len(c.gpus)]; can.Eligible != want || !want && can.Why != cluster.ReasonUnstarted {
			t.Errorf("%s: eligible %t, for %q", c.name, can.Eligible, can.Why)
		}
	}
	// GPUs that others have not left yet are no sign of trouble.
	s := roundtest.Snapshot(roundtest.Job(7, "bio", 4, cluster.Waiting), roundtest.Job(8, "bio", 4, cluster.Waiting), roundtest.On(roundtest.Job(9, "nlp", 1, cluster.Completing), "a", "v100", 1), roundtest.Job(10, "bio", 1, cluster.Waiting))
	s.Leases = []cluster.Lease{granted(1, 4, cluster.Minute), granted(2, 4, cluster.Minute)}
	in, leases := roundtest.Facts(s)
	if can := new(Nodes).Find(in, leases, nil).Can[3]; !can.Eligible {
		t.Errorf("not eligible, for %q", can.Why)
	}
}

// Pools on whose GPUs a job's memory does not fit are left out, unless none is left.
func TestMemory(t *testing.T) {
	train := cluster.JobType{User: "ann", Command: "train", GPUs: 2}
	for _, c := range []struct {
		name     string
		declared []cluster.GPUMemory
		used     []cluster.MemoryUse
		change   func(s *cluster.Snapshot)
		want     []int // k80 has 12 bytes, v100 32
	}{
		{"nothing is known", nil, nil, nil, []int{0, 1}},
		{"it says that it needs 12 there", []cluster.GPUMemory{{Model: "k80", Bytes: 12}}, nil, nil, []int{0, 1}},
		{"it says that it needs 13 there", []cluster.GPUMemory{{Model: "k80", Bytes: 13}}, nil, nil, []int{1}},
		{"it says that it needs too much everywhere", []cluster.GPUMemory{{Model: "k80", Bytes: 13}, {Model: "v100", Bytes: 33}}, nil, nil, []int{0, 1}},
		{"jobs of its type used 20 elsewhere", nil, []cluster.MemoryUse{{Type: train, Model: "v100", Bytes: 20}}, nil, []int{1}},
		{"jobs of its type completed there all the same", nil, []cluster.MemoryUse{{Type: train, Model: "k80", Bytes: 11}, {Type: train, Model: "v100", Bytes: 20}}, nil, []int{0, 1}},
		{"jobs of its type failed there with the memory full", nil, []cluster.MemoryUse{{Type: train, Model: "k80", Bytes: 11, Full: true}}, nil, []int{1}},
		{"its own word counts more", []cluster.GPUMemory{{Model: "k80", Bytes: 5}}, []cluster.MemoryUse{{Type: train, Model: "k80", Bytes: 11, Full: true}}, nil, []int{0, 1}},
		{"jobs of another type failed", nil, []cluster.MemoryUse{{Type: cluster.JobType{User: "ann", Command: "test", GPUs: 2}, Model: "k80", Full: true}}, nil, []int{0, 1}},
		{"the size of a model is unknown", []cluster.GPUMemory{{Model: "k80", Bytes: 13}}, nil, func(s *cluster.Snapshot) { s.Sizes = s.Sizes[1:] }, []int{0, 1}},
		{"it names its model", []cluster.GPUMemory{{Model: "k80", Bytes: 13}}, nil, func(s *cluster.Snapshot) { s.Cases[0].Job.Request.Model = "k80" }, []int{0}},
	} {
		s := roundtest.Snapshot(roundtest.Job(7, "bio", 2, cluster.Waiting))
		s.Cases[0].Job.Command, s.Cases[0].Job.Hints = "train", &cluster.Hints{Memory: c.declared}
		s.Sizes, s.Memory = []cluster.GPUMemory{{Model: "k80", Bytes: 12}, {Model: "v100", Bytes: 32}}, c.used
		if c.change != nil {
			c.change(s)
		}
		in, leases := roundtest.Facts(s)
		if got := new(Nodes).Find(in, leases, nil).Can[0].Pools; !slices.Equal(got, c.want) {
			t.Errorf("%s: pools %v, want %v", c.name, got, c.want)
		}
	}
}

// Of jobs of a class that Slurm does not start, as many as it admits are tried: those that failed least, then the smallest.
func TestClassesThatSlurmDoesNotStart(t *testing.T) {
	const now = roundtest.Now
	cause := func(admits int) cluster.Cause {
		return cluster.Cause{CauseKey: cluster.CauseKey{Tenant: "bio", User: "ann", Reason: "QOSMaxGRESPerUser"}, Admits: admits, Last: 42}
	}
	for _, c := range []struct {
		name   string
		cause  cluster.Cause
		change func(s *cluster.Snapshot)
		want   []int // cases that are eligible
		note   cluster.JobKey
	}{
		{"one is admitted: the smallest", cause(1), func(*cluster.Snapshot) {}, []int{1, 3}, 2},
		{"two are", cause(2), func(*cluster.Snapshot) {}, []int{1, 2, 3}, 2},
		{"the smallest failed before", cause(1), func(s *cluster.Snapshot) { s.Cases[1].Record.Failed = 1 }, []int{2, 3}, 3},
		{"one is admitted, and stands", cause(1), func(s *cluster.Snapshot) { s.Leases = []cluster.Lease{granted(2, 1, cluster.Second)} }, []int{3}, 42},
		{"none for a while", func() cluster.Cause { x := cause(1); x.Until = now + 1; return x }(), func(*cluster.Snapshot) {}, []int{3}, 42},
		{"the while is over", func() cluster.Cause { x := cause(1); x.Until = now; return x }(), func(*cluster.Snapshot) {}, []int{1, 3}, 2},
		{"any number", cause(0), func(*cluster.Snapshot) {}, []int{0, 1, 2, 3}, 0},
		{"it is of another tenant", func() cluster.Cause { x := cause(1); x.Tenant = "nlp"; return x }(), func(*cluster.Snapshot) {}, []int{0, 1, 2, 3}, 0},
	} {
		s := roundtest.Snapshot(roundtest.Job(7, "bio", 3, cluster.Waiting), roundtest.Job(8, "bio", 1, cluster.Waiting), roundtest.Job(9, "bio", 2, cluster.Waiting), roundtest.Job(10, "nlp", 1, cluster.Waiting))
		s.Cases[3].Job.User, s.Cases[3].Record.User = "bob", "bob"
		c.change(s)
		in, leases := roundtest.Facts(s)
		nodes := new(Nodes)
		found := nodes.Find(in, leases, []cluster.Cause{c.cause})
		var got []int
		for i, can := range found.Can {
			if can.Eligible {
				got = append(got, i)
			} else if can.Why == cluster.ReasonRefused && can.For != c.note {
				t.Errorf("%s: job %d waits for %d, want %d", c.name, i+1, can.For, c.note)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: eligible %v, want %v", c.name, got, c.want)
		}
		if empty := nodes.Causes()[0].Empty; (empty != 0) != (c.cause.Tenant == "nlp") {
			t.Errorf("%s: no job of the class waits since %d", c.name, empty)
		}
	}
}
