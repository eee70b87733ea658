package trade

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// vcOf is a tenant with nodes of 4 GPUs of two models, all tradable, and jobs of one GPU with a speedup.
func vcOf(name string, fast, slow, demand int, speedup float64) CellParty {
	p := CellParty{Party: Party{Name: Name{Tenant: name}, GPUs: share(cluster.MicroGPU(4*fast), cluster.MicroGPU(4*slow)), Demand: cluster.MicroGPU(demand) * gpu, Speed: []Speed{{speedup, speedup}, {1, 1}}}, Gang: gpu}
	if fast > 0 {
		p.Lots = append(p.Lots, Lot{Type: "fast-node", Model: "fast", GPUs: 4, Cells: fast})
	}
	if slow > 0 {
		p.Lots = append(p.Lots, Lot{Type: "slow-node", Model: "slow", GPUs: 4, Cells: slow})
	}
	return p
}

var bothModels = []string{"fast", "slow"}

// Whole cells change hands at the number of slow ones nearest to the market's price.
func TestCellsAreTradedWhole(t *testing.T) {
	a, b := vcOf("a", 2, 0, 100, 1.2), vcOf("b", 0, 9, 100, 6)
	o := DecideCells(bothModels, []CellParty{a, b}, nil, Rules{})
	if len(o.New) != 2 {
		t.Fatalf("%+v", o.New)
	}
	for _, x := range o.New { // 3.6 is between 1.2 and 6: 4 nodes for one
		if c := x.Cells; c.FastCells != 1 || c.SlowCells != 4 || x.Price != 4 || x.FastGPUs != 4*gpu || x.SlowGPUs != 16*gpu || x.FastTo.Tenant != "b" {
			t.Errorf("%+v %+v", x, c)
		}
	}
	if want := [][]cluster.MicroGPU{share(0, 32), share(8, 4)}; !slices.EqualFunc(o.GPUs, want, slices.Equal) {
		t.Errorf("they have %v, want %v", o.GPUs, want)
	}
	again := DecideCells(bothModels, []CellParty{a, b}, o.New, Rules{})
	if len(again.New)+len(again.Undone) > 0 || len(again.Kept) != 2 {
		t.Errorf("deciding again: %+v", again)
	}
	b.Lots[0].Cells = 7 // no longer enough for both trades: the newer one goes
	again = DecideCells(bothModels, []CellParty{a, b}, o.New, Rules{Edge: 100})
	if len(again.Kept) != 1 || len(again.Undone) != 1 || again.Undone[0].At != 1 || again.Undone[0].Why != Entitlement {
		t.Errorf("with fewer tradable cells: %+v", again)
	}
}

func TestCellsThatAreNotTraded(t *testing.T) {
	for name, c := range map[string]struct{ a, b CellParty }{
		"the giver cannot use more slow GPUs": {vcOf("a", 2, 0, 8, 1.2), vcOf("b", 0, 9, 100, 6)},
		"speedups are alike":                  {vcOf("a", 2, 0, 100, 3), vcOf("b", 0, 9, 100, 3)},
		"too few slow cells":                  {vcOf("a", 2, 0, 100, 1.2), vcOf("b", 0, 1, 100, 6)},
		"nothing is tradable":                 {CellParty{Party: vcOf("a", 2, 0, 100, 1.2).Party}, vcOf("b", 0, 9, 100, 6)},
		"a gang would not fit any more": {vcOf("a", 2, 0, 100, 1.2), func() CellParty {
			b := vcOf("b", 0, 9, 100, 6)
			b.Gang = 36 * gpu
			return b
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			if o := DecideCells(bothModels, []CellParty{c.a, c.b}, nil, Rules{}); len(o.New) > 0 {
				t.Errorf("%+v", o.New)
			}
		})
	}
}

// value is the throughput of a party's usable GPUs.
func value(p *CellParty, gpus []cluster.MicroGPU, of func(Speed) float64) float64 {
	q := Party{GPUs: gpus, Demand: p.Demand, Speed: p.Speed}
	own, _ := q.usable(len(gpus))
	sum := 0.0
	for m, g := range own {
		sum += float64(g) * of(p.Speed[m])
	}
	return sum
}

// No trade of cells lowers the throughput of a tenant's entitlement by the speeds that count against it. Trades keep
// the number of cells of every type and stay within the lots. The same trades stay at the next decision, and reverting
// them restores what all had.
func TestTradesOfCellsHurtNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ps []CellParty
		for i := range rapid.IntRange(2, 5).Draw(t, "tenants") {
			p := vcOf(fmt.Sprint("t", i), rapid.IntRange(0, 5).Draw(t, "fast"), rapid.IntRange(0, 20).Draw(t, "slow"), rapid.IntRange(0, 120).Draw(t, "demand"), 1)
			low := rapid.Float64Range(0.5, 8).Draw(t, "speedup")
			p.Speed[0] = Speed{low, low * rapid.Float64Range(1, 1.5).Draw(t, "unsure")}
			p.Gang = cluster.MicroGPU(rapid.SampledFrom([]int{1, 4, 8, 16}).Draw(t, "gang")) * gpu
			for k := range p.Lots {
				p.Lots[k].Cells = rapid.IntRange(0, p.Lots[k].Cells).Draw(t, "tradable")
			}
			ps = append(ps, p)
		}
		o := DecideCells(bothModels, ps, nil, Rules{})
		given := map[string]int{}
		for _, x := range o.New {
			given[x.SlowTo.Tenant+" fast"] += x.Cells.FastCells
			given[x.FastTo.Tenant+" slow"] += x.Cells.SlowCells
		}
		sum := make([]cluster.MicroGPU, 2)
		for i := range ps {
			p := &ps[i]
			for _, l := range p.Lots {
				if n := given[p.Tenant+" "+l.Model]; n > l.Cells {
					t.Fatalf("%s gave %d of %d tradable cells", p.Tenant, n, l.Cells)
				}
			}
			for _, speed := range []func(Speed) float64{func(s Speed) float64 { return s.Low }, func(s Speed) float64 { return s.High }} {
				if was, is := value(p, p.GPUs, speed), value(p, o.GPUs[i], speed); is < was*(1-1e-9) {
					t.Fatalf("%s had a throughput of %v, and has %v: %+v", p.Tenant, was, is, o.New)
				}
			}
			if p.Gang <= slices.Max(p.GPUs) && p.Gang > slices.Max(o.GPUs[i]) {
				t.Fatalf("a gang of %s fits no more: %v", p.Tenant, o.GPUs[i])
			}
			for m := range sum {
				sum[m] += o.GPUs[i][m] - p.GPUs[m]
			}
		}
		if sum[0] != 0 || sum[1] != 0 {
			t.Fatalf("trades make or lose GPUs: %v", sum)
		}
		again := DecideCells(bothModels, ps, o.New, Rules{})
		if len(again.Undone)+len(again.New) > 0 {
			t.Fatalf("deciding again: %+v", again)
		}
		for i := range ps { // nobody asks for GPUs any more
			ps[i].Demand = 0
		}
		gone := DecideCells(bothModels, ps, o.New, Rules{})
		for i := range ps {
			if len(gone.Kept) > 0 || !slices.Equal(gone.GPUs[i], ps[i].GPUs) {
				t.Fatalf("after reverting all: %+v", gone)
			}
		}
	})
}
