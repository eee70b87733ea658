package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"cmp"
	"slices"
)

// newThemis makes Themis (Mahajan et al., NSDI'20) for gangs, as in ASTRAEA's evaluation
// (§6.1.5). A job's finish-time fairness is
//
//	rho = T / (T* N)                                           (ASTRAEA §4.1, Themis §3)
//
// T is its estimated time from submission to end if it had its GPUs from now on, T* the time that
// it takes alone, and N the number of jobs, which is equal for all. Whenever leases end the GPUs
// are auctioned: jobs with the worst rho bid first and win, which minimises the maximum rho.
//
// Themis offers GPUs only to the worst 1 - f of the jobs and gives the rest to the others at
// random. Here the others have the same order, so that nothing depends on f or on chance. A gang
// cannot bid for a part of its GPUs, so there is one bid per job. Run times are those of
// Options.Runs; ASTRAEA assumes "a reasonable estimation error rate".
func newThemis(o baseline.Options) rule {
	return func(r *round) {
		r.UpForRenewal()
		line := r.Contenders()
		rho := make([]float64, len(r.Jobs))
		for _, k := range line {
			j := &r.Jobs[k]
			remaining := r.remaining(j, o.Runs)
			age := r.Now.Sub(r.Field.Can[j.Case].First)
			rho[k] = float64(age+remaining) / float64(r.ran(j)+remaining)
		}
		slices.SortStableFunc(line, func(a, b int) int { return cmp.Compare(rho[b], rho[a]) })
		r.Contest(line)
	}
}
