package ltgf

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Stranded finds the GPUs that idle since jobs hold the CPUs or the memory that goes with them. An equal part of its
// node's CPUs and memory goes with each GPU. GPUs that idle beyond the part that is left are stranded, rounded down.
// The jobs that hold more than goes with their GPUs share them in proportion to the excess.
//
// They are charged to the tenants of those jobs as GPUs that were granted but do not run. Otherwise a tenant whose jobs
// take the memory of nodes would seem to lack the GPUs there, and would get those of other tenants instead.
func Stranded(s *cluster.Snapshot) []cluster.Stranding {
	var x Nodes
	x.open(s)
	return stranded(s, &x)
}

// stranded is Stranded with the idle GPUs of nodes, which it changes.
func stranded(s *cluster.Snapshot, x *Nodes) []cluster.Stranding {
	withoutGranted(s, x)
	if !x.openSites(s) {
		return nil
	}
	var all []occupant
	nodes := x.held
	for i := range s.Cases {
		j := &s.Cases[i].Job
		if !occupies(&s.Cases[i]) {
			continue
		}
		for k := range j.Holds {
			h := &j.Holds[k]
			n := nodes[0]
			nodes = nodes[1:]
			if n < 0 || x.sites[n].Node == nil {
				continue
			}
			at := &x.sites[n]
			if k == 0 || j.Holds[k-1].Node != h.Node {
				all = append(all, occupant{at: at, job: i})
			}
			o := &all[len(all)-1]
			o.gpus, o.cpus, o.memory = o.gpus+h.GPUs, o.cpus+h.CPUs, o.memory+h.MemoryMB
			at.cpus, at.memory = at.cpus-h.CPUs, at.memory-h.MemoryMB
		}
	}
	for i := range all {
		all[i].at.excess += all[i].excess()
	}
	var out []cluster.Stranding
	for i := range all {
		o := &all[i]
		stranded, excess := o.at.stranded(), o.excess()
		if stranded <= 0 || excess <= 0 {
			continue
		}
		mine := cluster.MulDiv(stranded*int64(cluster.WholeGPU), int64(excess), int64(o.at.excess))
		for _, g := range o.at.GPUs {
			if n := *x.free(o.at.index, g.Model); n > 0 {
				out = append(out, cluster.Stranding{Case: o.job, Pool: g.Model, GPUs: cluster.MicroGPU(cluster.MulDiv(mine, int64(n), int64(o.at.idle)))})
			}
		}
	}
	return out
}

// chargeStranded charges stranded GPUs to the tenants of the jobs that strand them, and keeps them for the next look. Those
// of jobs that have ended since the last look count until this look. rows has the first row of each case's tenant.
func (b *books) chargeStranded(s *cluster.Snapshot, rows []int, now []cluster.Stranding) {
	charge := func(i int, pool string, gpus cluster.MicroGPU, since cluster.Instant) {
		if p := b.pool(pool); p >= 0 && rows[i] >= 0 {
			kept := Credit(gpus, b.now.Sub(max(b.from, since)))
			b.granted[rows[i]+p] += kept
			b.keptBy(b.users.of(i), p, kept)
		}
	}
	for _, x := range s.Ledger.Stranded {
		i, ok := slices.BinarySearchFunc(s.Cases, x.Job, func(c cluster.Case, key cluster.JobKey) int { return cmp.Compare(c.Record.Key, key) })
		if ok && !occupies(&s.Cases[i]) {
			charge(i, x.Pool, x.GPUs, b.from)
		}
	}
	for _, x := range now {
		charge(x.Case, x.Pool, x.GPUs, s.Cases[x.Case].Job.Start)
		b.ledger.Stranded = append(b.ledger.Stranded, cluster.StrandedGPUs{Job: s.Cases[x.Case].Record.Key, Pool: x.Pool, GPUs: x.GPUs})
	}
}

// withoutGranted takes GPUs off that are granted to jobs that hold nothing yet.
func withoutGranted(s *cluster.Snapshot, x *Nodes) {
	cases := s.Cases
	for i := range s.Leases {
		l := &s.Leases[i]
		for len(cases) > 0 && cases[0].Record.Key < l.Job {
			cases = cases[1:]
		}
		if l.State != cluster.Granted || len(cases) > 0 && cases[0].Record.Key == l.Job && occupies(&cases[0]) {
			continue
		}
		for _, h := range l.Nodes {
			*x.free(x.find(h.Node), h.Model) -= h.GPUs
		}
	}
}

// site is a node with idle GPUs.
type site struct {
	*cluster.Node
	index      int
	gpus, idle int
	cpus       int   // left
	memory     int64 // left
	excess     cluster.MicroGPU
}

// goWith gives the GPUs with which some of the node's CPUs go, and with which some of its memory goes.
func (at *site) goWith(cpus int, memory int64) (byCPUs, byMemory cluster.MicroGPU) {
	all := int64(at.gpus) * int64(cluster.WholeGPU)
	return cluster.MicroGPU(cluster.MulDiv(all, int64(max(cpus, 0)), int64(at.CPUs))), cluster.MicroGPU(cluster.MulDiv(all, max(memory, 0), at.MemoryMB))
}

// stranded gives the number of idle GPUs without CPUs or without memory; at most 0 = none.
func (at *site) stranded() int64 {
	byCPUs, byMemory := at.goWith(at.cpus, at.memory)
	return int64(at.idle) - int64((min(byCPUs, byMemory)+cluster.WholeGPU-1)/cluster.WholeGPU)
}

// occupant is what a job holds of a node.
type occupant struct {
	at         *site
	job        int
	gpus, cpus int
	memory     int64
}

// excess gives the GPUs with which the job's CPUs or memory go, beyond those that it holds.
func (o *occupant) excess() cluster.MicroGPU {
	byCPUs, byMemory := o.at.goWith(o.cpus, o.memory)
	own := cluster.MicroGPU(o.gpus) * cluster.WholeGPU
	return max(byCPUs, byMemory, own) - own
}
