package eligible

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
)

// A waiting job is eligible, or there is one reason why it is not.
func TestWhatKeepsAJobFromALease(t *testing.T) {
	const now = roundtest.Now
	for _, c := range []struct {
		name   string
		gpus   int
		change func(s *cluster.Snapshot, c *cluster.Case)
		why    cluster.Code // "" = it is eligible
		pools  []int        // k80, v100
	}{
		{"nothing", 2, func(*cluster.Snapshot, *cluster.Case) {}, "", []int{0, 1}},
		{"a model that it names", 2, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Request.Model = "v100" }, "", []int{1}},
		{"a node that is down", 2, func(s *cluster.Snapshot, _ *cluster.Case) { s.Nodes[0].Bad = "down" }, "", []int{0}},
		{"more GPUs than a node has", 5, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Request.Nodes = 1 }, cluster.ReasonTooBig, nil},
		{"a partition without nodes", 2, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Partitions = []string{"cpu"} }, cluster.ReasonTooBig, nil},
		{"a hold", 2, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Inactive = "held" }, cluster.ReasonInactive, nil},
		{"its user's begin time", 2, func(_ *cluster.Snapshot, c *cluster.Case) { c.Record.UserBegin = now.Add(cluster.Minute) }, cluster.ReasonInactive, nil},
		{"its user's begin time, which has come", 2, func(_ *cluster.Snapshot, c *cluster.Case) { c.Record.UserBegin = now }, "", []int{0, 1}},
		{"its attempt, which cleans up", 2, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.State = cluster.Completing }, cluster.ReasonCompleting, []int{0, 1}},
		{"a grant that failed just now", 2, func(_ *cluster.Snapshot, c *cluster.Case) { c.Record.AvoidUntil = now.Add(cluster.Minute) }, cluster.ReasonFailed, nil},
		{"the node of a failed grant", 2, func(_ *cluster.Snapshot, c *cluster.Case) {
			c.Record.AvoidUntil, c.Record.AvoidNodes = now, []string{"a"}
		}, "", []int{0}},
		{"all nodes of failed grants", 2, func(_ *cluster.Snapshot, c *cluster.Case) {
			c.Record.AvoidUntil, c.Record.AvoidNodes = now, []string{"a", "b"}
		}, "", []int{0, 1}},
		{"a failed grant a term ago", 2, func(s *cluster.Snapshot, c *cluster.Case) {
			c.Record.AvoidUntil, c.Record.AvoidNodes = now.Add(-s.Settings.Term), []string{"a"}
		}, "", []int{0, 1}},
		{"an order to freeze it", 2, func(s *cluster.Snapshot, c *cluster.Case) {
			s.Overrides = []cluster.Override{{ID: 1, Kind: cluster.Freeze, Scope: "tenant", Name: "bio", Until: now.Add(cluster.Hour)}}
		}, cluster.ReasonFrozen, nil},
		{"its own end", 2, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.State = cluster.Done }, cluster.ReasonDone, nil},
		{"a partition that is not managed", 2, func(_ *cluster.Snapshot, c *cluster.Case) { c.Control = cluster.Unmanaged }, cluster.ReasonUntouched, nil},
		{"a requeue in this second", 2, func(_ *cluster.Snapshot, c *cluster.Case) { c.Job.Restarts, c.Job.Submit = 1, now }, cluster.ReasonCompleting, []int{0, 1}},
	} {
		s := roundtest.Snapshot(roundtest.Job(7, "bio", c.gpus, cluster.Waiting))
		c.change(s, &s.Cases[0])
		in, leases := roundtest.Facts(s)
		can := new(Nodes).Find(in, leases, nil).Can[0]
		if can.Why != c.why || can.Eligible != (c.why == "") || !slices.Equal(can.Pools, c.pools) {
			t.Errorf("%s: eligible %t, for %q, in pools %v; want %q and %v", c.name, can.Eligible, can.Why, can.Pools, c.why, c.pools)
		}
	}
}

// Claimants are jobs that run, in their own pool, and those that could, in all pools that could serve them.
func TestWhoClaimsGPUs(t *testing.T) {
	s := roundtest.Snapshot(roundtest.Job(7, "bio", 2, cluster.Waiting), roundtest.On(roundtest.Job(8, "bio", 3, cluster.Running), "a", "v100", 3), roundtest.Job(9, "nlp", 9, cluster.Waiting))
	in, leases := roundtest.Facts(s)
	found := new(Nodes).Find(in, leases, nil)
	if bio := found.Claimants[0]; len(bio) != 2 || bio[0].Case != 1 || bio[0].GPUs != cluster.Micro(3) || !slices.Equal(bio[0].Pools, []int{1}) || bio[1].Case != 0 || !slices.Equal(bio[1].Pools, []int{0, 1}) {
		t.Errorf("bio's claimants are %+v, want the running job with 3 GPUs in v100, then the waiting one", bio)
	}
	if nlp := found.Claimants[1]; len(nlp) != 0 {
		t.Errorf("nlp's claimants are %+v, though its job fits nowhere", nlp)
	}
}

// A grant whose GPUs another job took is revoked without fault of the job or the node: it may have others at once.
func TestAnOvertakenGrantIsRevoked(t *testing.T) {
	s := roundtest.Snapshot(roundtest.Job(7, "bio", 4, cluster.Waiting), roundtest.On(roundtest.Job(8, "nlp", 2, cluster.Running), "a", "v100", 2))
	s.Cases[1].Record.State = cluster.Waiting // it has just started
	s.Leases = []cluster.Lease{{Job: 1, Term: 1, State: cluster.Granted, Pool: "v100", Size: cluster.Whole(4), Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Whole(4)}}, Granted: roundtest.Now.Add(-10 * cluster.Second),
		End: roundtest.Now.Add(cluster.Hour)}}
	in, leases := roundtest.Facts(s)
	found := new(Nodes).Find(in, leases, nil)
	if found.Leases[0] != nil || len(found.Revoked) != 1 || found.Said(0) != "job 8 started on a first" || len(found.Avoids(0)) > 0 || !found.Can[0].Eligible {
		t.Errorf("lease %+v, revoked %+v, said %q, avoids %v, eligible %t", found.Leases[0], found.Revoked, found.Said(0), found.Avoids(0), found.Can[0].Eligible)
	}
	if leases[0] == nil || leases[0].State != cluster.Granted {
		t.Error("the step before has another result now")
	}
}

// A node with a slow GPU is one that gangs avoid, unless a running job has the GPU.
func TestNodesOfSlowGPUs(t *testing.T) {
	gpu := func(index int) cluster.SlowGPU {
		return cluster.SlowGPU{SlowNode: cluster.SlowNode{Node: "a", Model: "v100"}, Index: index}
	}
	for _, c := range []struct {
		name  string
		slow  cluster.NodeSpeeds
		state cluster.JobState
		index []int // of a job with two GPUs of a
		want  bool
	}{
		{"nothing is slow", cluster.NodeSpeeds{}, cluster.Running, []int{0, 1}, false},
		{"the node is slow", cluster.NodeSpeeds{Slow: []cluster.SlowNode{gpu(0).SlowNode}}, cluster.Running, []int{0, 1}, true},
		{"a job has the slow GPU", cluster.NodeSpeeds{GPUs: []cluster.SlowGPU{gpu(1)}}, cluster.Running, []int{0, 1}, false},
		{"a suspended job has it", cluster.NodeSpeeds{GPUs: []cluster.SlowGPU{gpu(1)}}, cluster.Suspended, []int{0, 1}, false},
		{"a job has others", cluster.NodeSpeeds{GPUs: []cluster.SlowGPU{gpu(3)}}, cluster.Running, []int{0, 1}, true},
		{"a job has one of two", cluster.NodeSpeeds{GPUs: []cluster.SlowGPU{gpu(1), gpu(3)}}, cluster.Running, []int{0, 1}, true},
		{"nobody knows which the job has", cluster.NodeSpeeds{GPUs: []cluster.SlowGPU{gpu(1)}}, cluster.Running, nil, true},
		{"the job that had it has ended", cluster.NodeSpeeds{GPUs: []cluster.SlowGPU{gpu(1)}}, cluster.Done, []int{0, 1}, true},
	} {
		s := roundtest.Snapshot(roundtest.On(roundtest.Job(8, "nlp", 2, c.state), "a", "v100", 2))
		s.Cases[0].Job.Holds[0].Index, s.NodeSpeeds = c.index, c.slow
		in, leases := roundtest.Facts(s)
		site := new(Nodes).Find(in, leases, nil).Site
		if got := place.IsSlow(site, in.Pool("v100"), "a"); got != c.want || place.AnySlow(site, in.Pool("v100")) != c.want {
			t.Errorf("%s: gangs avoid the node: %t, want %t", c.name, got, c.want)
		}
		if place.IsSlow(site, in.Pool("k80"), "b") || place.AnySlow(site, in.Pool("k80")) {
			t.Errorf("%s: the other node is slow as well", c.name)
		}
	}
}
