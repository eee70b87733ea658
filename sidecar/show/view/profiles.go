package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Profile is a rate, with the speedup derived from it.
type Profile struct {
	cluster.Profile
	Speedup *Speedup `json:"speedup,omitempty"` // nil = a more certain rate counts
}

// Speedup is over the reference model, with its bounds.
type Speedup struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// bookOf gives what is known of speeds after a round, and the GPU models.
func bookOf(snap *cluster.Snapshot, plan *cluster.Plan) (*profile.Book, []string) {
	set := profile.Default()
	set.Estimate, set.Reference = !snap.Settings.NoEstimates, snap.Settings.Reference
	book := profile.New(set, plan.State.Profiles, plan.State.Paces)
	for _, d := range snap.Declared {
		d.Basis = profile.File
		_ = book.Declare(d) // problems were reported when the file was read
	}
	book.Consider(plan.State.Completions, plan.State.Usages)
	var models []string
	for i := range plan.State.Ledger.Pools {
		models = append(models, plan.State.Ledger.Pools[i].Pool)
	}
	return book, models
}

// Profiles gives all declared and observed rates, and estimates where neither exists.
func Profiles(snap *cluster.Snapshot, plan *cluster.Plan) []Profile {
	book, models := bookOf(snap, plan)
	var all []Profile
	type group struct {
		kind, with cluster.Kind
		gang       int
	}
	seen := map[group]bool{}
	estimates := func(g group) {
		if g.with != "" || seen[g] {
			return
		}
		seen[g] = true
		for _, model := range models {
			if x, ok := book.Rate(g.kind, model, g.gang); ok && x.Source == cluster.Estimated {
				x.Model, x.Gang = model, g.gang
				all = append(all, Profile{Profile: x})
			}
		}
	}
	for _, e := range book.Entries() {
		all = append(all, Profile{Profile: e})
		estimates(group{e.Kind, e.With, e.Gang})
	}
	for i := range plan.State.Completions {
		c := &plan.State.Completions[i]
		estimates(group{kind: c.Kind, gang: c.Gang})
		for _, model := range models {
			for spread, such := range map[cluster.Kind]string{cluster.Scattered: "scattered jobs", cluster.AcrossSwitches: "jobs across switches"} { // sorted below
				if part, known := profile.ByRunTimes(c, spread, model); known && snap.Settings.ScatterWait > 0 {
					jobs := c.Rates[slices.Index(c.Models, cluster.Spread(model, spread))].Jobs
					all = append(all, Profile{Profile: cluster.Profile{Kind: c.Kind, With: spread, Model: model, Gang: c.Gang, Rate: part, Relative: true, Source: cluster.Estimated,
						Method: cluster.ByCompletions, Samples: jobs, At: c.At, Basis: fmt.Sprintf("run times of %d %s that completed; at most", jobs, such)}})
				}
			}
		}
	}
	for _, u := range plan.State.Usages {
		estimates(group{kind: u.Kind, gang: u.Gang})
	}
	for i := range all {
		x := &all[i]
		at := slices.Index(models, x.Model)
		if x.With != "" || at < 0 {
			continue
		}
		if s := book.Speedups(x.Kind, x.Gang, models)[at]; s.Source == x.Source {
			x.Speedup = &Speedup{s.Value, s.Low, s.High}
		}
	}
	slices.SortStableFunc(all, func(a, b Profile) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.With, b.With), cmp.Compare(a.Gang, b.Gang), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Source, b.Source))
	})
	return all
}

// ProfileTable lists rates; estimates are dim.
func ProfileTable(p *Page, all []Profile) *Table {
	t := &Table{Head: []string{"KIND", "BESIDE", ">GANG", "MODEL", ">STEPS/S", ">SPEEDUP", "BOUNDS", "SOURCE", ">SAMPLES", ">SPREAD", ">AGE", "BASIS"},
		None: "No speed is known: no job has declared or reported one (docs/heterogeneous-gpus.md)."}
	for i := range all {
		x := &all[i]
		speedup, bounds, samples, spread := "", "", "", ""
		if s := x.Speedup; s != nil {
			speedup, bounds = fmt.Sprintf("%.2f", s.Value), fmt.Sprintf("%.2f-%.2f", s.Low, s.High)
		}
		if x.Samples > 0 {
			samples = fmt.Sprint(x.Samples)
		}
		if x.Samples > 0 || x.Spread > 0 {
			spread = fmt.Sprintf("%.1f%%", 100*x.Spread)
		}
		rate := fmt.Sprintf("%.4g", x.Rate)
		if x.Relative {
			rate = ""
		}
		if x.Relative && x.With.OfNodes() {
			speedup = fmt.Sprintf("%.2f", x.Rate)
		}
		t.Add(string(x.Kind), string(x.With), fmt.Sprint(x.Gang), x.Model, rate, speedup, bounds, cmp.Or(string(x.Method), string(x.Source)), samples, spread, age(p, x.At), x.Basis)
	}
	t.Tint = func(row, _ int) string {
		if all[row].Source == cluster.Estimated {
			return "dim"
		}
		return ""
	}
	return t
}

// ProfileChecks tests the sources of speeds after a round.
func ProfileChecks(snap *cluster.Snapshot, plan *cluster.Plan) []profile.Quality {
	book, models := bookOf(snap, plan)
	return profile.Test(book, models)
}

// ProfileCheckTable lists the coverage and the errors of sources.
func ProfileCheckTable(p *Page, all []profile.Quality) *Table {
	t := &Table{Head: []string{"SOURCE", ">KNOWN", ">OF", ">COVERAGE", ">TESTED", ">ERROR", ">P90"},
		None: "No source has given speeds yet (docs/heterogeneous-gpus.md)."}
	percent := func(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
	for _, c := range all {
		tested, off, worst := "", "", ""
		if c.Tested > 0 {
			tested, off, worst = fmt.Sprint(c.Tested), percent(math.Expm1(c.Error)), percent(math.Expm1(c.Worst))
		}
		t.Add(cmp.Or(string(c.Method), string(c.Source), "unknown"), fmt.Sprint(c.Known), fmt.Sprint(c.Of), percent(float64(c.Known)/float64(max(c.Of, 1))), tested, off, worst)
	}
	return t
}

// NoTrades says why the list of trades is empty: by the policy that divides GPU models in the newest round ("" = none), and whether
// virtual clusters may trade cells. all = past trades were included.
func (p *Page) NoTrades(divide string, tradable, all bool) {
	switch {
	case divide == "":
		p.Printf("There is no trade: no policy divides heterogeneous GPU models; preset %s would.\n", preset.GandivaFair)
	case divide != preset.GandivaFair && !tradable:
		p.Printf("There is no trade: %s divides GPU models, and only %s trades.\n", divide, preset.GandivaFair)
	case all:
		p.Printf("No trade was made that is remembered still.\n")
	default:
		p.Printf("No trade is in force; fairlease trades --all has those that are over.\n")
	}
}

// TradeTable lists trades; past ones are dim.
func (p *Page) TradeTable(list []store.Trade) *Table {
	t := &Table{Head: []string{">ID", "MADE", "FAST_TO", ">GETS", "FAST", "SLOW_TO", ">GETS", "SLOW", ">PRICE", "SPEEDUPS", "GAINS", "UNDONE"},
		None: "No trade was made."}
	w := p.words(nil)
	for i := range list {
		x := &list[i]
		undone := ""
		if x.Undone != nil {
			how := gpuCount(x.UndoneFastGPUs) + " " + x.Fast
			if !x.InForce {
				how = "all"
			}
			undone = fmt.Sprintf("%s, %s: %s", how, clock(w, cluster.InstantOf(*x.Undone)), explain.Undone(x.Why))
		}
		t.Add(fmt.Sprint(x.ID), clock(w, cluster.InstantOf(x.Made)), cmp.Or(x.FastToKind, x.FastTo), gpuCount(x.FastGPUs), x.Fast, cmp.Or(x.SlowToKind, x.SlowTo), gpuCount(x.SlowGPUs), x.Slow,
			fmt.Sprintf("%.2f", x.Price), fmt.Sprintf("%.2f %.2f", x.FastToSpeedup, x.SlowToSpeedup), fmt.Sprintf("%.2f %.2f", x.FastToGain, x.SlowToGain), undone)
	}
	t.Tint = func(row, _ int) string {
		if !list[row].InForce {
			return "dim"
		}
		return ""
	}
	return t
}
