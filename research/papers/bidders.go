package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// bidders divides heterogeneous GPUs between users.
type bidders struct {
	policy string
	told   baseline.Options
	may    map[cluster.JobKey][]int // usable pools of each job; for a running job only its own is known
	last   cluster.Allocation
}

// bidder is a tenant's jobs with equal speeds on every model: OEF's virtual user (§4.2.4), and a
// trading party of Gandiva_fair.
type bidder struct {
	cluster.Bid
	jobs []int     // indices in the round
	due  []float64 // GPUs, by pool
}

// divide gives the bidders, by tenant, then name, and the GPUs by pool that they divide: all
// healthy ones, without those of jobs that cannot lose them.
func (u *bidders) divide(r *round) (list []bidder, gpus []int) {
	may, at := map[cluster.JobKey][]int{}, map[string]int{}
	gpus = make([]int, r.Pools)
	for p := range gpus {
		all, bad := r.Field.Site.Count(p)
		gpus[p] = all - bad
	}
	for k := range r.Jobs {
		j := &r.Jobs[k]
		key := r.Field.In.Records[j.Case].Key
		if may[key] = u.may[key]; j.Waits || may[key] == nil {
			may[key] = slices.Clone(j.Pools)
		}
		if stays(j) {
			gpus[r.on(j)] = max(gpus[r.on(j)]-j.GPUs, 0)
		}
		if stays(j) || j.Tenant < 0 {
			continue
		}
		speeds := u.speeds(r, j, may[key])
		name := fmt.Sprintf("%s %.6g", r.Field.In.Tenants[j.Tenant], speeds)
		i, ok := at[name]
		if !ok {
			i = len(list)
			at[name] = i
			list = append(list, bidder{Bid: cluster.Bid{Party: name, Tenant: r.Field.In.Tenants[j.Tenant], Weight: r.weight(j.Tenant), Milli: 1000,
				Speeds: speeds, Margins: slices.Repeat([]float64{1}, r.Pools)}, due: make([]float64, r.Pools)})
		}
		list[i].jobs = append(list[i].jobs, k)
		list[i].Demand, list[i].Gang = list[i].Demand+j.GPUs, max(list[i].Gang, j.GPUs)
	}
	u.may = may
	slices.SortFunc(list, func(a, b bidder) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Party, b.Party)) })
	q := cluster.AllocationRequest{Policy: u.policy, Trades: u.last.Trades, NextTrade: u.last.NextTrade}
	for p, n := range gpus {
		q.Pools = append(q.Pools, cluster.GPUs{Model: r.Field.In.Pools[p], Count: n})
	}
	for i := range list {
		q.Bids = append(q.Bids, list[i].Bid)
	}
	u.last = engine.Divide(q)
	for i := range list {
		for p, n := range u.last.Parts[i].GPUs {
			list[i].due[p] = float64(n) / float64(cluster.WholeGPU)
		}
	}
	return list, gpus
}

// speeds gives the speed of a job by pool, relative to its slowest.
func (u *bidders) speeds(r *round, j *job, may []int) []float64 {
	speeds := make([]float64, r.Pools)
	least := 0.0
	for _, p := range may {
		if speeds[p] = 1; u.told.Speed != nil {
			speeds[p] = u.told.Speed(&r.Snapshot.Cases[j.Case].Job, r.Field.In.Pools[p])
		}
		if s := speeds[p]; s > 0 && (least == 0 || s < least) {
			least = s
		}
	}
	for p := range speeds {
		speeds[p] /= max(least, 1e-9)
	}
	return speeds
}

// weight gives the weight of a tenant.
func (r *round) weight(tenant int) int64 {
	i := slices.IndexFunc(r.Snapshot.Tenants, func(t cluster.Tenant) bool { return t.Name == r.Field.In.Tenants[tenant] })
	return r.Snapshot.Tenants[i].Weight
}

// poolsBySpeed orders pools by the speed of their jobs.
func poolsBySpeed(list []bidder, pools int) []int {
	order, speed := make([]int, pools), make([]float64, pools)
	for p := range order {
		order[p] = p
		for i := range list {
			speed[p] += list[i].Speeds[p] * float64(list[i].Demand)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(speed[b], speed[a]) })
	return order
}
