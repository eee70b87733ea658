package engine_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// dumb chooses leases by the written rules and searches everything anew at every step. Decide must give the
// same result.
//
// The tenant furthest behind is served first. Its running jobs count as further behind by threshold, and a
// tie goes to them. Its jobs are ordered by rho, and running ones count as if they had received less by
// threshold. A running job is renewed unless another job took its GPUs.
//
// A waiting job takes the tightest idle GPUs. Otherwise it displaces the jobs that are last in line. While
// its tenant has running jobs to decide, these must be its own tenant's, unless the tenant comes before all
// others even without the threshold. If the job may displace all tenants and its own was more than a term
// behind, it displaces only smaller jobs of its own tenant. A job that does not fit is tried again when its
// tenant's running jobs are decided, and is then passed over. Each lease is charged before the next.
type dumb struct {
	now       cluster.Instant
	threshold cluster.Span
	idle      []int // by node
	jobs      []dumbJob
	behind    map[string]cluster.Span
	late      map[string]bool // more than a term behind at the start
	quota     map[string]cluster.MicroGPU
	place     map[cluster.JobKey]string // of selected jobs
}

type dumbJob struct {
	key                    cluster.JobKey
	tenant                 string
	gpus, node             int // node of a running job
	runs, out, done, again bool
	rho                    cluster.Rho
	first                  cluster.Instant
	line                   cluster.Span // how far its tenant would be behind at its turn
}

func (d *dumb) cost(j *dumbJob) cluster.Span {
	return cluster.Span(cluster.MulDiv(int64(cluster.Times(j.gpus, term)), int64(cluster.WholeGPU), int64(d.quota[j.tenant])))
}

// queue returns a tenant's undecided jobs, in order.
func (d *dumb) queue(tenant string) []*dumbJob {
	var q []*dumbJob
	running := false
	for i := range d.jobs {
		if j := &d.jobs[i]; j.tenant == tenant && !j.done {
			q = append(q, j)
			running = running || j.runs
		}
	}
	slices.SortStableFunc(q, func(a, b *dumbJob) int {
		return cmp.Or(cmp.Compare(a.rho, b.rho), -cmp.Compare(btoi(a.runs), btoi(b.runs)), cmp.Compare(a.first, b.first), cmp.Compare(a.key, b.key))
	})
	if running { // deferred jobs stand back until it has none
		return slices.DeleteFunc(q, func(j *dumbJob) bool { return j.again })
	}
	slices.SortStableFunc(q, func(a, b *dumbJob) int { return -cmp.Compare(btoi(a.again), btoi(b.again)) })
	return q
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (d *dumb) holds(tenant string) bool {
	return slices.ContainsFunc(d.jobs, func(j dumbJob) bool { return j.tenant == tenant && j.runs && !j.done })
}

// key is the measure by which tenants are compared.
func (d *dumb) key(tenant string) cluster.Span {
	if d.holds(tenant) {
		return d.behind[tenant] + d.threshold
	}
	return d.behind[tenant]
}

// turn returns the tenant that is served next; "" = none is left.
func (d *dumb) turn() string {
	best := ""
	for _, tenant := range []string{"a", "b", "c"} {
		if len(d.queue(tenant)) == 0 {
			continue
		}
		if best == "" || d.key(tenant) > d.key(best) || d.key(tenant) == d.key(best) && d.holds(tenant) && !d.holds(best) {
			best = tenant
		}
	}
	return best
}

func (d *dumb) choose() {
	for _, tenant := range []string{"a", "b", "c"} { // the line if all jobs fitted
		sum := d.behind[tenant]
		d.late[tenant] = sum > term
		running := d.queue(tenant)
		for _, j := range running {
			j.line = sum
			sum -= d.cost(j)
		}
	}
	for tenant := d.turn(); tenant != ""; tenant = d.turn() {
		j := d.queue(tenant)[0]
		switch {
		case j.runs:
			j.done = true
			if !j.out {
				d.place[j.key] = fmt.Sprintf("n%02d", j.node+1)
				d.behind[tenant] -= d.cost(j)
			}
		case d.start(j):
			j.done = true
			d.place[j.key] = fmt.Sprintf("n%02d", j.node+1)
			d.behind[tenant] -= d.cost(j)
		case d.holds(tenant):
			j.again = true
		default:
			j.done = true
		}
	}
}

// start finds GPUs for a waiting job and takes them.
func (d *dumb) start(j *dumbJob) bool {
	best := -1
	for n, idle := range d.idle {
		if idle >= j.gpus && (best < 0 || idle < d.idle[best]) {
			best = n
		}
	}
	if best < 0 {
		if best = d.displace(j); best < 0 {
			return false
		}
	}
	j.node = best
	d.idle[best] -= j.gpus
	return true
}

// last returns the running jobs that j may displace, last in line first.
func (d *dumb) last(j *dumbJob) []*dumbJob {
	leads := true
	for _, other := range []string{"a", "b", "c"} {
		leads = leads && (other == j.tenant || len(d.queue(other)) == 0 || d.key(other) < d.behind[j.tenant])
	}
	anybodys := leads || !d.holds(j.tenant)
	var out []*dumbJob
	for i := range d.jobs {
		v := &d.jobs[i]
		spared := anybodys && d.late[j.tenant] && v.tenant == j.tenant && v.gpus >= j.gpus
		if v.runs && !v.out && (!v.done || d.place[v.key] == "") && (anybodys || v.tenant == j.tenant) && !spared {
			out = append(out, v)
		}
	}
	order := func(v *dumbJob) int { return slices.Index(d.queue(v.tenant), v) }
	slices.SortStableFunc(out, func(a, b *dumbJob) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(b.tenant, a.tenant), cmp.Compare(order(b), order(a)))
	})
	return out
}

// displace makes room on one node. It prefers the node whose displaced jobs are last in line. Ties are
// decided by the fewest freed GPUs, the fewest left over, the fullest node, and the name.
func (d *dumb) displace(j *dumbJob) int {
	last := d.last(j)
	best, bestScore := -1, []int(nil)
	var gone []*dumbJob
	for n, idle := range d.idle {
		var here []*dumbJob
		free, soft := idle, 0
		for _, v := range last {
			if v.node == n && free < j.gpus {
				here, free = append(here, v), free+v.gpus
			}
		}
		for i := range d.jobs {
			if v := &d.jobs[i]; v.runs && !v.out && v.node == n && d.place[v.key] == "" {
				soft += v.gpus
			}
		}
		if free < j.gpus {
			continue
		}
		for i := len(here) - 1; i >= 0; i-- { // spares jobs that need not go after all, foremost first
			if free-here[i].gpus >= j.gpus {
				free -= here[i].gpus
				here = slices.Delete(here, i, i+1)
			}
		}
		score := []int{-slices.Index(last, here[len(here)-1]), free - idle, free - j.gpus, idle + soft, n}
		score[0] = slices.Index(last, here[len(here)-1])
		if best < 0 || slices.Compare(score, bestScore) < 0 {
			best, bestScore, gone = n, score, here
		}
	}
	for _, v := range gone {
		v.out = true
		d.idle[best] += v.gpus
	}
	return best
}

// contest draws a boundary on a small cluster with up to three tenants and six jobs, and some of the jobs
// run. It returns the snapshot and the same input for dumb.
func contest(t *rapid.T) (cluster.Snapshot, *dumb) {
	var gpus []int
	for range rapid.IntRange(1, 3).Draw(t, "nodes") {
		gpus = append(gpus, rapid.IntRange(1, 4).Draw(t, "gpus"))
	}
	s := boundary(gpus...)
	s.Settings.Threshold = cluster.Span(rapid.SampledFrom([]int{0, 60_000}).Draw(t, "threshold"))
	d := &dumb{now: s.Now, threshold: s.Settings.Threshold, idle: slices.Clone(gpus), place: map[cluster.JobKey]string{},
		late: map[string]bool{}, behind: map[string]cluster.Span{}, quota: map[string]cluster.MicroGPU{}}
	names := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "tenants")]
	s.Tenants = nil
	all := 0
	for _, g := range gpus {
		all += g
	}
	var weights []int64
	for _, name := range names {
		weights = append(weights, rapid.SampledFrom([]int64{1, 1, 2, 3}).Draw(t, "weight"))
		s.Tenants = append(s.Tenants, cluster.Tenant{Name: name, Weight: weights[len(weights)-1]})
	}
	quotas := policy.Quota(cluster.MicroGPU(all)*cluster.WholeGPU, weights)
	for i, name := range names {
		deficit := cluster.GPUTime(rapid.IntRange(-1, 6).Draw(t, "owed")) * cluster.Times(1, term) / 2
		owe(&s, name, deficit)
		d.quota[name] = quotas[i]
		d.behind[name] = cluster.Span(int64(deficit) * int64(cluster.WholeGPU) / int64(quotas[i]))
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
		draw(t, &s, d, cluster.JobKey(i+1), rapid.SampledFrom(names).Draw(t, "tenant"))
	}
	return s, d
}

func draw(t *rapid.T, s *cluster.Snapshot, d *dumb, key cluster.JobKey, tenant string) {
	j := dumbJob{key: key, tenant: tenant, gpus: rapid.SampledFrom([]int{1, 1, 1, 2, 3, 4}).Draw(t, "gang")}
	c := waits(key, tenant, j.gpus)
	for n, idle := range d.idle {
		if idle >= j.gpus && rapid.Bool().Draw(t, "runs") {
			j.runs, j.node = true, n
			d.idle[n] -= j.gpus
			c = runsOn(key, tenant, j.gpus, s.Nodes[n].Name)
			break
		}
	}
	c.Record.Alloc = cluster.Times(1, term) * cluster.GPUTime(rapid.IntRange(0, 3).Draw(t, "alloc"))
	c.Record.Due = cluster.Times(1, term)
	c.Record.First = simtest.Start.Add(-cluster.Span(rapid.IntRange(1, 3).Draw(t, "first")) * hour)
	alloc := c.Record.Alloc
	if j.runs {
		alloc -= cluster.Times(j.gpus, d.threshold)
	}
	j.rho, j.first = cluster.RhoOf(alloc, c.Record.Due), c.Record.First
	s.Cases = append(s.Cases, c)
	if slices.ContainsFunc(s.Nodes, func(n cluster.Node) bool { return n.GPUs[0].Count >= j.gpus }) { // else it is not a candidate
		d.jobs = append(d.jobs, j)
	}
	if j.runs {
		s.Leases = append(s.Leases, leaseOf(s, len(s.Cases)-1))
	}
}

func TestCleverAgainstDumb(t *testing.T) {
	for range 20 {
		rapid.Check(t, func(rt *rapid.T) {
			s, d := contest(rt)
			p := engine.Decide(s)
			got := map[cluster.JobKey]string{}
			for _, l := range p.State.Leases {
				if l.State == cluster.Active || l.State == cluster.Granted {
					got[l.Job] = l.Nodes[0].Node
				}
			}
			d.choose()
			if fmt.Sprint(got) != fmt.Sprint(d.place) {
				rt.Fatalf("leases for %v, by the rules for %v\n%+v\n%+v", got, d.place, d.jobs, s.Ledger.Tenants)
			}
		})
	}
}
