package hived

import (
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/cellworld"
)

// Row is a tenant's part of a sharing audit: the mean wait of its jobs, in minutes.
type Row struct {
	Tenant  string
	Jobs    int // compared
	LeftOut int // larger than the tenant's VC
	Private float64
	Shared  []float64 // by world
}

// Audit compares worlds in which tenants share a site with a private cluster of each
// tenant's VC (HiveD §5): the rows of those that have a VC and jobs, by name, and what
// came of each world.
func Audit(s cellworld.Site, jobs []cellworld.Job, worlds ...cellworld.World) ([]Row, []cellworld.Result, error) {
	of := map[string][]int{}
	for i := range jobs {
		of[jobs[i].Tenant] = append(of[jobs[i].Tenant], i)
	}
	results := make([]cellworld.Result, len(worlds))
	for i, w := range worlds {
		var err error
		if results[i], err = cellworld.Run(w, jobs); err != nil {
			return nil, nil, err
		}
	}
	shares := s.Shares()
	var rows []Row
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if shares[name] == 0 {
			continue
		}
		own := make([]cellworld.Job, len(of[name]))
		for k, i := range of[name] {
			own[k] = jobs[i]
		}
		alone, err := cellworld.Run(s.Private(name), own)
		if err != nil {
			return nil, nil, err
		}
		row := Row{Tenant: name, Shared: make([]float64, len(worlds))}
		for k, i := range of[name] {
			if alone.Waits[k] == cellworld.Never {
				row.LeftOut++
				continue
			}
			row.Jobs++
			row.Private += minutes(alone.Waits[k])
			for w := range results {
				row.Shared[w] += minutes(results[w].Waits[i])
			}
		}
		n := float64(max(row.Jobs, 1))
		row.Private /= n
		for w := range row.Shared {
			row.Shared[w] /= n
		}
		rows = append(rows, row)
	}
	return rows, results, nil
}

func minutes(s cluster.Span) float64 { return float64(s) / float64(cluster.Minute) }

// Mean is the mean of a result's hours, as shares of the GPUs and of the nodes.
type Mean struct{ Guaranteed, Lent, Bound, Broken float64 }

// MeanOf gives it for a site of so many GPUs.
func MeanOf(r cellworld.Result, gpus int) Mean {
	var m Mean
	for _, h := range r.Hours {
		m.Guaranteed += float64(h.Guaranteed) / float64(gpus)
		m.Lent += float64(h.Lent) / float64(gpus)
		m.Bound += float64(h.Bound) / float64(gpus)
		m.Broken += float64(h.Broken) / float64(h.Nodes)
	}
	n := float64(max(len(r.Hours), 1))
	return Mean{m.Guaranteed / n, m.Lent / n, m.Bound / n, m.Broken / n}
}
