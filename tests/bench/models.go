package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/fairlease/fairlease/research/figures"
	"github.com/fairlease/fairlease/research/steady"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// dividers are the presets that are compared, the first of them what the others are held against: the same share of every model
// for everybody. After them come the papers' own mechanisms.
var dividers = []string{"fairlease:gandiva-fair:no-trade", "astraea", "fairlease:gandiva-fair", "fairlease:gavel:las", "fairlease:oef:coop", "fairlease:oef:noncoop",
	"gandiva-fair:split", "gavel:las", "oef:coop", "oef:noncoop"}

// drawnSeeds are how many seeds an experiment is drawn with: from that of the command line on.
const drawnSeeds = 4

// onModels compares the presets: on Gandiva_fair's four users (§5.5, Figures 8 and 11), on twenty tenants
// with jobs of Gavel's throughput table on 8 GPUs of each model, as OEF §6.3 has it, with several seeds, and on OEF's fifty
// tenants who come and go.
func onModels(seed uint64) error {
	users, speeds := steady.Gandiva()
	if err := compareModels("Gandiva_fair's four users", [][]steady.User{users}, speeds, steady.GandivaFleet); err != nil {
		return err
	}
	table, err := trace.OpenThroughputs(filepath.Join(gavelData, "simulation_throughputs.json.gz"))
	if err != nil {
		return err
	}
	speeds = experiment.SpeedsOf(table, trace.GavelReference)
	var kinds []string
	for task := range speeds {
		if task.GPUs == 1 {
			kinds = append(kinds, task.Kind)
		}
	}
	slices.Sort(kinds)
	var drawn [][]steady.User
	for k := range uint64(drawnSeeds) {
		random := rand.New(rand.NewPCG(seed+k, 0))
		users = nil
		for n := range 20 {
			users = append(users, steady.User{Name: fmt.Sprintf("tenant%02d", n+1), Kind: kinds[random.IntN(len(kinds))], Jobs: 20, GPUs: 1})
		}
		drawn = append(drawn, users)
	}
	name := fmt.Sprintf("twenty tenants, seeds %d to %d", seed, seed+drawnSeeds-1)
	if err := compareModels(name, drawn, speeds, "2x4:v100+2x4:p100+2x4:k80"); err != nil {
		return err
	}
	return compareTimes()
}

// compareModels prints what each tenant's jobs do in two days after the first half, under each preset: long enough for jobs that
// are each due a sixth of a GPU to have their turns. Where the tenants are drawn several times it prints the least and the most of
// all draws.
func compareModels(name string, draws [][]steady.User, speeds sim.Speeds, fleet string) error {
	f, err := experiment.ParseFleet(fleet)
	if err != nil {
		return err
	}
	fmt.Printf("%s on %s: throughput, in GPUs of the slowest model, and of each tenant as a multiple of that without trading\n", name, fleet)
	alone := make([]map[string]float64, len(draws))
	for _, by := range dividers {
		var totals, worst, best []float64
		each := "" // tenant: its rate
		for k, users := range draws {
			s := experiment.Default()
			s.Scheduler, s.Load, s.Fleet, s.Speeds = by, steady.Load(name, users), f, speeds
			s.Weights = experiment.EqualWeights(experiment.Survey(s.Load))
			rates, err := steady.Rates(context.Background(), s, 12*cluster.Hour, 60*cluster.Hour)
			if err != nil {
				return fmt.Errorf("%s: %w", by, err)
			}
			if alone[k] == nil {
				alone[k] = rates
			}
			total := 0.0
			var of []float64
			for _, tenant := range slices.Sorted(maps.Keys(rates)) {
				x := rates[tenant] / alone[k][tenant]
				total, of = total+rates[tenant], append(of, x)
				if len(rates) <= 4 {
					each += fmt.Sprintf("  %s %.1f (%.2f)", tenant, rates[tenant], x)
				}
			}
			totals, worst, best = append(totals, total), append(worst, slices.Min(of)), append(best, slices.Max(of))
		}
		fmt.Printf("  %-32s total %s  worst-off tenant %s  best-off tenant %s%s\n", by, spread("%.1f", totals), spread("%.2f", worst), spread("%.2f", best), each)
	}
	return nil
}

// spread gives the least and the most of values, or the one that there is.
func spread(format string, of []float64) string {
	if len(of) == 1 {
		return fmt.Sprintf(format, of[0])
	}
	return fmt.Sprintf(format+" to "+format, slices.Min(of), slices.Max(of))
}

// compareTimes prints how long the jobs of OEF's fifty tenants are there, with what leases cost and without, under each preset.
func compareTimes() error {
	s, err := figures.Comers(50)
	if err != nil {
		return err
	}
	free := s
	free.Costs, free.Saves = sim.Costs{}, experiment.Only(sim.Always)
	fmt.Printf("fifty tenants who come and go on %s: mean completion time, hand-overs, and the first where these cost nothing\n", s.Fleet)
	for _, by := range dividers {
		s.Scheduler, free.Scheduler = by, by
		got, err := experiment.Run(context.Background(), s, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", by, err)
		}
		best, err := experiment.Run(context.Background(), free, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", by, err)
		}
		const hour = 3600
		fmt.Printf("  %-32s %5.2f h  %6d  %5.2f h\n", by, got.Completion.Mean/hour, got.Preemptions, best.Completion.Mean/hour)
	}
	return nil
}
