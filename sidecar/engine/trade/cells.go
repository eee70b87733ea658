package trade

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Lot is whole cells of one type that a party may give.
type Lot = cluster.CellLot

// CellTrade is a swap of whole cells.
type CellTrade = cluster.CellTrade

// CellOutcome is an Outcome of trades of cells.
type CellOutcome struct {
	GPUs      [][]cluster.MicroGPU
	Kept, New []CellTrade
	Undone    []Undone // each of a whole trade
}

// CellParty is a tenant that trades cells: its jobs of all kinds, its lots, and the GPUs that its largest job needs of
// one model.
type CellParty struct {
	Party
	Lots []Lot
	Gang cluster.MicroGPU
}

// DecideCells is Decide for whole cells of virtual clusters. Each trade is the smallest swap of whole cells
// whose price is between the values to the two; it is the nearest to the market's price. A trade in
// force stays as a whole or is reverted as a whole, the newest first.
func DecideCells(models []string, tenants []CellParty, inForce []CellTrade, rules Rules) CellOutcome {
	parties := make([]Party, len(tenants))
	for i := range tenants {
		parties[i] = tenants[i].Party
	}
	b := &cellBook{book: newBook(models, parties, rules), lots: make([][]Lot, len(tenants)), gangs: make([]cluster.MicroGPU, len(tenants))}
	for k := range tenants {
		i := b.party(tenants[k].Name)
		b.lots[i], b.gangs[i] = slices.Clone(tenants[k].Lots), min(tenants[k].Gang, b.largest(i))
	}
	var o CellOutcome
	b.keeps = true
	for at, t := range inForce {
		if why := b.again(&t); why != "" {
			o.Undone = append(o.Undone, Undone{ID: t.ID, At: at, FastGPUs: t.FastGPUs, SlowGPUs: t.SlowGPUs, Why: why, All: true})
		} else {
			o.Kept = append(o.Kept, t)
		}
	}
	b.keeps = false
	markets := b.markets()
	for len(o.New) < mostTrades {
		var best swap
		most := 0.0
		for i := range markets {
			d, ok := b.best(&markets[i])
			if !ok {
				continue
			}
			if fastTo, slowTo := b.gain(&d.deal); fastTo+slowTo > most {
				best, most = d, fastTo+slowTo
			}
		}
		if most == 0 {
			break
		}
		o.New = append(o.New, CellTrade{Trade: b.row(&best.deal), Cells: best.cells})
		b.swap(&best)
	}
	o.GPUs = b.due(parties)
	return o
}

// cellBook holds the parties' GPUs and cells during trading.
type cellBook struct {
	*book
	lots  [][]Lot            // by party: the cells that it may still give
	gangs []cluster.MicroGPU // by party: the GPUs that it must have of one model
}

// swap is a deal in whole cells.
type swap struct {
	deal
	cells      cluster.CellSwap
	fast, slow *Lot
}

// again executes a trade in force, and says why it cannot stay; "" = it stays.
func (b *cellBook) again(t *CellTrade) Why {
	d, why := b.deal(&t.Trade)
	if why != "" {
		return why
	}
	c := &t.Cells
	s := swap{deal: d, cells: *c, fast: b.lot(d.slowTo, c.FastChain, c.FastType, t.Fast), slow: b.lot(d.fastTo, c.SlowChain, c.SlowType, t.Slow)}
	switch {
	case s.fast == nil || s.slow == nil || s.fast.Cells < c.FastCells || s.slow.Cells < c.SlowCells ||
		t.FastGPUs != gpus(s.fast, c.FastCells) || t.SlowGPUs != gpus(s.slow, c.SlowCells):
		return Entitlement
	case d.s-d.q > b.room[d.slowTo] || d.q-d.s > b.room[d.fastTo]:
		return Demand
	case !b.fits(&d) || !b.keepsGangs(&d):
		return Entitlement
	}
	b.swap(&s)
	t.FastToGain, t.SlowToGain = b.gain(&d)
	return ""
}

// lot finds the lot of a party by its type; nil = there is none.
func (b *cellBook) lot(party int, chain, typ, model string) *Lot {
	for k := range b.lots[party] {
		if l := &b.lots[party][k]; l.Chain == chain && l.Type == typ && l.Model == model {
			return l
		}
	}
	return nil
}

// swap executes a deal.
func (b *cellBook) swap(s *swap) {
	b.carry(&s.deal)
	s.fast.Cells -= s.cells.FastCells
	s.slow.Cells -= s.cells.SlowCells
}

// best finds the best swap between the highest compatible bid and the lowest ask.
func (b *cellBook) best(m *market) (swap, bool) {
	for k, bid := range m.bids {
		for _, ask := range m.asks {
			if ask.value*(1+max(b.rules.Edge, 0)) >= bid.value {
				break
			}
			if bid.party == ask.party {
				continue
			}
			d := deal{fast: m.fast, slow: m.slow, fastTo: bid.party, slowTo: ask.party, price: b.price(m, k, ask)}
			for i := range b.lots[ask.party] {
				for j := range b.lots[bid.party] {
					fast, slow := &b.lots[ask.party][i], &b.lots[bid.party][j]
					if fast.Model != b.models[m.fast] || slow.Model != b.models[m.slow] {
						continue
					}
					if s, ok := b.smallest(d, fast, slow); ok {
						return s, true
					}
				}
			}
		}
	}
	return swap{}, false
}

// smallest returns the swap of the fewest fast cells that both can make.
func (b *cellBook) smallest(d deal, fast, slow *Lot) (swap, bool) {
	bid, ask := b.worth(&d)
	for n := 1; n <= fast.Cells; n++ {
		each := float64(n*fast.GPUs) / float64(slow.GPUs)
		lo, hi := max(math.Ceil(each*ask), 1), min(math.Floor(each*bid), float64(slow.Cells))
		if lo > hi {
			continue
		}
		m := int(min(max(math.Round(each*d.price), lo), hi))
		s := swap{deal: d, fast: fast, slow: slow, cells: cluster.CellSwap{FastChain: fast.Chain, FastType: fast.Type, FastCells: n,
			SlowChain: slow.Chain, SlowType: slow.Type, SlowCells: m}}
		s.q, s.s = gpus(fast, n), gpus(slow, m)
		s.price = float64(s.s) / float64(s.q)
		if b.gains(&s.deal) && b.fits(&s.deal) && b.keepsGangs(&s.deal) {
			return s, true
		}
	}
	return swap{}, false
}

// gpus returns the GPUs of so many cells of a lot.
func gpus(l *Lot, cells int) cluster.MicroGPU {
	return cluster.MicroGPU(l.GPUs*cells) * cluster.WholeGPU
}

// keepsGangs tells whether the largest jobs of the two still fit on one model after a deal.
func (b *cellBook) keepsGangs(d *deal) bool {
	b.carry(d)
	ok := b.largest(d.fastTo) >= b.gangs[d.fastTo] && b.largest(d.slowTo) >= b.gangs[d.slowTo]
	b.carry(&deal{fast: d.fast, slow: d.slow, fastTo: d.slowTo, slowTo: d.fastTo, q: d.q, s: d.s})
	return ok
}

// largest returns the most GPUs that a party has of one model, among the models on which all its jobs run.
func (b *cellBook) largest(party int) (most cluster.MicroGPU) {
	for m := range b.models {
		if b.parties[party].Speed[m].known() {
			most = max(most, b.own[party][m]+b.spare[party][m])
		}
	}
	return most
}
