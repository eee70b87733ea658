package lease

import "github.com/fairlease/fairlease/sidecar/cluster"

// Next gives the end of a lease that starts at t: the next boundary of the
// grid, or the first after it that is no shorter than the minimum lease and longer
// than the notice: nobody is told the end of a lease as it begins.
func Next(t cluster.Instant, s *cluster.Settings) cluster.Instant {
	term := cluster.Instant(s.Term)
	end := t - t%term + term
	if short := t.Add(max(s.MinLease, s.Notice+1)) - end; short > 0 {
		end += (short + term - 1) / term * term
	}
	return end
}
