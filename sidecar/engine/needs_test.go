package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// Where no lease ends and none was granted: a rule that lets a waiting job start now leaves room for what the job needs of the
// limits, and one that does not is either one that lasts when others end, or a limit on GPUs or jobs that is full.
func TestNeedsAgreeWithDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
		of := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
		caps := func(rules ...string) (out []cluster.Cap) {
			for _, rule := range rules {
				if draw("has "+rule, 0, 2) > 0 {
					continue
				}
				c := cluster.Cap{Rule: rule, Max: int64(draw("of", 0, 9))}
				if rule != cluster.GrpJobs && rule != cluster.MaxJobs && rule != cluster.MaxJobsPerUser {
					c.TRES = of("resource", "cpu", "gres/gpu", "gres/gpu", "gres/gpu:v100")
				}
				out = append(out, c)
			}
			slices.SortFunc(out, func(a, b cluster.Cap) int { return a.Compare(b) })
			return out
		}
		const now = cluster.Instant(1_800_000_000_000)
		s := cluster.Snapshot{Round: 1, Now: now, NextKey: 1, Settings: cluster.Settings{Term: hour, Interval: 10 * cluster.Second, MinLease: hour, RhoSelect: 16, BurstMaxMilli: 2000}}
		for i := range 4 {
			s.Nodes = append(s.Nodes, cluster.Node{Name: fmt.Sprint("n", i), GPUs: []cluster.GPUs{{Model: "v100", Count: 8}}, Partitions: []string{"p", "q"}})
		}
		s.Tenants = []cluster.Tenant{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}}
		l := cluster.Limits{QOS: []cluster.QOS{{Name: "high", Caps: caps(cluster.GrpTRES, cluster.MaxTRESPerUser, cluster.MaxJobsPerUser, cluster.MaxTRESPerJob)}, {Name: "site", Caps: caps(cluster.GrpTRES, cluster.GrpJobs)}}}
		for _, account := range []string{"a", "b"} {
			l.Associations = append(l.Associations, cluster.Association{Account: account, Caps: caps(cluster.GrpTRES, cluster.GrpJobs)},
				cluster.Association{Account: account, User: "u", Caps: caps(cluster.GrpTRES, cluster.MaxJobs)})
		}
		s.Admission = &cluster.Admission{Limits: l, Accounts: []cluster.Account{{Name: "a", Parent: "root"}, {Name: "b", Parent: "a"}},
			Partitions: []cluster.Partition{{Name: "p", Up: true}, {Name: "q", Up: true, Rules: cluster.Rules{QOS: "site", MinNodes: draw("least nodes in q", 0, 2)}}}}
		free := []int{8, 8, 8, 8}
		for i := range draw("jobs", 1, 12) {
			n, key := draw("GPUs", 1, 4), cluster.JobKey(i+1)
			c := cluster.Case{Control: cluster.FullControl, Job: cluster.Job{ID: cluster.JobID{ID: int64(key)}, Account: of("account", "a", "b"), User: of("user", "u", "v"), QOS: of("qos", "", "high"),
				Partitions: []string{of("partition", "p", "q")}, State: cluster.Waiting, Batch: true, Requeueable: true, Submit: now.Add(-hour), Request: cluster.Request{Size: cluster.Whole(n), Nodes: 1, CPUs: n, Model: of("model", "", "v100")}}}
			c.Record = cluster.Record{Key: key, ID: c.Job.ID, Tenant: c.Job.Account, User: c.Job.User, First: now.Add(-hour)}
			if at := slices.IndexFunc(free, func(f int) bool { return f >= n }); at >= 0 && rapid.Bool().Draw(t, "runs") {
				free[at] -= n
				c.Job.State, c.Job.Start = cluster.Running, now.Add(-minute)
				c.Job.Holds = []cluster.Holding{{Node: s.Nodes[at].Name, Model: "v100", Size: cluster.Whole(n), CPUs: n}}
			} else if draw("second partition", 0, 3) == 0 {
				c.Job.Partitions = []string{"p", "q"}
			}
			s.Cases = append(s.Cases, c)
		}
		rules := engine.RulesOf(s)
		var needs [][]engine.Need
		var why []string
		for i := range s.Cases {
			n, no := rules.Needs(&s.Cases[i].Job)
			needs, why = append(needs, n), append(why, no)
		}
		inUse := rules.InUse()
		for _, v := range engine.Decide(s).Statuses {
			at := int(v.Job) - 1
			if s.Cases[at].Job.State != cluster.Waiting {
				continue
			}
			full := slices.ContainsFunc(needs[at], func(n engine.Need) bool { return inUse[n.Limit]+n.Count > n.Most })
			several := len(s.Cases[at].Job.Partitions) > 1
			if forbidden := v.Reason.Code == cluster.ReasonRule; forbidden && why[at] == "" && !full || !forbidden && (why[at] != "" || full && !several) {
				t.Fatalf("job %d: the decision is %q (%s), it needs %+v with %v in use, %q", v.Job, v.Reason.Code, v.Reason.Note, needs[at], inUse, why[at])
			}
		}
	})
}
