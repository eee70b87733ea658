package hived

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/cellworld"
)

// Nodes is HiveD's cluster of §5.1: so many nodes of 8 GPUs, under 4 PCIe switches and 2 sockets.
func Nodes(n int) cellworld.Site {
	s := cellworld.Site{Types: []cluster.CellType{
		{Name: "gpu", Model: "v100"},
		{Name: "pcie", Child: "gpu", Split: 2},
		{Name: "socket", Child: "pcie", Split: 2},
		{Name: "node", Child: "socket", Split: 2, Node: true},
	}}
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		s.Tops = append(s.Tops, cluster.TopCell{Name: name, Type: "node", Nodes: []string{name}})
	}
	return s
}

// Assign gives every tenant node cells of a site for its weight: whole ones by largest remainders, ties
// by name. A tenant that gets none has no VC.
func Assign(s cellworld.Site, weights map[string]int64) cellworld.Site {
	type part struct {
		name  string
		cells int64
		rest  int64
	}
	var parts []part
	left, sum := int64(len(s.Tops)), int64(0)
	for name, w := range weights {
		parts = append(parts, part{name: name})
		sum += w
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	if sum == 0 {
		s.VCs = nil
		return s
	}
	order := make([]*part, len(parts))
	for i := range parts {
		p := &parts[i]
		p.cells = int64(len(s.Tops)) * weights[p.name] / sum
		p.rest = int64(len(s.Tops)) * weights[p.name] % sum
		left -= p.cells
		order[i] = p
	}
	slices.SortStableFunc(order, func(a, b *part) int { return cmp.Compare(b.rest, a.rest) })
	for _, p := range order[:left] {
		p.cells++
	}
	s.VCs = nil
	for _, p := range parts {
		if p.cells > 0 {
			s.VCs = append(s.VCs, cluster.VC{Name: p.name, Cells: []cluster.CellQuota{{Type: s.Tops[0].Type, Cells: int(p.cells)}}})
		}
	}
	return s
}

// Levels splits node cells of each VC into smaller ones, to match the GPU time that its jobs
// ask for at each level (HiveD §5.3); the number of GPUs stays the same.
func Levels(s cellworld.Site, jobs []cellworld.Job) cellworld.Site {
	var levels []cluster.CellType // from the node down
	for name := s.Tops[0].Type; name != ""; {
		i := slices.IndexFunc(s.Types, func(t cluster.CellType) bool { return t.Name == name })
		levels = append(levels, s.Types[i])
		name = s.Types[i].Child
	}
	demand := map[string][]float64{}
	for _, j := range jobs {
		k := len(levels) - 1
		for k > 0 && s.GPUs(levels[k].Name) < j.GPUs {
			k--
		}
		if demand[j.Tenant] == nil {
			demand[j.Tenant] = make([]float64, len(levels))
		}
		demand[j.Tenant][k] += float64(j.Nodes*j.GPUs) * float64(j.Runs)
	}
	shares := s.Shares()
	s.VCs = slices.Clone(s.VCs)
	for i := range s.VCs {
		v := &s.VCs[i]
		v.Cells = nil
		left, rest, sum := shares[v.Name], 0.0, 0.0
		for _, d := range demand[v.Name] {
			sum += d
		}
		for k, level := range levels {
			size := s.GPUs(level.Name)
			n := left / size
			if k < len(levels)-1 && sum > 0 {
				rest += demand[v.Name][k] / sum * float64(shares[v.Name])
				// Whole cells up to here; fractions go to the levels below.
				n = min(n, int(rest)/size)
				rest -= float64(n * size)
			}
			if n > 0 {
				v.Cells = append(v.Cells, cluster.CellQuota{Type: level.Name, Cells: n})
				left -= n * size
			}
		}
	}
	return s
}

// Static has all node cells of VCs bound for ever, one VC after the other.
func Static(s cellworld.Site) cellworld.World {
	w := s.HiveD()
	var nodes []string
	for _, t := range s.Tops {
		nodes = append(nodes, t.Nodes...)
	}
	w.Cells.VCs = nil
	for _, v := range s.VCs {
		pinned := cluster.VC{Name: v.Name}
		for _, q := range v.Cells {
			for range q.Cells {
				pinned.Pins = append(pinned.Pins, cluster.CellPin{Type: q.Type, Node: nodes[0]})
				nodes = nodes[1:]
			}
		}
		w.Cells.VCs = append(w.Cells.VCs, pinned)
	}
	return w
}
