package lease_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
)

// The GPUs of a chain pass on to whichever of its jobs runs, else to the first that waits, as a grant of now.
func TestGPUsOfAChainPassOn(t *testing.T) {
	const now = cluster.Instant(1_000_000)
	node := func(gpus int) []cluster.Holding {
		return []cluster.Holding{{Node: "v1", Model: "v100", Size: cluster.Whole(gpus), CPUs: 4 * gpus}}
	}
	for _, c := range []struct{ name, before, states, want string }{
		{"the first runs", "2 holds; 3 4 behind 2", "2 running", "2 active 1; 3 granted behind 2; 4 granted behind 2"},
		{"the first still starts", "2 holds; 3 4 behind 2", "", "2 granted 1; 3 granted behind 2; 4 granted behind 2"},
		{"the first has ended, the next runs", "2 holds; 3 4 behind 2", "2 done, 3 running", "3 active 1; 4 granted behind 3"},
		{"the last runs", "2 holds; 3 4 behind 2", "2 done, 4 running", "3 granted behind 4; 4 active 1"},
		{"two have ended", "2 holds; 3 4 behind 2", "2 done, 3 done", "4 granted 1 anew"},
		{"one has ended, none runs", "2 holds; 3 4 behind 2", "2 done", "3 granted 1 anew; 4 granted behind 3"},
		{"another one started first", "2 holds; 3 4 behind 2", "3 running", "2 granted behind 3; 3 active 1; 4 granted behind 3"},
		{"an older one started first", "4 holds; 2 3 behind 4", "2 running", "2 active 1; 3 granted behind 2; 4 granted behind 2"},
		{"two run, on GPUs of others too", "2 holds; 3 4 behind 2", "2 running, 3 running", "2 active 1; 3 active 1; 4 granted behind 2"},
		{"all have ended", "2 holds; 3 4 behind 2", "2 done, 3 done, 4 done", ""},
		{"the user held the first", "2 holds; 3 4 behind 2", "2 held", "3 granted 1 anew; 4 granted behind 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := cluster.Snapshot{Now: now, Settings: cluster.Settings{Interval: 10 * cluster.Second, Term: 10 * cluster.Minute, GrantTimeout: cluster.Minute}}
			s.Ledger.At = now.Add(-10 * cluster.Second)
			states := map[string]string{}
			for _, x := range strings.Split(c.states, ", ") {
				if job, state, ok := strings.Cut(x, " "); ok {
					states[job] = state
				}
			}
			holder := cluster.JobKey(c.before[0] - '0')
			var records []cluster.Record
			for key := cluster.JobKey(2); key <= 4; key++ {
				job := cluster.Job{ID: cluster.JobID{ID: int64(key)}, State: cluster.Waiting, Request: cluster.Request{Size: cluster.Whole(1), CPUs: 4}}
				switch states[fmt.Sprint(key)] {
				case "running":
					job.State, job.Start, job.Holds = cluster.Running, now-2000, node(1)
				case "done":
					job.State, job.Start, job.End = cluster.Done, now-4000, now-2000
				case "held":
					job.Inactive = "held"
				}
				r := cluster.Record{Key: key, ID: job.ID, State: cluster.Waiting}
				records = append(records, r)
				s.Cases = append(s.Cases, cluster.Case{Job: job, Record: r, Control: cluster.FullControl})
				l := cluster.Lease{Job: key, Term: 1, State: cluster.Granted, Class: cluster.Shared, Pool: "v100", Size: cluster.Whole(1), Nodes: node(1),
					Granted: now.Add(-10 * cluster.Second), End: now.Add(5 * cluster.Minute)}
				s.Leases = append(s.Leases, l)
			}
			for k := range s.Leases {
				if s.Leases[k].Job != holder {
					s.Leases[k] = lease.Behind(s.Leases[k], &s.Leases[holder-2])
				}
			}
			leases, _, _ := lease.Reconcile(&s, records, &lease.Workspace{})
			var got []string
			for _, l := range leases {
				if l == nil {
					continue
				}
				text := fmt.Sprintf("%d %s", l.Job, l.State)
				if l.Size.Devices > 0 {
					text += fmt.Sprint(" ", l.Size.Devices)
				}
				if l.Behind != 0 {
					text += fmt.Sprint(" behind ", l.Behind)
				} else if l.State == cluster.Granted && l.Granted == now {
					text += " anew"
				}
				if h := l.Nodes[0]; h.Node != "v1" || h.Size != l.Size || h.CPUs != 4*l.Size.Devices || l.End != now.Add(5*cluster.Minute) {
					t.Errorf("%s: %+v", text, l)
				}
				got = append(got, text)
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), c.want)
			}
		})
	}
}
