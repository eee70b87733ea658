package cells

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every way in which a description can be wrong is refused, with what and where.
func TestBadDescriptions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Description)
		want   Fault
	}{
		"cycle":              {func(d *Description) { d.Types[0] = Type{Name: "gpu", Child: "rack", Split: 2} }, Fault{Kind: Cycle, At: "types[0]", Type: "gpu"}},
		"zero split":         {func(d *Description) { d.Types[2].Split = 0 }, Fault{Kind: ZeroSplit, At: "types[2]", Type: "socket", Needed: 1}},
		"negative split":     {func(d *Description) { d.Types[2].Split = -3 }, Fault{Kind: ZeroSplit, At: "types[2]", Type: "socket", Needed: 1, There: -3}},
		"unknown child":      {func(d *Description) { d.Types[1].Child = "die" }, Fault{Kind: UnknownType, At: "types[1]", Type: "die"}},
		"type twice":         {func(d *Description) { d.Types = append(d.Types, d.Types[3]) }, Fault{Kind: Twice, At: "types[5]", Type: "node"}},
		"type without name":  {func(d *Description) { d.Types = append(d.Types, Type{Model: "x"}) }, Fault{Kind: NoName, At: "types[5]"}},
		"GPU without model":  {func(d *Description) { d.Types[0].Model = "" }, Fault{Kind: NoModel, At: "types[0]", Type: "gpu"}},
		"no node level":      {func(d *Description) { d.Types[3].Node = false }, Fault{Kind: NoNodeLevel, Chain: "rack", Needed: 1}},
		"two node levels":    {func(d *Description) { d.Types[4].Node = true }, Fault{Kind: NoNodeLevel, Chain: "rack", Needed: 1, There: 2}},
		"node too large":     {func(d *Description) { d.Types[1].Split = 33 }, Fault{Kind: TooLarge, Chain: "rack", Type: "socket", Needed: 64, There: 66}},
		"rack too large":     {func(d *Description) { d.Types[4].Split = 1 << 62 }, Fault{Kind: TooLarge, Chain: "rack", Type: "rack", Needed: ChainGPUs, There: 1<<63 - 1}},
		"top of no type":     {func(d *Description) { d.Tops[0].Type = "pod" }, Fault{Kind: UnknownType, At: "tops[0]", Type: "pod", Cell: "rack"}},
		"top twice":          {func(d *Description) { d.Tops = append(d.Tops, Top{Name: "rack", Type: "node", Nodes: []string{"x"}}) }, Fault{Kind: Twice, At: "tops[1]", Type: "node", Cell: "rack"}},
		"top without name":   {func(d *Description) { d.Tops[0].Name = "" }, Fault{Kind: NoName, At: "tops[0]", Type: "rack"}},
		"top below a node":   {func(d *Description) { d.Tops = append(d.Tops, Top{Name: "s", Type: "socket"}) }, Fault{Kind: BelowNode, At: "tops[1]", Type: "socket", Cell: "s"}},
		"too few nodes":      {func(d *Description) { d.Tops[0].Nodes = d.Tops[0].Nodes[:3] }, Fault{Kind: NodeCount, At: "tops[0]", Type: "rack", Cell: "rack", Needed: 4, There: 3}},
		"overlapping cells":  {func(d *Description) { d.Tops = append(d.Tops, Top{Name: "x", Type: "node", Nodes: []string{"n02"}}) }, Fault{Kind: Overlap, At: "tops[1]", Type: "node", Cell: "n02"}},
		"node without name":  {func(d *Description) { d.Tops[0].Nodes[1] = "" }, Fault{Kind: NoName, At: "tops[0]", Type: "rack", Cell: "rack"}},
		"VC without name":    {func(d *Description) { d.VCs[1].Name = "" }, Fault{Kind: NoName, At: "vcs[1]"}},
		"VC twice":           {func(d *Description) { d.VCs[1].Name = "A" }, Fault{Kind: Twice, At: "vcs[1]", VC: "A"}},
		"VC without cells":   {func(d *Description) { d.VCs[1].Cells = nil }, Fault{Kind: NoCells, At: "vcs[1]", VC: "B", Needed: 1}},
		"no cells reserved":  {func(d *Description) { d.VCs[2].Cells = []Quota{{Type: "node"}} }, Fault{Kind: NoCells, At: "vcs[2].cells[0]", VC: "C", Type: "node", Needed: 1}},
		"cells of no type":   {func(d *Description) { d.VCs[2].Cells = []Quota{{Type: "pod", Cells: 1}} }, Fault{Kind: UnknownType, At: "vcs[2].cells[0]", VC: "C", Type: "pod"}},
		"cells of two types": {func(d *Description) { d.Types = append(d.Types, Type{Name: "pod", Child: "node", Split: 2}) }, Fault{Kind: ManyChains, At: "vcs[0].cells[0]", VC: "A", Type: "socket"}},
		"pin not there":      {func(d *Description) { d.VCs[2].Pins = []Pin{{Type: "node", Node: "n09"}} }, Fault{Kind: NoSuchNode, At: "vcs[2].pins[0]", VC: "C", Type: "node", Cell: "n09"}},
		"pin of no type":     {func(d *Description) { d.VCs[2].Pins = []Pin{{Type: "pod", Node: "n00"}} }, Fault{Kind: UnknownType, At: "vcs[2].pins[0]", VC: "C", Type: "pod", Cell: "n00"}},
		"pin of no GPU":      {func(d *Description) { d.VCs[2].Pins = []Pin{{Type: "gpu", Node: "n00", GPU: 8}} }, Fault{Kind: NoSuchGPU, At: "vcs[2].pins[0]", VC: "C", Type: "gpu", Cell: "n00", Needed: 9, There: 8}},
		"pin twice": {func(d *Description) {
			d.VCs[1].Pins, d.VCs[2].Pins = []Pin{{Type: "gpu", Node: "n00", GPU: 3}}, []Pin{{Type: "socket", Node: "n00"}}
		}, Fault{Kind: Overlap, At: "vcs[2].pins[0]", VC: "C", Type: "socket", Cell: "n00"}},
		"infeasible": {func(d *Description) { d.VCs[2].Cells[0].Cells = 3 }, Fault{Kind: Infeasible, Chain: "rack", Type: "gpu", Needed: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			d := figure3()
			d.VCs = slices.Clone(d.VCs)
			c.change(&d)
			_, err := New(d)
			var faults Faults
			if !errors.As(err, &faults) || !slices.Contains(faults, c.want) {
				t.Errorf("refused with %+v, want %+v", err, c.want)
			}
		})
	}
}

// An infeasible assignment names the highest level that is short, and the numbers.
func TestInfeasible(t *testing.T) {
	d := Description{Types: v100(4), Tops: []Top{{Name: "rack", Type: "rack", Nodes: nodesNamed("n", 4)}, {Name: "single", Type: "node", Nodes: []string{"x"}}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "rack", Cells: 1}}}, {Name: "b", Cells: []Quota{{Type: "node", Cells: 2}, {Type: "gpu", Cells: 1}}}}}
	_, err := New(d)
	want := "chain rack: type node: cannot be had: more cells are reserved than there are (needed 2, there 1)\n" +
		"chain rack: type gpu: cannot be had: more cells are reserved than there are (needed 1, there 0)"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	// A pinned cell in the rack leaves no rack to reserve.
	d.VCs = []VC{{Name: "a", Cells: []Quota{{Type: "rack", Cells: 1}}}, {Name: "b", Pins: []Pin{{Type: "gpu", Node: "n02"}}}}
	if _, err := New(d); err == nil {
		t.Error("a rack is reserved, and a GPU in the only one is pinned")
	}
}

// Two single nodes are no rack of two.
func TestSingleNodesAreNoRack(t *testing.T) {
	d := Description{Types: v100(2), Tops: []Top{{Name: "x", Type: "node", Nodes: []string{"x"}}, {Name: "y", Type: "node", Nodes: []string{"y"}}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "rack", Cells: 1}}}}}
	if _, err := New(d); err == nil {
		t.Error("a rack is made of two nodes that are in none")
	}
	d.VCs[0].Cells = []Quota{{Type: "node", Cells: 2}}
	if _, err := New(d); err != nil {
		t.Error(err)
	}
}

// Single nodes do not fill large cells up beyond what a chain may have.
func TestTooManySingleNodes(t *testing.T) {
	d := Description{Types: []Type{{Name: "gpu", Model: "m"}, {Name: "node", Child: "gpu", Split: 1, Node: true}, {Name: "row", Child: "node", Split: 1}, {Name: "hall", Child: "row", Split: 2}}}
	for range 12 {
		d.Types = append(d.Types, Type{Name: d.Types[len(d.Types)-1].Name + "+", Child: d.Types[len(d.Types)-1].Name, Split: 2})
	}
	for i := range 1000 {
		d.Tops = append(d.Tops, Top{Name: fmt.Sprint(i), Type: "node", Nodes: []string{fmt.Sprint(i)}})
	}
	var faults Faults
	if _, err := New(d); !errors.As(err, &faults) || faults[0].Kind != TooLarge {
		t.Errorf("refused with %v", err)
	}
}

// Whatever a description says, it is either refused or safe.
func FuzzDescription(f *testing.F) {
	f.Add(uint64(1), 3)
	f.Add(uint64(7), 9)
	f.Fuzz(func(t *testing.T, seed uint64, changes int) {
		d := figure3()
		rng := rand.New(rand.NewPCG(seed, 1))
		name := func() string {
			return []string{"", "gpu", "pcie", "socket", "node", "rack", "pod"}[rng.IntN(7)]
		}
		node := func() string { return fmt.Sprintf("n%02d", rng.IntN(6)) }
		d.VCs = slices.Clone(d.VCs)
		for range changes % 8 {
			switch typ := &d.Types[rng.IntN(len(d.Types))]; rng.IntN(9) {
			case 0:
				typ.Child = name()
			case 1:
				typ.Split = rng.IntN(6) - 1
			case 2:
				typ.Name = name()
			case 3:
				typ.Node = !typ.Node
			case 4:
				d.Types = append(d.Types, Type{Name: name(), Child: name(), Split: rng.IntN(4), Node: rng.IntN(2) == 0, Model: "m"})
			case 5:
				d.Tops = append(d.Tops, Top{Name: fmt.Sprint(rng.IntN(4)), Type: name(), Nodes: []string{node(), node()}[:1+rng.IntN(2)]})
			case 6:
				v := &d.VCs[rng.IntN(len(d.VCs))]
				v.Cells = append(slices.Clone(v.Cells), Quota{Chain: name(), Type: name(), Cells: rng.IntN(5) - 1})
			case 7:
				v := &d.VCs[rng.IntN(len(d.VCs))]
				v.Pins = append(v.Pins, Pin{Type: name(), Node: node(), GPU: rng.IntN(10) - 1})
			case 8:
				d.VCs = append(d.VCs, VC{Name: name()})
			}
		}
		s, err := New(d)
		if err != nil {
			var faults Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("refused without a fault: %v", err)
			}
			return
		}
		if bad := s.check(); bad != nil {
			t.Fatalf("%+v: %v", d, bad)
		}
	})
}

// An error in one part of a description hides no error in another.
func TestAllFaultsAtOnce(t *testing.T) {
	d := figure3()
	d.Types = append(slices.Clone(d.Types), Type{Name: "x", Child: "gpu"})
	d.Tops = append(slices.Clone(d.Tops), Top{Name: "y", Type: "pod", Nodes: []string{"n02"}}, Top{Name: "rack", Type: "x", Nodes: []string{"z"}})
	d.VCs = append(slices.Clone(d.VCs), VC{Name: "A"}, VC{Name: "D"}, VC{Name: "E", Cells: []Quota{{Type: "pod", Cells: 1}, {Type: "x"}, {Type: "x", Cells: 9}}})
	_, err := New(d)
	want := Faults{
		{Kind: ZeroSplit, At: "types[5]", Type: "x", Needed: 1},
		{Kind: Overlap, At: "tops[1]", Type: "pod", Cell: "n02"}, {Kind: UnknownType, At: "tops[1]", Type: "pod", Cell: "y"},
		{Kind: Twice, At: "tops[2]", Type: "x", Cell: "rack"},
		{Kind: Twice, At: "vcs[3]", VC: "A"}, {Kind: NoCells, At: "vcs[4]", VC: "D", Needed: 1},
		{Kind: UnknownType, At: "vcs[5].cells[0]", VC: "E", Type: "pod"}, {Kind: NoCells, At: "vcs[5].cells[1]", VC: "E", Type: "x", Needed: 1},
	}
	var faults Faults
	if !errors.As(err, &faults) || !slices.Equal(faults, want) {
		t.Errorf("refused with\n%v\nwant\n%v", err, want)
	}
	d = figure3()
	d.VCs = append(slices.Clone(d.VCs), VC{Name: "D"}, VC{Name: "E", Cells: []Quota{{Type: "rack", Cells: 2}}})
	if _, err := New(d); !errors.As(err, &faults) || faults[0].Kind != NoCells || !slices.ContainsFunc(faults, func(f Fault) bool { return f.Kind == Infeasible }) {
		t.Errorf("refused with %v; want a VC without cells, and the shortage", err)
	}
}

// The supply is what the safety condition is about, level by level.
func TestSupply(t *testing.T) {
	s, err := New(Description{Types: v100(4), Tops: []Top{{Name: "rack", Type: "rack", Nodes: nodesNamed("n", 4)}, {Name: "single", Type: "node", Nodes: []string{"x"}}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "node", Cells: 2}, {Type: "gpu", Cells: 3}}}, {Name: "b", Pins: []Pin{{Type: "socket", Node: "n02"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Supply{}
	for _, x := range s.Cells.Supply() {
		got[x.Type] = x
	}
	for _, want := range []Supply{
		{Chain: "rack", Type: "rack", GPUs: 32, Cells: 1},
		{Chain: "rack", Type: "node", GPUs: 8, Cells: 5, Needed: 2, There: 4},
		{Chain: "rack", Type: "socket", GPUs: 4, Cells: 10, Pinned: 1, There: 5},
		{Chain: "rack", Type: "gpu", GPUs: 1, Cells: 40, Needed: 3, There: 20},
	} {
		if got[want.Type] != want {
			t.Errorf("%+v, want %+v", got[want.Type], want)
		}
	}
}
