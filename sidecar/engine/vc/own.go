package vc

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// layout returns the cells of a description with all hardware healthy and free. It returns nil and an error
// for an impossible description. Programs that read descriptions reject such a description earlier.
func (c *Chooser) layout(d *cluster.Cells) (*cells.State, error) {
	if c.described != d {
		c.described, c.traded, c.trades = d, nil, nil
		c.plain, c.refused = cells.New(*d)
	}
	return c.plain, c.refused
}

// layoutAfter returns such cells after trades; nil = they are not possible.
func (c *Chooser) layoutAfter(d *cluster.Cells, trades []cluster.CellTrade) *cells.State {
	plain, err := c.layout(d)
	if err != nil || len(trades) == 0 {
		return plain
	}
	if !slices.EqualFunc(trades, c.trades, same) {
		c.traded, c.trades = nil, slices.Clone(trades)
		if after, ok := cells.Trade(*d, trades); ok {
			c.traded, _ = cells.New(after)
		}
	}
	return c.traded
}

// same reports whether two trades of cells are the same one.
func same(a, b cluster.CellTrade) bool {
	return a.ID == b.ID && a.FastTo == b.FastTo && a.SlowTo == b.SlowTo && a.Cells == b.Cells
}

// Own returns the GPUs that tenants have in cells of their own; nil = no cells.
func (c *Chooser) Own(b *round.Facts) *round.Owned {
	d := b.Snapshot.Cells
	if d == nil {
		return nil
	}
	plain, err := c.layout(d)
	if err != nil {
		return nil
	}
	own := &round.Owned{Base: owned(b, plain), Lots: lots(b, plain, d)}
	own.GPUs = own.Base
	if after := c.layoutAfter(d, b.Snapshot.CellTrades); after != nil && after != plain {
		own.GPUs = owned(b, after)
	}
	return own
}

// owned returns the GPUs in the cells of tenants, less what they have lost, by pool, then tenant.
func owned(b *round.Facts, s *cells.State) [][]int {
	own := make([][]int, len(b.Pools))
	for p, pool := range b.Pools {
		own[p] = make([]int, len(b.Tenants))
		for t, name := range b.Tenants {
			own[p][t] = s.Cells.GPUs(name, pool)
		}
		for _, f := range b.Snapshot.Lost {
			if t, ok := slices.BinarySearch(b.Tenants, f.VC); ok {
				own[p][t] = max(own[p][t]-f.Cells*s.Cells.Size(f.Chain, f.Type, pool), 0)
			}
		}
	}
	return own
}

// lots returns the cells that tenants may trade, by tenant; nil = no tenant may, or no policy divides the models.
func lots(b *round.Facts, s *cells.State, d *cluster.Cells) (out [][]cluster.CellLot) {
	if !b.Settings.Divides() {
		return nil
	}
	for i := range d.VCs {
		t, known := slices.BinarySearch(b.Tenants, d.VCs[i].Name)
		for _, q := range d.VCs[i].Cells {
			for _, model := range b.Pools {
				size := s.Cells.Size(q.Chain, q.Type, model)
				if !known || q.Tradable == 0 || size == 0 {
					continue
				}
				if out == nil {
					out = make([][]cluster.CellLot, len(b.Tenants))
				}
				out[t] = append(out[t], cluster.CellLot{Chain: q.Chain, Type: q.Type, Model: model, GPUs: size, Cells: q.Tradable})
			}
		}
	}
	return out
}
