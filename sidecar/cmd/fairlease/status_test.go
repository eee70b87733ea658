package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Jobs that are set aside are a line of status.
func TestStatusTellsOfJobsThatAreSetAside(t *testing.T) {
	s := tell(t)
	snap, plan, err := s.store.Rounds.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	snap.Cases[0].Job.Aside = "node list \"v[\" has no closing bracket"
	plan.Round++
	snap.Round++
	plan.State.Round++
	if err := s.world.Loop.Journal.Commit(t.Context(), snap, plan); err != nil {
		t.Fatal(err)
	}
	r := s.run(t, "status")
	if want := "aside     1 job set aside, charged and left alone, since fairlease cannot handle them; the first is job 1 of nlp_user: node list \"v[\" has no closing bracket"; !strings.Contains(r.out, want) {
		t.Errorf("want %q in\n%s", want, r.out)
	}
	if r := s.run(t, "status", "--json"); !strings.Contains(r.out, `"aside": [`) {
		t.Error(r.out)
	}
}

// GPUs of jobs that are left alone, and idle GPUs in others' reservations, count as out of reach.
func TestStatusCountsGPUsOutOfReach(t *testing.T) {
	s := tell(t)
	snap, plan, err := s.store.Rounds.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r := s.run(t, "status"); strings.Contains(r.out, "beyond") {
		t.Errorf("nothing is out of reach:\n%s", r.out)
	}
	held, leave := 0, []cluster.Left{cluster.LeftOptOut, cluster.LeftExcluded}
	for i := range snap.Cases {
		c := &snap.Cases[i]
		if n := c.Job.GPUsHeld(); n > 0 && c.Job.State == cluster.Running {
			if len(leave) > 0 {
				c.Control, c.Left, leave = cluster.Unmanaged, leave[0], leave[1:]
			}
			held += n
		}
	}
	spare := cluster.Node{Name: "spare", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}
	sick := spare
	sick.Name, sick.Bad = "sick", "down"
	snap.Nodes = append(snap.Nodes, sick, spare)
	whole := func(name string, ours bool, start cluster.Span, nodes ...string) cluster.Reservation {
		return cluster.Reservation{Name: name, Nodes: nodes, Ours: ours, Start: snap.Now.Add(start), End: snap.Now.Add(start + cluster.Hour)}
	}
	everywhere := []string{"sick", "spare"}
	for i := range snap.Nodes {
		everywhere = append(everywhere, snap.Nodes[i].Name)
	}
	snap.Reservations = []cluster.Reservation{whole("course", false, -cluster.Minute, everywhere...), whole("class", false, 0, "spare"),
		whole("maint", false, cluster.Hour, everywhere...), whole("fairlease_1", true, 0, everywhere...)}
	plan.Round++
	snap.Round++
	plan.State.Round++
	if err := s.world.Loop.Journal.Commit(t.Context(), snap, plan); err != nil {
		t.Fatal(err)
	}
	var got struct{ Pools []view.PoolStatus }
	r := s.run(t, "status", "--json")
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || len(got.Pools) != 1 {
		t.Fatalf("%v\n%s", err, r.out)
	}
	p := got.Pools[0]
	if by := p.OutBy; p.Out != by[cluster.LeftOptOut]+by[cluster.LeftExcluded]+by[cluster.LeftReservation] || by[cluster.LeftOptOut] == 0 || by[cluster.LeftExcluded] == 0 ||
		by[cluster.LeftReservation] != cluster.CountOf(4-held)+p.GPUs {
		t.Errorf("out of reach: %s, %v, of %s GPUs and 4 spare ones, %d held", p.Out, by, p.GPUs, held)
	}
	r = s.run(t, "status")
	for _, want := range []string{"beyond    GPUs that cannot be leased: ", "4 reserved by others", " held by jobs that opt out of leases", " held by jobs that the configuration excludes"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("want %q in\n%s", want, r.out)
		}
	}
}

// Status names the daemons that stand by, and those that are gone.
func TestStatusNamesStandbys(t *testing.T) {
	s := tell(t)
	for holder, silence := range map[string]time.Duration{"ctl2:7": time.Hour, "ctl3:8": time.Microsecond} {
		if err := s.store.Daemons.Attend(t.Context(), holder, silence); err != nil {
			t.Fatal(err)
		}
	}
	r := s.run(t, "status")
	for _, want := range []string{"\nstandby   ctl2:7, runs since ", "\ngone      ctl3:8 was last seen at "} {
		if !strings.Contains(r.out, want) {
			t.Errorf("want %q in\n%s", want, r.out)
		}
	}
	var got struct{ Standbys []store.Standby }
	if r := s.run(t, "status", "--json"); json.Unmarshal([]byte(r.out), &got) != nil || len(got.Standbys) != 2 || !got.Standbys[0].Alive || got.Standbys[1].Alive {
		t.Errorf("%+v\n%s", got, r.out)
	}
}
