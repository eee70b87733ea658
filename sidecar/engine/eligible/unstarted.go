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
type late struct{ sum, largest cluster.MicroGPU }

// beyond returns the GPUs besides those of the largest grant.
func (l late) beyond() cluster.MicroGPU { return l.sum - l.largest }

type tenantUser struct {
	tenant round.TenantIndex
	user   string
}

// holdBack leaves out waiting jobs of users and tenants whose grants take longer to start than usual and hold many GPUs. So at
// any time only few GPUs are kept by jobs that do not start, whatever keeps them.
func (f *Nodes) holdBack(leases []*cluster.Lease) {
	var users map[tenantUser]late
	var tenants map[round.TenantIndex]late
	var free map[string]cluster.MicroGPU
	for i, l := range leases {
		st := &f.in.Cases[i]
		if l == nil || l.State != cluster.Granted || !st.Waits || st.Tenant < 0 || f.in.Now.Sub(l.Granted) < max(usualStart, f.in.Settings.Interval+1) {
			continue
		}
		if free == nil {
			free, users, tenants = f.idleGPUs(), map[tenantUser]late{}, map[round.TenantIndex]late{}
		}
		if slices.ContainsFunc(l.Nodes, func(h cluster.Holding) bool { return free[h.Node] < h.Size.Amount() }) {
			continue // others have not left yet
		}
		key := tenantUser{st.Tenant, f.in.Records[i].User}
		gpus := cluster.SizeHeld(l.Nodes).Amount()
		users[key], tenants[st.Tenant] = users[key].with(gpus), tenants[st.Tenant].with(gpus)
	}
	if free == nil {
		return
	}
	all := 0
	for i := range f.in.Snapshot.Nodes {
		for _, g := range f.in.Snapshot.Nodes[i].GPUs {
			all += g.Count
		}
	}
	most := cluster.Micro(max(leastUnstarted, all/unstartedShare))
	for i := range f.in.Cases {
		st, can := &f.in.Cases[i], &f.found.Can[i]
		if !can.Eligible || st.Runs || st.Tenant < 0 {
			continue
		}
		if tenants[st.Tenant].beyond() >= 2*most || users[tenantUser{st.Tenant, f.in.Records[i].User}].beyond() >= most {
			can.Eligible, can.Why, can.Note, can.Until, can.Probes = false, cluster.ReasonUnstarted, "", 0, round.NoProbe
		}
	}
}

func (l late) with(gpus cluster.MicroGPU) late { return late{l.sum + gpus, max(l.largest, gpus)} }

// idleGPUs counts by node the GPUs that no job holds.
func (f *Nodes) idleGPUs() map[string]cluster.MicroGPU {
	free := make(map[string]cluster.MicroGPU, len(f.in.Snapshot.Nodes))
	for i := range f.in.Snapshot.Nodes {
		for _, g := range f.in.Snapshot.Nodes[i].GPUs {
			free[f.in.Snapshot.Nodes[i].Name] += cluster.Micro(g.Count)
		}
	}
	for i := range f.in.Snapshot.Cases {
		if f.in.Cases[i].Live {
			for _, h := range f.in.Snapshot.Cases[i].Job.Holds {
				free[h.Node] -= h.Size.Amount()
			}
		}
	}
	return free
}
