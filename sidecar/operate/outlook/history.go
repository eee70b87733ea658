package outlook

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Change is other settings for the site's own past. Empty fields change nothing.
type Change struct {
	Weights     []string // tenant=weight
	Add         string   // nodes, as experiment.ParseFleet
	Preset      string
	Term        string
	Saving      input.Saving
	Repetitions int // runs that leave out a tenth of the jobs each
	// Run runs the replays.
	Run func(context.Context, []experiment.Setup) ([]experiment.Result, error)
}

// Measured is a number with its range over the repetitions.
type Measured struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Outcome is what a tenant, or everybody, gets.
type Outcome struct {
	Finished int      `json:"finished_jobs"` // Wait is their mean
	GPUHours Measured `json:"gpu_hours"`
	Wait     Measured `json:"mean_wait_s"`
	Rho      Measured `json:"rho"` // 0 = nothing was due
}

// Compared is a tenant as it was, as it would have been with the present settings, and with others.
type Compared struct {
	Tenant string   `json:"tenant"`
	Was    Outcome  `json:"was"`
	Now    Outcome  `json:"present_settings"`
	Other  Outcome  `json:"other_settings"`
	Waits  Measured `json:"wait_difference_s"` // other less present, in the same repetitions
}

// Report is the result of a replay.
type Report struct {
	From        time.Time  `json:"from,omitzero"`
	To          time.Time  `json:"to,omitzero"`
	Other       string     `json:"other"` // the change in words
	Tenants     []Compared `json:"tenants"`
	Preemptions struct {
		Was   int      `json:"was"`
		Now   Measured `json:"present_settings"`
		Other Measured `json:"other_settings"`
	} `json:"preemptions"`
	Repetitions int `json:"repetitions"`
}

// weigh changes the weights of tenants, and words the change. A weight is a number in the unit of tenants.weights, or a factor (x2).
// Where weights come from Slurm's shares, they have another unit: then there are factors, or numbers for all.
func (c *Change) weigh(weights map[string]int64, cfg *config.Config) (words []string, err error) {
	numbers := 0
	for _, text := range c.Weights {
		tenant, value, _ := strings.Cut(text, "=")
		factor, times := strings.CutPrefix(value, "x")
		w, err := strconv.ParseFloat(factor, 64)
		was, known := weights[tenant]
		switch {
		case err != nil || !(w >= 0 && w <= 1e6) || !times && w != math.Trunc(w):
			return nil, failure.Usage("--weights %q: write tenants with whole numbers or factors, as in nlp=3,bio=x2", text)
		case !known:
			return nil, failure.Usage("--weights: there is no tenant %q; there are %s", tenant, view.Some(slices.Sorted(maps.Keys(weights)), 10))
		case times:
			weights[tenant] = int64(math.Round(float64(was) * w))
		default:
			weights[tenant] = int64(w)
			numbers++
		}
		words = append(words, fmt.Sprintf("weight of %s %s", tenant, value))
	}
	if numbers > 0 && numbers < len(weights) && len(cfg.Tenants.Weights) == 0 {
		return nil, failure.Usage("--weights: the weights come from Slurm's shares: write factors, as in nlp=x3, or numbers for all of %s", view.Some(slices.Sorted(maps.Keys(weights)), 10))
	}
	return words, nil
}

// apply changes a setup, and words the change.
func (c *Change) apply(s *experiment.Setup, cfg *config.Config) (string, error) {
	words, err := c.weigh(s.Weights, cfg)
	if err != nil {
		return "", err
	}
	if c.Add != "" {
		more, err := experiment.ParseFleet(c.Add)
		if err != nil {
			return "", failure.Usage("--add: %v", err)
		}
		s.Fleet.Racks = append(slices.Clone(s.Fleet.Racks), more.Racks...)
		words = append(words, "added "+more.String())
	}
	if c.Preset != "" {
		switch {
		case c.Preset == preset.Astraea:
			s.Scheduler = c.Preset
		case slices.Contains(preset.Dividing(), c.Preset):
			s.Scheduler = "fairlease:" + c.Preset
		default:
			return "", failure.Usage("--preset: %q cannot be replayed; write %s or one of %s", c.Preset, preset.Astraea, strings.Join(preset.Dividing(), ", "))
		}
		words = append(words, "preset "+c.Preset)
	}
	if c.Term != "" {
		if err := (&input.Times{Term: c.Term}).Into(s); err != nil {
			return "", err
		}
		words = append(words, "term "+c.Term)
	}
	if len(words) == 0 {
		return "", failure.Usage("nothing is changed: give --weights, --add, --preset or --term; or --drain, or --submit")
	}
	s.Settings = experiment.Fit(s.Settings)
	if err := s.Check(); err != nil {
		return "", failure.Usage("%v", err)
	}
	return strings.Join(words, ", "), nil
}

// without leaves out about a tenth of the jobs, by the number of the repetition; 0 = none.
func without(s experiment.Setup, repetition int) experiment.Setup {
	if repetition == 0 {
		return s
	}
	all := s.Load.Jobs
	s.Load.Jobs = func(yield func(trace.Job) bool) {
		for j := range all {
			h := fnv.New64a()
			_, _ = fmt.Fprintf(h, "%d/%s", repetition, j.ID)
			if h.Sum64()%10 != 0 && !yield(j) {
				return
			}
		}
	}
	s.Seed = uint64(repetition) + 1
	return s
}

// Replay replays a window of the journal with the present settings and with others.
func (c *Change) Replay(ctx context.Context, past *store.Past, cfg *config.Config, date func(time.Time) string) (*Report, error) {
	from, to := past.Begin.Plan.At.Time(), past.End.Plan.At.Time()
	w := backtest.Of(past, fmt.Sprintf("%s to %s", date(from), date(to)))
	if w.Jobs.Compared == 0 {
		return nil, &failure.Error{Code: failure.No, What: "no job with GPUs ran or waited in that time", Err: fmt.Errorf("%s", w.Setup.Load.Name), Next: "name a longer one: --since"}
	}
	was, err := w.Score()
	if err != nil {
		return nil, &failure.Error{Code: failure.No, What: "the journal contradicts itself", Err: err, Next: "name a shorter time: --since"}
	}
	w.Setup.Settings, w.Setup.Seed = cfg.Settings(), 1
	if by := preset.Base(cfg.Preset); slices.Contains(preset.Dividing(), by) {
		w.Setup.Scheduler = "fairlease:" + by
	}
	if err := (&input.Times{}).Into(&w.Setup); err != nil {
		return nil, err
	}
	w.Setup.Settings = experiment.Fit(w.Setup.Settings)
	if err := c.Saving.Into(&w.Setup); err != nil {
		return nil, err
	}
	w.Assume(w.Setup.Saves)
	other := w
	other.Setup.Weights = maps.Clone(w.Setup.Weights)
	words, err := c.apply(&other.Setup, cfg)
	if err != nil {
		return nil, err
	}
	var setups []experiment.Setup
	for r := range c.Repetitions + 1 {
		for _, x := range []*backtest.Window{&w, &other} {
			for _, s := range x.Setups() {
				setups = append(setups, without(s, r))
			}
		}
	}
	results, err := c.Run(ctx, setups)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, &failure.Error{Code: failure.No, What: "interrupted", Err: ctx.Err(), Next: "a shorter time takes less: --since"}
	}
	var now, would []score.Scores
	for i := 0; i < len(results); i += 4 {
		now = append(now, backtest.Join(results[i].Scores, results[i+1].Scores))
		would = append(would, backtest.Join(results[i+2].Scores, results[i+3].Scores))
	}
	return report(from, to, words, &was, now, would), nil
}

// measured gives a number of the first scores, with its range over all.
func measured(all []score.Scores, of func(*score.Scores) float64) Measured {
	m := Measured{Value: of(&all[0]), Low: math.Inf(1), High: math.Inf(-1)}
	for i := range all {
		x := of(&all[i])
		m.Low, m.High = min(m.Low, x), max(m.High, x)
	}
	return m
}

func report(from, to time.Time, words string, was *score.Scores, now, would []score.Scores) *Report {
	out := &Report{From: from, To: to, Other: words, Repetitions: len(now) - 1}
	outcome := func(all []score.Scores, tenant string) Outcome {
		of := func(get func(*score.Tenant) float64) Measured {
			return measured(all, func(s *score.Scores) float64 {
				for i := range s.Tenants {
					if s.Tenants[i].Tenant == tenant {
						return get(&s.Tenants[i])
					}
				}
				return 0
			})
		}
		finished := of(func(t *score.Tenant) float64 { return float64(t.Jobs.Finished) })
		return Outcome{int(finished.Value), of(func(t *score.Tenant) float64 { return t.Alloc }), of(func(t *score.Tenant) float64 { return t.Wait.Mean }), of(func(t *score.Tenant) float64 { return t.Rho })}
	}
	for _, t := range now[0].Tenants {
		c := Compared{Tenant: t.Tenant, Was: outcome([]score.Scores{*was}, t.Tenant), Now: outcome(now, t.Tenant), Other: outcome(would, t.Tenant)}
		c.Waits = Measured{Value: c.Other.Wait.Value - c.Now.Wait.Value, Low: math.Inf(1), High: math.Inf(-1)}
		for i := range now {
			d := outcome(would[i:i+1], t.Tenant).Wait.Value - outcome(now[i:i+1], t.Tenant).Wait.Value
			c.Waits.Low, c.Waits.High = min(c.Waits.Low, d), max(c.Waits.High, d)
		}
		out.Tenants = append(out.Tenants, c)
	}
	stops := func(s *score.Scores) float64 { return float64(s.Preemptions) }
	out.Preemptions.Was, out.Preemptions.Now, out.Preemptions.Other = was.Preemptions, measured(now, stops), measured(would, stops)
	return out
}

// Write writes a report.
func (r *Report) Write(p *view.Page, date func(time.Time) string) error {
	t := &view.Table{Head: []string{"TENANT", ">GPU_H_WAS", ">GPU_H_NOW", ">GPU_H_OTHER", ">WAIT_H_WAS", ">WAIT_H_NOW", ">WAIT_H_OTHER", ">DIFFERENCE", ">RHO_WAS", ">RHO_NOW", ">RHO_OTHER"}}
	hours := func(o *Outcome) string {
		if o.Finished == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", o.Wait.Value/3600)
	}
	for i := range r.Tenants {
		c := &r.Tenants[i]
		t.Add(c.Tenant, fmt.Sprintf("%.0f", c.Was.GPUHours.Value), fmt.Sprintf("%.0f", c.Now.GPUHours.Value), fmt.Sprintf("%.0f", c.Other.GPUHours.Value),
			hours(&c.Was), hours(&c.Now), hours(&c.Other), fmt.Sprintf("%+.2f (%+.2f to %+.2f)", c.Waits.Value/3600, c.Waits.Low/3600, c.Waits.High/3600),
			fmt.Sprintf("%.2f", c.Was.Rho.Value), fmt.Sprintf("%.2f", c.Now.Rho.Value), fmt.Sprintf("%.2f", c.Other.Rho.Value))
	}
	if p.ForPeople() {
		p.Printf("%s to %s: as it was, replayed with the present settings (NOW), and with %s (OTHER)\n\n", date(r.From), date(r.To), r.Other)
	}
	if err := p.List(t, r); err != nil || !p.ForPeople() {
		return err
	}
	x := &r.Preemptions
	p.Printf("\npreemptions: %d as it was, %.0f now (%.0f to %.0f), %.0f with other settings (%.0f to %.0f)\n", x.Was, x.Now.Value, x.Now.Low, x.Now.High, x.Other.Value, x.Other.Low, x.Other.High)
	p.Printf("%s\n", view.Wrapped(fmt.Sprintf("Compare NOW with OTHER: both are replays with the same assumptions. Ranges are over the whole time and %d replays that each leave out "+
		"a tenth of the jobs; a difference whose range includes 0 may be chance.", r.Repetitions)))
	return nil
}
