package sim

import (
	"container/heap"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// agenda is the heap of jobs with a future event of their own, soonest first. Each is in it once.
type agenda []*work

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, k int) bool {
	if a[i].next != a[k].next {
		return a[i].next < a[k].next
	}
	return a[i].job.ID.Compare(a[k].job.ID) < 0
}
func (a agenda) Swap(i, k int) {
	a[i], a[k] = a[k], a[i]
	a[i].slot, a[k].slot = i, k
}

// Push implements heap.Interface.
func (a *agenda) Push(j any) {
	w := j.(*work)
	w.slot = len(*a)
	*a = append(*a, w)
}

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	w := (*a)[last]
	(*a)[last], w.slot = nil, -1
	*a = (*a)[:last]
	return w
}

// plan recomputes the next event of a job.
func (v *Virtual) plan(j *work) {
	v.touch(j)
	j.next = 0
	switch j.job.State {
	case cluster.Running:
		j.next = j.ends()
		if at := v.tells(j); at != 0 {
			j.next = min(j.next, at)
		}
	case cluster.Completing:
		j.next = j.completes
	case cluster.Waiting:
		if j.joined > 0 {
			j.next = j.pace.finish(j.progress)
		} else if j.job.Eligible > v.now {
			j.next = j.job.Eligible
		}
	}
	if j.Cancel > 0 && j.job.State != cluster.Done && (j.next == 0 || j.Cancel < j.next) {
		j.next = j.Cancel
	}
	switch {
	case j.next == 0 && j.slot >= 0:
		heap.Remove(&v.agenda, j.slot)
	case j.next != 0 && j.slot >= 0:
		heap.Fix(&v.agenda, j.slot)
	case j.next != 0:
		heap.Push(&v.agenda, j)
	}
}

// Advance lets time pass until to.
func (v *Virtual) Advance(to cluster.Instant) {
	v.step(v.now)
	for next := v.nextEvent(); next != 0 && next <= to; next = v.nextEvent() {
		v.step(next)
	}
	v.now = max(v.now, to)
}

// nextEvent gives the moment of the next event; 0 = never.
func (v *Virtual) nextEvent() cluster.Instant {
	var next cluster.Instant
	at := func(t cluster.Instant) {
		if next == 0 || t < next {
			next = t
		}
	}
	if len(v.agenda) > 0 {
		at(v.agenda[0].next)
	}
	for i := range v.reservations.all {
		at(v.reservations.all[i].End)
	}
	if len(v.outages) > 0 {
		at(v.outages[0].at)
	}
	if v.feed.more {
		at(v.feed.next.At)
	}
	return next
}

// step processes the events of the moment at, and starts the jobs that can start then.
func (v *Virtual) step(at cluster.Instant) {
	v.now = max(v.now, at)
	for len(v.agenda) > 0 && v.agenda[0].next <= v.now {
		v.happen(v.agenda[0])
	}
	v.dropReservations(func(r cluster.Reservation) bool { return r.End <= v.now })
	for len(v.outages) > 0 && v.outages[0].at <= v.now {
		o := v.outages[0]
		v.outages = v.outages[1:]
		v.SetNode(o.node, o.bad)
	}
	for v.feed.more && v.feed.next.At <= v.now {
		v.Submit(v.feed.next.Work)
		v.feed.next, v.feed.more = v.feed.pull()
	}
	v.schedule()
}

// happen processes a job's next event.
func (v *Virtual) happen(j *work) {
	switch {
	case j.Cancel > 0 && j.Cancel <= v.now:
		v.finish(j, "CANCELLED")
	case j.job.State == cluster.Running && v.now < j.ends():
		v.saves(j)
	case j.job.State == cluster.Running || j.joined > 0:
		v.finish(j, j.verdict(v.now))
	case j.job.State == cluster.Completing:
		v.complete(j)
	default: // its gate has expired
		v.plan(j)
		v.queue.add(j)
	}
}
