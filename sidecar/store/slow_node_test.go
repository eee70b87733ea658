package store_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// A daemon dies every 20 minutes: the next one goes on with the attempts that are compared, and tells once that a node is slow.
func TestSlowNodesOutliveDaemons(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	s, db := openStore(t, store.Config{DSN: dsn}), storetest.Connect(t, dsn)
	settings := simtest.Product()
	settings.SlowNodePercent, settings.Interval = 85, cluster.Minute
	w := simtest.New(t, settings, simtest.Nodes("v", "v100", 4, 4), "bio", "nlp")
	w.Reports = cluster.Minute
	sim.Slow(w.Virtual, "v01", 600_000)
	for range 8 { // four jobs a node, two of each tenant
		for _, tenant := range []string{"bio", "nlp"} {
			w.Submit(tenant, 1, 1, 2*cluster.Hour)
		}
	}
	for range 9 {
		lapse(t, db)
		w.Loop = &loop.Loop{Cluster: w.Loop.Cluster, Journal: takeLead(t, s).Journal(), Decide: w.Loop.Decide, Configure: w.Loop.Configure}
		w.Run(20 * cluster.Minute)
	}
	_, plan, err := s.Rounds.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if slow := plan.State.NodeSpeeds.Slow; len(slow) != 1 || slow[0].Node != "v01" || slow[0].Percent != 60 || slow[0].Users != 2 {
		t.Errorf("slow nodes: %+v", slow)
	}
	type told struct{ Kind, Node string }
	same(&life{t: t, store: s, db: db}, "events", []told{{cluster.EventSlowNode, "v01"}}, "select kind, node from fairlease.events where kind = 'slow_node'")
}
