package rounds

import (
	"cmp"
	"math/bits"
	"slices"
)

// Want is a job that could run in the next round.
type Want struct {
	Party, Tenant int // indices into Debts
	Gang          int // GPUs
	On            int // the model on which it runs now; < 0 = none
}

// Pool is the GPUs of a model for the next round, and the jobs that may run there.
type Pool struct {
	Free []int // by node
	Node int   // GPUs of its largest node; larger gangs take whole nodes
	Line []int // indices of wants; of a party, the first ones run first

	nodes [][]int // by free GPUs: the nodes, by index; nil = not listed yet
}

// Take takes the GPUs of a gang: of a node with the fewest that suffice, or of several if no node is large enough. It reports whether they are
// free.
func (p *Pool) Take(gang int) bool {
	if p.nodes == nil {
		most := p.Node
		for _, n := range p.Free {
			most = max(most, n)
		}
		p.nodes = make([][]int, most+1)
		for i, n := range p.Free {
			p.nodes[n] = append(p.nodes[n], i)
		}
	}
	for n := gang; n < len(p.nodes); n++ {
		if len(p.nodes[n]) > 0 {
			p.takeOf(n, gang)
			return true
		}
	}
	if whole := (gang + p.Node - 1) / max(p.Node, 1); gang <= p.Node || len(p.nodes[p.Node]) < whole {
		return false
	}
	for ; gang > 0; gang -= p.Node {
		p.takeOf(p.Node, min(p.Node, gang))
	}
	return true
}

// takeOf takes GPUs of a node with so many free ones.
func (p *Pool) takeOf(free, gpus int) {
	last := len(p.nodes[free]) - 1
	i := p.nodes[free][last]
	p.nodes[free] = p.nodes[free][:last]
	p.Free[i] -= gpus
	p.nodes[p.Free[i]] = append(p.nodes[p.Free[i]], i)
}

// Debts are the GPUs that each party, and each tenant, is due of each model in the coming round, with the errors of earlier rounds. A
// tenant's debt is the sum of its parties' and of what parties left behind.
type Debts struct{ Parties, Tenants [][]float64 }

// waste is the cost of a GPU that no party with an entitlement gets, as a debt in multiples of the largest gang.
const waste = 0.5

// ofTenants is the weight of tenants' errors beside those of their parties. A tenant with one party has the same error as that, so its sum
// does not depend on the weight. With equal weights neither level gives way to the other.
const ofTenants = 0.5

// Nearest chooses the jobs that run in the next round so that what parties and tenants get is as near as possible to what they
// are due. It minimises, by model,
//
//	half of Σ (debt - GPUs)² / largest gang by party + half of Σ (debt - GPUs)² / largest gang by tenant + a price for GPUs that no party gets
//
// This is error diffusion: as long as the entitlements are a mean of sets of jobs that fit together and
// leave no GPU idle, no error grows with the rounds, whatever positive definite form is minimised (Adler et al., Convex Dynamics and
// Applications, 2005). Serving the party furthest behind first has no such bound: with gangs, which job runs decides what fits beside it. Without
// the tenants' part, errors of the same sign of a tenant's n parties would add up to √n times as much.
//
// A job stays on its model until a change reduces the sum by stay · gang (see stays). The grants come larger gangs first. Where each tenant has one party, the
// choice on one model is exact for gangs that are powers of two; several models are improved in pairs.
func Nearest(pools []Pool, debts Debts, wants []Want, stay float64) []Grant {
	if len(pools) == 0 || len(wants) == 0 {
		return nil
	}
	n := newNearest(pools, debts, wants, stay)
	most, best := 0.0, []int(nil)
	for first := range min(len(pools), 1+n.effort) {
		for i := range n.on {
			n.on[i] = none
		}
		for k := range pools {
			n.fill((first + k) % len(pools))
		}
		if v := n.improve(); best == nil || v > most+tiny {
			most, best = v, slices.Clone(n.on)
		}
	}
	var out []Grant
	for i, model := range best {
		if model != none {
			out = append(out, Grant{i, model})
		}
	}
	slices.SortStableFunc(out, func(a, b Grant) int { return cmp.Compare(wants[b.Row].Gang, wants[a.Row].Gang) })
	return out
}

// tiny is the least improvement that counts.
const tiny = 1e-9

// effort limits the search: jobs that are looked at by all its steps after the first choice. Where thousands of jobs wait, the improvements
// of a pair of models are small.
const effort = 1 << 15

// nearest is a search for the nearest set of jobs.
type nearest struct {
	pools  []Pool
	debts  Debts
	wants  []Want
	stay   float64
	price  float64   // of a GPU without a job
	gangs  []float64 // by tenant: the largest
	most   []float64 // by party: the largest
	stays  []bool    // by want: it is worth more where it runs now
	blocks [][]int   // by model and size: blocks of 2^size GPUs
	on     []int     // model by want; or none
	given  []int     // GPUs by party, of one model
	had    []int     // GPUs by tenant, of one model
	effort int       // steps left
	line   []seat    // memory for one model
	groups []group   // memory for one model
}

func newNearest(pools []Pool, debts Debts, wants []Want, stay float64) *nearest {
	n := &nearest{pools: pools, debts: debts, wants: wants, stay: stay, on: make([]int, len(wants)), given: make([]int, len(debts.Parties)),
		had: make([]int, len(debts.Tenants)), gangs: make([]float64, len(debts.Tenants)), most: make([]float64, len(debts.Parties))}
	most, longest := 1, 1
	for i := range wants {
		w := &wants[i]
		n.gangs[w.Tenant] = max(n.gangs[w.Tenant], float64(w.Gang))
		n.most[w.Party] = max(n.most[w.Party], float64(w.Gang))
		most = max(most, w.Gang)
	}
	n.price = 2 * waste * float64(most)
	n.stays = stays(pools, wants, n.most)
	for p := range pools {
		n.blocks = append(n.blocks, pools[p].blocks(size(most)))
		longest = max(longest, len(pools[p].Line))
	}
	n.effort, n.line, n.groups = effort/longest, make([]seat, 0, longest), make([]group, 0, 2*longest+size(most))
	return n
}

// stays tells which jobs stay where they run. In a party with gangs of several sizes only those do that come before all waiting jobs of
// the party: else a large gang would keep its GPUs from smaller ones for ever, since it is worth as much as they are together. Where all
// gangs are equal, those run that come first in any case. most is the largest gang of each party.
func stays(pools []Pool, wants []Want, most []float64) []bool {
	out, mixed := make([]bool, len(wants)), make([]bool, len(most))
	for i := range wants {
		w := &wants[i]
		mixed[w.Party] = mixed[w.Party] || float64(w.Gang) != most[w.Party]
	}
	for p := range pools {
		waits := make([]bool, len(mixed)) // by party
		for _, i := range pools[p].Line {
			w := &wants[i]
			out[i] = out[i] || w.On == p && (!mixed[w.Party] || !waits[w.Party])
			waits[w.Party] = waits[w.Party] || w.On != p
		}
	}
	return out
}

// size returns the least k with 2^k >= gpus.
func size(gpus int) int { return bits.Len(uint(max(gpus, 1) - 1)) }

// blocks cuts free GPUs into blocks of 2^k GPUs, k = 0, 1, ... top. Blocks larger than a node are of whole nodes.
func (p *Pool) blocks(top int) []int {
	out := make([]int, top+1)
	for _, gpus := range p.Free {
		for k := top; k >= 0; k-- {
			out[k] += gpus >> k
			gpus &= 1<<k - 1
		}
	}
	for k := bits.Len(uint(max(p.Node, 1))) - 1; k < top; k++ {
		out[k], out[k+1] = out[k]%2, out[k+1]+out[k]/2
	}
	return out
}

// group is jobs that take a block together.
type group struct {
	value       float64
	left, right *group
	want        int // if it is a single job; else none
	at          int // in line, of a single job
}

func (g *group) each(f func(want int)) {
	if g == nil {
		return
	}
	if g.want != none {
		f(g.want)
	}
	g.left.each(f)
	g.right.each(f)
}

// seat is a job in line for GPUs of a model.
type seat struct {
	want int
	at   int     // in line
	own  float64 // value for its party
	rank float64 // in its tenant: higher ones come first
}

// fill chooses the jobs of a model among those that run on no other. A job is worth less after others of its party and its tenant. At first
// those with the highest value by GPU come first; then those that were chosen, as long as that helps.
func (n *nearest) fill(p int) {
	clear(n.given)
	clear(n.had)
	n.line = n.line[:0]
	for _, i := range n.pools[p].Line {
		if n.on[i] == p {
			n.on[i] = none
		}
		w := &n.wants[i]
		if n.on[i] != none || w.Gang <= 0 || size(w.Gang) >= len(n.blocks[p]) {
			continue
		}
		if own, gang := n.own(i, p), float64(w.Gang); n.value(i, p, own) > 0 {
			n.line = append(n.line, seat{i, len(n.line), own, (1-ofTenants)*own/gang - ofTenants*gang/n.gangs[w.Tenant]})
			n.given[w.Party] += w.Gang
		}
	}
	slices.SortFunc(n.line, func(a, b seat) int {
		if a.rank != b.rank {
			return cmp.Compare(b.rank, a.rank)
		}
		return a.at - b.at
	})
	if n.choose(p); n.effort <= 0 {
		return
	}
	for most := n.reduction(p); ; {
		old := slices.Clone(n.on)
		slices.SortStableFunc(n.line, func(a, b seat) int { return cmp.Compare(n.on[b.want], n.on[a.want]) })
		n.choose(p)
		v := n.reduction(p)
		if v <= most+tiny {
			copy(n.on, old)
			return
		}
		most = v
	}
}

// choose chooses jobs of the line. Groups of two neighbours, in order of their values, compete with jobs of twice their size.
func (n *nearest) choose(p int) {
	clear(n.had)
	n.groups = n.groups[:0]
	blocks := n.blocks[p]
	levels := make([][]*group, len(blocks))
	for at, x := range n.line {
		w := &n.wants[x.want]
		n.on[x.want] = none
		if v := n.value(x.want, p, x.own); v > 0 {
			levels[size(w.Gang)] = append(levels[size(w.Gang)], n.group(group{value: v, want: x.want, at: at}))
			n.had[w.Tenant] += w.Gang
		}
	}
	room := make([]int, len(blocks)+1) // by size: groups that have a place in blocks of that size and larger ones
	for k := len(blocks) - 1; k >= 0; k-- {
		room[k] = blocks[k] + 2*room[k+1]
	}
	var pairs []*group
	for k, singles := range levels {
		slices.SortFunc(singles, func(a, b *group) int {
			if a.value != b.value {
				return cmp.Compare(b.value, a.value)
			}
			return a.at - b.at
		})
		all := merged(pairs, singles, room[k])
		take := min(blocks[k], len(all))
		for _, g := range all[:take] {
			g.each(func(i int) { n.on[i] = p })
		}
		all, pairs = all[take:], nil
		for at := 0; at < len(all); at += 2 {
			pair := n.group(group{value: all[at].value, left: all[at], want: none})
			if at+1 < len(all) {
				pair.value, pair.right = pair.value+all[at+1].value, all[at+1]
			}
			pairs = append(pairs, pair)
		}
	}
}

// merged merges two lists of groups that are by value, those of a before equal ones of b, up to a number of groups.
func merged(a, b []*group, most int) []*group {
	out := make([]*group, 0, min(len(a)+len(b), most))
	for len(out) < cap(out) {
		if len(b) == 0 || len(a) > 0 && a[0].value >= b[0].value {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}

// group returns a group in the memory of the model.
func (n *nearest) group(g group) *group {
	n.groups = append(n.groups, g)
	return &n.groups[len(n.groups)-1]
}

// own returns the reduction of its party's part of the objective by a job, after the jobs of its party that are in given.
func (n *nearest) own(i, p int) float64 {
	w := &n.wants[i]
	gang := float64(w.Gang)
	return gang / n.most[w.Party] * (2*(n.debts.Parties[w.Party][p]-float64(n.given[w.Party])) - gang)
}

// value returns the reduction of the objective by a job, after the jobs of its tenant that are in had. own is that of its party's part.
func (n *nearest) value(i, p int, own float64) float64 {
	w := &n.wants[i]
	gang, per := float64(w.Gang), n.price
	if w.On == p && n.stays[i] {
		per += n.stay
	}
	all := gang / n.gangs[w.Tenant] * (2*(n.debts.Tenants[w.Tenant][p]-float64(n.had[w.Tenant])) - gang)
	return (1-ofTenants)*own + ofTenants*all + gang*per
}

// reduction returns the reduction of the objective by the jobs of a model.
func (n *nearest) reduction(p int) (sum float64) {
	clear(n.given)
	clear(n.had)
	for _, i := range n.pools[p].Line {
		if w := &n.wants[i]; n.on[i] == p {
			sum += n.value(i, p, n.own(i, p))
			n.given[w.Party] += w.Gang
			n.had[w.Tenant] += w.Gang
		}
	}
	return sum
}

// total returns the reduction of the objective by all jobs.
func (n *nearest) total() (sum float64) {
	for p := range n.pools {
		sum += n.reduction(p)
	}
	return sum
}

// improve chooses anew on one model, with the jobs of another free to change to it, and then on the other, as long as that helps. It
// returns the total.
func (n *nearest) improve() float64 {
	now := n.total()
	for again := true; again; {
		again = false
		for p := range n.pools {
			for q := range n.pools {
				if p == q || n.effort <= 0 {
					continue
				}
				n.effort--
				old := slices.Clone(n.on)
				for i := range n.on {
					if n.on[i] == q {
						n.on[i] = none
					}
				}
				n.fill(p)
				n.fill(q)
				if v := n.total(); v > now+tiny {
					now, again = v, true
				} else {
					copy(n.on, old)
				}
			}
		}
	}
	return now
}
