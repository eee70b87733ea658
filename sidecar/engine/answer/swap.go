package answer

import (
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/trade"
)

// swapCells lets the tenants of a question trade cells of their virtual clusters. It returns the trades that are
// agreed, with the new ones, which it numbers. Trades are made with what tenants have without trades, so no trade pays
// for another one.
func swapCells(q *cluster.AllocationRequest) trade.CellOutcome {
	order := fastestFirst(q)
	models := make([]string, len(order))
	for m, p := range order {
		models[m] = q.Pools[p].Model
	}
	var parties []trade.CellParty
	for k := range q.Cells {
		if c := &q.Cells[k]; len(c.Lots) > 0 {
			parties = append(parties, cellParty(q, c, order))
		}
	}
	o := trade.DecideCells(models, parties, q.CellTrades, worthwhile)
	for _, t := range o.New {
		q.NextTrade++
		t.ID = q.NextTrade
		o.Kept = append(o.Kept, t)
	}
	return o
}

// cellParty returns a tenant as a party that trades cells: with its GPUs of each model, less what its jobs ask for
// that name the model. Its speed on a model has the lowest and the highest value of all its jobs, relative to one
// model that all know, so that a trade lowers the throughput of none of them. It is unknown if a job cannot run there,
// or if its speed there is an estimate.
func cellParty(q *cluster.AllocationRequest, c *cluster.CellGPUs, order []int) trade.CellParty {
	party := trade.CellParty{Lots: c.Lots, Party: trade.Party{Name: trade.Name{Tenant: c.Tenant},
		GPUs: make([]cluster.MicroGPU, len(order)), Speed: make([]trade.Speed, len(order))}}
	for m, p := range order {
		party.GPUs[m] = cluster.MicroGPU(c.Base[p]) * cluster.WholeGPU
	}
	var bids []*cluster.Bid
	for i := range q.Bids {
		b := &q.Bids[i]
		if b.Tenant != c.Tenant {
			continue
		}
		if !b.Pinned {
			party.Demand += cluster.MicroGPU(b.Demand) * cluster.WholeGPU
			party.Gang = max(party.Gang, cluster.MicroGPU(b.Gang)*cluster.WholeGPU)
			bids = append(bids, b)
			continue
		}
		for m, p := range order {
			if b.Speeds[p] > 0 {
				party.GPUs[m] = max(party.GPUs[m]-cluster.MicroGPU(b.Demand)*cluster.WholeGPU, 0)
			}
		}
	}
	reference := -1
	for m := len(order) - 1; m >= 0 && reference < 0; m-- {
		if known(bids, order[m]) {
			reference = m
		}
	}
	for m, p := range order {
		if !known(bids, p) {
			continue
		}
		if party.Speed[m] = (trade.Speed{Low: 1, High: 1}); m == reference {
			continue
		}
		low, high, of := math.Inf(1), 0.0, order[reference]
		for _, b := range bids {
			by := b.Terms()
			speed, off := by.Speeds[p]/by.Speeds[of], by.Margins[p]*by.Margins[of]
			low, high = min(low, speed/off), max(high, speed*off)
		}
		party.Speed[m] = trade.Speed{Low: low, High: high}
	}
	return party
}

// known tells whether there are bids and the speed of all of them in a pool is sure.
func known(bids []*cluster.Bid, p int) bool {
	for _, b := range bids {
		by := b.Terms()
		if by.Speeds[p] <= 0 || by.Margins[p] <= 0 || by.Basis != nil && by.Basis[p] != cluster.Declared && by.Basis[p] != cluster.Observed {
			return false
		}
	}
	return len(bids) > 0
}
