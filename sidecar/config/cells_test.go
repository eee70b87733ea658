package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
)

const types = `cellHierarchy:
  - {name: rack, split: 4, child: node}
  - {name: node, split: 2, child: socket, node: true}
  - {name: socket, split: 4, child: gpu}
  - {name: gpu, model: a100}
`

const racks = `physicalCluster:
  - type: rack
    nodes: n[01-08]
  - type: node
    nodes: [single, "s[2-3]"]
`

const vcs = `vcAssignment:
  - vc: nlp
    cells:
      - {type: rack, number: 1}
      - {type: node, number: 2}
  - vc: vision
    pinned:
      - {type: socket, node: n08, gpu: 4}
`

// deep gives a chain of 15 types from t1 down to a socket.
func deep() string {
	var b strings.Builder
	for i := 1; i < 15; i++ {
		fmt.Fprintf(&b, "  - {name: t%d, split: 1, child: t%d}\n", i, i+1)
	}
	return b.String() + "  - {name: t15, split: 1, child: socket}\n"
}

// A file in the paper's terms is translated into the engine's.
func TestCells(t *testing.T) {
	f, err := config.ParseCells("c.yaml", []byte(types+racks+vcs))
	if err != nil {
		t.Fatal(err)
	}
	want := &cluster.Cells{
		Types: []cluster.CellType{{Name: "rack", Child: "node", Split: 4}, {Name: "node", Child: "socket", Split: 2, Node: true},
			{Name: "socket", Child: "gpu", Split: 4}, {Name: "gpu", Model: "a100"}},
		Tops: []cluster.TopCell{{Name: "rack@n01", Type: "rack", Nodes: []string{"n01", "n02", "n03", "n04"}},
			{Name: "rack@n05", Type: "rack", Nodes: []string{"n05", "n06", "n07", "n08"}},
			{Name: "single", Type: "node", Nodes: []string{"single"}}, {Name: "s2", Type: "node", Nodes: []string{"s2"}}, {Name: "s3", Type: "node", Nodes: []string{"s3"}}},
		VCs: []cluster.VC{{Name: "nlp", Cells: []cluster.CellQuota{{Type: "rack", Cells: 1}, {Type: "node", Cells: 2}}},
			{Name: "vision", Pins: []cluster.CellPin{{Type: "socket", Node: "n08", GPU: 4}}}},
	}
	if d := cmp.Diff(want, f.Cells); d != "" {
		t.Error(d)
	}
	supply := []cells.Supply{{Chain: "rack", Type: "rack", GPUs: 32, Cells: 2, Needed: 1, There: 1}, {Chain: "rack", Type: "node", GPUs: 8, Cells: 11, Needed: 2, There: 6},
		{Chain: "rack", Type: "socket", GPUs: 4, Cells: 22, Pinned: 1, There: 9}, {Chain: "rack", Type: "gpu", GPUs: 1, Cells: 88, There: 36}}
	if d := cmp.Diff(supply, f.Supply); d != "" {
		t.Error(d)
	}
}

// A virtual cluster's own scheduler has two seconds for an answer, or as long as the file says. One that cannot be run is named.
func TestSchedulersOfCells(t *testing.T) {
	text := types + racks + strings.NewReplacer("vc: nlp\n", "vc: nlp\n    scheduler: /bin/sh -c x\n", "vc: vision\n",
		"vc: vision\n    scheduler: [/nowhere/order, \"a b\"]\n    scheduler_deadline: 500ms\n").Replace(vcs)
	f, err := config.ParseCells("c.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []cluster.VCScheduler{{Command: []string{"/bin/sh", "-c", "x"}, Deadline: 2 * cluster.Second}, {Command: []string{"/nowhere/order", "a b"}, Deadline: cluster.Second / 2}} {
		if d := cmp.Diff(&want, f.Cells.VCs[i].Scheduler); d != "" {
			t.Error(d)
		}
	}
	want := "c.yaml:18: vcAssignment[1].scheduler: cannot be run, so the built-in order decides for vision: lstat /nowhere: no such file or directory; install the program, or take the scheduler out"
	if got := f.Untrusted(); got.Error() != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// All cells of a virtual cluster are tradable, or some of a type.
func TestTradableCells(t *testing.T) {
	text := types + racks + strings.Replace(strings.Replace(vcs, "number: 2}", "number: 2, tradable: 1}", 1), "  - vc: vision\n",
		"  - vc: vision\n    tradable: all\n    cells: [{type: node, number: 3}]\n", 1)
	f, err := config.ParseCells("c.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]cluster.CellQuota{{{Type: "rack", Cells: 1}, {Type: "node", Cells: 2, Tradable: 1}}, {{Type: "node", Cells: 3, Tradable: 3}}}
	if d := cmp.Diff(want, [][]cluster.CellQuota{f.Cells.VCs[0].Cells, f.Cells.VCs[1].Cells}); d != "" {
		t.Error(d)
	}
}

// Each mistake is reported with its line and what to do; none hides another.
func TestCellProblems(t *testing.T) {
	whole := types + racks + vcs
	for _, c := range []struct{ name, old, new, want string }{
		{"empty", whole, "", "c.yaml: cellHierarchy: names no types of cells; etc/cells has examples\nc.yaml: physicalCluster: names no racks or nodes; etc/cells has examples\n" +
			"c.yaml: vcAssignment: names no virtual clusters; etc/cells has examples"},
		{"no yaml", whole, "cellHierarchy: {\n", "c.yaml:1: did not find expected node content; check the indentation (blanks, no tabs) and the colons near that line"},
		{"no keys", whole, "rack\n", "c.yaml:1: keys are expected here, as in `cellHierarchy: value`"},
		{"unknown section", "vcAssignment", "vcAssignmnet", "c.yaml: vcAssignment: names no virtual clusters; etc/cells has examples\nc.yaml:11: vcAssignmnet: unknown key; did you mean vcAssignment?"},
		{"misspelled key", "split: 2", "splits: 2", "c.yaml:3: cellHierarchy[1].splits: unknown key; did you mean cellHierarchy[1].split?"},
		{"misplaced key", "{type: rack, number: 1}", "{type: rack, nodes: 1, number: 1}", "c.yaml:14: vcAssignment[0].cells[0].nodes: unknown key; did you mean physicalCluster.nodes?"},
		{"no number", "number: 1", "number: many", `c.yaml:14: vcAssignment[0].cells[0].number: "many" cannot be used here; write a whole number`},
		{"no bool", "node: true", "node: perhaps", `c.yaml:3: cellHierarchy[1].node: "perhaps" cannot be used here; write true or false`},
		{"one for a list", "\n    cells:\n", "\n    cells: 4\n    cells:\n", "c.yaml:13: vcAssignment[0].cells: a list is expected here, as in [a, b]\n" +
			"c.yaml:14: vcAssignment[0].cells: stands here for the second time, first in line 13; keep one"},
		{"keys for nodes", "nodes: n[01-08]", "nodes: {a: 1}", "c.yaml:8: physicalCluster[0].nodes: a list is expected here, as in [a, b]"},
		{"too many tradable", "number: 2}", "number: 2, tradable: 3}", "c.yaml:15: vcAssignment[0].cells[1].tradable: must be 0 to 2, the number of cells, got 3"},
		{"tradable", "  - vc: vision\n", "  - vc: vision\n    tradable: some\n", `c.yaml:17: vcAssignment[1].tradable: "some" is not known; write all, or the number beside each type under cells`},
		{"zero split", "split: 2", "split: 0", `c.yaml:3: cellHierarchy[1].split: "node" is split into 0 cells; write 1 or more`},
		{"negative split", "split: 2", "split: -2", `c.yaml:3: cellHierarchy[1].split: "node" is split into -2 cells; write 1 or more`},
		{"no split", "split: 2, ", "", `c.yaml:3: cellHierarchy[1]: "node" is split into 0 cells; write 1 or more`},
		{"split of nothing", "{name: gpu, model", "{name: gpu, split: 2, model", `c.yaml:5: cellHierarchy[3]: splits into cells of no type; write child: and their type, or remove split:`},
		{"model of a node", "node: true", "node: true, model: a100", `c.yaml:3: cellHierarchy[1]: has a model, though it is no GPU; write the model where there is no child:`},
		{"no model", ", model: a100", "", `c.yaml:5: cellHierarchy[3]: "gpu" is a GPU, for it has no child, but says no model; write model: as Slurm calls it in Gres=gpu:MODEL:N, or child: and split:`},
		{"type without name", "name: socket, ", "", `c.yaml:3: cellHierarchy[1].child: "socket" is no type of cellHierarchy; there are rack, node, , gpu` + "\nc.yaml:4: cellHierarchy[2]: has no name; write name:"},
		{"unknown child", "child: socket", "child: sokcet", `c.yaml:3: cellHierarchy[1].child: "sokcet" is no type of cellHierarchy; did you mean socket?`},
		{"type twice", "name: gpu,", "name: node,", `c.yaml:4: cellHierarchy[2].child: "gpu" is no type of cellHierarchy; there are rack, node, socket, node` +
			"\n" + `c.yaml:5: cellHierarchy[3]: "node" stands here for the second time, first in line 3; put both together, or rename one`},
		{"cycle", "{name: gpu, model: a100}", "{name: gpu, split: 2, child: node}", `c.yaml:3: cellHierarchy[1]: contains itself: node, then socket, then gpu, then node; what is split further and further must end with a GPU`},
		{"no node", ", node: true", "", "c.yaml:2: cellHierarchy[0]: chain rack has 0 levels with node: true, and needs 1"},
		{"two nodes", "child: gpu", "child: gpu, node: true", "c.yaml:2: cellHierarchy[0]: chain rack has 2 levels with node: true, and needs 1"},
		{"large node", "split: 4, child: gpu", "split: 40, child: gpu", `c.yaml:3: cellHierarchy[1]: a cell of type "node" has 80 GPUs; 64 is the most of a node or less`},
		{"many types", "  - {name: gpu,", strings.Repeat("  - {name: x, model: m}\n", 300) + "  - {name: gpu,", "c.yaml:1: cellHierarchy: names 304 types of cells; 256 is the most"},
		{"deep", "split: 2, child: socket, node: true}\n", "split: 2, child: t1, node: true}\n" + deep(), "c.yaml:2: cellHierarchy[0]: chain rack has 19 levels; 16 is the most"},
		{"unknown type of rack", "type: rack\n", "type: racks\n", `c.yaml:7: physicalCluster[0].type: "racks" is no type of cellHierarchy; did you mean rack?`},
		{"rack without type", "type: rack\n    ", "", `c.yaml:7: physicalCluster[0]: says no type; write type: and one of cellHierarchy`},
		{"unknown chain", "type: rack\n", "type: rack\n    chain: row\n", `c.yaml:7: physicalCluster[0].type: "rack" is no type of cellHierarchy in chain row; there are rack, node, socket, gpu`},
		{"rack without nodes", "\n    nodes: n[01-08]", "", "c.yaml:7: physicalCluster[0]: names no nodes; write nodes: gpu[001-016]"},
		{"uneven rack", "n[01-08]", "n[01-09]", `c.yaml:8: physicalCluster[0].nodes: 9 nodes are no whole number of cells of type "rack", which have 4 each; add nodes, or list the rest as cells of a smaller type`},
		{"no range", "n[01-08]", "n[08-01]", `c.yaml:8: physicalCluster[0].nodes: node list "n[08-01]": "08-01" is no range of nodes; write it like gpu[001-016],v1`},
		{"too many nodes", "n[01-08]", "n[0-999999999]", `c.yaml:8: physicalCluster[0].nodes: node list "n[0-999999999]": "0-999999999" is too long a range; write it like gpu[001-016],v1`},
		{"too many lists", "n[01-08]", "n[0-199999]", `c.yaml:10: physicalCluster[1].nodes: the file names more than 200000 nodes; write it like gpu[001-016],v1`},
		{"part of a node", "type: node\n", "type: socket\n", `c.yaml:9: physicalCluster[1].type: "socket" is smaller than a node; list whole nodes here, and part of one under pinned`},
		{"one name for two", "type: rack\n", "type: rack\n    name: r1\n", `c.yaml:8: physicalCluster[0].name: names one cell, but the 8 nodes are several of type rack; remove it, or list each for itself`},
		{"name twice", "nodes: n[01-08]\n", "nodes: n[01-08]\n  - {name: s2, type: node, nodes: x}\n", `c.yaml:10: physicalCluster[2]: "s2" stands here for the second time, first in line 9; put both together, or rename one`},
		{"overlap", "s[2-3]", "n[02-04]", "c.yaml:10: physicalCluster[1].nodes: overlaps: n[02-04] in line 8 above, or twice here; a node is in one cell"},
		{"overlap with itself", "n[01-08]", "n[01-07],n01", "c.yaml:8: physicalCluster[0].nodes: overlaps: n01 is above, or twice here; a node is in one cell"},
		{"no vc", "vc: vision\n    ", "", "c.yaml:16: vcAssignment[1]: has no name; write vc: and the account of its tenant"},
		{"vc twice", "vc: vision", "vc: nlp", `c.yaml:16: vcAssignment[1]: "nlp" stands here for the second time, first in line 12; put both together, or rename one`},
		{"vc without cells", "vc: vision\n    pinned:\n      - {type: socket, node: n08, gpu: 4}\n", "vc: vision\n", `c.yaml:16: vcAssignment[1]: VC "vision" has no cells; write cells: or pinned:, or remove it`},
		{"unknown chooser", "vc: vision\n", "vc: vision\n    chooser: best\n", `c.yaml:17: vcAssignment[1].chooser: "best" is not known; write one of astraea, fifo, tiresias-l, gandiva-fair`},
		{"level out of range", "vc: vision\n", "vc: vision\n    levels: {urgent: 1001}\n", `c.yaml:17: vcAssignment[1].levels: urgent: a level must be -1000 to 1000, got 1001`},
		{"scheduler somewhere", "vc: vision\n", "vc: vision\n    scheduler: bin/order -v\n", `c.yaml:17: vcAssignment[1].scheduler: "bin/order" is no absolute path; write it from / on`},
		{"deadline too long", "vc: vision\n", "vc: vision\n    scheduler: /bin/order\n    scheduler_deadline: 2m\n", `c.yaml:18: vcAssignment[1].scheduler_deadline: must be 100ms to 1m, got 2m`},
		{"deadline of nothing", "vc: vision\n", "vc: vision\n    scheduler_deadline: 2s\n", `c.yaml:17: vcAssignment[1].scheduler_deadline: there is no scheduler; add one, or remove this`},
		{"no cells", "number: 2", "number: 0", "c.yaml:15: vcAssignment[0].cells[1].number: 0 is no number of cells; write 1 or more"},
		{"cells of no type", "type: node, number", "type: nod, number", `c.yaml:15: vcAssignment[0].cells[1].type: "nod" is no type of cellHierarchy; did you mean node?`},
		{"ambiguous chain", "  - {name: gpu,", "  - {name: pod, split: 2, child: node}\n  - {name: gpu,", `c.yaml:10: physicalCluster[1].type: "node" is in several chains (rack, pod); say which, as in chain: rack` + "\n" +
			`c.yaml:16: vcAssignment[0].cells[1].type: "node" is in several chains (rack, pod); say which, as in chain: rack`},
		{"infeasible", "{type: rack, number: 1}", "{type: rack, number: 3}", `c.yaml:14: vcAssignment[0].cells[0]: 3 cells of type "rack" are needed (nlp 3 in line 14), but 1 are there once larger and pinned cells are taken: 2 too many; reserve fewer or smaller ones, or add nodes`},
		{"infeasible below", "vc: vision\n", "vc: vision\n    cells: [{type: node, number: 5}]\n", `c.yaml:15: vcAssignment[0].cells[1]: 7 cells of type "node" are needed (nlp 2 in line 15, vision 5 in line 17), but 6 are there once larger and pinned cells are taken: 1 too many; reserve fewer or smaller ones, or add nodes`},
		{"pin nowhere", "node: n08", "node: n09", `c.yaml:18: vcAssignment[1].pinned[0].node: node "n09" is in no cell of physicalCluster; add it there`},
		{"pin of no type", "type: socket, node", "type: sock, node", `c.yaml:18: vcAssignment[1].pinned[0].type: "sock" is no type of cellHierarchy; there are rack, node, socket, gpu`},
		{"pin of no GPU", "gpu: 4", "gpu: 8", "c.yaml:18: vcAssignment[1].pinned[0].gpu: GPU 8: node n08 has 8, numbered from 0"},
		{"pin twice", "    pinned:\n", "    pinned:\n      - {type: gpu, node: n08, gpu: 7}\n", "c.yaml:19: vcAssignment[1].pinned[1]: the cell on node n08 overlaps another that is pinned"},
		{"many at once", whole, strings.NewReplacer("split: 4, child: gpu", "split: 0, child: gpu", "s[2-3]", "n01", "number: 2", "number: 0", "vc: vision", "vcs: vision").Replace(whole),
			`c.yaml:4: cellHierarchy[2].split: "socket" is split into 0 cells; write 1 or more` + "\n" +
				"c.yaml:10: physicalCluster[1].nodes: overlaps: n01 in line 8 above, or twice here; a node is in one cell\n" +
				"c.yaml:15: vcAssignment[0].cells[1].number: 0 is no number of cells; write 1 or more\n" +
				"c.yaml:16: vcAssignment[1].vcs: unknown key; did you mean vcAssignment[1].vc?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(whole, c.old) {
				t.Fatalf("%q is not in the file", c.old)
			}
			_, err := config.ParseCells("c.yaml", []byte(strings.Replace(whole, c.old, c.new, 1)))
			var problems config.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("was taken (%v)", err)
			}
			if d := cmp.Diff(c.want, err.Error()); d != "" {
				t.Error(d)
			}
		})
	}
}

// The examples are usable as they are.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../etc/cells/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		f, err := config.LoadCells(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(f.Supply) == 0 || !slices.ContainsFunc(f.Supply, func(s cells.Supply) bool { return s.Needed > 0 }) {
			t.Errorf("%s promises nothing", file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if len(line) > 121 {
				t.Errorf("%s: too long a line: %s", file, line)
			}
		}
	}
}

// Any text is refused with a place and a reason, or makes cells.
func FuzzCells(f *testing.F) {
	f.Add([]byte(types + racks + vcs))
	f.Add([]byte("cellHierarchy: &a [{name: x, split: 2, child: x}]\nphysicalCluster: *a\nvcAssignment: [{vc: a, pinned: [{}]}]\n"))
	f.Add([]byte("cellHierarchy: [{name: g, model: m, node: true}]\nphysicalCluster: [{type: g, nodes: 'n[0-3]'}]\nvcAssignment: [{vc: a, cells: [{type: g, number: 5}]}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := config.ParseCells("c.yaml", text)
		if err == nil {
			if c.Cells == nil || len(c.Supply) == 0 {
				t.Fatal("took nothing")
			}
			if _, err := cells.New(*c.Cells); err != nil {
				t.Fatal(err)
			}
			return
		}
		var problems config.Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("refused with %v", err)
		}
		for _, p := range problems {
			if p.Text == "" || !strings.HasPrefix(p.Place, "c.yaml") {
				t.Fatalf("refused with %+v", p)
			}
		}
		_ = fmt.Sprint(err)
	})
}

// The file is compared with Slurm.
func TestAgainst(t *testing.T) {
	seen := func() *cluster.Observation {
		s := &cluster.Observation{Accounts: []cluster.Account{{Name: "root"}, {Name: "nlp", Parent: "root", Shares: 1}, {Name: "vision", Parent: "root", Shares: 1}, {Name: "bert", Parent: "nlp", Shares: 1}}}
		for _, n := range []string{"n01", "n02", "n03", "n04", "n05", "n06", "n07", "n08", "s2", "s3", "single"} {
			s.Nodes = append(s.Nodes, cluster.Node{Name: n, GPUs: []cluster.GPUs{{Model: "a100", Count: 8}}, Partitions: []string{"gpu"}})
		}
		return s
	}
	for _, c := range []struct {
		name, old, new string
		change         func(*cluster.Observation)
		wrong          string
		remarks        []string
	}{
		{name: "fits"},
		{name: "drained GPUs come back", change: func(s *cluster.Observation) { s.Nodes[2].GPUs[0].Count, s.Nodes[2].Drained = 6, []int{1, 5} }},
		{name: "a node that is down", change: func(s *cluster.Observation) { s.Nodes[2].Bad = "down" }},
		{name: "nodes that are not there", change: func(s *cluster.Observation) { s.Nodes = append(s.Nodes[:2], s.Nodes[5:]...) },
			wrong: "c.yaml:8: physicalCluster[0].nodes: Slurm has no node with GPUs named n[03-05]; correct the list, or add the node to slurm.conf"},
		{name: "fewer GPUs, another model, several", change: func(s *cluster.Observation) {
			s.Nodes[0].GPUs[0].Count, s.Nodes[1].GPUs[0].Count = 4, 4
			s.Nodes[3].GPUs[0].Model = "h100"
			s.Nodes[9].GPUs = append(s.Nodes[9].GPUs, cluster.GPUs{Model: "t4", Count: 1})
		}, wrong: `c.yaml:8: physicalCluster[0].nodes: n[01-02]: Slurm has 4 a100, type "node" has 8 a100; correct cellHierarchy, or list the node under another type` + "\n" +
			`c.yaml:8: physicalCluster[0].nodes: n04: Slurm has 8 h100, type "node" has 8 a100; correct cellHierarchy, or list the node under another type` + "\n" +
			`c.yaml:10: physicalCluster[1].nodes: s3: Slurm has 8 a100 and 1 t4, type "node" has 8 a100; correct cellHierarchy, or list the node under another type`},
		{name: "unknown tenant", old: "vc: vision", new: "vc: visoin", wrong: `c.yaml:16: vcAssignment[1].vc: "visoin" is no tenant: Slurm has no such account below root; did you mean vision?`,
			remarks: []string{"vision: without a virtual cluster; live on the 36 GPUs of cells that nobody has reserved, and on what is lent"}},
		{name: "stranger", old: "vc: vision", new: "vc: zzzzzz", wrong: `c.yaml:16: vcAssignment[1].vc: "zzzzzz" is no tenant: Slurm has no such account below root; the tenants are nlp, vision`,
			remarks: []string{"vision: without a virtual cluster; live on the 36 GPUs of cells that nobody has reserved, and on what is lent"}},
		{name: "account below a tenant", old: "vc: nlp", new: "vc: bert", wrong: `c.yaml:12: vcAssignment[0].vc: account "bert" belongs to tenant "nlp" (tenants.level is 1); give its cells to that`,
			remarks: []string{"nlp: without a virtual cluster; live on the 36 GPUs of cells that nobody has reserved, and on what is lent"}},
		{name: "nothing is left", old: "number: 2", new: "number: 6", change: func(s *cluster.Observation) {
			s.Accounts = append(s.Accounts, cluster.Account{Name: "zoo", Parent: "root", Shares: 1})
		}, remarks: []string{"zoo: without a virtual cluster; live on the 4 GPUs of cells that nobody has reserved, and on what is lent"}},
		{name: "really nothing", old: "- {type: node, number: 2}", new: "- {type: node, number: 6}\n      - {type: gpu, number: 4}", change: func(s *cluster.Observation) {
			s.Accounts = append(s.Accounts, cluster.Account{Name: "zoo", Parent: "root", Shares: 1})
		}, remarks: []string{"zoo: without a virtual cluster; live on what is lent only, opportunistic, for all cells are reserved"}},
		{name: "partitions", change: func(s *cluster.Observation) {
			s.Nodes[9].Partitions, s.Nodes[10].Partitions = nil, []string{"cpu"}
			s.Nodes = append(s.Nodes, cluster.Node{Name: "x1", GPUs: []cluster.GPUs{{Model: "k80", Count: 4}}, Partitions: []string{"gpu"}},
				cluster.Node{Name: "y1", GPUs: []cluster.GPUs{{Model: "k80", Count: 4}}, Partitions: []string{"other"}})
		}, remarks: []string{"single,s3: in no managed partition (gpu), so no job of a virtual cluster gets there; add a partition to the configuration, or leave out the nodes",
			"x1 (4 GPUs): in a managed partition and in no cell; no virtual cluster has them"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := config.ParseCells("c.yaml", []byte(strings.Replace(types+racks+vcs, c.old, c.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			s, rules := seen(), config.Default().Rules()
			if c.change != nil {
				c.change(s)
			}
			wrong, remarks := f.Against(s, &rules)
			if d := cmp.Diff(c.wrong, wrong.Error()); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.remarks, remarks); d != "" {
				t.Error(d)
			}
		})
	}
}
