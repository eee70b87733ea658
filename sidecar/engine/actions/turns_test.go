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

// Two jobs on one GPU run in turn, and each runs when the other is not there, when it has to save, and when turns are off.
func TestTurns(t *testing.T) {
	const now = roundtest.Now
	half := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}
	type partner struct {
		runs, paused bool
		ago          cluster.Span // since its turn began or ended
		took         cluster.Span // of the turn of its partner
	}
	for _, c := range []struct {
		name   string
		jobs   []partner
		change func(s *cluster.Snapshot, marks []round.Mark)
		want   []string
	}{
		{"both have begun", []partner{{ago: 10 * cluster.Second}, {ago: 10 * cluster.Second}}, nil, []string{"suspend 2 paused"}},
		{"its turn lasts", []partner{{runs: true, ago: 50 * cluster.Second}, {paused: true, ago: 50 * cluster.Second}}, nil, nil},
		{"its turn is over", []partner{{runs: true, ago: cluster.Minute}, {paused: true, ago: cluster.Minute}}, nil, []string{"suspend 1 paused", "resume 2 turn"}},
		{"its partner has left", []partner{{paused: true, ago: 20 * cluster.Second}}, nil, []string{"resume 1 turn"}},
		{"of three, one has its turn", []partner{{ago: 10 * cluster.Second}, {ago: 10 * cluster.Second}, {ago: 10 * cluster.Second}}, nil, []string{"suspend 2 paused", "suspend 3 paused"}},
		{"of three, the one that has waited longest is next", []partner{{runs: true, ago: cluster.Minute}, {paused: true, ago: cluster.Minute}, {paused: true, ago: 2 * cluster.Minute}}, nil, []string{"suspend 1 paused", "resume 3 turn"}},
		{"one of three has to save", []partner{{runs: true, ago: 20 * cluster.Second}, {paused: true, ago: 20 * cluster.Second}, {paused: true, ago: 80 * cluster.Second}}, func(_ *cluster.Snapshot, marks []round.Mark) { marks[0].Noticed = true }, []string{"resume 2 turn", "resume 3 turn", "notice 1 notice"}},
		{"it was suspended just now", []partner{{paused: true, ago: 2 * cluster.Second}}, nil, nil},
		{"its partner's owner has resumed that in its turn", []partner{{runs: true, ago: cluster.Minute}, {paused: true, ago: cluster.Minute, took: 5 * cluster.Second}}, nil, nil},
		{"its partner's owner resumes that at its end", []partner{{runs: true, ago: cluster.Minute}, {ago: cluster.Minute, took: 5 * cluster.Second}}, nil, []string{"suspend 2 paused"}},
		{"its owner suspends it in its turn", []partner{{runs: true, paused: true, ago: 20 * cluster.Second}, {paused: true, ago: 20 * cluster.Second}}, nil, []string{"resume 2 turn"}},
		{"its owner resumes it in the other's turn", []partner{{runs: true, ago: 20 * cluster.Second}, {ago: 20 * cluster.Second}}, nil, []string{"suspend 2 paused"}},
		{"it has to save", []partner{{runs: true, ago: 20 * cluster.Second}, {paused: true, ago: 20 * cluster.Second}}, func(_ *cluster.Snapshot, marks []round.Mark) { marks[0].Noticed = true }, []string{"resume 2 turn", "notice 1 notice"}},
		{"its notice resumes it", []partner{{runs: true, ago: 20 * cluster.Second}, {paused: true, ago: 20 * cluster.Second}}, func(_ *cluster.Snapshot, marks []round.Mark) { marks[1].Noticed = true }, []string{"notice 2 notice resumed"}},
		{"turns are off", []partner{{runs: true, ago: 20 * cluster.Second}, {paused: true, ago: 20 * cluster.Second}}, func(s *cluster.Snapshot, _ []round.Mark) { s.Settings.Slices = nil }, []string{"resume 2 turn"}},
		{"they are only observed", []partner{{runs: true, ago: cluster.Minute}, {paused: true, ago: cluster.Minute}}, func(s *cluster.Snapshot, _ []round.Mark) {
			s.Cases[0].Control, s.Cases[1].Control = cluster.ObserveOnly, cluster.ObserveOnly
		}, []string{"resume 2 turn"}},
		{"Slurm does not say where it is", []partner{{runs: true, ago: 20 * cluster.Second}, {paused: true, ago: 20 * cluster.Second}}, func(s *cluster.Snapshot, _ []round.Mark) { s.Cases[1].Job.Holds = nil }, []string{"resume 2 turn"}},
	} {
		var cases []cluster.Case
		for i, x := range c.jobs {
			j := roundtest.On(roundtest.Job(int64(i+1), "bio", 1, cluster.Running), "a", "v100", 1)
			j.Job.Holds[0].Size, j.Job.Holds[0].Index, j.Job.Paused = half, []int{2}, x.paused
			j.Record.Slice = &cluster.Slice{Ask: "gres/gpu:1", Shards: 2, Runs: x.runs, At: now.Add(-x.ago), Ran: 1, Took: x.took}
			cases = append(cases, j)
		}
		s, marks := roundtest.Snapshot(cases...), make([]round.Mark, len(cases))
		s.Settings.Slices = &cluster.Slices{Quantum: cluster.Minute}
		for i := range cases {
			s.Leases = append(s.Leases, cluster.Lease{Job: cluster.JobKey(i + 1), Term: 1, State: cluster.Active, Pool: "v100", Size: half, Nodes: cases[i].Job.Holds, Granted: now.Add(-cluster.Hour), End: now.Add(cluster.Hour)})
		}
		if c.change != nil {
			c.change(s, marks)
		}
		in, leases := roundtest.Facts(s)
		found := new(eligible.Nodes).Find(in, leases, nil)
		list, gates, _ := new(Workspace).List(&Input{In: in, Found: found, Leases: leases, Marks: marks}, round.BeneficiariesOf(leases, nil, marks), nil)
		var got []string
		for _, a := range list {
			text := fmt.Sprintf("%s %d %s", a.Verb, a.Job, a.Reason.Code)
			if a.Resume {
				text += " resumed"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		for _, a := range list {
			k := slices.IndexFunc(gates, func(g Gate) bool { return in.Records[g.Case].Key == a.Job })
			if a.Verb != cluster.Notify && (k < 0 || gates[k].Slice.Runs != (a.Verb == cluster.Resume) || gates[k].Slice.At != now) {
				t.Errorf("%s: %s of job %d is not noted", c.name, a.Verb, a.Job)
			}
		}
	}
}
