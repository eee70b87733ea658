// Package sim runs the loop in pretend time on a virtual cluster.
package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Virtual is a cluster in pretend time that behaves as Slurm does as far as
// fairlease can tell: a job starts when its begin time has come and the nodes that
// it requires have room, a requeue takes a while to complete, a begin time that
// is not in the future when the requeue completes is lost to a delay of two
// minutes. It implements loop.Cluster. It is not safe for use by several
// goroutines.
type Virtual struct {
	// Completing is how long a job that ends or is requeued holds its GPUs on.
	Completing cluster.Span
	// RequeueDelay is Slurm's own delay after a requeue without a gate.
	RequeueDelay cluster.Span
	// History makes every look tell the attempts since the last, not only looks
	// after a long pause.
	History bool

	now          cluster.Instant
	nodes        []cluster.Node
	partitions   []cluster.Partition
	accounts     []cluster.Account
	reservations []cluster.Reservation
	jobs         map[cluster.JobID]*work
	order        []*work // by id
	nextID       int64
	free         map[string]*room
	changed      bool
	attempts     []cluster.Attempt
	// Log has every signal that jobs were sent, for tests.
	Log []string
}

// Work is what a job asks for and does.
type Work struct {
	Name, User, Account, QOS, Partition string
	Request                             cluster.Request
	Runs                                cluster.Span // work to do
	Limit                               cluster.Span
	Begin                               cluster.Instant
	NodeList                            []string
	NoRequeue, Interactive              bool
	Ungated                             bool // never touched by us: for rivals in tests
}

// work is a job in the virtual cluster.
type work struct {
	Work
	job       cluster.Job
	done      cluster.Span // work done in attempts that ended
	priority  int64
	completes cluster.Instant // when COMPLETING is over
	past      cluster.Instant // when it was finished
}

// room is what is free on a node.
type room struct {
	gpus   []cluster.GPUs
	cpus   int
	memory int64
}

// NewVirtual makes an idle cluster at the moment now. All nodes are in the
// partitions that they name.
func NewVirtual(now cluster.Instant, nodes []cluster.Node, accounts []cluster.Account) *Virtual {
	v := &Virtual{Completing: cluster.Second, RequeueDelay: 2 * cluster.Minute, now: now, nextID: 1,
		jobs: map[cluster.JobID]*work{}, free: map[string]*room{}, accounts: slices.Clone(accounts), changed: true}
	v.nodes = slices.Clone(nodes)
	slices.SortFunc(v.nodes, func(a, b cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	byName := map[string]*cluster.Partition{}
	var names []string
	for i := range v.nodes {
		n := &v.nodes[i]
		v.free[n.Name] = &room{gpus: slices.Clone(n.GPUs), cpus: n.CPUs, memory: n.MemoryMB}
		for _, p := range n.Partitions {
			if byName[p] == nil {
				byName[p] = &cluster.Partition{Name: p, Up: true}
				names = append(names, p)
			}
			byName[p].Nodes = append(byName[p].Nodes, n.Name)
		}
	}
	slices.Sort(names)
	for _, p := range names {
		v.partitions = append(v.partitions, *byName[p])
	}
	slices.SortFunc(v.accounts, func(a, b cluster.Account) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

// Now gives the pretend time.
func (v *Virtual) Now() cluster.Instant { return v.now }

// Submit queues a job and gives its id.
func (v *Virtual) Submit(w Work) cluster.JobID {
	id := cluster.JobID{ID: v.nextID}
	v.nextID++
	v.submit(id, w)
	return id
}

// SubmitArray queues n equal tasks.
func (v *Virtual) SubmitArray(w Work, n int) []cluster.JobID {
	base := v.nextID
	v.nextID += int64(n)
	ids := make([]cluster.JobID, n)
	for i := range ids {
		ids[i] = cluster.TaskID(base, int32(i))
		v.submit(ids[i], w)
	}
	return ids
}

func (v *Virtual) submit(id cluster.JobID, w Work) {
	record := id.ID
	if i, ok := id.Index(); ok {
		record += int64(i)
	}
	j := &work{Work: w, job: cluster.Job{
		ID: id, Record: record, Name: w.Name, User: w.User, Account: w.Account, QOS: w.QOS,
		Partitions: []string{w.Partition}, State: cluster.Waiting, Batch: !w.Interactive,
		Requeueable: !w.NoRequeue, Request: w.Request, Submit: v.now, Eligible: max(w.Begin, v.now),
		Limit: w.Limit, NodeList: slices.Clone(w.NodeList),
	}}
	v.jobs[id] = j
	v.order = append(v.order, j)
	v.changed = true
}

// Cancel ends a job for good.
func (v *Virtual) Cancel(id cluster.JobID) { v.finish(v.jobs[id], "CANCELLED") }

// Requeue is a requeue that somebody else orders.
func (v *Virtual) Requeue(id cluster.JobID) { v.requeue(v.jobs[id]) }

// Hold holds or releases a waiting job, as its user may.
func (v *Virtual) Hold(id cluster.JobID, held bool) {
	v.jobs[id].job.Inactive = ""
	if held {
		v.jobs[id].job.Inactive = "held"
	}
	v.changed = true
}

// SetBegin changes the begin time of a waiting job, as its user may.
func (v *Virtual) SetBegin(id cluster.JobID, begin cluster.Instant) {
	v.jobs[id].job.Eligible = max(begin, v.now)
	v.changed = true
}

// SetNode makes a node bad ("" = good again). Its jobs are requeued.
func (v *Virtual) SetNode(name, bad string) {
	for i := range v.nodes {
		if v.nodes[i].Name == name {
			v.nodes[i].Bad = bad
		}
	}
	for _, j := range v.order {
		if bad != "" && j.job.State == cluster.Running && slices.ContainsFunc(j.job.Holds, func(h cluster.Holding) bool { return h.Node == name }) {
			v.requeue(j)
		}
	}
	v.changed = true
}

// AddReservation adds somebody else's reservation.
func (v *Virtual) AddReservation(r cluster.Reservation) {
	v.reservations = append(v.reservations, r)
	v.changed = true
}

// SetShares changes the shares of an account.
func (v *Virtual) SetShares(account string, shares int64) {
	for i := range v.accounts {
		if v.accounts[i].Name == account {
			v.accounts[i].Shares = shares
		}
	}
	v.changed = true
}

// Job gives a job as it is now.
func (v *Virtual) Job(id cluster.JobID) cluster.Job { return v.jobs[id].job }

// Progress gives how much work a job has done.
func (v *Virtual) Progress(id cluster.JobID) cluster.Span {
	j := v.jobs[id]
	if j.job.State == cluster.Running {
		return j.done + v.now.Sub(j.job.Start)
	}
	return j.done
}

// Advance lets time pass until to.
func (v *Virtual) Advance(to cluster.Instant) {
	v.happen()
	v.schedule()
	for {
		next := v.nextEvent()
		if next == 0 || next > to {
			break
		}
		v.now = max(next, v.now)
		v.happen()
		v.schedule()
	}
	v.now = max(v.now, to)
}

func (v *Virtual) nextEvent() cluster.Instant {
	var next cluster.Instant
	at := func(t cluster.Instant) {
		if t > v.now && (next == 0 || t < next) {
			next = t
		}
	}
	for _, j := range v.order {
		switch j.job.State {
		case cluster.Running:
			at(v.endOf(j))
		case cluster.Completing:
			at(j.completes)
		case cluster.Waiting:
			at(j.job.Eligible)
		}
	}
	for i := range v.reservations {
		at(v.reservations[i].End)
	}
	return next
}

// endOf gives when a running job will have done its work or used up its limit.
func (v *Virtual) endOf(j *work) cluster.Instant {
	end := j.job.Start.Add(j.Runs - j.done)
	if j.job.Limit > 0 {
		end = min(end, j.job.Start.Add(j.job.Limit))
	}
	return end
}

func (v *Virtual) happen() {
	for _, j := range v.order {
		switch {
		case j.job.State == cluster.Running && v.endOf(j) <= v.now:
			outcome := "COMPLETED"
			if v.now.Sub(j.job.Start) < j.Runs-j.done {
				outcome = "TIMEOUT"
			}
			v.finish(j, outcome)
		case j.job.State == cluster.Completing && j.completes <= v.now:
			v.complete(j)
		}
	}
	v.reservations = slices.DeleteFunc(v.reservations, func(r cluster.Reservation) bool {
		over := r.End <= v.now
		v.changed = v.changed || over
		return over
	})
}

// finish ends a job; what it holds becomes free at once.
func (v *Virtual) finish(j *work, outcome string) {
	if j.job.State == cluster.Done {
		return
	}
	if j.job.State == cluster.Running {
		j.done += v.now.Sub(j.job.Start)
		v.attempt(j, outcome)
	}
	v.give(j)
	j.job.State, j.job.Outcome, j.job.End, j.past = cluster.Done, outcome, v.now, v.now
	v.changed = true
}

func (v *Virtual) requeue(j *work) bool {
	if j.job.State != cluster.Running {
		return false
	}
	j.done += v.now.Sub(j.job.Start)
	v.attempt(j, "REQUEUED")
	j.job.State, j.job.Eligible = cluster.Completing, v.now
	j.job.Restarts++
	j.completes = v.now.Add(v.Completing)
	v.changed = true
	return true
}

func (v *Virtual) complete(j *work) {
	v.give(j)
	j.job.State, j.job.Submit, j.job.Holds, j.job.Start = cluster.Waiting, v.now, nil, 0
	if j.job.Eligible <= v.now {
		j.job.Eligible = v.now.Add(v.RequeueDelay)
	}
	v.changed = true
}

func (v *Virtual) attempt(j *work, outcome string) {
	a := cluster.Attempt{ID: j.job.ID, User: j.job.User, Account: j.job.Account, Submit: j.job.Submit,
		Start: j.job.Start, End: v.now, Outcome: outcome}
	for _, h := range j.job.Holds {
		if n := len(a.GPUs); n > 0 && a.GPUs[n-1].Model == h.Model {
			a.GPUs[n-1].Count += h.GPUs
		} else {
			a.GPUs = append(a.GPUs, cluster.GPUs{Model: h.Model, Count: h.GPUs})
		}
	}
	v.attempts = append(v.attempts, a)
}

func (v *Virtual) give(j *work) {
	if j.job.State != cluster.Running && j.job.State != cluster.Completing {
		return
	}
	for _, h := range j.job.Holds {
		v.free[h.Node].add(h, 1)
	}
}

func (r *room) add(h cluster.Holding, sign int) {
	r.cpus += sign * h.CPUs
	r.memory += int64(sign) * h.MemoryMB
	for i := range r.gpus {
		if r.gpus[i].Model == h.Model {
			r.gpus[i].Count += sign * h.GPUs
		}
	}
}

// schedule starts what can start, by priority, then id.
func (v *Virtual) schedule() {
	var ready []*work
	for _, j := range v.order {
		if j.job.State == cluster.Waiting && j.job.Eligible <= v.now && j.job.Inactive == "" {
			ready = append(ready, j)
		}
	}
	slices.SortStableFunc(ready, func(a, b *work) int { return cmp.Compare(b.priority, a.priority) })
	for _, j := range ready {
		if holds := v.fit(j); holds != nil {
			for _, h := range holds {
				v.free[h.Node].add(h, -1)
			}
			j.job.State, j.job.Start, j.job.Holds, j.job.Because = cluster.Running, v.now, holds, ""
			v.changed = true
		} else if j.job.Because != "Resources" {
			j.job.Because = "Resources"
			v.changed = true
		}
	}
}

// fit finds nodes for a job as Slurm would: those that it requires, else any.
func (v *Virtual) fit(j *work) []cluster.Holding {
	r := &j.job.Request
	var holds []cluster.Holding
	left, model := r.GPUs, r.Model
	for i := range v.nodes {
		n := &v.nodes[i]
		if left == 0 || !v.admits(j, n) {
			continue
		}
		for _, g := range v.free[n.Name].gpus {
			if model != "" && g.Model != model {
				continue
			}
			want := r.PerNode
			if want == 0 {
				want = min(left, g.Count)
				if r.MaxNodes == 1 || len(j.job.NodeList) == 0 && r.Nodes <= 1 {
					want = left
				}
			}
			h := cluster.Holding{Node: n.Name, Model: g.Model, GPUs: want,
				CPUs: r.CPUs * want / max(r.GPUs, 1), MemoryMB: r.MemoryMB * int64(want) / int64(max(r.GPUs, 1))}
			free := v.free[n.Name]
			if want == 0 || g.Count < want || free.cpus < h.CPUs || free.memory < h.MemoryMB {
				continue
			}
			holds = append(holds, h)
			left -= want
			model = g.Model
			break
		}
	}
	if left > 0 {
		return nil
	}
	return holds
}

func (v *Virtual) admits(j *work, n *cluster.Node) bool {
	if n.Bad != "" || !slices.Contains(n.Partitions, j.Partition) ||
		len(j.job.NodeList) > 0 && !slices.Contains(j.job.NodeList, n.Name) {
		return false
	}
	for i := range v.reservations {
		r := &v.reservations[i]
		if !slices.Contains(r.Nodes, n.Name) || r.Name == j.job.Reservation || slices.Contains(r.Accounts, j.job.Account) && !r.Ours {
			continue
		}
		if r.Start <= v.now || j.job.Limit == 0 || v.now.Add(j.job.Limit) > r.Start {
			return false
		}
	}
	return true
}

// Observe implements loop.Cluster.
func (v *Virtual) Observe(_ context.Context, since cluster.Instant) (cluster.Sighting, error) {
	v.Advance(v.now)
	s := cluster.Sighting{Now: v.now, Cluster: "virtual", Nodes: slices.Clone(v.nodes), Partitions: slices.Clone(v.partitions),
		Accounts: slices.Clone(v.accounts), Reservations: slices.Clone(v.reservations), Unchanged: !v.changed}
	v.changed = false
	const listed = 5 * cluster.Minute
	for _, j := range v.order {
		if j.job.State != cluster.Done || v.now.Sub(j.past) < listed {
			job := j.job
			job.Holds, job.NodeList = slices.Clone(job.Holds), slices.Clone(job.NodeList)
			s.Jobs = append(s.Jobs, job)
		}
	}
	slices.SortFunc(s.Jobs, func(a, b cluster.Job) int { return a.ID.Compare(b.ID) })
	if since > 0 && (v.History || v.now.Sub(since) > listed/2) {
		for _, a := range v.attempts {
			if a.End >= since {
				s.Attempts = append(s.Attempts, a)
			}
		}
	}
	return s, nil
}

// Apply implements loop.Cluster.
func (v *Virtual) Apply(_ context.Context, actions []cluster.Action) []cluster.Outcome {
	out := make([]cluster.Outcome, len(actions))
	for i := range actions {
		out[i] = cluster.Outcome{OK: true, At: v.now}
		if err := v.apply(&actions[i]); err != nil {
			out[i] = cluster.Outcome{Error: err.Error(), At: v.now}
		}
		v.changed = true
	}
	v.schedule()
	return out
}

func (v *Virtual) apply(a *cluster.Action) error {
	switch a.Verb {
	case cluster.Reserve:
		v.reservations = slices.DeleteFunc(v.reservations, func(r cluster.Reservation) bool { return r.Name == a.Reservation })
		v.reservations = append(v.reservations, cluster.Reservation{Name: a.Reservation, Nodes: a.Nodes, Accounts: a.Accounts,
			Start: v.now, End: a.Until, Ours: true})
		return nil
	case cluster.Unreserve:
		v.unreserve(a.Reservation)
		return nil
	}
	j, ok := v.jobs[a.ID]
	if !ok {
		return fmt.Errorf("job %s is unknown", a.ID)
	}
	return v.change(j, a)
}

func (v *Virtual) change(j *work, a *cluster.Action) error {
	waiting := j.job.State == cluster.Waiting
	switch a.Verb {
	case cluster.Notify:
		v.Log = append(v.Log, fmt.Sprintf("%s %s to %s", a.ID, a.Signal, a.SignalTo))
	case cluster.Release:
		j.job.Reservation = ""
		if !slices.ContainsFunc(v.order, func(o *work) bool { return o.job.Reservation == a.Reservation }) {
			v.unreserve(a.Reservation)
		}
	case cluster.Gate, cluster.TakeBack, cluster.Open, cluster.Grant:
		if !waiting {
			return fmt.Errorf("job %s is no longer pending", a.ID)
		}
		v.steer(j, a)
	case cluster.Reclaim:
		if j.job.State == cluster.Done {
			return nil
		}
		if !j.job.Requeueable || !j.job.Batch {
			return fmt.Errorf("job %s: requested operation is presently disabled", a.ID)
		}
		if v.requeue(j) {
			v.steer(j, a)
		}
	}
	return nil
}

// steer sets what an update of a waiting job sets.
func (v *Virtual) steer(j *work, a *cluster.Action) {
	j.job.Eligible, j.priority = a.Until, a.SiteFactor
	switch a.Verb {
	case cluster.Gate:
		return
	case cluster.Grant:
		j.job.Eligible, j.job.NodeList, j.job.Reservation = v.now, slices.Clone(a.Nodes), a.Reservation
		if a.Limit > 0 {
			j.job.Limit = a.Limit
		}
		return
	case cluster.Open:
		j.job.Eligible = max(a.Until, v.now)
	}
	j.job.NodeList, j.job.Reservation = slices.Clone(a.NodeList), ""
}

func (v *Virtual) unreserve(name string) {
	v.reservations = slices.DeleteFunc(v.reservations, func(r cluster.Reservation) bool { return r.Name == name })
}

// Received gives the GPU time that a job has held so far: the truth against
// which a ledger is checked.
func (v *Virtual) Received(id cluster.JobID) cluster.GPUTime {
	var sum cluster.GPUTime
	for _, a := range v.attempts {
		if a.ID == id {
			for _, g := range a.GPUs {
				sum += cluster.Times(g.Count, a.End.Sub(a.Start))
			}
		}
	}
	if j := v.jobs[id]; j.job.State == cluster.Running {
		sum += cluster.Times(j.job.GPUsHeld(), v.now.Sub(j.job.Start))
	}
	return sum
}
