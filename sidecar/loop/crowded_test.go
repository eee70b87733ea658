package loop

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Without the licence of gates, nothing is acted on while more jobs wait than begin times are kept for, and until a quarter less do.
// Arrays count once; jobs that need no gate do not count.
func TestMoreJobsThanBeginTimes(t *testing.T) {
	task := batch(7)
	task.UnsplitArray = true
	other, runs, light := batch(21), batch(22), batch(23)
	other.Partitions, runs.State, light.Request.Size = []string{"cpu"}, cluster.Running, cluster.Size{}
	others := []cluster.Job{task, task, task, other, runs, light} // one gate
	act := Rules{Mode: Act, Partitions: []string{"gpu"}, TenantLevel: 1, MaxBeginTimes: 4}
	for _, c := range []struct {
		name    string
		waiting int // besides the array
		was     bool
		change  func(*Rules, *cluster.Observation)
		want    bool
	}{
		{"as many", 3, false, nil, false},
		{"one more", 4, false, nil, true},
		{"no longer more", 3, true, nil, true},
		{"a quarter less", 2, true, nil, false},
		{"the licence", 4, true, func(_ *Rules, s *cluster.Observation) { s.License = cluster.License{Name: "fairlease", Total: 9} }, false},
		{"no limit", 4, true, func(r *Rules, _ *cluster.Observation) { r.MaxBeginTimes = 0 }, false},
		{"observe", 4, true, func(r *Rules, _ *cluster.Observation) { r.Mode = Observe }, false},
		{"canary elsewhere", 4, true, func(r *Rules, _ *cluster.Observation) { r.Mode, r.Canary = Canary, []string{"cpu"} }, false},
	} {
		rules, jobs := act, others
		for id := range c.waiting {
			jobs = append(jobs, batch(int64(8+id)))
		}
		seen := sight(noon, jobs...)
		if c.change != nil {
			c.change(&rules, &seen)
		}
		s, err := Remember(cluster.State{Crowded: c.was}, seen, nil, rules, settings)
		if err != nil {
			t.Fatal(err)
		}
		if s.Crowded != c.want || s.WasCrowded != c.was {
			t.Errorf("%s: crowded %t, was %t", c.name, s.Crowded, s.WasCrowded)
		}
		for i := range s.Cases {
			if x := &s.Cases[i]; c.want && (x.Control == cluster.FullControl || x.Control == cluster.NoReclaim) {
				t.Errorf("%s: job %s is acted on", c.name, x.Job.ID)
			}
		}
	}
}

// A round after which nothing else has changed acts on the jobs that were only observed.
func TestTheSameJobsAreActedOnAgain(t *testing.T) {
	d, rules := new(desk), Rules{Mode: Act, Partitions: []string{"gpu"}, TenantLevel: 1, MaxBeginTimes: 1}
	seen := sight(noon, batch(1), batch(2))
	for i := range seen.Jobs {
		seen.Jobs[i].Version = 1
	}
	m := cluster.State{}
	for round, want := range []cluster.Control{cluster.ObserveOnly, cluster.FullControl} {
		s, err := d.remember(m, seen, nil, rules, settings)
		if err != nil {
			t.Fatal(err)
		}
		if s.Cases[0].Control != want {
			t.Errorf("round %d: %s", round, s.Cases[0].Control)
		}
		m = cluster.State{Round: s.Round, NextKey: s.NextKey, Ledger: cluster.Ledger{At: s.Now}, Crowded: s.Crowded}
		for i := range s.Cases {
			m.Records = append(m.Records, s.Cases[i].Record)
		}
		d.cases = s.Cases
		seen.License = cluster.License{Name: "fairlease", Total: 9}
	}
}
