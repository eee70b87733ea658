package sim

import "github.com/fairlease/fairlease/sidecar/cluster"

// Two jobs may share GPUs (Gavel's space sharing): a host, which holds them, and a guest, whose
// steps run in the host's allocation, like those of srun --overlap. For Slurm and the loop the
// guest still waits, so that GPUs count once, for the host. Its time as a guest counts against no
// time limit.

// Beside gives the speeds of tasks on the GPUs of another, by that other; in units of Speeds.
// Pairs without an entry above 0 cannot share GPUs.
type Beside map[Task]Speeds

// of gives the speeds of two tasks of equal gangs on the same GPUs of a model; 0 = they cannot
// share them.
func (b Beside) of(own, other Task, model string) (Speed, Speed) {
	mine, yours := b[other][own][model].Speed, b[own][other][model].Speed
	if own.GPUs != other.GPUs || mine <= 0 || yours <= 0 {
		return 0, 0
	}
	return mine, yours
}

// others gives the speed of a job with shards beside another one that also has them, where the pair has no entry, for each Reference of its speed
// alone: the entry of the zero tasks on no model. 0 = there is none.
func (b Beside) others() Speed { return b[Task{}][Task{}][""].Speed }

// task gives the job's key in Speeds.
func (j *work) task() Task { return Task{j.Kind, j.Request.Size.Devices} }

// Together gives the speeds in b of two jobs on the same GPUs of a model, on the fewest nodes; 0
// = they cannot share them.
func (v *Virtual) Together(b Beside, id, other cluster.JobID, model string) (Speed, Speed) {
	return b.of(v.jobs[id].task(), v.jobs[other].task(), model)
}

// Share makes a job the guest of another from now on: while the host runs and the guest waits,
// both work on the host's GPUs, if they can share them. Earlier pairings of both end. An unknown
// guest leaves the host without one.
func (v *Virtual) Share(host, guest cluster.JobID) {
	h, g := v.jobs[host], v.jobs[guest]
	if h == nil || h.guest == g {
		return
	}
	if h.guest != nil {
		v.leave(h)
	}
	if g == nil || g == h || h.job.State == cluster.Done || g.job.State == cluster.Done {
		return
	}
	v.leave(h)
	v.leave(g)
	g.host, h.guest = h, g
	v.meet(h)
}

// leave ends a job's pairing.
func (v *Virtual) leave(j *work) {
	if j.host != nil {
		j = j.host
	}
	if g := j.guest; g != nil {
		v.part(g)
		g.host, j.guest = nil, nil
	}
}

// meet starts the guest of a host if possible.
func (v *Virtual) meet(h *work) {
	g := h.guest
	if g == nil || g.joined > 0 || h.job.State != cluster.Running || g.job.State != cluster.Waiting || g.job.Inactive != "" {
		return
	}
	on := models(h.job.Holds)
	if len(on) != 1 || spreadOf(v, h.job.Holds) == cluster.Scattered {
		return
	}
	own, other := v.Beside.of(g.task(), h.task(), on[0].Model)
	if own == 0 {
		return
	}
	h.progress = h.pace.walk(h.progress, v.now)
	g.pace.speed, h.pace.speed = own, other
	g.before, g.joined = g.progress.done, v.now
	g.progress = g.pace.begin(g.progress, v.now)
	v.plan(h)
	v.plan(g)
	v.tell(Event{At: v.now, What: Joined, Job: g.job.ID, Work: &g.Work, Start: v.now, Holds: h.job.Holds, Host: h.job.ID})
}

// part ends the time of a guest on its host's GPUs, as a requeue would; it stays the guest.
func (v *Virtual) part(g *work) {
	if g.joined == 0 {
		return
	}
	h := g.host
	h.progress = h.pace.walk(h.progress, v.now)
	h.pace.speed = speedOn(v, h, h.job.Holds)
	g.progress, _ = g.pace.terminate(g.pace.walk(g.progress, v.now))
	e := v.over(g, Parted, g.joined, h.job.Holds, g.progress.done < g.pace.goal)
	e.Host, g.joined = h.job.ID, 0
	v.plan(h)
	v.moved(g)
	v.tell(e)
}
