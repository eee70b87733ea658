package figures

import (
	"fmt"
	"math/rand/v2"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/rounds"
	"github.com/fairlease/fairlease/sidecar/sim/report"
)

// jobs makes jobs of one GPU over as many GPUs of each of three models, with speedups drawn as wide as those of Gavel's Table.
func jobs(n int, gpus float64) policy.Problem {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	p := policy.Problem{Models: []policy.Model{{Name: "v100", GPUs: gpus}, {Name: "p100", GPUs: gpus}, {Name: "k80", GPUs: gpus}}}
	for i := range n {
		k80 := 0.5 + r.Float64()
		p100 := k80 * (1 + 2*r.Float64())
		p.Jobs = append(p.Jobs, policy.Job{ID: int64(i + 1), Gang: 1, Weight: 1, Speed: []float64{p100 * (1 + r.Float64()), p100, k80}})
	}
	return p
}

// entities makes Gavel's Figures 12 and 13: eighteen jobs on 3 GPUs of each model, one more every four steps, of three entities with
// weights 1, 2 and 3. A throughput counts relative to that with an equal part of every model.
func entities() ([]report.Chart, error) {
	charts := []report.Chart{
		{Name: "gavel-12", Title: "Gavel, Figure 12: fairness over entities, fairness inside",
			Theirs: "throughput by the entities' weights; 17 % less in all where the GPUs are split between entities (§7.3)."},
		{Name: "gavel-13", Title: "Gavel, Figure 13: fairness over entities, FIFO inside",
			Theirs: "throughput by the entities' weights; later jobs of an entity have nothing (§7.3)."}}
	for k := range charts {
		p := jobs(18, 3)
		equal := make([]float64, len(p.Jobs))
		for e := range 3 {
			p.Entities = append(p.Entities, policy.Entity{Name: fmt.Sprint(e), Weight: float64(e + 1), FIFO: k == 1})
		}
		for i := range p.Jobs {
			p.Jobs[i].Entity = i / 6
			for _, v := range p.Jobs[i].Speed {
				equal[i] += v / 3
			}
		}
		share := report.Panel{Title: "part of each entity", X: "steps", Y: "% of throughput", Curves: []report.Curve{{Name: "entity 0"}, {Name: "entity 1"}, {Name: "entity 2"}}}
		total := report.Panel{Title: "throughput in all", X: "steps", Y: "equal parts of a GPU", Curves: []report.Curve{{Name: "Gavel"}, {Name: "split by weight"}}}
		served := 0
		for step := range 72 {
			now := p
			now.Jobs = p.Jobs[:step/4+1]
			got, err := policy.Gavel("hierarchical", now, policy.Options{})
			if err != nil {
				return nil, err
			}
			sum, of, there, weights := 0.0, [3]float64{}, [3]float64{}, 0.0
			served = 0
			for i, time := range got.Time {
				x, e := worth(now.Jobs[i].Speed, time), now.Jobs[i].Entity
				sum, of[e] = sum+x/equal[i], of[e]+x/equal[i]
				if there[e]++; there[e] == 1 {
					weights += now.Entities[e].Weight
				}
				if x > 1e-6 {
					served++
				}
			}
			split := 0.0
			for i := range now.Jobs {
				e := now.Jobs[i].Entity
				split += min(1, 9*now.Entities[e].Weight/weights/there[e])
			}
			for e := range of {
				share.Curves[e].X, share.Curves[e].Y = append(share.Curves[e].X, float64(step)), append(share.Curves[e].Y, 100*of[e]/sum)
			}
			for c, v := range []float64{sum, split} {
				total.Curves[c].X, total.Curves[c].Y = append(total.Curves[c].X, float64(step)), append(total.Curves[c].Y, v)
			}
		}
		charts[k].Panels = []report.Panel{share, total}
		charts[k].Ours = fmt.Sprintf("at the end the entities have %.0f, %.0f and %.0f %% of the throughput, %d of 18 jobs have some; split by weight it is %.0f %% less.",
			share.Curves[0].Y[71], share.Curves[1].Y[71], share.Curves[2].Y[71], served, 100*(1-total.Curves[1].Y[71]/total.Curves[0].Y[71]))
	}
	return charts, nil
}

// lag shows what Figure 15b rests on: how far, at worst over jobs and models, the rounds are behind an allocation that stays, LAS's of so
// many jobs on 36 GPUs of each model.
func lag(n, many int) ([]report.Chart, error) {
	const round = 6 * cluster.Minute
	p := jobs(n, 36)
	las, err := policy.Gavel("las", p, policy.Options{})
	if err != nil {
		return nil, err
	}
	rows := make([]rounds.Row, n)
	for i := range rows {
		rows[i] = rounds.Row{Job: cluster.JobKey(i + 1), Gang: 1, Share: las.Time[i], Due: make([]cluster.Span, 3), Time: make([]cluster.Span, 3)}
	}
	got, bound, most := report.Curve{Name: "worst job and model"}, report.Curve{Name: "2 over rounds"}, 0.0
	for k := 1; k <= many; k++ {
		grants := rounds.Gavel([]int{36, 36, 36}, rows, round)
		for _, r := range rows {
			for j, x := range r.Share {
				r.Due[j] += cluster.Span(x * float64(round))
			}
		}
		for _, g := range grants {
			rows[g.Row].Time[g.Model] += round
		}
		worst := 0.0
		for _, r := range rows {
			for j := range r.Due {
				worst = max(worst, float64(r.Due[j]-r.Time[j])/float64(round))
			}
		}
		most = max(most, worst)
		got.X, got.Y = append(got.X, float64(k)), append(got.Y, max(100*worst/float64(k), 1e-3))
		bound.X, bound.Y = append(bound.X, float64(k)), append(bound.Y, 200/float64(k))
	}
	return []report.Chart{{Name: "gavel-15b-lag", Title: "Gavel, Figure 15b: how far rounds are behind",
		Theirs: "rounds of six minutes do as well as having the allocation exactly (§7.5; there as completion times).",
		Ours:   fmt.Sprintf("no job is ever more than %.2f rounds behind on a model: after %d rounds %.2f %% of the time.", most, many, got.Y[many-1]),
		Panels: []report.Panel{{Title: "behind the allocation", X: "rounds, log scale", Y: "% of the time, log scale", Log: true, Curves: []report.Curve{got, bound}}}}}, nil
}
