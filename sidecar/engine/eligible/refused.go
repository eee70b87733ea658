package eligible

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// refused is the classes of jobs that Slurm does not start, in one round.
type refused struct {
	causes  []cluster.Cause
	first   []int   // by tenant: its first cause; one more than tenants
	members [][]int // by cause: cases that could be granted a lease now
	stands  []int   // by cause: grants that have not started
	waits   []bool  // by cause: a job of the class waits
}

// open takes the causes of a round, which it may change.
func (x *refused) open(causes []cluster.Cause, tenants []string) {
	x.causes = causes
	if len(causes) == 0 {
		return
	}
	n := len(causes)
	x.first = slices.Grow(x.first[:0], len(tenants)+1)
	at := 0
	for _, t := range tenants {
		for at < n && causes[at].Tenant < t {
			at++
		}
		x.first = append(x.first, at)
	}
	for at < n && len(tenants) > 0 && causes[at].Tenant == tenants[len(tenants)-1] {
		at++
	}
	x.first = append(x.first, at)
	x.members = slices.Grow(x.members[:0], n)[:n]
	for k := range x.members {
		x.members[k] = x.members[k][:0]
	}
	x.stands, x.waits = make([]int, n), make([]bool, n)
}

// of calls f for every class of a job.
func (x *refused) of(f *Nodes, i int, do func(k int)) {
	t := f.in.Cases[i].Tenant
	if len(x.causes) == 0 || t < 0 {
		return
	}
	for k := x.first[t]; k < x.first[t+1]; k++ {
		if lease.Concerns(&x.causes[k], &f.in.Snapshot.Cases[i]) {
			do(k)
		}
	}
}

// see notes a job that waits. A job of a class that gets no grants now is not eligible.
func (x *refused) see(f *Nodes, i int) {
	st, can, granted := &f.in.Cases[i], &f.found.Can[i], f.found.Leases[i] != nil && f.found.Leases[i].State == cluster.Granted
	if !st.Waits {
		return
	}
	member := -1
	x.of(f, i, func(k int) {
		c := &x.causes[k]
		if x.waits[k] = true; granted {
			x.stands[k]++
		} else if can.Eligible && c.Admits > 0 && (member < 0 || c.Admits < x.causes[member].Admits) {
			member = k
		}
	})
	if member < 0 {
		return
	}
	closed := member
	x.of(f, i, func(k int) {
		if x.causes[k].Until > x.causes[closed].Until {
			closed = k
		}
	})
	if x.causes[closed].Until > f.in.Now {
		x.refuse(f, i, closed, 0)
		return
	}
	x.members[member] = append(x.members[member], i)
}

// seeRunning notes a job that runs. Where jobs of its class were requeued at their start, its grant stands until it has stayed.
func (x *refused) seeRunning(f *Nodes, i int) {
	if l := f.found.Leases[i]; l != nil && f.in.Now < lease.Lasts(l, &f.in.Snapshot.Cases[i].Job, f.in.Snapshot) {
		x.of(f, i, func(k int) {
			if x.causes[k].Reason == cluster.RequeuedAtStart {
				x.stands[k]++
			}
		})
	}
}

// refuse leaves a job out of the round, since Slurm does not start jobs of its class. probe is the job of the class that is
// granted or tried now; 0 = none.
func (x *refused) refuse(f *Nodes, i, k int, probe cluster.JobKey) {
	can, c := &f.found.Can[i], &x.causes[k]
	can.Eligible, can.Why, can.Note, can.Until, can.For = false, cluster.ReasonRefused, c.Reason, max(c.Until, 0), cmp.Or(probe, c.Last)
	if c.Until <= f.in.Now {
		can.Until = 0
	}
}

// thin leaves as many jobs of each class eligible as it admits: those whose grants failed least, then the smallest. A job
// of several classes needs a place in each of them.
func (x *refused) thin(f *Nodes) {
	if len(x.causes) == 0 {
		return
	}
	left := make([]int, len(x.causes)) // places, by cause
	for k := range x.causes {
		if left[k] = max(x.causes[k].Admits-x.stands[k], 0); x.causes[k].Admits == 0 {
			left[k] = len(f.in.Cases)
		}
	}
	for k := range x.causes {
		c, list := &x.causes[k], x.members[k]
		slices.SortFunc(list, func(a, b int) int {
			return cmp.Or(cmp.Compare(f.in.Records[a].Failed, f.in.Records[b].Failed), cmp.Compare(f.found.Can[a].GPUs, f.found.Can[b].GPUs), cmp.Compare(a, b))
		})
		probe, rest := cluster.JobKey(0), list[:0]
		for _, i := range list {
			if !x.takes(f, i, left) {
				rest = append(rest, i)
				continue
			}
			if f.found.Can[i].Probes = round.IdleProbe; c.Admits == 1 && f.in.Now >= lease.MayDisplaceFor(c, f.in.Settings.Term) {
				f.found.Can[i].Probes = round.TermProbe
			}
			probe = cmp.Or(probe, f.in.Records[i].Key)
		}
		for _, i := range rest {
			x.refuse(f, i, k, probe)
		}
	}
}

// takes takes a place for a job in each of its classes, if all have one left.
func (x *refused) takes(f *Nodes, i int, left []int) bool {
	room := true
	x.of(f, i, func(k int) { room = room && left[k] > 0 })
	if room {
		x.of(f, i, func(k int) { left[k]-- })
	}
	return room
}

// Causes returns the causes to remember, with the time since when no job of a class waits.
func (f *Nodes) Causes() []cluster.Cause {
	x := &f.refused
	for k := range x.causes {
		switch c := &x.causes[k]; {
		case x.waits[k]:
			c.Empty = 0
		case c.Empty == 0:
			c.Empty = f.in.Now
		}
	}
	return x.causes
}
