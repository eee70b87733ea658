package trade

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// book holds the parties' GPUs during trading.
type book struct {
	models  []string
	parties []Party // by name
	rules   Rules
	own     [][]cluster.MicroGPU // by party, then model: its usable entitlement
	spare   [][]cluster.MicroGPU // its unusable entitlement
	room    []cluster.MicroGPU   // by party: how many GPUs more it could use
	keeps   bool                 // values are the middle of the bounds: for trades in force
}

func newBook(models []string, parties []Party, rules Rules) *book {
	rules.Least = max(rules.Least, cluster.WholeGPU/1000)
	b := &book{models: models, parties: slices.Clone(parties), rules: rules}
	slices.SortStableFunc(b.parties, func(x, y Party) int { return x.Compare(y.Name) })
	for i := range b.parties {
		p := &b.parties[i]
		p.Speed = p.relative(len(models))
		own, spare := p.usable(len(models))
		b.own, b.spare = append(b.own, own), append(b.spare, spare)
		room := max(p.Demand, 0)
		for _, gpus := range own {
			room -= gpus
		}
		b.room = append(b.room, room)
	}
	return b
}

// relative gives a party's speeds relative to its slowest known model, or nothing if none is
// known.
func (p *Party) relative(models int) []Speed {
	slowest := math.Inf(1)
	for m := range models {
		if v := p.speed(m); v.Low > 0 {
			slowest = min(slowest, v.Low)
		}
	}
	out := make([]Speed, models)
	for m := range out {
		v := p.speed(m)
		out[m] = Speed{v.Low / slowest, v.High / slowest}
	}
	return out
}

// usable splits a party's entitlement into what its jobs can use at once and the rest, which is
// of its slowest models.
func (p *Party) usable(models int) (own, spare []cluster.MicroGPU) {
	own, spare = make([]cluster.MicroGPU, models), make([]cluster.MicroGPU, models)
	best := make([]int, models)
	for m := range best {
		best[m] = m
	}
	slices.SortStableFunc(best, func(x, y int) int { return cmp.Compare(p.Speed[y].Low, p.Speed[x].Low) })
	left := max(p.Demand, 0)
	for _, m := range best {
		if m < len(p.GPUs) {
			own[m] = min(max(p.GPUs[m], 0), left)
			spare[m] = p.GPUs[m] - own[m]
			left -= own[m]
		}
	}
	return own, spare
}

// speed gives the throughput on a model; 0 if unknown.
func (p *Party) speed(model int) Speed {
	if model < len(p.Speed) && p.Speed[model].known() {
		return p.Speed[model]
	}
	return Speed{}
}

// middle is the middle of the bounds.
func (v Speed) middle() float64 { return math.Sqrt(v.Low * v.High) }

// bid is the minimum value of a fast GPU for a party, in slow ones, ask the maximum; 0 if
// unknown.
func (p *Party) bid(fast, slow int) float64 {
	if v := p.Speed[slow].High; v > 0 {
		return p.Speed[fast].Low / v
	}
	return 0
}

func (p *Party) ask(fast, slow int) float64 {
	if v := p.Speed[slow].Low; v > 0 {
		return p.Speed[fast].High / v
	}
	return 0
}

// due gives the parties' entitlements, in the given order.
func (b *book) due(parties []Party) [][]cluster.MicroGPU {
	at := make(map[Name]int, len(parties))
	for i := range b.parties {
		at[b.parties[i].Name] = i
	}
	out := make([][]cluster.MicroGPU, len(parties))
	for k := range parties {
		i := at[parties[k].Name]
		for m := range b.models {
			out[k] = append(out[k], b.own[i][m]+b.spare[i][m])
		}
	}
	return out
}

// deal is a trade by indices.
type deal struct {
	fast, slow     int // models
	fastTo, slowTo int // parties
	price          float64
	q, s           cluster.MicroGPU // fast and slow GPUs in the trade
}

// amount sets the traded amount: at most most fast GPUs, within what the two have and can use.
// why is the binding limit. It returns false if that is below the minimum, or gains less than one
// millionth.
func (b *book) amount(d *deal, most cluster.MicroGPU) (why Why, ok bool) {
	q := most
	limit := func(have cluster.MicroGPU, each float64, reason Why) {
		if each > 0 && float64(q)*each > float64(have) {
			q, why = cluster.MicroGPU(float64(have)/each), reason
		}
	}
	limit(b.own[d.slowTo][d.fast], 1, Entitlement)
	limit(b.own[d.fastTo][d.slow], d.price, Entitlement)
	limit(b.room[d.slowTo], d.price-1, Demand)
	limit(b.room[d.fastTo], 1-d.price, Demand)
	bid, ask := b.worth(d)
	lo, hi := math.Ceil(float64(q)*ask), math.Floor(float64(q)*bid)
	d.q, d.s = q, cluster.MicroGPU(min(max(math.Round(float64(q)*d.price), lo), hi))
	return why, min(d.q, d.s) >= b.rules.Least && b.gains(d) && b.fits(d)
}

// fits tells whether the two have what they give, and can use what they get.
func (b *book) fits(d *deal) bool {
	return d.q <= b.own[d.slowTo][d.fast] && d.s <= b.own[d.fastTo][d.slow] &&
		d.s-d.q <= b.room[d.slowTo] && d.q-d.s <= b.room[d.fastTo]
}

// worth gives the value of a fast GPU, in slow ones, to the two.
func (b *book) worth(d *deal) (bid, ask float64) {
	to, from := &b.parties[d.fastTo], &b.parties[d.slowTo]
	if bid, ask = to.bid(d.fast, d.slow), from.ask(d.fast, d.slow); b.keeps && bid > 0 && ask > 0 {
		bid, ask = to.Speed[d.fast].middle()/to.Speed[d.slow].middle(), from.Speed[d.fast].middle()/from.Speed[d.slow].middle()
	}
	return bid, ask
}

// gains tells whether a trade pays off: one of the two gains, and neither loses.
func (b *book) gains(d *deal) bool {
	bid, ask := b.worth(d)
	q, s := float64(d.q), float64(d.s)
	return ask > 0 && ask < bid && q*ask <= s && s <= q*bid
}

// gain gives the increase in throughput for the two, each in GPUs of its slowest model.
func (b *book) gain(d *deal) (fastTo, slowTo float64) {
	q, s := float64(d.q)/float64(cluster.WholeGPU), float64(d.s)/float64(cluster.WholeGPU)
	to, from := &b.parties[d.fastTo], &b.parties[d.slowTo]
	if b.keeps {
		return q*to.Speed[d.fast].middle() - s*to.Speed[d.slow].middle(), s*from.Speed[d.slow].middle() - q*from.Speed[d.fast].middle()
	}
	return q*to.Speed[d.fast].Low - s*to.Speed[d.slow].High, s*from.Speed[d.slow].Low - q*from.Speed[d.fast].High
}

// carry executes a trade.
func (b *book) carry(d *deal) {
	b.own[d.fastTo][d.fast] += d.q
	b.own[d.slowTo][d.fast] -= d.q
	b.own[d.slowTo][d.slow] += d.s
	b.own[d.fastTo][d.slow] -= d.s
	b.room[d.fastTo] += d.s - d.q
	b.room[d.slowTo] += d.q - d.s
}

// replay executes the trades in force again, each in full or in the possible part. It reverts as little as
// possible, the newest first: each trade precedes those made after it. Bounds held when a trade was made; they move with each
// measurement, so it stays until the middle of them is against it.
func (b *book) replay(inForce []Trade) (kept []Trade, undone []Undone) {
	b.keeps = true
	defer func() { b.keeps = false }()
	for at, t := range inForce {
		d, why := b.deal(&t)
		if why == "" && !b.fits(&d) {
			bound, ok := b.amount(&d, d.q)
			if !ok {
				d.q, d.s = 0, 0
			}
			why = cmp.Or(bound, Entitlement)
		}
		if why != "" {
			undone = append(undone, Undone{
				ID: t.ID, At: at, FastGPUs: t.FastGPUs - d.q, SlowGPUs: t.SlowGPUs - d.s, Why: why, All: d.q == 0,
			})
		}
		if d.q > 0 {
			b.carry(&d)
			t.FastGPUs, t.SlowGPUs = d.q, d.s
			t.FastToGain, t.SlowToGain = b.gain(&d)
			kept = append(kept, t)
		}
	}
	return kept, undone
}

// deal finds a trade's parties and models. why says what is wrong with it; "" = nothing.
func (b *book) deal(t *Trade) (d deal, why Why) {
	d.fast, d.slow = slices.Index(b.models, t.Fast), slices.Index(b.models, t.Slow)
	d.fastTo, d.slowTo = b.party(t.FastTo), b.party(t.SlowTo)
	if min(d.fast, d.slow, d.fastTo, d.slowTo) < 0 {
		return d, Left
	}
	d.price, d.q, d.s = float64(t.SlowGPUs)/float64(t.FastGPUs), t.FastGPUs, t.SlowGPUs
	measured := t.FastToDeclared && !b.declares(d.fastTo, &d) || t.SlowToDeclared && !b.declares(d.slowTo, &d)
	if d.q <= 0 || d.s <= 0 || measured || !b.gains(&d) {
		d.q, d.s = 0, 0
		return d, Speedups
	}
	return d, ""
}

// declares tells whether a party's speedup between the models of a trade is its own declaration.
func (b *book) declares(party int, d *deal) bool {
	told := b.parties[party].Declared
	return told != nil && (told[d.fast] || told[d.slow])
}

// party finds a party by name; -1 = there is none.
func (b *book) party(n Name) int {
	i, ok := slices.BinarySearchFunc(b.parties, n, func(p Party, n Name) int { return p.Compare(n) })
	if !ok {
		return -1
	}
	return i
}
