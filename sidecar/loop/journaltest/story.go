package journaltest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Story is a simulated cluster whose rounds a journal must store. It follows no policy (turns go
// round robin), but its accounts balance to the GPU-millisecond, and its jobs arrive, wait, run
// under leases, lose work and end like real ones. Equal seeds give equal stories.
type Story struct {
	rng   *rand.Rand
	nodes []cluster.Node
	free  map[string]int // GPUs by node
	used  map[string]uint64
	jobs  map[cluster.JobKey]*cluster.Job
	queue []cluster.JobKey // waiting, first come first
	runs  []cluster.JobKey // running, by key

	now    cluster.Instant
	memory cluster.State
	ended  []cluster.Lease
	losses []cluster.Loss
	acts   []cluster.Action
	events []cluster.Event
	slurm  int64 // last Slurm job id
	plan   cluster.Plan

	// Waiting is the number of waiting jobs in every round. Turn is the length of a round, Term
	// that of a lease. Notice is how long before its end a coin toss decides whether the lease is
	// renewed or reclaimed.
	Waiting int
	Turn    cluster.Span
	Term    cluster.Span
	Notice  cluster.Span
	// Restless is the number of jobs that finish, and of those that arrive, in each round.
	Restless int
	// Cells divides the cluster into virtual clusters: leases have GPUs, and some are lent.
	Cells bool
}

const (
	nodeGPUs   = 8
	bucketSpan = cluster.Hour
)

var (
	storyTenants = []string{"astro", "bio", "chem", "idle"}
	storyModels  = []string{"a100", "v100"}
	faster       = map[string]int64{"a100": 1_500_000} // speedups less 1, in millionths
)

// NewStory begins a story on nodes machines with 8 GPUs each, and with waiting jobs. It begins at
// 2026-03-01 23:50 UTC, shortly before midnight.
func NewStory(seed uint64, nodes, waiting int) *Story {
	s := &Story{
		rng:     rand.New(rand.NewPCG(seed, 1)),
		free:    map[string]int{},
		used:    map[string]uint64{},
		jobs:    map[cluster.JobKey]*cluster.Job{},
		now:     1772409000000,
		slurm:   4_000_000,
		Waiting: waiting, Turn: 10 * cluster.Second, Term: 15 * cluster.Minute, Notice: cluster.Minute, Restless: 2,
	}
	s.memory.NextKey = 1
	for i := range nodes {
		n := cluster.Node{
			Name:       fmt.Sprintf("gpu%04d", i),
			GPUs:       []cluster.GPUs{{Model: storyModels[i%2], Count: nodeGPUs}},
			CPUs:       64,
			MemoryMB:   512_000,
			Partitions: []string{"batch", storyModels[i%2]},
			Features:   []string{"ib", "nvme"},
		}
		s.nodes = append(s.nodes, n)
		s.free[n.Name] = nodeGPUs
	}
	return s
}

// Next gives the next round: its snapshot and its plan.
func (s *Story) Next() (cluster.Snapshot, cluster.Plan) {
	s.now = s.now.Add(s.Turn)
	s.ended, s.losses, s.acts, s.events = nil, nil, nil, nil
	for len(s.queue) < s.Waiting+s.Restless {
		s.arrive()
	}
	snap := s.snapshot()
	s.memory.Round++
	s.charge()
	s.breakCells()
	s.finish()
	s.endTerms()
	s.grant()
	s.prune()
	s.plan = cluster.Plan{
		Round: s.memory.Round, At: s.now, State: s.copyMemory(),
		Ended: s.ended, Losses: s.losses, Actions: s.acts, Events: s.events,
		Statuses: s.statuses(), Bound: s.bound(), Tenants: s.standings(), Cells: s.report(),
	}
	return snap, s.plan
}

// Plan gives the last plan.
func (s *Story) Plan() cluster.Plan { return s.plan }

func (s *Story) arrive() {
	s.slurm++
	key := s.memory.NextKey
	s.memory.NextKey++
	tenant := storyTenants[s.rng.IntN(3)]
	id := cluster.JobID{ID: s.slurm}
	if key%5 == 0 {
		id = cluster.TaskID(s.slurm, int32(key%7))
	}
	model := storyModels[s.rng.IntN(2)]
	j := &cluster.Job{
		ID: id, Record: s.slurm,
		Name: fmt.Sprintf("train-%d", s.rng.IntN(1e6)), User: fmt.Sprintf("%s%02d", tenant, s.rng.IntN(12)),
		Account: tenant, QOS: "normal", Partitions: []string{"batch"},
		State: cluster.Waiting, PendingReason: "BeginTime", Batch: true, Requeueable: true,
		Request: cluster.Request{Size: cluster.Whole(1 << s.rng.IntN(4)), Nodes: 1, MaxNodes: 1, Model: model,
			CPUs: 8, MemoryMB: 32_000 + int64(s.rng.IntN(64))*1000},
		Submit: s.now, Eligible: s.now.Add(30 * cluster.Minute),
		Limit: cluster.Span(1+s.rng.IntN(72)) * cluster.Hour, Marked: true,
	}
	s.jobs[key] = j
	s.queue = append(s.queue, key)
	s.memory.Records = append(s.memory.Records, cluster.Record{
		Key: key, ID: id, Tenant: tenant, User: j.User, Account: tenant, Name: j.Name,
		Submit: s.now, State: cluster.Waiting, First: s.now, ChargedTo: s.now,
		UserLimit: j.Limit, Gate: j.Eligible,
	})
}

func (s *Story) snapshot() cluster.Snapshot {
	m := s.copyMemory()
	snap := cluster.Snapshot{
		Round: m.Round + 1, Now: s.now, NextKey: m.NextKey, Former: m.Former,
		Settings: cluster.Settings{Preset: "astraea", Interval: s.Turn, Term: s.Term, RhoSelect: 16, Signal: "USR1", SignalTo: "batch"},
		Nodes:    slices.Clone(s.nodes), Ledger: m.Ledger, Leases: m.Leases, Claims: m.Claims,
		Cells: s.description(), Lost: m.Lost,
	}
	for i, t := range storyTenants {
		snap.Tenants = append(snap.Tenants, cluster.Tenant{Name: t, Weight: int64(1 + i)})
	}
	for _, r := range m.Records {
		if r.Done == 0 {
			snap.Cases = append(snap.Cases, cluster.Case{Job: *s.jobs[r.Key], Record: r, Control: cluster.FullControl})
		}
	}
	return snap
}

// charge charges the time since the last round.
func (s *Story) charge() {
	l := &s.memory.Ledger
	if l.At == 0 {
		l.At = s.now
		for _, t := range storyTenants {
			for _, p := range storyModels {
				l.Tenants = append(l.Tenants, cluster.TenantPool{Tenant: t, Pool: p})
			}
		}
		for i, p := range storyModels {
			l.Pools = append(l.Pools, cluster.PoolAccount{Pool: p, GPUs: cluster.CountOf(nodeGPUs * ((len(s.nodes) + 1 - i) / 2))})
		}
	}
	span := s.now.Sub(l.At)
	used := map[[2]string]cluster.GPUTime{}
	for i := range s.memory.Records {
		r := &s.memory.Records[i]
		if r.Done != 0 {
			continue
		}
		if j := s.jobs[r.Key]; j.State == cluster.Running {
			r.Alloc += j.Request.Size.Over(span)
			r.Extra.Alloc += r.Extra.Of(j.Request.Size.Over(span))
			used[[2]string{r.Tenant, j.Request.Model}] += j.Request.Size.Over(span)
		}
		var g cluster.GPUTime
		g, r.DueCarry = cluster.Accrue(333_333, span, r.DueCarry)
		r.Due += g
		r.Extra.Due += r.Extra.Of(g)
		r.Extra.Faster = faster[s.jobs[r.Key].Request.Model]
	}
	total := map[string]cluster.GPUTime{}
	for i := range l.Tenants {
		t := &l.Tenants[i]
		got := used[[2]string{t.Tenant, t.Pool}]
		total[t.Pool] += got
		var due cluster.GPUTime
		if t.Tenant != "idle" {
			t.Base = cluster.MicroGPU(len(s.nodes)*nodeGPUs/2) * cluster.WholeGPU / 3
			t.Entitlement, t.Demand = t.Base, t.Base*3
			due, t.DueCarry = cluster.Accrue(t.Base, span, t.DueCarry)
		}
		t.Alloc += got
		t.Due += due
		t.Extra.Alloc, t.Extra.Due = t.Extra.Alloc+t.Extra.Of(got), t.Extra.Due+t.Extra.Of(due)
		t.Extra.Faster = faster[t.Pool]
		t.Deficit += due - got
		start := s.now - s.now%cluster.Instant(bucketSpan)
		if n := len(t.Buckets); n == 0 || t.Buckets[n-1].Start != start {
			t.Buckets = append(slices.Clone(t.Buckets), cluster.Bucket{Start: start})
		} else {
			t.Buckets = slices.Clone(t.Buckets)
		}
		b := &t.Buckets[len(t.Buckets)-1]
		b.Alloc += got
		b.Due += due
		b.Extra += t.Extra.Of(got)
		b.ExtraDue += t.Extra.Of(due)
	}
	for i := range l.Pools {
		p := &l.Pools[i]
		all := cluster.MicroGPU(p.GPUs).Over(span)
		p.Capacity += all
		p.Tenants += total[p.Pool]
		p.Idle += all - total[p.Pool]
	}
	l.At = s.now
}

// finish ends some running jobs.
func (s *Story) finish() {
	for range min(s.Restless, len(s.runs)) {
		key := s.runs[s.rng.IntN(len(s.runs))]
		s.release(key, cluster.Done, "finished")
		r := s.record(key)
		r.Done = s.now
		s.jobs[key].Outcome = "COMPLETED"
	}
}

// endTerms decides, a notice ahead, which leases are renewed at the end of their term. It
// reclaims the others then.
func (s *Story) endTerms() {
	for _, l := range slices.Clone(s.memory.Leases) {
		switch {
		case l.State == cluster.Noticed && l.End <= s.now:
			s.reclaim(l)
		case l.State == cluster.Noticed || l.End.Sub(s.now) > s.Notice:
		case s.rng.IntN(2) == 0:
			s.act(cluster.Notify, l.Job, cluster.ReasonNotice, nil)
			s.memory.Leases = slices.DeleteFunc(s.memory.Leases, func(o cluster.Lease) bool { return o.Job == l.Job })
			l.State, l.NoticedAt = cluster.Noticed, s.now
			s.hold(l)
		default:
			s.end(l, l.End, "renewed")
			l.Term++
			l.Granted, l.Start, l.End = s.now, l.End, l.End.Add(s.Term)
			s.hold(l)
			s.record(l.Job).Terms++
		}
	}
}

func (s *Story) reclaim(l cluster.Lease) {
	why := "reclaimed"
	if l.Class == cluster.Opportunistic {
		why = "recalled"
	}
	s.release(l.Job, cluster.Waiting, why)
	r := s.record(l.Job)
	r.Restarts++
	if causes := []cluster.RequeueCause{cluster.ByOwner, cluster.ByNodeFailure, cluster.BySlurm}; l.Job%5 == 0 {
		x := cluster.Requeues{Count: 1, At: s.now, Cause: causes[l.Job/5%3], Restart: r.Restarts, Ran: 7 * cluster.Minute, Young: l.Job%2 == 0}
		if r.Others != nil {
			x.Count += r.Others.Count
		}
		switch x.Cause {
		case cluster.ByNodeFailure:
			x.Node = "n1"
		case cluster.BySlurm:
			x.Preempted = 1
		}
		r.Others = &x
	}
	s.lose(r, l)
	r.Gate = s.now.Add(30 * cluster.Minute)
	s.queue = append(s.queue, l.Job)
	s.act(cluster.Reclaim, l.Job, cluster.ReasonBehind, nil)
}

// lose charges the loss of a lease's end: the time after the notice.
func (s *Story) lose(r *cluster.Record, l cluster.Lease) {
	lost := l.Size.Over(s.now.Sub(l.NoticedAt))
	j := s.jobs[l.Job]
	x := cluster.Loss{Job: l.Job, Term: l.Term, Pool: l.Pool, Time: lost, Most: lost + cluster.GPUTime(l.Job%2)*lost, Certainty: cluster.BoundedLoss,
		Type: cluster.JobType{User: j.User, Command: "/home/" + j.User + "/train.sh --seed #", GPUs: j.Request.Size.Devices}}
	r.Lost, r.MostLost = r.Lost+lost, r.MostLost+x.Most
	switch l.Job % 3 {
	case 0:
		x.Certainty = cluster.KnownLoss
		r.KnownLost += lost
	case 1:
		x.Certainty, x.Type.Command = cluster.UnknownLoss, cluster.Untyped
		r.UnknownLost += lost
	}
	s.losses = append(s.losses, x)
	r.Alloc -= lost
	for i := range s.memory.Ledger.Tenants {
		t := &s.memory.Ledger.Tenants[i]
		if t.Tenant != r.Tenant || t.Pool != l.Pool {
			continue
		}
		t.Alloc -= lost
		t.Deficit += lost
		t.Buckets = slices.Clone(t.Buckets)
		for k, left := len(t.Buckets)-1, lost; k >= 0 && left > 0; k-- {
			off := min(left, t.Buckets[k].Alloc)
			t.Buckets[k].Alloc -= off
			left -= off
		}
	}
	for i := range s.memory.Ledger.Pools {
		if p := &s.memory.Ledger.Pools[i]; p.Pool == l.Pool {
			p.Tenants -= lost
			p.Overhead += lost
		}
	}
}

// grant gives the waiting jobs leases, in order, where they fit.
func (s *Story) grant() {
	wait := s.queue[:0:0]
	for _, key := range s.queue {
		if !s.start(key) {
			wait = append(wait, key)
		}
	}
	s.queue = wait
}

func (s *Story) start(key cluster.JobKey) bool {
	j := s.jobs[key]
	at := slices.IndexFunc(s.nodes, func(n cluster.Node) bool {
		return n.GPUs[0].Model == j.Request.Model && s.free[n.Name] >= j.Request.Size.Devices
	})
	if at < 0 {
		return false
	}
	held := cluster.Holding{Node: s.nodes[at].Name, Model: j.Request.Model, Size: j.Request.Size, CPUs: 8}
	s.free[held.Node] -= held.Size.Devices
	moved := *j
	moved.State, moved.Holds, moved.Start = cluster.Running, []cluster.Holding{held}, s.now
	s.jobs[key] = &moved
	at, _ = slices.BinarySearch(s.runs, key)
	s.runs = slices.Insert(s.runs, at, key)
	r := s.record(key)
	r.State, r.Gate = cluster.Running, 0
	r.Held, r.HeldSince = []cluster.ModelSize{{Model: held.Model, Size: held.Size}}, s.now
	r.Terms++
	r.Basis = cluster.BasisOf(s.jobs[key])
	end := s.now - s.now%cluster.Instant(s.Term)
	l := cluster.Lease{
		Job: key, Term: r.Terms, State: cluster.Active, Class: cluster.Shared, Pool: held.Model, Size: held.Size,
		Nodes: moved.Holds, Granted: s.now, Start: s.now, End: end.Add(s.Term),
	}
	s.stand(&l)
	s.hold(l)
	s.act(cluster.Grant, key, cluster.ReasonGranted, []string{held.Node})
	return true
}

// release frees a running job's GPUs and ends its lease.
func (s *Story) release(key cluster.JobKey, to cluster.JobState, why string) {
	moved := *s.jobs[key]
	s.free[moved.Holds[0].Node] += moved.Holds[0].Size.Devices
	moved.State, moved.Holds, moved.End = to, nil, s.now
	s.jobs[key] = &moved
	at, _ := slices.BinarySearch(s.runs, key)
	s.runs = slices.Delete(s.runs, at, at+1)
	r := s.record(key)
	r.State, r.Held, r.HeldSince = to, nil, 0
	at = slices.IndexFunc(s.memory.Leases, func(l cluster.Lease) bool { return l.Job == key })
	for _, part := range s.memory.Leases[at].Parts {
		s.used[part.Node] &^= part.GPUs
	}
	s.end(s.memory.Leases[at], s.now, why)
}

// end ends a lease.
func (s *Story) end(l cluster.Lease, at cluster.Instant, why string) {
	s.memory.Leases = slices.DeleteFunc(s.memory.Leases, func(o cluster.Lease) bool { return o.Job == l.Job })
	l.State, l.Ended, l.Why = cluster.Over, at, why
	s.ended = append(s.ended, l)
}

// hold puts a lease in force.
func (s *Story) hold(l cluster.Lease) {
	at, _ := slices.BinarySearchFunc(s.memory.Leases, l, func(a, b cluster.Lease) int { return int(a.Job - b.Job) })
	s.memory.Leases = slices.Insert(s.memory.Leases, at, l)
}

func (s *Story) act(v cluster.Verb, key cluster.JobKey, code cluster.Code, nodes []string) {
	j := s.jobs[key]
	s.acts = append(s.acts, cluster.Action{
		Verb: v, Job: key, ID: j.ID, Record: j.Record, Nodes: nodes, Until: s.now.Add(30 * cluster.Minute),
		Reason: cluster.Reason{Code: code, Pool: j.Request.Model, Need: j.Request.Size.Count(), Behind: 5 * cluster.Minute},
	})
	s.events = append(s.events, cluster.Event{Kind: string(v), Job: key, Text: fmt.Sprintf("%s of job %s", v, j.ID)})
}

func (s *Story) record(key cluster.JobKey) *cluster.Record {
	at, _ := slices.BinarySearchFunc(s.memory.Records, key, func(r cluster.Record, k cluster.JobKey) int { return int(r.Key - k) })
	return &s.memory.Records[at]
}

// prune moves jobs to the former ones, and drops those that ended a quarter of an hour ago.
func (s *Story) prune() {
	m := &s.memory
	m.Former = slices.DeleteFunc(slices.Clone(m.Former), func(r cluster.Record) bool { return s.now.Sub(r.Done) > 15*cluster.Minute })
	m.Part(s.now)
}

func (s *Story) statuses() []cluster.JobStatus {
	var all []cluster.JobStatus
	for _, r := range s.memory.Records {
		if r.Done != 0 {
			continue
		}
		j := s.jobs[r.Key]
		v := cluster.JobStatus{Job: r.Key, Rho: cluster.RhoOf(r.Work(s.now))}
		v.Reason = cluster.Reason{Code: cluster.ReasonHolding, Pool: j.Request.Model, Need: j.Request.Size.Count(), Rho: v.Rho}
		if j.State == cluster.Waiting {
			v.Reason.Code, v.Reason.Other = cluster.ReasonBehind, "bio"
			v.Reason.Behind, v.Reason.OtherBehind = s.now.Sub(r.First)/10, s.now.Sub(r.First)/5
			v.Reason.Until = (s.now - s.now%cluster.Instant(s.Term)).Add(s.Term)
		}
		all = append(all, v)
	}
	return all
}

// bound lists every third running job. Some of them save once a term.
func (s *Story) bound() []cluster.BoundJob {
	var all []cluster.BoundJob
	for _, key := range slices.Sorted(slices.Values(s.runs)) {
		if j := s.jobs[key]; key%3 == 0 {
			b := cluster.BoundJob{Job: key, Way: cluster.WayAge, Pool: j.Request.Model, GPUs: j.Request.Size.Count(), Since: j.Start}
			switch {
			case key%2 == 0:
				b.Way, b.Until = cluster.WayNoRequeue, j.Start.Add(j.Limit)
			case key%5 == 0: // it has saved
				b.Way, b.Since = cluster.WaySaves, s.now-s.now%cluster.Instant(s.Term)
			}
			all = append(all, b)
		}
	}
	return all
}

func (s *Story) standings() []cluster.TenantStatus {
	holds := map[[2]string]cluster.GPUCount{}
	waits := map[[2]string]int{}
	for _, key := range s.runs {
		j := s.jobs[key]
		holds[[2]string{j.Account, j.Request.Model}] += j.Request.Size.Count()
	}
	for _, key := range s.queue {
		j := s.jobs[key]
		waits[[2]string{j.Account, j.Request.Model}]++
	}
	var all []cluster.TenantStatus
	for _, t := range s.memory.Ledger.Tenants {
		at := [2]string{t.Tenant, t.Pool}
		st := cluster.TenantStatus{
			Tenant: t.Tenant, Pool: t.Pool, Weight: int64(1 + slices.Index(storyTenants, t.Tenant)),
			Base: t.Base, Entitlement: t.Entitlement, Demand: t.Demand, Holds: holds[at], Waiting: waits[at],
			Deficit: t.Deficit, Rho: cluster.RhoOf(t.Alloc, t.Due), RhoAll: cluster.RhoOf(t.Alloc, t.Due),
		}
		if over := cluster.MicroGPU(st.Holds) - st.Entitlement; over > 0 {
			st.Borrowed = over
		} else {
			st.Lent = -over
		}
		all = append(all, st)
	}
	return all
}

// copyMemory gives a copy that later rounds do not modify.
func (s *Story) copyMemory() cluster.State {
	m := s.memory
	m.Records = slices.Clone(m.Records)
	m.Leases = slices.Clone(m.Leases)
	m.Claims = slices.Clone(m.Claims)
	m.Lost = slices.Clone(m.Lost)
	m.Ledger.Tenants = slices.Clone(m.Ledger.Tenants)
	m.Ledger.Pools = slices.Clone(m.Ledger.Pools)
	return m
}
