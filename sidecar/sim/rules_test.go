package sim_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// The virtual cluster starts no job that a rule forbids, says why as Slurm does, and starts it when there is room again.
func TestRulesKeepJobsFromStarting(t *testing.T) {
	caps := func(rule, tres string, most int64) []cluster.Cap {
		return []cluster.Cap{{Rule: rule, TRES: tres, Max: most}}
	}
	account := func(name string, c []cluster.Cap) cluster.Limits {
		return cluster.Limits{Associations: []cluster.Association{{Account: name, Caps: c}}}
	}
	user := func(c []cluster.Cap) cluster.Limits {
		return cluster.Limits{Associations: []cluster.Association{{Account: "sub", User: "u", Caps: c}}}
	}
	qos := func(c []cluster.Cap) cluster.Limits { return cluster.Limits{QOS: []cluster.QOS{{Name: "q", Caps: c}}} }
	for _, c := range []struct {
		name   string
		limits cluster.Limits
		rules  cluster.Rules
		most   cluster.Span
		why    string // the first of three jobs with 2 GPUs always starts, unless this is "never"
		runs   int
	}{
		{"no rules", cluster.Limits{}, cluster.Rules{}, 0, "", 3},
		{"the account above", account("top", caps(cluster.GrpTRES, "gres/gpu", 5)), cluster.Rules{}, 0, "AssocGrpTRES", 2},
		{"another account", account("other", caps(cluster.GrpTRES, "gres/gpu", 5)), cluster.Rules{}, 0, "", 3},
		{"CPUs", account("sub", caps(cluster.GrpTRES, "cpu", 3)), cluster.Rules{}, 0, "AssocGrpTRES", 1},
		{"a model that no job names", account("sub", caps(cluster.GrpTRES, "gres/gpu:v100", 0)), cluster.Rules{}, 0, "", 3},
		{"jobs of an account", account("sub", caps(cluster.GrpJobs, "", 1)), cluster.Rules{}, 0, "AssocGrpJobs", 1},
		{"jobs of each user are the users' own limit", account("sub", caps(cluster.MaxJobs, "", 1)), cluster.Rules{}, 0, "", 3},
		{"jobs of a user", user(caps(cluster.MaxJobs, "", 2)), cluster.Rules{}, 0, "AssocMaxJobs", 2},
		{"a job of a user", user(caps(cluster.MaxTRESPerJob, "gres/gpu", 1)), cluster.Rules{}, 0, "AssocMaxTRESPerJob", 0},
		{"a QOS by user", qos(caps(cluster.MaxTRESPerUser, "gres/gpu", 2)), cluster.Rules{}, 0, "QOSMaxTRESPerUser", 1},
		{"a QOS before accounts", cluster.Limits{QOS: qos(caps(cluster.GrpTRES, "gres/gpu", 4)).QOS, Associations: account("sub", caps(cluster.GrpTRES, "gres/gpu", 2)).Associations},
			cluster.Rules{}, 0, "QOSGrpTRES", 2},
		{"a QOS with a minimum", qos(caps(cluster.MinTRESPerJob, "gres/gpu", 3)), cluster.Rules{}, 0, "QOSMinTRESPerJob", 0},
		{"access by account", cluster.Limits{}, cluster.Rules{AllowAccounts: []string{"top"}}, 0, "", 3},
		{"no access by account", cluster.Limits{}, cluster.Rules{DenyAccounts: []string{"top"}}, 0, "AccountNotAllowed", 0},
		{"no access by QOS", cluster.Limits{}, cluster.Rules{AllowQOS: []string{"p"}}, 0, "QOSNotAllowed", 0},
		{"a closed partition", cluster.Limits{}, cluster.Rules{Closed: "DOWN"}, 0, "PartitionDown", 0},
		{"too long", cluster.Limits{}, cluster.Rules{}, cluster.Minute, "PartitionTimeLimit", 0},
		{"too few nodes", cluster.Limits{}, cluster.Rules{MinNodes: 2}, 0, "PartitionNodeLimit", 0},
		{"CPUs of a node", cluster.Limits{}, cluster.Rules{CPUsPerNode: 1}, 0, "PartitionConfig", 0},
	} {
		v := sim.NewVirtual(simtest.Start, simtest.Nodes("n", "v100", 2, 8), []cluster.Account{{Name: "root"}, {Name: "top", Parent: "root"}, {Name: "sub", Parent: "top"}, {Name: "other", Parent: "root"}})
		v.SetLimits(c.limits)
		v.SetRules("gpu", c.rules, c.most)
		var ids []cluster.JobID
		for range 3 {
			ids = append(ids, v.Submit(sim.Work{User: "u", Account: "sub", QOS: "q", Partition: "gpu", Request: simtest.Gang(2), Runs: cluster.Hour, Limit: 2 * cluster.Hour}))
		}
		v.Advance(v.Now().Add(cluster.Minute))
		for i, id := range ids {
			switch j := v.Job(id); {
			case (i < c.runs) != (j.State == cluster.Running):
				t.Errorf("%s: job %d is %s, want %d to run", c.name, i+1, j.State, c.runs)
			case i >= c.runs && j.PendingReason != c.why:
				t.Errorf("%s: job %d waits for %q, want %q", c.name, i+1, j.PendingReason, c.why)
			}
		}
		pass := cluster.Hour
		if c.runs == 0 { // an administrator changes the rule
			v.SetLimits(cluster.Limits{})
			v.SetRules("gpu", cluster.Rules{}, 0)
			pass = cluster.Minute
		}
		v.Advance(v.Now().Add(pass))
		if got := v.Job(ids[min(c.runs, 2)]).State; c.runs < 3 && got != cluster.Running {
			t.Errorf("%s: the next job is %s when there is room", c.name, got)
		}
	}
}
