package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/rounds"
)

// divider is a policy of Gavel's.
type divider func(policy.Problem) (policy.Shares, error)

// mechanism is Gavel's scheduling mechanism (§5) on leases: rounds of a term, on its grid. At the
// start of a round the jobs with the highest priorities get GPUs for the round, on the model of
// that priority (rounds.Gavel). In between, nothing starts, unless nothing runs at all. The
// policy divides again in the first round after a change of jobs or GPUs.
//
// With space sharing the rows of a round include pairs of jobs. One job of a pair, the one
// already on the model, holds the GPUs, and the other is its guest.
//
// A job that continues on the same model keeps its GPUs. One that goes to another model is
// requeued at the start of the round, and started there at the next look at the cluster.
type mechanism struct {
	divide   divider
	pairs    pairer
	told     baseline.Options
	now, was tally // the current round, and the previous one
}

// tally is the state of a round.
type tally struct {
	began, until cluster.Instant
	gpus         []int                  // healthy ones, by pool
	rows         []rounds.Row           // by job of the round, then pairs; models are the pools
	at           map[cluster.JobKey]int // rows of jobs
	pairs        []policy.Pair          // possible ones, of rows of jobs
	hosts        map[cluster.JobKey]int // rows of the pairs that run, by the job that holds the GPUs
	starts       map[cluster.JobKey]int // 1 + the pools on which jobs start
	may          [][]int                // pools that could serve the job, by row
	alone        []alone                // by row
}

// alone is the input of finish-time fairness for a job (§4.2): its remaining work, and the time
// that its past work would have taken with one nth of the cluster, n at the time. Both in
// seconds.
type alone struct{ left, elapsed float64 }

// newMechanism makes the mechanism for a policy; pairs nil = no sharing of GPUs.
func newMechanism(divide divider, pairs func() pairer) func(baseline.Options) rule {
	return func(o baseline.Options) rule {
		m := &mechanism{divide: divide, told: o}
		if pairs != nil && o.Beside != nil {
			m.pairs = pairs()
		}
		return m.choose
	}
}

func (m *mechanism) choose(r *round) {
	if r.Now == m.now.began { // the same moment again
		m.now = m.was
	}
	under := slices.ContainsFunc(r.Jobs, func(j job) bool { return j.Lease != nil || m.now.starts[r.Field.In.Records[j.Case].Key] > 0 })
	if r.Now < m.now.until && under {
		m.arrive(r)
		return
	}
	m.was, m.now = m.now, m.count(r)
	m.begin(r)
}

// arrive starts the jobs of this round whose GPUs were not free at its start.
func (m *mechanism) arrive(r *round) {
	leave := false
	for k := range r.Jobs {
		j := &r.Jobs[k]
		if noticed := j.Lease != nil && j.Lease.State == cluster.Noticed; noticed && j.Lease.End <= r.Now {
			r.Field.Reclaim(j.Case)
			j.Soft = true // so it is not held
		} else if noticed {
			leave = true
		}
	}
	r.Hold()
	for k := range r.Jobs {
		j := &r.Jobs[k]
		key := r.Field.In.Records[j.Case].Key
		to := m.now.starts[key]
		if to > 0 && j.Lease == nil && r.Start(j, m.now.until, func(p int) bool { return p == to-1 }) < 0 && !leave {
			delete(m.now.starts, key) // its GPUs are gone: it waits for the next round
		}
	}
}

// count charges the previous round, and lets the policy divide again after changes.
func (m *mechanism) count(r *round) tally {
	was, term := &m.now, cluster.Instant(r.Settings.Term)
	next := tally{began: r.Now, until: (r.Now/term + 1) * term, gpus: make([]int, r.Pools), rows: make([]rounds.Row, len(r.Jobs)),
		at: make(map[cluster.JobKey]int, len(r.Jobs)), starts: map[cluster.JobKey]int{}, hosts: map[cluster.JobKey]int{},
		may: make([][]int, len(r.Jobs)), alone: make([]alone, len(r.Jobs))}
	for p := range next.gpus {
		all, bad := r.Field.Site.Count(p)
		next.gpus[p] = all - bad
	}
	for k := range r.Jobs {
		next.at[r.Field.In.Records[r.Jobs[k].Case].Key] = k
	}
	gone := r.Now.Sub(was.began)
	pairs := next.keep(was, gone)
	changed := len(r.Jobs) != len(was.at) || !slices.Equal(next.gpus, was.gpus)
	for k := range r.Jobs {
		j, row := &r.Jobs[k], &next.rows[k]
		key := r.Field.In.Records[j.Case].Key
		i, ok := was.at[key]
		if ok {
			next.may[k] = was.may[i]
		}
		if j.Waits || !ok { // for a running job only its pool is known
			next.may[k] = slices.Clone(j.Pools)
		}
		if !ok {
			*row = newRow(r, j)
			changed = true
			continue
		}
		*row, next.alone[k] = was.rows[i].After(gone), was.alone[i]
		if p := r.on(j); p >= 0 && j.Runs {
			if pair, ok := pairs[was.hosts[key]]; ok {
				row = &next.rows[pair]
			}
			row.Time[p] += r.Now.Sub(max(r.Snapshot.Cases[j.Case].Job.Start, was.began))
		}
	}
	problem := m.problem(r, &next)
	if m.pairs != nil {
		changed = m.pairs(m, r, &next) || changed
		problem.Pairs = next.pairs
	}
	if !changed {
		return next
	}
	if shares, err := m.divide(problem); err == nil { // else some number is NaN, and all jobs continue as before
		for k := range r.Jobs {
			next.rows[k].Share = shares.Time[k]
		}
		next.share(r, shares.PairTime)
	}
	return next
}

// newRow gives the row of a job without past service.
func newRow(r *round, j *job) rounds.Row {
	return rounds.Row{Job: r.Field.In.Records[j.Case].Key, Gang: j.GPUs, Share: make([]float64, r.Pools),
		Due: make([]cluster.Span, r.Pools), Time: make([]cluster.Span, r.Pools), First: r.Field.Can[j.Case].First}
}

// problem makes the policy's input. Models are the pools, jobs those of the round, entities the
// tenants.
func (m *mechanism) problem(r *round, next *tally) policy.Problem {
	p := policy.Problem{Models: make([]policy.Model, r.Pools), Jobs: make([]policy.Job, len(r.Jobs))}
	for i := range p.Models {
		p.Models[i] = policy.Model{Name: r.Field.In.Pools[i], GPUs: float64(next.gpus[i]), Price: m.told.Prices[r.Field.In.Pools[i]]}
	}
	for _, tenant := range r.Field.In.Tenants {
		i := slices.IndexFunc(r.Snapshot.Tenants, func(t cluster.Tenant) bool { return t.Name == tenant })
		p.Entities = append(p.Entities, policy.Entity{Name: tenant, Weight: max(1, float64(r.Snapshot.Tenants[i].Weight))})
	}
	for k := range r.Jobs {
		j, row := &r.Jobs[k], &p.Jobs[k]
		age := r.Now.Sub(r.Field.Can[j.Case].First)
		*row = policy.Job{ID: int64(r.Field.In.Records[j.Case].Key), Gang: j.GPUs, Weight: 1, Speed: make([]float64, r.Pools), Elapsed: age.Duration().Seconds(),
			Entity: max(0, j.Tenant)}
		for i := range row.Speed {
			if slices.Contains(next.may[k], i) && (!stays(j) || r.on(j) == i) {
				row.Speed[i] = m.speed(r, j, i)
			}
		}
		job := &r.Snapshot.Cases[j.Case].Job
		if m.told.Weight != nil {
			row.Weight = m.told.Weight(job)
		}
		if m.told.Within != nil {
			// Rounds may run behind what is planned by one. 0 also where it is too late.
			row.Within = max(0, (m.told.Within(job) - age - r.Settings.Term).Duration().Seconds())
		}
		if m.told.Left != nil {
			row.Steps = max(m.told.Left(job), 1).Duration().Seconds()
			next.alone[k].since(row, p.Models, len(r.Jobs))
			row.ElapsedAlone = next.alone[k].elapsed
		}
	}
	return p
}

// since adds a job's progress since the last round.
func (a *alone) since(j *policy.Job, models []policy.Model, n int) {
	rate, time := 0.0, 0.0
	for i, v := range j.Speed {
		x := models[i].GPUs / float64(n*j.Gang)
		rate, time = rate+v*x, time+x
	}
	if rate > 0 && a.left > 0 {
		a.elapsed += (a.left - j.Steps) / rate * max(1, time)
	}
	a.left = j.Steps
}

// stays tells whether a job cannot lose its lease in this round.
func stays(j *job) bool { return j.Lease != nil && (!j.Movable || !j.Runs) }

// speed gives the speed of a job on a pool; 0 = it does not run there.
func (m *mechanism) speed(r *round, j *job, p int) float64 {
	if m.told.Speed == nil {
		return 1
	}
	return m.told.Speed(&r.Snapshot.Cases[j.Case].Job, r.Field.In.Pools[p])
}

// on gives the pool of a job's lease; -1 = it has none.
func (r *round) on(j *job) int {
	if j.Lease == nil {
		return -1
	}
	return slices.Index(r.Field.In.Pools, j.Lease.Pool)
}

// begin assigns the GPUs for a round. A job that must not be requeued stays.
func (m *mechanism) begin(r *round) {
	idle := make([]int, r.Pools)
	for p := range idle {
		idle[p] = r.Board.Idle(p)
	}
	rows := slices.Clone(m.now.rows)
	goes := make([]int, len(r.Jobs)) // pools; -1 = none
	for k := range r.Jobs {
		j := &r.Jobs[k]
		goes[k] = -1
		if stays(j) {
			goes[k], rows[k].Gang = r.on(j), 0
			idle[goes[k]] -= j.GPUs
		}
	}
	for i := len(r.Jobs); i < len(rows); i++ {
		if stays(&r.Jobs[m.now.at[rows[i].Job]]) || stays(&r.Jobs[m.now.at[rows[i].With]]) {
			rows[i].Gang = 0
		}
	}
	grants := rounds.Gavel(idle, rows, r.Settings.Term)
	guests := make([]cluster.JobID, len(r.Jobs)) // of those that have GPUs
	for i := range grants {
		g := &grants[i]
		if row := &rows[g.Row]; row.With != 0 {
			host, guest := m.now.at[row.Job], m.now.at[row.With]
			if r.on(&r.Jobs[guest]) == g.Model && r.on(&r.Jobs[host]) != g.Model {
				host, guest = guest, host
			}
			m.now.hosts[rows[host].Job] = g.Row
			g.Row, guests[host] = host, r.id(guest)
		}
		goes[g.Row] = g.Model
	}
	r.Board.Await(len(r.Snapshot.Cases))
	for k := range r.Jobs {
		switch j := &r.Jobs[k]; {
		case j.Lease == nil:
		case stays(j):
			r.Board.Hold(r.Holds(j), 0)
			r.Field.Renew(j.Case, m.now.until)
		case r.on(j) == goes[k]:
			r.Board.Soften(j.Case, j.Tenant, -j.GPUs, max(j.Lease.End, r.Now.Add(r.Settings.Notice)), r.Holds(j), 0)
		default:
			if r.Dismiss(j); j.Lease.State != cluster.Ending {
				r.Board.Hold(r.Holds(j), 0)
			}
		}
	}
	for _, g := range grants {
		m.place(r, &r.Jobs[g.Row], g.Model)
	}
	if m.told.Share != nil {
		for k := range r.Jobs {
			m.told.Share(r.id(k), guests[k])
		}
	}
}

// place finds GPUs on a model for a job, larger gangs first: its own, idle ones, or those of
// smaller jobs that must move within the model.
func (m *mechanism) place(r *round, j *job, pool int) {
	if r.on(j) == pool {
		if r.Board.Renew(j.Case) {
			r.Field.Renew(j.Case, m.now.until)
			return
		}
		r.Dismiss(j)
	}
	m.now.starts[r.Field.In.Records[j.Case].Key] = pool + 1
	only := func(p int) bool { return p == pool }
	if j.Lease == nil {
		r.Displace(j, m.now.until, only)
		return
	}
	ask := place.Ask{Shape: r.Site.Shape(r.Field.Spec(j.Case)), Pool: pool, Now: r.Now, End: m.now.until, Displace: place.Anybodys, Max: -1}
	if found, ok := r.Board.Fit(ask); ok {
		r.Board.Take(found)
	}
}
