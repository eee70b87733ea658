package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Both Slurm versions write partitions and QOS alike.
func TestWordsAboutPreemption(t *testing.T) {
	const partitions = `PartitionName=gpu
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   PriorityJobFactor=1 PriorityTier=3 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=GANG,SUSPEND

PartitionName=high
   PriorityJobFactor=1 PriorityTier=10 RootOnly=NO ReqResv=NO OverSubscribe=FORCE:2
   OverTimeLimit=NONE PreemptMode=OFF
PartitionName=alone PriorityTier=1 OverSubscribe=EXCLUSIVE PreemptMode=REQUEUE
PartitionName=one PriorityTier=1 OverSubscribe=FORCE:1 PreemptMode=REQUEUE
PartitionName=asked PriorityTier=1 OverSubscribe=YES:4 PreemptMode=REQUEUE
`
	want := map[string]cluster.PartitionPreemption{"gpu": {Tier: 3, Mode: "GANG,SUSPEND"}, "high": {Tier: 10, Mode: "OFF", Sharing: "FORCE:2"},
		"alone": {Tier: 1, Mode: "REQUEUE"}, "one": {Tier: 1, Mode: "REQUEUE"}, "asked": {Tier: 1, Mode: "REQUEUE", Sharing: "YES:4"}}
	if d := cmp.Diff(want, parsePartitionPreemption(partitions)); d != "" {
		t.Error(d)
	}
	const qos = "Current Association Manager state\n\nQOS Records\n\nQOS=normal(1)\n    UsageRaw=0.000000\n    PreemptMode=OFF\n    Priority=0\nQOS=a(b)(7)\n    PreemptMode=WITHIN,REQUEUE\n"
	if d := cmp.Diff(map[string]string{"a(b)": "WITHIN,REQUEUE"}, parseQOSModes(qos)); d != "" {
		t.Error(d)
	}
}

// The client sees preemption with the configuration. The last facts hold while newer ones cannot be read. Without preemption nothing is
// asked for it.
func TestPreemptionIsSeen(t *testing.T) {
	r := newRecorded(t, 45)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("scontrol", "#!/bin/sh\necho $2 >>"+dir+"/calls\nexec cat "+dir+"/$2\n")
	if err := os.Chmod(filepath.Join(dir, "scontrol"), 0o755); err != nil {
		t.Fatal(err)
	}
	calls := func() string {
		b, _ := os.ReadFile(filepath.Join(dir, "calls"))
		os.Remove(filepath.Join(dir, "calls"))
		return string(b)
	}
	boot := 0
	restart := func(conf string) { // scontrol reconfigure
		boot++
		write("config", "BOOT_TIME = "+time.Unix(int64(1000+boot), 0).UTC().Format("2006-01-02T15:04:05")+"\n"+conf)
		r.on("GET /slurm/v0.0.45/diag", text(fmt.Sprintf(`{"statistics":{"req_time":{"number":1000000,"set":true},"req_time_start":{"number":%d,"set":true}},"meta":{"slurm":{"cluster":"test","release":"26.05.5"}},"errors":[]}`, 1000+boot)))
	}
	now := int64(1_000_100)
	c := r.client(func(cfg *Config) {
		cfg.Scontrol, cfg.AccountsEvery = []string{filepath.Join(dir, "scontrol")}, time.Minute
		cfg.Now = func() time.Time { return time.Unix(now, 0) }
	})
	r.on("GET /slurm/v0.0.45/jobs/", text(`{"jobs":[],"last_update":900,"errors":[]}`))
	r.on("GET /slurmdb/v0.0.45/qos/", text(`{"qos":[{"name":"urgent","preempt":{"list":["low"],"mode":["REQUEUE"]}},{"name":"low","preempt":{"list":[],"mode":["DISABLED"]}}],"errors":[]}`))
	want := func(what string, p cluster.Preemption, part cluster.PartitionPreemption, asks string) {
		t.Helper()
		now += 10
		s := r.see(c)
		if d := cmp.Diff(p, s.Preemption); d != "" {
			t.Errorf("%s: %s", what, d)
		}
		if d := cmp.Diff(part, s.Partitions[0].Preempt); d != "" {
			t.Errorf("%s: %s", what, d)
		}
		if got := calls(); got != asks {
			t.Errorf("%s: scontrol shows %q, want %q", what, got, asks)
		}
	}
	write("topology", "")
	none := cluster.Preemption{}
	restart("PreemptMode = OFF\nPreemptType = (null)\n")
	want("none", none, cluster.PartitionPreemption{}, "config\ntopology\n")
	want("none, again", none, cluster.PartitionPreemption{}, "")

	write("partition", "PartitionName=main PriorityTier=2 OverSubscribe=NO PreemptMode=CANCEL\n")
	restart("PreemptMode = REQUEUE\nPreemptType = preempt/partition_prio\nPreemptParameters = youngest_first,reclaim_licenses\n")
	byTier := cluster.Preemption{Type: cluster.PreemptByTier, Mode: "REQUEUE", Anywhere: true}
	want("by tier", byTier, cluster.PartitionPreemption{Tier: 2, Mode: "CANCEL"}, "config\ntopology\npartition\n")
	os.Remove(filepath.Join(dir, "partition"))
	r.on("GET /slurm/v0.0.45/partitions/", text(`{"partitions":[{"name":"main","nodes":{"configured":"v1"},"partition":{"state":["DOWN"]}}],"last_update":{"set":true,"number":901},"errors":[]}`))
	want("the partitions cannot be read", byTier, cluster.PartitionPreemption{Tier: 2, Mode: "CANCEL"}, "partition\n")
	write("partition", "PartitionName=main PriorityTier=2 OverSubscribe=NO PreemptMode=OFF\n")
	want("they can again", byTier, cluster.PartitionPreemption{Tier: 2, Mode: "OFF"}, "partition\n")

	write("assoc_mgr", "QOS=low(2)\n PreemptMode=OFF\nQOS=urgent(3)\n PreemptMode=WITHIN,REQUEUE\n")
	restart("PreemptMode = REQUEUE\nPreemptType = preempt/qos\n")
	byQOS := cluster.Preemption{Type: cluster.PreemptByQOS, Mode: "REQUEUE", QOS: []cluster.PreemptingQOS{{Name: "low"}, {Name: "urgent", Mode: "WITHIN,REQUEUE", Preempts: []string{"low"}}}}
	want("by QOS", byQOS, cluster.PartitionPreemption{Tier: 2, Mode: "OFF"}, "config\ntopology\npartition\nassoc_mgr\n")
	os.Remove(filepath.Join(dir, "assoc_mgr"))
	now += 60
	want("the modes of QOS cannot be read", byQOS, cluster.PartitionPreemption{Tier: 2, Mode: "OFF"}, "partition\nassoc_mgr\n")
	r.on("GET /slurmdb/v0.0.45/qos/", text(`{"qos":`))
	now += 60
	want("the QOS cannot be read", byQOS, cluster.PartitionPreemption{Tier: 2, Mode: "OFF"}, "partition\n")

	boot++ // the configuration cannot be read
	os.Remove(filepath.Join(dir, "config"))
	r.on("GET /slurm/v0.0.45/diag", text(`{"statistics":{"req_time":{"number":1000000,"set":true},"req_time_start":{"number":2000,"set":true}},"meta":{"slurm":{"cluster":"test","release":"26.05.5"}},"errors":[]}`))
	want("the configuration cannot be read", byQOS, cluster.PartitionPreemption{Tier: 2, Mode: "OFF"}, "config\npartition\n")
	write("config", "PreemptMode = OFF\nPreemptType = (null)\n")
	want("not so soon", byQOS, cluster.PartitionPreemption{Tier: 2, Mode: "OFF"}, "partition\n")
	now += 60
	want("it can again", none, cluster.PartitionPreemption{}, "config\ntopology\n")
}

// A client that starts while Slurm's words about preemption cannot be read says so, and reads them soon.
func TestPreemptionIsUnreadAtTheStart(t *testing.T) {
	r := newRecorded(t, 45)
	dir := t.TempDir()
	script := "#!/bin/sh\nexec cat " + dir + "/$2\n"
	if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	now := int64(1_000_100)
	c := r.client(func(cfg *Config) {
		cfg.Scontrol, cfg.AccountsEvery = []string{filepath.Join(dir, "scontrol")}, 5*time.Minute
		cfg.Now = func() time.Time { return time.Unix(now, 0) }
	})
	r.on("GET /slurm/v0.0.45/jobs/", text(`{"jobs":[],"last_update":900,"errors":[]}`))
	known := func(what string, unread, partition bool, qos int) {
		t.Helper()
		s := r.see(c)
		p := &s.Preemption
		if p.Unread != unread || p.Known("main", s.Partitions) != (partition && qos > 0) || len(p.QOS) != qos {
			t.Errorf("%s: %+v, %+v", what, p, s.Partitions)
		}
		now += 40
	}
	known("nothing", true, false, 0)
	write("config", "BOOT_TIME = 1970-01-01T00:00:05\nPreemptMode = REQUEUE\nPreemptType = preempt/qos\n")
	now += 300
	known("no QOS", false, true, 0)
	r.on("GET /slurmdb/v0.0.45/qos/", text(`{"qos":[{"name":"low","preempt":{"list":[],"mode":["DISABLED"]}}],"errors":[]}`))
	known("no modes of QOS", false, true, 0)
	write("assoc_mgr", "QOS=low(2)\n PreemptMode=WITHIN,REQUEUE\n")
	known("QOS", false, true, 1)
}
