package trade

import (
	"cmp"
	"slices"
)

// market is a pair of models: who would give how much of the slow one for a fast one.
type market struct {
	fast, slow int
	bids, asks []quote // the highest bid first; the lowest ask first
}

// quote is what a fast GPU is worth to a party, in slow ones.
type quote struct {
	party int
	value float64
}

// mostTrades ends trading. Each trade leaves one of the two with nothing to give or without
// room, so there are few; but two parties can hand GPUs of a third model back and forth as
// money where little else is to be had. What is left is for the next decision.
const mostTrades = 10_000

// trade makes trades until none gains, the one with the largest gain first.
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

// markets lists all pairs of models with what everybody bids and asks there.
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

// best finds the trade between the highest bid and the lowest ask that go together.
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

// bids tells whether a party could pay its bid, for the least that is traded.
func (b *book) bids(m *market, q quote) bool {
	return float64(b.own[q.party][m.slow]) >= max(q.value, 1)*float64(b.rules.Least)
}

// asks tells whether a party has fast GPUs. Where a fast one is worth more to it than a slow
// one, it needs room for more GPUs than it gives.
func (b *book) asks(m *market, q quote) bool {
	return b.own[q.party][m.fast] >= b.rules.Least && (q.value < 1 || b.room[q.party] > 0)
}

// price is the next bid after the k-th, of another tenant than the two, if it is above
// what is asked; else the mean of bid and ask.
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
	t.FastToGain, t.SlowToGain = b.gain(d)
	return t
}
