package eligible

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Jobs behind another lease wait with their gates open for at most patience intervals. They were chosen to start within
// one. A holder that runs for longRun intervals is not short, whatever jobs like it did.
const (
	patience = 3
	longRun  = 2
)

// Patience returns the moment up to which a job may wait behind another lease.
func Patience(in *round.Facts, l *cluster.Lease) cluster.Instant {
	return l.Granted.Add(patience * in.Settings.Interval)
}

// revokeBehind ends leases behind others that do not get their turn: the job before them turns out long, its lease is about
// to end, its GPUs are kept for another job, or it has no lease any more. The jobs have no back-off.
func revokeBehind(f *Found) {
	for i, l := range f.Leases {
		if l == nil || l.Behind == 0 {
			continue
		}
		if why := stuck(f, l); why != "" {
			f.revoke(i, why)
		}
	}
}

// stuck says why a job behind another lease gets no turn; "" = it does.
func stuck(f *Found, l *cluster.Lease) string {
	in := f.facts
	before := in.Find(l.Behind)
	if before < 0 || f.Leases[before] == nil || f.Leases[before].Behind != 0 {
		return "the job before it lost its lease"
	}
	name, holder, st := in.Records[before].ID, f.Leases[before], &in.Cases[before]
	switch {
	case st.Runs && in.Now.Sub(in.Snapshot.Cases[before].Job.Start) >= longRun*in.Settings.Interval, Patience(in, l) <= in.Now:
		return fmt.Sprintf("job %s before it runs for longer than jobs like it", name)
	case holder.State == cluster.Noticed || holder.State == cluster.Ending || holder.Why == round.Recalled:
		return fmt.Sprintf("the lease of job %s before it ends", name)
	case slices.ContainsFunc(in.Snapshot.Claims, func(cl cluster.Claim) bool {
		return slices.ContainsFunc(cl.Nodes, func(h cluster.Holding) bool { return h.Node == l.Nodes[0].Node })
	}):
		return fmt.Sprintf("GPUs of %s are kept for another job", l.Nodes[0].Node)
	}
	return ""
}

// behind reports whether a case's lease was behind another one at the last look.
func behind(in *round.Facts, i int) bool {
	k, ok := slices.BinarySearchFunc(in.Snapshot.Leases, in.Records[i].Key, func(l cluster.Lease, key cluster.JobKey) int { return cmp.Compare(l.Job, key) })
	return ok && in.Snapshot.Leases[k].Behind != 0
}
