package experiment

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Limits are lines in Slurm's words.
func TestReadLimits(t *testing.T) {
	got, err := ReadLimits(strings.NewReader(`# of a site
account vision GrpTRES=gres/gpu=8,cpu=64 GrpJobs=20
user vision/alice MaxJobs=4

qos MaxTRESPerUser=gres/gpu:v100=2
partition AllowAccounts=vision,nlp MaxNodes=2
`), "limits.txt")
	want := Admission{Rules: cluster.Rules{AllowAccounts: []string{"vision", "nlp"}, MaxNodes: 2, QOS: "partition"}, Limits: cluster.Limits{
		Associations: []cluster.Association{
			{Account: "vision", Caps: []cluster.Cap{{Rule: cluster.GrpJobs, Max: 20}, {Rule: cluster.GrpTRES, TRES: "cpu", Max: 64}, {Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: 8}}},
			{Account: "vision", User: "alice", Caps: []cluster.Cap{{Rule: cluster.MaxJobs, Max: 4}}}},
		QOS: []cluster.QOS{{Name: "partition", Caps: []cluster.Cap{{Rule: cluster.MaxTRESPerUser, TRES: "gres/gpu:v100", Max: 2}}}}}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%s, %v", d, err)
	}
	for text, words := range map[string]string{
		"":                                         "sets no limit",
		"tenant a GrpJobs=1":                       `line 1: "tenant" is no account, user, qos or partition`,
		"\naccount a":                              "line 2: write account, a name, and limits",
		"account a MaxJobs=3":                      `"MaxJobs=3" is none of GrpTRES, GrpJobs`,
		"account a GrpTRES=8":                      "write cpu, mem (in MB), node, gres/gpu",
		"account a GrpTRES=gres/gpu=many":          `"many" is no amount`,
		"account a GrpJobs=-1":                     `"-1" is no amount`,
		"user alice MaxJobs=1":                     `"alice" is no tenant and user`,
		"qos GrpJobs=1\nqos GrpJobs=2":             "line 2: there is a line for the QOS already",
		"partition MaxNodes=few":                   `"few" is no number`,
		"partition MaxTime=10":                     `"MaxTime=10" is none of AllowAccounts`,
		"partition AllowAccounts=a\nqos MaxJobs=1": `"MaxJobs=1" is none of GrpTRES`,
	} {
		if _, err := ReadLimits(strings.NewReader(text), "limits.txt"); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v, want %q", text, err, words)
		}
	}
}

// Under limits the tenant has no more than they leave it, the others have the rest, no grant is in vain, and jobs that could never
// start are left out. Schedulers that know no limits are refused.
func TestSlurmsLimits(t *testing.T) {
	minute := cluster.Minute
	s := ideal(t, "1x4", 10*minute, job("1", "a", 0, 1, 60*minute), job("2", "a", 0, 1, 60*minute), job("3", "a", 0, 1, 60*minute),
		job("4", "b", 0, 1, 60*minute), job("5", "b", 0, 1, 60*minute), job("6", "b", 0, 1, 60*minute), job("7", "a", 0, 3, minute))
	limits, err := ReadLimits(strings.NewReader("account a GrpTRES=gres/gpu=1"), "limits")
	if err != nil {
		t.Fatal(err)
	}
	s.Limits = limits
	r := run1(t, s)
	if r.Jobs.Finished != 6 || r.Refused.Jobs != 1 || !strings.Contains(r.Refused.Named[0].String(), "job 7 of a could never start, by Slurm's limits: AssocGrpTRES") {
		t.Errorf("%+v, refused %+v", r.Jobs, r.Refused)
	}
	if a, b := r.Tenants[0].Completion.Max, r.Tenants[1].Completion.Max; a < 179*60 || b > 61*60 {
		t.Errorf("the last job of a ends after %v s, want three hours, one at a time; the last of b after %v s, want one", a, b)
	}
	s.Limits.Limits.Associations[0].Account = "c"
	if _, err := Run(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), `limits name "c", which is no tenant`) {
		t.Errorf("limits of nobody: %v", err)
	}
	s.Limits.Limits.Associations[0].Account, s.Scheduler = "a", "fifo"
	if _, err := Run(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), "fifo does not know Slurm's limits") {
		t.Errorf("fifo with limits: %v", err)
	}
}
