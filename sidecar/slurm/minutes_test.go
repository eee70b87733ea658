package slurm

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// assocMgr is an answer of scontrol show assoc_mgr, without lines that are not read.
const assocMgr = `Current Association Manager state

Association Records

ClusterName=test Account=nlp UserName= Partition= Priority=0 ID=4
    ParentAccount=root(1) Lineage=/nlp/ DefAssoc=Yes
    GrpSubmitJobs=N(1) GrpWall=500(1.98)
    GrpTRES=cpu=N(1),gres/gpu=N(1)
    GrpTRESMins=cpu=N(1),mem=N(108),gres/gpu=10(2),gres/gpu:v100=N(2)
    GrpTRESRunMins=cpu=N(5),mem=N(500),gres/gpu=N(7),gres/gpu:v100=N(5)
ClusterName=test Account=nlp UserName=alice(2001) Partition=gpu Priority=0 ID=5
    GrpSubmitJobs=N(1) GrpWall=N(1.08)
    GrpTRESMins=cpu=3(1),mem=N(108)
ClusterName=other Account=nlp UserName= Partition= Priority=0 ID=14
    GrpTRESMins=cpu=N(99),gres/gpu=10(99)
QOS Records

QOS=batch(2)
    UsageRaw=0.000000
    GrpJobs=N(0) GrpJobsAccrue=N(0) GrpSubmitJobs=N(0) GrpWall=30(4.00)
    GrpTRESMins=cpu=N(0),gres/gpu=5(3)
    GrpTRESRunMins=cpu=9000(0),gres/gpu=N(1)
    User Limits
      alice(2001)
        GrpTRESMins=gres/gpu=5(77)
`

// Used minutes are read only if a limit on them is set, for the accounts and QOS that have one.
func TestMinutesUsed(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	script := filepath.Join(dir, "scontrol")
	if err := os.WriteFile(filepath.Join(dir, "answer"), []byte(assocMgr), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\ncase \"$2\" in\nconfig) echo 'AccountingStorageEnforce = associations,limits,qos,safe' ;;\nassoc_mgr) echo \"$*\" >>" + asked + "; cat " + dir + "/answer ;;\nesac\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	const gpus = `[{"type":"gres","name":"gpu","id":1001,"count":10}]`
	f := newRecorded(t, 45)
	associations := func(most string) answer {
		return say(map[string]any{"associations": []any{map[string]any{"account": "root", "user": "", "cluster": "test"}, rawJSON(`{"account":"nlp","user":"","parent_account":"root","shares_raw":3,"cluster":"test","max":` + most + `}`)}, "errors": []any{}})
	}
	f.on("GET /slurm/v0.0.45/jobs/", jobs(1, waitingJob(1, "")))
	f.on("GET /slurmdb/v0.0.45/qos/", say(map[string]any{"qos": []any{rawJSON(`{"name":"batch","limits":{"max":{"wall_clock":{"per":{"qos":{"set":true,"infinite":false,"number":30}}},"tres":{"minutes":{"total":` + gpus + `,"per":{"job":` + gpus + `}}}}}}`)}, "errors": []any{}}))
	f.on("GET /slurmdb/v0.0.45/associations/", associations(`{"tres":{"group":{"minutes":`+gpus+`},"minutes":{"per":{"job":`+gpus+`}}},"per":{"account":{"wall_clock":{"set":true,"infinite":false,"number":500}}}}`))
	see := func() cluster.Observation {
		return f.see(f.client(func(c *Config) { c.Scontrol = []string{script} }))
	}
	s := see()
	want := cluster.Limits{Safe: true, Read: s.Now,
		Associations: []cluster.Association{{Account: "nlp", Caps: []cluster.Cap{{Rule: cluster.GrpTRESMins, TRES: "gres/gpu", Max: 10, Used: 2, Promised: 7},
			{Rule: cluster.GrpWall, Max: 500, Used: 1}, {Rule: cluster.MaxTRESMins, TRES: "gres/gpu", Max: 10}}}},
		QOS: []cluster.QOS{{Name: "batch", Caps: []cluster.Cap{{Rule: cluster.GrpTRESMins, TRES: "gres/gpu", Max: 10, Used: 3, Promised: 1},
			{Rule: cluster.GrpWall, Max: 30, Used: 4}, {Rule: cluster.MaxTRESMins, TRES: "gres/gpu", Max: 10}}}}}
	if !reflect.DeepEqual(s.Limits, want) {
		t.Errorf("%+v\nwant %+v", s.Limits, want)
	}
	line, err := os.ReadFile(asked)
	if err != nil || string(line) != "show assoc_mgr accounts=nlp qos=batch flags=assoc,qos\n" {
		t.Errorf("asked %q, %v", line, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "answer"), []byte("nothing that is known"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := see(); len(s.Limits.QOS[0].Caps) != 1 || s.Limits.QOS[0].Caps[0].Rule != cluster.MaxTRESMins || s.Limits.QOS[0].Unread == 0 {
		t.Errorf("limits hold whose use is not known: %+v", s.Limits.QOS)
	}
	if err := os.Remove(asked); err != nil {
		t.Fatal(err)
	}
	f.on("GET /slurmdb/v0.0.45/associations/", associations(`{"tres":{"minutes":{"per":{"job":`+gpus+`}}}}`))
	f.on("GET /slurmdb/v0.0.45/qos/", say(map[string]any{"qos": []any{}, "errors": []any{}}))
	see()
	if _, err := os.Stat(asked); err == nil {
		t.Error("minutes are read without a limit on them")
	}
}

// rawJSON is JSON as it is.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// Minutes are bounded numbers of named associations or QOS, whatever scontrol writes.
func FuzzUsedMinutes(f *testing.F) {
	f.Add(assocMgr)
	f.Add("QOS=a(1)\nGrpWall=N(-5) GrpTRESMins=cpu=9(99999999999999999999),=(,x")
	f.Add("ClusterName=test Account=\nGrpTRESMins=cpu=1(1)")
	f.Fuzz(func(t *testing.T, text string) {
		for of, book := range usedMinutes(text, "test") {
			if of.account == "" && of.qos == "" {
				t.Errorf("minutes of nobody: %v", book)
			}
			for name, n := range book {
				if n < 0 || n > mostMemory || !strings.HasPrefix(name, "Grp") {
					t.Errorf("%s=%d", name, n)
				}
			}
		}
	})
}
