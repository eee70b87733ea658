package place

import (
	"cmp"
	"iter"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A GPU is in whole use, or it is shared: jobs have shards of it (gres/shard), each job on one GPU. Slurm chooses the GPU on a node, the one
// with the lowest number that has room. Shared GPUs count as neither idle nor soft, unless all that is on them may end: then they are soft.
//
// The GPU of a piece follows from the pieces of the node alone, in whatever order they came. A piece lies on the GPU that Slurm has told. The
// others, largest first, lie on the first shared GPU with room, or take one more.

// piece is the shards of one GPU that a job has; none = it has whole GPUs.
type piece struct {
	shards, index int32 // index: the number of the GPU, -1 = not known
	sharer        int   // 0 = it may be on a GPU with anybody, else only with equal ones and 0
}

// sharesWith reports whether the piece may be on a GPU with one of a sharer.
func (p *piece) sharesWith(sharer int) bool {
	return sharer == 0 || p.sharer == 0 || p.sharer == sharer
}

// pieceOf gives what a holding has of a GPU with so many shards.
func pieceOf(h *cluster.Holding, shards, sharer int) piece {
	if shards == 0 || h.Size.Devices != 1 || h.Size.IsWhole() {
		return piece{}
	}
	k := (int64(h.Size.Part)*int64(shards) + int64(cluster.WholeGPU) - 1) / int64(cluster.WholeGPU)
	if k >= int64(shards) {
		return piece{}
	}
	p := piece{int32(k), -1, sharer}
	if len(h.Index) == 1 {
		p.index = int32(h.Index[0])
	}
	return p
}

// lying is a piece on a slot.
type lying struct {
	piece
	of *soft // nil = fixed
}

// byGPU is the order in which pieces are put on GPUs.
func byGPU(a, b lying) int {
	if c := cmp.Compare(uint32(a.index), uint32(b.index)); c != 0 { // -1 is the last
		return c
	}
	who := func(x *soft) int {
		if x == nil {
			return -1
		}
		return x.who
	}
	return cmp.Or(cmp.Compare(b.shards, a.shards), cmp.Compare(who(a.of), who(b.of)), cmp.Compare(a.sharer, b.sharer))
}

// sharing is the shared GPUs of a slot.
type sharing struct {
	pieces  []lying // by byGPU
	gpus    int     // shared GPUs
	firm    int     // of these are left if all pieces go that may end
	most    int     // shards that are free on one of them
	later   int     // of these are free only once displaced leases have ended
	rest    int     // index into parts.rest
	loose   int     // index into parts.loose
	without int     // shards that are free on one of them if all pieces go that may end
}

// parts is the shared GPUs of a board, and an index of them; all are nil if no node has shards.
type parts struct {
	slots []sharing // by slot
	rest  []bitsets // rest[pool][1+k]: slots with k of scale shards free on a shared GPU, [0]: slots without shared GPUs
	loose []bitsets // loose[pool][1+k]: if all go that may end; the last: then a whole GPU is free
}

// manyShards is the number of sets by free shards. If GPUs have more shards, each set is for several numbers of free shards.
const manyShards = 64

// scaled gives the set for a number of free shards.
func (t *poolSite) scaled(shards int) int { return 1 + max(shards, 0)/(1+t.shards/manyShards) }

// newParts prepares an index.
func newParts(t *Site) parts {
	if !slices.ContainsFunc(t.byPool, func(p poolSite) bool { return p.shards > 0 }) {
		return parts{}
	}
	x := parts{make([]sharing, len(t.slots)), make([]bitsets, len(t.pools)), make([]bitsets, len(t.pools))}
	for p := range t.pools {
		all := &t.byPool[p]
		x.rest[p], x.loose[p] = newBitsets(1+all.scaled(all.shards), len(all.slots)), newBitsets(1+all.scaled(all.shards), len(all.slots))
	}
	return x
}

// emptyParts takes all pieces off.
func emptyParts(x *parts) {
	for s := range x.slots {
		x.slots[s] = sharing{pieces: x.slots[s].pieces[:0]}
	}
	for p := range x.rest {
		x.rest[p].emptied()
		x.loose[p].emptied()
	}
}

// copy makes the pieces and the index those of another board.
func (x *parts) copy(o *parts) {
	for s := range x.slots {
		pieces := append(x.slots[s].pieces[:0], o.slots[s].pieces...)
		x.slots[s] = o.slots[s]
		x.slots[s].pieces = pieces
	}
	for p := range x.rest {
		copy(x.rest[p].all(), o.rest[p].all())
		copy(x.loose[p].all(), o.loose[p].all())
	}
}

// index puts a slot into the sets where it belongs.
func (x *parts) index(t *Site, s int, l *slot) {
	h, p := &x.slots[s], &t.byPool[l.pool]
	rest, loose := 0, 0
	if h.gpus > 0 {
		rest, loose = p.scaled(h.most), p.scaled(h.without)
	}
	if l.idle+l.soft > 0 {
		loose = p.scaled(p.shards)
	}
	x.rest[l.pool].move(l.at, h.rest, rest)
	x.loose[l.pool].move(l.at, h.loose, loose)
	h.rest, h.loose = rest, loose
}

// lay puts pieces on the GPUs of a node, but for those of leases that have gone, and more shards of a further piece. It gives the number of
// shared GPUs, and the shards that are free on the one with most of them.
func lay(pieces []lying, shards int, gone func(*soft) bool, more int) (gpus, most int) {
	var memory [16]int
	room := memory[:0] // by GPU
	put := func(k int) {
		at := slices.IndexFunc(room, func(free int) bool { return free >= k })
		if at < 0 {
			at, room = len(room), append(room, shards)
		}
		room[at] -= k
	}
	last := int32(-1)
	for i := range pieces {
		p := &pieces[i]
		switch {
		case p.of != nil && gone(p.of):
		case p.index >= 0:
			if p.index != last {
				last, room = p.index, append(room, shards)
			}
			room[len(room)-1] -= int(p.shards)
		default:
			if more > int(p.shards) {
				put(more)
				more = 0
			}
			put(int(p.shards))
		}
	}
	if more > 0 {
		put(more)
	}
	for _, free := range room {
		most = max(most, free)
	}
	return len(room), most
}

// apart gives the pieces of a slot by the GPU that Slurm has told. Each of the others is by itself.
func apart(pieces []lying) iter.Seq[[]lying] {
	return func(yield func([]lying) bool) {
		for from := 0; from < len(pieces); {
			to := from + 1
			for ; to < len(pieces) && pieces[to].index >= 0 && pieces[to].index == pieces[from].index; to++ {
			}
			if !yield(pieces[from:to]) {
				return
			}
			from = to
		}
	}
}

// addPiece puts a piece on a slot.
func addPiece(b *Board, s int, p lying) {
	h := &b.parts.slots[s]
	at, _ := slices.BinarySearchFunc(h.pieces, p, byGPU)
	h.pieces = slices.Insert(h.pieces, at, p)
	if p.index >= 0 { // a hole that kept others off may be filled
		b.tried.round++
	}
	relay(b, s)
}

// removePiece takes a piece off a slot.
func removePiece(b *Board, s int, p lying) {
	h := &b.parts.slots[s]
	if at, found := slices.BinarySearchFunc(h.pieces, p, byGPU); found {
		h.pieces = slices.Delete(h.pieces, at, at+1)
	}
	b.tried.round++
	relay(b, s)
}

// turnPiece makes a piece that is fixed one of a lease that may end, or the other way round.
func turnPiece(b *Board, s int, p piece, from, to *soft) {
	h := &b.parts.slots[s]
	if at, found := slices.BinarySearchFunc(h.pieces, lying{p, from}, byGPU); found {
		h.pieces[at].of = to
		slices.SortFunc(h.pieces, byGPU)
	}
	relay(b, s)
}

// relay counts the shared GPUs of a slot anew.
func relay(b *Board, s int) {
	h, shards := &b.parts.slots[s], b.site.machines[b.slots[s].node].shards
	gpus, loose := h.gpus, h.gpus-h.firm
	h.gpus, h.most = lay(h.pieces, shards, func(*soft) bool { return false }, 0)
	h.firm, h.without = lay(h.pieces, shards, func(*soft) bool { return true }, 0)
	if h.gpus == 0 {
		h.later = 0
	}
	b.shift(s, gpus-h.gpus, h.gpus-h.firm-loose)
}

// shares reports whether a lease has a piece on a slot.
func (f *soft) shares(s int) bool {
	return slices.ContainsFunc(f.holds, func(h hold) bool { return h.slot == s && h.shards > 0 })
}

// shards gives the shards of one GPU that an ask takes on a slot; 0 = it takes whole GPUs there.
func (x *search) shards(s int) int {
	r := &x.sp.Request
	if r.Shards == 0 || r.Exclusive || r.Shards >= x.board.site.machines[x.board.slots[s].node].shards {
		return 0
	}
	return r.Shards
}

// joins reports whether an ask goes to a shared GPU of a slot as it is.
func (x *search) joins(s int) bool {
	k := x.shards(s)
	return k > 0 && x.board.parts.slots[s].most >= k
}

// left gives the GPUs of a slot that are neither shared nor in whole use once leases have gone and an ask has its part there; < 0 = it cannot.
func (x *search) left(s, want int, displaced []*soft) int {
	b := x.board
	idle := b.slots[s].idle
	for _, f := range displaced {
		gpus, _ := b.freedOn(f, s)
		idle += gpus
	}
	k := x.shards(s)
	if k == 0 && (b.parts.slots == nil || len(b.parts.slots[s].pieces) == 0) {
		return idle - want
	}
	h, shards := &b.parts.slots[s], b.site.machines[b.slots[s].node].shards
	gone := func(f *soft) bool { return slices.Contains(displaced, f) }
	gpus, most := lay(h.pieces, shards, gone, 0)
	idle += h.gpus - gpus
	switch {
	case k == 0:
		return idle - want
	case most < k && (idle < 1 || x.sp.Request.MPS && gpus > 0) || x.barred(h.pieces, shards, k, displaced):
		return -1
	}
	with, _ := lay(h.pieces, shards, gone, k)
	return idle + gpus - with
}

// barred reports whether a part must not be on a node once leases have gone: Slurm could put it on a GPU with a piece of somebody with whom
// it may not share, or has parts by MPS on one GPU of the node only. Pieces whose GPU is not known yet fill no room on the others, and may go to any GPU with room for them.
func (x *search) barred(pieces []lying, shards, k int, displaced []*soft) bool {
	if x.ask.Sharer == 0 {
		return false
	}
	for gpu := range apart(pieces) {
		room, stranger := shards, false
		for i := range gpu {
			if p := &gpu[i]; p.of == nil || !slices.Contains(displaced, p.of) {
				room, stranger = room-int(p.shards), stranger || !p.sharesWith(x.ask.Sharer)
			}
		}
		if stranger && (room >= k || x.sp.Request.MPS) {
			return true
		}
	}
	return false
}

// together gives the leases of a list that stay if one stays: those on its GPU if a part ask may not share a GPU with it, else it alone.
func (x *search) together(s int, one, list []*soft) []*soft {
	if x.ask.Sharer == 0 || x.shards(s) == 0 {
		return one
	}
	f := one[0]
	for gpu := range apart(x.board.parts.slots[s].pieces) {
		if slices.ContainsFunc(gpu, func(p lying) bool { return p.of == f && !p.sharesWith(x.ask.Sharer) }) {
			return slices.DeleteFunc(slices.Clone(list), func(o *soft) bool {
				return !slices.ContainsFunc(gpu, func(p lying) bool { return p.of == o })
			})
		}
	}
	return one
}

// leaves takes leases off a list if somebody stays on their GPU with whom a part ask may not share it: they would only make room there.
func (x *search) leaves(s int, list []*soft) []*soft {
	if x.ask.Sharer == 0 || x.shards(s) == 0 {
		return list
	}
	for gpu := range apart(x.board.parts.slots[s].pieces) {
		in := func(p *lying) bool { return p.of != nil && slices.Contains(list, p.of) }
		if slices.ContainsFunc(gpu, func(p lying) bool { return !in(&p) && !p.sharesWith(x.ask.Sharer) }) {
			list = slices.DeleteFunc(slices.Clone(list), func(f *soft) bool {
				return slices.ContainsFunc(gpu, func(p lying) bool { return p.of == f })
			})
		}
	}
	return list
}

// onParts gives the node for a part of a GPU where it shares one, the tightest; else a node that has shared GPUs already. Of nodes that are
// as tight, slow ones come first or last (see Slow).
func (x *search) onParts(now bool) []choice {
	r, only := x.sp.Request.Shards, x.sp.onlyIn(x.ask.Pool)
	all, rest, idle := &x.board.site.byPool[x.ask.Pool], x.board.parts.rest[x.ask.Pool], x.board.idle[x.ask.Pool]
	nodes, from := inTurn(among(prefers(x, 1), only), only)
	try := func(set, but bitset) []choice {
		for _, on := range nodes[from:] {
			for at := set.nextOf(0, on, but, false); at >= 0; at = set.nextOf(at+1, on, but, false) {
				if s := all.slots[at]; x.shards(s) > 0 && x.takes(s, 1, now) {
					return []choice{{slot: s, gpus: 1}}
				}
			}
		}
		return nil
	}
	for k := all.scaled(r); k < len(rest); k++ {
		if found := try(rest[k], rest[0]); found != nil {
			return found
		}
	}
	for k := 1; k < len(idle); k++ {
		if found := try(idle[k], rest[0]); found != nil {
			return found
		}
	}
	return nil
}

// takeShards prepares a slot for a piece. It gives 1 if that takes one more GPU, else 0. If late, it takes shards first that become free later.
func takeShards(b *Board, x *Spot, late bool) int {
	h, shards, k := &b.parts.slots[x.slot], b.site.machines[x.node].shards, int(x.shards)
	if h.most < k {
		if late && b.slots[x.slot].later > 0 {
			h.later += shards - k
		}
		return 1
	}
	if late {
		h.later = max(h.later-k, 0)
	} else {
		h.later = min(h.later, h.most-k)
	}
	return 0
}

// takes reports whether a slot takes GPUs of an ask as it is. With now it excludes what becomes idle later.
func (x *search) takes(s, want int, now bool) bool {
	left := x.left(s, want, nil)
	return left >= 0 && x.admits(s, want, left+want, none) && (!now || !x.late(s, want))
}
