package browser

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// TestReadmePicture looks at the overview as README.md shows it: a cluster of 24 nodes after two simulated days.
func TestReadmePicture(t *testing.T) {
	needs(t)
	facts := busy(t)
	site := serveAt(scene.Of(facts), &scenetest.Past{Facts: facts}, true, func() time.Time { return facts.Read })
	t.Cleanup(site.Close)
	for _, f := range look(t, site.URL, []Visit{{Name: "readme", Path: "/", Width: 1200, Height: 800}}) {
		for _, missing := range []string{"inf", "None yet", "No job waits"} {
			if strings.Contains(f.Text, missing) {
				t.Errorf("the picture shows %q:\n%s", missing, f.Text)
			}
		}
	}
}

// busy simulates five tenants with drawn jobs on two models of GPUs, some more by day, and gives what the journal tells at the end.
func busy(t *testing.T) scene.Facts {
	tenants := []string{"astro", "bio", "nlp", "speech", "vision"}
	set := simtest.Product()
	set.Interval = 30 * cluster.Second
	w := simtest.New(t, set, append(simtest.Nodes("h", "h100", 8, 8), simtest.Nodes("a", "a100", 16, 8)...), tenants...)
	var events []store.Noted
	names := map[cluster.JobKey]string{}
	w.Check = func(r loop.Report) {
		for rec := range r.Plan.State.All() {
			names[rec.Key] = rec.ID.String()
		}
		for _, e := range r.Plan.Events {
			x := store.Noted{Event: store.Event{At: r.Plan.At.Time(), Kind: e.Kind, Node: e.Node, Text: e.Text, Round: r.Plan.Round}, Job: e.Job}
			if id := names[e.Job]; id != "" {
				x.SlurmID = &id
			}
			events = append(events, x)
		}
	}
	draw := rand.New(rand.NewPCG(1, 1))
	for hour := range 2*24 + 15 {
		for i, tenant := range tenants {
			for range draw.IntN(6 + 3*i - hour%24/4) {
				gpus := []int{1, 1, 2, 4, 8}[draw.IntN(5)]
				w.Virtual.Submit(sim.Work{Name: []string{"train", "tune", "eval"}[draw.IntN(3)], User: fmt.Sprintf("%s%d", tenant, draw.IntN(4)), Account: tenant, Partition: "gpu",
					Comment: []string{"", "saves=term", "saves=20m", "saves=often"}[draw.IntN(301)/100], Request: simtest.Gang(gpus), Runs: cluster.Span(10+draw.IntN(420)) * cluster.Minute})
			}
		}
		w.Run(cluster.Hour)
	}
	w.Run(7*cluster.Minute + 20*cluster.Second)
	snap, plan, err := w.Loop.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan.Round = max(plan.Round, 1)
	f := scenetest.Of(snap, plan)
	f.Debts, f.Budgets, f.Bound, f.Kept = nil, nil, nil, nil // made up
	slices.Reverse(events)
	f.Events = events
	return f
}
