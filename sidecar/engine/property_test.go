package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// chaos is a random cluster under random load.
type chaos struct {
	*rapid.T
	world *simtest.World
	nodes []cluster.Node
	ids   []cluster.JobID
	// comment makes up a job's comment; nil = no comments.
	comment func() string
	// users and qos are those of the jobs; nil = all jobs are alike.
	users, qos []string
	// By node, the time from which a grant can rely on its GPUs; see uncertain.
	sure map[string]cluster.Instant
	// unequal is true once jobs had unequal turns on a GPU.
	unequal bool
}

func newChaos(t *rapid.T, tb testing.TB) *chaos { return newChaosOn(t, tb, drawNodes) }

// drawNodes draws nodes of two models.
func drawNodes(t *rapid.T) []cluster.Node {
	nodes := simtest.Nodes("a", "v100", rapid.IntRange(1, 3).Draw(t, "v100"), rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "size"))
	return append(nodes, simtest.Nodes("b", "k80", rapid.IntRange(0, 2).Draw(t, "k80"), 4)...)
}

func newChaosOn(t *rapid.T, tb testing.TB, draw func(*rapid.T) []cluster.Node) *chaos {
	set := simtest.Product()
	set.Term = rapid.SampledFrom([]cluster.Span{10, 15, 30}).Draw(t, "term") * cluster.Minute
	set.MinLease = rapid.SampledFrom([]cluster.Span{1, 3, 5}).Draw(t, "min") * cluster.Minute
	set.Notice = rapid.SampledFrom([]cluster.Span{0, 1}).Draw(t, "notice") * cluster.Minute
	set.Threshold = rapid.SampledFrom([]cluster.Span{0, 1}).Draw(t, "threshold") * cluster.Minute
	set.MaxReclaims = rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "reclaims")
	set.RhoSelect = rapid.SampledFrom([]int{8, 16}).Draw(t, "select")
	set.BurstMaxMilli = rapid.SampledFrom([]int64{0, 1000, 2000}).Draw(t, "burst")
	set.RecallFirst = rapid.Bool().Draw(t, "recall")
	set.RecallNotice = rapid.SampledFrom([]cluster.Span{0, set.Notice / 4, set.Notice}).Draw(t, "recall notice")
	nodes := draw(t)
	if shards := rapid.SampledFrom([]int{0, 0, 2, 4}).Draw(t, "shards"); shards > 0 {
		for i := range nodes {
			nodes[i].Shards = shards
		}
		set.Across = rapid.SampledFrom([]cluster.Across{cluster.AnyUser, cluster.SameTenant, cluster.SameUser}).Draw(t, "across")
		if rapid.Bool().Draw(t, "slices") {
			set.Slices = &cluster.Slices{Quantum: cluster.Minute, Memory: []cluster.GPUMemory{{Model: "k80", Bytes: 12 << 30}, {Model: "v100", Bytes: 32 << 30}}}
		}
	}
	tenants := []string{"x", "y", "z"}[:rapid.IntRange(1, 3).Draw(t, "tenants")]
	c := &chaos{T: t, nodes: nodes, world: simtest.New(tb, set, nodes, tenants...), sure: map[string]cluster.Instant{}}
	if rapid.Bool().Draw(t, "licence") {
		c.world.License = 1_000_000
	}
	c.world.Completing = rapid.SampledFrom([]cluster.Span{0, 3, 25}).Draw(t, "completing") * cluster.Second
	c.world.History = rapid.Bool().Draw(t, "history")
	for _, name := range tenants {
		c.world.SetShares(name, rapid.SampledFrom([]int64{0, 1, 1, 3}).Draw(t, "shares"))
	}
	return c
}

// stir causes one random event.
func (c *chaos) stir() {
	switch rapid.IntRange(0, 9).Draw(c.T, "event") {
	case 0, 1, 2, 3:
		c.submit()
	case 4:
		c.world.Cancel(rapid.SampledFrom(c.ids).Draw(c.T, "cancel"))
	case 5:
		c.world.Requeue(rapid.SampledFrom(c.ids).Draw(c.T, "requeue"))
	case 6:
		n := rapid.SampledFrom(c.nodes).Draw(c.T, "node").Name
		c.world.SetNode(n, rapid.SampledFrom([]string{"", "down"}).Draw(c.T, "bad"))
	case 7:
		c.world.Hold(rapid.SampledFrom(c.ids).Draw(c.T, "hold"), rapid.Bool().Draw(c.T, "held"))
	}
}

func (c *chaos) submit() {
	gpus := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 4, 8}).Draw(c.T, "gpus")
	req := simtest.Gang(gpus)
	if gpus > 1 && rapid.IntRange(0, 3).Draw(c.T, "spread") == 0 {
		req.PerNode = 0 // --gpus=n
	}
	if rapid.IntRange(0, 3).Draw(c.T, "typed") == 0 {
		req.Model = rapid.SampledFrom([]string{"v100", "k80"}).Draw(c.T, "model")
	}
	tenant := rapid.SampledFrom([]string{"x", "y", "z", "stranger"}).Draw(c.T, "tenant")
	work := sim.Work{User: "u", Account: tenant, Partition: "gpu", Request: req,
		Runs:        cluster.Span(rapid.IntRange(1, 120).Draw(c.T, "minutes")) * cluster.Minute,
		NoRequeue:   rapid.IntRange(0, 7).Draw(c.T, "norequeue") == 0,
		Interactive: rapid.IntRange(0, 9).Draw(c.T, "interactive") == 0,
	}
	if rapid.IntRange(0, 9).Draw(c.T, "loose") == 0 {
		work.Request.Unplaceable = cluster.Contiguous
	}
	if of := c.nodes[0].Shards; of > 0 && c.world.Rules.Cells == nil && rapid.IntRange(0, 2).Draw(c.T, "part") == 0 {
		work.Request = simtest.Shard(rapid.IntRange(1, of+1).Draw(c.T, "of a GPU"), of)
	}
	switch {
	case c.comment != nil:
		work.Comment = c.comment()
	case c.world.Settings.Slices != nil && rapid.Bool().Draw(c.T, "shares"):
		work.Comment = "share=yes,mem.v100=4g,mem.k80=4g"
	}
	if c.users != nil {
		work.User = rapid.SampledFrom(c.users).Draw(c.T, "user")
	}
	if c.qos != nil {
		work.QOS = rapid.SampledFrom(c.qos).Draw(c.T, "QOS")
	}
	if rapid.IntRange(0, 5).Draw(c.T, "array") == 0 {
		c.ids = append(c.ids, c.world.SubmitArray(work, 3)...)
		return
	}
	c.ids = append(c.ids, c.world.Virtual.Submit(work))
}

// share lets three users of each tenant share equally, or not.
func (c *chaos) share() {
	if rapid.Bool().Draw(c.T, "users share") {
		c.world.Settings.Users, c.users = cluster.UsersEqual, []string{"alice", "bob", "carol"}
	}
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaos(rt, t)
		c.share()
		c.submit()
		c.world.Check = func(r loop.Report) {
			c.safe(&r.Plan)
			for _, a := range r.Plan.Actions {
				if a.Verb == cluster.Reclaim && c.world.Completing == 0 {
					return // it waits again already
				}
			}
			if set := c.world.Settings; set.RecallFirst && set.MaxReclaims > 0 {
				return // a job that could not recall in this round may in the next
			}
			c.settled()
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			c.stir()
			c.world.Run(cluster.Span(rapid.IntRange(1, 300).Draw(rt, "seconds")) * cluster.Second)
			c.balanced()
		}
	})
}

// divide lets a preset divide the GPU models, between jobs that declare speeds of all sorts.
func (c *chaos) divide(by string) {
	c.world.Settings.Divide, c.world.Settings.DivideJobs = by, preset.OfJobs(by)
	c.world.Settings.DivideEvery = rapid.SampledFrom([]int64{0, 1, 20}).Draw(c.T, "every")
	c.world.Reports = rapid.SampledFrom([]cluster.Span{0, 1, 5}).Draw(c.T, "reports") * cluster.Minute
	shares := ""
	if s := c.world.Settings.Slices; s != nil {
		s.Pairs, shares = rapid.Bool().Draw(c.T, "pairs"), ",share=yes,mem.v100=4g,mem.k80=4g"
		for _, own := range []string{"a", "b"} {
			for _, with := range []string{"", "a", "b"} {
				c.world.Rules.Profiles = append(c.world.Rules.Profiles, known(own, with, rapid.SampledFrom([]float64{0.4, 0.7, 1}).Draw(c.T, "rate")))
			}
		}
	}
	c.comment = func() string {
		return fmt.Sprintf("kind=%s,steps/s.v100=%s,steps/s.k80=%s", rapid.SampledFrom([]string{"a", "b", ""}).Draw(c.T, "kind"),
			rapid.SampledFrom([]string{"1", "6", "0", "1e9", "1e-9", "NaN", "-1", ""}).Draw(c.T, "fast"), rapid.SampledFrom([]string{"1", "1e9", "0", "x"}).Draw(c.T, "slow")) +
			rapid.SampledFrom([]string{"", shares}).Draw(c.T, "shares")
	}
}

// The same chaos applies when a policy allocates the pools, whatever types jobs declare.
func TestPropertiesDivided(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChaos(rt, t)
		c.share()
		c.divide(rapid.SampledFrom(preset.Dividing()).Draw(rt, "preset"))
		c.world.Settings.Mechanism = rapid.SampledFrom(cluster.Mechanisms).Draw(rt, "mechanism")
		c.submit()
		c.world.Check = func(r loop.Report) {
			c.safe(&r.Plan)
			if d := r.Plan.State.Allocation; d != nil {
				c.divided(d)
			}
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			c.stir()
			c.world.Run(cluster.Span(rapid.IntRange(1, 900).Draw(rt, "seconds")) * cluster.Second)
			c.balanced()
		}
	})
}

// divided checks that allocations are not negative, and that their sum is at most the GPUs that a pool ever
// had.
func (c *chaos) divided(d *cluster.Allocation) {
	for p, pool := range d.Pools {
		there := 0
		for _, n := range c.nodes {
			if n.GPUs[0].Model == pool {
				there += n.GPUs[0].Count
			}
		}
		var due cluster.MicroGPU
		for _, part := range d.Parts {
			if part.GPUs[p] < 0 {
				c.Fatalf("%s is due %d of %s", part.Party, part.GPUs[p], pool)
			}
			due += part.GPUs[p]
		}
		if due > cluster.MicroGPU(there)*cluster.WholeGPU+cluster.MicroGPU(len(d.Parts)) {
			c.Fatalf("%d of %d %s are due: %+v", due, there, pool, d)
		}
	}
}

// safe checks the invariants of every plan.
func (c *chaos) safe(p *cluster.Plan) {
	type place struct{ node, model string }
	c.uncertain(p)
	leased := map[place]int{}
	parts := map[place]cluster.MicroGPU{}
	holders, leaving := map[cluster.JobKey]bool{}, map[cluster.JobKey]bool{}
	for _, l := range p.State.Leases {
		if holders[l.Job] {
			c.Fatalf("job %d is leased twice", l.Job)
		}
		holders[l.Job] = true
		leaving[l.Job] = (c.world.Settings.Divides() || c.world.Settings.CompactPercent > 0) && (l.State == cluster.Noticed || l.State == cluster.Ending)
		total, model := 0, ""
		for _, h := range l.Nodes {
			total += h.Size.Devices
			if model != "" && h.Model != model {
				c.Fatalf("job %d has a lease on %s and %s", l.Job, model, h.Model)
			}
			model = h.Model
			// Otherwise its GPUs are being handed over, or other jobs may have them.
			if l.State != cluster.Ending && recordOf(p, l.Job).State != cluster.Completing &&
				(l.State != cluster.Granted || l.Granted >= c.sure[h.Node]) {
				if h.Size.IsWhole() {
					leased[place{h.Node, h.Model}] += h.Size.Devices
				} else {
					parts[place{h.Node, h.Model}] += h.Size.Part
				}
			}
		}
		if total != l.Size.Devices {
			c.Fatalf("job %d: lease of %d GPUs on %d", l.Job, l.Size.Devices, total)
		}
		for r := range p.State.All() {
			if r.Key == l.Job && c.world.Job(r.ID).Request.Size.Devices != total {
				c.Fatalf("job %d: a gang of %d got %d GPUs", l.Job, c.world.Job(r.ID).Request.Size.Devices, total)
			}
		}
	}
	claimed := map[cluster.JobKey]bool{}
	for _, cl := range p.State.Claims {
		if claimed[cl.Job] || holders[cl.Job] && !leaving[cl.Job] { // a leaving job may move to other GPUs
			c.Fatalf("job %d has a second claim, or a claim beside its lease\n%s", cl.Job, encode(*p))
		}
		claimed[cl.Job] = true
	}
	acted := map[cluster.JobKey]cluster.Verb{}
	told, fences := false, 0
	for _, a := range p.Actions {
		told = told || a.Verb == cluster.Notify
		if a.Verb == cluster.Reserve && a.Reservation == cluster.ReservationPrefix+"next" {
			if fences++; told || fences > 1 {
				c.Fatalf("a fence after a notice, or a second one\n%s", encode(*p))
			}
		}
		if was := acted[a.Job]; a.Job != 0 && was != "" {
			c.Fatalf("job %d has two actions in one round, %s and %s: a step that lists one must leave out jobs that have another\n%s", a.Job, was, a.Verb, encode(*p))
		}
		acted[a.Job] = a.Verb
	}
	for _, n := range c.nodes {
		if at := (place{n.Name, n.GPUs[0].Model}); leased[at]+parts[at].Devices() > n.GPUs[0].Count {
			c.Fatalf("%d GPUs and parts of %d leased on %s, which has %d\n%s", leased[at], parts[at].Devices(), n.Name, n.GPUs[0].Count, encode(*p))
		}
	}
}

// uncertain notes the nodes whose GPUs Slurm assigns itself, perhaps differently from grants made until now.
// Slurm splits a gang that gave no GPUs per node (--gpus=n), and the split is visible only when it runs.
// Also, a job that Slurm started without a lease when its gate expired is visible in the next round.
func (c *chaos) uncertain(p *cluster.Plan) {
	for _, l := range p.State.Leases {
		at := cluster.Instant(0)
		switch {
		case l.State == cluster.Granted && len(l.Nodes) > 1 && c.world.Job(recordOf(p, l.Job).ID).Request.PerNode == 0:
			at = p.At + 1
		case l.Adopted && l.Granted == p.At:
			at = p.At
		}
		for _, h := range l.Nodes {
			c.sure[h.Node] = max(c.sure[h.Node], at)
		}
	}
}

// settled checks that a second decision right after acting changes nothing. It also checks that the order of
// the input does not matter, and that no waiting job fits idle GPUs. It skips rounds in which Slurm splits a
// gang's GPUs, which the next round sees. Jobs of a virtual cluster may change cells when these are rebuilt,
// and its fence follows them once.
func (c *chaos) settled() {
	for _, at := range c.sure {
		if at > c.world.Last.At {
			return
		}
	}
	snap, plan, err := c.world.Loop.Preview(context.Background())
	fences := func(a cluster.Action) bool { // that of hand-overs takes a node in when the job that started there runs
		return a.Reason.Code == cluster.ReasonFence || a.Verb == cluster.Reserve && a.Reason.Code == cluster.ReasonHandOver
	}
	overtaken := func(l cluster.Lease) bool { return strings.HasSuffix(l.Why, "first") } // by a job that started after the actions
	if err == nil && (slices.ContainsFunc(plan.Actions, fences) || slices.ContainsFunc(plan.Ended, overtaken)) {
		if _, err = c.world.Loop.Turn(context.Background()); err == nil {
			snap, plan, err = c.world.Loop.Preview(context.Background())
		}
	}
	if err != nil {
		c.Fatal(err)
	}
	for _, a := range plan.Actions {
		relocks := a.Verb == cluster.Gate && c.world.Job(a.ID).State == cluster.Running                          // it has just started, and gets the licence back
		if a.Verb != cluster.Release && a.Verb != cluster.Unreserve && !relocks && !c.world.Settings.Divides() { // a new division may ask for more
			c.Fatalf("deciding again right after acting wants: %+v", a)
		}
	}
	c.shuffled(&snap, &plan)
	c.conserving(&snap, &plan)
	c.kept(&snap)
}

// kept checks that jobs without gates cannot have GPUs that are handed over soon, from the notice of the jobs that
// hold them on. A node on which another job is about to start may be fenced later.
func (c *chaos) kept(snap *cluster.Snapshot) {
	reserved, starts := map[string]bool{}, map[string]bool{}
	for _, r := range snap.Reservations {
		for _, n := range r.Nodes {
			reserved[n] = reserved[n] || r.Ours
		}
	}
	noticed := map[string]bool{}
	for _, l := range snap.Leases {
		for _, h := range l.Nodes {
			starts[h.Node] = starts[h.Node] || l.State == cluster.Granted
			noticed[h.Node] = noticed[h.Node] || l.State == cluster.Noticed
		}
	}
	for _, cl := range snap.Claims {
		soon := cl.At.Sub(snap.Now) <= snap.Settings.Notice && cl.At >= snap.Now && !cl.Gathers
		for _, h := range cl.Nodes {
			if soon && noticed[h.Node] && !starts[h.Node] && !reserved[h.Node] {
				c.Fatalf("job %d has a claim on %s, where jobs have their notice, and nothing keeps others off", cl.Job, h.Node)
			}
		}
	}
}

func (c *chaos) shuffled(snap *cluster.Snapshot, plan *cluster.Plan) {
	seen := cluster.Observation{Now: snap.Now, Reservations: snap.Reservations, License: snap.License, Progress: snap.Progress}
	for i := range snap.Nodes {
		seen.Nodes = append([]cluster.Node{snap.Nodes[i]}, seen.Nodes...)
	}
	for _, t := range snap.Tenants {
		seen.Accounts = append([]cluster.Account{{Name: t.Name, Parent: "root"}}, seen.Accounts...)
	}
	weights := map[string]int64{}
	for _, t := range snap.Tenants {
		weights[t.Name] = t.Weight
	}
	m := cluster.State{Round: snap.Round - 1, NextKey: snap.NextKey, Ledger: snap.Ledger, Leases: snap.Leases, Claims: snap.Claims, Lost: snap.Lost, Lent: snap.Lent, CellTrades: snap.CellTrades,
		Former: snap.Former, Parties: snap.Parties, Allocation: snap.Allocation, Profiles: snap.Profiles, Paces: snap.Paces,
		Completions: snap.Completions, Usages: snap.Usages, Habits: snap.Habits, Causes: snap.Causes, Noise: snap.Noise, Stops: snap.Stops, Shadow: snap.Shadow, Breaker: snap.Breaker, NodeSpeeds: snap.NodeSpeeds}
	for i := range snap.Cases {
		m.Records = append(m.Records, snap.Cases[i].Record)
		if !snap.Cases[i].Gone {
			seen.Jobs = append([]cluster.Job{snap.Cases[i].Job}, seen.Jobs...)
		}
	}
	rules := c.world.Rules
	rules.Weights = weights
	again, err := loop.Remember(m, seen, nil, rules, snap.Settings)
	if err != nil {
		c.Fatal(err)
	}
	again.Cases = snap.Cases[:len(snap.Cases):len(snap.Cases)]
	if len(again.Nodes) != len(snap.Nodes) {
		c.Fatal("nodes lost")
	}
	if a, b := encode(c.world.Loop.Decide(again)), encode(*plan); a != b {
		c.Fatalf("shuffled input gives another plan:\n%s\n%s", a, b)
	}
}

func encode(p any) string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// conserving checks that no waiting job fits on one node's idle GPUs.
func (c *chaos) conserving(snap *cluster.Snapshot, p *cluster.Plan) {
	idle := map[string]int{}
	for _, n := range snap.Nodes {
		if n.Bad == "" && n.Busy == "" {
			idle[n.Name] = n.GPUs[0].Count
		}
	}
	leases := map[cluster.JobKey]cluster.Lease{}
	for _, l := range p.State.Leases {
		leases[l.Job] = l
	}
	for i := range snap.Cases {
		cs := &snap.Cases[i]
		holds := cs.Job.Holds
		if l, ok := leases[cs.Record.Key]; ok && l.State == cluster.Granted {
			holds = l.Nodes
		} else if cs.Gone || cs.Job.State == cluster.Done {
			holds = nil
		}
		for _, h := range holds {
			idle[h.Node] -= h.Size.Devices
		}
	}
	for _, cl := range p.State.Claims {
		for _, h := range cl.Nodes {
			delete(idle, h.Node)
		}
	}
	for i, v := range p.Statuses {
		switch v.Reason.Code {
		case cluster.ReasonBehind, cluster.ReasonShape, cluster.ReasonBurst, cluster.ReasonLimit,
			cluster.ReasonThreshold, cluster.ReasonClaimed, cluster.ReasonCells, cluster.ReasonLost:
		default:
			continue
		}
		j := c.world.Job(recordOf(p, v.Job).ID)
		if snap.Cells != nil && (!j.Requeueable || !j.Batch || j.Request.Loose()) {
			continue // only GPUs that could be recalled are lent
		}
		if j.Request.Shards > 0 && snap.Settings.Across != cluster.AnyUser {
			continue // a GPU with room and a job of somebody else keeps it off a node
		}
		for _, n := range snap.Nodes {
			if j.Request.Model != "" && j.Request.Model != n.GPUs[0].Model || slices.Contains(recordOf(p, v.Job).AvoidNodes, n.Name) {
				continue
			}
			if free, ok := idle[n.Name]; ok && free >= j.Request.Size.Devices {
				c.Fatalf("job %s waits (%+v) though %s has %d idle GPUs\n%s", j.ID, p.Statuses[i].Reason, n.Name, free, encode(*p))
			}
		}
	}
}

func recordOf(p *cluster.Plan, key cluster.JobKey) cluster.Record {
	for r := range p.State.All() {
		if r.Key == key {
			return *r
		}
	}
	panic(fmt.Sprint("no record of job ", key))
}

// balanced checks the books to the GPU-millisecond.
func (c *chaos) balanced() {
	l := &c.world.Last.State.Ledger
	for _, p := range l.Pools {
		if sum := p.Tenants + p.Untouchable + p.Overhead + p.Idle + p.Bad; sum != p.Capacity {
			c.Fatalf("pool %s: %d GPU-ms booked of %d", p.Pool, sum, p.Capacity)
		}
		if p.Idle < 0 || p.Bad < 0 || p.Overhead < 0 {
			c.Fatalf("pool %s: negative time: %+v", p.Pool, p)
		}
		var tenants cluster.GPUTime
		for _, t := range l.Tenants {
			if t.Pool == p.Pool {
				tenants += t.Alloc
			}
		}
		if tenants != p.Tenants {
			c.Fatalf("pool %s: tenants have %d GPU-ms, the pool says %d", p.Pool, tenants, p.Tenants)
		}
	}
	var jobs, held cluster.GPUTime
	for r := range c.world.Last.State.All() {
		jobs += r.Alloc
	}
	for _, id := range c.ids {
		held += c.world.Received(id)
	}
	// Where turns are not equal, jobs are charged for more or less than their shards. Without the history, a run between two rounds is missed. After an hour, finished jobs are forgotten.
	if c.world.History && jobs != held && !c.unequal && c.world.Now() < simtest.Start.Add(cluster.Hour) {
		c.Fatalf("jobs were charged %d GPU-ms and held %d", jobs, held)
	}
}
