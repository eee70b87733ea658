package trade

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Name names a party: a tenant, or its jobs of one kind where it has several.
type Name = cluster.PartyName

// Speed bounds the throughput of one GPU of a model, in any unit that a party has for all
// models. Anything but 0 < Low ≤ High < infinity says that nothing is known, and is not
// traded.
type Speed struct{ Low, High float64 }

func (v Speed) known() bool {
	const most = 1e12 // beyond it no number is a measurement
	return v.Low > 1/most && v.Low <= v.High && v.High < most
}

// Party is jobs of a tenant that are alike, and what they can trade. A tenant with jobs of
// several kinds is several parties; these do not trade with each other.
type Party struct {
	Name
	// GPUs is what these jobs are due of each model without any trade, without what is for
	// jobs that name a model.
	GPUs []cluster.MicroGPU
	// Demand is how many GPUs they can use at once, of whatever model.
	Demand cluster.MicroGPU
	// Speed is by model.
	Speed []Speed
}

// Trade is a swap of entitlements between two parties.
type Trade = cluster.Trade

// Why says why a trade is undone.
type Why = string

// The reasons for which a trade is undone, wholly or in part.
const (
	Left        Why = "left"        // a party has left, or a model
	Speedups    Why = "speedups"    // it does not gain any more: speedups are not what they were
	Entitlement Why = "entitlement" // a party is due less than it gives
	Demand      Why = "demand"      // a party cannot use what it gets
)

// Undone is what is taken back of a trade, at the price of the trade.
type Undone = cluster.Undone

// Rules are what keeps trades from being too small to matter.
type Rules struct {
	// Least is the smallest number of GPUs, fast or slow, that changes hands; it is a
	// thousandth of a GPU at least, so that rounding to millionths is no part of a price.
	Least cluster.MicroGPU
	// Edge is by how much the speedups of two parties must differ for a new trade, as a part
	// of the smaller. A trade in force stays while it gains at all.
	Edge float64
}

// Outcome is the market after trading.
type Outcome struct {
	GPUs   [][]cluster.MicroGPU // what each party is due of each model, in the order given
	Kept   []Trade              // of the trades in force, in their order, what stays, with what it gains now
	New    []Trade              // in the order in which they were made, which is to be kept
	Undone []Undone             // in the order of the trades
}

// Decide undoes what cannot stay of the trades in force, as little as possible and the
// newest first, and then trades until no trade gains: each time the one with the largest
// gain. models are the newest first: of two models the first is the fast one. The order of
// the parties does not matter, that of the trades is the order in which they were made.
func Decide(models []string, parties []Party, inForce []Trade, rules Rules) Outcome {
	b := newBook(models, parties, rules)
	var o Outcome
	o.Kept, o.Undone = b.replay(inForce)
	o.New = b.trade()
	o.GPUs = b.due(parties)
	return o
}
