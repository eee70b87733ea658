// Package clustertest is the suite that every loop.Cluster passes, the real Slurm and the virtual
// one. It tests what the engine relies on.
package clustertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// World is a cluster with the nodes v1, v2 (four v100 each) and k1, k2 (four k80 each), with two shards of each GPU, in
// partition gpu, the accounts nlp, vision and third, 1,000,000 licences for gates, and no other
// users.
type World interface {
	loop.Cluster
	// Submit queues a job and gives its id (for an array, the base id).
	Submit(t *testing.T, w Work) cluster.JobID
	// Cancel ends a job.
	Cancel(t *testing.T, id cluster.JobID)
	// Pass lets a short time pass.
	Pass()
}

// Work is a job of the suite, which sleeps.
type Work struct {
	Account   string
	GPUs      int // on one node
	Shards    int // of one GPU, in place of GPUs
	Model     string
	Seconds   int
	Limit     time.Duration
	Gated     bool // submitted with a begin time an hour ahead
	Locked    bool // submitted with a request for the licence of gates
	Array     int  // number of tasks; 0 = no array
	NoRequeue bool
	Shares    bool // says share=yes
}

// Run runs the suite for both kinds of gates. open gives an empty world for one test.
func Run(t *testing.T, open func(t *testing.T) World) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *stage)
	}{
		{"nodes and accounts are seen", seesTheCluster},
		{"a gated job waits and its gate moves", gateHolds},
		{"a grant starts the job on its nodes", grantStarts},
		{"grants of parts of one GPU", grantShards},
		{"jobs take turns on a GPU", takesTurns},
		{"a grant of one task of an array", grantTask},
		{"a typed job gets its model", typedJob},
		{"take back shuts the gate and frees the pin", takeBack},
		{"jobs granted on busy GPUs start in turn", startsInTurn},
		{"reclaim requeues behind a gate", reclaims},
		{"a finished job is never re-run", finishedStays},
		{"a reclaim makes a job requeueable first", reclaimsNoRequeue},
		{"hand over lets nobody in between", handsOver},
		{"open lifts gate and pin", opens},
		{"everything may be done twice", idempotent},
		{"the history tells what nobody saw", history},
		{"an unknown verb is refused", refusesOthers},
	} {
		for _, license := range []bool{false, true} {
			t.Run(map[bool]string{false: "begin times/", true: "licence/"}[license]+c.name, func(t *testing.T) {
				s := &stage{World: open(t), t: t, license: license}
				if license {
					s.lock(s.look().Now.Add(10 * cluster.Minute))
				}
				c.run(t, s)
			})
		}
	}
	t.Run("the licence lapses", func(t *testing.T) { lapses(t, &stage{World: open(t), t: t, license: true}) })
}

// stage is a world with helpers for the tests.
type stage struct {
	World
	t       *testing.T
	license bool // gates are licences
}

// lock reserves all licences until the given moment.
func (s *stage) lock(until cluster.Instant) {
	s.t.Helper()
	l := s.look().License
	s.do(cluster.Action{Verb: cluster.Lock, Reservation: cluster.GateReservation, Licenses: fmt.Sprintf("%s:%d", l.Name, l.Total), Until: until})
	if l = s.look().License; l.Name == "" || l.Total != 1_000_000 || l.Reserved != l.Total {
		s.t.Fatalf("locked: %+v", l)
	}
}

// shut is an action that shuts a job's gate.
func (s *stage) shut(verb cluster.Verb, id cluster.JobID) cluster.Action {
	s.t.Helper()
	a := s.action(verb, id)
	if a.Lock = s.license; !s.license {
		a.Until = s.hourAhead()
	}
	return a
}

// gated tells whether a job waits behind its gate: for the licence, or until the gate of an
// action.
func (s *stage) gated(j cluster.Job, a *cluster.Action) bool {
	if s.license {
		return waiting(j) && j.Locked
	}
	return waiting(j) && !j.Locked && j.Eligible >= a.Until-1000 && j.Eligible <= a.Until+1000
}

func (s *stage) look() cluster.Observation {
	s.t.Helper()
	seen, err := s.Observe(context.Background(), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return seen
}

// job gives the current state of a job; absent jobs have no state.
func (s *stage) job(id cluster.JobID) cluster.Job {
	s.t.Helper()
	for _, j := range s.look().Jobs {
		if j.ID == id {
			return j
		}
	}
	return cluster.Job{ID: id}
}

// until lets time pass until a job is as wanted.
func (s *stage) until(id cluster.JobID, what string, ok func(cluster.Job) bool) cluster.Job {
	s.t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for {
		j := s.job(id)
		if ok(j) {
			return j
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("job %s never was %s: %+v", id, what, j)
		}
		s.Pass()
	}
}

func (s *stage) submit(w Work) cluster.JobID {
	s.t.Helper()
	if w.Seconds == 0 {
		w.Seconds = 600
	}
	if w.Gated && s.license {
		w.Gated, w.Locked = false, true
	}
	return s.Submit(s.t, w)
}

// do carries out actions. All must succeed; one that may have been carried out is tried once more after a look, as the loop tries it.
func (s *stage) do(actions ...cluster.Action) {
	s.t.Helper()
	ctx := context.Background()
	for i, o := range s.Apply(ctx, actions) {
		if strings.Contains(o.Error, "outcome unknown") {
			s.t.Logf("%s of job %s once more: %s", actions[i].Verb, actions[i].ID, o.Error)
			s.look()
			o = s.Apply(ctx, actions[i:i+1])[0]
		}
		if !o.OK {
			s.t.Fatalf("%s of job %s failed: %s", actions[i].Verb, actions[i].ID, o.Error)
		}
	}
}

func (s *stage) action(verb cluster.Verb, id cluster.JobID) cluster.Action {
	s.t.Helper()
	j := s.job(id)
	return cluster.Action{Verb: verb, ID: id, Record: j.Record, UnsplitArray: j.UnsplitArray, Restarts: j.Restarts}
}

func (s *stage) grant(id cluster.JobID, nodes ...string) cluster.Action {
	a := s.action(cluster.Grant, id)
	a.Nodes, a.SiteFactor, a.Unlock = nodes, 1000, s.license
	return a
}

func (s *stage) hourAhead() cluster.Instant { return s.look().Now.Add(cluster.Hour) }

func running(j cluster.Job) bool { return j.State == cluster.Running && j.GPUsHeld() > 0 }
func waiting(j cluster.Job) bool { return j.State == cluster.Waiting }
func done(j cluster.Job) bool    { return j.State == cluster.Done }

func on(j cluster.Job, node string) bool {
	return slices.ContainsFunc(j.Holds, func(h cluster.Holding) bool { return h.Node == node })
}

// refusesOthers asks for an action that is none of cluster.Verbs.
func refusesOthers(t *testing.T, s *stage) {
	a := s.action("unheard", s.submit(Work{Account: "nlp", GPUs: 1, Gated: true}))
	if o := s.Apply(context.Background(), []cluster.Action{a})[0]; o.OK || !strings.Contains(o.Error, "no such action") {
		t.Errorf("an unknown verb: %+v", o)
	}
}

func seesTheCluster(t *testing.T, s *stage) {
	seen := s.look()
	got := map[string]string{}
	for _, n := range seen.Nodes {
		got[n.Name] = fmt.Sprint(n.GPUs, n.Bad)
		if !slices.Contains(n.Partitions, "gpu") || n.CPUs <= 0 || n.MemoryMB <= 0 {
			t.Errorf("node %+v", n)
		}
	}
	for node, want := range map[string]string{"v1": "[{v100 4}]", "v2": "[{v100 4}]", "k1": "[{k80 4}]", "k2": "[{k80 4}]"} {
		if got[node] != want {
			t.Errorf("node %s: %q, want %q", node, got[node], want)
		}
	}
	names := map[string]string{}
	for _, a := range seen.Accounts {
		names[a.Name] = a.Parent
	}
	for _, a := range []string{"nlp", "vision", "third"} {
		if names[a] != "root" {
			t.Errorf("account %s has parent %q, want root", a, names[a])
		}
	}
}

func gateHolds(t *testing.T, s *stage) {
	id := s.submit(Work{Account: "nlp", GPUs: 1, Gated: true})
	j := s.job(id)
	if !waiting(j) || j.Locked != s.license || !s.license && j.Eligible < s.look().Now.Add(50*cluster.Minute) || j.Request.Size.Devices != 1 || !j.Batch || !j.Requeueable {
		t.Fatalf("a gated job: %+v", j)
	}
	a := s.shut(cluster.Gate, id)
	s.do(a)
	if j = s.job(id); !s.gated(j, &a) {
		t.Fatalf("gate to %s: %+v", a.Until, j)
	}
}

func grantStarts(t *testing.T, s *stage) {
	for _, node := range []string{"v2", "k1"} {
		id := s.submit(Work{Account: "nlp", GPUs: 2, Gated: true})
		s.do(s.grant(id, node))
		j := s.until(id, "running", running)
		if len(j.Holds) != 1 || j.Holds[0].Node != node || j.Holds[0].Size.Devices != 2 || j.Start == 0 {
			t.Fatalf("granted two GPUs on %s: %+v", node, j.Holds)
		}
	}
}

// grantShards: parts of a GPU are asked for and held as such. Two jobs are on one GPU, and a third on the next.
func grantShards(t *testing.T, s *stage) {
	seen := s.look()
	for i := range seen.Nodes {
		if n := &seen.Nodes[i]; n.Shards != 2 {
			t.Errorf("node %s has %d shards of each GPU, want 2", n.Name, n.Shards)
		}
	}
	half := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}
	for _, gpu := range []int{0, 0, 1} {
		id := s.submit(Work{Account: "nlp", Shards: 1, Gated: true})
		if q := s.job(id).Request; q.Shards != 1 || q.Size != half || q.Unplaceable != "" || q.MostNodes() != 1 {
			t.Fatalf("a job that waits for a shard asks for %+v", q)
		}
		s.do(s.grant(id, "v1"))
		if j := s.until(id, "running", running); len(j.Holds) != 1 || j.Holds[0].Node != "v1" || j.Holds[0].Model != "v100" || j.Holds[0].Size != half || !slices.Equal(j.Holds[0].Index, []int{gpu}) {
			t.Fatalf("granted a shard on v1: %+v, want half of GPU %d", j.Holds, gpu)
		}
	}
}

// takesTurns: two jobs that ask for a GPU are granted half of one each, and run in turn. A grant that is taken back restores what the user asked for.
func takesTurns(t *testing.T, s *stage) {
	half := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}
	var ids []cluster.JobID
	for range 2 {
		id := s.submit(Work{Account: "nlp", GPUs: 1, Gated: true, Shares: true})
		if j := s.job(id); j.Ask != "gres/gpu:1" || j.Hints == nil || !j.Hints.Share {
			t.Fatalf("a job that may take turns asks for %q, with hints %+v", j.Ask, j.Hints)
		}
		grant := s.grant(id, "k1")
		grant.Ask = cluster.ShardWords + "1"
		s.do(grant)
		if j := s.until(id, "running", running); len(j.Holds) != 1 || j.Holds[0].Size != half || !slices.Equal(j.Holds[0].Index, []int{0}) {
			t.Fatalf("granted half of a GPU on k1: %+v", j.Holds)
		}
		ids = append(ids, id)
	}
	suspended := func(j cluster.Job) bool { return j.State == cluster.Suspended && j.GPUsHeld() == 1 }
	for _, turn := range [][2]cluster.JobID{{ids[0], ids[1]}, {ids[1], ids[0]}} {
		s.do(s.action(cluster.Suspend, turn[0]))
		s.until(turn[0], "suspended", suspended)
		s.Pass()
		if j := s.job(turn[1]); j.State != cluster.Running {
			t.Fatalf("the partner of a suspended job is %s", j.State)
		}
		s.do(s.action(cluster.Resume, turn[0]))
		s.until(turn[0], "running", running)
	}
	full := s.submit(Work{Account: "vision", GPUs: 4, Gated: true})
	s.do(s.grant(full, "v1"))
	s.until(full, "running", running)
	id := s.submit(Work{Account: "nlp", GPUs: 1, Gated: true, Shares: true})
	grant := s.grant(id, "v1")
	grant.Ask = cluster.ShardWords + "1"
	s.do(grant)
	if j := s.job(id); j.Request.Shards != 1 || j.Ask != "" {
		t.Fatalf("granted half of a GPU where none is free: %+v, asks for %q", j.Request, j.Ask)
	}
	back := s.shut(cluster.RevokeGrant, id)
	back.Ask = "gres/gpu:1"
	s.do(back)
	if j := s.job(id); !s.gated(j, &back) || j.Request.Shards != 0 || j.Ask != "gres/gpu:1" {
		t.Fatalf("taken back: %+v, asks for %q", j.Request, j.Ask)
	}
}

func grantTask(t *testing.T, s *stage) {
	base := s.submit(Work{Account: "nlp", GPUs: 1, Gated: true, Array: 3})
	task := cluster.TaskID(base.ID, 1)
	if j := s.job(task); !waiting(j) || !j.UnsplitArray && j.Record == 0 {
		t.Fatalf("a waiting task: %+v", j)
	}
	gate := s.shut(cluster.Gate, task)
	gate.Array = true
	s.do(gate) // one gate for all of them
	for i := range int32(3) {
		if j := s.job(cluster.TaskID(base.ID, i)); !j.UnsplitArray || j.Record != base.ID || !s.gated(j, &gate) {
			t.Errorf("task %d of a waiting array is not one record with the others: %+v", i, j)
		}
	}
	s.do(s.grant(task, "v1"))
	if j := s.until(task, "running", running); !on(j, "v1") || j.UnsplitArray || j.Record == base.ID {
		t.Fatalf("the task runs on %+v, with record %d of array %d", j.Holds, j.Record, base.ID)
	}
	for _, i := range []int32{0, 2} {
		if j := s.job(cluster.TaskID(base.ID, i)); !j.UnsplitArray || j.Record != base.ID || !s.gated(j, &gate) {
			t.Errorf("task %d should still wait behind its gate: %+v", i, j)
		}
	}
}

func typedJob(t *testing.T, s *stage) {
	id := s.submit(Work{Account: "vision", GPUs: 2, Model: "k80", Gated: true})
	if j := s.job(id); j.Request.Model != "k80" || j.Request.Size.Devices != 2 {
		t.Fatalf("request %+v", j.Request)
	}
	s.do(s.grant(id, "k2"))
	if j := s.until(id, "running", running); j.Holds[0].Model != "k80" {
		t.Fatalf("holds %+v", j.Holds)
	}
}

func takeBack(t *testing.T, s *stage) {
	holder := s.submit(Work{Account: "vision", GPUs: 4, Gated: true})
	s.do(s.grant(holder, "v1"))
	s.until(holder, "running", running)
	id := s.submit(Work{Account: "nlp", GPUs: 1, Gated: true})
	s.do(s.grant(id, "v1")) // full: cannot start
	a := s.shut(cluster.RevokeGrant, id)
	s.do(a)
	if j := s.job(id); !s.gated(j, &a) || len(j.NodeList) != 0 {
		t.Fatalf("taken back: %+v", j)
	}
}

// startsInTurn grants two jobs the GPUs of one that runs. They block no job on other nodes, and start when the job before
// them has ended, without another action.
func startsInTurn(t *testing.T, s *stage) {
	first := s.submit(Work{Account: "nlp", GPUs: 4, Gated: true, Seconds: 20})
	s.do(s.grant(first, "v1"))
	s.until(first, "running", running)
	var ids []cluster.JobID
	for range 2 {
		id := s.submit(Work{Account: "nlp", GPUs: 4, Gated: true, Seconds: 2})
		a := s.grant(id, "v1")
		a.SiteFactor--
		s.do(a)
		ids = append(ids, id)
	}
	other := s.submit(Work{Account: "vision", GPUs: 4, Gated: true})
	s.do(s.grant(other, "v2"))
	s.until(other, "running on other nodes", running)
	for _, id := range ids {
		if j := s.job(id); running(s.job(first)) && !waiting(j) {
			t.Fatalf("its GPUs are busy: %+v", j)
		}
	}
	end := s.until(first, "done", done).End
	for _, id := range ids {
		j := s.until(id, "done", done)
		if j.Start.Add(cluster.Second) < end || j.Outcome != "COMPLETED" {
			t.Errorf("the job before it ended at %s: %+v", end, j)
		}
		end = j.End
	}
}

func reclaims(t *testing.T, s *stage) {
	id := s.submit(Work{Account: "nlp", GPUs: 1, Gated: true})
	s.do(s.grant(id, "v1"))
	before := s.until(id, "running", running)
	a := s.shut(cluster.Reclaim, id)
	s.do(a)
	j := s.until(id, "waiting again", waiting)
	// Before 26.05 the gate is Slurm's own delay of two minutes, until the next Gate.
	if j.Restarts != before.Restarts+1 || j.Locked != s.license || j.Eligible < s.look().Now.Add(cluster.Minute) || len(j.NodeList) != 0 || len(j.Holds) != 0 {
		t.Fatalf("reclaimed: %+v", j)
	}
	s.do(s.grant(id, "k1"))
	if j := s.until(id, "running", running); !on(j, "k1") {
		t.Fatalf("granted again: %+v", j.Holds)
	}
}

func finishedStays(t *testing.T, s *stage) {
	id := s.submit(Work{Account: "nlp", GPUs: 1, Seconds: 1, Gated: true})
	late := s.shut(cluster.Reclaim, id)
	s.do(s.grant(id, "v1"))
	before := s.until(id, "done", done)
	s.Apply(context.Background(), []cluster.Action{late})
	s.Pass()
	if j := s.job(id); !done(j) || j.Restarts != before.Restarts || j.Outcome != "COMPLETED" {
		t.Fatalf("a late requeue of a finished job: %+v", j)
	}
}

// The engine judges which jobs may be reclaimed, by what they were when they were granted: owners may change that afterwards.
func reclaimsNoRequeue(t *testing.T, s *stage) {
	id := s.submit(Work{Account: "nlp", GPUs: 1, Gated: true, NoRequeue: true})
	if j := s.job(id); j.Requeueable {
		t.Fatalf("a --no-requeue job: %+v", j)
	}
	s.do(s.grant(id, "v1"))
	s.until(id, "running", running)
	if j := s.job(id); j.Requeueable {
		t.Fatalf("a --no-requeue job that runs: %+v", j)
	}
	s.do(s.shut(cluster.Reclaim, id))
	if j := s.until(id, "waiting again", waiting); j.Restarts != 1 || !j.Requeueable {
		t.Fatalf("reclaimed: %+v", j)
	}
}

func handsOver(t *testing.T, s *stage) {
	holder := s.submit(Work{Account: "vision", GPUs: 4, Gated: true})
	s.do(s.grant(holder, "v1"))
	s.until(holder, "running", running)
	others := s.submit(Work{Account: "vision", GPUs: 4, Gated: true})
	s.do(s.grant(others, "v2"))
	s.until(others, "running", running)
	beneficiary := s.submit(Work{Account: "nlp", GPUs: 4, Model: "v100", Gated: true})
	rival := s.submit(Work{Account: "third", GPUs: 4, Model: "v100"}) // ungated: Slurm starts it as soon as it can
	name := cluster.ReservationPrefix + "suite"
	reserve := cluster.Action{Verb: cluster.Reserve, Reservation: name, Nodes: []string{"v1"}, Accounts: []string{"nlp"},
		Until: s.look().Now.Add(5 * cluster.Minute)}
	grant := s.grant(beneficiary, "v1")
	grant.Reservation = name
	reclaim := s.shut(cluster.Reclaim, holder)
	reclaim.Reservation = name
	s.do(reserve, grant, reclaim)
	if j := s.until(beneficiary, "running", running); !on(j, "v1") {
		t.Fatalf("the beneficiary holds %+v", j.Holds)
	}
	if j := s.job(rival); running(j) {
		t.Fatalf("the rival got in between: %+v", j.Holds)
	}
	release := s.action(cluster.Release, beneficiary)
	release.Reservation = name
	s.do(release)
	if j := s.job(beneficiary); !running(j) || j.Reservation != "" {
		t.Fatalf("after the release: %+v", j)
	}
	for _, r := range s.look().Reservations {
		if r.Name == name {
			t.Errorf("the reservation is still there: %+v", r)
		}
	}
}

func opens(t *testing.T, s *stage) {
	id := s.submit(Work{Account: "nlp", GPUs: 1, Gated: true})
	a := s.action(cluster.Open, id)
	a.Unlock = s.license
	s.do(a)
	if j := s.until(id, "running", running); j.Locked {
		t.Errorf("it still asks for the licence: %+v", j)
	}
}

func idempotent(t *testing.T, s *stage) {
	id := s.submit(Work{Account: "nlp", GPUs: 1, Gated: true})
	g := s.grant(id, "v1")
	s.do(g)
	s.until(id, "running", running)
	if o := s.Apply(context.Background(), []cluster.Action{g}); o[0].OK && !running(s.job(id)) {
		t.Fatalf("a second grant: %+v", o[0])
	}
	r := s.shut(cluster.Reclaim, id)
	s.do(r)
	s.Apply(context.Background(), []cluster.Action{r})
	if j := s.until(id, "waiting", waiting); j.Restarts != 1 {
		t.Fatalf("reclaimed twice: %+v", j)
	}
}

func history(t *testing.T, s *stage) {
	begin := s.look().Now
	id := s.submit(Work{Account: "nlp", GPUs: 2, Seconds: 2, Gated: true})
	s.do(s.grant(id, "v1"))
	j := s.until(id, "done", done)
	deadline := time.Now().Add(40 * time.Second)
	for {
		// As if there had been no look for an hour: the whole history is reported.
		seen, err := s.Observe(context.Background(), begin-cluster.Instant(cluster.Hour))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range seen.Attempts {
			if a.ID == id && a.End > 0 {
				if a.Start != j.Start || a.End != j.End || len(a.GPUs) != 1 || a.GPUs[0] != (cluster.ModelSize{Model: "v100", Size: cluster.Whole(2)}) {
					t.Fatalf("attempt %+v of job %+v", a, j)
				}
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the history never told of job %s: %+v", id, seen.Attempts)
		}
		s.Pass()
	}
}

// When the lock is not extended, jobs that request the licence start; a job without it never
// waited for it.
func lapses(t *testing.T, s *stage) {
	s.lock(s.look().Now.Add(10 * cluster.Minute))
	id := s.submit(Work{Account: "nlp", GPUs: 1, Gated: true})
	other := s.submit(Work{Account: "vision", GPUs: 1})
	s.until(other, "running", running)
	if j := s.job(id); !waiting(j) || !j.Locked {
		t.Fatalf("before the lock lapses: %+v", j)
	}
	s.lock(s.look().Now.Add(5 * cluster.Second))
	s.until(id, "running", running)
	s.until(id, "seen when no licence is reserved any more", func(cluster.Job) bool { return s.look().License.Reserved == 0 })
}
