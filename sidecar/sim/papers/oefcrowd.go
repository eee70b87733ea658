package papers

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/study"
)

// oefCrowd draws the speedups of tenants on the three models: that of the fastest between two bounds, that of the one between
// somewhere in the middle.
func oefCrowd(n int, low, high float64) [][]float64 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	var speed [][]float64
	for range n {
		gain := low - 1 + (high-low)*r.Float64()
		speed = append(speed, []float64{1, 1 + gain*(0.35+0.3*r.Float64()), 1 + gain})
	}
	return speed
}

// The bounds: VGG's and LSTM's speedups, the only ones that the paper prints.
const oefLow, oefHigh = 1.39, 2.15

func tenant(i int) string { return fmt.Sprintf("tenant%03d", i+1) }

// kinds makes the speeds of a crowd those of a kind for each tenant.
func kinds(speed [][]float64) map[string][]float64 {
	of := map[string][]float64{}
	for i, row := range speed {
		of[tenant(i)] = row
	}
	return of
}

// crowdRun gives the throughput of a crowd under a preset, in GPUs of the slowest model: each tenant has 20 jobs of one GPU that
// never end. It is that of ten hours after the first two.
func crowdRun(ctx context.Context, by string, speed, declared [][]float64) (float64, error) {
	s := oefSetup()
	s.Speeds, s.Declared = speeds(oefModels, kinds(speed)), speeds(oefModels, kinds(declared))
	var users []study.User
	for i := range speed {
		users = append(users, study.User{Name: tenant(i), Kind: tenant(i), Jobs: 20, GPUs: 1})
	}
	got, err := over(ctx, s, "fairlease:"+by, oefFleet, users, 12*cluster.Hour, 2*cluster.Hour, nil)
	if err != nil {
		return 0, err
	}
	all := line(by, got, cluster.Hour, func(s *study.Stretch) float64 {
		sum := 0.0
		for i := range speed {
			sum += s.Of(tenant(i))
		}
		return sum
	})
	return mean(all, 2, 12), nil
}

// divide gives what a preset gives each tenant of as many GPUs of every model, the first model being the slowest.
func divide(by string, speed [][]float64, gpus int) ([][]float64, error) {
	const many = 20 // jobs of a tenant
	q := cluster.Question{Policy: by}
	for j := range speed[0] {
		q.Pools = append(q.Pools, cluster.GPUs{Model: fmt.Sprintf("model%02d", j), Count: gpus})
	}
	of := map[string]int{}
	for i, row := range speed {
		b := cluster.Bid{Party: tenant(i), Tenant: tenant(i), Weight: 1, Milli: 1000, Gang: 1, Demand: many, Speeds: row}
		for range row {
			b.Margins = append(b.Margins, 1)
		}
		bids := []cluster.Bid{b}
		if by == "gavel:las" { // it knows jobs, not tenants
			b.Demand = 1
			bids = nil
			for k := range many {
				b.Job = cluster.JobKey(i*many + k + 1)
				b.Party = fmt.Sprintf("%s job%02d", tenant(i), k)
				bids = append(bids, b)
			}
		}
		for _, b := range bids {
			of[b.Party] = i
		}
		q.Bids = append(q.Bids, bids...)
	}
	d := engine.Divide(q)
	if d.Why != "" {
		return nil, fmt.Errorf("%s: %s", by, d.Why)
	}
	parts := make([][]float64, len(speed))
	for i := range parts {
		parts[i] = make([]float64, len(q.Pools))
	}
	for _, p := range d.Parts {
		for j, x := range p.GPUs {
			parts[of[p.Party]][j] += float64(x) / float64(cluster.WholeGPU)
		}
	}
	return parts, nil
}

// total gives the throughput of all tenants with their parts.
func total(speed, parts [][]float64) float64 {
	sum := 0.0
	for i, row := range speed {
		sum += worth(row, parts[i])
	}
	return sum
}

// Throughput makes OEF's Figures 7 and 8: twenty tenants under OEF, Gavel and Gandiva_fair, as the policies answer and as it comes
// out, with speedups as on the paper's GPUs and with those of models that are less alike.
func Throughput(ctx context.Context) ([]report.Chart, error) {
	const equal = "gandiva-fair:no-trade"
	charts := []report.Chart{
		{Name: "oef-7", Title: "OEF, Figure 7: throughput, non-cooperative", Theirs: "as much as Gavel and Gandiva_fair estimated, up to 10 % more actual (§6.3.1)."},
		{Name: "oef-8", Title: "OEF, Figure 8: throughput, cooperative", Theirs: "20 % more than Gavel and Gandiva_fair estimated, 32 % more actual (§6.3.1)."}}
	for _, bound := range [][2]float64{{oefLow, oefHigh}, {1, 6}} {
		speed := oefCrowd(20, bound[0], bound[1])
		done := map[string][2]float64{}
		for _, by := range []string{equal, "gavel:las", "gandiva-fair", "oef:noncoop", "oef:coop"} {
			parts, err := divide(by, speed, 8)
			if err != nil {
				return nil, err
			}
			ran, err := crowdRun(ctx, by, speed, speed)
			if err != nil {
				return nil, err
			}
			done[by] = [2]float64{total(speed, parts), ran}
		}
		for k, by := range []string{"oef:noncoop", "oef:coop"} {
			p := report.Panel{Title: fmt.Sprintf("speedups of %g to %g", bound[0], bound[1]), Y: "throughput over that with equal parts of every model",
				Names: []string{"Gavel", "Gandiva_fair", "OEF"}, Curves: []report.Curve{{Name: "estimated"}, {Name: "actual"}}}
			for c := range p.Curves {
				for _, by := range []string{"gavel:las", "gandiva-fair", by} {
					p.Curves[c].Y = append(p.Curves[c].Y, done[by][c]/done[equal][c])
				}
			}
			more := func(c, than int) float64 { return 100 * (p.Curves[c].Y[2]/p.Curves[c].Y[than] - 1) }
			charts[k].Panels = append(charts[k].Panels, p)
			charts[k].Ours += fmt.Sprintf("%s: %+.1f %% over Gavel and %+.1f %% over Gandiva_fair estimated, %+.1f and %+.1f %% actual. ",
				p.Title, more(0, 0), more(0, 1), more(1, 0), more(1, 1))
		}
	}
	return charts, nil
}
