package scene_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/web/scene"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

var _ = scene.Past{PastJobs: &scenetest.Past{}, PastRounds: &scenetest.Past{}}

// all gives everything that a Scene shows, as JSON.
func all(t *testing.T, s *scene.Scene) string {
	t.Helper()
	var jobs []*scene.Job
	for i := range s.Jobs {
		jobs = append(jobs, s.Jobs[i].Job())
	}
	text, err := json.Marshal([]any{s.Status, s.Tenants, s.Debts, s.Users, jobs, s.Leases, s.Nodes, s.GPUs, s.Forecasts, s.Cells, s.Market, s.Events, s.Overrides, s.Snapshot, s.Plan})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A part of a Scene has the jobs of its tenants and the sums of all, and names no job and no user of others.
func TestAPartNamesNobodyElse(t *testing.T) {
	for _, site := range []scenetest.Site{{Nodes: 40, Jobs: 250, Market: true, Counters: true}, {Nodes: 200, Jobs: 1000, Cells: true}} {
		f := site.Facts()
		// A reason names the job of another tenant.
		for i := range f.Plan.Statuses {
			r := &f.Plan.Statuses[i].Reason
			r.Code, r.For = cluster.ReasonClaimed, f.Snapshot.Cases[(i+1)%len(f.Snapshot.Cases)].Record.Key
		}
		if site.Cells {
			cells := *f.Snapshot.Cells
			cells.VCs = slices.Clone(cells.VCs)
			for i := range cells.VCs {
				cells.VCs[i].Scheduler = &cluster.VCScheduler{Command: []string{"/usr/local/bin/order"}}
				f.Snapshot.VCOrders = append(f.Snapshot.VCOrders, cluster.VCOrder{VC: cells.VCs[i].Name, Why: "it failed"})
			}
			f.Snapshot.Cells = &cells
		}
		s := scene.Of(f)
		mine := s.Tenants[0].Tenant
		part := s.For(scene.Scope{Tenants: []string{mine}})
		if len(part.Jobs) == 0 || len(part.Jobs) == len(s.Jobs) || len(part.Tenants) != len(s.Tenants) || part.Snapshot != nil || part.Plan != nil {
			t.Fatalf("%d of %d jobs, %d of %d tenants", len(part.Jobs), len(s.Jobs), len(part.Tenants), len(s.Tenants))
		}
		text := all(t, part)
		for i := range s.Jobs {
			j := s.Jobs[i].Job()
			if j.Tenant != mine && strings.Contains(text, `"user":"`+j.User+`"`) {
				t.Fatalf("user %s of %s is named", j.User, j.Tenant)
			}
			if j.Tenant != mine && (strings.Contains(text, `"slurm_id":"`+j.SlurmID+`"`) || strings.Contains(text, `"job":"`+j.SlurmID+`"`) || strings.Contains(text, "job "+j.SlurmID+" ")) {
				t.Fatalf("job %s of %s is named", j.SlurmID, j.Tenant)
			}
		}
		if site.Cells && (strings.Count(text, `"kind-0"`) != 2 || strings.Contains(text, `"kind-1"`)) {
			t.Error("trades of cells name the types of jobs of others, or not one's own")
		}
		if list := part.Status.Schedulers; site.Cells && (len(list) != 1 || list[0].VC != mine || len(s.Status.Schedulers) < 2) {
			t.Errorf("of the schedulers of virtual clusters, %d of %d are shown: %+v", len(list), len(s.Status.Schedulers), list)
		}
		if len(part.Forecasts) == 0 || len(part.Forecasts) == len(s.Forecasts) || len(part.Status.Soon) != 3 || part.Leases[0].Ahead == nil {
			t.Errorf("%d of %d forecasts, %+v", len(part.Forecasts), len(s.Forecasts), part.Status.Soon)
		}
		if site.Counters && (len(part.GPUs) != len(s.GPUs) || len(part.Nodes[0].Seen) != len(s.Nodes[0].Seen)) {
			t.Errorf("%d of %d GPUs", len(part.GPUs), len(s.GPUs))
		}
		if !strings.Contains(text, "kept for another job") {
			t.Error("no reason speaks of a hidden job")
		}
		nobody := s.For(scene.Scope{})
		if len(nobody.Jobs)+len(nobody.Leases) > 0 || len(nobody.Nodes) != len(s.Nodes) {
			t.Errorf("people of no tenant see %d jobs, %d leases and %d nodes", len(nobody.Jobs), len(nobody.Leases), len(nobody.Nodes))
		}
		if s.For(scene.Scope{Tenants: []string{mine}}) != part || s.For(scene.Scope{All: true}) != s {
			t.Error("parts are made anew")
		}
		if part.For(scene.Scope{All: true}) == s {
			t.Error("a part gives what it was made of")
		}
	}
}

// Jobs and nodes are found by their names, and members by user.
func TestLookUp(t *testing.T) {
	s := scenetest.Site{Nodes: 10, Jobs: 60}.Scene()
	j := s.Jobs[7].Job()
	if s.TenantsOf("nobody") != nil || !slices.Contains(s.TenantsOf(j.User), j.Tenant) {
		t.Errorf("%s is of tenants %v, not only of %s", j.User, s.TenantsOf(j.User), j.Tenant)
	}
	if n := s.Node("n00003"); n == nil || n.Name != "n00003" || s.Node("n") != nil {
		t.Error("a node is not found")
	}
	waits := 0
	for i := range s.Jobs {
		j := s.Jobs[i].Job()
		if j.State == "waiting" && j.Reason == "" {
			t.Errorf("job %s waits for no reason", j.SlurmID)
		}
		if j.State == "waiting" {
			waits++
		}
	}
	if waits == 0 || waits == len(s.Jobs) {
		t.Errorf("%d of %d jobs wait", waits, len(s.Jobs))
	}
}

// Subscribers hear of each new Scene, a slow one of the newest, and not more than allowed.
func TestSubscribers(t *testing.T) {
	k := scene.Hold(scenetest.Site{Nodes: 4, Jobs: 20}.Scene())
	news, done, ok := k.Subscribe(1)
	if _, _, more := k.Subscribe(1); !ok || more {
		t.Fatal("the number of subscribers is not bounded")
	}
	first := k.Scene().Serial
	for range 3 {
		k.Put(scenetest.Site{Nodes: 4, Jobs: 20}.Scene())
	}
	<-news
	if got := k.Scene().Serial; got != first+3 || len(news) > 0 {
		t.Errorf("Scene %d after %d, %d more to come", got, first, len(news))
	}
	done()
	if _, _, ok := k.Subscribe(1); !ok {
		t.Error("a subscriber who left still counts")
	}
}

// Without a journal there is an empty Scene that says so, and no history.
func TestNothingYet(t *testing.T) {
	k := &scene.Keeper{}
	if s := k.Scene(); s.Silent == nil || s.Status == nil || s.Round != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := k.Past().Rounds(context.Background(), 0, 1); !errors.Is(err, scene.ErrAway) {
		t.Error(err)
	}
}
