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
func newPreempt(Options) rule {
	tree := &fairTree{period: calcPeriod}
	return func(r *round) {
		tree.charge(r)
		calc := cluster.Instant(calcPeriod)
		r.next = (r.now/calc + 1) * calc
		for k := range r.jobs {
			if j := &r.jobs[k]; j.lease != nil && j.runs && j.movable && j.lease.State == cluster.Active {
				if from := r.s.Cases[j.at].Job.Start.Add(exemptTime); from > r.now {
					r.next = min(r.next, from)
				} else {
					j.soft = true
				}
			}
		}
		r.hold()
		r.board.Await(len(r.s.Cases))
		line := byPriority(r, tree)
		for rank, k := range line {
			if j := &r.jobs[k]; j.soft {
				r.board.Soften(j.at, j.tenant, rank, r.now, r.holds(j))
			}
		}
		kept := make([]cluster.Instant, r.pools)
		for _, k := range line {
			j := &r.jobs[k]
			waits := slices.ContainsFunc(j.pools, func(p int) bool { return kept[p] > 0 })
			switch {
			case j.soft:
				if !r.board.Renew(j.at) {
					r.f.Reclaim(j.at)
				}
			case r.backfill(j, kept), waits:
			case r.displace(j, 0, nil) < 0:
				r.keep(j, kept)
			}
		}
	}
}
