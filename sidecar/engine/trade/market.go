package trade

import (
	"cmp"
	"slices"
)

// market is a pair of models with all bids and asks.
type market struct {
	fast, slow int
	bids, asks []quote // highest bid first; lowest ask first
}

// quote is the value of a fast GPU to a party, in slow ones.
type quote struct {
	party int
	value float64
}

// mostTrades ends trading. Each trade exhausts one side's GPUs or capacity, so there are few. But
// if few other GPUs are available, two parties can pass GPUs of a third model back and forth as
// money. The rest is left to the next decision.
const mostTrades = 10_000

// trade makes trades, the one with the largest gain first, until none gains.
func (b *book) trade() []Trade {
	markets := b.markets()
	var made []Trade
	for len(made) < mostTrades {
		var best deal
		most := 0.0
		for i := range markets {
			d, ok := b.best(&markets[i])
			if !ok {
				continue
			}
			if fastTo, slowTo := b.gain(&d); fastTo+slowTo > most {
				best, most = d, fastTo+slowTo
			}
		}
		if most == 0 {
			break
		}
		made = append(made, b.row(&best))
		b.carry(&best)
	}
	return made
}

// markets lists all pairs of models with all parties' bids and asks.
func (b *book) markets() []market {
	var all []market
	for fast := range b.models {
		for slow := fast + 1; slow < len(b.models); slow++ {
			m := market{fast: fast, slow: slow}
			for i := range b.parties {
				if bid := b.parties[i].bid(fast, slow); bid > 0 {
					m.bids = append(m.bids, quote{i, bid})
					m.asks = append(m.asks, quote{i, b.parties[i].ask(fast, slow)})
				}
			}
			slices.SortStableFunc(m.bids, func(x, y quote) int { return cmp.Compare(y.value, x.value) })
			slices.SortStableFunc(m.asks, func(x, y quote) int { return cmp.Compare(x.value, y.value) })
			all = append(all, m)
		}
	}
	return all
}

// best finds the best trade between the highest compatible bid and the lowest ask.
func (b *book) best(m *market) (deal, bool) {
	for k, bid := range m.bids {
		if !b.bids(m, bid) {
			continue
		}
		for _, ask := range m.asks {
			if ask.value*(1+max(b.rules.Edge, 0)) >= bid.value {
				break
			}
			if !b.asks(m, ask) || b.parties[bid.party].Tenant == b.parties[ask.party].Tenant {
				continue
			}
			d := deal{fast: m.fast, slow: m.slow, fastTo: bid.party, slowTo: ask.party}
			d.price = b.price(m, k, ask)
			if _, ok := b.amount(&d, b.own[d.slowTo][d.fast]); ok {
				return d, true
			}
		}
	}
	return deal{}, false
}

// bids tells whether a party could pay its bid for the minimum amount.
func (b *book) bids(m *market, q quote) bool {
	return float64(b.own[q.party][m.slow]) >= max(q.value, 1)*float64(b.rules.Least)
}

// asks tells whether a party has fast GPUs. If a fast one is worth more to it than a slow one, it
// needs capacity for more GPUs than it gives.
func (b *book) asks(m *market, q quote) bool {
	return b.own[q.party][m.fast] >= b.rules.Least && (q.value < 1 || b.room[q.party] > 0)
}

// price is the next bid after the k-th, from a third tenant, if it exceeds the ask; else the mean
// of bid and ask.
func (b *book) price(m *market, k int, ask quote) float64 {
	bid := m.bids[k]
	for _, o := range m.bids[k+1:] {
		if o.value <= ask.value {
			break
		}
		t := b.parties[o.party].Tenant
		if b.bids(m, o) && t != b.parties[bid.party].Tenant && t != b.parties[ask.party].Tenant {
			return o.value
		}
	}
	return (bid.value + ask.value) / 2
}

// row makes the record of a trade.
func (b *book) row(d *deal) Trade {
	t := Trade{
		Fast: b.models[d.fast], Slow: b.models[d.slow],
		FastTo: b.parties[d.fastTo].Name, SlowTo: b.parties[d.slowTo].Name,
		FastGPUs: d.q, SlowGPUs: d.s, Price: d.price,
	}
	t.FastToSpeedup, t.SlowToSpeedup = b.worth(d)
	t.FastToDeclared, t.SlowToDeclared = b.declares(d.fastTo, d), b.declares(d.slowTo, d)
	b.keeps = true
	t.FastToGain, t.SlowToGain = b.gain(d)
	b.keeps = false
	return t
}
