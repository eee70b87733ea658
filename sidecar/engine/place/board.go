package place

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Board is the cluster while one round is decided.
type Board struct {
	now    cluster.Instant
	pools  []string
	nodes  []node
	slots  []slot
	byName map[string]int
	byPool [][]int    // slots of each pool, by node
	avail  [][]bitset // avail[pool][k]: slots with k GPUs idle or soft; index into byPool
	idle   [][]bitset // idle[pool][k]: slots with k GPUs idle
	most   []int      // most GPUs of a node, by pool
	free   []int      // idle GPUs, by pool
	softs  map[cluster.JobKey]*soft
	shapes map[shapeKey]int
	specs  []spec
	failed map[attempt]bool
	parts  map[string]uint64
	limits bool // time limits matter: something lies ahead on some node
}

// node is what the slots of one machine share.
type node struct {
	name       string
	all        part
	cpus       int // free
	memory     int64
	parts      uint64 // a bit for each partition
	partitions []string
	features   []string
	shut       bool // nothing can be granted here
	slots      []int
	windows    []window
	claimed    cluster.Instant // new leases must end by then; 0 = no claim
	later      part            // what displaced leases will free at freeAt
	freeAt     cluster.Instant
}

// part is CPUs and memory of a node.
type part struct {
	cpus   int
	memory int64
}

var none part

func (p part) plus(o part) part { return part{p.cpus + o.cpus, p.memory + o.memory} }
func (p part) less(o part) part { return part{p.cpus - o.cpus, p.memory - o.memory} }

// window is a time at which a reservation keeps others off a node.
type window struct {
	start, end cluster.Instant
	accounts   []string
	users      []string
}

// slot is the GPUs of one model on one node.
type slot struct {
	node, pool, at    int // at: index into byPool[pool]
	total, idle, soft int
	later             int     // idle only once displaced leases have ended
	held              []*soft // soft leases here, by lastFirst
}

// soft is a lease that may be displaced.
type soft struct {
	key   cluster.JobKey
	rank  int // place in the queue: higher = displaced first
	end   cluster.Instant
	holds []hold
}

type hold struct {
	slot, gpus int
	part
}

// New builds a board on which everything is idle. pools are the GPU models in
// the order of the indices by which they are asked for.
func New(pools []string, nodes []cluster.Node, reservations []cluster.Reservation, now cluster.Instant) *Board {
	b := &Board{
		now:    now,
		byName: make(map[string]int, len(nodes)),
		softs:  map[cluster.JobKey]*soft{},
		shapes: map[shapeKey]int{},
		failed: map[attempt]bool{},
		parts:  map[string]uint64{},
		pools:  pools,
		byPool: make([][]int, len(pools)),
		most:   make([]int, len(pools)),
		free:   make([]int, len(pools)),
	}
	b.nodes = make([]node, len(nodes))
	for i := range nodes {
		b.addNode(i, &nodes[i])
	}
	for p := range b.pools {
		b.index(p)
	}
	for i := range reservations {
		b.reserve(&reservations[i], now)
	}
	return b
}

func (b *Board) addNode(i int, n *cluster.Node) {
	b.byName[n.Name] = i
	d := &b.nodes[i]
	*d = node{name: n.Name, all: part{n.CPUs, n.MemoryMB}, cpus: n.CPUs, memory: n.MemoryMB,
		partitions: n.Partitions, features: n.Features, shut: n.Bad != "" || n.Busy != ""}
	for _, p := range n.Partitions {
		d.parts |= b.partition(p)
	}
	for _, g := range n.GPUs {
		p := slices.Index(b.pools, g.Model)
		if p < 0 {
			continue
		}
		d.slots = append(d.slots, len(b.slots))
		b.slots = append(b.slots, slot{node: i, pool: p, at: len(b.byPool[p]), total: g.Count, idle: g.Count})
		b.byPool[p] = append(b.byPool[p], len(b.slots)-1)
		b.most[p] = max(b.most[p], g.Count)
	}
}

// lastPartition is the bit that all partitions from the 64th on share.
const lastPartition uint64 = 1 << 63

// partition gives the bit of a partition.
func (b *Board) partition(name string) uint64 {
	bit, ok := b.parts[name]
	if !ok {
		bit = 1 << min(len(b.parts), 63)
		b.parts[name] = bit
	}
	return bit
}

func (b *Board) index(p int) {
	n := len(b.byPool[p])
	b.avail = append(b.avail, newBitsets(b.most[p]+1, n))
	b.idle = append(b.idle, newBitsets(b.most[p]+1, n))
	for at, s := range b.byPool[p] {
		if !b.nodes[b.slots[s].node].shut {
			b.avail[p][b.slots[s].idle].set(at)
			b.idle[p][b.slots[s].idle].set(at)
			b.free[p] += b.slots[s].idle
		}
	}
}

func (b *Board) reserve(r *cluster.Reservation, now cluster.Instant) {
	if r.Ours || r.End > 0 && r.End <= now {
		return
	}
	w := window{start: r.Start, end: r.End, accounts: r.Accounts, users: r.Users}
	for _, name := range r.Nodes {
		if i, ok := b.byName[name]; ok {
			b.nodes[i].windows = append(b.nodes[i].windows, w)
			b.limits = true
		}
	}
}

// Idle gives the idle GPUs of pool p on nodes where something can be granted.
func (b *Board) Idle(p int) int { return b.free[p] }

// Hold takes what a job holds off the board: fixed.
func (b *Board) Hold(holds []cluster.Holding) {
	for i := range holds {
		h := &holds[i]
		n, ok := b.byName[h.Node]
		if !ok {
			continue
		}
		b.nodes[n].cpus -= h.CPUs
		b.nodes[n].memory -= h.MemoryMB
		if s := b.slotOf(n, h.Model); s >= 0 {
			b.shift(s, -h.GPUs, 0)
		}
	}
}

// Soften puts a lease that may end on the board. rank is its place in the queue,
// end when its GPUs are free if it is displaced.
func (b *Board) Soften(key cluster.JobKey, rank int, end cluster.Instant, holds []cluster.Holding) {
	f := &soft{key: key, rank: rank, end: end}
	for i := range holds {
		h := &holds[i]
		n, ok := b.byName[h.Node]
		if !ok {
			continue
		}
		b.nodes[n].cpus -= h.CPUs
		b.nodes[n].memory -= h.MemoryMB
		s := b.slotOf(n, h.Model)
		if s < 0 {
			continue
		}
		b.shift(s, -h.GPUs, h.GPUs)
		at, _ := slices.BinarySearchFunc(b.slots[s].held, f, lastFirst)
		b.slots[s].held = slices.Insert(b.slots[s].held, at, f)
		f.holds = append(f.holds, hold{s, h.GPUs, part{h.CPUs, h.MemoryMB}})
	}
	b.softs[key] = f
}

// Renew makes a soft lease fixed where it is. It fails if it was displaced.
func (b *Board) Renew(key cluster.JobKey) bool {
	f, ok := b.softs[key]
	if !ok {
		return false
	}
	for _, h := range f.holds {
		b.shift(h.slot, 0, -h.gpus)
		b.drop(h.slot, f)
	}
	delete(b.softs, key)
	return true
}

// displace frees what a soft lease holds.
func (b *Board) displace(key cluster.JobKey) {
	f := b.softs[key]
	for _, h := range f.holds {
		b.shift(h.slot, h.gpus, -h.gpus)
		b.drop(h.slot, f)
		n := &b.nodes[b.slots[h.slot].node]
		n.cpus += h.cpus
		n.memory += h.memory
		if f.end > b.now {
			b.slots[h.slot].later += h.gpus
			n.later.cpus += h.cpus
			n.later.memory += h.memory
			n.freeAt = max(n.freeAt, f.end)
		}
	}
	delete(b.softs, key)
	clear(b.failed) // what did not fit may fit now
}

// MindLimits says that claims will be made: shapes with different time limits then
// differ. It has to be called before any is registered.
func (b *Board) MindLimits() { b.limits = true }

// Claim says that new leases on these nodes must end by at, or their jobs' limits.
func (b *Board) Claim(nodes []cluster.Holding, at cluster.Instant) {
	for i := range nodes {
		if n, ok := b.byName[nodes[i].Node]; ok {
			b.nodes[n].claimed = at
		}
	}
	clear(b.failed)
}

func (b *Board) slotOf(n int, model string) int {
	for _, s := range b.nodes[n].slots {
		if b.pools[b.slots[s].pool] == model {
			return s
		}
	}
	return -1
}

func (b *Board) drop(s int, f *soft) {
	held := b.slots[s].held
	if i := slices.Index(held, f); i >= 0 {
		b.slots[s].held = slices.Delete(held, i, i+1)
	}
}

// shift moves a slot's idle and soft counts and keeps the indices true.
func (b *Board) shift(s, idle, soft int) {
	l := &b.slots[s]
	p := l.pool
	open := !b.nodes[l.node].shut
	if open {
		b.idle[p][b.clamp(p, l.idle)].clear(l.at)
		b.avail[p][b.clamp(p, l.idle+l.soft)].clear(l.at)
	}
	l.idle += idle
	l.soft += soft
	if open {
		b.free[p] += idle
		b.idle[p][b.clamp(p, l.idle)].set(l.at)
		b.avail[p][b.clamp(p, l.idle+l.soft)].set(l.at)
	}
}

// clamp keeps counts in range where Slurm reports more held than exists.
func (b *Board) clamp(p, k int) int { return min(max(k, 0), b.most[p]) }

// bitset is a set of small integers that is walked in order.
type bitset []uint64

func newBitsets(k, n int) []bitset {
	sets := make([]bitset, k)
	for i := range sets {
		sets[i] = make(bitset, (n+63)/64)
	}
	return sets
}

func (s bitset) set(i int)   { s[i/64] |= 1 << (i % 64) }
func (s bitset) clear(i int) { s[i/64] &^= 1 << (i % 64) }

// next gives the first member ≥ i, or -1.
func (s bitset) next(i int) int {
	for w := i / 64; w < len(s); w++ {
		word := s[w]
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// hasFeatures evaluates the two forms of constraint that we place: "a&b" and
// "a|b". Others are refused when the snapshot is built.
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
