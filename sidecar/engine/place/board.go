package place

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Board is the cluster for one question: could a job ever run, which jobs get which GPUs, which
// GPUs are kept for a gang. The caller numbers the leases on it that may end.
type Board struct {
	site  *Site
	view  View
	nodes []node
	slots []slot
	avail []bitsets // avail[pool][k]: slots with k GPUs idle or soft; index into byPool
	idle  []bitsets // idle[pool][k]: slots with k GPUs idle
	bound []bitset  // bound[pool]: slots with jobs that cannot be stopped; index into byPool
	free  []int     // idle GPUs, by pool
	softs []*soft   // by number; nil = none
	made  stock
	parts parts
	lists []*soft // buffer for the lists of all slots
	room  []*soft // rest of lists: for the next slots
	spots []Spot  // buffer for the holdings of one job
	tried tried
}

// tried is the attempts that failed on a board, and all that makes a difference to attempts.
type tried struct {
	attempts
	most    []int             // idle and soft GPUs on open nodes, by pool
	alive   int               // soft leases
	claims  []cluster.Instant // of nodes, without repetition
	gathers bool              // nodes are gathered for a gang
	idle    []choice          // buffer for one attempt on idle GPUs
	soft    []choice          // buffer for one attempt with soft leases
	taken   []*soft           // buffer for the leases that its choices displace
}

// node is the state shared by the slots of one machine.
type node struct {
	free    part
	shut    bool            // closed for grants
	claimed cluster.Instant // new leases must end by then; 0 = no claim
	gathers bool            // new leases must be stoppable
	later   part            // resources that displaced leases will free at freeAt
	freeAt  cluster.Instant
}

// part is CPUs and memory of a node.
type part struct {
	cpus   int
	memory int64
}

var none part

func (p part) plus(o part) part { return part{p.cpus + o.cpus, p.memory + o.memory} }
func (p part) less(o part) part { return part{p.cpus - o.cpus, p.memory - o.memory} }

// slot is the GPUs of one model on one node.
type slot struct {
	node, pool, at    int  // at: index into byPool[pool]
	open              bool // its node is not shut
	total, idle, soft int
	later             int     // idle only once displaced leases have ended
	held              []*soft // soft leases here, by lastFirst
	owners            uint64  // ownerBit of every lease that is or was here
}

// ownerBit gives the bit of an owner; with many owners several share one.
func ownerBit(owner int) uint64 { return 1 << ((owner + 1) % 64) }

// mayHaveOf tells whether a slot may hold a displaceable lease. If not, the leases need no
// inspection.
func (l *slot) mayHaveOf(displace int) bool {
	return displace == Anybodys || l.owners&(ownerBit(displace-Own)|ownerBit(noOwner)) != 0
}

// soft is a lease that may be displaced.
type soft struct {
	who   int
	owner int
	rank  int // position in the queue: higher = displaced first
	end   cluster.Instant
	holds []hold
	one   [1]hold // inline storage for holds: most leases are on one node
}

// amount gives the size of a lease in GPUs.
func amount(b *Board, f *soft) (n cluster.MicroGPU) {
	for i := range f.holds {
		if h := &f.holds[i]; h.shards > 0 {
			n += cluster.MicroGPU(h.shards) * cluster.WholeGPU / cluster.MicroGPU(b.site.machines[b.slots[h.slot].node].shards)
		} else {
			n += cluster.Whole(h.gpus).Amount()
		}
	}
	return n
}

// stock is all leases that were ever allocated, in blocks.
type stock struct {
	made [][]soft
	used int
}

// noOwner is the owner of leases that any claimant with the right to displace may displace.
const noOwner = -1

// isOf tells whether a lease is displaceable under displace.
func (f *soft) isOf(displace int) bool {
	return displace == Anybodys || f.owner == noOwner || f.owner == displace-Own
}

type hold struct {
	slot, gpus int
	part
	piece // of a shared GPU; gpus is 0 then
}

// View says what keeps jobs off nodes on a board, in addition to bad nodes.
type View struct {
	Busy     bool // nodes that get no grants for the moment
	Reserved bool // reservations of others
	Occupied bool // the running jobs of reservations will be on it: see Occupy
}

// Board makes a board on which everything is idle.
func (t *Site) Board(v View) *Board { return t.Clear(&Board{}, v) }

// Clear resets an unused board to idle.
func (t *Site) Clear(b *Board, v View) *Board {
	reset(b, t, v)
	b.nodes, b.slots = append(b.nodes[:0], t.nodes...), append(b.slots[:0], t.slots...)
	for i := range b.nodes {
		m := &t.machines[i]
		b.nodes[i].shut = m.bad || v.Busy && m.busy
		for s := m.first; s < m.last; s++ {
			b.slots[s].open = !b.nodes[i].shut
		}
	}
	emptyParts(&b.parts)
	for p := range t.pools {
		b.index(p)
	}
	return b
}

// Copy makes a board the same as another one, on which no lease is soft and no node claimed.
func Copy(b, o *Board) {
	reset(b, o.site, o.view)
	b.nodes, b.slots = append(b.nodes[:0], o.nodes...), append(b.slots[:0], o.slots...)
	copy(b.free, o.free)
	copy(b.tried.most, o.tried.most)
	for p := range b.site.pools {
		copy(b.avail[p].all(), o.avail[p].all())
		copy(b.idle[p].all(), o.idle[p].all())
	}
	b.parts.copy(&o.parts)
}

// reset takes all leases off a board, and prepares it for the nodes of a site.
func reset(b *Board, t *Site, v View) {
	if b.site != t {
		*b = Board{site: t, avail: make([]bitsets, len(t.pools)), idle: make([]bitsets, len(t.pools)), bound: make([]bitset, len(t.pools)), free: make([]int, len(t.pools)),
			softs: b.softs, made: b.made, parts: newParts(t), spots: b.spots, tried: tried{attempts: b.tried.attempts, most: make([]int, len(t.pools))}}
		for p := range t.pools {
			b.avail[p] = newBitsets(t.byPool[p].most+1, len(t.byPool[p].slots))
			b.idle[p] = newBitsets(t.byPool[p].most+1, len(t.byPool[p].slots))
			b.bound[p] = newBitsets(1, len(t.byPool[p].slots))[0]
		}
	}
	for _, slots := range b.bound {
		clear(slots)
	}
	b.view, b.made.used, b.room = v, 0, b.lists
	b.softs = b.softs[:0]
	b.tried.alive, b.tried.claims, b.tried.gathers = 0, b.tried.claims[:0], false
	b.tried.round++
}

func (b *Board) index(p int) {
	avail, idle := b.avail[p].emptied(), b.idle[p].emptied()
	b.free[p], b.tried.most[p] = 0, 0
	for at, s := range b.site.byPool[p].slots {
		if b.slots[s].open {
			avail[b.slots[s].idle].set(at)
			idle[b.slots[s].idle].set(at)
			b.free[p] += b.slots[s].idle
			b.tried.most[p] += b.slots[s].idle
			if b.parts.slots != nil {
				b.parts.rest[p][0].set(at)
				b.parts.loose[p][0].set(at)
				b.parts.index(b.site, s, &b.slots[s])
			}
		}
	}
}

// Idle gives the idle GPUs of pool p on nodes that are open for grants.
func (b *Board) Idle(p int) int { return b.free[p] }

// IdleOn gives the idle GPUs of pool p on a node that is open for grants; else 0.
func IdleOn(b *Board, node string, p int) int {
	n := b.site.nodeAt(node)
	if n < 0 {
		return 0
	}
	for s := b.site.machines[n].first; s < b.site.machines[n].last; s++ {
		if b.slots[s].pool == p && b.slots[s].open {
			return b.slots[s].idle
		}
	}
	return 0
}

// Free lists the idle and soft GPUs of pool p by node, of nodes that are open for grants and not claimed.
func Free(b *Board, p int) []int {
	var out []int
	for _, s := range b.site.byPool[p].slots {
		if l := &b.slots[s]; l.open && b.nodes[l.node].claimed == 0 && l.idle+l.soft > 0 {
			out = append(out, l.idle+l.soft)
		}
	}
	return out
}

// Prefer makes a soft lease the last one to be displaced.
func (b *Board) Prefer(who int) {
	if who >= len(b.softs) || b.softs[who] == nil {
		return
	}
	f := b.softs[who]
	for i := range f.holds {
		b.drop(f.holds[i].slot, f)
	}
	f.rank = -1
	for i := range f.holds {
		l := &b.slots[f.holds[i].slot]
		at, _ := slices.BinarySearchFunc(l.held, f, lastFirst)
		l.held = slices.Insert(l.held, at, f)
	}
}

// Spot is where a holding is on the boards of a site: its node and slot, and all that it takes there.
type Spot struct {
	node int
	hold // slot: -1 = the node has no GPUs of the model
}

// Spots adds the spots of a job's holdings to a list, but for nodes that the site does not have. The job may be on a GPU with jobs of the same
// sharer, a number of the caller's, and with those of sharer 0; if its own is 0, with all.
func (t *Site) Spots(holds []cluster.Holding, sharer int, out []Spot) []Spot {
	for i := range holds {
		h := &holds[i]
		if n := t.nodeAt(h.Node); n >= 0 {
			x := hold{t.slotOf(n, h.Model), h.Size.Devices, part{h.CPUs, h.MemoryMB}, pieceOf(h, t.machines[n].shards, sharer)}
			if x.shards > 0 {
				x.gpus = 0
			}
			out = append(out, Spot{n, x})
		}
	}
	return out
}

// Fill takes all at spots off a board, or puts it back if sign is -1.
func Fill(b *Board, spots []Spot, sign int) {
	for i := range spots {
		h := &spots[i]
		b.nodes[h.node].free = b.nodes[h.node].free.less(part{sign * h.cpus, int64(sign) * h.memory})
		switch {
		case h.slot < 0:
		case h.shards == 0:
			b.shift(h.slot, -sign*h.gpus, 0)
		case sign > 0:
			addPiece(b, h.slot, lying{h.piece, nil})
		default:
			removePiece(b, h.slot, lying{h.piece, nil})
		}
	}
}

// Bind marks the slots at spots: a job that cannot be stopped runs there.
func Bind(b *Board, spots []Spot) {
	for i := range spots {
		if s := spots[i].slot; s >= 0 {
			b.bound[b.slots[s].pool].set(b.slots[s].at)
		}
	}
}

// Hold removes a job's GPUs from the board: fixed. sharer is as for Spots.
func (b *Board) Hold(holds []cluster.Holding, sharer int) {
	b.spots = b.site.Spots(holds, sharer, b.spots[:0])
	Fill(b, b.spots, 1)
}

// Release undoes Hold.
func Release(b *Board, holds []cluster.Holding, sharer int) {
	b.spots = b.site.Spots(holds, sharer, b.spots[:0])
	Fill(b, b.spots, -1)
}

// Await allocates soft leases with numbers below n.
func (b *Board) Await(n int) {
	if old := len(b.softs); n > old {
		b.softs = slices.Grow(b.softs, n-old)[:n]
		clear(b.softs[old:])
	}
}

// Soften adds a lease that may end. owner is a number of the caller's, -1 for none; rank is the
// lease's position in the queue, end when its GPUs are free if it is displaced. sharer is as for Spots.
func (b *Board) Soften(who, owner, rank int, end cluster.Instant, holds []cluster.Holding, sharer int) {
	b.Hold(holds, sharer)
	Loosen(b, who, owner, rank, end, b.spots)
}

// Loosen makes holdings that are fixed a lease that may end: see Soften.
func Loosen(b *Board, who, owner, rank int, end cluster.Instant, spots []Spot) {
	f := b.made.next()
	f.who, f.owner, f.rank, f.end, f.holds = who, owner, rank, end, f.holds[:0]
	for i := range spots {
		h := &spots[i].hold
		if h.slot < 0 {
			continue
		}
		l := &b.slots[h.slot]
		if h.shards > 0 {
			turnPiece(b, h.slot, h.piece, nil, f)
		} else {
			b.shift(h.slot, 0, h.gpus)
		}
		at, _ := slices.BinarySearchFunc(l.held, f, lastFirst)
		l.held = slices.Insert(b.roomFor(h.slot), at, f)
		l.owners |= ownerBit(owner)
		f.holds = append(f.holds, *h)
	}
	b.Await(who + 1)
	b.softs[who] = f
	b.tried.alive++
}

// roomFor gives the leases of a slot, with capacity for its number of GPUs.
func (b *Board) roomFor(s int) []*soft {
	l := &b.slots[s]
	if l.held == nil {
		if b.lists == nil {
			all := 0
			for i := range b.slots {
				all += b.slots[i].total
			}
			b.lists = make([]*soft, all)
			b.room = b.lists
		}
		l.held, b.room = b.room[:0:l.total], b.room[l.total:]
	}
	return l.held
}

// next gives an empty lease.
func (b *stock) next() *soft {
	const many = 256
	if b.used == many*len(b.made) {
		made := make([]soft, many)
		for i := range made {
			made[i].holds = made[i].one[:0]
		}
		b.made = append(b.made, made)
	}
	f := &b.made[b.used/many][b.used%many]
	b.used++
	return f
}

// Renew makes a soft lease fixed in place. It fails if it was displaced.
func (b *Board) Renew(who int) bool {
	if who >= len(b.softs) || b.softs[who] == nil {
		return false
	}
	f := b.softs[who]
	for i := range f.holds {
		h := &f.holds[i]
		if h.shards > 0 {
			turnPiece(b, h.slot, h.piece, f, nil)
		} else {
			b.shift(h.slot, 0, -h.gpus)
		}
		b.drop(h.slot, f)
	}
	b.softs[who] = nil
	b.tried.alive--
	return true
}

// displace frees the GPUs of a soft lease.
func (b *Board) displace(who int) {
	f := b.softs[who]
	for i := range f.holds {
		h := &f.holds[i]
		l, gpus := &b.slots[h.slot], h.gpus
		if h.shards > 0 {
			gpus = -l.idle
			removePiece(b, h.slot, lying{h.piece, f})
			gpus += l.idle
		} else {
			b.shift(h.slot, gpus, -gpus)
		}
		b.drop(h.slot, f)
		n := &b.nodes[l.node]
		n.free = n.free.plus(h.part)
		if f.end > b.site.now {
			l.later += gpus
			if h.shards > 0 && gpus == 0 {
				b.parts.slots[h.slot].later += int(h.shards)
			}
			n.later = n.later.plus(h.part)
			n.freeAt = max(n.freeAt, f.end)
		}
	}
	b.softs[who] = nil
	b.tried.alive--
	b.tried.round++
}

// Close closes a node for grants.
func (b *Board) Close(node string) {
	n := b.site.nodeAt(node)
	if n < 0 || b.nodes[n].shut {
		return
	}
	b.nodes[n].shut = true
	for s := b.site.machines[n].first; s < b.site.machines[n].last; s++ {
		l := &b.slots[s]
		b.free[l.pool] -= l.idle
		b.tried.most[l.pool] -= clamp(l.idle+l.soft, b.site.byPool[l.pool].most)
		b.idle[l.pool][clamp(l.idle, b.site.byPool[l.pool].most)].clear(l.at)
		b.avail[l.pool][clamp(l.idle+l.soft, b.site.byPool[l.pool].most)].clear(l.at)
		if b.parts.slots != nil {
			b.parts.rest[l.pool][b.parts.slots[s].rest].clear(l.at)
			b.parts.loose[l.pool][b.parts.slots[s].loose].clear(l.at)
		}
		l.open = false
	}
}

// Admits tells whether a node takes GPUs of a shape, ignoring the GPUs themselves but those that reservations keep. Unless the ask
// displaces nobody, all soft leases there count as displaced. nodes is the number of the gang's nodes.
func (b *Board) Admits(a Ask, nodes int, node string, gpus int) bool {
	n := b.site.nodeAt(node)
	if n < 0 {
		return false
	}
	var freed part
	own := -1
	for s := b.site.machines[n].first; s < b.site.machines[n].last; s++ {
		if b.slots[s].pool == a.Pool {
			own = s
		}
		for _, f := range b.slots[s].held {
			for i := range f.holds {
				if f.holds[i].slot == s && a.Displace != Nobodys {
					freed = freed.plus(f.holds[i].part)
				}
			}
		}
	}
	if own < 0 {
		return false
	}
	idle := b.slots[own].idle
	if a.Displace != Nobodys {
		idle += b.slots[own].soft
	}
	x := b.search(a)
	x.must, x.rest = x.sp.lists(a.Pool, nodes)
	return x.admits(own, gpus, idle, freed)
}

// Displace frees the GPUs of a soft lease, if it is still there.
func (b *Board) Displace(who int) {
	if who < len(b.softs) && b.softs[who] != nil {
		b.displace(who)
	}
}

// Crowded gives the last soft lease on a node whose CPUs or memory do not suffice for all its
// leases; -1 = they do, or there is none.
func (b *Board) Crowded(node string) int {
	n := b.site.nodeAt(node)
	if n < 0 || b.nodes[n].free.cpus >= 0 && b.nodes[n].free.memory >= 0 {
		return -1
	}
	for s := b.site.machines[n].first; s < b.site.machines[n].last; s++ {
		if held := b.slots[s].held; len(held) > 0 {
			return held[0].who
		}
	}
	return -1
}

// Short tells whether more GPUs than there are of a model of a node are held, and gives the last soft lease there, of those on shared GPUs
// the first with which the leases after it free one; -1 = there is none.
func (b *Board) Short(node, model string) (who int, short bool) {
	n := b.site.nodeAt(node)
	if n < 0 {
		return -1, false
	}
	s := b.site.slotOf(n, model)
	if s < 0 || b.slots[s].idle >= 0 {
		return -1, false
	}
	held, x := b.slots[s].held, &search{board: b, sp: &spec{}}
	for i := range held {
		if x.left(s, 0, held[:i+1]) > b.slots[s].idle {
			return held[i].who, true
		}
	}
	return -1, true
}

// Parts gives the CPUs and memory that go with GPUs of a shape.
func (b *Board) Parts(shape, gpus int) (cpus int, memoryMB int64) {
	return share(&b.site.specs[shape].Request, gpus)
}

// Claim requires new leases on these nodes, or their jobs' limits, to end by at.
func (b *Board) Claim(nodes []cluster.Holding, at cluster.Instant) {
	for i := range nodes {
		if n := b.site.nodeAt(nodes[i].Node); n >= 0 {
			b.nodes[n].claimed = at
		}
	}
	if !slices.Contains(b.tried.claims, at) {
		b.tried.claims = append(b.tried.claims, at)
	}
	b.tried.round++
}

// Gather requires new leases on these nodes to be stoppable.
func (b *Board) Gather(nodes []cluster.Holding) {
	for i := range nodes {
		if n := b.site.nodeAt(nodes[i].Node); n >= 0 {
			b.nodes[n].gathers = true
		}
	}
	b.tried.gathers = true
	b.tried.round++
}

func (b *Board) drop(s int, f *soft) {
	held := b.slots[s].held
	if i := slices.Index(held, f); i >= 0 {
		b.slots[s].held = slices.Delete(held, i, i+1)
	}
}

// shift changes a slot's idle and soft counts and updates the indices.
func (b *Board) shift(s, idle, soft int) {
	l := &b.slots[s]
	p := l.pool
	wasIdle, wasAvail := clamp(l.idle, b.site.byPool[p].most), clamp(l.idle+l.soft, b.site.byPool[p].most)
	l.idle += idle
	l.soft += soft
	if !l.open {
		return
	}
	b.free[p] += idle
	isAvail := clamp(l.idle+l.soft, b.site.byPool[p].most)
	b.tried.most[p] += isAvail - wasAvail
	b.idle[p].move(l.at, wasIdle, clamp(l.idle, b.site.byPool[p].most))
	b.avail[p].move(l.at, wasAvail, isAvail)
	if b.parts.slots != nil {
		b.parts.index(b.site, s, l)
	}
}

// clamp keeps counts in range if Slurm reports more held than existing GPUs.
func clamp(k, most int) int { return min(max(k, 0), most) }

// hasFeatures evaluates the two supported forms of constraint: "a&b" and "a|b". Others are
// refused when the snapshot is built.
func hasFeatures(have []string, constraint string) bool {
	if constraint == "" {
		return true
	}
	for _, choice := range strings.Split(constraint, "|") {
		all := true
		for _, f := range strings.Split(choice, "&") {
			all = all && slices.Contains(have, strings.TrimSpace(f))
		}
		if all {
			return true
		}
	}
	return false
}
