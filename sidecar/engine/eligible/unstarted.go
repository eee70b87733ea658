package eligible

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A grant usually starts within usualStart. The GPUs of grants that take longer are bounded, besides the largest such grant:
// of a user by leastUnstarted, or a share of the cluster if that is more, of a tenant by twice as many.
const (
	usualStart     = 10 * cluster.Second
	leastUnstarted = 4
	unstartedShare = 50 // one in so many GPUs
)

// late sums the GPUs of grants that take longer to start than usual.
type late struct{ sum, largest int }

// beyond returns the GPUs besides those of the largest grant.
func (l late) beyond() int { return l.sum - l.largest }

type tenantUser struct {
	tenant round.TenantIndex
	user   string
}

// holdBack leaves out waiting jobs of users and tenants whose grants take longer to start than usual and hold many GPUs. So at
// any time only few GPUs are kept by jobs that do not start, whatever keeps them.
func (f *Nodes) holdBack(leases []*cluster.Lease) {
	var users map[tenantUser]late
	var tenants map[round.TenantIndex]late
	var free map[string]int
	for i, l := range leases {
		st := &f.b.Jobs[i]
		if l == nil || l.State != cluster.Granted || !st.Is.Waits || st.Is.Tenant < 0 || f.b.In.Now.Sub(l.Granted) < max(usualStart, f.b.In.Settings.Interval+1) {
			continue
		}
		if free == nil {
			free, users, tenants = f.idleGPUs(), map[tenantUser]late{}, map[round.TenantIndex]late{}
		}
		if slices.ContainsFunc(l.Nodes, func(h cluster.Holding) bool { return free[h.Node] < h.GPUs }) {
			continue // others have not left yet
		}
		key := tenantUser{st.Is.Tenant, f.b.Records[i].User}
		users[key], tenants[st.Is.Tenant] = users[key].with(l.GPUs), tenants[st.Is.Tenant].with(l.GPUs)
	}
	if free == nil {
		return
	}
	all := 0
	for i := range f.b.In.Snapshot.Nodes {
		for _, g := range f.b.In.Snapshot.Nodes[i].GPUs {
			all += g.Count
		}
	}
	most := max(leastUnstarted, all/unstartedShare)
	for i := range f.b.Jobs {
		st := &f.b.Jobs[i]
		if !st.Can.Eligible || st.Is.Runs || st.Is.Tenant < 0 {
			continue
		}
		if tenants[st.Is.Tenant].beyond() >= 2*most || users[tenantUser{st.Is.Tenant, f.b.Records[i].User}].beyond() >= most {
			st.Can.Eligible, st.Can.Why, st.Can.Note, st.Can.Until, st.Can.Probes = false, cluster.ReasonUnstarted, "", 0, round.NoProbe
		}
	}
}

func (l late) with(gpus int) late { return late{l.sum + gpus, max(l.largest, gpus)} }

// idleGPUs counts by node the GPUs that no job holds.
func (f *Nodes) idleGPUs() map[string]int {
	free := make(map[string]int, len(f.b.In.Snapshot.Nodes))
	for i := range f.b.In.Snapshot.Nodes {
		for _, g := range f.b.In.Snapshot.Nodes[i].GPUs {
			free[f.b.In.Snapshot.Nodes[i].Name] += g.Count
		}
	}
	for i := range f.b.In.Snapshot.Cases {
		if f.b.Jobs[i].Is.Live {
			for _, h := range f.b.In.Snapshot.Cases[i].Job.Holds {
				free[h.Node] -= h.GPUs
			}
		}
	}
	return free
}
