package budget

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// longRun is how many intervals a job must have run to count as long while it still runs.
const longRun = 2

// getsLong reports whether a run that began at start has lasted for longRun intervals since the last round.
func getsLong(b *round.Facts, start cluster.Instant) bool {
	long := start.Add(longRun * b.Settings.Interval)
	return b.Snapshot.Ledger.At < long && long <= b.Now
}

// brief counts a job as short or long once: when it has ended, or when it has run for longRun intervals.
func (o *observer) brief(i int) {
	c, r := &o.a.in.Snapshot.Cases[i], &o.a.in.Records[i]
	j, interval := &c.Job, o.a.in.Settings.Interval
	if j.Start == 0 || interval <= 0 {
		return
	}
	switch {
	case o.a.in.Cases[i].Runs && getsLong(o.a.in, j.Start):
		o.briefly(j, o.a.in.Now.Sub(j.Start), false)
	case j.Outcome == "CANCELLED": // nobody knows how long it would have run
	case r.Done != 0 && c.Record.Done == 0 && j.State == cluster.Done && j.End >= j.Start:
		// A longer run was counted before, unless it passed that moment between two looks.
		if ran := max(j.End.Sub(j.Start), r.Ran); ran < longRun*interval || o.a.in.Snapshot.Ledger.At < j.Start.Add(longRun*interval) {
			o.briefly(j, ran, ran <= interval)
		}
	}
}

func (o *observer) briefly(j *cluster.Job, ran cluster.Span, short bool) {
	like := groups(j)
	for _, g := range like[:2] {
		if g.GPUs > 0 {
			o.a.habits.Briefly(g, o.a.in.Now, ran, short)
		}
	}
}

// Brief returns the run time that is expected of a job if nine of ten jobs like it ended within a round's interval: jobs
// of its type, or of its user with as many GPUs where none of its type has ended or too few of them are known to be short.
func Brief(a *Account, i int) (ran cluster.Span, short bool) {
	h := habit(a, i)
	if ran, short, known := stop.Short(h); known {
		return ran, short
	}
	if h != nil && h.Brief == nil && (h.Completed > 0 || len(h.Needed) > 0) {
		return 0, false
	}
	j := &a.in.Snapshot.Cases[i].Job
	ran, short, _ = stop.Short(a.habits.At(a.habits.Find(cluster.JobType{User: j.User, GPUs: j.Request.Size.Devices})))
	return ran, short
}

// AnyBrief reports whether any jobs were short.
func AnyBrief(a *Account) bool {
	for k := range a.habits.Len() {
		if a.habits.At(int32(k)).Brief != nil {
			return true
		}
	}
	return false
}
