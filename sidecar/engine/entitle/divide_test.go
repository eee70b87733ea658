package entitle

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

const gpu = cluster.WholeGPU

// due gives what tenants are due on a snapshot, without a policy.
func due(s *cluster.Snapshot, own *round.Owned) (*Due, *round.Facts) {
	in, leases := roundtest.Facts(s)
	found, d := new(eligible.Nodes).Find(in, leases, nil), new(Due)
	learnt := speeds.Learn(in, found, new(profile.Memory))
	d.Divide(in, found, learnt, d.Open(in, found, learnt, cluster.Ledger{}), own, nil)
	return d, in
}

// Entitlements are by weight of the GPUs that tenants can share, whoever wants them (ASTRAEA eq. 6).
func TestWhatTenantsAreEntitledTo(t *testing.T) {
	two := func() *cluster.Snapshot {
		return roundtest.Snapshot(roundtest.Job(7, "bio", 2, cluster.Waiting), roundtest.On(roundtest.Job(8, "nlp", 3, cluster.Running), "a", "v100", 3))
	}
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		own    *round.Owned
		want   []cluster.MicroGPU // bio in k80, in v100, nlp in k80, in v100
	}{
		{"equal weights", func(*cluster.Snapshot) {}, nil, []cluster.MicroGPU{2 * gpu, 2 * gpu, 2 * gpu, 2 * gpu}},
		{"three to one", func(s *cluster.Snapshot) { s.Tenants[0].Weight = 3 }, nil, []cluster.MicroGPU{3 * gpu, 3 * gpu, gpu, gpu}},
		{"a node that is down", func(s *cluster.Snapshot) { s.Nodes[1].Bad = "down" }, nil, []cluster.MicroGPU{0, 2 * gpu, 0, 2 * gpu}},
		{"GPUs of a job of no tenant", func(s *cluster.Snapshot) { s.Cases[1].Record.Tenant = "" }, nil, []cluster.MicroGPU{2 * gpu, gpu / 2, 2 * gpu, gpu / 2}},
		{"a budget that is used up", func(s *cluster.Snapshot) { s.Tenants[0].Budget.Since = roundtest.Now }, nil, []cluster.MicroGPU{0, 0, 4 * gpu, 4 * gpu}},
		{"budgets that are all used up", func(s *cluster.Snapshot) { s.Tenants[0].Budget.Since, s.Tenants[1].Budget.Since = 1, 1 }, nil, []cluster.MicroGPU{2 * gpu, 2 * gpu, 2 * gpu, 2 * gpu}},
		{"two v100 in nlp's cells", func(*cluster.Snapshot) {}, &round.Owned{Base: [][]int{{0, 0}, {0, 2}}, GPUs: [][]int{{0, 0}, {0, 2}}}, []cluster.MicroGPU{2 * gpu, gpu, 2 * gpu, 3 * gpu}},
	} {
		s := two()
		c.change(s)
		d, in := due(s, c.own)
		var got []cluster.MicroGPU
		for _, row := range d.Ledger.Tenants {
			got = append(got, row.Entitlement)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: entitled to %v, want %v", c.name, got, c.want)
		}
		if in.Ledger.Tenants[0].Entitlement != 0 {
			t.Errorf("%s: the facts have another ledger now", c.name)
		}
	}
}

// Each GPU of demand counts once, in the pool with most room for its tenant, and a job is due its part of what its tenant is due and wants (eq. 13, 14).
func TestWhatJobsAreDue(t *testing.T) {
	d, _ := due(roundtest.Snapshot(roundtest.Job(7, "bio", 2, cluster.Waiting), roundtest.Job(8, "bio", 4, cluster.Waiting), roundtest.On(roundtest.Job(9, "nlp", 1, cluster.Running), "a", "v100", 1)), nil)
	var demand []cluster.MicroGPU
	for _, row := range d.Ledger.Tenants {
		demand = append(demand, row.Demand)
	}
	if !slices.Equal(demand, []cluster.MicroGPU{2 * gpu, 4 * gpu, 0, gpu}) {
		t.Errorf("demand %v, want bio's gangs in a pool each, and nlp's job where it runs", demand)
	}
	if d.Rates[0].Due != 2*gpu || d.Rates[1].Due != 2*gpu || d.Rates[2].Due != gpu {
		t.Errorf("due %v, want 2, 2 of 4, and 1 GPUs", d.Rates)
	}
	if d.Request != nil || d.JobsQueue || len(d.Parties) > 0 || d.Queued[2].Queue != 1 || d.Queued[2].Party != -1 {
		t.Errorf("request %v, parties %v, queued %+v: there is no policy, and tenants queue", d.Request, d.Parties, d.Queued)
	}
}
