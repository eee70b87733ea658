package slurm_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// TestLive runs against real Slurms of both ends of what is supported.
func TestLive(t *testing.T) {
	for _, suite := range testcluster.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			l := boot(t, suite)
			for _, part := range []struct {
				name string
				test func(*live)
			}{
				{"facts", facts},
				{"requests", requests},
				{"the cluster", theCluster},
				{"states of jobs", states},
				{"gates", gates},
				{"grants", grants},
				{"arrays", arrays},
				{"reclaims", reclaims},
				{"hand-over", handOver},
				{"notices", notices},
				{"suspended jobs", suspended},
				{"shards", shards},
				{"state polls", statePolls},
				{"history", history},
				{"faults", faults},
			} {
				t.Run(part.name, func(t *testing.T) {
					sub := &live{T: t, suite: suite, slurm: l.slurm, client: l.client}
					t.Cleanup(func() { sub.clear() })
					part.test(sub)
				})
			}
		})
	}
}

// live is a real Slurm and our client for it.
type live struct {
	*testing.T
	suite  string
	slurm  *testcluster.Cluster
	client *slurm.Client
}

func boot(t *testing.T, suite string) *live {
	c := testcluster.ForTest(t, testcluster.Options{Suite: suite, QOS: []testcluster.QOS{{Name: "small"}}})
	l := &live{T: t, suite: suite, slurm: c}
	l.exec("root", "sacctmgr", "--immediate", "modify", "qos", "small", "set", "GrpTRES=gres/gpu=1")
	l.client = l.another(func(*slurm.Config) {})
	return l
}

// another gives one more client.
func (l *live) another(change func(*slurm.Config)) *slurm.Client {
	l.Helper()
	cfg := slurm.Config{Address: "unix://" + l.slurm.RestSocket(), Scontrol: l.slurm.Scontrol()}
	change(&cfg)
	client, err := slurm.New(cfg)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(client.Close)
	return client
}

const sleeper = "#!/bin/bash\nexec sleep 900\n"

// submit gives the id of a new job.
func (l *live) submit(user, script string, args ...string) int64 {
	l.Helper()
	out, err := l.slurm.Sbatch(l.Context(), user, script, args...)
	if err != nil {
		l.Fatal(err)
	}
	id, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		l.Fatalf("sbatch said %q", out)
	}
	return id
}

func (l *live) exec(user string, argv ...string) string {
	l.Helper()
	out, err := l.slurm.Exec(l.Context(), user, argv...)
	if err != nil {
		l.Fatal(err)
	}
	return out
}

func (l *live) see() cluster.Sighting {
	l.Helper()
	s, err := l.client.Observe(l.Context(), 0)
	if err != nil {
		l.Fatal(err)
	}
	if n := l.client.Notes(); len(n) > 0 {
		l.Errorf("notes: %q", n)
	}
	return s
}

func find(s cluster.Sighting, id cluster.JobID) (cluster.Job, bool) {
	i, ok := slices.BinarySearchFunc(s.Jobs, id, func(j cluster.Job, id cluster.JobID) int { return j.ID.Compare(id) })
	if !ok {
		return cluster.Job{}, false
	}
	return s.Jobs[i], true
}

// until looks until the job is as wanted, and gives it.
func (l *live) until(id cluster.JobID, what string, is func(cluster.Job) bool) cluster.Job {
	l.Helper()
	var last cluster.Job
	l.eventually(fmt.Sprintf("job %v %s", id, what), func() bool {
		var there bool
		last, there = find(l.see(), id)
		return there && is(last)
	}, func() string { return fmt.Sprintf("%+v", last) })
	return last
}

// runs waits until the job has run for a while: Slurm loses its hold of a job that is
// requeued and started again within the second of its first start.
func (l *live) runs(id cluster.JobID) cluster.Job {
	l.Helper()
	return l.until(id, "running for two seconds", func(j cluster.Job) bool {
		return j.State == cluster.Running && time.Since(j.Start.Time()) > 2*time.Second
	})
}

// patience is how long anything may take on a busy machine; on an idle one nothing takes 5 s.
const patience = time.Minute

func (l *live) eventually(what string, is func() bool, seen func() string) {
	l.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			l.Fatalf("not in %v: %s; last seen: %s", patience, what, seen())
		}
	}
}

func in(s cluster.JobState) func(cluster.Job) bool {
	return func(j cluster.Job) bool { return j.State == s }
}

// apply carries out the actions, all of which must succeed.
func (l *live) apply(actions ...cluster.Action) {
	l.Helper()
	for i, o := range l.client.Apply(l.Context(), actions) {
		if !o.OK {
			l.Fatalf("%s %v: %+v", actions[i].Verb, actions[i].ID, o)
		}
	}
}

// clear ends all jobs and reservations, and makes the nodes well again.
func (l *live) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, user := range []string{"alice", "bob", "carol"} {
		_, _ = l.slurm.Exec(ctx, "root", "scancel", "--hurry", "--user="+user)
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		out, err := l.slurm.Exec(ctx, "root", "squeue", "--noheader")
		if err == nil && out == "" {
			break
		}
		if time.Now().After(end) {
			l.Errorf("jobs remain: %s %v", out, err)
			break
		}
	}
	s, err := l.client.Observe(ctx, 0)
	if err != nil {
		l.Error(err)
		return
	}
	for _, r := range s.Reservations {
		if _, err := l.slurm.Exec(ctx, "root", "scontrol", "delete", "reservation="+r.Name); err != nil {
			l.Error(err)
		}
	}
}

// gated reports whether a reclaimed job is gated as ordered or, on Slurm 24.11, for
// the two minutes that Slurm itself waits.
func (l *live) gated(j cluster.Job, r cluster.Action) bool {
	return j.Eligible == r.Until || l.suite == "trixie" && (j.Eligible.Sub(j.Submit)-120*cluster.Second).Duration().Abs() < 3*time.Second
}

// act fills an action with what names the job.
func act(verb cluster.Verb, j cluster.Job) cluster.Action {
	return cluster.Action{Verb: verb, ID: j.ID, Record: j.Record, Whole: j.Whole, Restarts: j.Restarts}
}

func job(id int64) cluster.JobID { return cluster.JobID{ID: id} }

func in1h() cluster.Instant {
	return cluster.InstantOf(time.Now().Add(time.Hour).Truncate(time.Second))
}

func facts(l *live) {
	f, err := l.client.Facts(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	if f.Cluster == "" || f.Release == "" || f.MinJobAge != 300*cluster.Second || f.Conf[slurm.ConfKillWait] != "3 sec" ||
		f.Conf[slurm.ConfSelectType] != "select/cons_tres" || !strings.Contains(f.Conf[slurm.ConfTRES], "gres/gpu:v100") || len(f.Nodes) != 4 {
		l.Errorf("facts: %+v", f)
	}
	if f.RestDenied != "" || f.ScontrolDenied != "" {
		l.Errorf("denied: %q, %q", f.RestDenied, f.ScontrolDenied)
	}
	want := "scontrol"
	if strings.HasPrefix(f.Release, "26") {
		want = "rest"
	}
	if f.Requeue != want || f.Reserve != want {
		l.Errorf("levers of %s: requeue by %s, reserve by %s", f.Release, f.Requeue, f.Reserve)
	}
	denied := l.another(func(c *slurm.Config) { c.Scontrol = l.slurm.Command("alice", "scontrol") })
	if f, err := denied.Facts(l.Context()); err != nil || f.ScontrolDenied == "" {
		l.Errorf("a plain user's scontrol may all: %q, %v", f.ScontrolDenied, err)
	}
}

// requests: every spelling of a request for GPUs.
func requests(l *live) {
	type request = cluster.Request
	table := []struct {
		args string
		want request
	}{
		{"--gres=gpu:4", request{GPUs: 4, Nodes: 1, PerNode: 4, CPUs: 1, MemoryMB: 100}},
		{"--gres=gpu", request{GPUs: 1, Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 100}},
		{"--gres=gpu:v100:2 -c4 -n2", request{GPUs: 2, Nodes: 1, MaxNodes: 2, PerNode: 2, Model: "v100", CPUs: 8, MemoryMB: 800}},
		{"--gpus=8", request{GPUs: 8, Nodes: 1, CPUs: 1, MemoryMB: 100}},
		{"-n1 --gpus=8", request{GPUs: 8, Nodes: 1, MaxNodes: 1, CPUs: 1, MemoryMB: 100}},
		{"-n4 --gpus=6", request{GPUs: 6, Nodes: 1, MaxNodes: 4, CPUs: 4, MemoryMB: 400}},
		{"--gpus=6 -N2", request{GPUs: 6, Nodes: 2, MaxNodes: 2, CPUs: 2, MemoryMB: 200}},
		{"--gpus=v100:2", request{GPUs: 2, Nodes: 1, Model: "v100", CPUs: 1, MemoryMB: 100}},
		{"-N2 --gpus-per-node=3", request{GPUs: 6, Nodes: 2, MaxNodes: 2, PerNode: 3, CPUs: 2, MemoryMB: 200}},
		{"--gpus=8 --gpus-per-node=4", request{GPUs: 8, Nodes: 2, MaxNodes: 2, PerNode: 4, CPUs: 1, MemoryMB: 100}},
		{"-n6 --gpus-per-task=1", request{GPUs: 6, Nodes: 1, MaxNodes: 6, CPUs: 6, MemoryMB: 600}},
		{"-N2 --ntasks-per-node=2 --gpus-per-task=2", request{GPUs: 8, Nodes: 2, MaxNodes: 2, PerNode: 4, CPUs: 4, MemoryMB: 400}},
		{"-N1-2 -n2 --gres=gpu:2", request{GPUs: 4, Nodes: 2, MaxNodes: 2, PerNode: 2, CPUs: 2, MemoryMB: 200}},
		{"-N1-2 --gres=gpu:4 --mem=1G", request{GPUs: 8, Nodes: 2, MaxNodes: 2, PerNode: 4, CPUs: 1, MemoryMB: 2048}},
		{"-n40 --gres=gpu:2", request{GPUs: 6, Nodes: 3, MaxNodes: 40, PerNode: 2, CPUs: 40, MemoryMB: 4000}},
		{"--exclusive --gres=gpu:1", request{GPUs: 1, Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 100, Exclusive: true}},
		{"--exclusive=user --gres=gpu:1", request{GPUs: 1, Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 100, Unplaceable: "exclusive=user"}},
		{"--gpus-per-socket=1 --sockets-per-node=2", request{GPUs: 2, Nodes: 1, CPUs: 1, MemoryMB: 100, Unplaceable: "gpus-per-socket"}},
		{"--gres=shard:1", request{Nodes: 1, CPUs: 1, MemoryMB: 100, Unplaceable: "parts of GPUs"}},
		{"--gres=gpu:1 -N2 --contiguous", request{GPUs: 2, Nodes: 2, MaxNodes: 2, PerNode: 1, CPUs: 2, MemoryMB: 200, Unplaceable: "contiguous nodes"}},
		{"--gres=gpu:1 --mem=0", request{GPUs: 1, Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 64000}},
		{"--gres=gpu:1 --mem=1G -N2", request{GPUs: 2, Nodes: 2, MaxNodes: 2, PerNode: 1, CPUs: 2, MemoryMB: 2048}},
		{"--gpus=2 --mem-per-gpu=500", request{GPUs: 2, Nodes: 1, CPUs: 1, MemoryMB: 1000}},
		{"--gpus=4 --cpus-per-gpu=3", request{GPUs: 4, Nodes: 1, CPUs: 12, MemoryMB: 1200}},
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
			continue // concerns no GPU, holds nothing
		}
		if !reflect.DeepEqual(j.Request, row.want) {
			l.Errorf("%s:\n got %+v\nwant %+v", row.args, j.Request, row.want)
		}
	}
}

func theCluster(l *live) {
	s := l.see()
	var nodes, parts []string
	for _, n := range s.Nodes {
		nodes = append(nodes, fmt.Sprintf("%s %v %d %d %v %s%s", n.Name, n.GPUs, n.CPUs, n.MemoryMB, n.Partitions, n.Bad, n.Busy))
	}
	for _, p := range s.Partitions {
		parts = append(parts, fmt.Sprintf("%s %v %v", p.Name, p.Nodes, p.Up))
	}
	want := []string{"k1 [{k80 4}] 16 64000 [free gpu] ", "k2 [{k80 4}] 16 64000 [free gpu] ", "v1 [{v100 4}] 16 64000 [free gpu] ", "v2 [{v100 4}] 16 64000 [free gpu] "}
	if !slices.Equal(nodes, want) {
		l.Errorf("nodes %q; want %q", nodes, want)
	}
	if want := []string{"free [k1 k2 v1 v2] true", "gpu [k1 k2 v1 v2] true"}; !slices.Equal(parts, want) {
		l.Errorf("partitions %q; want %q", parts, want)
	}
	if !reflect.DeepEqual(s.Accounts, []cluster.Account{{Name: "nlp", Parent: "root", Shares: 1}, {Name: "root", Shares: s.Accounts[1].Shares}, {Name: "vision", Parent: "root", Shares: 1}}) {
		l.Errorf("accounts: %+v", s.Accounts)
	}
	if age := time.Since(s.Boot.Time()); s.Boot == 0 || age > 10*time.Minute || age < 0 {
		l.Errorf("booted %v ago", age)
	}
	l.exec("root", "sacctmgr", "--immediate", "modify", "account", "vision", "set", "fairshare=parent")
	defer l.exec("root", "sacctmgr", "--immediate", "modify", "account", "vision", "set", "fairshare=1")
	fresh, err := l.another(func(*slurm.Config) {}).Observe(l.Context(), 0)
	if err != nil || !fresh.Accounts[2].ViaParent || fresh.Accounts[2].Shares != 0 {
		l.Errorf("fairshare=parent: %+v, %v", fresh.Accounts, err)
	}

	if err := l.slurm.SetNode(l.Context(), "k2", "drain"); err != nil {
		l.Fatal(err)
	}
	if err := l.slurm.Maintenance(l.Context(), "m1", "k1", "now", 30); err != nil {
		l.Fatal(err)
	}
	l.eventually("k2 drained, k1 in maintenance", func() bool {
		s = l.see()
		return s.Nodes[1].Bad == "drained" && s.Nodes[0].Busy == "maintenance"
	}, func() string { return fmt.Sprintf("%+v", s.Nodes) })
	if len(s.Reservations) != 1 || s.Reservations[0].Name != "m1" || s.Reservations[0].Ours || !slices.Contains(s.Reservations[0].Flags, "MAINT") ||
		!slices.Equal(s.Reservations[0].Nodes, []string{"k1"}) || !slices.Equal(s.Reservations[0].Users, []string{"root"}) || s.Reservations[0].End.Sub(s.Reservations[0].Start) != 30*cluster.Minute {
		l.Errorf("reservations: %+v", s.Reservations)
	}
	if err := l.slurm.SetNode(l.Context(), "k2", "resume"); err != nil {
		l.Fatal(err)
	}
	l.exec("root", "scontrol", "delete", "reservation=m1")
	l.eventually("all nodes well", func() bool {
		s = l.see()
		return s.Nodes[1].Bad == "" && s.Nodes[0].Busy == "" && len(s.Reservations) == 0
	}, func() string { return fmt.Sprintf("%+v", s.Nodes) })
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
	if want := []cluster.Holding{{Node: "v1", Model: "v100", GPUs: 2, Index: []int{0, 1}, CPUs: 2, MemoryMB: 200}}; !reflect.DeepEqual(j.Holds, want) {
		l.Errorf("holds %+v; want %+v", j.Holds, want)
	}
	if j.User != "alice" || j.Account != "nlp" || j.Name != "train" || j.QOS != "normal" || !slices.Equal(j.Partitions, []string{"gpu"}) || !j.Batch || !j.Requeueable ||
		j.Limit != 10*cluster.Minute || j.End.Sub(j.Start) != j.Limit || j.Submit == 0 || j.Submit > s.Now || !slices.Equal(j.NodeList, []string{"v1"}) || j.Inactive != "" || j.Het {
		l.Errorf("running job: %+v", j)
	}
	if j := get(held); j.State != cluster.Waiting || j.Inactive != "held" || j.Because != "JobHeldUser" {
		l.Errorf("held job: %+v", j)
	}
	if j := get(waits); j.State != cluster.Waiting || j.Inactive != "dependency" {
		l.Errorf("dependent job: %+v", j)
	}
	if j := get(never); j.State != cluster.Waiting || j.Inactive != "" || j.Eligible.Sub(s.Now) < 50*cluster.Minute || j.Requeueable || j.Account != "vision" ||
		!slices.Equal(j.Partitions, []string{"gpu", "free"}) || !slices.Equal(j.NodeList, []string{"v1", "v2"}) || !slices.Equal(j.Exclude, []string{"k1"}) || j.Limit != cluster.Hour || j.Start != 0 {
		l.Errorf("job with a begin time: %+v", j)
	}
	if j := get(done); j.Outcome != "COMPLETED" || j.End < j.Start || len(j.Holds) != 0 {
		l.Errorf("finished job: %+v", j)
	}
	if j := get(failed); j.Outcome != "FAILED" {
		l.Errorf("failed job: %+v", j)
	}
	if j := get(cpus); j.Request.GPUs != 0 || !reflect.DeepEqual(j.Holds, []cluster.Holding{{Node: "k2", CPUs: 3, MemoryMB: 150}}) {
		l.Errorf("job without GPUs on a GPU node: %+v", j)
	}
	if j := get(het); !j.Het || !get(job(het.ID+1)).Het {
		l.Errorf("het job: %+v", j)
	}
	if j := get(spread); len(j.Holds) != 2 || j.GPUsHeld() != 3 || j.Holds[0].Node != "k1" || j.Holds[1].Node != "k2" {
		l.Errorf("job on two nodes: %+v", j)
	}
	if !sorted(s) {
		l.Error("the sighting is not sorted")
	}
}

func sorted(s cluster.Sighting) bool {
	return slices.IsSortedFunc(s.Jobs, func(a, b cluster.Job) int { return a.ID.Compare(b.ID) }) &&
		slices.IsSortedFunc(s.Nodes, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
}

func gates(l *live) {
	id := job(l.submit("alice", sleeper, "--gres=gpu:1", "--begin=now+2hours"))
	dead := job(l.submit("alice", sleeper, "--gres=gpu:1", "--begin=now+1minute", "-t5", "--deadline=now+20minutes"))
	runs := job(l.submit("alice", sleeper, "--gres=gpu:1"))
	l.until(runs, "running", in(cluster.Running))
	s := l.see()
	until := in1h()
	gate := func(id cluster.JobID) cluster.Action {
		j, _ := find(s, id)
		a := act(cluster.Gate, j)
		a.Until = until
		return a
	}
	// Slurm hangs up after each that it refuses; those behind it are shut all the same.
	out := l.client.Apply(l.Context(), []cluster.Action{gate(runs), gate(id), {Verb: cluster.Gate, ID: job(999999), Record: 999999, Until: until}, gate(dead)})
	if !out[0].Skipped || !out[1].OK || !out[2].Skipped || !out[3].OK {
		l.Errorf("outcomes: %+v", out)
	}
	s = l.see()
	if j, _ := find(s, id); j.Eligible != until {
		l.Errorf("gate at %v; want %v", j.Eligible, until)
	}
	if j, _ := find(s, dead); j.Eligible.Sub(s.Now) > 16*cluster.Minute || j.Eligible.Sub(s.Now) < 13*cluster.Minute {
		l.Errorf("the gate of a job with a deadline in 20 minutes and 5 to run stands %v ahead", j.Eligible.Sub(s.Now))
	}
	// The same again does no harm; opening starts it at once.
	l.apply(gate(id))
	began := time.Now()
	l.apply(act(cluster.Open, l.until(id, "waiting", in(cluster.Waiting))))
	l.until(id, "running", in(cluster.Running))
	l.Logf("open to running: %v", time.Since(began))
}

func grants(l *live) {
	id := job(l.submit("alice", sleeper, "--gres=gpu:2", "--begin=now+1hour", "-w", "v1", "-t", "600"))
	j := l.until(id, "waiting", in(cluster.Waiting))
	g := act(cluster.Grant, j)
	g.Nodes, g.Limit, g.SiteFactor = []string{"k2"}, 90*cluster.Second, 5000
	began := time.Now()
	l.apply(g)
	j = l.until(id, "running", in(cluster.Running))
	l.Logf("grant to running: %v", time.Since(began))
	if len(j.Holds) != 1 || j.Holds[0].Node != "k2" || j.Holds[0].Model != "k80" || j.Limit != 2*cluster.Minute {
		l.Errorf("granted job: %+v", j)
	}
	if o := l.client.Apply(l.Context(), []cluster.Action{g}); !o[0].Skipped {
		l.Errorf("granted twice: %+v", o[0])
	}

	// A grant that cannot start, for a QOS limit, is taken back as it was.
	blocked := job(l.submit("alice", sleeper, "--gres=gpu:2", "--begin=now+1hour", "--qos=small", "-w", "v2"))
	j, there := find(l.see(), blocked)
	if !there {
		l.Fatal("the second job is not seen")
	}
	g = act(cluster.Grant, j)
	g.Nodes = []string{"v1"}
	l.apply(g)
	j = l.until(blocked, "blocked by its QOS", func(j cluster.Job) bool { return strings.Contains(j.Because, "QOSGrpGRES") })
	if !slices.Equal(j.NodeList, []string{"v1"}) || j.Eligible > cluster.InstantOf(time.Now()) {
		l.Errorf("granted job: %+v", j)
	}
	back := act(cluster.TakeBack, j)
	back.Until, back.NodeList = in1h(), []string{"v2"}
	l.apply(back)
	j, _ = find(l.see(), blocked)
	if j.State != cluster.Waiting || j.Eligible != back.Until || !slices.Equal(j.NodeList, []string{"v2"}) {
		l.Errorf("taken back: %+v", j)
	}
	back.NodeList = nil
	l.apply(back)
	if j, _ = find(l.see(), blocked); len(j.NodeList) != 0 {
		l.Errorf("taken back without nodes: %+v", j)
	}
}

func arrays(l *live) {
	array := l.submit("alice", sleeper, "--array=0-4,11-19:2%3", "--gres=gpu:1", "--begin=now+1hour")
	tasks := func() (out []cluster.Job) {
		for _, j := range l.see().Jobs {
			if j.ID.ID == array {
				out = append(out, j)
			}
		}
		return out
	}
	all := tasks()
	var names []string
	inactive := 0
	for _, j := range all {
		names = append(names, j.ID.String()[len(strconv.FormatInt(array, 10)):])
		if j.Inactive == "array limit" {
			inactive++
		}
		if !j.Whole || j.Record != array || j.State != cluster.Waiting || j.Request.GPUs != 1 {
			l.Errorf("task: %+v", j)
		}
	}
	if want := []string{"_0", "_1", "_2", "_3", "_4", "_11", "_13", "_15", "_17", "_19"}; !slices.Equal(names, want) || inactive != 7 {
		l.Errorf("tasks %q, %d over the limit; want %q, 7", names, inactive, want)
	}
	// One gate for the whole record.
	gate := act(cluster.Gate, all[0])
	gate.Array, gate.Until = true, in1h()+60_000
	l.apply(gate)
	for _, j := range tasks() {
		if j.Eligible != gate.Until {
			l.Errorf("gate of the whole array: %v", j.Eligible)
		}
	}
	// A gate for one task.
	gate = act(cluster.Gate, all[1])
	gate.Until = in1h() + 120_000
	l.apply(gate)
	if j := l.until(all[1].ID, "split off", func(j cluster.Job) bool { return !j.Whole }); j.Eligible != gate.Until || j.Record == array {
		l.Errorf("task gated alone: %+v", j)
	}
	// A grant for one task that has no record of its own yet, and for one that has.
	for _, i := range []int{5, 1} {
		j, _ := find(l.see(), all[i].ID)
		g := act(cluster.Grant, j)
		g.Nodes, g.Limit = []string{"v2"}, 5*cluster.Minute
		l.apply(g)
		j = l.until(all[i].ID, "running", in(cluster.Running))
		if j.Whole || j.Record == array || j.Holds[0].Node != "v2" || j.Limit != 5*cluster.Minute {
			l.Errorf("granted task: %+v", j)
		}
	}
	waiting, active := 0, 0
	for _, j := range tasks() {
		if j.State == cluster.Waiting {
			waiting++
			if j.Inactive == "" {
				active++
			}
		}
	}
	if waiting != 8 || active != 1 {
		l.Errorf("%d tasks wait, %d may run; want 8 and 1 (limit 3, 2 run)", waiting, active)
	}
	// Reclaim of one task leaves its brothers alone.
	victim, _ := find(l.see(), all[5].ID)
	r := act(cluster.Reclaim, victim)
	r.Until = in1h()
	l.apply(r)
	l.until(all[5].ID, "waiting", in(cluster.Waiting))
	if j, _ := find(l.see(), all[1].ID); j.State != cluster.Running || j.Restarts != 0 {
		l.Errorf("brother of the reclaimed task: %+v", j)
	}

	// The last task keeps the array's own id: reclaiming it must not requeue the others.
	pair := l.submit("bob", sleeper, "--array=1-2", "--gres=gpu:1")
	first, last := cluster.TaskID(pair, 1), cluster.TaskID(pair, 2)
	l.until(first, "running", in(cluster.Running))
	j := l.until(last, "running", in(cluster.Running))
	if other, _ := find(l.see(), first); j.Record != pair && other.Record != pair {
		l.Errorf("neither task has the array's id: %d %d", j.Record, other.Record)
	} else if other.Record == pair {
		j, first, last = other, last, first
	}
	r = act(cluster.Reclaim, j)
	r.Until = in1h()
	l.apply(r)
	if j, _ := find(l.see(), first); j.State != cluster.Running || j.Restarts != 0 {
		l.Errorf("brother of the reclaimed last task: %+v", j)
	}
	l.until(last, "waiting behind its gate", func(j cluster.Job) bool { return j.State == cluster.Waiting && l.gated(j, r) })

	// Slurm cuts long irregular lists of tasks off.
	var irregular []string
	for i := range 80 {
		irregular = append(irregular, strconv.Itoa(i*i%997))
	}
	slices.Sort(irregular)
	irregular = slices.Compact(irregular)
	long := l.submit("carol", sleeper, "--array="+strings.Join(irregular, ","), "--gres=gpu:1", "--begin=now+1hour")
	n := 0
	for _, j := range l.see().Jobs {
		if j.ID.ID == long {
			n++
		}
	}
	if n != len(irregular) {
		l.Errorf("%d of %d tasks of an irregular array are seen", n, len(irregular))
	}
	l.exec("carol", "scancel", strconv.FormatInt(long, 10))
	for _, j := range l.see().Jobs {
		if j.ID.ID == long && j.State != cluster.Done {
			l.Errorf("cancelled array: %+v", j)
		}
	}
}

func reclaims(l *live) {
	home := l.slurm.Home("alice")
	// It hears TERM, writes it down and takes its time.
	script := "#!/bin/bash\ntrap 'echo heard >> " + "$HOME/heard; exit 0' TERM\nsleep 900 & wait\n"
	id := job(l.submit("alice", script, "--gres=gpu:2", "-w", "v1", "-N1"))
	j := l.runs(id)
	r := act(cluster.Reclaim, j)
	r.Until, r.NodeList = in1h(), []string{"v1"}
	l.apply(r)
	if now, _ := find(l.see(), id); now.State == cluster.Completing && (!reflect.DeepEqual(now.Holds, j.Holds) || now.Start != j.Start || now.Outcome != "") {
		l.Errorf("completing: %+v; was %+v", now, j)
	}
	j = l.until(id, "waiting", in(cluster.Waiting))
	if !l.gated(j, r) || j.Restarts != 1 || !slices.Equal(j.NodeList, []string{"v1"}) || j.Inactive != "" || j.Request.MaxNodes != 1 {
		l.Errorf("reclaimed: %+v", j)
	}
	if b, err := os.ReadFile(filepath.Join(home, "heard")); err != nil || strings.TrimSpace(string(b)) != "heard" {
		l.Errorf("heard %q, %v", b, err)
	}
	// Carried out twice it does no more than once.
	l.apply(r)
	if j, _ := find(l.see(), id); j.Restarts != 1 {
		l.Errorf("reclaimed twice: %+v", j)
	}
	// Granted again, the order of before does not hit it.
	g := act(cluster.Grant, j)
	g.Nodes = []string{"v2"}
	l.apply(g)
	l.until(id, "running", in(cluster.Running))
	if o := l.client.Apply(l.Context(), []cluster.Action{r}); !o[0].Skipped {
		l.Errorf("an old reclaim: %+v", o[0])
	}

	// A job that has just ended by itself is never run again.
	flag := filepath.Join(home, "runs")
	quick := job(l.submit("alice", "#!/bin/bash\necho run >> $HOME/runs\nsleep 1\n", "--gres=gpu:1"))
	j = l.until(quick, "running", in(cluster.Running))
	r = act(cluster.Reclaim, j)
	r.Until = cluster.InstantOf(time.Now())
	l.until(quick, "done", in(cluster.Done))
	if o := l.client.Apply(l.Context(), []cluster.Action{r}); !o[0].Skipped || !strings.Contains(o[0].Error, "finished") {
		l.Errorf("reclaim of a finished job: %+v", o[0])
	}
	if b, _ := os.ReadFile(flag); strings.Count(string(b), "run") != 1 {
		l.Errorf("the finished job ran %q", b)
	}

	// Who may not be requeued is not.
	kept := job(l.submit("alice", sleeper, "--gres=gpu:1", "--no-requeue"))
	j = l.until(kept, "running", in(cluster.Running))
	r = act(cluster.Reclaim, j)
	r.Until = in1h()
	if o := l.client.Apply(l.Context(), []cluster.Action{r}); o[0].OK || o[0].Skipped || !strings.Contains(o[0].Error, "disabled") {
		l.Errorf("reclaim of a --no-requeue job: %+v", o[0])
	}
	if j, _ = find(l.see(), kept); j.State != cluster.Running || j.Requeueable {
		l.Errorf("--no-requeue job: %+v", j)
	}
}

// handOver: two GPUs of one busy node go to two beneficiaries of two accounts in one
// round, while a third job with a high priority waits for that very node.
func handOver(l *live) {
	holders := []cluster.JobID{
		job(l.submit("alice", sleeper, "--gres=gpu:2", "-w", "v1")),
		job(l.submit("alice", sleeper, "--gres=gpu:2", "-w", "v1")),
	}
	for _, id := range holders {
		l.until(id, "running", in(cluster.Running))
	}
	thief := job(l.submit("carol", sleeper, "--gres=gpu:2", "-w", "v1"))
	l.exec("root", "scontrol", "update", fmt.Sprintf("jobid=%d", thief.ID), "priority=1000000")
	heirs := []cluster.JobID{
		job(l.submit("bob", sleeper, "--gres=gpu:2", "--begin=now+1hour")),
		job(l.submit("bob", sleeper, "--gres=gpu:2", "--begin=now+1hour")),
	}
	s := l.see()
	var plan []cluster.Action
	until := cluster.InstantOf(time.Now().Add(2 * time.Minute).Truncate(time.Second))
	for i, id := range heirs {
		name := fmt.Sprintf("%s%d", cluster.ReservationPrefix, i)
		plan = append(plan, cluster.Action{Verb: cluster.Reserve, Reservation: name, Nodes: []string{"v1"}, Accounts: []string{"vision"}, Until: until})
		j, _ := find(s, id)
		g := act(cluster.Grant, j)
		g.Nodes, g.Reservation = []string{"v1"}, name
		plan = append(plan, g)
	}
	for i, id := range holders {
		j, _ := find(s, id)
		r := act(cluster.Reclaim, j)
		r.Until, r.Reservation = in1h(), fmt.Sprintf("%s%d", cluster.ReservationPrefix, i)
		plan = append(plan, r)
	}
	began := time.Now()
	l.apply(plan...)
	l.Logf("orders took %v", time.Since(began))
	for _, id := range heirs {
		l.until(id, "running", in(cluster.Running))
	}
	l.Logf("hand-over took %v", time.Since(began))
	s = l.see()
	if j, _ := find(s, thief); j.State != cluster.Waiting {
		l.Errorf("the third job got in between: %+v", j)
	}
	for _, id := range holders {
		if j, _ := find(s, id); j.State == cluster.Waiting && !l.gated(j, plan[len(plan)-1]) || j.State == cluster.Running || j.Reservation != "" {
			l.Errorf("holder: %+v", j)
		}
	}
	if len(s.Reservations) != 2 || !s.Reservations[0].Ours || s.Reservations[0].End != until || !slices.Equal(s.Reservations[0].Accounts, []string{"vision"}) {
		l.Errorf("reservations: %+v", s.Reservations)
	}
	// Prolonging one is the same order with another end.
	again := plan[0]
	again.Until += 60_000
	l.apply(again)
	if s = l.see(); s.Reservations[0].End != again.Until {
		l.Errorf("prolonged: %+v", s.Reservations[0])
	}
	for i, id := range heirs {
		j, _ := find(s, id)
		if want := fmt.Sprintf("%s%d", cluster.ReservationPrefix, i); j.Reservation != want {
			l.Errorf("heir in reservation %q; want %q", j.Reservation, want)
		}
		free := act(cluster.Release, j)
		free.Reservation = j.Reservation
		l.apply(free)
		l.apply(free) // and once more
	}
	s = l.see()
	for _, id := range heirs {
		if j, _ := find(s, id); j.State != cluster.Running || j.Reservation != "" {
			l.Errorf("released heir: %+v", j)
		}
	}
	if len(s.Reservations) != 0 {
		l.Errorf("reservations remain: %+v", s.Reservations)
	}

	// A reservation that a waiting job names goes without leaving the job held.
	name := cluster.ReservationPrefix + "9"
	late := job(l.submit("bob", sleeper, "--gres=gpu:2", "--begin=now+1hour"))
	j := l.until(late, "waiting", in(cluster.Waiting))
	g := act(cluster.Grant, j)
	g.Nodes, g.Reservation = []string{"v1"}, name
	l.apply(cluster.Action{Verb: cluster.Reserve, Reservation: name, Nodes: []string{"v1"}, Accounts: []string{"vision"}, Until: until}, g)
	l.until(late, "in the reservation", func(j cluster.Job) bool { return j.Reservation == name })
	gone := cluster.Action{Verb: cluster.Unreserve, Reservation: name}
	l.apply(gone, gone)
	if j, _ := find(l.see(), late); j.Reservation != "" || j.Inactive != "" || j.State != cluster.Waiting {
		l.Errorf("job of the deleted reservation: %+v", j)
	}
}

// listener goes on after a line that sets OUT: the shell and its step write there what they hear.
const listener = `
trap 'echo shell >> $OUT' USR1
srun perl -e '
	$SIG{USR1} = sub { open(F, ">>", $ARGV[0]); print F "step\n"; close F };
	open(R, ">", "$ARGV[0].ready"); close R;
	sleep 1 while 1' $OUT &
wait; wait; wait
`

// notices: which process hears what.
func notices(l *live) {
	home := l.slurm.Home("bob")
	for to, want := range map[string]string{"steps": "step", "batch": "shell", "all": "shell step"} {
		out := filepath.Join(home, "notice-"+to)
		script := "#!/bin/bash\nOUT=$HOME/notice-" + to + listener
		id := job(l.submit("bob", script, "--gres=gpu:1"))
		j := l.until(id, "running", in(cluster.Running))
		l.eventually("the step runs", func() bool { _, err := os.Stat(out + ".ready"); return err == nil }, func() string { return "" })
		n := act(cluster.Notify, j)
		n.Signal, n.SignalTo = "USR1", to
		l.apply(n)
		var heard []string
		l.eventually("notice to "+to+" heard as "+want, func() bool {
			b, _ := os.ReadFile(out)
			heard = strings.Fields(string(b))
			slices.Sort(heard)
			return strings.Join(heard, " ") == want
		}, func() string { return fmt.Sprint(heard) })
		if j, _ := find(l.see(), id); j.State != cluster.Running {
			l.Errorf("notice to %s: %+v", to, j)
		}
	}
	// A script without steps: nobody is there to hear, nobody is hurt.
	plain := job(l.submit("bob", sleeper, "--gres=gpu:1"))
	j := l.until(plain, "running", in(cluster.Running))
	n := act(cluster.Notify, j)
	n.Signal, n.SignalTo = "USR1", "steps"
	o := l.client.Apply(l.Context(), []cluster.Action{n})
	if o[0].Error != "" && !o[0].Skipped {
		l.Errorf("notice to a job without steps: %+v", o[0])
	}
	waits := job(l.submit("bob", sleeper, "--gres=gpu:1", "--begin=now+1hour"))
	j, _ = find(l.see(), waits)
	n = act(cluster.Notify, j)
	n.Signal, n.SignalTo = "USR1", "all"
	if o := l.client.Apply(l.Context(), []cluster.Action{n}); !o[0].Skipped {
		l.Errorf("notice to a waiting job: %+v", o[0])
	}
	if j, _ := find(l.see(), plain); j.State != cluster.Running {
		l.Errorf("plain job after its notice: %+v", j)
	}
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

// shards: jobs that share a GPU hold it once.
func shards(l *live) {
	a := job(l.submit("alice", sleeper, "--gres=shard:1", "-w", "k1"))
	b := job(l.submit("bob", sleeper, "--gres=shard:1", "-w", "k1"))
	l.until(a, "running", in(cluster.Running))
	l.until(b, "running", in(cluster.Running))
	s := l.see()
	first, _ := find(s, a)
	second, _ := find(s, b)
	if first.GPUsHeld()+second.GPUsHeld() != 1 || first.Holds[0].Model != "k80" || !slices.Equal(first.Holds[0].Index, []int{0}) || second.Request.Unplaceable != "parts of GPUs" {
		l.Errorf("two shards of one GPU: %+v and %+v", first.Holds, second.Holds)
	}
}

// statePolls: with every shortcut on, a sighting is the same as one read in full.
func statePolls(l *live) {
	lazy := l.another(func(c *slurm.Config) { c.SmallList, c.Singles, c.FullEvery = -1, 50, time.Hour })
	compare := func(when string) {
		l.Helper()
		var got, want cluster.Sighting
		var err error
		l.eventually(when+": both see the same", func() bool {
			if got, err = lazy.Observe(l.Context(), 0); err != nil {
				l.Fatal(err)
			}
			want = l.see()
			return cmp.Diff(told(want), told(got)) == ""
		}, func() string { return "full -, lazy +\n" + cmp.Diff(told(want), told(got)) })
	}
	a := job(l.submit("alice", sleeper, "--gres=gpu:2", "-w", "v1"))
	b := job(l.submit("bob", sleeper, "--gres=gpu:1", "--begin=now+1hour"))
	array := l.submit("carol", sleeper, "--array=0-9%4", "--gres=gpu:1", "--begin=now+1hour")
	l.until(a, "running", in(cluster.Running))
	compare("at first")
	l.eventually("a quiet look is unchanged", func() bool {
		s, err := lazy.Observe(l.Context(), 0)
		return err == nil && s.Unchanged
	}, func() string { return "always something" })
	l.exec("alice", "scancel", strconv.FormatInt(a.ID, 10))
	l.exec("root", "scontrol", "update", fmt.Sprintf("jobid=%d_3", array), "StartTime=now")
	compare("after a cancel and a task's start")
	l.exec("carol", "scancel", fmt.Sprintf("%d_5", array))
	c := job(l.submit("alice", sleeper, "--gres=gpu:1"))
	l.until(c, "running", in(cluster.Running))
	compare("after a task's cancel and a new job")
	s, err := lazy.Observe(l.Context(), 0)
	if err != nil {
		l.Fatal(err)
	}
	j, _ := find(s, b)
	g := act(cluster.Grant, j)
	g.Nodes = []string{"k2"}
	task, _ := find(s, cluster.TaskID(array, 7))
	gt := act(cluster.Grant, task)
	gt.Nodes = []string{"k2"}
	j, _ = find(s, c)
	r := act(cluster.Reclaim, j)
	r.Until = in1h()
	for i, o := range lazy.Apply(l.Context(), []cluster.Action{g, gt, r}) {
		if !o.OK {
			l.Errorf("action %d: %+v", i, o)
		}
	}
	compare("after our actions")
	l.until(b, "running", in(cluster.Running))
	compare("when they have taken effect")
}

// told is what a sighting says of jobs, less what may differ between two looks in a row
// and what Slurm forgets at a job's start.
func told(s cluster.Sighting) []cluster.Job {
	jobs := slices.Clone(s.Jobs)
	for i := range jobs {
		jobs[i].Because, jobs[i].Request.MaxNodes = "", 0
	}
	return jobs
}

func history(l *live) {
	since := cluster.InstantOf(time.Now().Add(-time.Minute))
	id := job(l.submit("alice", sleeper, "--gres=gpu:v100:2"))
	j := l.runs(id)
	r := act(cluster.Reclaim, j)
	r.Until = in1h()
	l.apply(r)
	l.apply(act(cluster.Open, l.until(id, "waiting", in(cluster.Waiting))))
	l.until(id, "running again", in(cluster.Running))
	task := l.submit("bob", "#!/bin/bash\nexit 0\n", "--array=7", "--gres=gpu:k80:1")
	l.until(cluster.TaskID(task, 7), "done", in(cluster.Done))

	s, err := l.client.Observe(l.Context(), since)
	if err != nil || len(s.Attempts) != 0 {
		l.Errorf("after one minute: %d attempts, %v; want none asked for", len(s.Attempts), err)
	}
	mine := func() (first, second, brief cluster.Attempt) {
		s, err := l.client.Observe(l.Context(), since.Add(-10*cluster.Minute))
		if err != nil {
			l.Fatal(err)
		}
		for _, a := range s.Attempts {
			switch {
			case a.ID == id && a.Outcome == "REQUEUED":
				first = a
			case a.ID == id:
				second = a
			case a.ID == cluster.TaskID(task, 7):
				brief = a
			}
		}
		if s.Unchanged && len(s.Attempts) > 0 {
			l.Error("a sighting with attempts says that nothing changed")
		}
		return first, second, brief
	}
	var first, second, brief cluster.Attempt
	l.eventually("the history knows three stretches", func() bool {
		first, second, brief = mine()
		return first.End > 0 && second.Start > 0 && brief.End > 0
	}, func() string { return fmt.Sprintf("%+v %+v %+v", first, second, brief) })
	if first.Start != j.Start || first.Submit != j.Submit || first.User != "alice" || first.Account != "nlp" || !reflect.DeepEqual(first.GPUs, []cluster.GPUs{{Model: "v100", Count: 2}}) {
		l.Errorf("first stretch: %+v; the job was %+v", first, j)
	}
	if second.End != 0 || second.Outcome != "RUNNING" || second.Start < first.End {
		l.Errorf("second stretch: %+v", second)
	}
	if brief.Outcome != "COMPLETED" || !reflect.DeepEqual(brief.GPUs, []cluster.GPUs{{Model: "k80", Count: 1}}) {
		l.Errorf("array task: %+v", brief)
	}
}

func faults(l *live) {
	ctx := l.Context()
	must := func(err error) {
		l.Helper()
		if err != nil {
			l.Fatal(err)
		}
	}
	id := job(l.submit("alice", sleeper, "--gres=gpu:1"))
	l.until(id, "running", in(cluster.Running))
	before := l.see()

	// slurmdbd away: the tree is kept; without one there is no sighting.
	must(l.slurm.Stop(ctx, testcluster.Slurmdbd))
	hasty := l.another(func(c *slurm.Config) { c.AccountsEvery = time.Nanosecond })
	if _, err := hasty.Observe(ctx, 0); err == nil {
		l.Error("a sighting without accounts")
	}
	if s, err := l.client.Observe(ctx, 0); err != nil || !reflect.DeepEqual(s.Accounts, before.Accounts) {
		l.Errorf("while slurmdbd is away: %v", err)
	}
	if _, err := l.client.Observe(ctx, before.Now.Add(-cluster.Hour)); err == nil {
		l.Error("a history without slurmdbd")
	}
	must(l.slurm.Start(ctx, testcluster.Slurmdbd))

	// slurmrestd away.
	must(l.slurm.Kill(ctx, testcluster.Slurmrestd))
	_, err := l.client.Observe(ctx, 0)
	if err == nil || !strings.Contains(err.Error(), "is slurmrestd running") && !strings.Contains(err.Error(), "did it restart") {
		l.Errorf("without slurmrestd: %v", err)
	}
	if o := l.client.Apply(ctx, []cluster.Action{{Verb: cluster.Gate, ID: id, Record: id.ID, Until: in1h()}}); o[0].OK || strings.Contains(o[0].Error, "may have been") {
		l.Errorf("action without slurmrestd: %+v", o[0])
	}
	must(l.slurm.Start(ctx, testcluster.Slurmrestd))
	if s := l.see(); len(s.Jobs) != len(before.Jobs) {
		l.Errorf("%d jobs; before %d", len(s.Jobs), len(before.Jobs))
	}

	// slurmctld away: an error, never an empty cluster. Back: another boot, the same jobs.
	must(l.slurm.Stop(ctx, testcluster.Slurmctld))
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	if s, err := l.client.Observe(short, 0); err == nil {
		l.Errorf("without slurmctld %d jobs are seen", len(s.Jobs))
	}
	cancel()
	must(l.slurm.Start(ctx, testcluster.Slurmctld))
	s := l.see()
	if j, there := find(s, id); s.Boot <= before.Boot || !there || j.State != cluster.Running {
		l.Errorf("after a restart: boot %v (before %v), job %+v", s.Boot, before.Boot, j)
	}
}
