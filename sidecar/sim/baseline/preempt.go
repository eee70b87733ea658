package baseline

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Settings of slurm.conf for fair preemption: PreemptExemptTime, and the default of PriorityCalcPeriod.
const (
	exemptTime = 15 * cluster.Minute
	calcPeriod = 5 * cluster.Minute
)

// newPreempt makes Slurm's own fair preemption, which needs no program beside Slurm: slurm-multifactor with
//
//	PreemptType=preempt/qos  PreemptMode=REQUEUE,WITHIN  PriorityFlags=CALCULATE_RUNNING  PreemptExemptTime=00:15:00
//
// A job that cannot start has running jobs of lower priority requeued that have run for the exempt time, the lowest first. There is
// no notice: a job that saves on SIGTERM saves, others lose what they did since their last save.
//
// Priorities are updated every PriorityCalcPeriod, since the swings follow it: the jobs of a user have one fair-share factor, so all
// of them lose their GPUs as soon as its usage is higher. As in slurm-multifactor, a job that cannot start even so has a claim on whole
// nodes, and every job is tried for backfill.
func newPreempt(Options) Rule {
	tree := &fairTree{period: calcPeriod}
	return func(r *Round) {
		tree.charge(r)
		calc := cluster.Instant(calcPeriod)
		r.next = (r.Now/calc + 1) * calc
		for k := range r.Jobs {
			if j := &r.Jobs[k]; j.Lease != nil && j.Runs && j.Movable && j.Lease.State == cluster.Active {
				if from := r.Snapshot.Cases[j.Case].Job.Start.Add(exemptTime); from > r.Now {
					r.next = min(r.next, from)
				} else {
					j.Soft = true
				}
			}
		}
		r.Hold()
		r.Board.Await(len(r.Snapshot.Cases))
		line := byPriority(r, tree)
		for rank, k := range line {
			if j := &r.Jobs[k]; j.Soft {
				r.Board.Soften(j.Case, j.Tenant, rank, r.Now, r.Holds(j), 0)
			}
		}
		kept := make([]cluster.Instant, r.Pools)
		for _, k := range line {
			j := &r.Jobs[k]
			waits := slices.ContainsFunc(j.Pools, func(p int) bool { return kept[p] > 0 })
			switch {
			case j.Soft:
				if !r.Board.Renew(j.Case) {
					r.Field.Reclaim(j.Case)
				}
			case r.backfill(j, kept), waits:
			case r.Displace(j, 0, nil) < 0:
				r.keep(j, kept)
			}
		}
	}
}
