package simtest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// Market is a cluster of several GPU models whose tenants run at different speeds on them, and report their progress.
type Market struct {
	Models  []string
	Nodes   []cluster.Node
	Tenants []Trader
}

// Trader is a tenant of a market with jobs of one kind.
type Trader struct {
	Name   string
	Weight int64
	Gangs  []int     // GPUs of its jobs
	Rates  []float64 // steps/s of each, by model; 0 = it cannot run there
}

// DrawMarket draws a market with 2 or 3 models and 2 to 4 tenants, which want more GPUs than there are. Their jobs have one
// GPU, or with gangs one or two. A tenant may be unable to use a model.
func DrawMarket(seed uint64, gangs bool) *Market {
	rng := rand.New(rand.NewPCG(seed, 1))
	m := &Market{Models: []string{"k80", "p100", "v100"}[:2+rng.IntN(2)]}
	gpus := 0
	for _, model := range m.Models {
		n := 1 + rng.IntN(2)
		for _, node := range Nodes(model, model, n, 4) {
			node.Features = []string{model}
			m.Nodes = append(m.Nodes, node)
		}
		gpus += 4 * n
	}
	for t := range 2 + rng.IntN(3) {
		x := Trader{Name: string(rune('a' + t)), Weight: 1 + rng.Int64N(3)}
		for wants, gang := 0, 1; wants < gpus; wants += gang {
			if gangs {
				gang = 1 + rng.IntN(2)
			}
			x.Gangs = append(x.Gangs, gang)
		}
		rate := math.Exp(2 * rng.NormFloat64())
		for range m.Models {
			x.Rates = append(x.Rates, rate)
			rate *= 1 + 3*rng.Float64()
		}
		if rng.IntN(4) == 0 {
			x.Rates[rng.IntN(len(x.Rates))] = 0
		}
		m.Tenants = append(m.Tenants, x)
	}
	return m
}

// Misreport is a false declaration of the first tenant: its rate on a model times a factor, or nothing.
type Misreport struct {
	Model   string
	Factor  float64
	Missing bool
}

// Gain is the gain of a misreport over the truth in the tenant's true throughput, in percent: before trials, and once all
// kinds have been tried on all models.
type Gain struct {
	Misreport
	Before, After float64
}

// Gains gives the gains of misreports under a preset: of every model 0, less, more, far more, and nothing. They are
// measured by what the preset's allocation promises.
func (m *Market) Gains(policy string) (out []Gain, err error) {
	_, honest, err := m.promise(policy, nil)
	if err != nil {
		return nil, err
	}
	for _, model := range m.Models {
		for _, lie := range []Misreport{{model, 0, false}, {model, 0.7, false}, {model, 1.4, false}, {model, 5, false}, {model, 1, true}} {
			before, after, err := m.promise(policy, &lie)
			if err != nil {
				return nil, fmt.Errorf("%+v: %w", lie, err)
			}
			out = append(out, Gain{lie, 100 * (before/honest - 1), 100 * (after/honest - 1)})
		}
	}
	return out, nil
}

// promise lets tenants take turns under a preset while the first one misreports (nil = it does not). It gives what the
// preset's allocation is worth to that tenant in steps/s by its true rates: at first, and once all has been tried. It fails
// if that takes a week.
func (m *Market) promise(policy string, lie *Misreport) (before, after float64, err error) {
	set := Product()
	set.Preset, set.Divide, set.DivideJobs, set.DivideEvery = policy, policy, preset.OfJobs(policy), 1
	var names []string
	for i := range m.Tenants {
		names = append(names, m.Tenants[i].Name)
	}
	w := New(nil, set, m.Nodes, names...)
	w.Reports, w.Speeds = cluster.Minute, sim.Speeds{}
	for i := range m.Tenants {
		m.submit(w, i, lie)
	}
	span := 3 * set.Interval // until the policy has answered
	for end := w.Now().Add(7 * cluster.Day); w.Now() < end; span = set.Term / 3 {
		err := sim.Run(context.Background(), w.Virtual, w.Loop, set.Interval, w.Now().Add(span), func(r loop.Report) { w.Last = r.Plan })
		if err != nil {
			return 0, 0, err
		}
		if after = m.worth(w.Last.State.Allocation); before == 0 {
			before = after
		}
		if m.tried(w.Last.State.Profiles) {
			return before, after, nil
		}
	}
	return 0, 0, fmt.Errorf("%s: after a week not all kinds have been tried on all models", policy)
}

// submit queues the jobs of a tenant; lie is of the first.
func (m *Market) submit(w *World, tenant int, lie *Misreport) {
	x := &m.Tenants[tenant]
	w.SetShares(x.Name, x.Weight)
	declares, runs, speeds := "kind="+x.Name, []string{}, map[string]sim.Rate{}
	for k, model := range m.Models {
		rate := x.Rates[k]
		speeds[model] = sim.Rate{Speed: sim.Speed(math.Round(rate * float64(sim.Reference)))}
		if rate > 0 {
			runs = append(runs, model)
		}
		if lie != nil && tenant == 0 && lie.Model == model {
			if rate *= lie.Factor; lie.Missing {
				continue
			}
		}
		declares += fmt.Sprintf(",steps/s.%s=%g", model, rate)
	}
	for _, gang := range x.Gangs {
		w.Speeds[sim.Task{Kind: x.Name, GPUs: gang}] = speeds
		request := Gang(gang)
		request.Features = strings.Join(runs, "|")
		w.Virtual.Submit(sim.Work{Name: "train", User: x.Name + "_user", Account: x.Name, Partition: "gpu", Request: request,
			Runs: 10_000 * cluster.Hour, Kind: x.Name, Comment: declares})
	}
}

// worth gives what an allocation is worth to the first tenant.
func (m *Market) worth(d *cluster.Allocation) (rate float64) {
	if d == nil {
		return 0
	}
	x := &m.Tenants[0]
	for i := range d.Parts {
		if !strings.HasPrefix(d.Parts[i].Party, x.Name+"/") {
			continue
		}
		for p, gpus := range d.Parts[i].GPUs {
			for k, model := range m.Models {
				if model == d.Pools[p] {
					rate += x.Rates[k] * float64(gpus) / float64(cluster.WholeGPU)
				}
			}
		}
	}
	return rate
}

// tried reports whether observations have replaced what was declared of every kind on every model that it can use.
func (m *Market) tried(profiles []cluster.Profile) bool {
	const enough = 4 // samples
	type run struct {
		kind  cluster.Kind
		model string
		gang  int
	}
	seen := map[run]bool{}
	for i := range profiles {
		if p := &profiles[i]; p.Source == cluster.Observed && p.Samples >= enough {
			seen[run{p.Kind, p.Model, p.Gang}] = true
		}
	}
	for i := range m.Tenants {
		x := &m.Tenants[i]
		for k, model := range m.Models {
			for _, gang := range x.Gangs {
				if x.Rates[k] > 0 && !seen[run{cluster.KindOf(x.Name, x.Name), model, gang}] {
					return false
				}
			}
		}
	}
	return true
}
