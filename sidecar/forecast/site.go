package forecast

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/expect"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// site is what all runs start from. It is not modified by a run. All GPUs in it are in units: equal parts of a GPU.
type site struct {
	set     *cluster.Settings
	sharing sharing
	now     cluster.Instant
	rule    stop.Rule
	pools   []string
	nodes   []node
	at      map[string][]int32 // nodes by name
	groups  []group
	inPool  []uint64 // groups of nodes, by pool
	largest []int32  // GPUs of a node, by pool
	tenants []tenant
	named   map[string]int32 // tenants by name
	shapes  []shape
	jobs    []job // of the snapshot that may run, or run
	reserve []cluster.Reservation
	orders  cluster.Overrides
	stops   []float64 // by pool: budget for stops, unit-ms
	habits  map[cluster.JobType]*cluster.Habit
	needs   map[[3]cluster.JobType]*ranks
	// paces is how fast jobs are, by the groups of their run times that are narrower than a tenant.
	paces  map[string]*pace
	rules  *engine.Rules
	quotas []quota // by job.quota; the first is empty
	inUse  []int64 // by engine.Need.Limit, without jobs
}

// pace is how fast jobs of a type are, by pool: relative to the reference model.
type pace []float64

// node is the GPUs of one model on a machine.
type node struct {
	name   string
	pool   int32
	group  int32
	size   int32
	shared bool // jobs can have equal parts of the shards of a GPU, in turns
}

// group is nodes of one model in the same partitions.
type group struct {
	model      string
	partitions []string
}

// tenant is a tenant's part of each pool.
type tenant struct {
	name   string
	shares []share
	boost  bool
}

// share is a tenant's account in a pool.
type share struct {
	entitled, own float64 // units
	deficit       float64 // unit-ms
}

// shape is what placement knows of a job.
type shape struct {
	gpus, nodes, perNode int32 // nodes: at least; perNode 0 = any split
	step                 int32 // it takes multiples of that on each node: whole GPUs, or its part of one
	most                 int32 // nodes at most; 0 = any
	groups               uint64
	turns                uint64 // pools in which it may take turns on a GPU
}

// ranks is the turn of a job by the class of GPU time that it has received.
type ranks [expect.Classes]uint8

// manner is how a job saves.
type manner struct {
	saving cluster.Saving
	begin  cluster.Span
}

// job is a job of the snapshot, or one that may arrive.
type job struct {
	key      cluster.JobKey
	user     string
	tenant   int32
	shape    int32
	quota    int32 // its use of Slurm's limits
	gpus     int32
	urgent   bool
	fixed    bool // it is never stopped
	alone    bool // no lease: fairlease leaves it alone
	running  bool
	served   bool
	first    cluster.Instant // when it becomes eligible
	start    cluster.Instant // of the present attempt
	limit    cluster.Span    // of its work, by the limit of its run time; 0 = none
	ran      cluster.Span    // useful work so far, as time on the reference model
	began    cluster.Span    // run time of earlier attempts
	spent    cluster.Span
	known    cluster.Span // its run time; 0 = it is drawn
	due      float64      // unit-ms, less what it received
	received float64      // unit-ms
	holds    []hold
	held     int32 // GPUs of these
	half     bool  // it takes turns on its GPU, or did before its partner left
	mate     int32 // the next of the jobs on its GPU, in a ring; -1 = it takes no turns
	manner   manner
	order    *ranks
	pace     *pace         // nil = as fast on every model
	like     [levels]int32 // groups of run times, the closest first; -1 = none
}

// hold is the GPUs of a job on a node.
type hold struct{ node, gpus int32 }

// mostGroups is the number of groups of nodes that jobs tell apart; the rest count as the last.
const mostGroups = 64

// survey reads a snapshot and its plan.
func survey(snap *cluster.Snapshot, plan *cluster.Plan) *site {
	s := &site{set: &snap.Settings, sharing: sharingOf(snap), now: snap.Now, at: map[string][]int32{}, named: map[string]int32{},
		rule:   stop.Rule{Allowance: snap.Settings.StopAllowance, OverheadMilli: snap.Settings.StopOverheadMilli},
		habits: map[cluster.JobType]*cluster.Habit{}, rules: engine.RulesOf(*snap), quotas: []quota{nil}, needs: map[[3]cluster.JobType]*ranks{}, paces: map[string]*pace{}}
	for i := range snap.Habits {
		s.habits[snap.Habits[i].Type] = &snap.Habits[i]
	}
	s.reserve = slices.DeleteFunc(slices.Clone(snap.Reservations), func(r cluster.Reservation) bool { return r.Ours })
	s.addNodes(snap.Nodes)
	s.addTenants(snap, plan)
	return s
}

func (s *site) addNodes(nodes []cluster.Node) {
	seen := map[string]int32{}
	for i := range nodes {
		n := &nodes[i]
		for _, g := range n.GPUs {
			if n.Bad != "" || g.Count == 0 {
				continue
			}
			parts := slices.Sorted(slices.Values(n.Partitions))
			key := g.Model + "\x00" + strings.Join(parts, "\x00")
			at, ok := seen[key]
			if !ok {
				if at = int32(len(s.groups)); at == mostGroups {
					at--
				} else {
					s.groups = append(s.groups, group{g.Model, parts})
				}
				seen[key] = at
			}
			pool := slices.Index(s.pools, g.Model)
			if pool < 0 {
				pool, s.pools, s.inPool = len(s.pools), append(s.pools, g.Model), append(s.inPool, 0)
				s.largest = append(s.largest, 0)
			}
			s.inPool[pool] |= 1 << at
			s.largest[pool] = max(s.largest[pool], int32(g.Count)*s.sharing.unit)
			s.at[n.Name] = append(s.at[n.Name], int32(len(s.nodes)))
			s.nodes = append(s.nodes, node{n.Name, int32(pool), at, int32(g.Count) * s.sharing.unit, n.Shards > 0 && s.set.Slices != nil && s.set.Slices.Shards(n) > 0})
		}
	}
}

func (s *site) addTenants(snap *cluster.Snapshot, plan *cluster.Plan) {
	for i := range snap.Tenants {
		s.named[snap.Tenants[i].Name] = int32(len(s.tenants))
		s.tenants = append(s.tenants, tenant{name: snap.Tenants[i].Name, shares: make([]share, len(s.pools))})
	}
	ledger := &plan.State.Ledger
	for i := range ledger.Tenants {
		r := &ledger.Tenants[i]
		t, ok := s.named[r.Tenant]
		p := slices.Index(s.pools, r.Pool)
		if !ok || p < 0 {
			continue
		}
		s.tenants[t].shares[p] = share{s.sharing.of(r.Entitlement), s.sharing.of(r.Own()), float64(r.Deficit) * float64(s.sharing.unit)}
	}
	s.stops = make([]float64, len(s.pools))
	for i := range ledger.Pools {
		if p := slices.Index(s.pools, ledger.Pools[i].Pool); p >= 0 {
			s.stops[p] = float64(ledger.Pools[i].Stops) * float64(s.sharing.unit)
		}
	}
	s.orders = cluster.OverridesOf(snap.Overrides, snap.Now)
	for _, o := range snap.Overrides {
		if t, ok := s.named[o.Name]; ok && o.Kind == cluster.Boost && o.Scope == "tenant" {
			s.tenants[t].boost = true
		}
	}
}

// ordered tells whether an administrator's order of a kind counts for a job.
func (s *site) ordered(r *cluster.Record, kind cluster.OverrideKind) bool {
	o, boosted := s.orders.Of(r)
	if kind == cluster.Boost {
		return boosted
	}
	return o != nil && o.Kind == kind
}

// shapeOf interns the shape of a request in partitions; false = no node could ever serve it. A job of a pace runs only on models where
// that is above 0.
func (s *site) shapeOf(r *cluster.Request, partitions []string, pace *pace, turns uint64) (int32, bool) {
	x := shape{turns: turns, gpus: s.sharing.units(r.Size), step: s.sharing.unit, nodes: int32(max(r.Nodes, 1)), perNode: int32(r.PerNode) * s.sharing.unit, most: int32(r.MaxNodes)}
	if !r.Size.IsWhole() {
		x.step = x.gpus
	}
	for g := range s.groups {
		of := &s.groups[g]
		in := slices.ContainsFunc(partitions, func(p string) bool { return slices.Contains(of.partitions, p) })
		runs := pace == nil || (*pace)[slices.Index(s.pools, of.model)] > 0
		if in && runs && (r.Model == "" || strings.EqualFold(r.Model, of.model)) {
			x.groups |= 1 << g
		}
	}
	if x.groups == 0 || r.Size.Devices == 0 || !r.Leasable() {
		return 0, false
	}
	at := slices.Index(s.shapes, x)
	if at < 0 {
		at, s.shapes = len(s.shapes), append(s.shapes, x)
	}
	return int32(at), true
}

// strangers is as in package budget: the number of jobs as which everybody's weigh.
const strangers = 3

// order gives the turns of a job by what it has received; nil = the settings order by rho.
func (s *site) order(j *cluster.Job) *ranks {
	switch s.set.JobOrder {
	case cluster.ByAttained:
		var out ranks
		for class := range out {
			seconds := int64(1) << ((class + 1) / 2) * 60
			out[class] = uint8(bits.Len64(uint64(seconds * 1000 / int64(max(s.set.Term, 1)))))
		}
		return &out
	case cluster.ByExpected:
	default:
		return nil
	}
	like := [3]cluster.JobType{{}, {User: j.User, GPUs: j.Request.Size.Devices}, {GPUs: j.Request.Size.Devices}}
	if t, ok := cluster.TypeOf(j); ok {
		like[0] = t
	}
	if known := s.needs[like]; known != nil {
		return known
	}
	var sum expect.Sum
	for k, g := range like {
		most := int64(0)
		if k == len(like)-1 {
			most = strangers
		}
		if h := s.habits[g]; h != nil && g.GPUs > 0 && (k == 0 || g != like[k-1]) {
			sum.Add(h.Needed, most)
		}
	}
	out := &ranks{}
	for class := range out {
		out[class] = uint8(bits.Len64(uint64(sum.Next(class) * 1000 / 1000)))
	}
	s.needs[like] = out
	return out
}

// addJobs adds the jobs of a snapshot that run or may run. It returns, by key, why the others have no forecast: so jobs that
// Slurm's own rules do not let start, however many others end.
func (s *site) addJobs(snap *cluster.Snapshot, plan *cluster.Plan, h *history) map[cluster.JobKey]string {
	none := map[cluster.JobKey]string{}
	records := plan.State.Records
	forbidden := map[cluster.JobKey]string{}
	for i := range plan.Statuses {
		if v := &plan.Statuses[i]; v.Reason.Code == cluster.ReasonRule {
			forbidden[v.Job] = v.Reason.Note
		}
	}
	speedups := engine.SpeedupsOf(*snap)
	paces := map[*profile.Speedup]*pace{} // of jobs of a type
	for i := range snap.Cases {
		c := &snap.Cases[i]
		x, r := &c.Job, &c.Record
		if k, ok := slices.BinarySearchFunc(records, r.Key, func(r cluster.Record, key cluster.JobKey) int { return cmp.Compare(r.Key, key) }); ok {
			r = &records[k]
		}
		if c.Gone || x.State == cluster.Done || x.Request.Size.Devices == 0 && len(x.Holds) == 0 {
			continue
		}
		quota, rule := s.quotaOf(x)
		if quota == 0 {
			rule = cmp.Or(rule, forbidden[r.Key])
		}
		if rule != "" {
			none[r.Key] = notBefore(rule)
			continue
		}
		var p *pace
		if list := speedups[i]; len(list) > 0 {
			if p = paces[&list[0]]; p == nil {
				p = s.paceOf(list)
				paces[&list[0]] = p
			}
		}
		if why := s.addJob(c, r, snap, h, p, quota); why != "" {
			none[r.Key] = why
		}
	}
	return none
}

// paceOf gives speedups by the site's pools.
func (s *site) paceOf(list []profile.Speedup) *pace {
	out := make(pace, len(s.pools))
	for p := range out {
		out[p] = 1
		if i := slices.IndexFunc(list, func(x profile.Speedup) bool { return x.Model == s.pools[p] }); i >= 0 {
			out[p] = list[i].Value
		}
	}
	return &out
}

// paceLike gives the pace of a job that is not there yet: that of the closest jobs which are, of its type or its user; nil = it is unknown.
func (s *site) paceLike(k kind) *pace {
	for _, key := range k.own() {
		if p := s.paces[key]; p != nil {
			return p
		}
	}
	return nil
}

// on gives how fast a job is in a pool.
func (j *job) on(pool int32) float64 {
	if j.pace == nil {
		return 1
	}
	return (*j.pace)[pool]
}

// limited sets the bound of a job's work by its time limit, as fast as it is on average on the GPUs that it may use.
func (s *site) limited(j *job, limit cluster.Span) {
	j.limit = limit
	if j.pace == nil || limit == 0 {
		return
	}
	sum, n := 0.0, 0.0
	for i := range s.nodes {
		if x := &s.nodes[i]; s.shapes[j.shape].groups>>x.group&1 != 0 {
			sum, n = sum+float64(x.size)*j.on(x.pool), n+float64(x.size)
		}
	}
	if n > 0 {
		j.limit = max(cluster.Span(float64(limit)*sum/n), 1)
	}
}

// addJob adds a job, or says why it has no forecast.
func (s *site) addJob(c *cluster.Case, r *cluster.Record, snap *cluster.Snapshot, h *history, pace *pace, quota int32) string {
	x := &c.Job
	request := x.Request
	if r.Slice != nil {
		request = r.Slice.Request
	}
	due, _ := cluster.DueBy(r, s.now)
	j := job{key: r.Key, user: r.User, quota: quota, gpus: s.sharing.units(request.Size), mate: -1, urgent: slices.Contains(s.set.UrgentQOS, x.QOS) || s.ordered(r, cluster.Boost), served: r.Terms > 0 || r.Alloc > 0,
		first: cmp.Or(r.First, s.now), spent: r.Spent, due: float64(due-r.Alloc) * float64(s.sharing.unit), received: float64(r.Alloc) * float64(s.sharing.unit),
		fixed: c.Control == cluster.NoReclaim || s.ordered(r, cluster.Exempt), alone: c.Control == cluster.Unmanaged, order: s.order(x), pace: pace}
	j.tenant = -1
	if t, ok := s.named[r.Tenant]; ok {
		j.tenant = t
	}
	for _, o := range x.Holds {
		for _, n := range s.at[o.Node] {
			if s.pools[s.nodes[n].pool] == o.Model {
				j.holds = append(j.holds, hold{n, s.sharing.units(o.Size)})
			}
		}
	}
	j.running = len(j.holds) > 0 && x.State != cluster.Waiting
	if j.running {
		if j.start = cmp.Or(x.Start, s.now); x.State == cluster.Configuring {
			j.start = s.now
		}
		for _, o := range j.holds {
			j.held += o.gpus
		}
		if j.half = s.sharing.slices > 0 && r.Slice != nil && len(j.holds) == 1; !j.half {
			j.gpus = j.held
		}
	}
	if j.gpus == 0 {
		return "its nodes are not in use"
	}
	at, ok := s.shapeOf(&request, x.Partitions, pace, turnsOf(s, c, r, snap))
	if !ok && !j.running {
		return "no node in use can serve it"
	}
	j.shape = at
	if ok {
		s.limited(&j, cmp.Or(r.UserLimit, x.Limit))
	}
	j.ran = cluster.Span(float64(cluster.Received(r)) * float64(s.sharing.unit) / float64(j.gpus))
	j.began = r.Ran
	if !j.running {
		switch {
		case x.Inactive != "":
			return "it waits for something else than GPUs: " + x.Inactive
		case s.ordered(r, cluster.Freeze):
			return "an administrator has frozen it"
		case j.alone || j.tenant < 0:
			return "fairlease leaves it alone"
		case r.UserBegin > s.now:
			j.first = r.UserBegin
		}
	}
	j.manner = s.mannerOf(x, r.Conduct)
	k := kindOf(x, r.Tenant)
	j.like = h.like(k)
	for _, key := range k.own() {
		if key != "" && pace != nil {
			s.paces[key] = pace
		}
	}
	if j.half {
		pair(s, &j, x.Holds)
	}
	s.jobs = append(s.jobs, j)
	return ""
}

// mannerOf gives how a job saves, by the evidence that the engine goes by.
func (s *site) mannerOf(j *cluster.Job, own *cluster.Conduct) manner {
	var habit *cluster.Habit
	if t, ok := cluster.TypeOf(j); ok {
		habit = s.habits[t]
	}
	return manner{stop.Resolve(own, habit, j.Declares, stop.Site(s.set.Saves, j)), stop.Begin(habit, "", s.set.StartCost)}
}
