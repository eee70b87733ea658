package main

import (
	"fmt"
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	web "github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// scenes measures the Scene of a new round after few changes.
func scenes() error {
	site, err := (simtest.Site{Nodes: 2000, Jobs: 10_000, Tenants: 100, Unversioned: true}).Open()
	if err != nil {
		return err
	}
	var snap cluster.Snapshot
	decide := site.Loop.Decide
	site.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		snap = s
		return decide(s)
	}
	took := timing{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}
	for range 20 {
		r, err := site.Turn(changes)
		if err != nil {
			return err
		}
		f := scenetest.Of(snap, r.Plan)
		begin := meter()
		web.Of(f)
		took = took.least(meter().over(begin, 1))
	}
	fmt.Printf("A Scene of 10000 jobs and 2000 nodes after %d changes, the least of 20:\n", changes)
	timed("scene_10k_ms", took)
	return nil
}
