package eligible

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Found is which jobs could be granted a lease now, and where. It is valid until the next round's.
type Found struct {
	Can       []round.Eligibility // by case
	Leases    []*cluster.Lease    // in force, by case; nil = none
	Revoked   []cluster.Lease     // grants that others overtook
	Claimants [][]ltgf.Claimant   // by tenant: the jobs that run or could run now
	Limits    lease.Limits        // that a chooser must look at; nil = none
	Site      *place.Site

	facts *round.Facts
	all   *prober        // on all nodes
	again []int          // cases, in order: they may have the nodes of their last failed grant again
	said  map[int]string // by case: why its grant was revoked
}

// open begins anew with the facts of a round and the leases that it began with, by case.
func (f *Found) open(facts *round.Facts, leases []*cluster.Lease) {
	n := len(facts.Cases)
	f.facts, f.Can, f.Leases = facts, slices.Grow(f.Can[:0], n)[:n], append(f.Leases[:0], leases...)
	f.Revoked, f.again, f.said = nil, f.again[:0], nil
	for i := range f.Can {
		f.Can[i] = round.Eligibility{GPUs: facts.Cases[i].Asks, First: facts.Records[i].First}
	}
	for len(f.Claimants) < len(facts.Tenants) {
		f.Claimants = append(f.Claimants, nil)
	}
	f.Claimants = f.Claimants[:len(facts.Tenants)]
	for t := range f.Claimants {
		f.Claimants[t] = f.Claimants[t][:0]
	}
}

// Together reports whether a shape could ever be on as few nodes of a pool as its GPUs fit on.
func (f *Found) Together(shape, pool int) bool { return f.all.together(shape, pool, false) }

// Near reports the same of such nodes under as few switches as they need.
func (f *Found) Near(shape, pool int) bool { return f.all.together(shape, pool, true) }

// revoke ends the grant of a case.
func (f *Found) revoke(i int, why string) {
	l := *f.Leases[i]
	l.State, l.Ended, l.Why = cluster.Over, f.facts.Now, "taken back: "+why
	f.Revoked = append(f.Revoked, l)
	f.Leases[i] = nil
	if f.said == nil {
		f.said = map[int]string{}
	}
	f.said[i] = why
}

// forgive lets a case, which comes after those that were forgiven before, have the nodes of its last failed grant again.
func (f *Found) forgive(i int) {
	if len(f.facts.Records[i].AvoidNodes) > 0 {
		f.again = append(f.again, i)
	}
}

// Said returns what Slurm said of a case's last grant, or why it was revoked.
func (f *Found) Said(i int) string {
	if why, ok := f.said[i]; ok {
		return why
	}
	return f.facts.Records[i].SlurmSaid
}

// Put writes into records, by case, what the round found out about failed grants.
func (f *Found) Put(records []cluster.Record) {
	for _, i := range f.again {
		records[i].AvoidNodes = nil
	}
	for i, why := range f.said {
		records[i].SlurmSaid = why
	}
}

// Avoids returns the nodes of its last failed grant that a case does not get now.
func (f *Found) Avoids(i int) []string {
	avoid := f.facts.Records[i].AvoidNodes
	if len(avoid) > 0 {
		if _, again := slices.BinarySearch(f.again, i); again {
			return nil
		}
	}
	return avoid
}

// Spec returns the requirements of a case on its nodes, without those that it avoids.
func (f *Found) Spec(i int) place.Spec { return spec(f.facts, i, f.Can[i].Gate, f.Avoids(i)) }

// SpecAnywhere returns the same with the nodes that it avoids.
func (f *Found) SpecAnywhere(i int) place.Spec { return spec(f.facts, i, f.Can[i].Gate, nil) }

// spec returns the requirements of a case, with the partitions of a gate (nil = all), on other nodes than those to avoid.
func spec(facts *round.Facts, i int, gate *round.Gate, avoid []string) place.Spec {
	c, r := &facts.Snapshot.Cases[i], &facts.Records[i]
	j := &c.Job
	exclude := j.Exclude
	if len(avoid) > 0 {
		exclude = append(slices.Clone(j.Exclude), avoid...)
	}
	request, partitions := j.Request, j.Partitions
	if cluster.Brackets(request.Features) {
		request.Features = ""
	}
	if gate != nil {
		partitions = gate.Partitions
		if gate.MaxNodes > 0 && (request.MaxNodes == 0 || request.MaxNodes > gate.MaxNodes) {
			request.MaxNodes = gate.MaxNodes
		}
	}
	limit := facts.Limit(i)
	if j.MinLimit > 0 && (limit == 0 || limit > j.MinLimit) {
		limit = j.MinLimit // Slurm's backfill shortens it to end before a reservation
	}
	return place.Spec{Request: request, Partitions: partitions, Require: r.UserNodes, Others: true, Exclude: exclude,
		Account: j.Account, User: j.User, Limit: limit}
}

// IdleOnly reports whether a waiting job takes only idle GPUs: its last grants did not start, or those of jobs like
// it, or it asks for that.
func (f *Found) IdleOnly(i int) bool {
	hints := f.facts.Snapshot.Cases[i].Job.Hints
	return !f.facts.Cases[i].Runs && (f.Can[i].Probes == round.IdleProbe || f.facts.Now < lease.MayDisplace(&f.facts.Records[i], f.facts.Settings.Term) || hints != nil && hints.Idle)
}

// Wants returns the GPUs that a job holds if it runs, else those that it counts for.
func (f *Found) Wants(i int) cluster.MicroGPU {
	if st := &f.facts.Cases[i]; st.Runs {
		return st.Held
	}
	return f.Can[i].GPUs
}

// Weight returns a job's weight inside its tenant, in thousandths.
func Weight(facts *round.Facts, i int) int64 {
	for _, w := range facts.Settings.JobWeights {
		if w.QOS == facts.Snapshot.Cases[i].Job.QOS {
			return max(w.Milli, 1)
		}
	}
	return 1000
}
