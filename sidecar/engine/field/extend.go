package field

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Extend marks the jobs that may be stopped when their leases end. A job whose owner opened its gate may be, whatever that costs
// it, until it has had its turn. It postpones the end of other leases until
// their jobs may be stopped, or by a term if that is never. A lease whose term is over ends as soon as its
// job may be stopped. A lease that expired while fairlease was away ends after a notice: no job is reclaimed
// without one. It also counts the GPUs that young jobs need.
func Extend(f *Field) {
	in, a, rule := f.In, f.Stops, f.Stops.Rule()
	for i, l := range f.Hand.Leases {
		if l == nil {
			continue
		}
		opened := a.Opened(i)
		if l.Adopted && l.Granted == in.Now && !opened {
			l.End = max(l.End, a.Boundary(i, in.Now))
		}
		st, owes, mark, notice := &in.Cases[i], &a.Owes[i], &f.Hand.Marks[i], a.Notice(i)
		soon := in.Now.Add(notice)
		if l.State == cluster.Active {
			if l.Notice = notice; notice == in.Settings.Notice {
				l.Notice = 0
			}
		}
		switch {
		case l.State == cluster.Granted:
			if in.Configures(i) && !opened { // its term begins when its job does
				l.End = max(l.End, a.EndFor(i, in.Now))
			}
			mark.Stoppable = !a.Binds(i, l.End)
			continue
		case l.State == cluster.Active && l.End <= in.Now && st.Runs && st.Control == cluster.FullControl && !st.Ordered(cluster.Exempt):
			l.End = soon
		}
		if mark.Stoppable = opened || rule.Off() || l.State != cluster.Active || l.Why == round.Recalled || st.Ordered(cluster.Freeze); mark.Stoppable {
			if rule.Off() && l.State == cluster.Active && l.Why != round.Recalled && l.End <= soon && !opened && !st.Ordered(cluster.Freeze) && f.Hourly.Spent(i) {
				f.Hourly.hold(i)
				f.Prolong(i, a.EndFor(i, max(l.End, in.Now)))
			}
			continue
		}
		j := a.Stop(i)
		if l.End > soon && a.Boundary(i, max(l.Start, l.Granted)) <= in.Now && j.May(rule, soon, notice) {
			l.End = soon
		}
		mark.Stoppable = !owes.Dear && j.May(rule, max(l.End, in.Now), notice)
		if l.End <= soon && (!mark.Stoppable || f.Hourly.Spent(i)) {
			if mark.Stoppable {
				f.Hourly.hold(i)
			}
			f.Prolong(i, a.EndFor(i, max(l.End, in.Now)))
			mark.Stoppable = !owes.Dear && j.May(rule, l.End, notice)
		}
	}
	f.Hand.Young = budget.Youth(a, f.Due.Ledger.Tenants)
}
