package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

// Layout is the location of GPUs, if Slurm reports it.
type Layout struct {
	// Sockets is the number of sockets that have GPUs, by node; absent = unknown.
	Sockets map[string]int
	// Groups are the nodes that share the lowest switch (topology/tree) or a block
	// (topology/block), in Slurm's order; none = Slurm has no topology.
	Groups []Group
}

// Group is a switch or a block with its nodes.
type Group struct {
	Name  string
	Nodes []string
}

// Layout asks Slurm for it. A topology that cannot be read is only reported in the error.
func (c *Client) Layout(ctx context.Context) (Layout, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Layout{Sockets: map[string]int{}}
	if err := c.talk(ctx); err != nil {
		return out, err
	}
	_, err := c.list(ctx, c.path("nodes/"), "nodes", 0, func(r *reader) error {
		name, has := "", ""
		r.object(func(field string) {
			switch field {
			case "name":
				name = r.text()
			case "gres":
				has = r.text()
			default:
				r.skip()
			}
		})
		if n := sockets(has); n > 0 {
			out.Sockets[name] = n
		}
		return nil
	}, func() { clear(out.Sockets) })
	if err != nil {
		return out, err
	}
	out.Groups, err = topology(ctx, c.link)
	return out, err
}

// topology asks Slurm for its topology.
func topology(ctx context.Context, c *link) ([]Group, error) {
	text, err := c.scontrol(ctx, "show", "topology")
	if err != nil {
		return nil, err
	}
	return groups(text)
}

// switches are the switches or blocks of nodes that were asked for.
type switches struct {
	due bool
	of  map[string]string // "" = none
}

// lookSwitches completes nodes by their switches. It asks again if a node is new, or Slurm's configuration was read. Where Slurm does not tell, the last known switches hold, and
// the next look at the nodes tries again.
func lookSwitches(ctx context.Context, c *link, nodes []cluster.Node) {
	s := &c.seen.switches
	news := func(n cluster.Node) bool { _, known := s.of[n.Name]; return !known }
	if s.due || c.seen.configured && slices.ContainsFunc(nodes, news) {
		all, err := topology(ctx, c)
		if s.due = err != nil; s.due {
			c.notes.add("Slurm's topology could not be read, the last one is used: %v", err)
			c.seen.nodes = listing{}
		} else {
			s.of = make(map[string]string, len(nodes))
			for i := range nodes {
				s.of[nodes[i].Name] = ""
			}
			for _, g := range all {
				for _, name := range g.Nodes {
					s.of[name] = g.Name
				}
			}
		}
	}
	for i := range nodes {
		nodes[i].Switch = s.of[nodes[i].Name]
	}
}

// sockets counts the sockets in "gpu:v100:2(S:0),gpu:v100:2(S:1)" or "gpu:v100:4(S:0-1)"; 0 =
// none.
func sockets(has string) int {
	var all []int
	list, _ := gresList(has)
	for _, g := range list {
		if _, where, ok := strings.Cut(g.notes, "S:"); ok && g.name == "gpu" {
			if some, _, err := numberRanges(where, 64); err == nil {
				all = append(all, some...)
			}
		}
	}
	slices.Sort(all)
	return len(slices.Compact(all))
}

// groups reads scontrol's output: lines "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=v[1-4]" of leaf
// switches, or "BlockName=b1 BlockIndex=0 Nodes=v[1-4] BlockSize=4".
func groups(text string) ([]Group, error) {
	var out []Group
	for line := range strings.Lines(text) {
		words := map[string]string{}
		for _, w := range strings.Fields(line) {
			if key, value, ok := strings.Cut(w, "="); ok {
				words[key] = value
			}
		}
		name := words["BlockName"]
		if words["Level"] == "0" {
			name = words["SwitchName"]
		}
		if name == "" || words["Nodes"] == "" {
			continue
		}
		nodes, err := hostlist.Expand(words["Nodes"])
		if err != nil {
			return nil, fmt.Errorf("topology, %s: %w", name, err)
		}
		out = append(out, Group{name, nodes})
	}
	return out, nil
}
