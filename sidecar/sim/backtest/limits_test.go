package backtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/store"
)

// A backtest holds tenants to the limits that their accounts, their users, and all together, have at the window's end. Limits below a job that
// was there are newer than it.
func TestLimitsOfAccounts(t *testing.T) {
	var p store.Past
	weights := map[string]int64{"a": 1, "b": 1}
	load := []trace.Job{{Tenant: "a", User: "v", GPUs: 4}, {Tenant: "b", User: "u", GPUs: 1}}
	if got := limits(&p, weights, load); !got.Empty() {
		t.Errorf("%+v, though no limit is known", got)
	}
	gpus := func(n int64) cluster.Cap { return cluster.Cap{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: n} }
	p.End.Snapshot.Admission = &cluster.Admission{Limits: cluster.Limits{Associations: []cluster.Association{
		{Account: "a", Caps: []cluster.Cap{{Rule: cluster.GrpJobs, Max: 3}, gpus(3)}},
		{Account: "b", Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "cpu", Max: 9}, gpus(3)}}, {Account: "b", User: "u", Caps: []cluster.Cap{gpus(1), {Rule: cluster.MaxJobs, Max: 2}, {Rule: cluster.MaxWall, Max: 9}}},
		{Account: "a", User: "v", Caps: []cluster.Cap{{Rule: cluster.MaxTRESPerJob, TRES: "gres/gpu", Max: 2}}}, {Account: "a", User: "v", Partition: "gpu", Caps: []cluster.Cap{gpus(1)}},
		{Account: "below", Caps: []cluster.Cap{gpus(1)}}, {Account: "root", Caps: []cluster.Cap{gpus(6)}}}}}
	want := []cluster.Association{{Account: "a", Caps: []cluster.Cap{{Rule: cluster.GrpJobs, Max: 3}}}, {Account: "b", Caps: []cluster.Cap{gpus(3)}},
		{Account: "b", User: "u", Caps: []cluster.Cap{gpus(1), {Rule: cluster.MaxJobs, Max: 2}}}, {Account: "root", Caps: []cluster.Cap{gpus(6)}}}
	if d := cmp.Diff(want, limits(&p, weights, load).Limits.Associations); d != "" {
		t.Error(d)
	}
}
