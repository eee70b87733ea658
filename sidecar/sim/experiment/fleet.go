package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Rack is a number of equal nodes.
type Rack struct {
	Nodes, GPUs int    // GPUs of each node
	Model       string // "" = not named
}

// Fleet is the nodes of a cluster. Either all racks name a model or none does.
type Fleet struct {
	Racks []Rack
	// CPUs and MemoryMB are per GPU of a node; 0 = enough for all jobs.
	CPUs     int
	MemoryMB int64
	// PerSwitch is the number of nodes under each switch, in their order; 0 = no topology is known.
	PerSwitch int
}

// unnamed is the model of GPUs without a named model.
const unnamed = "gpu"

// partition is the one that all nodes and jobs are in.
const partition = "gpu"

// The maximum fleet.
const (
	mostNodes   = 100_000
	mostPerNode = 1000
)

// ParseFleet reads NODESxGPUS or NODESxGPUS:MODEL, several of them joined by commas
// or +: 64x8, 20x8:v100+20x4:k80.
func ParseFleet(text string) (Fleet, error) {
	var f Fleet
	nodes := 0
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '+' }) {
		size, model, named := strings.Cut(strings.TrimSpace(part), ":")
		a, b, _ := strings.Cut(size, "x")
		n, err := strconv.Atoi(a)
		g, err2 := strconv.Atoi(b)
		model = strings.ToLower(strings.TrimSpace(model))
		if err != nil || err2 != nil || n < 1 || g < 1 || n > mostNodes || g > mostPerNode || named && model == "" {
			return Fleet{}, fmt.Errorf("%q is no cluster: write nodes x GPUs per node, as in 64x8, and where there are several models 20x8:v100+20x4:k80", part)
		}
		if nodes += n; nodes > mostNodes {
			return Fleet{}, fmt.Errorf("%q has more than %d nodes", text, mostNodes)
		}
		f.Racks = append(f.Racks, Rack{Nodes: n, GPUs: g, Model: model})
	}
	if len(f.Racks) == 0 {
		return Fleet{}, fmt.Errorf("%q is no cluster: write nodes x GPUs per node, as in 64x8", text)
	}
	for _, r := range f.Racks {
		if (r.Model == "") != (f.Racks[0].Model == "") {
			return Fleet{}, fmt.Errorf("%q names the GPU model of some nodes only: name all or none", text)
		}
	}
	return f, nil
}

// String writes a fleet as ParseFleet reads it.
func (f Fleet) String() string {
	parts := make([]string, len(f.Racks))
	for i, r := range f.Racks {
		parts[i] = fmt.Sprintf("%dx%d", r.Nodes, r.GPUs)
		if r.Model != "" {
			parts[i] += ":" + r.Model
		}
	}
	return strings.Join(parts, "+")
}

// Count gives the number of nodes and of GPUs.
func (f Fleet) Count() (nodes, gpus int) {
	for _, r := range f.Racks {
		nodes, gpus = nodes+r.Nodes, gpus+r.Nodes*r.GPUs
	}
	return nodes, gpus
}

// named tells whether the fleet says which models it has.
func (f Fleet) named() bool { return len(f.Racks) > 0 && f.Racks[0].Model != "" }

// Models lists the fleet's models, sorted, and their GPUs.
func (f Fleet) Models() []cluster.GPUs {
	var out []cluster.GPUs
	for _, r := range f.Racks {
		i := slices.IndexFunc(out, func(g cluster.GPUs) bool { return g.Model == r.Model })
		if i < 0 {
			i, out = len(out), append(out, cluster.GPUs{Model: r.Model})
		}
		out[i].Count += r.Nodes * r.GPUs
	}
	slices.SortFunc(out, func(a, b cluster.GPUs) int { return cmp.Compare(a.Model, b.Model) })
	return out
}

// Nodes makes the fleet's nodes.
func (f Fleet) Nodes() []cluster.Node {
	var out []cluster.Node
	for _, r := range f.Racks {
		model := r.Model
		if model == "" {
			model = unnamed
		}
		for range r.Nodes {
			under := ""
			if f.PerSwitch > 0 {
				under = fmt.Sprintf("s%d", len(out)/f.PerSwitch+1)
			}
			out = append(out, cluster.Node{Switch: under, Name: fmt.Sprintf("n%06d", len(out)+1), GPUs: []cluster.GPUs{{Model: model, Count: r.GPUs}},
				CPUs: max(f.CPUs, 1) * r.GPUs, MemoryMB: max(f.MemoryMB, 1) * int64(r.GPUs), Partitions: []string{partition}})
		}
	}
	return out
}
