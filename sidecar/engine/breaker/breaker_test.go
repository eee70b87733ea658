package breaker

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const start = 1000 * cluster.Instant(cluster.Hour)

var auto = cluster.BreakerRule{FailedStarts: cluster.Bound{Auto: true}, LostWork: cluster.Bound{Auto: true}, Requeues: cluster.Bound{Auto: true},
	BadEnds: cluster.Bound{Auto: true}, Latency: cluster.Bound{Auto: true}}

func TestBounds(t *testing.T) {
	fixed := cluster.BreakerRule{FailedStarts: cluster.Bound{Max: 7}}
	shadow := cluster.Shadow{Observed: 10 * cluster.Hour, GPUs: cluster.CountOf(400)} // 40 of 100 GPUs in an hour
	for _, c := range []struct {
		name   string
		rule   cluster.BreakerRule
		kind   cluster.FaultKind
		usual  cluster.Usual
		gpus   int
		shadow cluster.Shadow
		want   int64
	}{
		{"a number", fixed, cluster.FailedStarts, cluster.Usual{}, 100, shadow, 7},
		{"off", fixed, cluster.BadEnds, cluster.Usual{}, 100, shadow, 0},
		{"starts by the size of the site", auto, cluster.FailedStarts, cluster.Usual{}, 100, shadow, 15},
		{"requeues, nothing observed", auto, cluster.Requeued, cluster.Usual{}, 40, shadow, 12},
		{"requeues, observed for less than an hour", auto, cluster.Requeued, cluster.Usual{Observed: cluster.Hour - 1, Requeues: 1000}, 40, shadow, 12},
		{"requeues, as observed", auto, cluster.Requeued, cluster.Usual{Observed: 2 * cluster.Hour, Requeues: 20}, 40, shadow, 40},
		{"requeues, fewer than the least", auto, cluster.Requeued, cluster.Usual{Observed: 2 * cluster.Hour, Requeues: 2}, 40, shadow, 12},
		{"bad ends, as observed", auto, cluster.BadEnds, cluster.Usual{Observed: cluster.Hour, BadEnds: 9}, 40, shadow, 36},
		{"work, nothing planned", auto, cluster.LostWork, cluster.Usual{}, 100, cluster.Shadow{}, 10 * int64(cluster.Hour)},
		{"work, as planned", auto, cluster.LostWork, cluster.Usual{}, 100, shadow, 4 * 40 * int64(15*cluster.Minute)},
		{"latency, less than an hour of looks", auto, cluster.Latency, cluster.Usual{Observed: cluster.Day, Looked: cluster.Hour - 1, Looks: 2, Took: 8 * cluster.Second}, 100, shadow, 0},
		{"latency, a number without looks", ruleOf(cluster.Latency, 7), cluster.Latency, cluster.Usual{}, 100, shadow, 7},
		{"latency, usually short", auto, cluster.Latency, cluster.Usual{Looked: cluster.Hour, Looks: 2, Took: 4 * cluster.Second}, 100, shadow, 10_000},
		{"latency, as usual", auto, cluster.Latency, cluster.Usual{Looked: cluster.Hour, Looks: 2, Took: 8 * cluster.Second}, 100, shadow, 16_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Bound(&c.rule, c.kind, &c.usual, &Site{GPUs: cluster.CountOf(c.gpus), Tenants: 2, Shadow: c.shadow, Allowance: 15 * cluster.Minute})
			if got != c.want {
				t.Errorf("the bound is %d, want %d", got, c.want)
			}
		})
	}
}

// site is a site whose rounds are decided by Next alone.
type site struct {
	cluster.Snapshot
	Site
	event string
}

func newSite(rule cluster.BreakerRule, tenants int) *site {
	s := &site{Site: Site{GPUs: cluster.CountOf(100), Tenants: tenants, Allowance: 15 * cluster.Minute}}
	s.Round, s.Now, s.Settings.Breaker = 1, start, rule
	return s
}

// next makes a round after a span.
func (s *site) next(after cluster.Span, observes bool, found ...cluster.Fault) {
	s.Ledger.At, s.Now, s.Round = s.Now, s.Now.Add(after), s.Round+1
	for k := range found {
		found[k].At, found[k].Observed = s.Now, observes
	}
	s.Breaker, s.event = Next(&s.Snapshot, &s.Site, found, observes)
}

// of makes faults of n jobs of a user, of one GPU minute where work is lost.
func of(kind cluster.FaultKind, tenant, user string, first, n int) (out []cluster.Fault) {
	amount := int64(1)
	if kind == cluster.LostWork {
		amount = int64(cluster.Minute)
	}
	for k := range n {
		out = append(out, cluster.Fault{Kind: kind, Job: cluster.JobKey(first + k), ID: cluster.JobID{ID: int64(first + k)}, Tenant: tenant, User: user, Amount: amount})
	}
	return out
}

func ruleOf(kind cluster.FaultKind, most int64) cluster.BreakerRule {
	var r cluster.BreakerRule
	r.Of(kind).Max = most
	return r
}

func TestEachKindTrips(t *testing.T) {
	for _, kind := range cluster.FaultKinds {
		t.Run(string(kind), func(t *testing.T) {
			most := int64(10)
			if kind == cluster.LostWork {
				most *= int64(cluster.Minute)
			}
			s := newSite(ruleOf(kind, most), 2)
			s.next(cluster.Minute, false, append(of(kind, "x", "u", 1, 5), of(kind, "y", "v", 101, 5)...)...)
			if s.Breaker.Trip != nil || s.event != "" {
				t.Fatalf("within the bound it trips: %+v", s.Breaker.Trip)
			}
			s.next(10*cluster.Minute, false, of(kind, "x", "u", 6, 1)...)
			trip := s.Breaker.Trip
			if trip == nil || trip.Kind != kind || trip.Round != s.Round || trip.Count <= most || trip.Bound != most || trip.Users != 2 || len(trip.Jobs) != 10 {
				t.Fatalf("beyond the bound: %+v", trip)
			}
			if !strings.Contains(s.event, "fairlease resume") || !strings.Contains(s.event, "breaker."+string(kind)) || !strings.Contains(s.event, "105") {
				t.Errorf("the event lacks its reason, its jobs or the way back: %s", s.event)
			}
			if s.Breaker.Faults != nil {
				t.Error("its evidence would trip it again after a resume")
			}
		})
	}
}

func TestFaultsCountForAnHour(t *testing.T) {
	s := newSite(ruleOf(cluster.FailedStarts, 10), 2)
	s.next(cluster.Minute, false, append(of(cluster.FailedStarts, "x", "u", 1, 5), of(cluster.FailedStarts, "y", "v", 101, 5)...)...)
	s.next(cluster.Hour, false, append(of(cluster.FailedStarts, "x", "u", 11, 5), of(cluster.FailedStarts, "y", "v", 111, 5)...)...)
	if s.Breaker.Trip != nil {
		t.Errorf("faults of two hours trip it: %+v", s.Breaker.Trip)
	}
}

// looks makes rounds of 10 s with looks that take a time, for a span or until the breaker trips, and gives the span.
func (s *site) looks(span, took cluster.Span, observes bool) (spent cluster.Span) {
	for ; spent < span && s.Breaker.Trip == nil; spent += 10 * cluster.Second {
		s.Latency = took
		s.next(10*cluster.Second, observes)
	}
	return spent
}

// A site that was always slow never trips, whether fairlease observed it first or not; one that becomes much slower trips within a quarter of an hour.
func TestLatencyTrips(t *testing.T) {
	for _, c := range []struct {
		observed           cluster.Span
		usual, much, bound cluster.Span
	}{
		{0, cluster.Second, 11 * cluster.Second, 10 * cluster.Second},
		{0, 60 * cluster.Second, 250 * cluster.Second, 240 * cluster.Second},
		{cluster.Day, 60 * cluster.Second, 250 * cluster.Second, 240 * cluster.Second},
	} {
		t.Run(fmt.Sprint(c.observed, c.usual), func(t *testing.T) {
			s := newSite(auto, 2)
			s.looks(c.observed, c.usual, true)
			if s.looks(2*cluster.Day, c.usual, false); s.Breaker.Trip != nil {
				t.Fatalf("looks as always trip it: %+v", s.Breaker.Trip)
			}
			spent := s.looks(cluster.Hour, c.much, false)
			if trip := s.Breaker.Trip; trip == nil || trip.Kind != cluster.Latency || trip.Bound != int64(c.bound) || spent < 10*cluster.Minute || spent > 16*cluster.Minute {
				t.Errorf("after %v with looks of %v: %+v", spent, c.much, trip)
			}
		})
	}
	s := newSite(auto, 2)
	for range 6 { // five minutes of each half hour
		s.looks(25*cluster.Minute, cluster.Second, false)
		s.looks(5*cluster.Minute, 30*cluster.Second, false)
	}
	if s.Breaker.Trip != nil {
		t.Errorf("looks that are slow for five minutes trip it: %+v", s.Breaker.Trip)
	}
}

// Each loss of a job counts for an hour: 1 GPU hour each 50 minutes is at most 4 of two users within an hour.
func TestLossesAge(t *testing.T) {
	s := newSite(ruleOf(cluster.LostWork, 10*int64(cluster.Hour)), 2)
	hour := func(tenant, user string, job int) []cluster.Fault {
		x := of(cluster.LostWork, tenant, user, job, 1)
		x[0].Amount = int64(cluster.Hour)
		return x
	}
	for range 20 {
		s.next(50*cluster.Minute, false, append(hour("x", "u", 1), hour("y", "v", 2)...)...)
		if s.Breaker.Trip != nil || len(s.Breaker.Faults) > 4 {
			t.Fatalf("two users who lose 1 GPU hour each 50 minutes: %+v", s.Breaker)
		}
	}
	for range 5 { // the jobs that lost before lose again: 4 + 10 GPU hours
		s.next(cluster.Minute, false, append(hour("x", "u", 1), hour("y", "v", 2)...)...)
	}
	if s.Breaker.Trip == nil {
		t.Errorf("more than 10 GPU hours within an hour do not trip it: %+v", s.Breaker.Faults)
	}
}

// crowd makes n faults of 100 users and tenants, which fairlease does not merely observe.
func crowd(kind cluster.FaultKind, first, n int) (out []cluster.Fault) {
	for k := range n {
		x := of(kind, fmt.Sprint("t", k%100), fmt.Sprint("u", k%100), first+k, 1)[0]
		x.At = start
		out = append(out, x)
	}
	return out
}

// However many faults a round finds, it takes one step for each, and keeps about one bound of each kind.
func TestManyFaultsInOneRound(t *testing.T) {
	s := newSite(auto, 100)
	s.GPUs = cluster.CountOf(4000)
	s.next(cluster.Minute, false, crowd(cluster.Requeued, 1, 20_000)...)
	if trip := s.Breaker.Trip; trip == nil || trip.Count <= 210 || trip.Users != 100 || len(trip.Jobs) != cluster.MostTripJobs {
		t.Errorf("20,000 requeues in one round: %+v", trip)
	}
	for _, n := range []int{5000, 20_000} {
		s := newSite(auto, 100)
		s.GPUs, s.Ledger.At = cluster.CountOf(4000), start
		var found []cluster.Fault
		for _, kind := range cluster.FaultKinds[2:] {
			found = append(found, crowd(kind, 1, n)...)
		}
		for range 3 {
			s.Breaker, _ = Next(&s.Snapshot, &s.Site, found, true)
		}
		if kept := len(s.Breaker.Faults); kept != 2*211 {
			t.Errorf("of %d faults of two kinds, each with a bound of 210, %d are kept", n, kept)
		}
	}
}

// Losses that are small are kept one by one up to a number, and then by user: none is forgotten, and the memory stays small.
func TestManySmallLosses(t *testing.T) {
	s := newSite(auto, 100)
	s.GPUs = cluster.CountOf(4000)
	for k := range 40 {
		s.next(10*cluster.Second, false, crowd(cluster.LostWork, 500*k, 500)...)
	}
	sum, last := int64(0), cluster.Instant(0)
	for _, x := range s.Breaker.Faults {
		if x.At < last {
			t.Fatal("the faults are not in the order of their times")
		}
		sum, last = sum+x.Amount, x.At
	}
	if n := len(s.Breaker.Faults); n < many || n > many+200 || sum != 20_000*int64(cluster.Minute) {
		t.Errorf("of 20,000 losses %d are kept, of %d GPU minutes", n, sum/int64(cluster.Minute))
	}
}

func BenchmarkManyFaults(b *testing.B) {
	for _, n := range []int{5000, 20_000, 80_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, found := newSite(auto, 100), crowd(cluster.Requeued, 1, n)
			s.GPUs = cluster.CountOf(4000)
			for b.Loop() {
				Next(&s.Snapshot, &s.Site, found, false)
			}
		})
	}
}

// Only an operator's word for that very trip closes the breaker: no time, no reload, no word for another trip.
func TestOnlyAnOperatorResumes(t *testing.T) {
	s := newSite(ruleOf(cluster.FailedStarts, 1), 2)
	s.next(cluster.Minute, false, append(of(cluster.FailedStarts, "x", "u", 1, 1), of(cluster.FailedStarts, "y", "v", 2, 1)...)...)
	trip := s.Breaker.Trip
	if trip == nil {
		t.Fatal("it has not tripped")
	}
	s.next(100*cluster.Day, true)
	s.Settings.Breaker = cluster.BreakerRule{}
	s.next(cluster.Minute, true)
	s.Settings.Breaker, s.Resumed = auto, cluster.GoAhead{Round: trip.Round - 1, By: "ann", Why: "mended"}
	s.next(cluster.Minute, true)
	if s.Breaker.Trip != trip {
		t.Fatalf("nobody resumed: %+v", s.Breaker)
	}
	s.Resumed.Round = trip.Round
	s.next(cluster.Minute, false)
	if s.Breaker.Trip != nil || !strings.Contains(s.event, "ann") || !strings.Contains(s.event, "mended") {
		t.Errorf("after the operator's word: %+v, %q", s.Breaker.Trip, s.event)
	}
}

// While fairlease only observes nothing trips, and a user counts once in five minutes for what is usual.
func TestWhatIsUsual(t *testing.T) {
	s := newSite(auto, 2)
	for k := range 12 * 60 {
		s.Latency = 2 * cluster.Second
		s.next(cluster.Minute, true, append(of(cluster.BadEnds, "x", "u", 1000*k, 100), of(cluster.Requeued, "y", "v", 1000*k+500, 1)...)...)
	}
	u := s.Breaker.Usual
	if s.Breaker.Trip != nil || len(s.Breaker.Faults) > 4 {
		t.Errorf("it trips, or remembers %d faults", len(s.Breaker.Faults))
	}
	if u.Observed != 12*cluster.Hour || u.BadEnds != 144 || u.Requeues != 144 || u.Looks != 715 || u.Took != 1430*cluster.Second || u.Looked != 12*cluster.Hour-5*cluster.Minute {
		t.Errorf("after 12 hours: %+v", u)
	}
	for range 30 * 24 {
		for range 12 {
			s.next(5*cluster.Minute, true)
		}
	}
	if u := &s.Breaker.Usual; u.Observed > usual || u.Looked > usual {
		t.Errorf("too much of the past counts: %+v", u)
	}
}

func kinds(t *rapid.T) cluster.FaultKind {
	return rapid.SampledFrom(cluster.FaultKinds).Draw(t, "kind")
}

// Whatever one user does, under any tenants and with any number of jobs, and whatever one tenant's users do where there are several: as long as
// the others stay below half of a bound, nothing trips. The memory stays small, too.
func TestNobodyTripsItAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind, most := kinds(t), int64(rapid.IntRange(1, 200).Draw(t, "bound"))
		if kind == cluster.LostWork {
			most *= int64(cluster.Minute)
		}
		byTenant := rapid.Bool().Draw(t, "a whole tenant")
		s, job, others := newSite(ruleOf(kind, most), 3), 0, int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			var found []cluster.Fault
			for range rapid.IntRange(0, 30).Draw(t, "bursts") {
				tenant, user := fmt.Sprint("t", rapid.IntRange(0, 2).Draw(t, "tenant")), "bad"
				if byTenant {
					tenant, user = "bad", fmt.Sprint("u", rapid.IntRange(0, 100).Draw(t, "user"))
				}
				n := rapid.IntRange(0, 20).Draw(t, "jobs")
				found = append(found, of(kind, tenant, user, job, n)...)
				job += rapid.SampledFrom([]int{0, n}).Draw(t, "the same jobs again")
			}
			if honest := of(kind, "good", fmt.Sprint("h", others), 1_000_000+job, 1); Share(most)+others+honest[0].Amount <= most && rapid.Bool().Draw(t, "another's") {
				others += honest[0].Amount
				found = append(found, honest...)
			}
			s.next(cluster.Span(rapid.IntRange(1, 600).Draw(t, "seconds"))*cluster.Second, false, found...)
			if s.Breaker.Trip != nil {
				t.Fatalf("one user or tenant has tripped it: %+v", s.Breaker.Trip)
			}
			if n := int64(len(s.Breaker.Faults)); kind != cluster.LostWork && n > most {
				t.Fatalf("%d faults are remembered, of a bound of %d", n, most)
			}
		}
	})
}

// Faults of enough users beyond the bound trip it in the round in which they are found.
func TestManyTripItAtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind, most := kinds(t), int64(rapid.IntRange(1, 100).Draw(t, "bound"))
		rule := ruleOf(kind, most)
		if kind == cluster.LostWork {
			rule = ruleOf(kind, most*int64(cluster.Minute))
		}
		s, tenants := newSite(rule, 4), rapid.IntRange(2, 4).Draw(t, "tenants with faults")
		for k, left := 0, int(most)+1; left > 0; k++ {
			if s.Breaker.Trip != nil {
				t.Fatalf("%d faults of a bound of %d trip it", k, most)
			}
			n := min(left, rapid.IntRange(1, 5).Draw(t, "a round's"))
			var found []cluster.Fault
			for i := range n { // in turn
				who := (int(most) + 1 - left + i) % tenants
				found = append(found, of(kind, fmt.Sprint("t", who), fmt.Sprint("u", who), 100*k+i, 1)...)
			}
			left -= n
			s.next(10*cluster.Second, false, found...)
		}
		if s.Breaker.Trip == nil || s.Breaker.Trip.Round != s.Round {
			t.Fatalf("it did not trip in the round in which the bound was passed: %+v", s.Breaker.Trip)
		}
	})
}
