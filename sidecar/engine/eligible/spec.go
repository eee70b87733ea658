package eligible

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Spec returns the requirements of a job on its nodes. The next grant avoids the nodes of a grant that has
// just failed.
func Spec(b *round.Books, i int) place.Spec {
	c, r := &b.In.Snapshot.Cases[i], &b.Records[i]
	j := &c.Job
	exclude := j.Exclude
	if len(r.AvoidNodes) > 0 {
		exclude = append(slices.Clone(j.Exclude), r.AvoidNodes...)
	}
	request, partitions := j.Request, j.Partitions
	if request.Brackets() {
		request.Features = ""
	}
	if g := b.Jobs[i].Can.Gate; g != nil {
		partitions = g.Partitions
		if g.MaxNodes > 0 && (request.MaxNodes == 0 || request.MaxNodes > g.MaxNodes) {
			request.MaxNodes = g.MaxNodes
		}
	}
	limit := b.Limit(i)
	if j.MinLimit > 0 && (limit == 0 || limit > j.MinLimit) {
		limit = j.MinLimit // Slurm's backfill shortens it to end before a reservation
	}
	return place.Spec{Request: request, Partitions: partitions, Require: r.UserNodes, Exclude: exclude,
		Account: j.Account, User: j.User, Limit: limit}
}

// Weight returns a job's weight inside its tenant, in thousandths.
func Weight(b *round.Books, i int) int64 {
	for _, w := range b.In.Settings.JobWeights {
		if w.QOS == b.In.Snapshot.Cases[i].Job.QOS {
			return max(w.Milli, 1)
		}
	}
	return 1000
}

// IdleOnly reports whether a waiting job takes only idle GPUs: its last grants did not start, or those of jobs like
// it, or it asks for that.
func IdleOnly(b *round.Books, i int) bool {
	hints := b.In.Snapshot.Cases[i].Job.Hints
	return !b.Jobs[i].Is.Runs && (b.Jobs[i].Can.Probes == round.IdleProbe || b.In.Now < lease.MayDisplace(&b.Records[i], b.In.Settings.Term) || hints != nil && hints.Idle)
}
