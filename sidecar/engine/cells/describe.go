package cells

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

type (
	// Description is the administrator's description of cells.
	Description = cluster.Cells
	// Type is a level of cells.
	Type = cluster.CellType
	// Top is a physical cell that no larger one contains.
	Top = cluster.TopCell
	// VC is a tenant's reservation.
	VC = cluster.VC
	// Quota is a number of cells of one type.
	Quota = cluster.CellQuota
	// Pin is one physical cell that a VC has for ever.
	Pin = cluster.CellPin
	// Part is the GPUs of a lease on one node.
	Part = cluster.CellPart
	// Loss is a VC's loss by bad hardware.
	Loss = cluster.CellLoss
	// View is a VC's cells of one level.
	View = cluster.CellView
	// Binding is a physical cell that is bound.
	Binding = cluster.BoundCell
	// Fragmentation counts the broken cells of a level.
	Fragmentation = cluster.Fragmentation
)

// Limits of a description.
const (
	NodeGPUs  = 64      // most GPUs of a node
	ChainGPUs = 1 << 21 // most GPUs of a chain
	Levels    = 16      // most levels of a chain
)

// FaultKind is the kind of an error in a description.
type FaultKind string

// The kinds.
const (
	NoName      FaultKind = "has no name"
	Twice       FaultKind = "is there twice"
	UnknownType FaultKind = "is of an unknown type"
	ManyChains  FaultKind = "is in several chains: say which"
	Cycle       FaultKind = "contains itself"
	ZeroSplit   FaultKind = "is split into less than one cell"
	NoModel     FaultKind = "is a GPU without a model"
	NoNodeLevel FaultKind = "has no level, or several, that is a node"
	TooLarge    FaultKind = "has too many GPUs"
	TooDeep     FaultKind = "has too many levels"
	BelowNode   FaultKind = "is smaller than a node"
	NodeCount   FaultKind = "has not the right number of nodes"
	NoSuchNode  FaultKind = "is on a node that is not there"
	NoSuchGPU   FaultKind = "is on a GPU that its node does not have"
	Overlap     FaultKind = "overlaps another"
	NoCells     FaultKind = "has no cells"
	Infeasible  FaultKind = "cannot be had: more cells are reserved than there are"
)

// unchecked is no fault: the types are faulty, and only the name of the level is known.
const unchecked FaultKind = "is not checked"

// Fault is one error in a description, with its place.
type Fault struct {
	Kind   FaultKind
	At     string // the place in the description, such as "vcs[1].cells[0]"
	VC     string
	Chain  string
	Type   string
	Cell   string // a top cell or a node
	Needed int    // of ZeroSplit, TooLarge, TooDeep, NodeCount, NoSuchGPU, NoCells, Infeasible
	There  int
}

func (f Fault) Error() string {
	var b strings.Builder
	for _, part := range []struct{ name, value string }{{"", f.At}, {"VC ", f.VC}, {"chain ", f.Chain}, {"type ", f.Type}, {"cell ", f.Cell}} {
		if part.value != "" {
			fmt.Fprintf(&b, "%s%s: ", part.name, part.value)
		}
	}
	b.WriteString(string(f.Kind))
	if f.Needed != 0 || f.There != 0 {
		fmt.Fprintf(&b, " (needed %d, there %d)", f.Needed, f.There)
	}
	return b.String()
}

// Faults lists all errors in a description.
type Faults []Fault

func (fs Faults) Error() string {
	all := make([]string, len(fs))
	for i := range fs {
		all[i] = fs[i].Error()
	}
	return strings.Join(all, "\n")
}

// types checks the types and gives the chains, by name: one for each type that no larger one
// contains.
func (s *Layout) types(types []Type) Faults {
	var faults Faults
	byName := make(map[string]*Type, len(types))
	inner := map[string]bool{}
	for i := range types {
		t := &types[i]
		bad := func(kind FaultKind, there int) {
			faults = append(faults, Fault{Kind: kind, At: fmt.Sprintf("types[%d]", i), Type: t.Name, There: there})
		}
		switch {
		case t.Name == "":
			bad(NoName, 0)
		case byName[t.Name] != nil:
			bad(Twice, 0)
		case t.Child != "" && t.Split < 1:
			bad(ZeroSplit, t.Split)
			faults[len(faults)-1].Needed = 1
		case t.Child == "" && t.Model == "":
			bad(NoModel, 0)
		}
		byName[t.Name] = t
		inner[t.Child] = true
	}
	for i := range types {
		at := fmt.Sprintf("types[%d]", i)
		t, steps := &types[i], 0
		for t != nil && t.Child != "" && steps <= len(types) {
			next := byName[t.Child]
			if next == nil {
				faults = append(faults, Fault{Kind: UnknownType, At: at, Type: t.Child})
			}
			t, steps = next, steps+1
		}
		if steps > len(types) {
			faults = append(faults, Fault{Kind: Cycle, At: at, Type: types[i].Name})
		}
	}
	sound := faults == nil
	for i := range types {
		if sound && !inner[types[i].Name] {
			faults = append(faults, s.chain(&types[i], byName)...)
		}
	}
	if faults != nil {
		s.chains, s.named = nil, byName
		return faults
	}
	slices.SortFunc(s.chains, func(a, b *chain) int { return cmp.Compare(a.name, b.name) })
	return faults
}

// chain adds the chain whose largest type is t.
func (s *Layout) chain(t *Type, byName map[string]*Type) Faults {
	c := &chain{name: t.Name, tree: tree{nodeAt: -1}}
	nodes, size := 0, 1
	for ; t != nil; t = byName[t.Child] {
		c.tree.levels = append(c.tree.levels, level{name: t.Name, split: t.Split})
		if t.Node {
			nodes++
			c.tree.nodeAt = len(c.tree.levels)
		}
		c.model = t.Model
	}
	c.tree.nodeAt = len(c.tree.levels) - c.tree.nodeAt
	slices.Reverse(c.tree.levels)
	if n := len(c.tree.levels); n > Levels {
		return Faults{{Kind: TooDeep, Chain: c.name, Needed: Levels, There: n}}
	}
	if nodes != 1 {
		return Faults{{Kind: NoNodeLevel, Chain: c.name, Needed: 1, There: nodes}}
	}
	for k := range c.tree.levels {
		if k > 0 {
			size = int(cluster.MulDiv(int64(size), int64(c.tree.levels[k].split), 1)) // no overflow
		}
		limit := ChainGPUs
		if k <= c.tree.nodeAt {
			limit = NodeGPUs
		}
		if size > limit {
			return Faults{{Kind: TooLarge, Chain: c.name, Type: c.tree.levels[k].name, Needed: limit, There: size}}
		}
		c.tree.levels[k].size = size
	}
	s.chains = append(s.chains, c)
	return nil
}

// levelOf finds the chain and the level of a type.
func (s *Layout) levelOf(chain, name string) (ci, k int, wrong FaultKind) {
	if s.named[name] != nil {
		return -1, 0, unchecked
	}
	ci = -1
	for i, c := range s.chains {
		if chain != "" && chain != c.name {
			continue
		}
		if l := c.tree.levelOf(name); l >= 0 {
			if ci >= 0 {
				return ci, k, ManyChains
			}
			ci, k = i, l
		}
	}
	if ci < 0 {
		return ci, k, UnknownType
	}
	return ci, k, ""
}

// tops builds the cells of all chains, if nothing is wrong so far.
func (s *Layout) tops(tops []Top) Faults {
	var faults Faults
	at := make([][][]item, len(s.chains)) // by chain and level
	for i, c := range s.chains {
		at[i] = make([][]item, len(c.tree.levels))
	}
	seen, names := map[string]bool{}, map[string]bool{}
	for i := range tops {
		t := &tops[i]
		bad := func(kind FaultKind, cell string, needed, there int) {
			faults = append(faults, Fault{Kind: kind, At: fmt.Sprintf("tops[%d]", i), Chain: t.Chain, Type: t.Type, Cell: cell, Needed: needed, There: there})
		}
		switch {
		case t.Name == "":
			bad(NoName, t.Name, 0, 0)
		case names[t.Name]:
			bad(Twice, t.Name, 0, 0)
		}
		names[t.Name] = true
		for _, n := range t.Nodes {
			if n == "" {
				bad(NoName, t.Name, 0, 0)
			} else if seen[n] {
				bad(Overlap, n, 0, 0)
			}
			seen[n] = true
		}
		ci, k, wrong := s.levelOf(t.Chain, t.Type)
		if wrong != "" {
			if wrong != unchecked {
				bad(wrong, t.Name, 0, 0)
			}
			continue
		}
		switch want := s.chains[ci].tree.nodesIn(k); {
		case k < s.chains[ci].tree.nodeAt:
			bad(BelowNode, t.Name, 0, 0)
		case len(t.Nodes) != want:
			bad(NodeCount, t.Name, want, len(t.Nodes))
		}
		at[ci][k] = append(at[ci][k], item{t.Name, t.Nodes})
	}
	if faults != nil || s.named != nil {
		return faults
	}
	for ci, c := range s.chains {
		nodes, n := c.join(at[ci])
		if n > ChainGPUs {
			return Faults{{Kind: TooLarge, Chain: c.name, Needed: ChainGPUs, There: n}}
		}
		c.build(nodes)
		for i, name := range nodes {
			if name != "" {
				s.places[name] = place{int16(ci), int32(i)}
			}
		}
	}
	return nil
}

// item is a cell during the construction of a chain: its nodes, "" = missing.
type item struct {
	name  string
	nodes []string
}

// join gives the nodes of a chain in the order of its cells, and their number of GPUs; no nodes
// if that exceeds ChainGPUs. Units too small for a top cell become part of one that is never
// whole.
func (c *chain) join(at [][]item) (nodes []string, gpus int) {
	for k := c.tree.nodeAt; k < len(c.tree.levels); k++ {
		slices.SortStableFunc(at[k], func(a, b item) int { return cmp.Compare(a.name, b.name) })
		gpus = len(at[k]) * c.tree.levels[k].size
		if gpus > ChainGPUs {
			return nil, gpus
		}
		if k == len(c.tree.levels)-1 {
			for _, t := range at[k] {
				nodes = append(nodes, t.nodes...)
			}
			break
		}
		if groups := len(at[k]) / max(c.tree.levels[k+1].split-1, 1); groups*c.tree.levels[k+1].size > ChainGPUs {
			return nil, groups * c.tree.levels[k+1].size
		}
		for group := range slices.Chunk(at[k], max(c.tree.levels[k+1].split-1, 1)) {
			whole := make([]string, c.tree.nodesIn(k+1))
			for i, t := range group {
				copy(whole[i*c.tree.nodesIn(k):], t.nodes)
			}
			at[k+1] = append(at[k+1], item{"\xff" + group[0].name, whole}) // after all that are whole
		}
	}
	return nodes, gpus
}

// assign gives the VCs their cells; built tells whether the cells exist.
func (s *allotment) assign(vcs []VC, built bool) Faults {
	var faults Faults
	order := make([]int, len(vcs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(vcs[a].Name, vcs[b].Name) })
	for _, i := range order {
		d := &vcs[i]
		where := fmt.Sprintf("vcs[%d]", i)
		switch {
		case d.Name == "":
			faults = append(faults, Fault{Kind: NoName, At: where})
		case s.cells.vcAt(d.Name) >= 0:
			faults = append(faults, Fault{Kind: Twice, At: where, VC: d.Name})
			continue
		case len(d.Cells)+len(d.Pins) == 0:
			faults = append(faults, Fault{Kind: NoCells, At: where, VC: d.Name, Needed: 1})
		}
		v := &vc{name: d.Name, accounts: make([][]account, len(s.cells.chains))}
		for ci, c := range s.cells.chains {
			v.accounts[ci] = make([]account, len(c.tree.levels))
		}
		s.cells.byName[d.Name] = int32(len(s.cells.vcs))
		s.cells.vcs = append(s.cells.vcs, v)
		for j := range d.Cells {
			q := &d.Cells[j]
			f := Fault{At: fmt.Sprintf("%s.cells[%d]", where, j), VC: d.Name, Chain: q.Chain, Type: q.Type}
			ci, k, wrong := s.cells.levelOf(q.Chain, q.Type)
			switch {
			case wrong != "" && wrong != unchecked:
				f.Kind = wrong
			case q.Cells < 1 || q.Cells > ChainGPUs:
				f.Kind, f.Needed, f.There = NoCells, 1, q.Cells
			case wrong == unchecked:
				continue
			default:
				v.accounts[ci][k].reserved += q.Cells
				s.cells.chains[ci].tree.levels[k].reserved += q.Cells
				continue
			}
			faults = append(faults, f)
		}
	}
	for _, i := range order {
		for j := 0; j < len(vcs[i].Pins) && built; j++ {
			if f := s.pin(vcs[i].Name, &vcs[i].Pins[j]); f.Kind != "" {
				f.At = fmt.Sprintf("vcs[%d].pins[%d]", i, j)
				faults = append(faults, f)
			}
		}
	}
	return faults
}

// pin binds a pinned cell for ever.
func (s *allotment) pin(name string, p *Pin) Fault {
	f := Fault{VC: name, Type: p.Type, Cell: p.Node}
	at, ok := s.cells.places[p.Node]
	if !ok {
		f.Kind = NoSuchNode
		return f
	}
	c := s.cells.chains[at.chain]
	k := c.tree.levelOf(p.Type)
	if k < 0 {
		f.Kind = UnknownType
		return f
	}
	if n := c.tree.levels[c.tree.nodeAt].size; p.GPU < 0 || p.GPU >= n {
		f.Kind, f.Needed, f.There = NoSuchGPU, p.GPU+1, n
		return f
	}
	i := c.tree.cellOf(k, int(at.node), 1<<p.GPU)
	if !c.vacant(k, i) {
		f.Kind = Overlap
		return f
	}
	v := s.cells.byName[name]
	a := &s.cells.vcs[v].accounts[at.chain][k]
	s.bind(v, int(at.chain), k, i)
	a.bound--
	c.tree.levels[k].bound--
	a.pinned++
	c.pinned[cell{k, i}] = true
	return Fault{}
}
