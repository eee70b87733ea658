package budget

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Signal returns the signal of a notice to a running job, and the processes that get it; "" = none is sent: see
// signalled.
func (a *Account) Signal(i int) (signal, to string) {
	j, b := &a.in.Snapshot.Cases[i].Job, a.stopBase(i)
	if !a.signalled(j, b, a.in.Now.Sub(j.Start)) {
		return "", ""
	}
	if s := &j.Declares; s.Signal != "" {
		return s.Signal, cmp.Or(s.SignalTo, a.in.Settings.SignalTo)
	}
	if r := signalRule(a.in.Settings, j); r != nil {
		return r.Signal, r.To
	}
	return a.in.Settings.Signal, a.in.Settings.SignalTo
}

// Notice returns the length of the notice that a job gets. If the time that its save takes is known, it is that time
// and half of it, and two rounds: one until the decision is carried out, and one until the end is seen. The settings
// bound it. A lease whose notice was given keeps its length.
func (a *Account) Notice(i int) cluster.Span {
	if a.in.Settings.NoticeMax == 0 {
		return a.in.Settings.Notice
	}
	if l := a.leases[i]; l != nil && l.State == cluster.Noticed {
		return l.NoticeIn(a.in.Settings)
	}
	return noticeFor(a.in.Settings, a.stopBase(i).saving)
}

// noticeFor returns the notice of a job that saves in a way.
func noticeFor(set *cluster.Settings, s *cluster.Saving) cluster.Span {
	if set.NoticeMax == 0 || s.Takes == 0 || s.Manner == cluster.SavesNever {
		return set.Notice
	}
	return min(max(s.Takes+s.Takes/2+2*set.Interval, set.NoticeMin), set.NoticeMax)
}

// SavesAtEnd reports whether a job writes a save when its lease ends.
func (a *Account) SavesAtEnd(i int) bool {
	m := a.stopBase(i).saving.Manner
	return m == cluster.SavesOnNotice || m == cluster.SavesOnTerm
}

// signalled reports whether a job gets a signal with its notice after a run time. A signal without a handler
// kills the process, and Slurm does not requeue the job then. So the job must have asked for a signal, or be
// matched by a rule for signals, or save on the notice: by its own declaration, whatever was observed, or by the
// best evidence. It must not have asked for notices without one. A job that is still starting has neither a handler nor anything to save.
func (a *Account) signalled(j *cluster.Job, b *stopBase, ran cluster.Span) bool {
	return ran >= b.begin && j.Declares.Signal != cluster.NoSignal && (j.Declares.Signal != "" || signalRule(a.in.Settings, j) != nil || j.Declares.Manner == cluster.SavesOnNotice || b.saving.Manner == cluster.SavesOnNotice)
}

// signalRule returns the first rule for signals that matches a job; nil = none does.
func signalRule(set *cluster.Settings, j *cluster.Job) *cluster.SignalRule {
	k := slices.IndexFunc(set.Signals, func(r cluster.SignalRule) bool {
		return (r.Partition == "" || slices.Contains(j.Partitions, r.Partition)) &&
			(r.QOS == "" || r.QOS == j.QOS) && (r.Account == "" || r.Account == j.Account)
	})
	if k < 0 {
		return nil
	}
	return &set.Signals[k]
}
