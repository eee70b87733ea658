package config_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
)

const proposed = `# cells.yaml: the virtual clusters of lab, as ` + "`fairlease cells init`" + ` proposed them from what Slurm
# reports. Edit it, then ` + "`fairlease cells check`" + ` it, and name it as cells.file, with preset: hived.

# The types of cells, from the largest down: one of type name is split into so many of type child. One
# type of each chain is the node; the last is the GPU, with its model. All cells of a type must be alike.
cellHierarchy:
  - {name: a100x8-rack, split: 2, child: a100x8-node}
  # Slurm names 2 sockets for the GPUs of these nodes; that they are evenly spread, in the
  # order of their numbers, is assumed: nvidia-smi topo -m tells.
  - {name: a100x8-node, split: 2, child: a100x8-socket, node: true}
  - {name: a100x8-socket, split: 4, child: a100x8-gpu}
  - {name: a100x8-gpu, model: a100}
  - {name: a100x4-node, split: 4, child: a100x4-gpu, node: true}
  - {name: a100x4-gpu, model: a100}
  - {name: k80-node, split: 2, child: k80-gpu, node: true}
  - {name: k80-gpu, model: k80}

# What there is, as Slurm's hostlists. Of a rack, the order of the nodes is that of its cells.
physicalCluster:
  - type: a100x8-rack
    nodes:
      - a[1-2]  # s1
      - a[9-10]  # s2
  - type: a100x4-node
    nodes: b[1-3]
  - type: k80-node
    nodes: k1
# Left out:
#   m1: 2 a100 and 2 k80; a cell has GPUs of one model
#   z1: in no managed partition

# What each virtual cluster has. Its name is that of a tenant. Proposed are whole nodes by the tenants'
# weights, and none is left: what you take away here becomes everybody's. Cells smaller than a node are kept
# as promised only as far as gres.conf (Links=, Cores=) makes Slurm choose GPUs so; whole nodes always are.
# To give a tenant a certain cell for ever: pinned: [{type: TYPE, node: NODE, gpu: NUMBER}]
vcAssignment:
  - vc: 'no'  # 49.5 % by weight
    cells:
      - {type: a100x8-node, number: 2}
      - {type: a100x4-node, number: 2}
      - {type: k80-node, number: 1}
  - vc: vision  # 49.5 % by weight
    cells:
      - {type: a100x8-node, number: 2}
      - {type: a100x4-node, number: 1}
# Too small a share for a whole node, so on what is lent: tiny (1.0 %)
`

func TestPropose(t *testing.T) {
	node := func(name string, gpus ...cluster.GPUs) cluster.Node {
		return cluster.Node{Name: name, GPUs: gpus, Partitions: []string{"gpu"}}
	}
	a8, a4, k2 := cluster.GPUs{Model: "a100", Count: 8}, cluster.GPUs{Model: "a100", Count: 4}, cluster.GPUs{Model: "k80", Count: 2}
	seen := &cluster.Observation{Cluster: "lab", Nodes: []cluster.Node{node("a1", a8), node("a10", a8), node("a2", a8), node("a9", a8), node("b1", a4), node("b2", a4), node("b3", cluster.GPUs{Model: "a100", Count: 3}),
		node("k1", k2), node("m1", cluster.GPUs{Model: "a100", Count: 2}, k2), {Name: "z1", GPUs: []cluster.GPUs{a8}}},
		Accounts: []cluster.Account{{Name: "root"}, {Name: "no", Parent: "root", Shares: 99}, {Name: "vision", Parent: "root", Shares: 99}, {Name: "tiny", Parent: "root", Shares: 2}, {Name: "zero", Parent: "root"}}}
	seen.Nodes[6].Drained = []int{2}
	sockets := map[string]int{"a1": 2, "a2": 2, "a9": 2, "a10": 2, "b1": 2, "b2": 2, "k1": 2}
	racks := []config.Rack{{Name: "s1", Nodes: []string{"a1", "a2", "b1"}}, {Name: "s2", Nodes: []string{"a9", "a10", "b2", "b3"}}}
	rules := config.Default().Rules()
	text, err := config.ProposeCells(seen, &rules, sockets, racks)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(proposed, text); d != "" {
		t.Error(d)
	}
	rules.Partitions = []string{"cpu"}
	if _, err := config.ProposeCells(seen, &rules, nil, nil); err == nil || err.Error() != "no node with GPUs is in a managed partition (cpu)" {
		t.Error(err)
	}
	rules = config.Default().Rules()
	seen.Accounts = seen.Accounts[:1]
	if _, err := config.ProposeCells(seen, &rules, nil, nil); err == nil {
		t.Error("cells for nobody")
	}
}

// The draft is usable as it is, whatever Slurm reports.
func TestProposalsFit(t *testing.T) {
	models := []string{"a100", "nvidia_h100_80gb_hbm3", "gpu", "1080ti", "on", "a100x8"}
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		for range 3 {
			seen := &cluster.Observation{Cluster: "c", Accounts: []cluster.Account{{Name: "root"}}}
			sockets := map[string]int{}
			var racks []config.Rack
			for g := range 1 + rng.IntN(6) {
				gpus, model, n, s := 1+rng.IntN(16), models[rng.IntN(len(models))], 1+rng.IntN(20), rng.IntN(4)
				for i := range n {
					name := fmt.Sprintf("n%d-%d", g, i)
					seen.Nodes = append(seen.Nodes, cluster.Node{Name: name, GPUs: []cluster.GPUs{{Model: model, Count: gpus}}, Partitions: []string{"gpu"}})
					sockets[name] = s
					if size := 1 + g%4; i%size == 0 {
						racks = append(racks, config.Rack{Name: fmt.Sprint("r", len(racks))})
					}
					racks[len(racks)-1].Nodes = append(racks[len(racks)-1].Nodes, name)
				}
			}
			for i := range 1 + rng.IntN(20) {
				name := []string{"nlp", "on", "42", "a b", "x'y", "vision: old", "#1"}[i%7] + strings.Repeat("+", i/7)
				seen.Accounts = append(seen.Accounts, cluster.Account{Name: name, Parent: "root", Shares: int64(1 + rng.IntN(100))})
			}
			rules := config.Default().Rules()
			text, err := config.ProposeCells(seen, &rules, sockets, racks)
			if err != nil {
				t.Fatal(err)
			}
			f, err := config.ParseCells("c.yaml", []byte(text))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			wrong, _ := f.Against(seen, &rules)
			if len(wrong) > 0 {
				t.Fatalf("%v\n%s", wrong, text)
			}
			for _, s := range f.Supply {
				if s.There != s.Needed && s.GPUs > 1 && strings.HasSuffix(s.Type, "-node") {
					t.Fatalf("nodes are left: %+v\n%s", s, text)
				}
			}
		}
	})
}
