package slurm_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// requests: every spelling of a request for GPUs.
func requests(l *live) {
	type request = cluster.Request
	table := []struct {
		args string
		want request
	}{
		{"--gres=gpu:4", request{Size: cluster.Whole(4), Nodes: 1, PerNode: 4, CPUs: 1, MemoryMB: 100}},
		{"--gres=gpu", request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 100}},
		{"--gres=gpu:v100:2 -c4 -n2", request{Size: cluster.Whole(2), Nodes: 1, MaxNodes: 2, PerNode: 2, Model: "v100", CPUs: 8, MemoryMB: 800}},
		{"--gpus=8", request{Size: cluster.Whole(8), Nodes: 1, CPUs: 1, MemoryMB: 100}},
		{"-n1 --gpus=8", request{Size: cluster.Whole(8), Nodes: 1, MaxNodes: 1, CPUs: 1, MemoryMB: 100}},
		{"-n4 --gpus=6", request{Size: cluster.Whole(6), Nodes: 1, MaxNodes: 4, CPUs: 4, MemoryMB: 400}},
		{"--gpus=6 -N2", request{Size: cluster.Whole(6), Nodes: 2, MaxNodes: 2, CPUs: 2, MemoryMB: 200}},
		{"--gpus=v100:2", request{Size: cluster.Whole(2), Nodes: 1, Model: "v100", CPUs: 1, MemoryMB: 100}},
		{"-N2 --gpus-per-node=3", request{Size: cluster.Whole(6), Nodes: 2, MaxNodes: 2, PerNode: 3, CPUs: 2, MemoryMB: 200}},
		{"--gpus=8 --gpus-per-node=4", request{Size: cluster.Whole(8), Nodes: 2, MaxNodes: 2, PerNode: 4, CPUs: 1, MemoryMB: 100}},
		{"-n6 --gpus-per-task=1", request{Size: cluster.Whole(6), Nodes: 1, MaxNodes: 6, CPUs: 6, MemoryMB: 600}},
		{"-N2 --ntasks-per-node=2 --gpus-per-task=2", request{Size: cluster.Whole(8), Nodes: 2, MaxNodes: 2, PerNode: 4, CPUs: 4, MemoryMB: 400}},
		{"-N1-2 -n2 --gres=gpu:2", request{Size: cluster.Whole(4), Nodes: 2, MaxNodes: 2, PerNode: 2, CPUs: 2, MemoryMB: 200}},
		{"-N1-2 --gres=gpu:4 --mem=1G", request{Size: cluster.Whole(8), Nodes: 2, MaxNodes: 2, PerNode: 4, CPUs: 1, MemoryMB: 2048}},
		{"-n40 --gres=gpu:2", request{Size: cluster.Whole(6), Nodes: 3, MaxNodes: 40, PerNode: 2, CPUs: 40, MemoryMB: 4000}},
		{"--exclusive --gres=gpu:1", request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 100, Exclusive: true}},
		{"--exclusive=user --gres=gpu:1", request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 100, Exclusive: true, Unplaceable: "exclusive=user"}},
		{"--gpus-per-socket=1 --sockets-per-node=2", request{Size: cluster.Whole(2), Nodes: 1, CPUs: 1, MemoryMB: 100, Unplaceable: "gpus-per-socket"}},
		{"--gres=shard:1", request{Size: cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}, Shards: 1, Nodes: 1, CPUs: 1, MemoryMB: 100}},
		{"--gres=shard:1 -N2", request{Nodes: 2, MaxNodes: 2, CPUs: 2, MemoryMB: 200, Unplaceable: "parts of GPUs"}},
		{"--gres=gpu:1 -N2 --contiguous", request{Size: cluster.Whole(2), Nodes: 2, MaxNodes: 2, PerNode: 1, CPUs: 2, MemoryMB: 200, Unplaceable: "contiguous nodes"}},
		{"--gres=gpu:1 --mem=0", request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 64000}},
		{"--gres=gpu:1 --mem=1G -N2", request{Size: cluster.Whole(2), Nodes: 2, MaxNodes: 2, PerNode: 1, CPUs: 2, MemoryMB: 2048}},
		{"--gpus=2 --mem-per-gpu=500", request{Size: cluster.Whole(2), Nodes: 1, CPUs: 1, MemoryMB: 1000}},
		{"--gpus=4 --cpus-per-gpu=3", request{Size: cluster.Whole(4), Nodes: 1, CPUs: 12, MemoryMB: 1200}},
		{"--gres=gpu:0", request{}},
		{"-n2", request{}},
	}
	ids := make([]cluster.JobID, len(table))
	for i, row := range table {
		ids[i] = job(l.submit("alice", sleeper, append(strings.Fields(row.args), "--begin=now+1hour")...))
	}
	s := l.see()
	for i, row := range table {
		j, there := find(s, ids[i])
		if !there && reflect.DeepEqual(row.want, request{}) {
			continue // requests no GPU, holds nothing
		}
		if !reflect.DeepEqual(j.Request, row.want) {
			l.Errorf("%s:\n got %+v\nwant %+v", row.args, j.Request, row.want)
		}
	}
}

func states(l *live) {
	runs := job(l.submit("alice", sleeper, "--gres=gpu:v100:2", "-w", "v1", "-c2", "-t10", "--qos=normal", "-Jtrain"))
	held := job(l.submit("alice", sleeper, "--gres=gpu:1", "--hold"))
	waits := job(l.submit("alice", sleeper, "--gres=gpu:1", fmt.Sprintf("--dependency=afterok:%d", runs.ID)))
	never := job(l.submit("bob", sleeper, "--gres=gpu:1", "--begin=now+1hour", "-pgpu,free", "--no-requeue", "-wv1,v2", "-N1", "-xk1", "--deadline=now+5hours", "-t60"))
	done := job(l.submit("alice", "#!/bin/bash\nexit 0\n", "--gres=gpu:1"))
	failed := job(l.submit("alice", "#!/bin/bash\nexit 3\n", "--gres=gpu:1"))
	cpus := job(l.submit("carol", sleeper, "-n3", "--mem-per-cpu=50", "-w", "k2"))
	het := job(l.submit("carol", sleeper, "--gres=gpu:1", "-wk1", ":", "--gres=gpu:1", "-wk2"))
	spread := job(l.submit("carol", sleeper, "--gpus=3", "-N2", "-wk1,k2"))

	l.until(done, "done", in(cluster.Done))
	l.until(failed, "done", in(cluster.Done))
	l.until(het, "running", in(cluster.Running))
	l.until(spread, "running", in(cluster.Running))
	l.until(runs, "running", in(cluster.Running))
	s := l.see()
	get := func(id cluster.JobID) cluster.Job {
		j, there := find(s, id)
		if !there {
			l.Fatalf("job %v is not seen", id)
		}
		return j
	}
	j := get(runs)
	if want := []cluster.Holding{{Node: "v1", Model: "v100", Size: cluster.Whole(2), Index: []int{0, 1}, CPUs: 2, MemoryMB: 200}}; !reflect.DeepEqual(j.Holds, want) {
		l.Errorf("holds %+v; want %+v", j.Holds, want)
	}
	if j.User != "alice" || j.Account != "nlp" || j.Name != "train" || j.QOS != "normal" || !slices.Equal(j.Partitions, []string{"gpu"}) || !j.Batch || !j.Requeueable ||
		j.Limit != 10*cluster.Minute || j.End.Sub(j.Start) != j.Limit || j.Submit == 0 || j.Submit > s.Now || !slices.Equal(j.NodeList, []string{"v1"}) || j.Inactive != "" || j.Het != 0 {
		l.Errorf("running job: %+v", j)
	}
	if j := get(held); j.State != cluster.Waiting || j.Inactive != "held" || j.PendingReason != "JobHeldUser" {
		l.Errorf("held job: %+v", j)
	}
	if j := get(waits); j.State != cluster.Waiting || j.Inactive != "dependency" {
		l.Errorf("dependent job: %+v", j)
	}
	if j := get(never); j.State != cluster.Waiting || j.Inactive != "" || j.Eligible.Sub(s.Now) < 50*cluster.Minute || j.Requeueable || j.Account != "vision" ||
		!slices.Equal(j.Partitions, []string{"gpu", "free"}) || !hostlist.Same(j.NodeList, []string{"v1", "v2"}) || !slices.Equal(j.Exclude, []string{"k1"}) || j.Limit != cluster.Hour || j.Start != 0 ||
		j.Deadline.Sub(s.Now) < 290*cluster.Minute || j.Deadline.Sub(s.Now) > 300*cluster.Minute {
		l.Errorf("job with a begin time: %+v", j)
	}
	if j := get(done); j.Outcome != "COMPLETED" || j.End < j.Start || len(j.Holds) != 0 {
		l.Errorf("finished job: %+v", j)
	}
	if j := get(failed); j.Outcome != "FAILED" {
		l.Errorf("failed job: %+v", j)
	}
	if j := get(cpus); j.Request.Size.Devices != 0 || !reflect.DeepEqual(j.Holds, []cluster.Holding{{Node: "k2", CPUs: 3, MemoryMB: 150}}) {
		l.Errorf("job without GPUs on a GPU node: %+v", j)
	}
	if j := get(het); j.Het != het.ID || get(job(het.ID+1)).Het != het.ID {
		l.Errorf("het job: %+v", j)
	}
	if j := get(spread); len(j.Holds) != 2 || j.GPUsHeld() != 3 || j.Holds[0].Node != "k1" || j.Holds[1].Node != "k2" {
		l.Errorf("job on two nodes: %+v", j)
	}
	if !sorted(s) {
		l.Error("the sighting is not sorted")
	}
}

func sorted(s cluster.Observation) bool {
	return slices.IsSortedFunc(s.Jobs, func(a, b cluster.Job) int { return a.ID.Compare(b.ID) }) &&
		slices.IsSortedFunc(s.Nodes, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
}

func suspended(l *live) {
	id := job(l.submit("alice", sleeper, "--gres=gpu:1"))
	l.until(id, "running", in(cluster.Running))
	l.exec("root", "scontrol", "suspend", strconv.FormatInt(id.ID, 10))
	j := l.until(id, "suspended for two seconds", func(j cluster.Job) bool { return j.State == cluster.Suspended && j.Suspend >= 2*cluster.Second })
	if j.GPUsHeld() != 1 || j.Suspend > 20*cluster.Second {
		l.Errorf("suspended: %+v", j)
	}
	l.exec("root", "scontrol", "resume", strconv.FormatInt(id.ID, 10))
	after := l.until(id, "running", in(cluster.Running))
	if after.Suspend < j.Suspend-cluster.Second || after.Suspend > j.Suspend+5*cluster.Second {
		l.Errorf("suspended %v, after the resume %v", j.Suspend, after.Suspend)
	}
	l.exec("root", "scontrol", "suspend", strconv.FormatInt(id.ID, 10))
	j = l.until(id, "suspended", in(cluster.Suspended))
	r := act(cluster.Reclaim, j)
	r.Resume, r.Until = true, in1h()
	l.apply(r)
	if j = l.until(id, "waiting", in(cluster.Waiting)); j.Inactive != "" || !l.gated(j, r) {
		l.Errorf("reclaimed from suspension: %+v", j)
	}
}

// shards: jobs that share a GPU hold their parts of it.
func shards(l *live) {
	a := job(l.submit("alice", sleeper, "--gres=shard:1", "-w", "k1"))
	b := job(l.submit("bob", sleeper, "--gres=shard:1", "-w", "k1"))
	l.until(a, "running", in(cluster.Running))
	l.until(b, "running", in(cluster.Running))
	s := l.see()
	first, _ := find(s, a)
	second, _ := find(s, b)
	half := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}
	for _, j := range []cluster.Job{first, second} {
		if h := j.Holds; len(h) != 1 || h[0].Size != half || h[0].Model != "k80" || !slices.Equal(h[0].Index, []int{0}) || j.Request.Shards != 1 || j.Request.Size != half {
			l.Errorf("a shard of a GPU with two: asks for %+v, holds %+v", j.Request, h)
		}
	}
	if at := slices.IndexFunc(s.Nodes, func(n cluster.Node) bool { return n.Name == "k1" }); s.Nodes[at].Shards != 2 {
		l.Errorf("each GPU of k1 has %d shards, want 2", s.Nodes[at].Shards)
	}
}

// wholeNodes: a node that is closed to other users is held as a whole, once for all jobs of its user there.
func wholeNodes(l *live) {
	a := job(l.submit("alice", sleeper, "--exclusive=user", "--gres=gpu:1", "-w", "k1"))
	b := job(l.submit("alice", sleeper, "--exclusive=user", "--gres=gpu:1", "-w", "k1"))
	l.until(a, "running", in(cluster.Running))
	l.until(b, "running", in(cluster.Running))
	s := l.see()
	first, _ := find(s, a)
	second, _ := find(s, b)
	at := slices.IndexFunc(s.Nodes, func(n cluster.Node) bool { return n.Name == "k1" })
	if whole := s.Nodes[at].GPUs[0].Count; first.GPUsHeld() != whole-1 || second.GPUsHeld() != 1 || len(first.Holds[0].Index) != whole-1 || !first.Request.Apart() {
		l.Errorf("two jobs on a node of %d GPUs: %+v and %+v", whole, first, second)
	}
	l.exec("root", "scancel", strconv.FormatInt(a.ID, 10))
	l.until(b, "the only job there", func(j cluster.Job) bool { return j.GPUsHeld() == s.Nodes[at].GPUs[0].Count })
}

// versions: each version of the API that slurmrestd offers and we know shows the same cluster. Only the command line of sbatch and the
// cluster's id are missing before v0.0.44, and which partition is the default one before v0.0.45.
func versions(l *live) {
	l.runs(job(l.submit("alice", sleeper, "--gres=gpu:v100:2", "-c2", "-t10")))
	waits := func(id cluster.JobID) {
		l.until(id, "known to wait for its begin time", func(j cluster.Job) bool { return j.PendingReason == "BeginTime" })
	}
	waits(job(l.submit("bob", sleeper, "--exclusive", "--gres=gpu:1", "--begin=now+1hour", "-N2")))
	waits(job(l.submit("bob", sleeper, "--exclusive=user", "--gres=gpu:1", "--begin=now+1hour")))
	waits(cluster.TaskID(l.submit("carol", sleeper, "--array=0-4%2", "--gpus=3", "--begin=now+1hour"), 0))
	want := l.see()
	f, err := l.client.Facts(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	unlike := []cmp.Option{
		cmpopts.IgnoreFields(cluster.Job{}, "Command", "Work", "Version"),
		cmpopts.IgnoreFields(cluster.Observation{}, "Now", "Clock", "ClusterID", "NodesVersion", "Unchanged"),
		cmpopts.IgnoreFields(cluster.Partition{}, "Default"),
		cmpopts.IgnoreFields(cluster.Limits{}, "Read"),
	}
	known := slices.Index(f.Offered, "v0.0.42")
	if known < 0 || f.Offered[len(f.Offered)-1] != f.Speaks {
		l.Fatalf("%v are offered, and %s is spoken", f.Offered, f.Speaks)
	}
	for _, api := range f.Offered[known:] {
		client := l.another(func(c *slurm.Config) { c.APIVersion = api })
		got, err := client.Observe(l.Context(), 0)
		if err != nil || len(client.Notes()) > 0 {
			l.Errorf("%s: %v, notes %q", api, err, client.Notes())
		} else if d := cmp.Diff(want, got, unlike...); d != "" {
			l.Errorf("%s (want -, got +):\n%s", api, d)
		}
	}
	if !slices.ContainsFunc(slurm.Tested, func(release string) bool { return strings.HasPrefix(f.Release, release+".") }) || f.Dropped != "" {
		l.Errorf("Slurm %s; tested are %v; dropped: %q", f.Release, slurm.Tested, f.Dropped)
	}
}
