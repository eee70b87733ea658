package figures

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/sim/report"
)

// fifo makes Gavel's claims of FIFO (§7.3): completion times without knowing the models, knowing them, and with pairs that share GPUs, of
// each stream over its loads.
func (l *lab) fifo(ctx context.Context, loads map[string][]float64) ([]report.Chart, error) {
	c := report.Chart{Name: "gavel-fifo", Title: "Gavel, §7.3: first come, first served",
		Theirs: "2.7 times shorter at high load knowing the models, 3.8 times with space sharing, which makes the mean 1.4 times shorter (single) and 1.1 times (distributed).",
		Ours:   l.size() + ":"}
	ways := []way{{name: "FIFO, blind", by: "fifo:settled"}, {name: "Gavel", by: "gavel:fifo"}, {name: "Gavel, space sharing", by: "gavel:fifo+ss"}, live("fifo")}
	for _, stream := range []string{"single", "multiple"} {
		means, high, err := l.sweep(ctx, stream, loads[stream], ways)
		if err != nil {
			return nil, err
		}
		means.Title += ", continuous-" + stream
		c.Panels = append(c.Panels, means)
		c.Ours += fmt.Sprintf(" continuous-%s %.1f times shorter knowing the models, %.1f with space sharing, which makes it %.2f times shorter, %.1f with fairlease's rounds and pairs (gavel:fifo, sharing.pairs);",
			stream, high[0].hours/high[1].hours, high[0].hours/high[2].hours, high[1].hours/high[2].hours, high[0].hours/high[3].hours)
	}
	c.Ours = c.Ours[:len(c.Ours)-1] + "."
	return []report.Chart{c}, nil
}

// makespan makes Gavel's claim of the policy that ends all jobs as early as possible (§7.3): when the last of some jobs ends that are all there at once,
// over their number.
func (l *lab) makespan(ctx context.Context, many ...int) ([]report.Chart, error) {
	without := live("makespan")
	without.name, without.pairs = "fairlease", false
	ways := []way{{name: "FIFO, blind", by: "fifo:settled"}, {name: "with Gandiva's packing", by: "gandiva:packing"}, {name: "Gavel", by: "gavel:makespan"}, {name: "Gavel, space sharing", by: "gavel:makespan+ss"}, without, live("makespan")}
	p := report.Panel{Title: "time until all are done", X: "jobs", Y: "hours"}
	for _, w := range ways {
		p.Curves = append(p.Curves, report.Curve{Name: w.name})
	}
	last := make([]float64, len(ways))
	for _, n := range many {
		each := slices.Clone(ways)
		for k := range each {
			each[k].jobs = n
		}
		_, got, err := l.sweep(ctx, "single", []float64{1}, each)
		if err != nil {
			return nil, err
		}
		for k := range got {
			last[k] = got[k].until
			p.Curves[k].X, p.Curves[k].Y = append(p.Curves[k].X, float64(n)), append(p.Curves[k].Y, last[k])
		}
	}
	return []report.Chart{{Name: "gavel-makespan", Title: "Gavel, §7.3: makespan", Panels: []report.Panel{p},
		Theirs: "2.5 times shorter than FIFO, 1.4 times than with Gandiva's packing; with space sharing 8 % less with many jobs (§7.3).",
		Ours: fmt.Sprintf("on %d GPUs of each model, %d jobs of one GPU that are all there at once: FIFO takes %.0f h, Gandiva's packing %.0f, knowing the models %.0f, with space sharing %.0f; fairlease %.0f, with pairs %.0f.",
			l.gpus, many[len(many)-1], last[0], last[1], last[2], last[3], last[4], last[5])}}, nil
}

// priorities makes Gavel's claim of LAS with priorities (§7.3): every fifth job, by lot, has five times the weight (the paper does not
// print the weight; its authors' code has 5).
func (l *lab) priorities(ctx context.Context, loads []float64) ([]report.Chart, error) {
	weighs := map[string]float64{}
	load, err := l.load("single", loads[0])
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 73))
	n := 0
	for j := range load.Jobs {
		if random.IntN(5) == 0 {
			weighs[j.ID] = 5
		}
		if n++; n == 4*l.last {
			break
		}
	}
	ways := []way{{name: "LAS, blind", by: "gavel:las-blind", weighs: weighs}, {name: "Gavel", by: "gavel:las", weighs: weighs}}
	means, high, err := l.sweep(ctx, "single", loads, ways)
	if err != nil {
		return nil, err
	}
	var hours [2][2]float64 // by way, and by whether a job has more weight
	for k, o := range high {
		var jobs [2]float64
		for _, j := range o.jobs {
			of := 0
			if weighs[j.ID] > 0 {
				of = 1
			}
			hours[k][of], jobs[of] = hours[k][of]+j.Took.Duration().Hours(), jobs[of]+1
		}
		for of := range jobs {
			hours[k][of] /= jobs[of]
		}
	}
	return []report.Chart{{Name: "gavel-priorities", Title: "Gavel, §7.3: LAS with priorities", Panels: []report.Panel{means},
		Theirs: "at high load the mean of jobs with priority is 1.5 times shorter, that of the others 2.7 times (§7.3).",
		Ours: fmt.Sprintf("%s: at %v jobs an hour the mean of jobs with priority is %.1f times shorter (%.1f h, blind %.1f h), that of the others %.1f times (%.1f h, blind %.1f h).",
			l.size(), loads[len(loads)-1], hours[0][1]/hours[1][1], hours[1][1], hours[0][1], hours[0][0]/hours[1][0], hours[1][0], hours[0][0])}}, nil
}
