package lease

import "github.com/fairlease/fairlease/sidecar/cluster"

// Next returns the end of a lease that starts at t: the next boundary of the grid at which the lease has its
// minimum length and is longer than the notice. A lease thus never gets its notice as it begins.
func Next(t cluster.Instant, s *cluster.Settings) cluster.Instant {
	term := cluster.Instant(s.Term)
	end := t - t%term + term
	if short := t.Add(max(s.MinLease, s.Notice+1)) - end; short > 0 {
		end += (short + term - 1) / term * term
	}
	return end
}
