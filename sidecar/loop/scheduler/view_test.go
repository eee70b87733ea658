package scheduler_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop/scheduler"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A scheduler sees its own virtual cluster: its cells, its jobs that run or could start, and how much of each node others hold.
func TestViews(t *testing.T) {
	set := simtest.Product()
	set.Preset, set.Chooser, set.Levels = "hived", "astraea", []cluster.QOSLevel{{QOS: "high", Level: 3}}
	w := simtest.New(t, set, simtest.Nodes("n", "a100", 3, 4), "a", "b")
	w.Rules.Cells = &cluster.Cells{Types: []cluster.CellType{{Name: "gpu", Model: "a100"}, {Name: "node", Child: "gpu", Split: 4, Node: true}},
		VCs: []cluster.VC{{Name: "a", Cells: []cluster.CellQuota{{Type: "node", Cells: 1}}, Scheduler: &cluster.VCScheduler{Command: []string{"/bin/x"}, Deadline: cluster.Second}},
			{Name: "b", Cells: []cluster.CellQuota{{Type: "node", Cells: 2}}}}}
	for _, name := range []string{"n01", "n02", "n03"} {
		w.Rules.Cells.Tops = append(w.Rules.Cells.Tops, cluster.TopCell{Name: name, Type: "node", Nodes: []string{name}})
	}
	var views []scheduler.View
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		p := engine.Decide(s)
		views = scheduler.Views(&s, &p)
		return p
	}
	w.Submit("b", 1, 4, cluster.Day)
	runs := w.Submit("a", 1, 3, cluster.Day)[0]
	w.Run(cluster.Minute)
	w.Submit("b", 1, 2, cluster.Day)
	w.Run(2 * cluster.Minute)
	waits := w.Virtual.Submit(sim.Work{User: "u", Account: "a", Partition: "gpu", QOS: "high", Request: simtest.Gang(4), Runs: cluster.Hour})
	held := w.Submit("a", 1, 1, cluster.Hour)[0]
	w.Hold(held, true)
	w.Run(10 * cluster.Second)
	if len(views) != 1 || views[0].VC != "a" || views[0].Version != 1 || views[0].Term != 900 {
		t.Fatalf("%+v", views)
	}
	v := views[0]
	nodes := map[[3]int]int{}
	for _, n := range v.Nodes {
		nodes[[3]int{n.GPUs, n.Own.Ceil(), n.Taken.Ceil()}]++
	}
	if d := cmp.Diff(map[[3]int]int{{4, 3, 0}: 1, {4, 0, 4}: 1, {4, 0, 2}: 1}, nodes); d != "" {
		t.Error(d)
	}
	if len(v.Cells) == 0 || slices.ContainsFunc(v.Cells, func(c cluster.CellView) bool { return c.VC != "a" }) {
		t.Errorf("its cells are %+v", v.Cells)
	}
	if len(v.Jobs) != 2 {
		t.Fatalf("its jobs are %+v", v.Jobs)
	}
	one, two := v.Jobs[0], v.Jobs[1]
	if one.ID != runs.String() || one.GPUs != cluster.CountOf(3) || one.Lease != cluster.Guaranteed || len(one.On) != 1 || one.OnModel != "a100" || one.Ends <= v.Now || one.Received < 3*170 || one.Ran < 170 || one.Waited > 20 {
		t.Errorf("the job that runs: %+v", one)
	}
	if two.ID != waits.String() || two.Level != 3 || two.User != "u" || two.Lease != "" || two.Received != 0 || two.Submitted < v.Now-20 {
		t.Errorf("the job that waits: %+v", two)
	}
}

// The example puts jobs of higher levels first, then jobs of users who received less.
func TestTheExample(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("the example needs python3, which make deps installs")
	}
	example, err := filepath.Abs("../../../etc/cells/order.py")
	if err != nil {
		t.Fatal(err)
	}
	v := view()
	v.Jobs = []scheduler.Job{{Job: 1, User: "much", Received: 100}, {Job: 2, User: "little", Limit: 900, Ran: 100}, {Job: 3, User: "little", Limit: 800}, {Job: 4, User: "much", Level: 1}, {Job: 5, User: "little"}}
	turns, said, err := scheduler.Ask(context.Background(), &cluster.VCScheduler{Command: []string{"/bin/sh", "-c", "exec " + python + " " + example}, Deadline: 20 * cluster.Second}, v)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	text, _ := json.Marshal(turns)
	if want := `[{"job":4},{"job":2},{"job":3},{"job":5},{"job":1}]`; string(text) != want {
		t.Errorf("it answers %s, want %s", text, want)
	}
}
