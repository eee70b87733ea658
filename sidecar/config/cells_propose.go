package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Rack is a named group of nodes that are near each other.
type Rack struct {
	Name  string
	Nodes []string
}

// ProposeCells writes a draft of a cells file for the nodes of managed partitions and the
// tenants. It has a chain for each GPU model and number of GPUs per node, racks if all are of
// equal size, and whole nodes for tenants by weight (largest remainder). sockets gives the number
// of sockets with GPUs, by node, if known.
func ProposeCells(seen *cluster.Observation, rules *loop.Rules, sockets map[string]int, racks []Rack) (string, error) {
	p := &proposal{chains: map[shape]*chainPlan{}, names: map[string]bool{}}
	for i := range seen.Nodes {
		p.node(&seen.Nodes[i], rules, sockets)
	}
	if len(p.chains) == 0 {
		return "", fmt.Errorf("no node with GPUs is in a managed partition (%s)", strings.Join(rules.Partitions, ", "))
	}
	tenants, _ := loop.Tenants(seen.Accounts, rules)
	tenants = slices.DeleteFunc(tenants, func(t cluster.Tenant) bool { return t.Weight <= 0 })
	if len(tenants) == 0 {
		return "", errors.New("no tenant has a weight above 0")
	}
	p.write("# cells.yaml: the virtual clusters of %s, as `fairlease cells init` proposed them from what Slurm\n", cmp.Or(seen.Cluster, "this cluster"))
	p.write("# reports. Edit it, then `fairlease cells check` it, and name it as cells.file, with preset: hived.\n")
	p.hierarchy(racks)
	p.physical()
	p.assignment(tenants)
	return p.b.String(), nil
}

type proposal struct {
	b      strings.Builder
	chains map[shape]*chainPlan
	order  []*chainPlan // by model, larger nodes first
	names  map[string]bool
	out    []string // remarks on omitted nodes
}

// chainPlan is the nodes of one shape.
type chainPlan struct {
	shape
	sockets int // 0 = unknown, or different
	nodes   []string
	racks   []Rack // of the chain's own nodes; nil = no level above the node
	base    string // prefix of its types' names
}

func (p *proposal) write(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// node puts a node into its chain.
func (p *proposal) node(n *cluster.Node, rules *loop.Rules, sockets map[string]int) {
	switch {
	case !managed(n, rules):
		p.out = append(p.out, n.Name+": in no managed partition")
		return
	case len(n.GPUs) != 1:
		p.out = append(p.out, n.Name+": "+gpuWords(n.GPUs)+"; a cell has GPUs of one model")
		return
	}
	s := shape{model: n.GPUs[0].Model, gpus: n.GPUs[0].Count + len(n.Drained)}
	if s.gpus < 1 || s.gpus > cells.NodeGPUs {
		p.out = append(p.out, fmt.Sprintf("%s: %d GPUs; a node has 1 to %d", n.Name, s.gpus, cells.NodeGPUs))
		return
	}
	c := p.chains[s]
	if c == nil {
		c = &chainPlan{shape: s, sockets: sockets[n.Name]}
		p.chains[s] = c
	}
	c.nodes = append(c.nodes, n.Name)
	if c.sockets != sockets[n.Name] || c.sockets < 2 || s.gpus%c.sockets != 0 || s.gpus == c.sockets {
		c.sockets = 0
	}
}

// hierarchy writes the types.
func (p *proposal) hierarchy(racks []Rack) {
	shapes := map[string]int{}
	for s := range p.chains {
		shapes[s.model]++
	}
	p.order = slices.SortedFunc(maps.Values(p.chains), func(a, b *chainPlan) int {
		return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(b.gpus, a.gpus))
	})
	p.write(`
# The types of cells, from the largest down: one of type name is split into so many of type child. One
# type of each chain is the node; the last is the GPU, with its model. All cells of a type must be alike.
cellHierarchy:
`)
	for _, c := range p.order {
		slices.SortFunc(c.nodes, hostlist.Compare)
		c.base = c.model
		if shapes[c.model] > 1 {
			c.base = fmt.Sprintf("%sx%d", c.model, c.gpus)
		}
		for p.names[c.base] {
			c.base += "-"
		}
		p.names[c.base] = true
		if c.racks = c.evenly(racks); c.racks != nil {
			p.write("  - {name: %s, split: %d, child: %s}\n", c.name("rack"), len(c.racks[0].Nodes), c.name("node"))
		}
		if c.sockets > 0 {
			p.write("  # Slurm names %d sockets for the GPUs of these nodes; that they are evenly spread, in the\n  # order of their numbers, is assumed: nvidia-smi topo -m tells.\n", c.sockets)
			p.write("  - {name: %s, split: %d, child: %s, node: true}\n", c.name("node"), c.sockets, c.name("socket"))
			p.write("  - {name: %s, split: %d, child: %s}\n", c.name("socket"), c.gpus/c.sockets, c.name("gpu"))
		} else {
			p.write("  - {name: %s, split: %d, child: %s, node: true}\n", c.name("node"), c.gpus, c.name("gpu"))
		}
		p.write("  - {name: %s, model: %s}\n", c.name("gpu"), word(c.model))
	}
}

func (c *chainPlan) name(level string) string { return word(c.base + "-" + level) }

// evenly gives the racks of a chain's nodes if there are several, all of equal size, and each
// node is in one rack; else nil.
func (c *chainPlan) evenly(racks []Rack) []Rack {
	var out []Rack
	n, own := 0, map[string]bool{}
	for _, name := range c.nodes {
		own[name] = true
	}
	for _, r := range racks {
		mine := slices.DeleteFunc(slices.Clone(r.Nodes), func(name string) bool { return !own[name] })
		if len(mine) > 0 {
			out, n = append(out, Rack{r.Name, mine}), n+len(mine)
		}
	}
	seen := map[string]bool{}
	for _, r := range out {
		for _, name := range r.Nodes {
			seen[name] = true
		}
		if len(r.Nodes) != len(out[0].Nodes) || len(r.Nodes) < 2 {
			return nil
		}
	}
	if len(out) < 2 || n != len(c.nodes) || len(seen) != n {
		return nil
	}
	return out
}

func (p *proposal) physical() {
	p.write(`
# What there is, as Slurm's hostlists. Of a rack, the order of the nodes is that of its cells.
physicalCluster:
`)
	for _, c := range p.order {
		if c.racks == nil {
			p.write("  - type: %s\n    nodes: %s\n", c.name("node"), list(hostlist.Compress(c.nodes)))
			continue
		}
		p.write("  - type: %s\n    nodes:\n", c.name("rack"))
		for _, r := range c.racks {
			p.write("      - %s  # %s\n", list(hostlist.Compress(r.Nodes)), oneLine(r.Name))
		}
	}
	if p.out != nil {
		p.write("# Left out:\n")
		for _, line := range p.out {
			p.write("#   %s\n", oneLine(line))
		}
	}
}

// assignment gives tenants whole nodes.
func (p *proposal) assignment(tenants []cluster.Tenant) {
	var sum int64
	for _, t := range tenants {
		sum += t.Weight
	}
	p.write(`
# What each virtual cluster has. Its name is that of a tenant. Proposed are whole nodes by the tenants'
# weights, and none is left: what you take away here becomes everybody's. Cells smaller than a node are kept
# as promised only as far as gres.conf (Links=, Cores=) makes Slurm choose GPUs so; whole nodes always are.
# To give a tenant a certain cell for ever: pinned: [{type: TYPE, node: NODE, gpu: NUMBER}]
vcAssignment:
`)
	nodes := make([]map[string]int, len(p.order))
	for i, c := range p.order {
		nodes[i] = apportion(len(c.nodes), tenants, sum)
	}
	var none []string
	for _, t := range tenants {
		has := false
		for i, c := range p.order {
			n := nodes[i][t.Name]
			if n == 0 {
				continue
			}
			if !has {
				p.write("  - vc: %s  # %.1f %% by weight\n    cells:\n", word(t.Name), 100*float64(t.Weight)/float64(sum))
				has = true
			}
			p.write("      - {type: %s, number: %d}\n", c.name("node"), n)
		}
		if !has {
			none = append(none, fmt.Sprintf("%s (%.1f %%)", t.Name, 100*float64(t.Weight)/float64(sum)))
		}
	}
	if none != nil {
		p.write("# Too small a share for a whole node, so on what is lent: %s\n", oneLine(strings.Join(none, ", ")))
	}
}

// apportion divides n by weights: shares rounded down, then one each by the largest remainder,
// ties by name.
func apportion(n int, tenants []cluster.Tenant, sum int64) map[string]int {
	out, left := map[string]int{}, n
	order := slices.Clone(tenants)
	rest := map[string]int64{} // of the share, in millionths
	for _, t := range order {
		due := cluster.MulDiv(t.Weight, int64(n)*1_000_000, sum)
		out[t.Name], rest[t.Name] = int(due/1_000_000), due%1_000_000
		left -= out[t.Name]
	}
	slices.SortStableFunc(order, func(a, b cluster.Tenant) int {
		return cmp.Or(cmp.Compare(rest[b.Name], rest[a.Name]), cmp.Compare(a.Name, b.Name))
	})
	for i := 0; left > 0; i, left = i+1, left-1 {
		out[order[i%len(order)].Name]++
	}
	return out
}

var (
	plain     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)
	plainList = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.,[\]-]*$`)
	reserved  = regexp.MustCompile(`(?i)^(y|n|yes|no|true|false|on|off|null)$`)
)

// word quotes a name for YAML if needed; list is a hostlist that needs no quotes.
func word(s string) string { return quoteUnless(plain, s) }
func list(s string) string { return quoteUnless(plainList, s) }

func quoteUnless(fine *regexp.Regexp, s string) string {
	if fine.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// oneLine keeps a name from ending a comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
