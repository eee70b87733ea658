package actions

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
)

// Two jobs on one GPU run at the same time from when both are known alone, as long as each does half of that at least.
func TestPairs(t *testing.T) {
	const now = roundtest.Now
	ago := func(turns int) cluster.Instant { return now.Add(-cluster.Span(turns) * cluster.Minute) }
	for _, c := range []struct {
		name   string
		pairs  [2]cluster.Pair
		change func(s *cluster.Snapshot, marks []round.Mark)
		want   []string // actions and events
		beside bool     // the new mode
		forgot bool     // no pair is kept
	}{
		{name: "nothing is known", want: nil},
		{name: "one is known alone", pairs: [2]cluster.Pair{{Alone: 4}, {}}},
		{name: "both are known alone", pairs: [2]cluster.Pair{{Alone: 4}, {Alone: 2}}, want: []string{"resume 2"}, beside: true},
		{name: "they were compared before", pairs: [2]cluster.Pair{{Alone: 4, Next: now + 1}, {Alone: 2, Next: now + 1}}},
		{name: "they are tried", pairs: [2]cluster.Pair{{Beside: true, Alone: 4, Since: ago(4)}, {Beside: true, Alone: 2, Since: ago(4)}}, beside: true},
		{name: "one does not report", pairs: [2]cluster.Pair{{Beside: true, Alone: 4, Both: 3, Since: ago(5)}, {Beside: true, Alone: 2, Since: ago(5)}}, want: []string{"suspend 2"}},
		{name: "both do half", pairs: [2]cluster.Pair{{Beside: true, Alone: 4, Both: 2, Since: ago(2)}, {Beside: true, Alone: 2, Both: 1, Since: ago(2)}}, want: []string{"pair"}, beside: true},
		{name: "that was told", pairs: [2]cluster.Pair{{Beside: true, Alone: 4, Both: 2, Since: ago(2), Good: 1}, {Beside: true, Alone: 2, Both: 1, Since: ago(2), Good: 1}}, beside: true},
		{name: "one does less than half", pairs: [2]cluster.Pair{{Beside: true, Alone: 4, Both: 4, Since: ago(2)}, {Beside: true, Alone: 2, Both: 0.9, Since: ago(2)}}, want: []string{"suspend 2", "pair"}},
		{name: "it has lasted", pairs: [2]cluster.Pair{{Beside: true, Alone: 4, Both: 2, Since: ago(31), Good: 1}, {Beside: true, Alone: 2, Both: 1, Since: ago(31), Good: 1}}, want: []string{"suspend 2"}},
		{name: "pairs are off", pairs: [2]cluster.Pair{{Beside: true, Alone: 4, Both: 2, Since: ago(2)}, {Beside: true, Alone: 2, Both: 1, Since: ago(2)}},
			change: func(s *cluster.Snapshot, _ []round.Mark) { s.Settings.Slices.Pairs = false }, want: []string{"suspend 2"}, forgot: true},
		{name: "one has to save", pairs: [2]cluster.Pair{{Beside: true, Alone: 4, Both: 2, Since: ago(2)}, {Beside: true, Alone: 2, Both: 1, Since: ago(2)}},
			change: func(_ *cluster.Snapshot, marks []round.Mark) { marks[0].Noticed = true }, want: []string{"notice 1"}, forgot: true},
		{name: "another partner", pairs: [2]cluster.Pair{{With: 7, Beside: true, Alone: 4, Both: 2, Since: ago(2)}, {With: 8, Beside: true, Alone: 2, Both: 1, Since: ago(2)}}, want: []string{"suspend 2"}},
	} {
		var cases []cluster.Case
		half := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}
		for i, p := range c.pairs {
			j := roundtest.On(roundtest.Job(int64(i+1), "bio", 1, cluster.Running), "a", "v100", 1)
			if p.With == 0 {
				p.With = cluster.JobKey(2 - i)
			}
			turns := !p.Beside
			j.Job.Holds[0].Size, j.Job.Holds[0].Index, j.Job.Paused = half, []int{2}, turns && i == 1
			j.Record.Slice = &cluster.Slice{Ask: "gres/gpu:1", Shards: 2, Runs: i == 0 || !turns, At: now.Add(-50 * cluster.Second), Pair: &p}
			cases = append(cases, j)
		}
		s, marks := roundtest.Snapshot(cases...), make([]round.Mark, len(cases))
		s.Settings.Slices = &cluster.Slices{Quantum: cluster.Minute, Pairs: true}
		for i := range cases {
			s.Leases = append(s.Leases, cluster.Lease{Job: cluster.JobKey(i + 1), Term: 1, State: cluster.Active, Pool: "v100", Size: half, Nodes: cases[i].Job.Holds, Granted: now.Add(-cluster.Hour), End: now.Add(cluster.Hour)})
		}
		if c.change != nil {
			c.change(s, marks)
		}
		in, leases := roundtest.Facts(s)
		found := new(eligible.Nodes).Find(in, leases, nil)
		list, gates, events := new(Workspace).List(&Input{In: in, Found: found, Leases: leases, Marks: marks}, round.BeneficiariesOf(leases, nil, marks), nil)
		var got []string
		for _, a := range list {
			got = append(got, fmt.Sprintf("%s %d", a.Verb, a.Job))
		}
		for _, e := range events {
			got = append(got, e.Kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		for i := range cases {
			p := cases[i].Record.Slice.Pair
			if k := slices.IndexFunc(gates, func(g Gate) bool { return g.Case == i }); k >= 0 {
				p = gates[k].Slice.Pair
			}
			if (p == nil) != c.forgot || p != nil && (p.Beside != c.beside || p.Beside && p.Since == 0) {
				t.Errorf("%s: job %d has %+v", c.name, i+1, p)
			}
		}
	}
}

// A job is not alone while the owner of its partner lets that run between two rounds: else it would seem slow alone, and be put beside its partner.
func TestRatesInATakenTurn(t *testing.T) {
	const now = roundtest.Now
	for took, want := range map[cluster.Span]float64{0: 3, cluster.Second: 0} {
		var cases []cluster.Case
		for i := range 2 {
			j := roundtest.On(roundtest.Job(int64(i+1), "bio", 1, cluster.Running), "a", "v100", 1)
			j.Job.Paused = i == 1
			j.Record.Slice = &cluster.Slice{Runs: i == 0, At: now.Add(-cluster.Minute)}
			cases = append(cases, j)
		}
		cases[0].Record.Slice.Pair = &cluster.Pair{With: 2, Steps: 10, At: now.Add(-50 * cluster.Second)}
		cases[1].Record.Slice.Took = took
		s := roundtest.Snapshot(cases...)
		s.Settings.Slices = &cluster.Slices{Quantum: cluster.Minute, Pairs: true}
		s.Progress = []cluster.Progress{{Job: cases[0].Job.ID, Steps: 130, At: now.Add(-10 * cluster.Second)}}
		in, _ := roundtest.Facts(s)
		if p := (&turns{in: &Input{In: in}}).measured(0, 1); p.Alone != want {
			t.Errorf("partner ran for %v meanwhile: %+v, want %v steps a second alone", took, p, want)
		}
	}
}

// Rates are over the time in which a job ran between two reports.
func TestRatesOfPairs(t *testing.T) {
	var p cluster.Pair
	for _, r := range []struct {
		steps     float64
		at        cluster.Span
		suspended cluster.Span
		alone     float64
	}{
		{100, 10, 0, 0},
		{105, 15, 0, 0},    // too short
		{140, 50, 0, 1},    // 40 steps in 40 s
		{200, 170, 60, 1},  // 60 steps in 120 s, less 60 s of suspension
		{10, 200, 60, 1},   // it began anew
		{130, 240, 60, 3},  // 120 steps in 40 s
		{130, 280, 60, 0},  // it stands still
		{130, 281, 100, 0}, // suspended for longer than the time between
	} {
		p = reported(p, &cluster.Progress{Steps: r.steps, At: cluster.Instant(r.at * cluster.Second)}, r.suspended*cluster.Second, 30*cluster.Second)
		if p.Alone != r.alone || p.Both != 0 {
			t.Errorf("after %v steps: %+v, want %v steps a second alone", r.steps, p, r.alone)
		}
	}
	p.Beside = true
	if p = reported(p, &cluster.Progress{Steps: 190, At: cluster.Instant(400 * cluster.Second)}, 100*cluster.Second, 30*cluster.Second); p.Both == 0 {
		t.Errorf("beside its partner: %+v", p)
	}
}
