package ltgf

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// hours of a window cut into buckets of one hour each.
const hours = cuts

func (r *ring) book(from, to cluster.Span, used, due cluster.GPUTime) {
	bucket(&r.TenantPool, r.zero.Add(from), r.zero.Add(to), cluster.Bucket{Alloc: used, Due: due}, hours*cluster.Hour)
}

// ring is a tenant whose window is looked at; zero is an edge of a bucket.
type ring struct {
	cluster.TenantPool
	zero cluster.Instant
}

func newRing() *ring { return &ring{zero: begin - begin%cluster.Instant(cluster.Hour)} }

func (r *ring) sum() (alloc, due cluster.GPUTime) {
	for _, b := range r.Buckets {
		alloc, due = alloc+b.Alloc, due+b.Due
	}
	return alloc, due
}

func TestAStretchWithinABucket(t *testing.T) {
	r := newRing()
	r.book(10*minute, 20*minute, 600, 1200)
	r.book(20*minute, 60*minute, 100, 0) // ends on the edge
	if len(r.Buckets) != 1 || r.Buckets[0] != (cluster.Bucket{Start: r.zero, Alloc: 700, Due: 1200}) {
		t.Errorf("buckets %+v", r.Buckets)
	}
	r.book(60*minute, 61*minute, 7, 7) // begins on the edge
	if len(r.Buckets) != 2 || r.Buckets[1] != (cluster.Bucket{Start: r.zero.Add(cluster.Hour), Alloc: 7, Due: 7}) {
		t.Errorf("buckets %+v", r.Buckets)
	}
	r.book(61*minute, 3*cluster.Hour, 0, 0) // nothing happened: no bucket
	if len(r.Buckets) != 2 {
		t.Errorf("%d buckets, want 2: nothing happened since", len(r.Buckets))
	}
}

// A stretch over several buckets splits by time, and exactly: nothing is lost to
// rounding, whatever the numbers.
func TestAStretchOverSeveralBucketsSplitsExactly(t *testing.T) {
	r := newRing()
	const used, due = 1_000_000_007, 7
	r.book(30*minute, 4*cluster.Hour+15*minute, used, due)
	if alloc, d := r.sum(); alloc != used || d != due {
		t.Errorf("the buckets hold %d and %d, want %d and %d", alloc, d, used, due)
	}
	if len(r.Buckets) != 5 {
		t.Fatalf("%d buckets, want 5", len(r.Buckets))
	}
	for i, b := range r.Buckets[1:4] { // whole hours of 3.75
		if want := cluster.GPUTime(used * 4 / 15); b.Alloc < want-1 || b.Alloc > want+1 {
			t.Errorf("hour %d has %d, want %d", i+1, b.Alloc, want)
		}
	}
}

func TestOldTimeLeavesTheWindow(t *testing.T) {
	r := newRing()
	for h := range 200 {
		r.book(cluster.Span(h)*cluster.Hour, cluster.Span(h+1)*cluster.Hour, 60, 120)
	}
	if len(r.Buckets) > hours+1 {
		t.Errorf("%d buckets, want no more than %d", len(r.Buckets), hours+1)
	}
	if alloc, due := r.sum(); alloc != 60*hours || due != 120*hours {
		t.Errorf("the window holds %d and %d, want its last %d hours: %d and %d", alloc, due, hours, 60*hours, 120*hours)
	}
	// A time longer than the window counts only inside it.
	r = newRing()
	r.book(0, 2*hours*cluster.Hour, 2*hours*100, 2*hours*100)
	if alloc, _ := r.sum(); alloc != hours*100 {
		t.Errorf("the window holds %d, want the younger half of the stretch: %d", alloc, hours*100)
	}
	// Long after, nothing is left.
	r.book(10*hours*cluster.Hour, 10*hours*cluster.Hour+minute, 0, 0)
	if len(r.Buckets) != 0 {
		t.Errorf("%d buckets are left of a time long gone", len(r.Buckets))
	}
}

func TestWithoutAWindowNothingIsKept(t *testing.T) {
	var row cluster.TenantPool
	bucket(&row, begin, begin.Add(cluster.Hour), cluster.Bucket{Alloc: 1, Due: 1}, 0)
	if len(row.Buckets) != 0 {
		t.Errorf("buckets %+v", row.Buckets)
	}
}

func TestHalfLife(t *testing.T) {
	r := newRing()
	r.Buckets = []cluster.Bucket{
		{Start: r.zero.Add(-2 * cluster.Hour), Alloc: 400, Due: 0},
		{Start: r.zero.Add(-cluster.Hour), Alloc: 0, Due: 400},
		{Start: r.zero, Alloc: 100, Due: 100},
	}
	if got := Rho([]cluster.TenantPool{r.TenantPool}, r.zero, 0); got != cluster.Fair {
		t.Errorf("without a half-life rho is %s, want 500/500", got)
	}
	// Halved by the hour: received 400/4 + 100, due 400/2 + 100.
	if got, want := Rho([]cluster.TenantPool{r.TenantPool}, r.zero, cluster.Hour), cluster.RhoOf(200, 300); got != want {
		t.Errorf("with a half-life of an hour rho is %s, want %s", got, want)
	}
}

// The bug of other schedulers: "usage rounded to nothing by a long half-life". Sums
// are never decayed, only weighed when rho is worked out.
func TestALongHalfLifeRoundsNothingAway(t *testing.T) {
	r := newRing()
	const step = 10 * second
	for i := range 6 * 60 {
		r.book(cluster.Span(i)*step, cluster.Span(i+1)*step, 1, 2) // a GPU-millisecond in ten seconds
	}
	now := r.zero.Add(cluster.Hour)
	for _, half := range []cluster.Span{0, cluster.Day, 365 * cluster.Day, 10_000 * cluster.Day} {
		if got := Rho([]cluster.TenantPool{r.TenantPool}, now, half); got < 499_000 || got > 501_000 {
			t.Errorf("half-life %s: rho %s, want 0.5", half, got)
		}
	}
	if alloc, due := r.sum(); alloc != 360 || due != 720 {
		t.Errorf("the sums are %d and %d, want 360 and 720", alloc, due)
	}
	// Nor does a short one overflow or divide by nothing.
	if got := Rho([]cluster.TenantPool{r.TenantPool}, now.Add(1000*cluster.Day), cluster.Hour); got != 0 {
		t.Errorf("after 24,000 half-lives rho is %s, want that of a new tenant", got)
	}
}
