package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// good is a slurm.conf with which all is well.
func good() conf {
	return conf{
		slurm.ConfSelectType: "select/cons_tres", slurm.ConfTRES: "cpu,mem,gres/gpu,gres/gpu:h100", slurm.ConfKillWait: "30 sec",
		slurm.ConfScheduler: "bf_interval=30", slurm.ConfPriorityFlags: "ACCRUE_ALWAYS", slurm.ConfJobFileAppend: "1", slurm.ConfJobRequeue: "1",
		slurm.ConfJobSubmit: "lua,fairlease", slurm.ConfMinJobAge: "300 sec", slurm.ConfLicenses: "matlab:4,fairlease:1000000",
	}
}

// Each flaw of slurm.conf is found, and told with what it means and what to do.
func TestSlurmConf(t *testing.T) {
	facts := &slurm.Facts{Nodes: []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "h100", Count: 8}}}}}
	for _, c := range []struct {
		key, value string
		want       string // check and level; "" = none
	}{
		{"", "", ""},
		{slurm.ConfSelectType, "select/linear", "SelectType fail"},
		{slurm.ConfTRES, "cpu,mem", "AccountingStorageTRES fail, AccountingStorageTRES warn"},
		{slurm.ConfTRES, "cpu,gres/gpu", "AccountingStorageTRES warn"},
		{slurm.ConfKillWait, "3 sec", "KillWait warn"},
		{slurm.ConfKillWait, "60 sec", "KillWait fail"},
		{slurm.ConfScheduler, "requeue_delay=0,bf_interval=3", "requeue_delay warn"},
		{slurm.ConfScheduler, "requeue_delay=180", ""},
		{slurm.ConfPriorityFlags, "", "PriorityFlags warn"},
		{slurm.ConfJobFileAppend, "0", "JobFileAppend warn"},
		{slurm.ConfJobRequeue, "0", "JobRequeue warn"},
		{slurm.ConfJobSubmit, "(null)", "submit plugin warn"},
		{slurm.ConfJobSubmit, "lua", ""},
		{slurm.ConfLicenses, "(null)", "gate warn"},
		{slurm.ConfLicenses, "fairlease", "gate warn"},
		{slurm.ConfScheduler, "bf_licenses", "gate warn"},
		{slurm.ConfMinJobAge, "2 sec", "MinJobAge warn"},
	} {
		t.Run(c.key+"="+c.value, func(t *testing.T) {
			slurmConf := good()
			if c.key != "" {
				slurmConf[c.key] = c.value
			}
			f := &findings{}
			slurmConf.check(f, config.Default(), facts)
			var got []string
			for _, x := range f.list {
				if x.Level != fine {
					got = append(got, x.Check+" "+x.Level)
				}
				if x.Level != fine && (x.Means == "" || x.Do == "") {
					t.Errorf("%s does not say what it means and what to do", x.Check)
				}
			}
			if d := cmp.Diff(c.want, strings.Join(got, ", ")); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCapacityAndRights(t *testing.T) {
	f := &findings{}
	f.capacity(&slurm.Facts{})
	f.capacity(&slurm.Facts{Nodes: []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "gpu", Count: 2}}}}})
	f.rights(&slurm.Facts{Operator: "restd", Rights: "Operator"})
	f.rights(&slurm.Facts{Operator: "restd", RestDenied: "Access denied"})
	var got []string
	for _, x := range f.list {
		got = append(got, x.Check+" "+x.Level)
	}
	if d := cmp.Diff([]string{"GPUs fail", "GPUs ok", "GPU models warn", "rights ok", "rights fail"}, got); d != "" {
		t.Error(d)
	}
}

func TestSighting(t *testing.T) {
	cfg := config.Default()
	cfg.Partitions = []string{"gpu", "cpu", "gone"}
	seen := &cluster.Sighting{Now: 1, Partitions: []cluster.Partition{{Name: "cpu"}, {Name: "gpu"}},
		Nodes:    []cluster.Node{{Name: "n1", Partitions: []string{"gpu"}, GPUs: []cluster.GPUs{{Model: "h100", Count: 8}}}},
		Accounts: []cluster.Account{{Name: "a", Parent: "root", Shares: 3}, {Name: "b", Parent: "root", Shares: 1}, {Name: "root"}}}
	f := &findings{}
	f.sighting(cfg, seen)
	var got []string
	for _, x := range f.list {
		got = append(got, fmt.Sprintf("%s %s: %s", x.Check, x.Level, x.Found))
	}
	want := []string{"partition gpu ok: 8 GPUs", "partition cpu warn: has no GPUs", "partition gone fail: Slurm has no such partition", "tenants ok: a 75.0%, b 25.0%"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestPartitionsWithoutALongestTime(t *testing.T) {
	year := 365 * cluster.Day
	for _, c := range []struct {
		release string
		longest []cluster.Span
		want    string
	}{
		{"24.11.5", []cluster.Span{year, 0}, "MaxTime warn: none, or more than ten years: partition p1"},
		{"24.11.5", []cluster.Span{11 * year, 0}, "MaxTime warn: none, or more than ten years: partition p0, p1"},
		{"24.11.5", []cluster.Span{year, 10 * year}, "MaxTime ok: at most ten years in all partitions"},
		{"26.05.3", []cluster.Span{0}, ""},
		{"", []cluster.Span{0}, ""},
	} {
		var partitions []cluster.Partition
		for i, longest := range c.longest {
			partitions = append(partitions, cluster.Partition{Name: fmt.Sprintf("p%d", i), MaxTime: longest})
		}
		f := &findings{}
		f.longest(c.release, partitions)
		got := ""
		for _, x := range f.list {
			got += fmt.Sprintf("%s %s: %s", x.Check, x.Level, x.Found)
		}
		if got != c.want {
			t.Errorf("Slurm %q, %v: %q, want %q", c.release, c.longest, got, c.want)
		}
	}
}

// The doctor goes through everything even where nothing answers, and says so.
func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "fairlease.yaml")
	write(t, file, fmt.Sprintf("slurm: {address: 'unix://%s/none', retries: 0}\nfiles: {heartbeats: %s, state: %s/state.json}\n", dir, dir, dir))
	env := []string{"FAIRLEASE_DATABASE_URL=" + storetest.Database(t)}
	r := run(t, time.Time{}, env, "-c", file, "doctor", "--json")
	var found []finding
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != failure.No {
		t.Fatalf("exit code %d, %v\n%s", r.code, err, r.out)
	}
	levels := map[string]string{}
	for _, x := range found {
		levels[x.Area+" "+x.Check] = x.Level
	}
	want := map[string]string{"configuration file": fine, "configuration heartbeats": fine, "configuration state": fine, "configuration modes": fine, "slurm connection": bad,
		"postgresql version": fine, "postgresql schema": fine, "postgresql rights": fine, "postgresql clock": fine, "postgresql cluster": fine, "postgresql seat": fine}
	if d := cmp.Diff(want, levels); d != "" {
		t.Error(d)
	}
	people := run(t, time.Time{}, env, "-c", file, "doctor")
	if !strings.Contains(people.out, "means: rounds pause while Slurm is away") || !strings.Contains(people.out, "1 to repair") {
		t.Errorf("for people:\n%s", people.out)
	}
	write(t, file, "lease: {notcie: 1}\n")
	if r := run(t, time.Time{}, env, "-c", file, "doctor"); r.code != failure.No || !strings.Contains(r.out, "did you mean lease.notice?") {
		t.Errorf("with a wrong configuration: exit code %d\n%s", r.code, r.out)
	}
	if r := run(t, time.Time{}, nil, "-c", empty(t), "doctor", "-P"); r.code != failure.No || !strings.Contains(r.out, "postgresql|address|fail|none is configured") {
		t.Errorf("without a database: exit code %d\n%s", r.code, r.out)
	}
}
