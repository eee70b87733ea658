package explain_test

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

// A waiting job is told which users and levels of its own tenant go before it, and which of its nodes are not there.
func TestInsideATenant(t *testing.T) {
	for _, c := range []struct {
		reason cluster.Reason
		want   string
	}{
		{cluster.Reason{Code: cluster.ReasonTooBig, Note: "v7, v8"}, "list of required nodes (--nodelist) has v7, v8, and Slurm has no node with GPUs of that name"},
		{cluster.Reason{Code: cluster.ReasonBehind, Inside: &cluster.Inside{User: "bob"}}, "its tenant's user bob is served before its own: that user is further behind an equal part of what the tenant received"},
		{cluster.Reason{Code: cluster.ReasonCells, Inside: &cluster.Inside{User: "bob"}, Rank: 3}, "; it is number 3 in its tenant's queue"},
		{cluster.Reason{Code: cluster.ReasonCells, Inside: &cluster.Inside{Above: 10}}, "jobs of level 10 of its virtual cluster go before it: its level is 0"},
		{cluster.Reason{Code: cluster.ReasonCells, Inside: &cluster.Inside{Level: -5, Above: -1}}, "jobs of level -1 of its virtual cluster go before it: its level is -5"},
	} {
		if said := (explain.Words{}).Reason(c.reason); !strings.Contains(said, c.want) {
			t.Errorf("%+v: %q, want %q in it", c.reason, said, c.want)
		}
	}
	if said := (explain.Words{}).Reason(cluster.Reason{Code: cluster.ReasonCells}); strings.Contains(said, "level") || strings.Contains(said, "user") {
		t.Error(said)
	}
}
