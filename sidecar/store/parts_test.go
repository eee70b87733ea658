package store_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
)

// parted gives the parts of a GPU that a job holds: all, a half, an eighth, a third, or a millionth.
func parted(key cluster.JobKey) cluster.Size {
	return cluster.Size{Devices: 1, Part: []cluster.MicroGPU{cluster.WholeGPU, 500_000, 125_000, 333_333, 1}[key%5]}
}

// inParts changes a round so that its jobs hold parts of GPUs. One job claims others.
func inParts(snap *cluster.Snapshot, plan *cluster.Plan) {
	snap.Cases = slices.Clone(snap.Cases)
	for i := range snap.Cases {
		c := &snap.Cases[i]
		c.Job.Request.Size, c.Job.Holds = parted(c.Record.Key), slices.Clone(c.Job.Holds)
		for k := range c.Job.Holds {
			c.Job.Holds[k].Size = parted(c.Record.Key)
		}
	}
	holds := map[[2]string]cluster.GPUCount{}
	plan.State.Leases = slices.Clone(plan.State.Leases)
	for i := range plan.State.Leases {
		l := &plan.State.Leases[i]
		l.Size, l.Nodes = parted(l.Job), slices.Clone(l.Nodes)
		for k := range l.Nodes {
			l.Nodes[k].Size = parted(l.Job)
		}
		at, _ := slices.BinarySearchFunc(plan.State.Records, l.Job, func(r cluster.Record, key cluster.JobKey) int { return int(r.Key - key) })
		holds[[2]string{plan.State.Records[at].Tenant, l.Pool}] += l.Size.Count()
	}
	for i := range plan.Tenants {
		plan.Tenants[i].Holds = holds[[2]string{plan.Tenants[i].Tenant, plan.Tenants[i].Pool}]
	}
	for i := range plan.Bound {
		plan.Bound[i].GPUs = parted(plan.Bound[i].Job).Count()
	}
	for i := range plan.Statuses {
		plan.Statuses[i].Reason.Need, plan.Statuses[i].Reason.Free = parted(plan.Statuses[i].Job).Count(), 125_000
	}
	half := cluster.Size{Devices: 1, Part: 500_000}
	plan.State.Claims = []cluster.Claim{{Job: plan.Statuses[0].Job, Pool: "v100", Made: snap.Now, At: snap.Now, Nodes: []cluster.Holding{{Node: "a", Model: "v100", Size: half}, {Node: "b", Model: "v100", Size: cluster.Whole(2)}}}}
}

// Tables, views and answers have the parts of GPUs to the millionth, as plain numbers, and sums over jobs are those of tenants.
func TestPartsOfGPUs(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(3, 6, 40)
	l := newLife(t, store.Config{Sample: 1}, story)
	var snap cluster.Snapshot
	var plan cluster.Plan
	for range 12 {
		snap, plan = story.Next()
		inParts(&snap, &plan)
		snap.Settings.Divide = "gavel:las"
		l.commit(snap, plan)
	}
	type row struct {
		Key  int64
		GPUs string
	}
	var jobs, needs, leases, bound []row
	for i := range plan.State.Records {
		if r := &plan.State.Records[i]; r.Done == 0 {
			jobs = append(jobs, row{int64(r.Key), parted(r.Key).Count().String()})
		}
	}
	for i := range plan.Statuses {
		needs = append(needs, row{int64(plan.Statuses[i].Job), parted(plan.Statuses[i].Job).Count().String() + " 0.125"})
	}
	for i := range plan.State.Leases {
		leases = append(leases, row{int64(plan.State.Leases[i].Job), parted(plan.State.Leases[i].Job).Count().String()})
	}
	for i := range plan.Bound {
		bound = append(bound, row{int64(plan.Bound[i].Job), parted(plan.Bound[i].Job).Count().String()})
	}
	if len(leases) < 10 || len(bound) < 3 {
		t.Fatalf("%d leases and %d bound jobs", len(leases), len(bound))
	}
	same(l, "jobs", jobs, "select job_key, gpus::text from fairlease.job_fairness where state <> 'done' order by 1")
	same(l, "statuses", needs, "select job_key, need_gpus || ' ' || free_gpus from fairlease.job_statuses order by 1")
	same(l, "leases", leases, "select job_key, gpus::text from fairlease.lease_history where ended_at is null order by 1")
	same(l, "bound jobs", bound, "select job_key, gpus::text from fairlease.bound_gpus order by 1")
	same(l, "claims", []row{{int64(plan.Statuses[0].Job), "2.5"}}, "select job_key, gpus::text from fairlease.claims where ended_at is null")
	type standing struct{ Tenant, Pool, Holds string }
	var tenants []standing
	for i := range plan.Tenants {
		tenants = append(tenants, standing{plan.Tenants[i].Tenant, plan.Tenants[i].Pool, plan.Tenants[i].Holds.String()})
	}
	for what, query := range map[string]string{
		"the ledger":         "select tenant, pool, holds_gpus::text from fairlease.tenant_fairness",
		"the sums of leases": "select l.tenant, l.pool, trim_scale(coalesce(sum(x.gpus), 0))::text from fairlease.ledger l left join fairlease.leases x on x.tenant = l.tenant and x.pool = l.pool and x.ended_at is null group by 1, 2",
		"entitlements":       "select tenant, pool, holds_gpus::text from fairlease.entitlements_now",
		"the history":        "select distinct on (tenant, pool) tenant, pool, holds_gpus::text from fairlease.tenant_history order by tenant, pool, at desc",
	} {
		same(l, what, tenants, query+map[bool]string{true: "", false: " order by 1, 2"}[what == "the history"])
	}
	listed, err := l.store.Jobs.Leases(t.Context(), false, 1000)
	if err != nil || len(listed) != len(leases) {
		t.Fatal(len(listed), err)
	}
	for i := range listed {
		if x := &listed[i]; x.GPUs != parted(x.Job).Count() {
			t.Errorf("the lease of job %d is on %s GPUs", x.Job, x.GPUs)
		}
	}
	id, err := cluster.ParseJobID(listed[0].SlurmID)
	if err != nil {
		t.Fatal(err)
	}
	x, err := l.store.Jobs.Explain(t.Context(), id)
	if err != nil || x.Job.GPUs != parted(x.Job.Key).Count() || x.Lease == nil || x.Lease.Size != parted(x.Job.Key) || x.Status.Reason.Need != parted(x.Job.Key).Count() {
		t.Errorf("%+v, %v", x, err)
	}
	told, _, err := l.store.Rounds.Round(t.Context(), plan.Round)
	want, wrong := json.Marshal(snap)
	if err != nil || wrong != nil || string(told) != string(want) {
		t.Errorf("round %d is not read as it was written: %v, %v", plan.Round, err, wrong)
	}
}
