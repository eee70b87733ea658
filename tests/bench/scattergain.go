package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/fairlease/fairlease/research/gavel"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// onScatterGain measures waiting for nodes together (compact.max_wait) on jobs of Gavel's authors that ask for one to eight GPUs on any nodes, one
// an hour on 36 V100s in nodes of four, by astraea: the mean completion where nothing is known of gangs on more nodes than they need, over that
// where it is, less 1. It is declared, or learnt from reports. Then it measures waiting for nodes under one switch, of three nodes each, where jobs ask for
// their fewest nodes and lose across switches half of what they lose on more nodes (the data have no switches): declared.
func onScatterGain() error {
	table, err := trace.OpenThroughputs(filepath.Join(gavelData, "simulation_throughputs.json.gz"))
	if err != nil {
		return err
	}
	l := lab{table: table}
	if l.fleet, err = experiment.ParseFleet("9x4:v100"); err != nil {
		return err
	}
	hours := func(fleet experiment.Fleet, anywhere bool, wait cluster.Span, declared sim.Speeds) (float64, error) {
		load, err := l.stream("multiple", 1)
		if err != nil {
			return 0, err
		}
		load.Anywhere = anywhere
		s := l.setup("astraea", load)
		s.Fleet, s.Speeds = fleet, across(s.Speeds)
		s.Settings.Interval, s.Settings.ScatterWait, s.Declared = 10*cluster.Second, wait, declared
		f, err := gavel.Follow(context.Background(), s, 400, 800)
		return f.Hours(), err
	}
	usual := experiment.Default().Settings.ScatterWait
	var took [4]float64
	for i, c := range []struct {
		anywhere bool
		wait     cluster.Span
		declared sim.Speeds
	}{{true, 0, nil}, {true, usual, nil}, {true, usual, sim.Speeds{}}, {false, 0, nil}} {
		if took[i], err = hours(l.fleet, c.anywhere, c.wait, c.declared); err != nil {
			return err
		}
	}
	fmt.Printf("mean completion of 400 jobs with gangs on 36 GPUs: %.2f h on any nodes, %.2f h where those that are slower there wait, %.2f h where that is learnt, %.2f h where all ask for their fewest\n",
		took[0], took[1], took[2], took[3])
	figure("scatter_gain_pct", 100*(took[0]/took[1]-1), "%")
	figure("scatter_gain_learnt_pct", 100*(took[0]/took[2]-1), "%")
	switched := l.fleet
	switched.PerSwitch = 3
	for i, wait := range []cluster.Span{0, usual} {
		if took[i], err = hours(switched, false, wait, nil); err != nil {
			return err
		}
	}
	fmt.Printf("with three nodes under each switch: %.2f h under any switches, %.2f h where gangs that are slower across switches wait\n", took[0], took[1])
	figure("switch_gain_pct", 100*(took[0]/took[1]-1), "%")
	return nil
}

// across gives speeds across switches, halfway between those together and apart.
func across(speeds sim.Speeds) sim.Speeds {
	out := sim.Speeds{}
	for task, rates := range speeds {
		out[task] = maps.Clone(rates)
		for model, r := range rates {
			if r.Apart > 0 {
				r.Across = (r.Speed + min(r.Apart, r.Speed)) / 2
			}
			out[task][model] = r
		}
	}
	return out
}
