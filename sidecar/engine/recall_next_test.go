package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// Where nothing happens but that time goes by, a lease is recalled at the first moment that it
// may be: rounds are made only when the last plan says so. Tenant a's lease of two GPUs has ten
// minutes to go, and b wants one; both are due one.
func TestRecallsComeInTime(t *testing.T) {
	for name, c := range map[string]struct {
		had, owedA, owedB cluster.Span // since a's job started; by time at one GPU
		want              cluster.Span // from now
	}{
		"the shortest lease":          {3 * minute, 0, hour, 2 * minute},
		"what is left of both leases": {term, 0, 18 * minute, 40 * second},
		"a is not ahead yet":          {term, 30 * minute, 29 * minute, 7 * minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := boundary(2)
			s.Settings.MinLease, s.Settings.Threshold, s.Settings.RecallFirst = 5*minute, 5*minute, true
			s.Cases = []cluster.Case{runsOn(1, "a", 2, "n01"), waits(2, "b", 1)}
			s.Cases[0].Job.Start = s.Now.Add(-c.had)
			s.Leases = []cluster.Lease{leaseOf(&s, 0)}
			s.Leases[0].End = s.Now.Add(10 * minute)
			owe(&s, "a", cluster.Times(1, c.owedA))
			owe(&s, "b", cluster.Times(1, c.owedB))
			begin := s.Now
			p := engine.Decide(s)
			for !slices.Equal(holders(p), []cluster.JobKey{2}) && p.Next > s.Now {
				s = after(&s, p, p.Next.Sub(s.Now))
				p = engine.Decide(s)
			}
			if at := s.Now.Sub(begin); at < c.want || at > c.want+10 {
				t.Errorf("recalled after %s, want %s", at, c.want)
			}
		})
	}
}
