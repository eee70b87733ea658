package simtest

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

func TestX(t *testing.T) {
	table, err := trace.OpenThroughputs("../trace/testdata/gavel/simulation_throughputs.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	x := Fleet{Tenants: 12, Commands: 2, Jobs: 4, Nodes: 2, Seed: 1, Speeds: experiment.SpeedsOf(table, trace.GavelReference)}
	for _, k := range []Knowledge{{Declared: true}, {Blind: true}, {}, {Reporting: 20}} {
		rate, last, err := x.Rate(k, 6*cluster.Day, 3*cluster.Day)
		t.Logf("%+v: %.2f %v, %d completions, %d usages", k, rate, err, len(last.State.Completions), len(last.State.Usages))
		for _, c := range last.State.Completions {
			t.Logf("%s %d %v %v %d", c.Kind, c.Gang, c.Models, c.Rates, len(c.Jobs))
		}
	}
}
