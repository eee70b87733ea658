package ltgf

import (
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// cuts is the number of buckets of the window. The window slides by buckets, so rho covers it to
// within 1/cuts.
const cuts = 56

// bucket books use and entitlement in (from, now] into the window and drops what has left it. A
// time over several buckets is split exactly.
func bucket(t *cluster.TenantPool, from, now cluster.Instant, used, due cluster.GPUTime, window cluster.Span) {
	if window <= 0 {
		return
	}
	width := max(cluster.Instant(window)/cuts, 1)
	if oldest := now - cluster.Instant(window); from < oldest {
		used, due = part(used, now-oldest, now-from), part(due, now-oldest, now-from)
		from = oldest
	}
	for from < now {
		start := from - from%width
		end := min(start+width, now)
		u, d := part(used, end-from, now-from), part(due, end-from, now-from)
		used, due = used-u, due-d
		if n := len(t.Buckets); n > 0 && t.Buckets[n-1].Start == start {
			t.Buckets[n-1].Alloc += u
			t.Buckets[n-1].Due += d
		} else if u != 0 || d != 0 {
			t.Buckets = append(t.Buckets, cluster.Bucket{Start: start, Alloc: u, Due: d})
		}
		from = end
	}
	gone := 0
	for gone < len(t.Buckets) && t.Buckets[gone].Start+width <= now-cluster.Instant(window) {
		gone++
	}
	t.Buckets = t.Buckets[gone:]
}

// unbucket subtracts a stop's loss from what was received in the window, newest first, since that
// is when it was received. Older time has left the window already.
func unbucket(t *cluster.TenantPool, wasted cluster.GPUTime) {
	for k := len(t.Buckets) - 1; k >= 0 && wasted > 0; k-- {
		off := min(wasted, t.Buckets[k].Alloc)
		t.Buckets[k].Alloc -= off
		wasted -= off
	}
}

// part gives the share of g for n of all units of time.
func part(g cluster.GPUTime, n, all cluster.Instant) cluster.GPUTime {
	if n >= all {
		return g
	}
	return cluster.GPUTime(cluster.MulDiv(int64(g), int64(n), int64(all)))
}

// Rho gives the tenant's fairness degree over the window (ASTRAEA eq. 12 with eq. 8). With a
// half-life, older time counts less: the sums themselves do not decay and are only weighted here,
// without rounding.
func Rho(t *cluster.TenantPool, now cluster.Instant, halfLife cluster.Span) cluster.Rho {
	var alloc, due cluster.GPUTime
	for _, b := range t.Buckets {
		if halfLife <= 0 {
			alloc, due = alloc+b.Alloc, due+b.Due
			continue
		}
		w := weight(now.Sub(b.Start), halfLife)
		alloc += cluster.GPUTime(cluster.MulDiv(int64(b.Alloc), w, weightOne))
		due += cluster.GPUTime(cluster.MulDiv(int64(b.Due), w, weightOne))
	}
	return cluster.RhoOf(alloc, due)
}

const weightOne = 1 << 30

// weight gives 2^(-age/halfLife) in units of 1/weightOne.
func weight(age, halfLife cluster.Span) int64 {
	return int64(math.Round(weightOne * math.Exp2(-float64(age)/float64(halfLife))))
}
