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
	return count(stranded(s, &x), &s.Settings)
}

// count turns devices into what they count in accounts.
func count(list []cluster.Stranding, s *cluster.Settings) []cluster.Stranding {
	for i := range list {
		list[i].GPUs = list[i].GPUs.At(s.Worth(list[i].Pool))
	}
	return list
}

// stranded is Stranded with the idle GPUs of nodes, which it changes.
func stranded(s *cluster.Snapshot, x *Nodes) []cluster.Stranding {
	if x.short == 0 {
		return nil
	}
	withoutGranted(s, x)
	withoutShared(s, x)
	for i := range x.sites {
		if at := &x.sites[i]; at.short {
			at.idle, at.stranded, at.excess = x.idleOn(i), 0, 0
			if s.Nodes[i].Busy == "" {
				at.stranded = x.stranded(i, at.idle)
			}
		}
	}
	all := x.occupants()
	for i := range all {
		x.sites[all[i].node].excess += x.excess(&all[i])
	}
	var out []cluster.Stranding
	for i := range all {
		o := &all[i]
		at, excess := &x.sites[o.node], x.excess(o)
		if excess <= 0 {
			continue
		}
		mine := cluster.MulDiv(at.stranded*int64(cluster.WholeGPU), int64(excess), int64(at.excess))
		for k, g := range x.nodes[o.node].GPUs {
			if n := x.idle[at.first+k]; n > 0 {
				out = append(out, cluster.Stranding{Case: o.job, Pool: g.Model, GPUs: cluster.MicroGPU(cluster.MulDiv(mine, int64(n), int64(at.idle)))})
			}
		}
	}
	return out
}

// withRests adds what no job has of each GPU that jobs have parts of, as parts of it. Nobody can have that GPU, and nothing keeps its
// jobs from using all of it: otherwise its tenant would have a GPU at the price of a shard.
func withRests(s *cluster.Snapshot, records []cluster.Record, x *Nodes, out []cluster.Stranding) []cluster.Stranding {
	if !x.shards {
		return out
	}
	sums := map[cluster.Device]cluster.MicroGPU{}
	parts(s, records, func(_ int, at cluster.Device, part cluster.MicroGPU) { sums[at] += part })
	parts(s, records, func(i int, at cluster.Device, part cluster.MicroGPU) {
		if rest := cluster.WholeGPU - sums[at]; rest >= cluster.WholeGPU/1000 { // less is rounding: a third is 333,333 millionths
			out = append(out, cluster.Stranding{Case: i, Pool: at.Model, GPUs: cluster.MicroGPU(cluster.MulDiv(int64(rest), int64(part), int64(sums[at]))), Rest: true})
		}
	})
	slices.SortStableFunc(out, func(a, b cluster.Stranding) int { return cmp.Compare(a.Case, b.Case) })
	return out
}

// parts goes through the parts of GPUs that jobs have: as they count in accounts by records, or without records their shards.
func parts(s *cluster.Snapshot, records []cluster.Record, f func(i int, at cluster.Device, part cluster.MicroGPU)) {
	for i := range s.Cases {
		holds := s.Cases[i].Job.Holds
		counts := holds
		if records != nil {
			counts = records[i].Slice.Has(holds)
		}
		for k := range holds {
			if h := &holds[k]; !h.Size.IsWhole() && occupies(&s.Cases[i]) {
				for at := range h.Devices() {
					f(i, at, counts[k].Size.Part)
				}
			}
		}
	}
}

// withoutShared takes what no job has of shared GPUs off: they are not idle.
func withoutShared(s *cluster.Snapshot, x *Nodes) {
	if !x.shards {
		return
	}
	seen := map[cluster.Device]bool{}
	parts(s, nil, func(_ int, at cluster.Device, part cluster.MicroGPU) {
		slot := x.slot(x.find(at.Node), at.Model)
		if slot < 0 {
			return
		}
		if !seen[at] {
			seen[at] = true
			x.reserve(slot, cluster.WholeGPU)
		}
		x.reserve(slot, -part)
	})
}

// chargeStranded charges stranded GPUs to the tenants of the jobs that strand them, and keeps them for the next look. Those
// of jobs that have ended since the last look count until this look. rows has the first row of each case's tenant.
func (b *books) chargeStranded(s *cluster.Snapshot, rows []int, now []cluster.Stranding) {
	charge := func(i int, pool string, gpus cluster.MicroGPU, since cluster.Instant) {
		if p := b.pool(pool); p >= 0 && rows[i] >= 0 {
			kept := Credit(gpus, b.now.Sub(max(b.from, since)))
			b.granted[rows[i]+p] += kept
			b.keptBy(b.users.at[i], p, kept)
		}
	}
	for _, x := range s.Ledger.Stranded {
		i, ok := caseOf(s, x.Job)
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
	for i := range s.Leases {
		l := &s.Leases[i]
		if l.State != cluster.Granted {
			continue
		}
		if i, ok := caseOf(s, l.Job); ok && occupies(&s.Cases[i]) {
			continue
		}
		for _, h := range l.Nodes {
			if slot := x.slot(x.find(h.Node), h.Model); slot >= 0 {
				x.reserve(slot, h.Size.Amount())
			}
		}
	}
}

// occupant is what a job holds of a node.
type occupant struct {
	job int
	hold
}

// occupants returns what jobs hold of nodes with stranded GPUs.
func (x *Nodes) occupants() (out []occupant) {
	for i, holds := range x.holds {
		for k := range holds {
			h := &holds[k]
			if h.node < 0 || !x.sites[h.node].short || x.sites[h.node].stranded <= 0 {
				continue
			}
			if k == 0 || holds[k-1].node != h.node {
				out = append(out, occupant{job: i, hold: hold{node: h.node}})
			}
			o := &out[len(out)-1]
			o.gpus, o.cpus, o.memory = o.gpus+h.gpus, o.cpus+h.cpus, o.memory+h.memory
		}
	}
	return out
}

// goWith gives the GPUs with which some of a node's CPUs go, and with which some of its memory goes.
func (x *Nodes) goWith(node, cpus int, memory int64) (byCPUs, byMemory cluster.MicroGPU) {
	n, all := &x.nodes[node], int64(x.sites[node].gpus)*int64(cluster.WholeGPU)
	return cluster.MicroGPU(cluster.MulDiv(all, int64(max(cpus, 0)), int64(n.CPUs))), cluster.MicroGPU(cluster.MulDiv(all, max(memory, 0), n.MemoryMB))
}

// stranded gives the number of a node's idle GPUs without CPUs or without memory; at most 0 = none. Bad nodes and those without numbers have none.
func (x *Nodes) stranded(node int, idle cluster.MicroGPU) int64 {
	n, at := &x.nodes[node], &x.sites[node]
	if idle == 0 || n.Bad != "" || n.CPUs <= 0 || n.MemoryMB <= 0 {
		return 0
	}
	byCPUs, byMemory := x.goWith(node, at.cpus, at.memory)
	return int64(idle/cluster.WholeGPU) - int64((min(byCPUs, byMemory)+cluster.WholeGPU-1)/cluster.WholeGPU)
}

// excess gives the GPUs with which the job's CPUs or memory go, beyond those that it holds.
func (x *Nodes) excess(o *occupant) cluster.MicroGPU {
	byCPUs, byMemory := x.goWith(o.node, o.cpus, o.memory)
	return max(byCPUs, byMemory, o.gpus) - o.gpus
}
