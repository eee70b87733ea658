package cellworld

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Assign gives every tenant node cells for its weight: whole ones by largest remainders, ties
// by name. Who gets none has no VC.
func (s Site) Assign(weights map[string]int64) Site {
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
func (s Site) Levels(jobs []Job) Site {
	var levels []cluster.CellType // from the node down
	for name := s.Tops[0].Type; name != ""; {
		i := slices.IndexFunc(s.Types, func(t cluster.CellType) bool { return t.Name == name })
		levels = append(levels, s.Types[i])
		name = s.Types[i].Child
	}
	demand := map[string][]float64{}
	for _, j := range jobs {
		k := len(levels) - 1
		for k > 0 && s.gpus(levels[k].Name) < j.GPUs {
			k--
		}
		if demand[j.Tenant] == nil {
			demand[j.Tenant] = make([]float64, len(levels))
		}
		demand[j.Tenant][k] += float64(j.Nodes*j.GPUs) * float64(j.Runs)
	}
	shares := s.shares()
	s.VCs = slices.Clone(s.VCs)
	for i := range s.VCs {
		v := &s.VCs[i]
		v.Cells = nil
		left, rest, sum := shares[v.Name], 0.0, 0.0
		for _, d := range demand[v.Name] {
			sum += d
		}
		for k, level := range levels {
			size := s.gpus(level.Name)
			n := left / size
			if k < len(levels)-1 && sum > 0 {
				rest += demand[v.Name][k] / sum * float64(shares[v.Name])
				// Whole cells up to here; what is less than one is left to the levels below.
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
