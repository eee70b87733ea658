package worth

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Worth is what leases gained in a period. Gained is better if larger, and below 0 a loss.
type Worth struct {
	From     time.Time  `json:"from,omitzero"`
	Until    time.Time  `json:"until,omitzero"`
	GPUs     int        `json:"gpus"`
	Jobs     int        `json:"jobs"`
	Drawn    int        `json:"jobs_drawn"` // of them, those that still have not ended: their run times are drawn
	Replays  int        `json:"replays"`
	Measures []Measure  `json:"measures"`
	Tenants  []Tenant   `json:"tenants"`         // by name: GPU hours below share
	Money    *Range     `json:"money,omitempty"` // of the GPU hours below share that were gained, at prices; nil = no price is known
	Lost     float64    `json:"lost_gpu_h"`      // work that stops destroyed
	Leases   store.Ends `json:"leases_ended"`
	Limits   bool       `json:"limits_left_out,omitempty"` // accounts have limits, which the replays do not know
}

// Measure is a quantity in both worlds.
type Measure struct {
	Name   string  `json:"measure"`
	Unit   string  `json:"unit"`
	With   float64 `json:"with_leases"`
	Slurm  Range   `json:"plain_slurm"`
	Gained Range   `json:"gained"`
}

// Tenant is a tenant's GPU hours below share in both worlds.
type Tenant struct {
	Tenant string   `json:"tenant"`
	With   float64  `json:"with_leases"`
	Slurm  Range    `json:"plain_slurm"`
	Gained Range    `json:"gained"`
	Price  *float64 `json:"price,omitempty"` // of a GPU hour; nil = unknown
}

// measures lists what is measured; the first is the one by which a period is judged.
var measures = []struct {
	name, unit string
	sign       float64 // of a gain, where there is more under plain Slurm
	of         func(*Outcome) float64
}{
	{"below_share", "gpu_h", 1, func(o *Outcome) float64 { return o.Below }},
	{"waits", "h", 1, func(o *Outcome) float64 { return o.Wait }},
	{"waits_times_gpus", "gpu_h", 1, func(o *Outcome) float64 { return o.Queued }},
	{"work_done", "gpu_h", -1, func(o *Outcome) float64 { return o.Work }},
}

// Of compares the outcome of a window with those of at least two replays. prices gives the prices of a GPU hour by model, for a tenant;
// nil = none.
func Of(w *backtest.Window, was *Outcome, would []Outcome, ends store.Ends, prices func(tenant string) map[string]float64) Worth {
	_, gpus := w.Setup.Fleet.Count()
	out := Worth{From: w.Was.From.Time(), Until: w.Was.To.Time(), GPUs: gpus, Jobs: len(w.Lives), Replays: len(would), Lost: was.Lost, Leases: ends,
		Limits: !w.Setup.Limits.Empty()}
	for i := range w.Lives {
		if !w.Lives[i].Ended {
			out.Drawn++
		}
	}
	for _, m := range measures {
		slurm, gained := between(would, m.of(was), m.sign, m.of)
		out.Measures = append(out.Measures, Measure{m.name, m.unit, m.of(was), slurm, gained})
	}
	price := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(w.Setup.Weights)) {
		of := func(o *Outcome) float64 { return o.Tenants[name] }
		t := Tenant{Tenant: name, With: of(was)}
		t.Slurm, t.Gained = between(would, t.With, 1, of)
		if known := prices(name); len(known) > 0 {
			price[name] = mean(w.Setup.Fleet, known)
			p := price[name]
			t.Price = &p
		}
		out.Tenants = append(out.Tenants, t)
	}
	if len(price) > 0 {
		cost := func(o *Outcome) (sum float64) {
			for _, name := range slices.Sorted(maps.Keys(price)) {
				sum += price[name] * o.Tenants[name]
			}
			return sum
		}
		_, money := between(would, cost(was), 1, cost)
		out.Money = &money
	}
	return out
}

// between gives the ranges of a quantity under plain Slurm, and of what was gained beside it.
func between(would []Outcome, was, sign float64, of func(*Outcome) float64) (slurm, gained Range) {
	values, gains := make([]float64, len(would)), make([]float64, len(would))
	for i := range would {
		values[i] = of(&would[i])
		gains[i] = sign * (values[i] - was)
	}
	return RangeOf(values), RangeOf(gains)
}

// mean gives the mean price of a fleet's GPUs; models that are not named cost 1.
func mean(f experiment.Fleet, prices map[string]float64) float64 {
	lower := map[string]float64{}
	for model, price := range prices {
		lower[strings.ToLower(model)] = price
	}
	sum, gpus := 0.0, 0
	for _, r := range f.Racks {
		price, ok := lower[strings.ToLower(cmp.Or(r.Model, "gpu"))]
		if !ok {
			price = 1
		}
		n := r.Nodes * r.GPUs
		sum, gpus = sum+price*float64(n), gpus+n
	}
	return sum / float64(max(gpus, 1))
}
