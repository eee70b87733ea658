package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/rounds"
)

// newOEF makes OEF (Mo et al.) with one of its programs. Entitlements are computed before every
// round, and rounded to whole GPUs with carried deviations (§4.3). GPUs that a user's jobs cannot
// fill are lent.
func newOEF(policy string) func(baseline.Options) rule {
	return func(o baseline.Options) rule {
		m := &market{bidders: bidders{policy: policy, told: o}}
		return (&rota{turn: m.turn}).choose
	}
}

// market is the state that OEF keeps between rounds.
type market struct {
	bidders
	owed    map[string]rounds.Tenant // by user; without jobs
	starved map[cluster.JobKey]int
}

// turn gives the jobs that run in the next round. A deviation belongs to a pool, whatever the
// order of models.
func (m *market) turn(r *round) map[cluster.JobKey]spot {
	list, gpus := m.divide(r)
	order := poolsBySpeed(list, r.Pools)
	slices.Reverse(order) // OEF orders models from the slowest
	tenants, models := make([]rounds.Tenant, len(list)), make([]int, r.Pools)
	for i := range list {
		was := m.owed[list[i].Party]
		tenants[i].Starved = was.Starved
		for n, p := range order {
			models[n] = gpus[p]
			tenants[i].Ideal = append(tenants[i].Ideal, list[i].due[p])
			owed := 0.0
			if was.Dev != nil {
				owed = was.Dev[p]
			}
			tenants[i].Dev = append(tenants[i].Dev, owed)
		}
		for _, k := range list[i].jobs {
			key := r.Field.In.Records[r.Jobs[k].Case].Key
			can := make([]bool, len(order))
			for n, p := range order {
				can[n] = list[i].Speeds[p] > 0
			}
			tenants[i].Jobs = append(tenants[i].Jobs, rounds.Job{Key: key, Gang: r.Jobs[k].GPUs, Starved: m.starved[key], Can: can})
		}
	}
	_, after, runs := rounds.OEF(models, tenants)
	m.owed, m.starved = map[string]rounds.Tenant{}, map[cluster.JobKey]int{}
	for i := range after {
		owed := rounds.Tenant{Dev: make([]float64, r.Pools), Starved: after[i].Starved}
		for n, p := range order {
			owed.Dev[p] = after[i].Dev[n]
		}
		m.owed[list[i].Party] = owed
		for _, j := range after[i].Jobs {
			m.starved[j.Key] = j.Starved
		}
	}
	spots := map[cluster.JobKey]spot{}
	for _, x := range runs {
		spots[tenants[x.Tenant].Jobs[x.Job].Key] = spot{pool: order[x.Model]}
	}
	return spots
}
