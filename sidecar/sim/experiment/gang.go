package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// gang gives a job's request for the fleet's nodes, or why it could never run there. mixed tells
// whether gangs that name no model may span models.
func (f Fleet) gang(j *trace.Job, mixed bool) (cluster.Request, string) {
	r := cluster.Request{Size: cluster.Whole(j.GPUs)}
	if f.CPUs > 0 {
		r.CPUs = j.CPUs
	}
	if f.MemoryMB > 0 {
		r.MemoryMB = j.MemoryMB
	}
	if f.named() {
		r.Model = strings.ToLower(j.Model)
	}
	pools := f.pools(r.Model, mixed)
	if len(pools) == 0 {
		return r, fmt.Sprintf("asks for GPUs of model %s, which the cluster does not have", r.Model)
	}
	for _, size := range sizes(pools) {
		r.Nodes = (r.Size.Devices + size - 1) / size
		r.MaxNodes, r.PerNode = r.Nodes, 0
		if r.Size.Devices%r.Nodes == 0 {
			r.PerNode = r.Size.Devices / r.Nodes
		}
		if slices.ContainsFunc(pools, func(racks []Rack) bool { return f.holds(racks, r) }) {
			return r, ""
		}
	}
	return r, "asks for more than the whole cluster could give to one job"
}

// pools gives the racks of each model that a job may use.
func (f Fleet) pools(model string, mixed bool) [][]Rack {
	if mixed && model == "" {
		return [][]Rack{f.Racks}
	}
	var out [][]Rack
	for _, m := range f.Models() {
		if model != "" && m.Model != model {
			continue
		}
		out = append(out, slices.DeleteFunc(slices.Clone(f.Racks), func(r Rack) bool { return r.Model != m.Model }))
	}
	return out
}

// sizes lists the sizes of nodes, largest first.
func sizes(pools [][]Rack) []int {
	var out []int
	for _, racks := range pools {
		for _, r := range racks {
			out = append(out, r.GPUs)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return slices.Compact(out)
}

// holds tells whether a request fits the empty racks.
func (f Fleet) holds(racks []Rack, r cluster.Request) bool {
	per := (r.Size.Devices + r.Nodes - 1) / r.Nodes
	nodes := 0
	for _, k := range racks {
		cpus := f.CPUs == 0 || r.CPUs*per <= f.CPUs*k.GPUs*r.Size.Devices
		memory := f.MemoryMB == 0 || r.MemoryMB*int64(per) <= f.MemoryMB*int64(k.GPUs)*int64(r.Size.Devices)
		if k.GPUs >= per && cpus && memory {
			nodes += k.Nodes
		}
	}
	return nodes >= r.Nodes
}
