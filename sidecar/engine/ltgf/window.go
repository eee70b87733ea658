package ltgf

import (
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// cuts is the number of buckets of the window. The window slides by buckets, so rho covers it to
// within 1/cuts.
const cuts = 56

// bucket books what was received and due in (from, now] into the window and drops what has left it. A
// time over several buckets is split exactly.
func bucket(t *cluster.TenantPool, from, now cluster.Instant, got cluster.Bucket, window cluster.Span) {
	if window <= 0 {
		return
	}
	width := max(cluster.Instant(window)/cuts, 1)
	if oldest := now - cluster.Instant(window); from < oldest {
		got = part(got, now-oldest, now-from)
		from = oldest
	}
	for from < now {
		start := from - from%width
		end := min(start+width, now)
		piece := got
		if end < now {
			piece = part(got, end-from, now-from)
			got = plus(got, piece, -1)
		}
		if n := len(t.Buckets); n > 0 && t.Buckets[n-1].Start == start {
			t.Buckets[n-1] = plus(t.Buckets[n-1], piece, 1)
		} else if piece != (cluster.Bucket{}) {
			piece.Start = start
			t.Buckets = append(t.Buckets, piece)
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
		b := &t.Buckets[k]
		off := min(wasted, b.Alloc)
		b.Extra -= ofPart(b.Extra, off, b.Alloc)
		b.Alloc -= off
		wasted -= off
	}
}

// part gives the part of a bucket for n of all units of time.
func part(b cluster.Bucket, n, all cluster.Instant) cluster.Bucket {
	of := func(g cluster.GPUTime) cluster.GPUTime { return ofPart(g, cluster.GPUTime(n), cluster.GPUTime(all)) }
	return cluster.Bucket{Start: b.Start, Alloc: of(b.Alloc), Due: of(b.Due), Extra: of(b.Extra), ExtraDue: of(b.ExtraDue)}
}

// ofPart gives the part of g, of either sign, that n is of all; all of g if n is at least all.
func ofPart(g, n, all cluster.GPUTime) cluster.GPUTime {
	if n >= all {
		return g
	}
	return cluster.GPUTime(Portion(int64(g), int64(n), int64(all)))
}

// plus adds sign times the amounts of another bucket.
func plus(b, o cluster.Bucket, sign cluster.GPUTime) cluster.Bucket {
	b.Alloc, b.Due = b.Alloc+sign*o.Alloc, b.Due+sign*o.Due
	b.Extra, b.ExtraDue = b.Extra+sign*o.Extra, b.ExtraDue+sign*o.ExtraDue
	return b
}

// Rho gives a tenant's fairness degree over the window (ASTRAEA eq. 12 with eq. 8), in work: all that it received in
// the given pools over all that it was due there. With a half-life, older time counts less: the sums themselves do not
// decay and are only weighted here, without rounding.
func Rho(pools []cluster.TenantPool, now cluster.Instant, halfLife cluster.Span) cluster.Rho {
	var alloc, due cluster.GPUTime
	for i := range pools {
		for _, b := range pools[i].Buckets {
			received, owed := b.Alloc+b.Extra, b.Due+b.ExtraDue
			if halfLife > 0 {
				w := weight(now.Sub(b.Start), halfLife)
				received = cluster.GPUTime(cluster.MulDiv(int64(received), w, weightOne))
				owed = cluster.GPUTime(cluster.MulDiv(int64(owed), w, weightOne))
			}
			alloc, due = alloc+received, due+owed
		}
	}
	return cluster.RhoOf(alloc, due)
}

// RhoAll gives a tenant's fairness degree since the beginning, as Rho does over the window.
func RhoAll(pools []cluster.TenantPool) cluster.Rho {
	var alloc, due cluster.GPUTime
	for i := range pools {
		t := &pools[i]
		alloc, due = alloc+t.Alloc+t.Extra.Alloc, due+t.Due+t.Extra.Due
	}
	return cluster.RhoOf(alloc, due)
}

const weightOne = 1 << 30

// weight gives 2^(-age/halfLife) in units of 1/weightOne.
func weight(age, halfLife cluster.Span) int64 {
	return int64(math.Round(weightOne * math.Exp2(-float64(age)/float64(halfLife))))
}
