package place

import "github.com/fairlease/fairlease/sidecar/cluster"

// attempt is a tried placement of a shape: the pool of a lease, its end, and its right to displace. Fields that make no difference are zero.
type attempt struct {
	pool, displace, spares, sharer int
	stops, together, near          bool
	end                            cluster.Instant // the last claim of nodes that ends before the lease does
	before                         int             // see endsBefore
}

// attempts are those that failed on a board, by shape; shapes that differ in their time limits only are one. Placements and renewals leave less room for others: they fail again.
type attempts struct {
	round  int // counts up when jobs that did not fit may fit: lists of earlier rounds are void
	rounds []int
	failed [][]attempt
}

// has reports whether an attempt failed before.
func (x *attempts) has(shape int, a attempt) bool {
	if shape >= len(x.failed) || x.rounds[shape] != x.round {
		return false
	}
	for _, b := range x.failed[shape] {
		if a == b {
			return true
		}
	}
	return false
}

// add records a failed attempt.
func (x *attempts) add(shape int, a attempt) {
	for shape >= len(x.failed) {
		x.failed, x.rounds = append(x.failed, nil), append(x.rounds, -1)
	}
	if x.rounds[shape] != x.round {
		x.rounds[shape], x.failed[shape] = x.round, x.failed[shape][:0]
	}
	x.failed[shape] = append(x.failed[shape], a)
}

// Retry forgets the attempts that failed on a board: time has passed, and reservations of others may let jobs run elsewhere.
func Retry(b *Board) { b.tried.round++ }

// attemptOf gives the attempt of an ask.
func attemptOf(b *Board, a Ask) attempt {
	x := attempt{pool: a.Pool, displace: a.Displace, spares: a.Spares, stops: a.Stops, together: a.Together, near: a.Near, before: endsBefore(b, a)}
	if b.tried.alive == 0 {
		x.displace, x.spares = Nobodys, 0
	}
	if b.site.specs[a.Shape].Request.Shards > 0 {
		x.sharer = a.Sharer
	}
	if !b.tried.gathers {
		x.stops = false
	}
	for _, at := range b.tried.claims {
		if at < a.End {
			x.end = max(x.end, at)
		}
	}
	return x
}

// endsBefore counts the claims, and the starts and ends of reservations, before which a gang ends by its time limit. No more of a limit makes a
// difference to its place.
func endsBefore(b *Board, a Ask) (n int) {
	limit := b.site.specs[a.Shape].Limit
	if limit == 0 {
		return 0
	}
	end := a.Now.Add(limit)
	for _, at := range b.tried.claims {
		if end <= at {
			n++
		}
	}
	if !b.view.Reserved {
		return n
	}
	for i := range b.site.foreign {
		for _, at := range []cluster.Instant{b.site.foreign[i].Start, b.site.foreign[i].End} {
			if end <= at {
				n++
			}
		}
	}
	return n
}

// Asked is the part of an ask that makes a difference on a board as it is: equal ones have the same place.
type Asked struct {
	ask    Ask
	before int // see endsBefore
}

// AskedOf returns that of an ask.
func AskedOf(b *Board, a Ask) Asked {
	x := Asked{a, endsBefore(b, a)}
	x.ask.Shape = b.site.specs[a.Shape].base
	return x
}

// tooFew reports whether a pool has fewer idle and soft GPUs than an ask wants.
func tooFew(b *Board, a Ask) bool {
	r := &b.site.specs[a.Shape].Request
	return !r.Exclusive && r.Shards == 0 && b.tried.most[a.Pool] < r.Size.Devices
}
