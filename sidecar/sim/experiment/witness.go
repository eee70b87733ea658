package experiment

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// witness receives the events of jobs and the loop's accounts, and feeds a meter with both. All
// events of one moment are one sample.
type witness struct {
	meter *score.Meter
	gaps  *gaps
	keep  bool
	kept  []score.Job // all ended ones, with keep
	err   error       // the meter's first

	at      cluster.Instant // time of the fields below
	changed bool            // since the last sample
	tenants []standing      // by name, as in the ledger
	place   map[string]int  // of tenants
	models  []string        // if there are several
	speeds  sim.Speeds      // the truth; nil = all models are alike
	cells   []cluster.Fragmentation
	broken  []cluster.GPUTime // by level of cells: cells × time
	used    int               // GPUs held, shared ones as a whole
	full    int               // healthy GPUs

	jobs map[cluster.JobID]*life
	over []cluster.JobID // ended; their received time is not known yet

	submitted, ended, timedOut, running int
	stirred                             cluster.Instant // last event of a job
	headway, asked                      cluster.Instant // last arrival, end or kept work at a requeue; last check by endless
	row                                 []score.TenantSample
	users                               userDays
}

// life is a live job.
type life struct {
	score.Job
	shape   shape
	outcome string // in the trace
}

// standing is a tenant's account, extrapolated from the last turn to at.
type standing struct {
	score.TenantSample
	carry      int64
	repays     cluster.MicroGPU // rate of Repaid
	repayCarry int64
	work       *work
}

// any tells whether any job satisfies such.
func (w *witness) any(such func(*life) bool) bool {
	for _, j := range w.jobs {
		if such(j) {
			return true
		}
	}
	return false
}

// endless tells whether the running jobs restart from the beginning for ever. It checks once an
// hour.
func (w *witness) endless(now cluster.Instant) bool {
	idle := now.Sub(w.headway)
	if idle <= endlessFor || now.Sub(w.asked) < cluster.Hour || w.running == 0 && now.Sub(w.stirred) > cluster.Day {
		return false
	}
	w.asked = now
	return !w.any(func(j *life) bool { return idle <= endlessFor+20*j.Runs })
}

func newWitness(meter *score.Meter, fleet Fleet, speeds sim.Speeds, set cluster.Settings, mixed, keep bool) *witness {
	w := &witness{meter: meter, gaps: newGaps(fleet, set, mixed), keep: keep, speeds: speeds, at: Start, place: map[string]int{}, jobs: map[cluster.JobID]*life{}}
	if models := fleet.Models(); len(models) > 1 {
		for _, m := range models {
			w.models = append(w.models, m.Model)
		}
	}
	return w
}

// pass advances the time to to: the meter receives the state until then.
func (w *witness) pass(to cluster.Instant) {
	if to <= w.at {
		return
	}
	w.sample()
	gone := to.Sub(w.at)
	for i := range w.tenants {
		p := &w.tenants[i]
		var due cluster.GPUTime
		due, p.carry = cluster.Accrue(p.Due, gone, p.carry)
		p.DueTotal += due
		var repaid cluster.GPUTime
		repaid, p.repayCarry = cluster.Accrue(p.repays, gone, p.repayCarry)
		p.Repaid += repaid
		p.Alloc += p.Holds.Over(gone)
		if p.work != nil {
			p.work.pass(p.On, p.Due, gone)
		}
	}
	for i := range w.cells {
		w.broken[i] += cluster.Times(w.cells[i].Broken, gone)
	}
	w.at = to
}

// sample gives the meter the new state, if it has changed.
func (w *witness) sample() {
	if !w.changed || w.full == 0 { // before the first turn the number of GPUs is unknown
		return
	}
	w.changed = false
	w.row = w.row[:0]
	for i := range w.tenants {
		p, row := &w.tenants[i], w.tenants[i].TenantSample
		if p.work != nil {
			row.Due, row.Alloc, row.DueTotal = p.work.rate(), row.Alloc+p.work.alloc, row.DueTotal+p.work.due
		}
		w.row = append(w.row, row)
	}
	w.note(w.meter.Sample(score.Sample{At: w.at, Capacity: w.full, Used: w.used, Fragmented: w.gaps.fragmented(), Bound: w.gaps.boundIdle(), Tenants: w.row}))
}

func (w *witness) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

// tenant gives a tenant's account.
func (w *witness) tenant(name string) *standing {
	i, ok := w.place[name]
	if !ok {
		i = len(w.tenants)
		w.place[name] = i
		w.tenants = append(w.tenants, standing{TenantSample: score.TenantSample{Tenant: name, On: make([]cluster.MicroGPU, len(w.models))}})
		if w.speeds != nil && len(w.models) > 0 {
			w.tenants[i].work = newWork(len(w.models))
		}
	}
	return &w.tenants[i]
}

// watch processes an event of the cluster.
func (w *witness) watch(e sim.Event) {
	w.pass(e.At)
	w.changed, w.stirred = true, e.At
	l := w.jobs[e.Job]
	if l == nil {
		l = &life{shape: shapeOf(&e.Work.Request), outcome: e.Work.Outcome, Job: score.Job{ID: e.Work.Name,
			Tenant: e.Work.Account, User: e.Work.User, GPUs: e.Work.Request.Size.Devices, Submit: e.At, Runs: e.Work.Runs}}
		w.jobs[e.Job] = l
	}
	switch e.What {
	case sim.Submitted:
		w.submitted++
		w.active(e.Work, 1)
		w.headway = e.At
		w.gaps.wants(l.shape, 1)
	case sim.Started:
		if l.Start == 0 {
			l.Start = e.At
		}
		w.gaps.wants(l.shape, -1)
		w.hold(l, e.Holds, 1)
	case sim.Joined:
		if l.Start == 0 {
			l.Start = e.At
		}
		w.gaps.wants(l.shape, -1)
		w.running++
	case sim.Parted: // its GPUs are its host's
		l.Overhead += e.Cold + e.Loading + e.Saving + e.Lost
		l.Lost += e.Lost
		w.gaps.wants(l.shape, 1)
		w.running--
	case sim.Requeued:
		if e.Worked > 0 {
			w.headway = e.At
		}
		w.stop(l, &e)
		if e.Reclaimed {
			l.Preemptions++
		}
		w.gaps.wants(l.shape, 1)
	case sim.Ended:
		if e.Start == 0 {
			w.gaps.wants(l.shape, -1)
		} else {
			w.stop(l, &e)
		}
		l.End, l.Outcome = e.At, e.Outcome
		w.active(e.Work, -1)
		w.headway = e.At
		w.over = append(w.over, e.Job)
		if e.Outcome == "TIMEOUT" && l.outcome != "TIMEOUT" {
			w.timedOut++
		}
	}
}

// active adds a job to its tenant's active ones, or removes it.
func (w *witness) active(k *sim.Work, sign int64) {
	p := w.tenant(k.Account)
	if p.work == nil {
		return
	}
	for m, model := range w.models {
		if k.Request.Model == "" || k.Request.Model == model {
			p.work.active(m, k.Request.Size.Devices, w.speeds.On(sim.Task{Kind: k.Kind, GPUs: k.Request.Size.Devices}, model), sign)
		}
	}
}

// stop ends an attempt.
func (w *witness) stop(l *life, e *sim.Event) {
	l.Held += e.At.Sub(e.Start)
	l.Overhead += e.Cold + e.Loading + e.Saving + e.Lost + e.Terminating
	l.Lost += e.Lost
	w.hold(l, e.Holds, -1)
}

// hold adds GPUs to a job, or removes them.
func (w *witness) hold(l *life, holds []cluster.Holding, sign int) {
	n, p := cluster.MicroGPU(0), w.tenant(l.Tenant)
	for i := range holds {
		amount := cluster.MicroGPU(sign) * holds[i].Size.At(w.gaps.set.Worth(holds[i].Model)).Amount()
		n += amount
		w.used += w.gaps.take(&holds[i], sign)
		if m := slices.Index(w.models, holds[i].Model); m >= 0 {
			p.On[m] += amount
		}
	}
	w.running += sign
	p.Holds += n
}

// turn reads the loop's accounts after a turn.
func (w *witness) turn(plan *cluster.Plan, nodes []cluster.Node) {
	w.pass(plan.At)
	w.changed = true
	w.full = w.gaps.healthy(nodes)
	if plan.Cells != nil {
		w.cells = plan.Cells.Fragmentation
		w.broken = slices.Grow(w.broken, len(w.cells))[:len(w.cells)]
	}
	w.users.turn(&plan.State.Ledger)
	w.gaps.holdBack(plan.Statuses)
	ledger := plan.State.Ledger.Tenants
	for i := 0; i < len(ledger); {
		p := w.tenant(ledger[i].Tenant)
		var alloc, due cluster.GPUTime
		p.Due, p.repays, p.carry = 0, 0, 0 // the carry is below a GPU-millisecond, and the ledger has it
		if p.work != nil {
			p.work.demand = 0
		}
		for ; i < len(ledger) && ledger[i].Tenant == p.Tenant; i++ {
			t := &ledger[i]
			alloc, due = alloc+t.Alloc, due+t.Due
			wants := min(t.Own(), t.Demand) // ASTRAEA eq. 8
			p.Due += wants
			p.repays += max(wants-t.Entitlement, 0)
			if m := slices.Index(w.models, t.Pool); p.work != nil && m >= 0 {
				p.work.base[m], p.work.demand = t.Base, p.work.demand+t.Demand
			}
		}
		// The scores use what tenants held, under any scheduler: the accounts omit work that
		// stops destroyed.
		p.Alloc, p.DueTotal = max(p.Alloc, alloc), max(p.DueTotal, due)
	}
	for _, id := range w.over {
		l := w.jobs[id]
		w.settle(l, plan, id)
		w.note(w.meter.Job(l.Job))
		if w.keep {
			w.kept = append(w.kept, l.Job)
		}
		delete(w.jobs, id)
		w.ended++
	}
	w.over = w.over[:0]
}

// settle reads the account of a job.
func (w *witness) settle(l *life, plan *cluster.Plan, id cluster.JobID) {
	records := plan.State.Records
	// Keys have the order of ids here, since ids are never reused.
	i, ok := slices.BinarySearchFunc(records, id, func(r cluster.Record, id cluster.JobID) int { return r.ID.Compare(id) })
	if !ok {
		if l.Start != 0 {
			w.note(fmt.Errorf("the books of round %d do not have job %s, which ran", plan.Round, l.ID))
		}
		return
	}
	l.Alloc, l.Due = records[i].Work(plan.At)
}

// there lists the live jobs, in order of submission.
func (w *witness) there() []cluster.JobID {
	return slices.SortedFunc(maps.Keys(w.jobs), cluster.JobID.Compare)
}

// close adds the jobs that are still live and gives the scores up to the last turn.
func (w *witness) close(plan *cluster.Plan, running func(cluster.JobID) cluster.Job) (score.Scores, error) {
	for _, id := range w.there() {
		l := w.jobs[id]
		w.settle(l, plan, id)
		if j := running(id); j.State == cluster.Running {
			l.Held += w.at.Sub(j.Start)
		}
		w.note(w.meter.Job(l.Job))
		if w.keep {
			w.kept = append(w.kept, l.Job)
		}
	}
	w.sample()
	if w.err != nil {
		return score.Scores{}, w.err
	}
	scores, err := w.meter.Scores(w.at)
	scores.Users = w.users.result()
	for i, f := range w.cells {
		scores.Levels = append(scores.Levels, score.Level{Chain: f.Chain, Type: f.Type, Cells: f.Cells,
			Broken: float64(w.broken[i]) / float64(max(w.at.Sub(Start), 1))})
	}
	return scores, err
}
