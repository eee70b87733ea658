package ltgf

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/tickets"
)

// turns are those of jobs on shared GPUs. A turn that begins at a look counts from then on: what came before is charged by the turns of the last look.
type turns struct {
	sliced []int                               // cases that take turns, or did
	sums   map[cluster.Device]cluster.MicroGPU // by GPU: the parts that jobs had there until now, of those that still have; nil = no turns differ
}

// look sums the parts of GPUs up to now.
func (t *turns) look(s *cluster.Snapshot, records []cluster.Record) {
	if slices.ContainsFunc(t.sliced, func(i int) bool { return records[i].Slice.Turn.Part > 0 }) {
		t.sums = map[cluster.Device]cluster.MicroGPU{}
		parts(s, records, func(_ int, at cluster.Device, part cluster.MicroGPU) { t.sums[at] += part })
	}
}

// until gives what a running job has had since the last look, as it counts. If another job has begun on its GPU meanwhile, its turn may have ended: of its
// part and its shards the lesser one counts, so that no GPU counts twice; less reports that these are the shards.
func (t *turns) until(r *cluster.Record, j *cluster.Job) (had []cluster.Holding, less bool) {
	has := r.Slice.Has(j.Holds)
	if t.sums == nil || len(has) != 1 || has[0].Size.Part <= j.Holds[0].Size.Part {
		return has, false
	}
	for d := range j.Holds[0].Devices() {
		if t.sums[d] > cluster.WholeGPU {
			return j.Holds, true
		}
	}
	return has, false
}

// begin sets the turns from now on, and what jobs have by that.
func (t *turns) begin(s *cluster.Snapshot, records []cluster.Record) {
	if len(t.sliced) == 0 {
		return
	}
	now := turnsNow(s, records)
	for _, i := range t.sliced {
		r := &records[i]
		if r.Slice == nil {
			continue
		}
		if turn := now[i]; turn != r.Slice.Turn {
			x := *r.Slice
			x.Turn, r.Slice = turn, &x
		}
		if len(r.Held) > 0 {
			r.Held = held(&s.Settings, r.Slice.Has(s.Cases[i].Job.Holds), r.Held)
		}
	}
}

// turnsNow gives by case the turns that are not equal, of the jobs that run on a GPU where only such jobs are. Turns are equal where an owner resumes a job in
// the turns of others: it then has as much of the GPU as these, and pays for that. They are equal, too, where a job is not acted on or has notice, so that all
// run.
func turnsNow(s *cluster.Snapshot, records []cluster.Record) map[int]cluster.Turn {
	now := map[int]cluster.Turn{}
	if s.Settings.Slices == nil {
		return now
	}
	orders := cluster.OverridesOf(s.Overrides, s.Now)
	takes := func(i int) bool {
		c, r := &s.Cases[i], &records[i]
		order, _ := orders.Of(r)
		l, leased := slices.BinarySearchFunc(s.Leases, r.Key, func(l cluster.Lease, job cluster.JobKey) int { return cmp.Compare(l.Job, job) })
		if leased && (s.Leases[l].State == cluster.Noticed || s.Leases[l].State == cluster.Ending) {
			return false
		}
		return r.Slice != nil && !r.Slice.ResumedByOwner() && c.Job.State == cluster.Running && len(c.Job.Holds) == 1 && c.Control == cluster.FullControl && order == nil
	}
	on, others := map[cluster.Device][]int{}, map[cluster.Device]bool{}
	parts(s, nil, func(i int, at cluster.Device, _ cluster.MicroGPU) {
		if takes(i) {
			on[at] = append(on[at], i)
		} else {
			others[at] = true
		}
	})
	rule := tickets.RuleOf(&s.Settings, s.Tenants)
	for d, cases := range on {
		if others[d] || len(cases) < 2 {
			continue
		}
		jobs, all := make([]tickets.Job, len(cases)), cluster.MicroGPU(0)
		for k, i := range cases {
			jobs[k], all = tickets.Job{Tenant: records[i].Tenant, User: records[i].User}, all+s.Cases[i].Job.Holds[0].Size.Part
		}
		for k, turn := range rule.Turns(jobs, all) {
			now[cases[k]] = turn
		}
	}
	return now
}
