package place

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The leases that a gang may displace; Own+n is those of owner n and those of no owner.
const (
	Nobodys = iota
	Anybodys
	Own
)

// Ask is one attempt to place a shape.
type Ask struct {
	Shape, Pool int
	Now, End    cluster.Instant // of the lease
	// Displace selects the soft leases that may be displaced: Nobodys, Anybodys, or Own and the
	// number of an owner.
	Displace int
	// Spares is 1 + the owner whose leases of at least the requested size stay in any case; 0 =
	// none.
	Spares int
	// Sharer says with whom a part may share a GPU: see Spots. It makes no difference to whole GPUs.
	Sharer int
	// Stops = its lease is stoppable: it may use nodes that are gathered for a gang.
	Stops bool
	// MaxRatio is the maximum number of displaced leases; < 0 = no limit.
	Max int
	// Together = only on as few nodes as the gang can be on.
	Together bool
	// Near = only under as few switches as so many nodes need; it makes no difference to a pool that is not Switched.
	Near bool
}

// Placement is the place of a gang, the leases that it displaces, and its earliest start: now, or
// when the displaced leases there have ended.
type Placement struct {
	Nodes     []cluster.Holding // by node
	Displaced []int             // their numbers, ascending
	At        cluster.Instant
	Sharer    int // of the ask
}

// search is the search for an ask on a board.
type search struct {
	board *Board
	sp    *spec
	ask   Ask
	// must are the slots that the gang must all have, and rest those from which it has the others; empty = none, and all.
	must, rest bitset
}

func (b *Board) search(a Ask) *search {
	x := &search{board: b, sp: &b.site.specs[a.Shape], ask: a}
	x.rest = x.sp.onlyIn(a.Pool)
	return x
}

// Fit finds GPUs for a gang, all or nothing, without taking them: idle GPUs if it fits there,
// else by displacing soft leases.
func (b *Board) Fit(a Ask) (Placement, bool) {
	if tooFew(b, a) {
		return Placement{}, false
	}
	key, base := attemptOf(b, a), b.site.specs[a.Shape].base
	if b.tried.has(base, key) {
		return Placement{}, false
	}
	x := b.search(a)
	var memory [mostSplits]split
	splits := x.splits(memory[:0])
	for _, now := range []bool{true, false} {
		for _, sl := range splits {
			x.must, x.rest = x.sp.lists(a.Pool, sl.nodes)
			if found := onSound(x, sl, now); found != nil {
				return x.placement(found), true
			}
		}
	}
	if key.displace != Nobodys {
		for _, sl := range splits {
			x.must, x.rest = x.sp.lists(a.Pool, sl.nodes)
			found := onSoftNear(x, sl)
			if found == nil {
				continue
			}
			if p := x.placement(found); a.Max < 0 || len(p.Displaced) <= a.Max {
				return p, true
			}
		}
	}
	b.tried.add(base, key)
	return Placement{}, false
}

// split is a way to spread a gang: nodes times GPUs on each; per == 0 is any spread over exactly
// that many nodes.
type split struct{ nodes, per int }

// mostSplits is how many ways to spread a gang are tried: on least to least+8 nodes, evenly and unevenly.
const mostSplits = 2 * 9

// splits appends the ways to spread the gang, fewest nodes first.
func (x *search) splits(out []split) []split {
	r, pool := &x.sp.Request, &x.board.site.byPool[x.ask.Pool]
	if r.Exclusive {
		return append(out, split{wholeNodes(r, pool.most), wholeNode})
	}
	if r.PerNode > 0 {
		return append(out, split{max(r.Nodes, (r.Size.Devices+r.PerNode-1)/r.PerNode, 1), r.PerNode})
	}
	least := max(r.Nodes, (r.Size.Devices+pool.most-1)/max(pool.most, 1), 1)
	most := r.MaxNodes
	if most == 0 {
		most = max(min(r.Size.Devices, len(pool.slots)), 1)
	}
	if x.ask.Together {
		most = least
	}
	for n := least; n <= most && n <= least+8; n++ {
		if r.Size.Devices%n == 0 {
			out = append(out, split{n, r.Size.Devices / n})
		}
		if n > 1 {
			out = append(out, split{n, 0})
		}
	}
	return out
}

// wholeNodes gives the number of whole nodes for an exclusive request, of so many GPUs each.
func wholeNodes(r *cluster.Request, gpus int) int {
	return max(r.Nodes, (r.Size.Devices+gpus-1)/max(gpus, 1), 1)
}

// wholeNode as the number of GPUs per node means all GPUs of the node.
const wholeNode = -1

// choice is a candidate node for a part of a gang.
type choice struct {
	slot      int
	gpus      int
	displaced []*soft
	worst     int              // smallest displaced rank: the lease nearest to the front
	freed     cluster.MicroGPU // displaced
	spare     int              // GPUs left over
}

// scan is the number of nodes that are compared for the best.
const scan = 64

// onIdle takes the tightest idle nodes; for an uneven spread the emptiest. Of nodes that are as tight, those come first on which a job
// runs that cannot be stopped: whole nodes then become idle sooner on the others, where gangs need them. With now it excludes GPUs that
// become idle later.
func (x *search) onIdle(sl split, now bool) []choice {
	if sl.per == 0 {
		return x.onEmptiest(sl, now)
	}
	if x.isPart() {
		if found := x.onParts(now); found != nil {
			return found
		}
	}
	found := x.board.tried.idle[:0]
	defer func() { x.board.tried.idle = found }()
	for at := x.must.next(0, nil); at >= 0; at = x.must.next(at+1, nil) {
		s := x.board.site.byPool[x.ask.Pool].slots[at]
		want := x.want(s, sl)
		if want == 0 || !x.takes(s, want, now) {
			return nil
		}
		found = append(found, choice{slot: s, gpus: want})
	}
	sets, bound := x.board.idle[x.ask.Pool], x.board.bound[x.ask.Pool]
	some := bitset(nil) // a job of several nodes is looked for without slow ones before: see onSound
	if sl.nodes == 1 {
		some = first(x, sl.nodes)
	}
	rests, from := inTurn(some, x.rest)
	for k := 2 * max(sl.per, 1); k < 2*len(sets); k++ { // in turn, as tight and bound, as tight and not
		set, in := sets[k/2], k%2 == 0
		for _, rest := range rests[from:] {
			for at := set.nextOf(0, rest, bound, in); at >= 0; at = set.nextOf(at+1, rest, bound, in) {
				s := x.board.site.byPool[x.ask.Pool].slots[at]
				want := x.want(s, sl)
				if want == 0 || !x.takes(s, want, now) {
					continue
				}
				if found = append(found, choice{slot: s, gpus: want}); len(found) == sl.nodes {
					return found
				}
			}
		}
	}
	return nil
}

// onEmptiest spreads a gang unevenly over the idle GPUs of the emptiest nodes.
func (x *search) onEmptiest(sl split, now bool) []choice {
	var must, seen []choice
	most := func(list []choice, s int) []choice {
		for want := min(x.board.slots[s].idle, x.sp.Request.Size.Devices); want > 0; want-- {
			if x.admits(s, want, x.board.slots[s].idle, none) && (!now || !x.late(s, want)) {
				return append(list, choice{slot: s, gpus: want})
			}
		}
		return list
	}
	slots := x.board.site.byPool[x.ask.Pool].slots
	for at := x.must.next(0, nil); at >= 0; at = x.must.next(at+1, nil) {
		if must = most(must, slots[at]); must == nil || must[len(must)-1].slot != slots[at] {
			return nil
		}
	}
	sets := x.board.idle[x.ask.Pool]
	for k := len(sets) - 1; k > 0; k-- {
		for at := sets[k].next(0, x.rest); at >= 0; at = sets[k].next(at+1, x.rest) {
			seen = most(seen, slots[at])
		}
		full := 0 // nodes that take as many GPUs as any further one could
		for i := range seen {
			if seen[i].gpus >= min(k-1, x.sp.Request.Size.Devices) {
				full++
			}
		}
		if full >= sl.nodes {
			break
		}
	}
	slices.SortStableFunc(seen, func(a, b choice) int { return cmp.Compare(b.gpus, a.gpus) })
	return deal(append(must, seen...), sl.nodes, x.sp.Request.Size.Devices)
}

// deal spreads a gang over the first n nodes: at least one GPU on each, as many as possible on
// the first ones. nil = they do not take all.
func deal(seen []choice, n, gpus int) []choice {
	if len(seen) < n {
		return nil
	}
	seen = seen[:n]
	for i := range seen {
		seen[i].gpus = min(seen[i].gpus, gpus-(n-1-i))
		gpus -= seen[i].gpus
	}
	if gpus > 0 {
		return nil
	}
	return seen
}

// isPart reports whether an ask is for shards of one GPU.
func (x *search) isPart() bool {
	return x.sp.Request.Shards > 0 && !x.sp.Request.Exclusive && x.board.parts.slots != nil
}

// want gives the GPUs of a slot for an even split; 0 = none.
func (x *search) want(s int, sl split) int {
	if sl.per != wholeNode {
		return sl.per
	}
	r := &x.sp.Request
	if l := &x.board.slots[s]; l.total >= max(r.PerNode, (r.Size.Devices+sl.nodes-1)/sl.nodes) {
		return l.total
	}
	return 0
}

// onSoft compares nodes where displacing soft leases makes space, and takes the least disturbing
// ones: no lease first, then leases at the end of the queue, few freed GPUs, slow nodes last (see
// Slow), few left over, by node.
func (x *search) onSoft(sl split) []choice {
	sets := x.board.avail[x.ask.Pool]
	least := max(sl.per, 1)
	if x.isPart() {
		sets, least = x.board.parts.loose[x.ask.Pool], x.board.site.byPool[x.ask.Pool].scaled(x.sp.Request.Shards)
	}
	if !sets[min(least, len(sets)):].atLeast(sl.nodes) {
		return nil
	}
	x.board.tried.taken = x.board.tried.taken[:0]
	seen := x.board.tried.soft[:0]
	defer func() { x.board.tried.soft = seen }()
	room := func(s int) (choice, bool) {
		if sl.per == 0 {
			return x.makeMostRoom(s)
		}
		return x.makeRoom(s, x.want(s, sl))
	}
	slots := x.board.site.byPool[x.ask.Pool].slots
	for at := x.must.next(0, nil); at >= 0; at = x.must.next(at+1, nil) {
		c, ok := room(slots[at])
		if !ok {
			return nil
		}
		seen = append(seen, c)
	}
	must := len(seen)
	for k := least; k < len(sets); k++ {
		for at := sets[k].next(0, x.rest); at >= 0; at = sets[k].next(at+1, x.rest) {
			c, ok := room(slots[at])
			if ok {
				seen = append(seen, c)
			}
			if sl.per == 0 {
				continue
			}
			if len(seen) >= max(scan, 4*sl.nodes) {
				k = len(sets)
				break
			}
		}
	}
	less := func(a, b *choice) bool {
		switch {
		case sl.per == 0 && a.gpus != b.gpus:
			return a.gpus > b.gpus
		case a.worst != b.worst:
			return a.worst > b.worst
		case a.freed != b.freed:
			return a.freed < b.freed
		}
		if one, other := dislikes(x, sl.nodes, a.slot), dislikes(x, sl.nodes, b.slot); one != other {
			return one < other
		}
		return a.spare < b.spare
	}
	if len(seen) < sl.nodes {
		return nil
	}
	best(seen[must:], sl.nodes-must, less)
	if sl.per != 0 {
		return x.needed(seen[:sl.nodes])
	}
	return x.needed(deal(seen, sl.nodes, x.sp.Request.Size.Devices))
}

// best brings the first n of a list in order to its front; of equal ones, the first in the list.
func best(list []choice, n int, less func(a, b *choice) bool) {
	const few = 8 // for which looking through the list is cheaper than sorting it
	if n > few {
		slices.SortStableFunc(list, func(a, b choice) int {
			switch {
			case less(&a, &b):
				return -1
			case less(&b, &a):
				return 1
			}
			return 0
		})
		return
	}
	for k := range min(n, len(list)) {
		at := k
		for i := k + 1; i < len(list); i++ {
			if less(&list[i], &list[at]) {
				at = i
			}
		}
		if c := list[at]; at > k {
			copy(list[k+1:at+1], list[k:at])
			list[k] = c
		}
	}
}

// noRank is the worst rank, of a choice that displaces no lease.
const noRank = math.MaxInt

// makeMostRoom gives the displacements that free as much of a slot as possible.
func (x *search) makeMostRoom(s int) (choice, bool) {
	for want := min(x.sp.Request.Size.Devices, x.board.slots[s].idle+x.board.slots[s].soft); want > 0; want-- {
		if c, ok := x.makeRoom(s, want); ok {
			return c, true
		}
	}
	return choice{}, false
}

// makeRoom gives the displacements that free a slot for its part of the gang.
func (x *search) makeRoom(s, want int) (choice, bool) {
	b := x.board
	c := choice{slot: s, gpus: want, worst: noRank, spare: x.left(s, want, nil)}
	if want == 0 || c.spare < 0 && !b.slots[s].mayHaveOf(x.ask.Displace) {
		return c, false
	}
	var freed part
	shared := b.parts.slots != nil
	from := len(b.tried.taken)
	for _, f := range b.lastHere(s) {
		if c.spare >= 0 && x.admits(s, want, c.spare+want, freed) {
			break
		}
		if !f.isOf(x.ask.Displace) || x.ask.Spares > 0 && x.ask.Spares == 1+f.owner && amount(b, f) >= x.sp.Request.Size.Amount() {
			continue
		}
		b.tried.taken = append(b.tried.taken, f)
		gpus, part := b.freedOn(f, s)
		c.spare, freed = c.spare+gpus, freed.plus(part)
		if c.displaced = b.tried.taken[from:len(b.tried.taken):len(b.tried.taken)]; shared {
			c.displaced = x.leaves(s, c.displaced)
			c.spare, freed = x.left(s, want, c.displaced), freedBy(b, c.displaced, s)
		}
	}
	if c.spare < 0 || !x.admits(s, want, c.spare+want, freed) {
		return c, false
	}
	for _, f := range c.displaced {
		c.worst = min(c.worst, f.rank)
	}
	if len(c.displaced) > 1 {
		c = x.needed([]choice{c})[0]
	}
	for _, f := range c.displaced {
		c.freed += amount(b, f)
	}
	return c, true
}

// lastHere gives the soft leases of a slot, the last in the queue first; then those on other
// models of its node, which may free CPUs and memory.
func (b *Board) lastHere(s int) []*soft {
	here := b.slots[s].held
	m := &b.site.machines[b.slots[s].node]
	if m.last-m.first == 1 {
		return here
	}
	var others []*soft
	for o := m.first; o < m.last; o++ {
		for _, f := range b.slots[o].held {
			if !slices.Contains(here, f) && !slices.Contains(others, f) {
				others = append(others, f)
			}
		}
	}
	slices.SortFunc(others, lastFirst)
	return append(slices.Clone(here), others...)
}

// lastFirst orders soft leases: the last in the queue first.
func lastFirst(x, y *soft) int {
	return cmp.Or(cmp.Compare(y.rank, x.rank), cmp.Compare(x.who, y.who))
}

// freedOn gives what a soft lease frees in a slot and on its node.
func (b *Board) freedOn(f *soft, s int) (gpus int, freed part) {
	for _, h := range f.holds {
		if h.slot == s {
			gpus += h.gpus
		}
		if b.slots[h.slot].node == b.slots[s].node {
			freed = freed.plus(h.part)
		}
	}
	return gpus, freed
}

// freedBy gives the CPUs and memory that leases free on a slot's node.
func freedBy(b *Board, leases []*soft, s int) (freed part) {
	for _, f := range leases {
		_, part := b.freedOn(f, s)
		freed = freed.plus(part)
	}
	return freed
}

// needed drops unnecessary displacements: among all that the choices displace, those nearest to
// the front first.
func (x *search) needed(found []choice) []choice {
	var all []*soft
	for i := range found {
		for _, f := range found[i].displaced {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	slices.SortFunc(all, func(a, b *soft) int { return lastFirst(b, a) })
	gone := all
	if x.board.parts.slots != nil {
		gone = slices.Clone(all)
	}
	spare := make([]int, len(found)) // GPUs
	freed := make([]part, len(found))
	for i := range found {
		spare[i], freed[i] = x.left(found[i].slot, found[i].gpus, all), freedBy(x.board, all, found[i].slot)
	}
	// kept gives what is left and freed on a slot if some leases stay after all.
	kept := func(i int, stay []*soft) (int, part) {
		left, rest, shared := spare[i], freed[i], false
		for _, f := range stay {
			gpus, part := x.board.freedOn(f, found[i].slot)
			left, rest = left-gpus, rest.less(part)
			shared = shared || f.shares(found[i].slot)
		}
		if shared {
			left = x.left(found[i].slot, found[i].gpus, slices.DeleteFunc(slices.Clone(gone), func(f *soft) bool { return slices.Contains(stay, f) }))
		}
		return left, rest
	}
	without := func(stay []*soft) bool {
		for i := range found {
			left, part := kept(i, stay)
			if left == spare[i] && part == freed[i] {
				continue
			}
			if left < 0 || !x.admits(found[i].slot, found[i].gpus, left+found[i].gpus, part) {
				return false
			}
		}
		return true
	}
	for k, f := range all {
		if !slices.Contains(gone, f) {
			continue
		}
		stay := x.together(found[0].slot, all[k:k+1], gone)
		if !without(stay) {
			continue
		}
		for i := range found {
			spare[i], freed[i] = kept(i, stay)
			found[i].displaced = slices.DeleteFunc(found[i].displaced, func(k *soft) bool { return slices.Contains(stay, k) })
		}
		if x.board.parts.slots != nil {
			gone = slices.DeleteFunc(gone, func(k *soft) bool { return slices.Contains(stay, k) })
		}
	}
	for i := range found {
		found[i].spare = spare[i]
	}
	return found
}

// admits tells whether a node takes want GPUs of the job, of idle ones: partition, node lists, features, CPUs
// and memory (with what would be freed), future reservations and claims. It does not compare the two numbers.
func (x *search) admits(s, want, idle int, freed part) bool {
	l := &x.board.slots[s]
	n, m := &x.board.nodes[l.node], &x.board.site.machines[l.node]
	r := &x.sp.Request
	if n.shut || !m.shares(x.sp) {
		return false
	}
	free := n.free.plus(freed)
	if r.Exclusive && free != m.all { // every job holds CPUs or memory
		return false
	}
	if cpus, memory := share(r, want); free.cpus < cpus || free.memory < memory {
		return false
	}
	if x.rest != nil && !x.rest.has(l.at) && (x.must == nil || !x.must.has(l.at)) {
		return false
	}
	if !hasFeatures(m.features, r.Features) {
		return false
	}
	if n.claimed > 0 && x.ask.End > n.claimed && (x.sp.Limit == 0 || x.ask.Now.Add(x.sp.Limit) > n.claimed) {
		return false
	}
	if n.gathers && !x.ask.Stops {
		return false
	}
	return !x.board.view.Reserved || len(m.windows) == 0 || x.unreserved(m, want, idle, free.cpus)
}

// unreserved tells whether reservations of others leave the job the GPUs and CPUs that it needs on a node. On a board with the jobs of
// reservations, GPUs and CPUs that these hold are not free already.
func (x *search) unreserved(m *machine, want, idle, free int) bool {
	counts, gpus := false, 0
	for i := range m.windows {
		w := &m.windows[i]
		if w.lets(x.sp, x.ask.Now) {
			continue
		}
		if w.cpus == 0 || x.sp.Request.Exclusive {
			return false
		}
		counts = true
		if x.board.view.Occupied {
			free, gpus = free-max(w.cpus-w.usedCPUs, 0), gpus+max(w.gpus-int((w.usedGPUs+cluster.WholeGPU-1)/cluster.WholeGPU), 0)
		} else {
			free, gpus = free-w.cpus, gpus+w.gpus
		}
	}
	cpus, _ := share(&x.sp.Request, want)
	return !counts || free >= max(cpus, 1) && (gpus == 0 || idle-want >= gpus)
}

// shares tells whether a node is in a partition of the job.
func (m *machine) shares(sp *spec) bool {
	both := m.parts & sp.parts
	if both&^lastPartition != 0 || len(sp.Partitions) == 0 {
		return true
	}
	return both != 0 && slices.ContainsFunc(sp.Partitions, func(p string) bool { return slices.Contains(m.partitions, p) })
}

// lets tells whether the job may run on a node with this reservation. Its time limit must end
// before the reservation starts (Slurm does not start it otherwise), or the reservation takes in
// jobs that do not name it (MAGNETIC), is for it, and lasts as long. Jobs that name a reservation of others have no lease.
func (w *window) lets(sp *spec, now cluster.Instant) bool {
	if w.magnetic && w.start <= now && len(w.accounts)+len(w.users) > 0 && includes(w.accounts, sp.Account) && includes(w.users, sp.User) {
		return w.flex || w.end == 0 || sp.Limit > 0 && now.Add(sp.Limit) <= w.end
	}
	return w.start > now && sp.Limit > 0 && now.Add(sp.Limit) <= w.start
}

// includes tells whether a list of a reservation has a name; an empty list has every name. Slurm writes names that are
// kept out with a minus.
func includes(list []string, name string) bool {
	return len(list) == 0 || slices.Contains(list, name) || list[0] != "" && list[0][0] == '-' && !slices.Contains(list, "-"+name)
}

// share gives the CPUs and the memory for some of a job's GPUs.
func share(r *cluster.Request, gpus int) (int, int64) {
	if r.Exclusive {
		nodes := wholeNodes(r, gpus)
		return r.CPUs / nodes, r.MemoryMB / int64(nodes)
	}
	all := max(r.Size.Devices, 1)
	return (r.CPUs*gpus + all - 1) / all, (r.MemoryMB*int64(gpus) + int64(all) - 1) / int64(all)
}

// late tells whether a part of a job's GPUs on a slot is not free yet.
func (x *search) late(s, want int) bool {
	l := &x.board.slots[s]
	n := &x.board.nodes[l.node]
	cpus, memory := share(&x.sp.Request, want)
	if n.free.cpus-n.later.cpus < cpus || n.free.memory-n.later.memory < memory {
		return true
	}
	if x.joins(s) {
		h := &x.board.parts.slots[s]
		return h.most-h.later < x.shards(s)
	}
	return l.idle-l.later < want
}

// placement converts choices to holdings.
func (x *search) placement(found []choice) Placement {
	p := Placement{At: x.board.site.now, Sharer: x.ask.Sharer, Nodes: make([]cluster.Holding, 0, len(found))}
	for _, c := range found {
		l := &x.board.slots[c.slot]
		cpus, memory := share(&x.sp.Request, c.gpus)
		if x.late(c.slot, c.gpus) {
			p.At = max(p.At, x.board.nodes[l.node].freeAt)
		}
		m, size := &x.board.site.machines[l.node], cluster.Whole(c.gpus)
		if k := x.shards(c.slot); k > 0 {
			size.Part = cluster.MicroGPU(k) * cluster.WholeGPU / cluster.MicroGPU(m.shards)
		}
		p.Nodes = append(p.Nodes, cluster.Holding{Node: m.name, Model: x.board.site.pools[l.pool], Size: size, CPUs: cpus, MemoryMB: memory})
		for _, f := range c.displaced {
			p.At = max(p.At, f.end)
			if !slices.Contains(p.Displaced, f.who) {
				p.Displaced = append(p.Displaced, f.who)
			}
		}
	}
	slices.SortFunc(p.Nodes, func(a, b cluster.Holding) int { return strings.Compare(a.Node, b.Node) })
	slices.Sort(p.Displaced)
	return p
}

// Take executes a placement: displaced leases leave the board.
func (b *Board) Take(p Placement) {
	for _, who := range p.Displaced {
		b.displace(who)
	}
	b.spots = b.site.Spots(p.Nodes, p.Sharer, b.spots[:0])
	for i := range b.spots {
		h := &b.spots[i]
		d, l, gpus := &b.nodes[h.node], &b.slots[h.slot], h.gpus
		if h.shards > 0 {
			gpus = takeShards(b, h, p.At >= d.freeAt)
		}
		if p.At >= d.freeAt { // GPUs that are free now stay free
			l.later = max(l.later-gpus, 0)
			d.later = part{max(d.later.cpus-h.cpus, 0), max(d.later.memory-h.memory, 0)}
			continue
		}
		l.later = min(l.later, max(l.idle-gpus, 0))
		d.later = part{min(d.later.cpus, max(d.free.cpus-h.cpus, 0)), min(d.later.memory, max(d.free.memory-h.memory, 0))}
	}
	Fill(b, b.spots, 1)
}
