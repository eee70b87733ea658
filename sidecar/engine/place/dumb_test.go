package place

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// dumb is a cluster that is searched by trying everything: what Board is held
// against.
type dumb struct {
	nodes []dumbNode
	now   cluster.Instant
	held  map[int]dumbLease // leases that may be displaced
	as    int               // the sharer of who asks
}

type dumbNode struct {
	cluster.Node
	whole, cpus int // GPUs in no whole use
	memory      int64
	pieces      []dumbPiece
	left        []int // numbers of GPUs from which pieces are displaced
	windows     []cluster.Reservation
	used        map[string]cluster.MicroGPU // by reservation
	usedCPUs    map[string]int
	claimed     cluster.Instant
}

// dumbPiece is some shards on a GPU with a number, -1 = not known.
type dumbPiece struct{ k, number, sharer int }

type dumbLease struct {
	rank, sharer int
	holds        []cluster.Holding
}

// lay gives the free shards of each GPU that has pieces: first those with numbers, then the others, largest first, where there is room.
func (n *dumbNode) lay(more ...dumbPiece) (room []int) {
	at := map[int]int{}
	pieces := append(slices.Clone(n.pieces), more...)
	for number := range 16 {
		for _, p := range pieces {
			if p.number == number {
				if _, ok := at[number]; !ok {
					at[number], room = len(room), append(room, n.Shards)
				}
				room[at[number]] -= p.k
			}
		}
	}
	for k := n.Shards; k > 0; k-- {
		for _, p := range pieces {
			if p.number < 0 && p.k == k {
				i := 0
				for i < len(room) && room[i] < k {
					i++
				}
				if i == len(room) {
					room = append(room, n.Shards)
				}
				room[i] -= k
			}
		}
	}
	return room
}

// idle gives the GPUs that nobody uses.
func (n *dumbNode) idle() int { return n.whole - len(n.lay()) }

// room gives the most free shards of a GPU with pieces.
func (n *dumbNode) room() int { return slices.Max(append(n.lay(), 0)) }

// rest gives the GPUs that nobody uses once a job is here, < 0 = it cannot be.
func (n *dumbNode) rest(r *cluster.Request, gpus, as int) int {
	if r.Shards == 0 || r.Shards == n.Shards {
		return n.idle() - gpus
	}
	if r.Shards > n.Shards || n.room() < r.Shards && n.idle() < 1 {
		return -1
	}
	for _, p := range n.pieces {
		if as == 0 || p.sharer == 0 || p.sharer == as {
			continue
		}
		used := p.k
		if p.number >= 0 {
			used = 0
			for _, o := range n.pieces {
				if o.number == p.number {
					used += o.k
				}
			}
		}
		if used+r.Shards <= n.Shards || p.number >= 0 && slices.Contains(n.left, p.number) {
			return -1
		}
	}
	return n.whole - len(n.lay(dumbPiece{r.Shards, -1, as}))
}

// take puts a holding on the node, or takes it off.
func (n *dumbNode) take(h *cluster.Holding, sharer, sign int) {
	n.cpus -= sign * h.CPUs
	n.memory -= int64(sign) * h.MemoryMB
	if h.Size.IsWhole() {
		n.whole -= sign * h.Size.Devices
		return
	}
	p := dumbPiece{int((h.Size.Part*cluster.MicroGPU(n.Shards) + cluster.WholeGPU/2) / cluster.WholeGPU), -1, sharer}
	if len(h.Index) > 0 {
		p.number = h.Index[0]
	}
	if n.pieces = slices.Clone(n.pieces); sign > 0 {
		n.pieces = append(n.pieces, p)
		return
	}
	at := slices.Index(n.pieces, p)
	n.pieces = slices.Delete(n.pieces, at, at+1)
}

func (d *dumb) node(name string) *dumbNode {
	for i := range d.nodes {
		if d.nodes[i].Name == name {
			return &d.nodes[i]
		}
	}
	return nil
}

func (d *dumb) take(holds []cluster.Holding, sharer, sign int) {
	for i := range holds {
		d.node(holds[i].Node).take(&holds[i], sharer, sign)
	}
}

// without gives the cluster as it would be with some leases gone.
func (d *dumb) without(keys ...int) *dumb {
	c := &dumb{nodes: slices.Clone(d.nodes), now: d.now, as: d.as}
	for _, key := range keys {
		c.take(d.held[key].holds, d.held[key].sharer, -1)
		for _, h := range d.held[key].holds {
			n := c.node(h.Node)
			n.left = append(slices.Clone(n.left), h.Index...)
		}
	}
	return c
}

// spreads gives every way to place the job on what is idle: GPUs by node.
func (d *dumb) spreads(s *Spec, pool string, end cluster.Instant) [][]int {
	var out [][]int
	var try func(i int, got []int, left int)
	try = func(i int, got []int, left int) {
		if i == len(d.nodes) {
			if d.complete(s, got, left) {
				out = append(out, slices.Clone(got))
			}
			return
		}
		for g := 0; g <= max(d.nodes[i].whole, 0) && g <= s.Request.Size.Devices+4; g++ {
			if g == 0 || d.nodes[i].GPUs[0].Model == pool && d.admits(&d.nodes[i], s, g, end) {
				try(i+1, append(got, g), left-g)
			}
		}
	}
	try(0, nil, s.Request.Size.Devices)
	return out
}

// complete tells whether a spread is what the job asked for.
func (d *dumb) complete(s *Spec, got []int, left int) bool {
	r, nodes, listed, beside := &s.Request, 0, 0, 0
	for i, g := range got {
		if in := slices.Contains(s.Require, d.nodes[i].Name); g > 0 && in {
			listed++
		} else if g > 0 {
			beside++
		}
		if g > 0 {
			nodes++
		}
		if g > 0 && (r.PerNode > 0 && !r.Exclusive && g != r.PerNode || r.Exclusive && g != d.nodes[i].GPUs[0].Count) {
			return false
		}
	}
	switch {
	case s.Others && beside > 0 && listed < len(s.Require):
		return false
	case r.Exclusive:
		return nodes == max(r.Nodes, 1) && left <= 0
	case r.PerNode > 0:
		return left == 0 && nodes == r.Size.Devices/r.PerNode && nodes >= r.Nodes
	}
	return left == 0 && nodes >= r.Nodes && (r.MaxNodes == 0 || nodes <= r.MaxNodes)
}

func (d *dumb) admits(n *dumbNode, s *Spec, gpus int, end cluster.Instant) bool {
	r := &s.Request
	cpus := (r.CPUs*gpus + r.Size.Devices - 1) / r.Size.Devices
	memory := (r.MemoryMB*int64(gpus) + int64(r.Size.Devices) - 1) / int64(r.Size.Devices)
	if r.Exclusive {
		cpus, memory = r.CPUs/max(r.Nodes, 1), r.MemoryMB/int64(max(r.Nodes, 1))
		if n.idle() != n.GPUs[0].Count || n.cpus != n.CPUs || n.GPUs[0].Count < r.PerNode {
			return false
		}
	}
	in := func(list []string, x string) bool { return slices.Contains(list, x) }
	if n.Bad != "" || n.Busy != "" || n.rest(r, gpus, d.as) < 0 || n.cpus < cpus || n.memory < memory ||
		!slices.ContainsFunc(s.Partitions, func(p string) bool { return in(n.Partitions, p) }) ||
		len(s.Require) > 0 && !s.Others && !in(s.Require, n.Name) || in(s.Exclude, n.Name) {
		return false
	}
	switch r.Features {
	case "a&b":
		if !in(n.Features, "a") || !in(n.Features, "b") {
			return false
		}
	case "a|b":
		if !in(n.Features, "a") && !in(n.Features, "b") {
			return false
		}
	}
	kept, keptGPUs, counts := 0, 0, false
	for _, w := range n.windows {
		mine := in(w.Flags, "MAGNETIC") && w.Start <= d.now && in(w.Accounts, s.Account)
		if w.End > d.now && !mine && (w.Start <= d.now || s.Limit == 0 || d.now.Add(s.Limit) > w.Start) {
			if len(w.Parts) == 0 || r.Exclusive {
				return false
			}
			kept, counts = kept+max(w.Parts[0].CPUs-n.usedCPUs[w.Name], 0), true
			for used := n.used[w.Name]; w.Parts[0].GPUs > 0 && used > 0; used -= cluster.WholeGPU {
				w.Parts = []cluster.ReservedPart{{GPUs: w.Parts[0].GPUs - 1}}
			}
			keptGPUs += w.Parts[0].GPUs
		}
	}
	if counts && (n.cpus-kept < max(cpus, 1) || n.rest(r, gpus, d.as) < keptGPUs) {
		return false
	}
	return n.claimed == 0 || end <= n.claimed || s.Limit > 0 && d.now.Add(s.Limit) <= n.claimed
}

func nodesOf(spread []int) int {
	n := 0
	for _, g := range spread {
		if g > 0 {
			n++
		}
	}
	return n
}

// fewest gives the smallest number of nodes of any spread, 0 = there is none.
func fewest(spreads [][]int) int {
	best := 0
	for _, s := range spreads {
		if n := nodesOf(s); best == 0 || n < best {
			best = n
		}
	}
	return best
}

// small is a random small cluster, twice: as a Board and as a dumb.
type small struct {
	*rapid.T
	b     *Board
	d     *dumb
	keys  int
	fixed []dumbLease
	parts bool
}

const noon cluster.Instant = 1_800_000_000_000

// newSmall draws a cluster. With parts, most jobs are of shards, and little else keeps them off nodes.
func newSmall(t *rapid.T, parts bool) *small {
	s := &small{T: t, parts: parts, d: &dumb{now: noon, held: map[int]dumbLease{}}}
	left := 12
	for i := range rapid.IntRange(2, 4).Draw(t, "nodes") {
		gpus := rapid.IntRange(1, 4).Draw(t, "gpus")
		if left -= gpus; left < 0 {
			break
		}
		n := cluster.Node{Name: fmt.Sprintf("n%d", i+1), GPUs: []cluster.GPUs{{Count: gpus}},
			CPUs: rapid.IntRange(4, 12).Draw(t, "cpus") << (2 * btoi(parts)), MemoryMB: int64(rapid.IntRange(4, 12).Draw(t, "memory")) << (2 * btoi(parts))}
		n.GPUs[0].Model = pick(t, "model", "v100", "k80")
		n.Partitions = pick(t, "partitions", []string{"p", "q"}, []string{"p"}, []string{"q"})
		n.Features = pick(t, "features", []string{"a", "b"}, []string{"a"}, []string{"b"}, nil)
		n.Bad = pick(t, "bad", "", "drained")
		n.Busy = pick(t, "busy", "", "completing")
		n.Shards = rapid.SampledFrom([]int{0, 2, 3, 4}).Draw(t, "shards")
		n.Switch = rapid.SampledFrom([]string{"", "s1", "s2"}).Draw(t, "switch")
		if parts {
			n.GPUs[0].Model, n.Partitions, n.Features, n.Bad, n.Busy = "v100", []string{"p", "q"}, []string{"a", "b"}, "", ""
			n.Shards, n.GPUs[0].Count = max(n.Shards, 2), (gpus+1)/2
			gpus = n.GPUs[0].Count
		}
		s.d.nodes = append(s.d.nodes, dumbNode{Node: n, whole: gpus, cpus: n.CPUs, memory: n.MemoryMB})
	}
	var nodes []cluster.Node
	for i := range s.d.nodes {
		nodes = append(nodes, s.d.nodes[i].Node)
	}
	s.b = New([]string{"k80", "v100"}, nodes, s.reservations(), noon)
	s.b.site.limits = true
	for range rapid.IntRange(2, 10).Draw(t, "leases") + 6*btoi(parts) {
		s.hold()
	}
	return s
}

func (s *small) reservations() []cluster.Reservation {
	var out []cluster.Reservation
	for i := range rapid.IntRange(0, 2).Draw(s.T, "reservations") * btoi(!s.parts) {
		n := &s.d.nodes[rapid.IntRange(0, len(s.d.nodes)-1).Draw(s.T, "reserved")]
		r := cluster.Reservation{Name: fmt.Sprintf("maint%d", i), Nodes: []string{n.Name}, Start: noon.Add(cluster.Span(rapid.IntRange(-1, 2).Draw(s.T, "start")) * cluster.Hour)}
		r.End = r.Start.Add(rapid.SampledFrom([]cluster.Span{cluster.Minute, 10 * cluster.Hour}).Draw(s.T, "for"))
		r.Accounts = rapid.SampledFrom([][]string{nil, {"mine"}}).Draw(s.T, "accounts")
		r.Flags = rapid.SampledFrom([][]string{nil, {"FLEX", "MAGNETIC"}}).Draw(s.T, "flags")
		if n := rapid.IntRange(0, 5).Draw(s.T, "part"); n > 0 {
			r.Parts = []cluster.ReservedPart{{Node: r.Nodes[0], CPUs: n, GPUs: rapid.IntRange(0, 3).Draw(s.T, "GPUs of it")}}
		}
		n.windows = append(n.windows, r)
		out = append(out, r)
	}
	return out
}

// hold puts somebody on one or two nodes: softly, or for good; some hold no GPUs, some shards of one.
func (s *small) hold() {
	s.keys++
	var holds []cluster.Holding
	part, sharer := pick(s.T, "part", s.parts, !s.parts), rapid.IntRange(0, 2).Draw(s.T, "sharer")
	for i := range s.d.nodes {
		n := &s.d.nodes[i]
		if rapid.IntRange(0, 3).Draw(s.T, "here") > 1+btoi(s.parts) || n.cpus == 0 || n.memory == 0 {
			continue
		}
		h := cluster.Holding{Node: n.Name, Model: n.GPUs[0].Model, CPUs: rapid.IntRange(1, min(n.cpus, 4)).Draw(s.T, "cpus"),
			MemoryMB: int64(rapid.IntRange(1, min(int(n.memory), 4)).Draw(s.T, "memory"))}
		switch {
		case part && n.Shards > 0:
			h.Size = cluster.Size{Devices: 1, Part: cluster.MicroGPU(rapid.IntRange(1, n.Shards-1).Draw(s.T, "held")) * cluster.WholeGPU / cluster.MicroGPU(n.Shards)}
			if number := rapid.IntRange(-1, n.GPUs[0].Count-1).Draw(s.T, "number"); number >= 0 {
				h.Index = []int{number}
			}
			after := *n
			if after.take(&h, sharer, 1); after.idle() < 0 || slices.Min(after.lay()) < 0 {
				continue
			}
		default:
			h.Size = cluster.Whole(rapid.IntRange(0, min(n.idle(), 2)).Draw(s.T, "held"))
		}
		if holds = append(holds, h); part {
			break
		}
	}
	soft := len(holds) > 0 && pick(s.T, "soft", true, false)
	for _, h := range holds {
		soft = soft && h.Size.Devices > 0 // leases hold GPUs on every node of theirs
	}
	s.d.take(holds, sharer, 1)
	if !soft {
		s.b.Hold(holds, sharer)
		s.occupy(holds)
		s.fixed = append(s.fixed, dumbLease{0, sharer, holds})
		return
	}
	rank := rapid.IntRange(0, 100).Draw(s.T, "rank")*100 + s.keys
	s.d.held[s.keys] = dumbLease{rank, sharer, holds}
	s.b.Soften(s.keys, s.keys%2, rank, noon, holds, sharer)
}

// release takes somebody who is fixed off, and lets another one on.
func (s *small) release() {
	if i := rapid.IntRange(0, 5).Draw(s.T, "release"); i < len(s.fixed) {
		Release(s.b, s.fixed[i].holds, s.fixed[i].sharer)
		s.d.take(s.fixed[i].holds, s.fixed[i].sharer, -1)
		s.fixed = slices.Delete(s.fixed, i, i+1)
	}
	s.b.tried.round++ // as the caller does: the board forgets nothing when whole GPUs are put back
	s.hold()
}

// occupy says that a job with these holdings may be in a reservation.
func (s *small) occupy(holds []cluster.Holding) {
	within := pick(s.T, "within", "", "maint0", "maint1")
	Occupy(s.b.site, within, holds)
	for _, h := range holds {
		n := s.d.node(h.Node)
		if n.used == nil {
			n.used, n.usedCPUs = map[string]cluster.MicroGPU{}, map[string]int{}
		}
		n.used[within] += h.Size.Amount()
		n.usedCPUs[within] += h.CPUs
	}
}

func (s *small) spec() Spec {
	r := cluster.Request{Size: cluster.Whole(rapid.IntRange(1, 6).Draw(s.T, "gang")), CPUs: rapid.IntRange(0, 6).Draw(s.T, "cpus"),
		MemoryMB: int64(rapid.IntRange(0, 6).Draw(s.T, "memory"))}
	switch rapid.IntRange(4*btoi(s.parts), 7).Draw(s.T, "form") {
	case 0: // --gpus-per-node on so many nodes
		r.Nodes = rapid.IntRange(1, 3).Draw(s.T, "nodes")
		r.PerNode = (r.Size.Devices + r.Nodes - 1) / r.Nodes
		r.Size = cluster.Whole(r.Nodes * r.PerNode)
	case 1: // --exclusive
		r.Nodes, r.PerNode, r.Exclusive = rapid.IntRange(1, 2).Draw(s.T, "nodes"), 1, true
		r.Size = cluster.Whole(r.Nodes)
	case 2: // --gpus=n -N2-3
		r.Nodes = min(rapid.IntRange(1, 3).Draw(s.T, "nodes"), r.Size.Devices)
		r.MaxNodes = r.Nodes + rapid.IntRange(0, 1).Draw(s.T, "more")
	case 3, 4, 5: // --gres=shard:n
		r.Nodes, r.Shards, r.Size = 1, rapid.IntRange(1, 4).Draw(s.T, "shards"), cluster.Size{Devices: 1, Part: cluster.WholeGPU / 4}
	} // else --gpus=n
	sp := Spec{Request: r, Partitions: pick(s.T, "partitions", []string{"p", "q"}, []string{"p"}, []string{"q"}),
		Account: rapid.SampledFrom([]string{"mine", "other"}).Draw(s.T, "account"),
		Limit:   rapid.SampledFrom([]cluster.Span{0, 10 * cluster.Minute, 90 * cluster.Minute}).Draw(s.T, "limit")}
	sp.Request.Features = pick(s.T, "features", "", "a&b", "a|b")
	if s.parts {
		sp.Request.Features, sp.Request.CPUs, sp.Request.MemoryMB = "", sp.Request.CPUs/3, sp.Request.MemoryMB/3
	}
	sp.Exclude = pick(s.T, "exclude", nil, []string{"n1"})
	sp.Require = pick(s.T, "require", nil, []string{"n1", "n2"}, []string{"n2"})
	sp.Others = rapid.Bool().Draw(s.T, "others")
	return sp
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pick draws the first choice four times out of five.
func pick[V any](t *rapid.T, what string, first V, rest ...V) V {
	if rapid.IntRange(0, 4).Draw(t, what) < 4 {
		return first
	}
	return rapid.SampledFrom(rest).Draw(t, what)
}

// Board finds a placement exactly when trying everything does, with the fewest
// nodes, and disturbs nobody without need.
func TestCleverAgainstDumb(t *testing.T) {
	checks(t, 60, func(rt *rapid.T, k int) {
		s := newSmall(rt, k%2 > 0)
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0:
				s.renew()
			case 1:
				s.claim()
			case 2:
				s.release()
			default:
				s.place()
			}
			s.agree()
		}
	})
}

func (s *small) renew() {
	key := rapid.IntRange(1, 8).Draw(s.T, "renew")
	_, soft := s.d.held[key]
	if got := s.b.Renew(key); got != soft {
		s.Fatalf("renewing %d: %t, want %t", key, got, soft)
	}
	delete(s.d.held, key)
}

func (s *small) claim() {
	n := &s.d.nodes[rapid.IntRange(0, len(s.d.nodes)-1).Draw(s.T, "claimed")]
	n.claimed = noon.Add(30 * cluster.Minute)
	s.b.Claim([]cluster.Holding{{Node: n.Name}}, n.claimed)
}

func (s *small) place() {
	spec := s.spec()
	pool := pick(s.T, "pool", 1, 0)
	var may []int
	s.d.as = rapid.IntRange(0, 2).Draw(s.T, "as")
	ask := Ask{Shape: s.b.site.Shape(spec), Pool: pool, Now: noon, End: noon.Add(cluster.Hour), Max: -1, Sharer: s.d.as}
	if pick(s.T, "displace", true, false) {
		odd := rapid.IntRange(0, 1).Draw(s.T, "whom")
		ask.Displace = []int{Own, Anybodys}[odd] // those with even keys, or all
		for key := range s.d.held {
			if key%2 <= odd {
				may = append(may, key)
			}
		}
	}
	idle := s.d.spreads(&spec, s.b.site.pools[pool], ask.End)
	all := s.d.without(may...).spreads(&spec, s.b.site.pools[pool], ask.End)
	for set := 0; set < 1<<len(may) && len(all) == 0 && spec.Request.Shards > 0; set++ { // a piece that goes can make room that bars the node
		all = s.d.without(of(may, set)...).spreads(&spec, s.b.site.pools[pool], ask.End)
	}
	twin, other := ask, spec // one that differs in its time limit
	other.Limit = rapid.SampledFrom([]cluster.Span{0, 10 * cluster.Minute, 45 * cluster.Minute, 90 * cluster.Minute}).Draw(s.T, "limit of another")
	twin.Shape = s.b.site.Shape(other)
	first, _ := s.b.Fit(twin)
	p, ok := s.b.Fit(ask)
	if AskedOf(s.b, twin) == AskedOf(s.b, ask) && fmt.Sprint(p) != fmt.Sprint(first) {
		s.Fatalf("%+v is placed %v, and %v with a limit of %s, which should make no difference on\n%+v", spec, p, first, other.Limit, s.d.nodes)
	}
	again, _ := s.b.Fit(ask)
	if fmt.Sprint(p) != fmt.Sprint(again) {
		s.Fatalf("asked twice: %v, then %v", p, again)
	}
	if ok != (len(all) > 0) {
		s.Fatalf("%+v in %s, may displace %v: found %t %v, want %t (say %v) on\n%+v", spec, s.b.site.pools[pool], may, ok, p, !ok, all, s.d.nodes)
	}
	if !ok {
		return
	}
	s.right(&spec, &p, ask.End, idle, all, may)
	s.b.Take(p)
	for _, key := range p.Displaced {
		s.d.take(s.d.held[key].holds, s.d.held[key].sharer, -1)
		delete(s.d.held, key)
	}
	s.d.take(p.Nodes, s.d.as, 1)
}

// of gives the keys in a set, a bit for each.
func of(keys []int, set int) (out []int) {
	for i := range keys {
		if set&(1<<i) != 0 {
			out = append(out, keys[i])
		}
	}
	return out
}

// right checks a placement.
func (s *small) right(spec *Spec, p *Placement, end cluster.Instant, idle, all [][]int, may []int) {
	fits := func(displaced ...int) bool {
		after := s.d.without(displaced...)
		return slices.ContainsFunc(after.spreads(spec, p.Nodes[0].Model, end), func(spread []int) bool {
			for i, g := range spread {
				k := slices.IndexFunc(p.Nodes, func(h cluster.Holding) bool { return h.Node == after.nodes[i].Name })
				if k < 0 && g != 0 || k >= 0 && g != p.Nodes[k].Size.Devices {
					return false
				}
			}
			return true
		})
	}
	if !fits(p.Displaced...) {
		s.Fatalf("%+v does not fit on %v once %v are displaced", spec, p.Nodes, p.Displaced)
	}
	for _, key := range p.Displaced {
		if !slices.Contains(may, key) {
			s.Fatalf("%+v on %v: %d may not be displaced", spec, p.Nodes, key)
		}
	}
	for set := range 1<<len(p.Displaced) - 1 {
		if fits(of(p.Displaced, set)...) {
			s.Fatalf("%+v on %v: %v are displaced, %v would do", spec, p.Nodes, p.Displaced, of(p.Displaced, set))
		}
	}
	if len(idle) > 0 {
		if len(p.Displaced) > 0 {
			s.Fatalf("%+v fits on idle GPUs (%v) and still displaces %v", spec, idle[0], p.Displaced)
		}
		if want := fewest(idle); len(p.Nodes) != want {
			s.Fatalf("%+v: on %d nodes (%v), could be on %d", spec, len(p.Nodes), p.Nodes, want)
		}
		s.tight(spec, p, idle)
		s.near(spec, p, idle)
		return
	}
	if want := fewest(all); len(p.Nodes) != want {
		s.Fatalf("%+v: on %d nodes (%v), could be on %d", spec, len(p.Nodes), p.Nodes, want)
	}
	if len(p.Nodes) == 1 {
		s.mild(spec, p, end, all, may)
	}
}

// tight checks that a gang on one node leaves as little over there as can be.
func (s *small) tight(spec *Spec, p *Placement, idle [][]int) {
	if len(p.Nodes) != 1 || spec.Request.Exclusive {
		return
	}
	k := spec.Request.Shards
	rank := func(n *dumbNode) int {
		switch {
		case k == 0 || k == n.Shards:
			return 200 + n.idle()
		case n.room() >= k:
			return n.room()
		case len(n.pieces) > 0:
			return 100 + n.idle()
		}
		return 200 + n.idle()
	}
	got := rank(s.d.node(p.Nodes[0].Node))
	for _, spread := range idle {
		for i, g := range spread {
			if nodesOf(spread) == 1 && g > 0 && rank(&s.d.nodes[i]) < got {
				s.Fatalf("%+v: on %s, which had %d left; %s is tighter with %d", spec, p.Nodes[0].Node, got, s.d.nodes[i].Name, rank(&s.d.nodes[i]))
			}
		}
	}
}

// near checks that a gang is under one switch if it could be, on as many idle nodes, and evenly where it is even now.
func (s *small) near(spec *Spec, p *Placement, idle [][]int) {
	if len(p.Nodes) == 1 || spec.Others {
		return
	}
	even := func(spread []int) bool {
		return len(slices.Compact(slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(spread), func(g int) bool { return g == 0 }))))) == 1
	}
	under := func(has func(i int) bool) (name string) {
		for i := range s.d.nodes {
			switch n := &s.d.nodes[i]; {
			case !has(i):
			case n.Switch == "" || name != "" && n.Switch != name:
				return ""
			default:
				name = n.Switch
			}
		}
		return name
	}
	got := make([]int, len(s.d.nodes))
	for _, h := range p.Nodes {
		got[slices.IndexFunc(s.d.nodes, func(n dumbNode) bool { return n.Name == h.Node })] = h.Size.Devices
	}
	if under(func(i int) bool { return got[i] > 0 }) != "" {
		return
	}
	for _, spread := range idle {
		if name := under(func(i int) bool { return spread[i] > 0 }); name != "" && nodesOf(spread) == len(p.Nodes) &&
			(spec.Request.Exclusive || even(spread) || !even(got)) {
			s.Fatalf("%+v: on %v, could be on %v under switch %s", spec, p.Nodes, spread, name)
		}
	}
}

// mild checks that of all sets of leases that could make room on one node, the one
// that was displaced stands last: no other set's foremost lease stands further back.
func (s *small) mild(spec *Spec, p *Placement, end cluster.Instant, all [][]int, may []int) {
	foremost := func(keys []int) int {
		least := noRank
		for _, key := range keys {
			least = min(least, s.d.held[key].rank)
		}
		return least
	}
	got := foremost(p.Displaced)
	for set := range 1 << len(may) {
		keys := of(may, set)
		if foremost(keys) > got && slices.ContainsFunc(s.d.without(keys...).spreads(spec, p.Nodes[0].Model, end),
			func(spread []int) bool { return nodesOf(spread) == 1 }) {
			s.Fatalf("%+v displaces %v of rank %d on %v; %v of rank %d would do", spec, p.Displaced, got, p.Nodes, keys, foremost(keys))
		}
	}
}

// agree checks that both count the same idle GPUs, and the same that may become idle.
func (s *small) agree() {
	all := s.d.without(slices.Collect(maps.Keys(s.d.held))...)
	for pool, model := range s.b.site.pools {
		want := 0
		for i := range s.d.nodes {
			if n := &s.d.nodes[i]; n.GPUs[0].Model == model && n.Bad == "" && n.Busy == "" {
				want += n.idle()
			}
			if l := &s.b.slots[i]; l.idle+l.soft != all.nodes[i].idle() {
				s.Fatalf("%s: %d idle and %d soft GPUs, want %d", s.d.nodes[i].Name, l.idle, l.soft, all.nodes[i].idle())
			}
		}
		if got := s.b.Idle(pool); got != want {
			s.Fatalf("%s: %d idle GPUs, want %d", model, got, want)
		}
	}
}
