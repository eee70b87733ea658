package figures

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/research/gavel"
	"github.com/fairlease/fairlease/research/steady"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
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
	var users []steady.User
	for i := range speed {
		users = append(users, steady.User{Name: tenant(i), Kind: tenant(i), Jobs: 20, GPUs: 1})
	}
	got, err := over(ctx, s, "fairlease:"+by, oefFleet, users, 12*cluster.Hour, 2*cluster.Hour, nil)
	if err != nil {
		return 0, err
	}
	all := line(by, got, cluster.Hour, func(s *steady.Stretch) float64 {
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
	q := cluster.AllocationRequest{Policy: by}
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
		if by == "gavel:las" { // the paper's program knows jobs, not tenants
			q.Policy = "gavel:las-jobs"
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

// throughput makes OEF's Figures 7 and 8: twenty tenants under OEF, Gavel and Gandiva_fair, as the policies answer and as it comes
// out, with speedups as on the paper's GPUs and with those of models that are less alike.
func throughput(ctx context.Context) ([]report.Chart, error) {
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
			charts[k].Ours += fmt.Sprintf(" with %s %+.1f %% over Gavel and %+.1f %% over Gandiva_fair estimated, %+.1f and %+.1f %% actual;",
				p.Title, more(0, 0), more(0, 1), more(1, 0), more(1, 1))
		}
	}
	for k := range charts {
		charts[k].Ours = strings.TrimSpace(strings.TrimSuffix(charts[k].Ours, ";")) + "."
	}
	return charts, nil
}

// oefJobs draws the jobs of OEF §6.3.2 from the paper's numbers: tenants with ten to thirty equal
// jobs each, which all arrive at once, at some time in the first sixty hours. Their lengths and
// GPUs are ours: so that the cluster has work for three days.
func oefJobs(tenants int) experiment.Load {
	r := rand.New(rand.NewPCG(9, uint64(tenants)))
	var jobs []trace.Job
	for i := range tenants {
		at := cluster.Span(float64(60*cluster.Hour) * r.Float64())
		gpus := []int{1, 1, 2, 4}[r.IntN(4)]
		for k := range 10 + r.IntN(21) {
			jobs = append(jobs, trace.Job{ID: fmt.Sprintf("%s-%d", tenant(i), k+1), Tenant: tenant(i), Kind: tenant(i), GPUs: gpus,
				Submit: at, Runs: 6*cluster.Minute + cluster.Span(float64(50*cluster.Minute)*r.ExpFloat64())})
		}
	}
	slices.SortStableFunc(jobs, func(a, b trace.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	return experiment.Load{Name: "oef", Jobs: slices.Values(jobs)}
}

// Comers gives OEF §6.3.2's jobs of so many tenants on its cluster, without a scheduler.
func Comers(tenants int) (experiment.Setup, error) {
	s := oefSetup()
	s.Settings.Interval = cluster.Minute // with ten seconds it takes minutes
	s.Settings = experiment.Fit(s.Settings)
	s.Load = oefJobs(tenants)
	s.Speeds = speeds(oefModels, kinds(oefCrowd(tenants, oefLow, oefHigh)))
	s.Weights = experiment.EqualWeights(experiment.Survey(s.Load))
	var err error
	s.Fleet, err = experiment.ParseFleet(oefFleet)
	return s, err
}

// completion makes OEF's Figure 9: how long jobs of so many tenants are there, under OEF, Gavel and Gandiva_fair, as presets of
// fairlease and by the papers' own mechanisms.
func completion(ctx context.Context, tenants int) ([]report.Chart, error) {
	s, err := Comers(tenants)
	if err != nil {
		return nil, err
	}
	out := report.Chart{Name: "oef-9", Title: "OEF, Figure 9: job completion times",
		Theirs: "17 % shorter than with Gandiva_fair, 19 % shorter than with Gavel (§6.3.2)."}
	for _, way := range []struct {
		title, ours string
		by          [3]string
	}{{"fairlease with each policy", "with fairlease", [3]string{"fairlease:oef:coop", "fairlease:gandiva-fair", "fairlease:gavel:las"}},
		{"each paper's own mechanism", "by the papers' own mechanisms", [3]string{"oef:coop", "gandiva-fair:split", "gavel:las"}}} {
		p := report.Panel{Title: way.title, X: "hours", Y: "% of the jobs"}
		var hours []float64
		for k, by := range way.by {
			s.Scheduler = by
			got, err := gavel.Follow(ctx, s, 0, experiment.Survey(s.Load).Jobs)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", by, err)
			}
			c := report.Curve{Name: []string{"OEF", "Gandiva_fair", "Gavel"}[k]}
			for _, j := range got.Jobs {
				c.X = append(c.X, j.Took.Duration().Hours())
			}
			slices.Sort(c.X)
			for i := range c.X {
				c.Y = append(c.Y, 100*float64(i+1)/float64(len(c.X)))
			}
			p.Curves, hours = append(p.Curves, c), append(hours, got.Hours())
		}
		out.Panels = append(out.Panels, p)
		out.Ours += fmt.Sprintf("; %s %.2f hours on average, %+.0f %% over Gandiva_fair's %.2f and %+.0f %% over Gavel's %.2f", way.ours,
			hours[0], 100*(hours[0]/hours[1]-1), hours[1], 100*(hours[0]/hours[2]-1), hours[2])
	}
	out.Ours = strings.TrimPrefix(out.Ours, "; ") + "."
	return []report.Chart{out}, nil
}

// scale makes OEF's Figure 10a: the time that one division among so many tenants takes, of ten models.
func scale(tenants []int) ([]report.Chart, error) {
	const models = 10
	p := report.Panel{Title: "one division of ten models", X: "tenants, log scale", Y: "seconds, log scale", Log: true}
	c := report.Chart{Name: "oef-10a", Title: "OEF, Figure 10a: time to divide", Ours: fmt.Sprintf("among %d tenants:", tenants[len(tenants)-1]),
		Theirs: "the cooperative program takes longer; either is negligible beside rounds of minutes (§6.4.1)."}
	for _, by := range []string{"oef:noncoop", "oef:coop"} {
		curve := report.Curve{Name: by}
		for _, n := range tenants {
			r := rand.New(rand.NewPCG(10, uint64(n)))
			speed := make([][]float64, n)
			for i := range speed {
				speed[i] = []float64{1}
				for j := 1; j < models; j++ {
					speed[i] = append(speed[i], speed[i][j-1]*(1+0.3*r.Float64()))
				}
			}
			began := time.Now()
			if _, err := divide(by, speed, n); err != nil {
				return nil, err
			}
			curve.X, curve.Y = append(curve.X, float64(n)), append(curve.Y, time.Since(began).Seconds())
		}
		p.Curves = append(p.Curves, curve)
		c.Ours += fmt.Sprintf(" %s %.2g s,", by, curve.Y[len(tenants)-1])
	}
	c.Ours, c.Panels = strings.TrimSuffix(c.Ours, ",")+".", []report.Panel{p}
	return []report.Chart{c}, nil
}

// off gives speedups that are wrong by up to a part in either direction, on all models but the
// slowest.
func off(r *rand.Rand, speed [][]float64, part float64) [][]float64 {
	var out [][]float64
	for _, row := range speed {
		wrong := slices.Clone(row)
		for j := 1; j < len(wrong); j++ {
			wrong[j] *= 1 + part*(2*r.Float64()-1)
		}
		out = append(out, wrong)
	}
	return out
}

// wrongSpeedups makes OEF's Figure 10b: what twenty tenants do whose declared speedups are wrong, as the policies answer, the mean of so many
// draws, and as it comes out in one.
func wrongSpeedups(ctx context.Context, draws int) ([]report.Chart, error) {
	speed := oefCrowd(20, oefLow, oefHigh)
	gap := report.Panel{Title: "as the policies answer", X: "error of the profile, up to %", Y: "% between promised and done"}
	lost := report.Panel{Title: "as it comes out", X: "error of the profile, up to %", Y: "% of the throughput lost"}
	c := report.Chart{Name: "oef-10b", Title: "OEF, Figure 10b: errors of profiles", Ours: "with errors up to 20 %:",
		Theirs: "about 3 % between what is promised and what is done with an error of 20 % (§6.4.2)."}
	for _, by := range []string{"oef:noncoop", "oef:coop"} {
		promise, done := report.Curve{Name: by}, report.Curve{Name: by}
		right := 0.0
		for _, percent := range []float64{0, 5, 10, 15, 20} {
			r, sum := rand.New(rand.NewPCG(10, 0)), 0.0
			for range draws {
				claimed := off(r, speed, percent/100)
				parts, err := divide(by, claimed, 8)
				if err != nil {
					return nil, err
				}
				sum += math.Abs(1 - total(speed, parts)/total(claimed, parts))
			}
			ran, err := crowdRun(ctx, by, speed, off(rand.New(rand.NewPCG(10, 0)), speed, percent/100))
			if err != nil {
				return nil, err
			}
			if percent == 0 {
				right = ran
			}
			promise.X, promise.Y = append(promise.X, percent), append(promise.Y, 100*sum/float64(draws))
			done.X, done.Y = append(done.X, percent), append(done.Y, 100*(1-ran/right))
		}
		gap.Curves, lost.Curves = append(gap.Curves, promise), append(lost.Curves, done)
		c.Ours += fmt.Sprintf(" %s is %.1f %% off what it promised, and does %.1f %% less than without;", by, promise.Y[4], done.Y[4])
	}
	c.Ours, c.Panels = strings.TrimSuffix(c.Ours, ";")+".", []report.Panel{gap, lost}
	return []report.Chart{c}, nil
}
