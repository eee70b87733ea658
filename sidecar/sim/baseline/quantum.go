package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// spot is the place of a job for a quantum.
type spot struct {
	pool  int
	nodes []string // nil = any node of the pool
}

// rota is a mechanism that assigns jobs to places before each quantum, here a term on its grid.
// Within a quantum, GPUs that no assigned job waits for are lent, first come, first served.
type rota struct {
	turn    func(*round) map[cluster.JobKey]spot // called once a quantum
	quantum cluster.Instant                      // its number
	spots   map[cluster.JobKey]spot
}

// choose lets the assigned jobs run, larger gangs first. Each keeps its GPUs if they are at its
// place. Otherwise it takes idle ones there, or those of jobs that are not assigned or fit
// elsewhere.
func (m *rota) choose(r *round) {
	r.grid = true
	if q := r.now.Add(r.set.Notice) / cluster.Instant(r.set.Term); q != m.quantum || m.spots == nil {
		m.quantum, m.spots = q, m.turn(r)
	}
	r.upForRenewal()
	line := r.contenders()
	slices.SortStableFunc(line, func(a, b int) int {
		x, y := &r.jobs[a], &r.jobs[b]
		return cmp.Or(m.rank(r, x)-m.rank(r, y), y.gpus-x.gpus)
	})
	r.hold()
	r.board.Await(len(r.s.Cases))
	for rank, k := range line {
		if j := &r.jobs[k]; j.lease != nil {
			r.board.Soften(j.at, j.tenant, rank, max(j.lease.End, r.now), r.holds(j))
		}
	}
	lend := !m.awaited(r)
	for _, k := range line {
		j := &r.jobs[k]
		to, ok := m.spots[r.f.Books.Records[j.at].Key]
		switch {
		case j.lease != nil && (!ok || r.isOn(j, to)) && r.board.Renew(j.at):
			r.f.Renew(j.at, r.term(max(j.lease.End, r.now)))
		case j.lease != nil:
			if r.dismiss(j); ok {
				r.find(j, to)
			}
		case ok:
			if found, there := r.find(j, to); there {
				r.take(j, found, r.term(r.now))
			} else if lend {
				r.start(j, r.term(r.now), nil)
			}
		case lend:
			r.start(j, r.term(r.now), nil)
		}
	}
}

// rank gives 0 for an assigned job, 1 for others.
func (m *rota) rank(r *round, j *job) int {
	if _, ok := m.spots[r.f.Books.Records[j.at].Key]; ok {
		return 0
	}
	return 1
}

// awaited tells whether an assigned job has given up other GPUs, and will wait then.
func (m *rota) awaited(r *round) bool {
	for _, i := range r.rest {
		if _, ok := m.spots[r.f.Books.Records[i].Key]; ok && r.s.Cases[i].Job.State == cluster.Completing {
			return true
		}
	}
	return slices.ContainsFunc(r.jobs, func(j job) bool {
		to, ok := m.spots[r.f.Books.Records[j.at].Key]
		return ok && j.lease != nil && !r.isOn(&j, to)
	})
}

// isOn tells whether a job has GPUs at its assigned place.
func (r *round) isOn(j *job, to spot) bool {
	return r.on(j) == to.pool && (to.nodes == nil || !slices.ContainsFunc(r.holds(j), func(h cluster.Holding) bool { return !slices.Contains(to.nodes, h.Node) }))
}

// find finds GPUs for a job at its assigned place. They are reserved for it while it still runs
// elsewhere.
func (r *round) find(j *job, to spot) (place.Placement, bool) {
	spec := r.f.Spec(j.at)
	if to.nodes != nil {
		spec.Require = to.nodes
	}
	found, ok := r.board.Fit(place.Ask{Shape: r.site.Shape(spec), Pool: to.pool, Now: r.now, End: r.term(r.now), Displace: place.Anybodys, Max: -1})
	if ok && j.lease != nil {
		r.board.Take(found)
	}
	return found, ok
}
