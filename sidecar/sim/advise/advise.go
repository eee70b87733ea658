// Package advise says which cells a virtual cluster needs, from the requests and waits of its
// tenant's jobs. HiveD leaves that to the administrator (§3.2, §6).
//
// The jobs are replayed alone on candidate cells (cellworld.Site.Private: first come, first
// served, and a job that does not fit is skipped). First the search finds the minimum number of
// GPUs, in the largest possible cells, on which the total wait does not exceed the recorded one.
// Then it splits cells into smaller ones, since a reservation of small cells costs other tenants
// less (§5.3), replaces them by smaller ones or removes them, until no further step is possible.
// The result suffices, and none of its cells can be spared. Other cells with fewer GPUs may
// suffice: with gangs of different sizes, more space can let a small job block a large one.
package advise

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/sim/cellworld"
)

// Job is a job of a site's history.
type Job struct {
	cellworld.Job              // Model: of the GPUs that it ran on
	Waited        cluster.Span // total: from submission to end, without run time
}

// VC is one tenant's need in one chain.
type VC struct {
	Tenant string
	Cells  []cluster.CellQuota // largest first
	GPUs   int                 // in them
	Jobs   int
	Waited cluster.Span // by all these jobs
}

// Advice is the need of all tenants.
type Advice struct {
	VCs     []VC
	LeftOut int // jobs too large for any node, or of an unknown model
	// Short lists the cells, by type, that all VCs need together beyond those of the described
	// cluster.
	Short cells.Faults
}

// Advise gives the smallest VCs with which no tenant would have waited longer. It ignores the VCs
// of the description; without Tops nothing is short. An error is about the description.
func Advise(d cluster.Cells, jobs []Job) (Advice, error) {
	if _, err := cells.New(cluster.Cells{Types: d.Types, Tops: d.Tops}); err != nil {
		return Advice{}, err
	}
	var out Advice
	chains := chainsOf(d.Types)
	of := map[string][]Job{}
	var names []string
	for _, j := range jobs {
		if of[j.Tenant] == nil {
			names = append(names, j.Tenant)
		}
		of[j.Tenant] = append(of[j.Tenant], j)
	}
	slices.Sort(names)
	d.VCs = nil
	for _, name := range names {
		parts := make([][]Job, len(chains))
		for _, j := range of[name] {
			i := slices.IndexFunc(chains, func(c chain) bool { return c.holds(&j) })
			if i < 0 {
				out.LeftOut++
				continue
			}
			parts[i] = append(parts[i], j)
		}
		vc := cluster.VC{Name: name}
		for i := range parts {
			if len(parts[i]) == 0 {
				continue
			}
			v, err := chains[i].least(name, parts[i])
			if err != nil {
				return Advice{}, err
			}
			for k := range v.Cells {
				v.Cells[k].Chain = chains[i].name
			}
			out.VCs = append(out.VCs, v)
			vc.Cells = append(vc.Cells, v.Cells...)
		}
		if len(vc.Cells) > 0 {
			d.VCs = append(d.VCs, vc)
		}
	}
	if len(d.Tops) > 0 {
		_, err := cells.New(d)
		errors.As(err, &out.Short)
	}
	return out, nil
}

// chain is the levels of a chain up to the node, the GPU first.
type chain struct {
	name  string
	types []cluster.CellType
	sizes []int // in GPUs
	model string
}

// chainsOf gives the chains of a valid description, by name.
func chainsOf(types []cluster.CellType) []chain {
	var out []chain
	byName, inner := map[string]cluster.CellType{}, map[string]bool{}
	for _, t := range types {
		byName[t.Name], inner[t.Child] = t, true
	}
	for _, t := range types {
		if inner[t.Name] {
			continue
		}
		c := chain{name: t.Name}
		for node := false; t.Name != ""; t = byName[t.Child] {
			if node = node || t.Node; node {
				c.types = append(c.types, t)
			}
			c.model = t.Model
		}
		slices.Reverse(c.types)
		size := 1
		for _, t := range c.types {
			size *= max(t.Split, 1)
			c.sizes = append(c.sizes, size)
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b chain) int { return strings.Compare(a.name, b.name) })
	return out
}

func (c *chain) node() int { return c.sizes[len(c.sizes)-1] }

// holds tells whether a job fits on nodes of the chain.
func (c *chain) holds(j *Job) bool {
	return j.GPUs <= c.node() && (j.Model == "" || j.Model == c.model)
}

// search is the search for a tenant's cells.
type search struct {
	*chain
	tenant string
	jobs   []cellworld.Job
	waited cluster.Span
}

// least finds the minimum cells of a chain for a tenant.
func (c *chain) least(tenant string, jobs []Job) (VC, error) {
	s := search{chain: c, tenant: tenant}
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	for _, j := range jobs {
		s.jobs = append(s.jobs, j.Job)
		s.waited += j.Waited
	}
	counts, err := s.fewest()
	for again := true; again && err == nil; {
		again, err = s.less(counts)
	}
	if err != nil {
		return VC{}, err
	}
	return VC{Tenant: tenant, Cells: c.quota(counts), GPUs: c.gpus(counts), Jobs: len(jobs), Waited: s.waited}, nil
}

// fewest finds the minimum number of GPUs, in the largest possible cells.
func (s *search) fewest() ([]int, error) {
	high := 1
	for {
		ok, err := s.suffices(s.largest(high))
		if err != nil {
			return nil, err
		}
		if ok {
			break
		}
		high *= 2
	}
	n, err := bisect(high/2+1, high, func(n int) (bool, error) { return s.suffices(s.largest(n)) })
	return s.largest(n), err
}

// less reduces counts, level by level, from the node down: it splits cells, replaces them by one
// of the level below, or removes them. It tells whether anything changed.
func (s *search) less(counts []int) (bool, error) {
	changed := false
	for k := len(counts) - 1; k >= 0; k-- {
		below := []int{0} // child cells per cell
		if k > 0 {
			below = []int{s.types[k].Split, 1, 0}
		}
		for _, give := range below {
			all := counts[k]
			with := func(stay int) []int {
				out := slices.Clone(counts)
				out[k] = stay
				if k > 0 {
					out[k-1] += (all - stay) * give
				}
				return out
			}
			stay, err := bisect(0, all, func(n int) (bool, error) { return s.suffices(with(n)) })
			if err != nil {
				return false, err
			}
			changed = changed || stay < all
			copy(counts, with(stay))
		}
	}
	return changed, nil
}

// bisect finds the least number from low to high for which is holds; it holds for high.
func bisect(low, high int, is func(int) (bool, error)) (int, error) {
	for low < high {
		mid := (low + high) / 2
		ok, err := is(mid)
		switch {
		case err != nil:
			return high, err
		case ok:
			high = mid
		default:
			low = mid + 1
		}
	}
	return high, nil
}

// largest gives n GPUs in the largest possible cells: the count of each level.
func (c *chain) largest(n int) []int {
	out := make([]int, len(c.sizes))
	for k := len(out) - 1; k >= 0; k-- {
		out[k] = n / c.sizes[k]
		n %= c.sizes[k]
	}
	return out
}

// suffices tells whether the jobs wait no longer on these cells than recorded.
func (s *search) suffices(counts []int) (bool, error) {
	if s.gpus(counts) == 0 {
		return false, nil
	}
	site := cellworld.Site{Types: s.types, VCs: []cluster.VC{{Name: s.tenant, Cells: s.quota(counts)}}}
	node := s.types[len(s.types)-1].Name
	for n := range (s.gpus(counts) + s.node() - 1) / s.node() {
		name := fmt.Sprintf("n%06d", n)
		site.Tops = append(site.Tops, cluster.TopCell{Name: name, Type: node, Nodes: []string{name}})
	}
	return cellworld.Within(site.Private(s.tenant), s.jobs, s.waited)
}

// quota converts counts of cells to a VC's quotas.
func (c *chain) quota(counts []int) []cluster.CellQuota {
	var out []cluster.CellQuota
	for k := len(counts) - 1; k >= 0; k-- {
		if counts[k] > 0 {
			out = append(out, cluster.CellQuota{Type: c.types[k].Name, Cells: counts[k]})
		}
	}
	return out
}

func (c *chain) gpus(counts []int) int {
	n := 0
	for k := range counts {
		n += counts[k] * c.sizes[k]
	}
	return n
}
