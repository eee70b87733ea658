package sim

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/kinds"
)

// Work is a job's request and behaviour.
type Work struct {
	Name, User, Account, QOS, Partition string
	Comment                             string // of its user
	Command                             string // identifies jobs of a type
	Line, Dir                           string // how it was submitted, and where; see package kinds
	Request                             cluster.Request
	Runs                                cluster.Span // work, as time on the reference model
	Outcome                             string       // final state after its work; "" = COMPLETED
	Kind                                string       // of work: with the GPUs a Task of Speeds
	Limit                               cluster.Span
	MinLimit                            cluster.Span    // Slurm may start it with a time limit as short as this; its limit stays as it is here
	Deadline                            cluster.Instant // reported only: no job is killed for it
	Begin                               cluster.Instant
	Cancel                              cluster.Instant // when its user cancels it; 0 = never
	NodeList                            []string
	NoRequeue, Interactive, Locked      bool // Locked: it requests the licence of gates
	Saves                               Saves
	Every                               cluster.Span // of Periodic: between two saves
	Costs                               *Costs       // nil = the cluster's
}

// work is a job in the virtual cluster.
type work struct {
	Work
	job      cluster.Job
	array    *array // of a waiting task without its own record
	counted  user   // as what its use counts while it runs
	priority int64

	pace      pace
	progress  progress
	before    amount // work done before the current attempt
	received  cluster.GPUTime
	completes cluster.Instant // end of COMPLETING

	sliced bool            // it asks for shards, or holds them, instead of its GPU
	paused cluster.Instant // since when it is suspended

	host, guest *work           // sharing its GPUs; nil = none
	joined      cluster.Instant // start of its current time as a guest; 0 = none

	next   cluster.Instant // its next event; 0 = never
	slot   int             // in the agenda, -1 = not there
	listed bool            // in the list
	dirty  bool            // changed since the last look
	saver  bool            // in savers
	queued bool            // in the queue
	fresh  bool            // not tried since it changed
}

// array is the tasks of one record of Slurm: those that wait and have never been changed singly.
// They share one gate.
type array struct{ tasks []*work }

// ends gives when a running job will have done its work or reached its limit.
func (j *work) ends() cluster.Instant {
	end := j.pace.finish(j.progress)
	if j.job.Limit > 0 {
		end = min(end, j.job.Start.Add(j.job.Limit+j.job.Suspend))
	}
	return end
}

// verdict gives the outcome of a running job that ends by itself now.
func (j *work) verdict(now cluster.Instant) string {
	switch {
	case j.pace.walk(j.progress, now).done < j.pace.goal:
		return "TIMEOUT"
	case j.Outcome != "":
		return j.Outcome
	}
	return "COMPLETED"
}

// Submit queues a job and gives its id.
func (v *Virtual) Submit(w Work) cluster.JobID {
	id := cluster.JobID{ID: v.nextID}
	v.nextID++
	v.submit(id, &w, nil)
	return id
}

// SubmitArray queues n equal tasks. As in Slurm one record stands for all that wait: a task gets
// its own record when it starts or is changed singly; the last one keeps the array's.
func (v *Virtual) SubmitArray(w Work, n int) []cluster.JobID {
	base := v.nextID
	v.nextID++
	all := &array{}
	ids := make([]cluster.JobID, n)
	for i := range ids {
		ids[i] = cluster.TaskID(base, int32(i))
		v.submit(ids[i], &w, all)
		all.tasks[i].job.UnsplitArray = n > 1
	}
	return ids
}

func (v *Virtual) submit(id cluster.JobID, w *Work, of *array) {
	w.User, w.Account, w.QOS, w.Partition = v.intern(w.User), v.intern(w.Account), v.intern(w.QOS), v.intern(w.Partition)
	j := &work{Work: *w, array: of, slot: -1, job: cluster.Job{
		ID: id, Record: id.ID, Name: w.Name, Hints: cluster.ParseHints(w.Comment, 0), Command: w.Command, Work: kinds.Command{Line: w.Line, Dir: w.Dir}.Label(), User: w.User, Account: w.Account, QOS: w.QOS,
		Partitions: []string{w.Partition}, State: cluster.Waiting, Batch: !w.Interactive,
		Requeueable: !w.NoRequeue, Request: w.Request, Submit: v.now, Eligible: max(w.Begin, v.now),
		Limit: w.Limit, MinLimit: w.MinLimit, Deadline: w.Deadline, NodeList: slices.Clone(w.NodeList),
	}}
	j.job.Declares, j.job.Ask = declared(w, v), oneGPU(&j.job)
	j.job.Locked = w.Locked
	switch {
	case v.Gate > 0 && j.job.Batch && v.License > 0:
		j.job.Locked = true
	case v.Gate > 0 && j.job.Batch:
		j.job.Marked, j.job.MarkedBegin = true, w.Begin
		j.job.Eligible = max(w.Begin, v.now.Add(v.Gate))
	}
	j.pace = pace{Costs: v.Costs, saves: w.Saves, every: w.Every, goal: amountOf(w.Runs), speed: Reference}
	if w.Costs != nil {
		j.pace.Costs = *w.Costs
	}
	if w.Saves == EachTerm {
		j.pace.every = v.Term
	}
	if of != nil {
		of.tasks = append(of.tasks, j)
	}
	v.jobs[id] = j
	v.list.add(j)
	v.live++
	v.tell(Event{At: v.now, What: Submitted, Job: id, Work: &j.Work})
	v.moved(j)
}

// declared gives a job's declaration of how it saves: the truth, and nothing for a job that does
// not save.
func declared(w *Work, v *Virtual) cluster.Saving {
	c := &v.Costs
	if w.Costs != nil {
		c = w.Costs
	}
	s := cluster.Saving{Takes: c.Save, Source: cluster.FromDeclaration}
	switch w.Saves {
	case Always:
		s.Manner = cluster.SavesOnTerm
	case AtEnd:
		if s.Manner = cluster.SavesOnTerm; c.Save > killWait {
			s.Manner = cluster.SavesOnNotice
		}
	case AtNotice:
		s.Manner = cluster.SavesOnNotice
	case EachTerm:
		s.Manner, s.Every = cluster.SavesEvery, v.Term
	case Periodic:
		s.Manner, s.Every = cluster.SavesEvery, w.Every
	case OnTerm:
		if s.Manner = cluster.SavesOnTerm; c.Save > killWait {
			return cluster.Saving{} // it is killed before its save is complete
		}
	case Never:
		return cluster.Saving{}
	}
	return s
}

// moved records that a waiting job has changed: it may be able to start.
func (v *Virtual) moved(j *work) {
	v.plan(j)
	v.queue.add(j)
	v.changed = true
}

// split gives a task its own record.
func (v *Virtual) split(j *work) {
	a := j.array
	if a == nil {
		return
	}
	j.array, j.job.UnsplitArray = nil, false
	a.tasks = slices.DeleteFunc(a.tasks, func(o *work) bool { return o == j })
	switch len(a.tasks) {
	case 0:
		return
	case 1:
		a.tasks[0].job.UnsplitArray = false
		v.touch(a.tasks[0])
	}
	j.job.Record = v.nextID
	v.nextID++
}

// Cancel ends a job for good.
func (v *Virtual) Cancel(id cluster.JobID) { v.finish(v.jobs[id], "CANCELLED") }

// Requeue is a requeue by others.
func (v *Virtual) Requeue(id cluster.JobID) { v.requeue(v.jobs[id], false, true) }

// Update lets a job's owner change its record, as with scontrol update.
func (v *Virtual) Update(id cluster.JobID, change func(*cluster.Job)) {
	j := v.jobs[id]
	v.split(j)
	change(&j.job)
	if v.touch(j); j.job.State == cluster.Waiting {
		v.moved(j)
	}
	v.changed = true
}

// Hold holds or releases a waiting job, as its user may.
func (v *Virtual) Hold(id cluster.JobID, held bool) {
	j := v.jobs[id]
	v.split(j)
	j.job.Inactive = ""
	if held {
		j.job.Inactive = "held"
		v.part(j)
	}
	v.moved(j)
}

// TakeOff removes our licence from a waiting job's request, as its user may.
func (v *Virtual) TakeOff(id cluster.JobID) {
	j := v.jobs[id]
	v.split(j)
	j.job.Locked = false
	v.moved(j)
}

// SetBegin changes the begin time of a waiting job, as its user may.
func (v *Virtual) SetBegin(id cluster.JobID, begin cluster.Instant) {
	j := v.jobs[id]
	v.split(j)
	j.job.Eligible = max(begin, v.now)
	v.moved(j)
}

// Job gives a job's current state; an empty one if it was dropped.
func (v *Virtual) Job(id cluster.JobID) cluster.Job {
	if j := v.jobs[id]; j != nil {
		return j.job
	}
	return cluster.Job{}
}

// Progress gives the work that a job has done, as time on the reference model.
func (v *Virtual) Progress(id cluster.JobID) cluster.Span {
	j := v.jobs[id]
	if j.job.State == cluster.Running || j.joined > 0 {
		return j.pace.walk(j.progress, v.now).done.span()
	}
	return j.progress.done.span()
}

// Left gives a job's remaining work, as time on the reference model.
func (v *Virtual) Left(id cluster.JobID) cluster.Span { return v.jobs[id].Runs - v.Progress(id) }

// Speed gives the speed of a job on a model, on the fewest nodes.
func (v *Virtual) Speed(id cluster.JobID, model string) Speed {
	j := v.jobs[id]
	return v.Speeds.On(j.task(), model)
}

// Received gives the GPU time that a job has held so far: the truth for checks of a ledger.
func (v *Virtual) Received(id cluster.JobID) cluster.GPUTime {
	j := v.jobs[id]
	if j.job.State == cluster.Running || j.job.State == cluster.Suspended {
		return j.received + cluster.SizeHeld(j.job.Holds).Over(v.now.Sub(j.job.Start))
	}
	return j.received
}

// start runs a waiting job on holds.
func (v *Virtual) start(j *work, holds []cluster.Holding) {
	v.split(j)
	v.part(j)
	for i := range holds {
		v.free[v.at[holds[i].Node]].add(&holds[i], -1)
	}
	j.job.State, j.job.Start, j.job.Holds, j.job.PendingReason, j.job.Suspend = cluster.Running, v.now, holds, "", 0
	v.rules.count(j, 1)
	j.pace.speed = speedOn(v, j, holds)
	j.before = j.progress.done
	j.progress = j.pace.begin(j.progress, v.now)
	v.plan(j)
	v.changed = true
	v.tell(Event{At: v.now, What: Started, Job: j.job.ID, Work: &j.Work, Start: v.now, Holds: holds})
	v.meet(j)
	divide(v, j)
}

// stop ends the attempt of a running job and gives its event.
func (v *Virtual) stop(j *work, what What, outcome string) Event {
	if j.guest != nil {
		v.part(j.guest)
	}
	a := cluster.Attempt{ID: j.job.ID, User: j.job.User, Account: j.job.Account, Submit: j.job.Submit,
		Start: j.job.Start, End: v.now, GPUs: models(j.job.Holds), Outcome: outcome}
	v.attempts = append(v.attempts, a)
	v.rules.count(j, -1)
	v.queue.freed = v.queue.freed || v.rules.on // there may be room below a limit
	j.received += cluster.SizeHeld(j.job.Holds).Over(v.now.Sub(j.job.Start))
	e := v.over(j, what, j.job.Start, j.job.Holds, what == Requeued)
	e.Outcome = outcome
	return e
}

// over ends a time of work and gives its event; cut = it did not end by itself.
func (v *Virtual) over(j *work, what What, start cluster.Instant, holds []cluster.Holding, cut bool) Event {
	j.progress = j.pace.walk(j.progress, v.now)
	var lost amount
	if cut {
		j.progress, lost = j.pace.cut(j.progress)
	}
	p := &j.progress
	return Event{At: v.now, What: what, Job: j.job.ID, Work: &j.Work, Start: start, Holds: holds,
		Worked: p.done.span() - j.before.span(), Lost: lost.span(),
		Cold: p.spent[starting], Loading: p.spent[loading], Saving: p.spent[saving]}
}

// models sums holdings by model.
func models(holds []cluster.Holding) []cluster.ModelSize {
	var out []cluster.ModelSize
	for _, h := range holds {
		i := slices.IndexFunc(out, func(g cluster.ModelSize) bool { return g.Model == h.Model })
		if i < 0 {
			i, out = len(out), append(out, cluster.ModelSize{Model: h.Model})
		}
		out[i].Size = out[i].Size.And(h.Size)
	}
	return out
}

// finish ends a job; its GPUs become free at once.
func (v *Virtual) finish(j *work, outcome string) {
	if j.job.State == cluster.Done {
		return
	}
	resume(v, j)
	e := Event{At: v.now, What: Ended, Job: j.job.ID, Work: &j.Work, Outcome: outcome}
	if j.job.State == cluster.Running {
		e = v.stop(j, Ended, outcome)
	}
	v.leave(j)
	v.split(j)
	v.give(j)
	v.reserve(j, "")
	j.job.State, j.job.Outcome, j.job.End = cluster.Done, outcome, v.now
	v.plan(j)
	divide(v, j)
	v.list.done = append(v.list.done, j)
	v.live--
	v.changed = true
	v.tell(e)
}

// requeue requeues a running job, after it has cleaned up. warned = it has until SIGKILL;
// reclaimed = the loop requested it.
func (v *Virtual) requeue(j *work, reclaimed, warned bool) bool {
	resume(v, j)
	if j.job.State != cluster.Running {
		return false
	}
	saving := cluster.Span(0)
	if warned {
		j.progress, saving = j.pace.terminate(j.pace.walk(j.progress, v.now))
	}
	e := v.stop(j, Requeued, "REQUEUED")
	e.Reclaimed, e.Terminating = reclaimed, saving
	j.job.State, j.job.Eligible = cluster.Completing, v.now
	j.job.Restarts++
	j.completes = v.now.Add(max(j.pace.Completing, saving))
	v.plan(j)
	divide(v, j)
	v.changed = true
	v.tell(e)
	return true
}

// complete ends the COMPLETING of a requeued job.
func (v *Virtual) complete(j *work) {
	v.give(j)
	j.job.State, j.job.Submit, j.job.Holds, j.job.Start = cluster.Waiting, v.now, nil, 0
	if j.job.Eligible <= v.now {
		j.job.Eligible = v.now.Add(j.pace.RequeueDelay)
	}
	v.moved(j)
	if j.host != nil {
		v.meet(j.host)
	}
}

// give frees a job's resources.
func (v *Virtual) give(j *work) {
	if j.job.State != cluster.Running && j.job.State != cluster.Completing {
		return
	}
	for i := range j.job.Holds {
		v.free[v.at[j.job.Holds[i].Node]].add(&j.job.Holds[i], 1)
	}
	v.queue.freed = true
}

// reserve records the reservation that a job uses; "" = none.
func (v *Virtual) reserve(j *work, name string) {
	if v.touch(j); name == j.job.Reservation {
		return
	}
	v.holders[name]++
	if v.holders[j.job.Reservation]--; v.holders[j.job.Reservation] <= 0 {
		delete(v.holders, j.job.Reservation)
	}
	j.job.Reservation = name
}
