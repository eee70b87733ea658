package trade

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Name names a party: a tenant, or its jobs of one kind where it has several.
type Name = cluster.PartyName

// Speed bounds the throughput of one GPU of a model, in any unit that the party uses for all
// models. Other values than 0 < Low ≤ High < infinity mean that it is unknown, and the model is
// not traded.
type Speed struct{ Low, High float64 }

func (v Speed) known() bool {
	const most = 1e12 // larger numbers are no measurements
	return v.Low > 1/most && v.Low <= v.High && v.High < most
}

// Party is a tenant's equal jobs, with their tradable entitlement. A tenant with jobs of several
// kinds is several parties; these do not trade with each other.
type Party struct {
	Name
	// GPUs is these jobs' entitlement to each model before trading, without the part for jobs
	// that name a model.
	GPUs []cluster.MicroGPU
	// Demand is the number of GPUs of any model that they can use at once.
	Demand cluster.MicroGPU
	// Speed is by model.
	Speed []Speed
	// Declared tells by model whether its jobs declare Speed, and nobody has measured it; nil = no.
	Declared []bool
}

// Trade is a swap of entitlements between two parties.
type Trade = cluster.Trade

// Why says why a trade is reverted.
type Why = string

// The reasons for which a trade is reverted, in whole or in part.
const (
	Left        Why = "left"        // a party has left, or a model
	Speedups    Why = "speedups"    // it no longer gains, or a declared speedup that it rests on has been measured
	Entitlement Why = "entitlement" // a party's entitlement is less than it gives
	Demand      Why = "demand"      // a party cannot use what it gets
)

// Undone is the reverted part of a trade, at the price of the trade.
type Undone = cluster.Undone

// Rules exclude trades that are too small to matter.
type Rules struct {
	// Least is the minimum number of GPUs, fast or slow, in a trade. It is at least a thousandth
	// of a GPU, so that rounding to millionths does not distort prices.
	Least cluster.MicroGPU
	// Edge is the minimum relative difference of two parties' speedups for a new trade. A trade
	// in force stays while it gains at all.
	Edge float64
}

// Outcome is the market after trading.
type Outcome struct {
	GPUs   [][]cluster.MicroGPU // each party's entitlement by model, in the given order
	Kept   []Trade              // remaining trades in force, in their order, with their present gains
	New    []Trade              // in the order of trading, which must be kept
	Undone []Undone             // in the order of the trades
}

// Decide reverts the trades in force that cannot stay, as little as possible and the newest
// first. Then it trades until no trade gains, the largest gain first. models are ordered from the
// newest: of two models the first is the fast one. The order of parties does not matter; the
// order of trades is that in which they were made.
func Decide(models []string, parties []Party, inForce []Trade, rules Rules) Outcome {
	b := newBook(models, parties, rules)
	var o Outcome
	o.Kept, o.Undone = b.replay(inForce)
	o.New = b.trade()
	o.GPUs = b.due(parties)
	return o
}
