package main

import (
	"context"
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// onBacklog measures what stops cost where far more jobs wait than can run, and none saves: each of them has an allowance to lose.
func onBacklog() error {
	const nodes, waiting, first, hours = 30, 4_000, 2, 6
	fmt.Printf("%d GPUs are full, %d jobs wait and none saves; another comes every two minutes; %d hours after the first %d\n", 8*nodes, waiting, hours, first)
	v := crowdedSite(nodes, waiting, 2*cluster.Minute, 1_000_000)
	set, last := config.Default().Settings(), cluster.Plan{}
	l := &loop.Loop{Cluster: v, Journal: sim.NewMemory(), Decide: new(engine.Decider).Decide,
		Configure: func() (loop.Rules, cluster.Settings) {
			return loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}, set
		}}
	run := func(span cluster.Span) (destroyed, capacity float64, err error) {
		err = sim.Run(context.Background(), v, l, set.Interval, v.Now().Add(span), func(r loop.Report) { last = r.Plan })
		for _, p := range last.State.Ledger.Pools {
			destroyed, capacity = destroyed+float64(p.Overhead), capacity+float64(p.Capacity)
		}
		return destroyed, capacity, err
	}
	before, of, err := run(first * cluster.Hour)
	if err != nil {
		return err
	}
	destroyed, all, err := run(hours * cluster.Hour)
	if err != nil {
		return err
	}
	figure("overhead_backlog_pct", 100*(destroyed-before)/(all-of), "%")
	return nil
}
