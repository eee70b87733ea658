package papers

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
	r.Grid = true
	if q := r.Now.Add(r.Settings.Notice) / cluster.Instant(r.Settings.Term); q != m.quantum || m.spots == nil {
		m.quantum, m.spots = q, m.turn(r)
	}
	r.UpForRenewal()
	line := r.Contenders()
	slices.SortStableFunc(line, func(a, b int) int {
		x, y := &r.Jobs[a], &r.Jobs[b]
		return cmp.Or(m.rank(r, x)-m.rank(r, y), y.GPUs-x.GPUs)
	})
	r.Hold()
	r.Board.Await(len(r.Snapshot.Cases))
	for rank, k := range line {
		if j := &r.Jobs[k]; j.Lease != nil {
			r.Board.Soften(j.Case, j.Tenant, rank, max(j.Lease.End, r.Now), r.Holds(j), 0)
		}
	}
	lend := !m.awaited(r)
	for _, k := range line {
		j := &r.Jobs[k]
		to, ok := m.spots[r.Field.In.Records[j.Case].Key]
		switch {
		case j.Lease != nil && (!ok || r.isOn(j, to)) && r.Board.Renew(j.Case):
			r.Field.Renew(j.Case, r.Term(max(j.Lease.End, r.Now)))
		case j.Lease != nil:
			if r.Dismiss(j); ok {
				r.find(j, to)
			}
		case ok:
			if found, there := r.find(j, to); there {
				r.Take(j, found, r.Term(r.Now))
			} else if lend {
				r.Start(j, r.Term(r.Now), nil)
			}
		case lend:
			r.Start(j, r.Term(r.Now), nil)
		}
	}
}

// rank gives 0 for an assigned job, 1 for others.
func (m *rota) rank(r *round, j *job) int {
	if _, ok := m.spots[r.Field.In.Records[j.Case].Key]; ok {
		return 0
	}
	return 1
}

// awaited tells whether an assigned job has given up other GPUs, and will wait then.
func (m *rota) awaited(r *round) bool {
	for _, i := range r.Rest {
		if _, ok := m.spots[r.Field.In.Records[i].Key]; ok && r.Snapshot.Cases[i].Job.State == cluster.Completing {
			return true
		}
	}
	return slices.ContainsFunc(r.Jobs, func(j job) bool {
		to, ok := m.spots[r.Field.In.Records[j.Case].Key]
		return ok && j.Lease != nil && !r.isOn(&j, to)
	})
}

// isOn tells whether a job has GPUs at its assigned place.
func (r *round) isOn(j *job, to spot) bool {
	return r.on(j) == to.pool && (to.nodes == nil || !slices.ContainsFunc(r.Holds(j), func(h cluster.Holding) bool { return !slices.Contains(to.nodes, h.Node) }))
}

// find finds GPUs for a job at its assigned place. They are reserved for it while it still runs
// elsewhere.
func (r *round) find(j *job, to spot) (place.Placement, bool) {
	spec := r.Field.Spec(j.Case)
	if to.nodes != nil {
		spec.Require, spec.Others = to.nodes, false
	}
	found, ok := r.Board.Fit(place.Ask{Shape: r.Site.Shape(spec), Pool: to.pool, Now: r.Now, End: r.Term(r.Now), Displace: place.Anybodys, Max: -1})
	if ok && j.Lease != nil {
		r.Board.Take(found)
	}
	return found, ok
}
