package baseline

import (
	"cmp"
	"slices"
)

// newThemis makes Themis (Mahajan et al., NSDI'20) for gangs, as in ASTRAEA's evaluation
// (§6.1.5). A job's finish-time fairness is
//
//	rho = T / (T* N)                                           (ASTRAEA §4.1, Themis §3)
//
// T being its estimated time from submission to end if it had its GPUs from now on, T*
// the time that it takes alone, N the number of jobs, which is the same for all of
// them. Whenever leases end the GPUs are auctioned: those whose rho is worst bid first and
// win, which minimises the greatest rho.
//
// Themis offers GPUs only to the worst 1 - f of the jobs and gives what is left over to
// the others at random; here the others stand in the same order, so that nothing
// depends on f or on chance. A gang cannot bid for a part of its GPUs, so there is one bid
// a job. It is told how long jobs run, where somebody can tell; ASTRAEA gives it
// "a reasonable estimation error rate".
func newThemis(o Options) rule {
	return func(r *round) {
		r.upForRenewal()
		line := r.contenders()
		rho := make([]float64, len(r.jobs))
		for _, k := range line {
			j := &r.jobs[k]
			remaining := r.remaining(j, o.Runs)
			age := r.now.Sub(r.Records[j.at].First)
			rho[k] = float64(age+remaining) / float64(r.ran(j)+remaining)
		}
		slices.SortStableFunc(line, func(a, b int) int { return cmp.Compare(rho[b], rho[a]) })
		r.contest(line)
	}
}
