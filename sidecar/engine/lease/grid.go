package lease

import "github.com/fairlease/fairlease/sidecar/cluster"

// Next returns the end of a lease that starts at t: the next boundary of the grid at which the lease has its
// minimum length and is longer than the notice. A lease thus never gets its notice as it begins.
func Next(t cluster.Instant, s *cluster.Settings) cluster.Instant {
	return From(t.Add(max(s.MinLease, s.Notice+1)), s.Term)
}

// From returns the first boundary of the grid from t on.
func From(t cluster.Instant, term cluster.Span) cluster.Instant {
	grid := cluster.Instant(term)
	return (t + grid - 1) / grid * grid
}
