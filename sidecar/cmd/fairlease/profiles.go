package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/explain"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/store"
)

func (p *program) profiles() *cobra.Command {
	var l listing
	c := &cobra.Command{Use: "profiles [KIND]", Short: "how fast each kind of job is on each GPU model", Args: cobra.MaximumNArgs(1),
		Long: `List what is known of how fast each kind of job runs on each GPU model, as of the newest round:

  KIND      tenant/name; without a tenant it is the site's, a reference for everybody
  BESIDE    kind of the jobs that share its GPUs
  STEPS/S   of the whole gang; 0 = it does not run there
  SPEEDUP   over the slowest model, of what counts; nothing = something surer counts
  BOUNDS    of the speedup
  SOURCE    observed, declared, or estimated from kinds that are like it
  SAMPLES   reports that an observed rate is the average of, or estimates' references
  SPREAD    standard deviation of these
  BASIS     who declared it (file = the administrator), or what an estimate was made of`,
		RunE: func(c *cobra.Command, args []string) error {
			return remembered[profileShown]{
				of:    known,
				fits:  func(x *profileShown, kind string) bool { return string(x.Kind) == kind || x.Kind.Name() == kind },
				none:  "nothing is known of a kind %q",
				table: profileTable,
			}.show(c, p, l, args)
		}}
	l.flags(c)
	return c
}

// profileShown is a rate, with what it makes for the policy.
type profileShown struct {
	cluster.Profile
	Speedup *profileSpeedup `json:"speedup,omitempty"` // nil = something surer counts
}

type profileSpeedup struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// known gives all that was declared and observed, and what the engine estimates where neither was.
func known(snap *cluster.Snapshot, plan *cluster.Plan) ([]profileShown, error) {
	if snap.Settings.Divide == "" {
		return nil, &failure.Error{Code: failure.No, What: "no policy divides unlike GPU models in the newest round",
			Next: "set preset to one of " + strings.Join(policy.Presets(), ", ") + "; fairlease status tells whether rounds are made"}
	}
	set := profile.Default()
	set.Estimate = !snap.Settings.NoEstimates
	book := profile.New(set, plan.Memory.Profiles, plan.Memory.Paces)
	for _, d := range snap.Declared {
		d.Basis = profile.File
		_ = book.Declare(d) // what is wrong was told when the file was read
	}
	var models []string
	for i := range plan.Memory.Ledger.Pools {
		models = append(models, plan.Memory.Ledger.Pools[i].Pool)
	}
	var all []profileShown
	type group struct {
		kind, with cluster.Kind
		gang       int
	}
	seen := map[group]bool{}
	for _, e := range book.Entries() {
		all = append(all, profileShown{Profile: e})
		g := group{e.Kind, e.With, e.Gang}
		if e.With != "" || seen[g] {
			continue
		}
		seen[g] = true
		for _, model := range models {
			if x, ok := book.Rate(e.Kind, model, e.Gang); ok && x.Source == cluster.Estimated {
				x.Model, x.Gang = model, e.Gang
				all = append(all, profileShown{Profile: x})
			}
		}
	}
	for i := range all {
		x := &all[i]
		at := slices.Index(models, x.Model)
		if x.With != "" || at < 0 {
			continue
		}
		if s := book.Speedups(x.Kind, x.Gang, models)[at]; s.Source == x.Source {
			x.Speedup = &profileSpeedup{s.Value, s.Low, s.High}
		}
	}
	slices.SortStableFunc(all, func(a, b profileShown) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.With, b.With), cmp.Compare(a.Gang, b.Gang), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Source, b.Source))
	})
	return all, nil
}

func profileTable(all []profileShown, now cluster.Instant) *table {
	t := &table{head: []string{"KIND", "BESIDE", ">GANG", "MODEL", ">STEPS/S", ">SPEEDUP", "BOUNDS", "SOURCE", ">SAMPLES", ">SPREAD", ">AGE", "BASIS"}}
	for i := range all {
		x := &all[i]
		speedup, bounds, samples, spread, age := "", "", "", "", ""
		if s := x.Speedup; s != nil {
			speedup, bounds = fmt.Sprintf("%.2f", s.Value), fmt.Sprintf("%.2f-%.2f", s.Low, s.High)
		}
		if x.Samples > 0 {
			samples, spread = fmt.Sprint(x.Samples), fmt.Sprintf("%.1f%%", 100*x.Spread)
		}
		if x.At > 0 {
			age = now.Sub(x.At).String()
		}
		t.add(string(x.Kind), string(x.With), fmt.Sprint(x.Gang), x.Model, fmt.Sprintf("%.4g", x.Rate), speedup, bounds, string(x.Source), samples, spread, age, x.Basis)
	}
	t.tint = func(row, _ int) string {
		if all[row].Source == cluster.Estimated {
			return "dim"
		}
		return ""
	}
	return t
}

func (p *program) trades() *cobra.Command {
	var l listing
	var all bool
	var limit int
	c := &cobra.Command{Use: "trades", Short: "which tenants have traded GPUs of unlike models", Args: exactly(),
		Long: `List the swaps of what tenants are due of a fast and a slow GPU model (preset gandiva-fair), those in
force first, newest first:

  FAST_TO    kind of jobs that gets fast GPUs and gives slow ones
  SLOW_TO    kind of jobs that gets slow GPUs and gives fast ones
  PRICE      slow GPUs for a fast one
  SPEEDUPS   what a fast GPU was worth to the two when they traded, in slow ones
  GAINS      what each gains, in GPUs of the model that is slowest to it
  UNDONE     how much went back, when, and why`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				list, err := s.Trades(c.Context(), all, limit)
				if err != nil {
					return err
				}
				if len(list) == 0 && !l.json && !l.parsable {
					return p.noTrades(c.Context(), l, s, all)
				}
				if err := p.list(l, p.tradeTable(list), list); err != nil {
					return err
				}
				return p.asOf(c.Context(), l, s)
			})
		}}
	c.Flags().BoolVarP(&all, "all", "a", false, "trades that are over, too")
	c.Flags().IntVar(&limit, "limit", 1000, "no more than `N`, the newest")
	l.flags(c)
	return c
}

// noTrades tells people why there is no trade to show.
func (p *program) noTrades(ctx context.Context, l listing, s *store.Store, all bool) error {
	snap, plan, err := s.Last(ctx)
	if err != nil {
		return err
	}
	switch divide := snap.Settings.Divide; {
	case plan.Round == 0: // that is said below
	case divide == "":
		p.printf("There is no trade: no policy divides unlike GPU models, preset %s would.\n", policy.GandivaFair)
	case divide != policy.GandivaFair:
		p.printf("There is no trade: %s divides GPU models, and only %s trades.\n", divide, policy.GandivaFair)
	case all:
		p.printf("No trade was made that is remembered still.\n")
	default:
		p.printf("No trade is in force; fairlease trades --all has those that are over.\n")
	}
	return p.asOf(ctx, l, s)
}

func (p *program) tradeTable(list []store.Trade) *table {
	t := &table{head: []string{">ID", "MADE", "FAST_TO", ">GETS", "FAST", "SLOW_TO", ">GETS", "SLOW", ">PRICE", "SPEEDUPS", "GAINS", "UNDONE"}}
	w := p.words(p.now(), nil)
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
		t.add(fmt.Sprint(x.ID), clock(w, cluster.InstantOf(x.Made)), or(x.FastToKind, x.FastTo), gpuCount(x.FastGPUs), x.Fast, or(x.SlowToKind, x.SlowTo), gpuCount(x.SlowGPUs), x.Slow,
			fmt.Sprintf("%.2f", x.Price), fmt.Sprintf("%.2f %.2f", x.FastToSpeedup, x.SlowToSpeedup), fmt.Sprintf("%.2f %.2f", x.FastToGain, x.SlowToGain), undone)
	}
	t.tint = func(row, _ int) string {
		if !list[row].InForce {
			return "dim"
		}
		return ""
	}
	return t
}
