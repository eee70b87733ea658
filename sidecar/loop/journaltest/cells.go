package journaltest

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// storyVCs are the tenants with a virtual cluster; the others borrow.
var storyVCs = []string{"astro", "bio"}

const (
	rackNodes  = 2
	quotaCells = 50 // of each VC, at each level
)

// levels are the types of a model's chain, from one GPU up; each holds two of the previous one.
func levels(model string) []string {
	var all []string
	for _, name := range []string{"gpu", "pair", "quad", "node", "rack"} {
		all = append(all, name+"-"+model)
	}
	return all
}

// description describes the cells.
func (s *Story) description() *cluster.Cells {
	if !s.Cells {
		return nil
	}
	d := &cluster.Cells{}
	for i, model := range storyModels {
		types := levels(model)
		for k, name := range types {
			t := cluster.CellType{Name: name, Node: k == len(types)-2, Model: model}
			if k > 0 {
				t.Child, t.Split, t.Model = types[k-1], 2, ""
			}
			d.Types = append(d.Types, t)
		}
		var nodes []string
		for n := i; n < len(s.nodes); n += len(storyModels) {
			nodes = append(nodes, s.nodes[n].Name)
		}
		for rack := range slices.Chunk(nodes, rackNodes) {
			top := cluster.TopCell{Name: fmt.Sprintf("rack-%s", rack[0]), Type: types[len(types)-1], Nodes: rack}
			if len(rack) < rackNodes {
				top.Type = types[len(types)-2]
			}
			d.Tops = append(d.Tops, top)
		}
	}
	for _, name := range storyVCs {
		vc := cluster.VC{Name: name}
		for _, model := range storyModels {
			for _, t := range levels(model)[:4] {
				vc.Cells = append(vc.Cells, cluster.CellQuota{Type: t, Cells: quotaCells})
			}
		}
		d.VCs = append(d.VCs, vc)
	}
	return d
}

// stand puts a new lease on the first free GPUs of its node.
func (s *Story) stand(l *cluster.Lease) {
	if !s.Cells {
		return
	}
	part := cluster.CellPart{Node: l.Nodes[0].Node}
	for i := 0; bits.OnesCount64(part.GPUs) < l.Size.Devices; i++ {
		part.GPUs |= 1 << i &^ s.used[part.Node]
	}
	s.used[part.Node] |= part.GPUs
	l.Class = cluster.Opportunistic
	if slices.Contains(storyVCs, s.record(l.Job).Tenant) {
		l.Class = cluster.Guaranteed
		part.Type = levels(l.Pool)[bits.Len(uint(l.Size.Devices))-1]
	}
	l.Parts = []cluster.CellPart{part}
}

// breakCells lets hardware fail and be repaired, and keeps GPUs for a gang.
func (s *Story) breakCells() {
	if !s.Cells {
		return
	}
	s.memory.Lost, s.memory.Claims = nil, nil
	if n := int(s.memory.Round % 5); n > 0 {
		types := levels(storyModels[0])
		s.memory.Lost = []cluster.CellLoss{{VC: storyVCs[0], Chain: types[len(types)-1], Type: types[2], Cells: n}}
	}
	if len(s.queue) > 0 && s.memory.Round%3 > 0 {
		c := cluster.Claim{Job: s.queue[0], Pool: s.jobs[s.queue[0]].Request.Model, At: s.now.Add(s.Term), Made: s.now}
		c.Nodes = []cluster.Holding{{Node: s.nodes[0].Name, Model: c.Pool, Size: cluster.Whole(nodeGPUs)}}
		c.Parts = []cluster.CellPart{{Node: s.nodes[0].Name, GPUs: 1<<nodeGPUs - 1, Type: levels(c.Pool)[3]}}
		s.memory.Claims = []cluster.Claim{c}
	}
}

// report gives the state of the cells. Each guaranteed lease has a cell of its own size.
func (s *Story) report() *cluster.CellReport {
	if !s.Cells {
		return nil
	}
	r := &cluster.CellReport{}
	bound := map[[2]string]int{}
	broken := map[string]int{}
	for _, l := range s.memory.Leases {
		if l.Class != cluster.Guaranteed {
			continue
		}
		types := levels(l.Pool)
		b := cluster.BoundCell{VC: s.record(l.Job).Tenant, Chain: types[len(types)-1], Type: l.Parts[0].Type, Parts: l.Parts, Used: l.Size.Devices,
			Holders: []cluster.JobKey{l.Job}}
		r.Bound = append(r.Bound, b)
		bound[[2]string{b.VC, b.Type}]++
		broken[b.Type]++
	}
	for _, vc := range storyVCs {
		for _, model := range storyModels {
			types := levels(model)
			for _, t := range types[:4] {
				v := cluster.CellView{VC: vc, Chain: types[len(types)-1], Type: t, Reserved: quotaCells, Bound: bound[[2]string{vc, t}]}
				for _, l := range s.memory.Lost {
					if l.VC == vc && l.Type == t {
						v.Lost = l.Cells
					}
				}
				v.Free = v.Reserved - v.Bound - v.Lost
				r.Views = append(r.Views, v)
			}
		}
	}
	for _, model := range storyModels {
		types := levels(model)
		for k, t := range types {
			r.Fragmentation = append(r.Fragmentation, cluster.Fragmentation{
				Chain: types[len(types)-1], Type: t, Broken: broken[t], Cells: len(s.nodes) / 2 * nodeGPUs >> k})
		}
	}
	if s.memory.Round%10 > 6 {
		r.Unsafe = []string{fmt.Sprintf("more cells promised than can be had: chain %s", levels(storyModels[0])[4])}
	}
	return r
}
