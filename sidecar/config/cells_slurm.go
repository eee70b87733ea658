package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Against compares the file with a sighting: whether its nodes exist and match their types, and
// whether its virtual clusters are tenants. Contradictions are problems; remarks may be intended.
func (f *CellFile) Against(seen *cluster.Observation, rules *loop.Rules) (wrong Problems, remarks []string) {
	c := &comparison{f: f, r: &reader{file: f.Name}, known: map[string]*cluster.Node{}, listed: map[string]bool{}}
	for i := range seen.Nodes {
		c.known[seen.Nodes[i].Name] = &seen.Nodes[i]
	}
	c.nodes(rules)
	c.rest(seen, rules)
	c.tenants(seen, rules)
	return c.r.problems.sorted(), c.remarks
}

type comparison struct {
	f       *CellFile
	r       *reader
	known   map[string]*cluster.Node
	listed  map[string]bool // nodes in the file
	remarks []string
}

func (c *comparison) remark(format string, args ...any) {
	c.remarks = append(c.remarks, fmt.Sprintf(format, args...))
}

// nodes looks up each node of the file.
func (c *comparison) nodes(rules *loop.Rules) {
	var unmanaged []string
	for i := 0; i < len(c.f.Cells.Tops); {
		entry, s := c.f.entry[i], c.f.shapeOf(c.f.Cells.Tops[i].Type)
		var missing, order []string
		odd := map[string][]string{} // nodes by what is wrong with them
		for ; i < len(c.f.entry) && c.f.entry[i] == entry; i++ {
			for _, name := range c.f.Cells.Tops[i].Nodes {
				c.listed[name] = true
				n := c.known[name]
				if n == nil {
					missing = append(missing, name)
					continue
				}
				if !managed(n, rules) {
					unmanaged = append(unmanaged, name)
				}
				if why := s.unlike(n); why != "" {
					if odd[why] == nil {
						order = append(order, why)
					}
					odd[why] = append(odd[why], name)
				}
			}
		}
		key := fmt.Sprintf("physicalCluster[%d]", entry)
		line := c.f.line(key+".nodes", key)
		if missing != nil {
			c.r.wrong(line, key+".nodes", "Slurm has no node with GPUs named %s; correct the list, or add the node to slurm.conf", hostlist.Compress(missing))
		}
		for _, why := range order {
			c.r.wrong(line, key+".nodes", "%s: Slurm has %s, type %q has %s; correct cellHierarchy, or list the node under another type", hostlist.Compress(odd[why]), why, s.typ, s)
		}
	}
	if unmanaged != nil {
		c.remark("%s: in no managed partition (%s), so no job of a virtual cluster gets there; add a partition to the configuration, or leave out the nodes",
			hostlist.Compress(unmanaged), strings.Join(rules.Partitions, ", "))
	}
}

// String words the shape.
func (s shape) String() string { return gpuWords([]cluster.GPUs{{Model: s.model, Count: s.gpus}}) }

func gpuWords(list []cluster.GPUs) string {
	var words []string
	for _, g := range list {
		words = append(words, fmt.Sprintf("%d %s", g.Count, g.Model))
	}
	if words == nil {
		return "no GPUs"
	}
	return strings.Join(words, " and ")
}

// unlike says how a node differs from its type. Drained GPUs count, since they will return.
func (s shape) unlike(n *cluster.Node) string {
	if len(n.GPUs) == 1 && n.GPUs[0].Model == s.model && n.GPUs[0].Count+len(n.Drained) == s.gpus {
		return ""
	}
	words := gpuWords(n.GPUs)
	if n := len(n.Drained); n > 0 {
		words += fmt.Sprintf(" (and %d drained)", n)
	}
	return words
}

func managed(n *cluster.Node, rules *loop.Rules) bool {
	return slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(rules.Partitions, p) })
}

// rest finds nodes that are missing in the file.
func (c *comparison) rest(seen *cluster.Observation, rules *loop.Rules) {
	var outside []string
	gpus := 0
	for i := range seen.Nodes {
		if n := &seen.Nodes[i]; !c.listed[n.Name] && managed(n, rules) {
			outside = append(outside, n.Name)
			for _, g := range n.GPUs {
				gpus += g.Count
			}
		}
	}
	if outside != nil {
		c.remark("%s (%d GPUs): in a managed partition and in no cell; no virtual cluster has them", hostlist.Compress(outside), gpus)
	}
}

// tenants compares the virtual clusters with the tenants.
func (c *comparison) tenants(seen *cluster.Observation, rules *loop.Rules) {
	list, of := loop.Tenants(seen.Accounts, rules)
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	has := map[string]bool{}
	for i := range c.f.Assignment {
		name := c.f.Assignment[i].VC
		has[name] = true
		key := fmt.Sprintf("vcAssignment[%d]", i)
		line := c.f.line(key+".vc", key)
		switch tenant := of(name); {
		case tenant == name:
		case tenant != "":
			c.r.wrong(line, key+".vc", "account %q belongs to tenant %q (tenants.level is %d); give its cells to that", name, tenant, rules.TenantLevel)
		default:
			next := "; the tenants are " + strings.Join(names, ", ")
			if near := nearest(name, names); near != "" {
				next = fmt.Sprintf("; did you mean %s?", near)
			}
			c.r.wrong(line, key+".vc", "%q is no tenant: Slurm has no such account below root%s", name, next)
		}
	}
	var without []string
	for _, n := range names {
		if !has[n] {
			without = append(without, n)
		}
	}
	if without != nil {
		left := 0
		for i, s := range c.f.Supply {
			if i+1 == len(c.f.Supply) || c.f.Supply[i+1].Chain != s.Chain { // GPUs, the lowest level
				left += s.There - s.Needed
			}
		}
		live := fmt.Sprintf("on the %d GPUs of cells that nobody has reserved, and on what is lent", left)
		if left == 0 {
			live = "on what is lent only, opportunistic, for all cells are reserved"
		}
		c.remark("%s: without a virtual cluster; live %s", strings.Join(without, ", "), live)
	}
}
