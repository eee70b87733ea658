package place

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

// Site is the part of the cluster that stays constant during a round: its machines, their
// reservations, and the shapes of jobs' requests. All boards of a round share one site.
type Site struct {
	now      cluster.Instant
	pools    []string
	machines []machine
	byName   map[string]int
	asked    []int // cache: recently queried nodes, + 1, by spot
	byPool   []poolSite
	parts    map[string]uint64 // the bit of each partition
	shapes

	// Every board starts with a copy of these: everything idle.
	nodes []node
	slots []slot

	surveyed []cluster.Node        // its input
	edition  int                   // see Edition
	foreign  []cluster.Reservation // the rest of it: reservations of others that have not ended
}

// poolSite is the GPUs of one model.
type poolSite struct {
	slots []int // by node
	most  int   // GPUs of a node
	gpus  int
	bad   int // of these on bad nodes
	// shards is the maximum number of shards of a GPU.
	shards   int
	slow     slowness
	switches switches
}

// machine is the constant part of a node.
type machine struct {
	name        string
	all         part
	parts       uint64 // a bit for each partition
	partitions  []string
	features    []string
	bad, busy   bool
	shards      int  // of each GPU; 0 = jobs can ask for whole GPUs only
	mps         bool // these are of MPS: on one GPU at a time, for one user
	first, last int  // its slots: first ≤ s < last
	windows     []window
}

// window is a time in which a reservation keeps others off a node.
type window struct {
	name       string
	start, end cluster.Instant
	magnetic   bool // jobs that it is for use it without naming it
	flex       bool // they may run on after its end
	accounts   []string
	users      []string
	cpus, gpus int // that it keeps; no CPUs = the whole node
	// usedCPUs and usedGPUs are held by running jobs of it.
	usedCPUs int
	usedGPUs cluster.MicroGPU
}

// MostOnANode returns how many GPUs the largest node of a pool has.
func (t *Site) MostOnANode(pool int) int { return t.byPool[pool].most }

// Fewest returns the number of the pool's largest nodes that have so many GPUs: no job with them is on fewer.
func (t *Site) Fewest(pool, gpus int) int {
	most := max(t.byPool[pool].most, 1)
	return (gpus + most - 1) / most
}

// manyShapes is the maximum number of shapes with which a site is reused, besides two for each job.
const manyShapes = 4096

// Resurvey gives the same site as Survey, or the old one if its input is unchanged. Then its
// shapes keep their numbers, and results for them stay valid, apart from those that depend on the time and on reservations of others. With claims, time limits
// distinguish shapes. same means that the nodes are known to be those of old, and jobs is how many jobs there are.
func Resurvey(old *Site, pools []string, nodes []cluster.Node, same bool, reservations []cluster.Reservation, now cluster.Instant, claims bool, jobs int) *Site {
	if old != nil && old.limits == (claims || old.reserved) && len(old.specs) < manyShapes+2*jobs && slices.Equal(old.pools, pools) &&
		old.sameReservations(reservations, now) && (same || sameNodes(old.surveyed, nodes)) {
		if old.now = now; !same {
			old.occupy(nodes)
		}
		return old
	}
	t := Survey(slices.Clone(pools), nodes, reservations, now)
	t.limits = t.limits || claims
	t.surveyed = slices.Clone(nodes) // copies: their owner may modify them
	for i := range t.surveyed {
		n := &t.surveyed[i]
		n.GPUs, n.Partitions, n.Features = slices.Clone(n.GPUs), slices.Clone(n.Partitions), slices.Clone(n.Features)
	}
	return t
}

// keepsOff tells whether a reservation keeps jobs off its nodes, now or later.
func keepsOff(r *cluster.Reservation, now cluster.Instant) bool {
	return !r.Ours && (r.End == 0 || r.End > now)
}

// sameReservations tells whether those that keep jobs off nodes are those of the site.
func (t *Site) sameReservations(reservations []cluster.Reservation, now cluster.Instant) bool {
	left := t.foreign
	for i := range reservations {
		b := &reservations[i]
		if !keepsOff(b, now) {
			continue
		}
		if len(left) == 0 {
			return false
		}
		a := &left[0]
		if a.Name != b.Name || a.Start != b.Start || a.End != b.End || !slices.Equal(a.Nodes, b.Nodes) || !slices.Equal(a.Accounts, b.Accounts) ||
			!slices.Equal(a.Users, b.Users) || !slices.Equal(a.Flags, b.Flags) || !slices.Equal(a.Parts, b.Parts) {
			return false
		}
		left = left[1:]
	}
	return len(left) == 0
}

// occupy takes over which nodes are busy. On a Slurm those change all the time: nodes on which a job completes are.
func (t *Site) occupy(nodes []cluster.Node) {
	changed := false
	for i := range nodes {
		if busy := nodes[i].Busy != ""; busy != t.machines[i].busy {
			t.machines[i].busy, changed = busy, true
		}
	}
	if changed {
		t.edition++
	}
}

// Edition counts up when other nodes are busy: what is on a board that heeds these must be laid out anew.
func Edition(t *Site) int { return t.edition }

// sameNodes tells whether nodes are as they were, but for those that are busy.
func sameNodes(old, now []cluster.Node) bool {
	same := len(old) == len(now)
	for i := 0; i < len(old) && same; i++ {
		a, b := &old[i], &now[i]
		same = a.Name == b.Name && a.CPUs == b.CPUs && a.MemoryMB == b.MemoryMB && a.Bad == b.Bad && a.Shards == b.Shards && a.MPS == b.MPS && a.Switch == b.Switch &&
			slices.Equal(a.GPUs, b.GPUs) && slices.Equal(a.Partitions, b.Partitions) && slices.Equal(a.Features, b.Features)
	}
	return same
}

// Survey makes the site. pools are the GPU models in the order of their indices.
func Survey(pools []string, nodes []cluster.Node, reservations []cluster.Reservation, now cluster.Instant) *Site {
	t := &Site{
		now:      now,
		pools:    pools,
		machines: make([]machine, len(nodes)),
		byName:   make(map[string]int, len(nodes)),
		asked:    make([]int, 1<<bits.Len(uint(2*len(nodes)+64))),
		byPool:   make([]poolSite, len(pools)),
		parts:    map[string]uint64{},
		shapes:   shapes{byKey: map[shapeKey]int{}, bases: map[shapeKey]int{}},
		nodes:    make([]node, len(nodes)),
		slots:    make([]slot, 0, len(nodes)),
	}
	for i := range nodes {
		t.add(i, &nodes[i])
	}
	t.wire(nodes)
	for i := range reservations {
		t.reserve(&reservations[i])
	}
	return t
}

func (t *Site) add(i int, n *cluster.Node) {
	t.byName[n.Name] = i
	all := part{n.CPUs, n.MemoryMB}
	t.nodes[i].free = all
	d := &t.machines[i]
	*d = machine{name: n.Name, all: all, partitions: n.Partitions, features: n.Features,
		bad: n.Bad != "", busy: n.Busy != "", shards: n.Shards, mps: n.MPS, first: len(t.slots)}
	for _, p := range n.Partitions {
		d.parts |= t.partition(p)
	}
	for _, g := range n.GPUs {
		p := slices.Index(t.pools, g.Model)
		if p < 0 {
			continue
		}
		all := &t.byPool[p]
		t.slots = append(t.slots, slot{node: i, pool: p, at: len(all.slots), total: g.Count, idle: g.Count})
		all.slots = append(all.slots, len(t.slots)-1)
		all.most = max(all.most, g.Count)
		all.shards = max(all.shards, n.Shards)
		all.gpus += g.Count
		if d.bad {
			all.bad += g.Count
		}
	}
	d.last = len(t.slots)
}

// lastPartition is the bit shared by all partitions from the 64th on.
const lastPartition uint64 = 1 << 63

// partition gives the bit of a partition.
func (t *Site) partition(name string) uint64 {
	bit, ok := t.parts[name]
	if !ok {
		bit = 1 << min(len(t.parts), 63)
		t.parts[name] = bit
	}
	return bit
}

func (t *Site) reserve(r *cluster.Reservation) {
	if !keepsOff(r, t.now) {
		return
	}
	t.foreign = append(t.foreign, *r)
	kept := &t.foreign[len(t.foreign)-1] // copies, as of nodes
	kept.Nodes, kept.Accounts, kept.Users, kept.Flags, kept.Parts = slices.Clone(r.Nodes), slices.Clone(r.Accounts), slices.Clone(r.Users), slices.Clone(r.Flags), slices.Clone(r.Parts)
	w := window{name: r.Name, start: r.Start, end: r.End, magnetic: slices.Contains(r.Flags, cluster.Magnetic), flex: slices.Contains(r.Flags, "FLEX"), accounts: kept.Accounts, users: kept.Users}
	for _, name := range r.Nodes {
		if i := t.nodeAt(name); i >= 0 {
			part, _ := r.Part(name)
			w.cpus, w.gpus = part.CPUs, part.GPUs
			t.machines[i].windows = append(t.machines[i].windows, w)
			t.limits, t.reserved, t.owners = true, true, t.owners || w.magnetic
		}
	}
}

// Reserved tells whether reservations of others keep jobs off some nodes.
func Reserved(t *Site) bool { return t.reserved }

// Vacate forgets what Occupy recorded.
func Vacate(t *Site) {
	for i := range t.machines {
		for k := range t.machines[i].windows {
			w := &t.machines[i].windows[k]
			w.usedCPUs, w.usedGPUs = 0, 0
		}
	}
}

// Flips returns the first moment from which time alone changes on which nodes reservations of others let a shape run; 0 = never.
func Flips(t *Site, shape int) (first cluster.Instant) {
	limit := t.specs[shape].Limit
	at := func(x cluster.Instant) {
		if x > t.now && (first == 0 || x < first) {
			first = x
		}
	}
	for i := range t.foreign {
		r := &t.foreign[i]
		at(r.Start)
		for _, edge := range []cluster.Instant{r.Start, r.End} {
			if limit > 0 && edge > 0 {
				at(edge - cluster.Instant(limit) + 1)
			}
		}
	}
	return first
}

// Occupy records the holdings of a running job that uses reservations, by their names with commas: a board of Occupied jobs counts the
// CPUs and GPUs once. A job that names several is in the first one on a node.
func Occupy(t *Site, reservations string, holds []cluster.Holding) {
	for i := range holds {
		n := t.nodeAt(holds[i].Node)
		if n < 0 {
			continue
		}
	windows:
		for name := range strings.SplitSeq(reservations, ",") {
			for k := range t.machines[n].windows {
				if w := &t.machines[n].windows[k]; w.name == name {
					w.usedCPUs += holds[i].CPUs
					w.usedGPUs += holds[i].Size.Amount()
					break windows
				}
			}
		}
	}
}

// nodeAt gives the number of a node, or -1. Most nodes are queried repeatedly, and their names
// end in different digits: a cache indexed by those is much faster than a map lookup.
func (t *Site) nodeAt(name string) int {
	asked := &t.asked[nameSpot(name)&(len(t.asked)-1)]
	if *asked > 0 && t.machines[*asked-1].name == name {
		return *asked - 1
	}
	i, ok := t.byName[name]
	if !ok {
		return -1
	}
	*asked = i + 1
	return i
}

// nameSpot gives the spot of a node in a cache.
func nameSpot(name string) (spot int) {
	for i := max(len(name)-5, 0); i < len(name); i++ {
		spot = 10*spot + int(name[i])
	}
	return spot
}

// Count gives the GPUs of a pool, and how many of them are on bad nodes.
func (t *Site) Count(p int) (gpus, bad int) { return t.byPool[p].gpus, t.byPool[p].bad }

// Good tells whether a node is there and not bad.
func (t *Site) Good(name string) bool {
	i := t.nodeAt(name)
	return i >= 0 && !t.machines[i].bad
}

// Bad tells whether a node is there and bad.
func (t *Site) Bad(name string) bool {
	i := t.nodeAt(name)
	return i >= 0 && t.machines[i].bad
}

// Unknown names the nodes of a list of required nodes that are no nodes with GPUs, at most three; "" = none. It leaves out long ranges.
func Unknown(t *Site, required []string) string {
	const few = 64
	var names []string
	for _, part := range required {
		for _, name := range hostlist.Few(part, few) {
			if t.nodeAt(name) < 0 && !slices.Contains(names, name) {
				if names = append(names, name); len(names) == 3 {
					return strings.Join(names, ", ")
				}
			}
		}
	}
	return strings.Join(names, ", ")
}

// slotOf gives the slot of a model on a node, or -1.
func (t *Site) slotOf(n int, model string) int {
	for s := t.machines[n].first; s < t.machines[n].last; s++ {
		if t.pools[t.slots[s].pool] == model {
			return s
		}
	}
	return -1
}

// Spec is a job's request for nodes.
type Spec struct {
	Request    cluster.Request
	Partitions []string
	Require    []string // candidates; empty = all nodes. Parts may use Slurm's brackets
	Others     bool     // the job has all of Require and, if it needs more nodes than these, others too, as with Slurm's -w
	Exclude    []string
	Account    string
	User       string
	Limit      cluster.Span // 0 = none
}

// spec is a Spec prepared for matching.
type spec struct {
	Spec
	base   int // the first shape that differs in its time limit only
	parts  uint64
	only   []bitset // by pool: the slots that its lists of nodes leave it; nil = all
	beside []bitset // by pool: the slots that a gang on more nodes than it lists may have beside all of these; nil = none
	listed int      // nodes
}

// shapeKey is the part of a request that matters for placement.
type shapeKey struct {
	request                                   cluster.Request
	partitions, require, exclude, account, by string
	others                                    bool
	limit                                     cluster.Span
}

// shapes is the set of requests.
type shapes struct {
	byKey    map[shapeKey]int
	bases    map[shapeKey]int // the first of those that differ in their limits only
	recent   [256]int         // cache: recently asked shapes, + 1, by spot
	specs    []spec
	limits   bool // time limits distinguish shapes: a node has a future reservation
	reserved bool // it is one of others
	owners   bool // owners distinguish shapes, too: a reservation takes in jobs of its accounts or users
}

// Shape registers a request and gives its number; equal requests share one.
func (t *Site) Shape(s Spec) int {
	spot := s.Request.Size.Devices + 31*s.Request.CPUs + 131*int(s.Request.MemoryMB>>10)
	if t.limits {
		spot += 17 * int(s.Limit/cluster.Second)
	}
	if len(s.Require) > 0 {
		spot += 7*len(s.Require) + nameSpot(s.Require[0])
	}
	recent := &t.recent[spot&(len(t.recent)-1)]
	if *recent > 0 && t.equal(&s, &t.specs[*recent-1].Spec) {
		return *recent - 1 // much faster than a lookup, and most jobs have many equal ones
	}
	k := shapeKey{request: s.Request, partitions: strings.Join(s.Partitions, ","),
		require: strings.Join(s.Require, ","), exclude: strings.Join(s.Exclude, ","), others: s.Others}
	if t.limits {
		k.limit = s.Limit
	}
	if t.owners {
		k.account, k.by = s.Account, s.User
	}
	n, ok := t.byKey[k]
	if !ok {
		n = len(t.specs)
		t.byKey[k] = n
		sp := t.prepare(s)
		sp.base = n
		if t.limits {
			k.limit = 0
			if first, some := t.bases[k]; some {
				sp.base = first
			} else {
				t.bases[k] = n
			}
		}
		t.specs = append(t.specs, sp)
	}
	*recent = n + 1
	return n
}

// equal tells whether two requests have the same shape.
func (t *Site) equal(a, b *Spec) bool {
	return a.Request == b.Request && a.Others == b.Others && (!t.limits || a.Limit == b.Limit) &&
		(!t.owners || a.Account == b.Account && a.User == b.User) &&
		slices.Equal(a.Partitions, b.Partitions) && slices.Equal(a.Require, b.Require) && slices.Equal(a.Exclude, b.Exclude)
}

func (t *Site) prepare(s Spec) spec {
	sp := spec{Spec: s}
	for _, p := range s.Partitions {
		sp.parts |= t.partition(p)
	}
	sp.only = t.only(&s)
	if s.Others && len(s.Require) > 0 {
		t.extend(&sp)
	}
	return sp
}

// extend lets a request have other nodes beside those that it lists, in a pool that has all of these.
func (t *Site) extend(sp *spec) {
	names := map[string]bool{}
	for _, part := range sp.Require {
		of := hostlist.Few(part, len(t.machines))
		if of == nil { // more names than nodes, or none
			return
		}
		for _, name := range of {
			names[name] = true
		}
	}
	beside := t.only(&Spec{Request: sp.Request, Exclude: append(slices.Clone(sp.Exclude), sp.Require...)})
	sp.listed = len(names)
	sp.beside = make([]bitset, len(t.pools))
	for p := range beside {
		if sp.only[p].count() == sp.listed {
			sp.beside[p] = beside[p]
		}
	}
}

// only gives the slots that a request's lists of nodes leave it, and with shards enough for it on a GPU; nil = it has no lists, and asks for
// no shards.
func (t *Site) only(s *Spec) []bitset {
	if len(s.Require)+len(s.Exclude)+s.Request.Shards == 0 {
		return nil
	}
	out := make([]bitset, len(t.pools))
	for p := range out {
		out[p] = newBitsets(1, len(t.byPool[p].slots))[0]
	}
	mark := func(i int, in bool) {
		for at := t.machines[i].first; at < t.machines[i].last; at++ {
			if l := &t.slots[at]; in {
				out[l.pool].set(l.at)
			} else {
				out[l.pool].clear(l.at)
			}
		}
	}
	named := func(parts []string, in bool) {
		for k, part := range parts {
			if i := t.nodeAt(part); i >= 0 {
				mark(i, in)
			} else if strings.Contains(part, "[") {
				set := hostlist.SetOf(parts[k : k+1])
				for i := range t.machines {
					if set.Has(t.machines[i].name) {
						mark(i, in)
					}
				}
			}
		}
	}
	if named(s.Require, true); len(s.Require) == 0 {
		for i := range t.machines {
			mark(i, true)
		}
	}
	named(s.Exclude, false)
	for i := range t.machines {
		if m := &t.machines[i]; m.shards < s.Request.Shards || s.Request.Shards > 0 && m.mps != s.Request.MPS {
			mark(i, false)
		}
	}
	return out
}

// lists gives the slots of a pool that a gang on so many nodes must all have, and those from which it has the rest; empty = all.
func (sp *spec) lists(pool, nodes int) (must, rest bitset) {
	if sp.beside == nil || nodes <= sp.listed || sp.beside[pool] == nil {
		return nil, sp.onlyIn(pool)
	}
	return sp.only[pool], sp.beside[pool]
}

// Must gives the nodes that a gang of a shape must all have if it is on so many nodes of a pool; nil = it is only on nodes that it lists, or
// lists none.
func Must(t *Site, shape, pool, nodes int) (names []string) {
	must, _ := t.specs[shape].lists(pool, nodes)
	for at := must.next(0, nil); at >= 0; at = must.next(at+1, nil) {
		names = append(names, t.machines[t.slots[t.byPool[pool].slots[at]].node].name)
	}
	return names
}

// onlyIn gives the slots of a pool that a request's lists of nodes leave it; empty = all.
func (sp *spec) onlyIn(pool int) bitset {
	if sp.only == nil {
		return nil
	}
	return sp.only[pool]
}
