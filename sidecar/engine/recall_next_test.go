package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// Only time passes here, and a lease is still recalled at the first moment allowed: rounds are made only when
// the last plan asks for them. Tenant a's lease of two GPUs has ten minutes left, and b wants one. Both are
// due one.
func TestRecallsComeInTime(t *testing.T) {
	for name, c := range map[string]struct {
		had, owedA, owedB cluster.Span // since a's job started; as time at one GPU
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

// A job gets notice of a recall and keeps its GPUs, because no job wants them any more. When it loses them
// later, the reason is not the recall.
func TestARecallThatIsNotCarriedOut(t *testing.T) {
	w, runs, waits := contested(t)
	w.Settings.RecallFirst, w.Settings.RecallNotice = true, 20*second
	w.Run(w.Settings.MinLease - 50*second)
	told := w.done(cluster.Notify)
	if len(told) != 1 || !slices.Contains(runs, told[0].ID) || w.lease(told[0].ID).Why != "recalled" {
		t.Fatalf("notices: %+v", told)
	}
	for _, id := range waits {
		w.Cancel(id)
	}
	w.Run(minute)
	if l := w.lease(told[0].ID); l == nil || l.State != cluster.Active || l.Why != "" {
		t.Errorf("the lease is %+v", l)
	}
}

// A job that is requeued after the notice of its recall has the recall as its reason until its GPUs are free.
func TestARecallIsCalledSoToItsEnd(t *testing.T) {
	for _, notice := range []cluster.Span{0, 20 * second} {
		s := boundary(2)
		s.Settings.Notice, s.Settings.RecallFirst, s.Settings.RecallNotice = minute, true, notice
		s.Cases = []cluster.Case{runsOn(1, "a", 2, "n01"), waits(2, "b", 1)}
		s.Leases = []cluster.Lease{leaseOf(&s, 0)}
		s.Leases[0].End = s.Now.Add(10 * minute)
		owe(&s, "a", 0)
		owe(&s, "b", cluster.Times(1, hour))
		p := engine.Decide(s)
		for _, span := range []cluster.Span{notice, second} {
			s = after(&s, p, span)
			p = engine.Decide(s)
			if code := p.Statuses[0].Reason.Code; code != cluster.ReasonRecalled {
				t.Errorf("notice %s: the word on the job is %s", notice, code)
			}
		}
	}
}

// Leases renewed at a boundary were weighed against all waiting jobs. A second decision at the same moment
// recalls none of them; only the next round may. Tenant a has twice its entitlement through jobs that are
// never reclaimed. Its new job thus exceeds the burst limit, where it may displace no other.
func TestNoRecallOfWhatIsRenewedNow(t *testing.T) {
	s := boundary(4)
	s.Settings.RecallFirst, s.Settings.NewSharePercent, s.Settings.BurstMaxMilli = true, 50, 1000
	for key := range cluster.JobKey(4) {
		s.Cases = append(s.Cases, runsOn(key+1, "a", 1, "n01"))
		s.Cases[key].Control = cluster.NoReclaim
		s.Leases = append(s.Leases, leaseOf(&s, int(key)))
	}
	s.Cases[3].Control = cluster.FullControl
	s.Cases = append(s.Cases, waits(5, "a", 1))
	p := engine.Decide(s)
	for _, c := range []struct {
		after cluster.Span
		want  []cluster.JobKey
	}{{0, []cluster.JobKey{1, 2, 3, 4}}, {s.Settings.Interval, []cluster.JobKey{1, 2, 3, 5}}} {
		s = after(&s, p, c.after)
		if p = engine.Decide(s); !slices.Equal(holders(p), c.want) {
			t.Errorf("%s after the boundary there are leases for %v, want %v", c.after, holders(p), c.want)
		}
	}
}
