package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// Two virtual clusters trade a fast node for four slow ones on a real Slurm, and get their own back when the trade gains
// no more. Meanwhile each holds all GPUs of its cells as they stand, and no job is lost.
func TestVirtualClustersTrade(t *testing.T) {
	t.Parallel()
	r := newRig(t, "forky", usual["forky"], testcluster.Options{Plugin: testcluster.PluginC, Accounts: tenants(1, 1),
		Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 2}, {Prefix: "k", Count: 4, Model: "k80", GPUs: 2}}})
	d := &cluster.Cells{Types: []cluster.CellType{{Name: "v100", Model: "v100"}, {Name: "v100-node", Child: "v100", Split: 2, Node: true},
		{Name: "k80", Model: "k80"}, {Name: "k80-node", Child: "k80", Split: 2, Node: true}}}
	for _, n := range []string{"k1", "k2", "k3", "k4", "v1"} {
		d.Tops = append(d.Tops, cluster.TopCell{Name: n, Type: map[byte]string{'k': "k80-node", 'v': "v100-node"}[n[0]], Nodes: []string{n}})
	}
	d.VCs = []cluster.VC{{Name: "nlp", Cells: []cluster.CellQuota{{Type: "v100-node", Cells: 1, Tradable: 1}}},
		{Name: "vision", Cells: []cluster.CellQuota{{Type: "k80-node", Cells: 4, Tradable: 4}}}}
	r.rules.Cells = d
	r.settings.Preset, r.settings.Divide, r.settings.DivideEvery, r.settings.Chooser = "gandiva-fair", "gandiva-fair", 10, "astraea"
	r.divide = engine.Divide
	jobs := map[string][]string{}
	submit := func(user, account, kind string, speedup float64) {
		for range 9 {
			jobs[kind] = append(jobs[kind], r.submit(user, sleeps(3600), "-A", account, "--gres=gpu:1",
				fmt.Sprintf("--comment=kind=%s,steps/s.k80=10,steps/s.v100=%g", kind, 10*speedup)))
		}
	}
	submit("alice", "nlp", "vae", 1.2)
	submit("bob", "vision", "lstm", 6)
	r.govern()
	r.heard()
	on := func(tenant, pool string) int {
		for _, s := range r.plan().Tenants {
			if s.Tenant == tenant && s.Pool == pool {
				return s.Holds.Ceil()
			}
		}
		return 0
	}
	holds := func(what string, trades, fast, slow int, fastTo, slowTo string) {
		r.until(what, 2*time.Minute, func() bool {
			return len(r.plan().State.CellTrades) == trades && on(fastTo, "v100") == fast && on(slowTo, "k80") == slow
		})
		if p := r.plan(); p.Cells == nil || p.Cells.Unsafe != nil {
			t.Fatalf("%s: the cells are not safe: %+v", what, p.Cells)
		}
	}
	holds("vision has the fast node, and nlp the slow ones", 1, 2, 8, "vision", "nlp")
	if got := r.plan().State.CellTrades[0]; got.Cells.FastCells != 1 || got.Cells.SlowCells != 4 || got.Price != 4 {
		t.Errorf("they traded %+v", got)
	}
	submit("alice", "nlp", "bert", 6)
	for _, id := range jobs["vae"] {
		if out, err := r.Exec(r.ctx(), "root", "scancel", id); err != nil {
			t.Fatal(out, err)
		}
	}
	holds("each has its own nodes again", 0, 2, 8, "nlp", "vision")
	r.halt()
	r.keepsAll(append(jobs["lstm"], jobs["bert"]...))
}
