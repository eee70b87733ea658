package ltgf

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Charge with a memory of the last look gives the same as without: when jobs come, start, end and are forgotten, when nodes change, and when
// GPUs are granted, gathered and stranded.
func TestMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.Snapshot{Now: begin, Settings: cluster.Settings{RhoSelect: 16, CreditCap: cluster.Day, Window: 14 * cluster.Day, Term: 15 * cluster.Minute,
			Users: cluster.UsersEqual}, Tenants: []cluster.Tenant{{Name: "t", Weight: 1}}}
		for _, name := range []string{"n1", "n2", "n3"} {
			s.Nodes = append(s.Nodes, cluster.Node{Name: name, GPUs: []cluster.GPUs{{Model: "k80", Count: 1}, {Model: "v100", Count: 4}}, CPUs: 20, MemoryMB: 500})
		}
		kept := new(Memory)
		key := cluster.JobKey(0)
		for range 20 {
			s.Claims = nil
			for i := range s.Cases {
				s.Cases[i].Was = int32(i + 1)
			}
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				node := &s.Nodes[rapid.IntRange(0, 2).Draw(t, "node")]
				what := rapid.IntRange(0, 9).Draw(t, "change")
				if len(s.Cases) == 0 || what <= 2 {
					key++
					c := waiting(key, 2)
					c.Record.User = fmt.Sprint("u", rapid.IntRange(0, 3).Draw(t, "user"))
					c.Record.Tenant = rapid.SampledFrom([]string{"t", "t", "s"}).Draw(t, "tenant")
					s.Cases = append(s.Cases, c)
					continue
				}
				at := rapid.IntRange(0, len(s.Cases)-1).Draw(t, "job")
				c := &s.Cases[at]
				switch {
				case what <= 5 && c.Job.State == cluster.Waiting:
					c.Was, c.Job.State, c.Job.Start = 0, cluster.Running, s.Now
					c.Job.Holds = []cluster.Holding{{Node: node.Name, Model: "v100", Size: cluster.Whole(2), CPUs: rapid.IntRange(0, 20).Draw(t, "cpus"), MemoryMB: 100}, {Node: "n4", Model: "v100", Size: cluster.Whole(1)}}
				case what <= 5 && c.Job.State == cluster.Running:
					c.Was, c.Job.State, c.Job.Holds, c.Job.End = 0, cluster.Done, nil, s.Now
				case what <= 5:
					s.Cases = slices.Delete(s.Cases, at, at+1)
				case what == 6:
					node.Bad = rapid.SampledFrom([]string{"", "down"}).Draw(t, "bad")
				case what == 7:
					node.Busy = rapid.SampledFrom([]string{"", "maintenance"}).Draw(t, "busy")
				case what == 8:
					s.Claims = []cluster.Claim{{Job: c.Record.Key, Pool: "v100", Nodes: []cluster.Holding{{Node: node.Name, Model: "v100", Size: cluster.Whole(3)}}, Gathers: true}}
				default:
					s.Leases = append(s.Leases, cluster.Lease{Job: cluster.JobKey(len(s.Leases) - 100), State: cluster.Granted, Pool: "v100", Size: cluster.Whole(1),
						Nodes: []cluster.Holding{{Node: node.Name, Model: "v100", Size: cluster.Whole(1)}}})
				}
			}
			s.Now = s.Now.Add(cluster.Minute)
			s.Follows = false
			fresh := new(Memory)
			want := Charge(&s, Buffer{}, fresh)
			s.Follows = rapid.IntRange(0, 9).Draw(t, "follows") > 0
			got := Charge(&s, Buffer{}, kept)
			if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(fresh.Rows, kept.Rows) || !slices.Equal(fresh.Users, kept.Users) {
				t.Fatalf("without a memory -, with one +:\n%s", diff)
			}
			s.Ledger = got.Ledger
			for i := range s.Cases {
				s.Cases[i].Record = got.Records[i]
			}
		}
	})
}
