package sim

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// minJobAge is how long Slurm lists a job that is done.
const minJobAge = 5 * cluster.Minute

// list is the jobs in a look, with their last reported state.
type list struct {
	jobs  []*work       // by id: later jobs have higher ones
	rows  []cluster.Job // of jobs
	dirty []*work       // jobs whose row is out of date
	done  []*work       // ended jobs, by end
	gone  []int         // buffer
	looks int64
}

func (l *list) add(j *work) {
	j.listed = true
	l.jobs, l.rows = append(l.jobs, j), append(l.rows, cluster.Job{ID: j.job.ID})
}

// row gives the index of a job's row.
func (l *list) row(j *work) int {
	return sort.Search(len(l.rows), func(i int) bool { return l.rows[i].ID.Compare(j.job.ID) >= 0 })
}

// touch marks a job as changed.
func (v *Virtual) touch(j *work) {
	if !j.dirty && j.listed {
		j.dirty = true
		v.list.dirty = append(v.list.dirty, j)
	}
}

// refresh updates the rows.
func (l *list) refresh(now cluster.Instant) {
	l.looks++
	suspended := l.dirty[:0]
	for _, j := range l.dirty {
		row := &l.rows[l.row(j)]
		*row = j.job
		row.Version, j.dirty = l.looks, false
		if j.job.State == cluster.Suspended { // its suspension goes on
			row.Suspend += now.Sub(j.paused)
			j.dirty, suspended = true, append(suspended, j)
		}
	}
	clear(l.dirty[len(suspended):])
	l.dirty = suspended
}

// unlist drops jobs that ended long ago.
func (v *Virtual) unlist() {
	l := &v.list
	gone := l.gone[:0]
	for len(gone) < len(l.done) && v.now.Sub(l.done[len(gone)].job.End) >= minJobAge {
		j := l.done[len(gone)]
		if v.Forget {
			delete(v.jobs, j.job.ID)
		}
		gone, j.listed = append(gone, l.row(j)), false
	}
	if l.gone = gone; len(gone) == 0 {
		return
	}
	clear(l.done[:len(gone)])
	l.done = l.done[len(gone):]
	slices.Sort(gone)
	kept := gone[0]
	for k, row := range gone {
		next := len(l.rows)
		if k+1 < len(gone) {
			next = gone[k+1]
		}
		copy(l.jobs[kept:], l.jobs[row+1:next])
		kept += copy(l.rows[kept:], l.rows[row+1:next])
	}
	clear(l.jobs[kept:])
	clear(l.rows[kept:])
	l.jobs, l.rows = l.jobs[:kept], l.rows[:kept]
}

// Observe implements loop.Cluster.
func (v *Virtual) Observe(_ context.Context, since cluster.Instant) (cluster.Observation, error) {
	v.Advance(v.now)
	v.list.refresh(v.now)
	v.unlist()
	s := cluster.Observation{Now: v.now, Cluster: "virtual", Nodes: v.nodes, NodesVersion: v.nodesVersion, Partitions: v.partitions, Accounts: v.accounts,
		Reservations: v.reservations.all, Limits: v.rules.limits, Jobs: v.list.rows, Unchanged: !v.changed}
	s.Limits.Read = v.now
	if v.License > 0 {
		s.License = cluster.License{Name: "fairlease", Total: v.License}
		if v.locked() {
			s.License.Reserved = v.License
		}
	}
	if !v.Lend {
		s.NodesVersion = 0
		s.Nodes, s.Partitions, s.Accounts = slices.Clone(s.Nodes), slices.Clone(s.Partitions), slices.Clone(s.Accounts)
		s.Reservations, s.Jobs = slices.Clone(s.Reservations), slices.Clone(s.Jobs)
		for i := range s.Jobs { // they may be modified
			s.Jobs[i].Version = 0
		}
	}
	v.changed = false
	s.Progress = v.report()
	if since > 0 {
		first := v.firstAttempt(since)
		if v.History || v.now.Sub(since) > minJobAge/2 {
			s.Attempts = slices.Clone(v.attempts[first:])
		}
		if v.Forget {
			v.attempts = v.attempts[first:]
		}
	}
	return s, nil
}

// report gives the progress of all running jobs when it is due, and of jobs that report a save.
func (v *Virtual) report() []cluster.Progress {
	jobs := v.savers
	v.savers = v.savers[:0]
	if v.Reports > 0 && v.now >= v.reported.Add(v.Reports) {
		v.reported, jobs = v.now, v.list.jobs
	}
	var out []cluster.Progress
	for _, j := range jobs {
		j.saver = false
		if j.job.State != cluster.Running {
			continue
		}
		p := j.pace.walk(j.progress, v.now)
		r := cluster.Progress{Job: j.job.ID, Steps: float64(p.done) / float64(amountOf(cluster.Second)), At: v.now}
		if v.ReportSaves && j.selfSaves() {
			r.Saved = p.kept
		}
		out = append(out, r)
	}
	return out
}

// selfSaves tells whether a job saves without a signal.
func (j *work) selfSaves() bool { return j.Saves == Periodic || j.Saves == EachTerm }

// tells gives when a running job will report a save; 0 = never.
func (v *Virtual) tells(j *work) cluster.Instant {
	if !v.ReportSaves || !j.selfSaves() {
		return 0
	}
	return j.pace.nextSave(j.progress)
}

// saves records that a running job's save is due.
func (v *Virtual) saves(j *work) {
	j.progress = j.pace.walk(j.progress, v.now)
	if j.progress.kept == v.now {
		if v.changed = true; !j.saver {
			v.savers, j.saver = append(v.savers, j), true
		}
	}
	v.plan(j)
}

// firstAttempt gives the index of the first attempt that ended at since or later.
func (v *Virtual) firstAttempt(since cluster.Instant) int {
	i, _ := slices.BinarySearchFunc(v.attempts, since, func(a cluster.Attempt, t cluster.Instant) int { return cmp.Compare(a.End, t) })
	return i
}
