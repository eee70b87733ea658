package doctor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// good is a slurm.conf without faults.
func good() map[string]string {
	return map[string]string{
		slurm.ConfSelectType: "select/cons_tres", slurm.ConfTRES: "cpu,mem,gres/gpu,gres/gpu:h100", slurm.ConfKillWait: "30 sec",
		slurm.ConfScheduler: "bf_interval=30", slurm.ConfPriorityFlags: "ACCRUE_ALWAYS", slurm.ConfJobFileAppend: "1", slurm.ConfJobRequeue: "1",
		slurm.ConfJobSubmit: "lua,fairlease", slurm.ConfMinJobAge: "300 sec", slurm.ConfLicenses: "matlab:4,fairlease:1000000",
	}
}

// Each fault of slurm.conf is found, and reported with its meaning and remedy.
func TestSlurmConf(t *testing.T) {
	nodes := []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "h100", Count: 8}}}}
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
		{slurm.ConfController, "enable_configless,enable_expedited_requeue", ""}, // running jobs have the licence
	} {
		t.Run(c.key+"="+c.value, func(t *testing.T) {
			slurmConf := good()
			if c.key != "" {
				slurmConf[c.key] = c.value
			}
			facts := slurm.Facts{Conf: slurmConf, Nodes: nodes}
			found := ofArea(doctor.Check(config.Default(), &doctor.Seen{Slurm: doctor.Slurm{Facts: facts, LookErr: errors.New("away")}}), "slurm")
			var got []string
			for _, x := range found[:len(found)-1] { // the last one says that there was no look
				if x.Level != doctor.OK {
					got = append(got, x.Check+" "+x.Level)
				}
				if x.Level != doctor.OK && (x.Means == "" || x.Do == "") {
					t.Errorf("%s does not say what it means and what to do", x.Check)
				}
			}
			if d := cmp.Diff(c.want, strings.Join(got, ", ")); d != "" {
				t.Error(d)
			}
		})
	}
}

// With begin times as gates, an expedited job that others requeue is not gated.
func TestExpeditedJobsWithoutTheLicence(t *testing.T) {
	for _, x := range []struct {
		parameters string
		word       loop.OptOut
		want       string
	}{
		{"", "", "gate warn"}, {"enable_expedited_requeue", "", "gate warn, expedited jobs warn"}, {"enable_expedited_requeue", loop.Charge, "gate warn, expedited jobs warn"},
		{"enable_expedited_requeue", loop.Refuse, "gate warn"}, {"enable_expedited_requeue", loop.Override, "gate warn"},
	} {
		parameters, want := x.parameters, x.want
		conf, cfg := good(), config.Default()
		conf[slurm.ConfLicenses], conf[slurm.ConfController], cfg.OptOut.Expedite = "", parameters, x.word
		found := ofArea(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{Conf: conf}, LookErr: errors.New("away")}}), "slurm")
		if got := levels(t, named(found, "gate", "expedited jobs")); got != want {
			t.Errorf("%q, opt_out.expedite %q: %s, want %s", parameters, x.word, got, want)
		}
	}
}

func TestCapacityAndRights(t *testing.T) {
	for _, c := range []struct {
		facts slurm.Facts
		want  string
	}{
		{slurm.Facts{}, "rights ok, GPUs fail"},
		{slurm.Facts{Operator: "restd", Rights: "Operator", Nodes: []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "gpu", Count: 2}}}}}, "rights ok, GPUs ok, GPU models warn"},
		{slurm.Facts{Operator: "restd", RestDenied: "Access denied"}, "rights fail, GPUs fail"},
	} {
		found := ofArea(doctor.Check(config.Default(), &doctor.Seen{Slurm: doctor.Slurm{Facts: c.facts, LookErr: errors.New("away")}}), "slurm")
		if got := levels(t, named(found, "rights", "GPU")); got != c.want {
			t.Errorf("%+v: %s, want %s", c.facts, got, c.want)
		}
	}
}

func TestSighting(t *testing.T) {
	cfg := config.Default()
	cfg.Partitions = []string{"gpu", "cpu", "gone"}
	seen := &cluster.Observation{Now: 1, Partitions: []cluster.Partition{{Name: "cpu", Nodes: []string{"c1"}}, {Name: "gpu", Up: true}},
		Nodes:    []cluster.Node{{Name: "n1", Partitions: []string{"gpu"}, GPUs: []cluster.GPUs{{Model: "h100", Count: 8}}}},
		Accounts: []cluster.Account{{Name: "a", Parent: "root", Shares: 3}, {Name: "b", Parent: "root", Shares: 1}, {Name: "root"}}}
	cfg.Budgets = map[string]config.Budget{"a": {GPUHours: 1}, "c": {GPUHours: 1}}
	got := told(t, named(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Sighting: seen}}), "partition ", "tenants", "budgets"))
	want := []string{"partition gpu ok: 8 GPUs", "partition cpu warn: has no GPUs", "partition gone fail: Slurm has no such partition", "tenants ok: a 75.0%, b 25.0%",
		"budgets warn: of accounts that are no tenants: c"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A managed partition in which Slurm stops jobs by itself is a failure, unless the site knows of it; one without is clean.
func TestPreemption(t *testing.T) {
	part := func(name, mode string, tier int) cluster.Partition {
		return cluster.Partition{Name: name, Nodes: []string{"n1"}, Preempt: cluster.PartitionPreemption{Mode: mode, Tier: tier}}
	}
	byTier := cluster.Preemption{Type: cluster.PreemptByTier, Mode: "REQUEUE"}
	const means = "PreemptType fail: partition gpu: Slurm may requeue its jobs for jobs of partition high (PreemptType=preempt/partition_prio, PreemptMode=REQUEUE, PriorityTier 9 above 1)"
	for _, c := range []struct {
		name  string
		p     cluster.Preemption
		parts []cluster.Partition
		known bool
		want  string
		do    string
	}{
		{"none", cluster.Preemption{}, nil, false, "PreemptType ok: Slurm preempts no jobs", ""},
		{"unread", cluster.Preemption{Unread: true}, nil, false, "PreemptType warn: Slurm's configuration could not be read", "run fairlease doctor again"},
		{"a higher tier", byTier, []cluster.Partition{part("gpu", "REQUEUE", 1), part("high", "OFF", 9)}, false, means, "set PreemptMode=OFF in the line of partition gpu"},
		{"off here", byTier, []cluster.Partition{part("gpu", "OFF", 1), part("high", "REQUEUE", 9)}, false, "PreemptType ok: preempt/partition_prio, and no job of a managed partition is preempted", ""},
		{"known", byTier, []cluster.Partition{part("gpu", "REQUEUE", 1), part("high", "OFF", 9)}, true, strings.Replace(means, " fail: ", " ok: ", 1) + "; known to the site (preemption: known)", ""},
		{"within a QOS", cluster.Preemption{Type: cluster.PreemptByQOS, Mode: "REQUEUE,WITHIN", QOS: []cluster.PreemptingQOS{{Name: "normal"}}}, []cluster.Partition{part("gpu", "OFF", 1)}, false,
			"PreemptType fail: partition gpu: Slurm may requeue its jobs of QOS normal for others of that QOS (PreemptType=preempt/qos, PreemptMode=REQUEUE,WITHIN)", "take the QOS of managed jobs out of Preempt"},
		{"time slices", cluster.Preemption{Mode: "GANG"}, []cluster.Partition{{Name: "gpu", Preempt: cluster.PartitionPreemption{Mode: "GANG", Sharing: "FORCE:2"}}}, false,
			"PreemptType fail: partition gpu: Slurm may suspend its jobs in turns (PreemptMode=GANG, OverSubscribe=FORCE:2)", "set OverSubscribe=NO for partition gpu"},
	} {
		cfg := config.Default()
		if c.known {
			cfg.Preemption = loop.PreemptionKnown
		}
		seen := &cluster.Observation{Now: 1, Partitions: c.parts, Preemption: c.p}
		found := named(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Sighting: seen}}), "PreemptType")
		if got := strings.Join(told(t, found), "\n"); got != c.want || !strings.Contains(found[0].Do, c.do) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got, found[0].Do, c.want, c.do)
		}
	}
}

// Each way in which a partition keeps jobs without GPUs from the CPUs that go with GPUs.
func TestJobsWithoutGPUs(t *testing.T) {
	gpus := []cluster.GPUs{{Model: "h100", Count: 8}}
	const open = "jobs without GPUs warn: may take all CPUs of nodes with GPUs in partition "
	for _, c := range []struct {
		name   string
		rules  cluster.Rules
		refuse bool
		want   string
	}{
		{"no limit", cluster.Rules{}, false, open + "gpu, shared"},
		{"MaxCPUsPerNode", cluster.Rules{CPUsPerNode: 15}, false, "jobs without GPUs ok: leave CPUs for the GPUs of their nodes"},
		{"MaxCPUsPerNode of a whole node", cluster.Rules{CPUsPerNode: 16}, false, open + "gpu (MaxCPUsPerNode=16, nodes have 16 CPUs), shared (MaxCPUsPerNode=16, nodes have 16 CPUs)"},
		{"closed", cluster.Rules{Closed: "INACTIVE"}, false, "jobs without GPUs ok: leave CPUs for the GPUs of their nodes"},
		{"a QOS for GPU jobs", cluster.Rules{QOS: "gpus"}, false, "jobs without GPUs ok: leave CPUs for the GPUs of their nodes"},
		{"another QOS", cluster.Rules{QOS: "cpus"}, false, open + "gpu, shared"},
		{"the plugin refuses them where it acts", cluster.Rules{}, true, open + "shared"},
	} {
		cfg := config.Default()
		if c.refuse {
			cfg.OptOut.NoGPUs = loop.Refuse
		}
		seen := &cluster.Observation{Partitions: []cluster.Partition{{Name: "cpu"}, {Name: "gpu", Rules: c.rules}, {Name: "shared", Rules: c.rules}},
			Nodes: []cluster.Node{{Name: "n0", Partitions: []string{"gpu", "shared"}, GPUs: gpus, CPUs: 32}, {Name: "n1", Partitions: []string{"gpu", "shared"}, GPUs: gpus, CPUs: 16},
				{Name: "n2", Partitions: []string{"cpu", "gpu", "shared"}, CPUs: 4}}}
		seen.Limits.QOS = []cluster.QOS{{Name: "cpus", Caps: []cluster.Cap{{Rule: cluster.MinTRESPerJob, TRES: "cpu", Max: 1}}},
			{Name: "gpus", Caps: []cluster.Cap{{Rule: cluster.MinTRESPerJob, TRES: "gres/gpu", Max: 1}}}}
		got := strings.Join(told(t, named(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Sighting: seen}}), "jobs without")), "; ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A partition that is not managed is found where it has nodes with GPUs of managed ones, unless no job there gets GPUs.
func TestPartitionsOnTheSameNodes(t *testing.T) {
	gpus := []cluster.GPUs{{Model: "a100", Count: 4}, {Model: "h100", Count: 8}}
	const none = "partitions on the same nodes ok: all are managed, or leave GPUs alone"
	for _, c := range []struct {
		name  string
		rules cluster.Rules
		nodes []cluster.Node
		want  string
	}{
		{"the same node", cluster.Rules{}, []cluster.Node{{Partitions: []string{"debug", "gpu"}, GPUs: gpus}}, "partitions on the same nodes warn: not managed, on nodes with GPUs of managed ones: debug (12 GPUs)"},
		{"other nodes", cluster.Rules{}, []cluster.Node{{Partitions: []string{"gpu"}, GPUs: gpus}, {Partitions: []string{"debug"}, GPUs: gpus}}, none},
		{"a node without GPUs", cluster.Rules{}, []cluster.Node{{Partitions: []string{"debug", "gpu"}}, {Partitions: []string{"gpu"}, GPUs: gpus}}, none},
		{"closed", cluster.Rules{Closed: "DOWN"}, []cluster.Node{{Partitions: []string{"debug", "gpu"}, GPUs: gpus}}, none},
		{"no GPUs by its QOS", cluster.Rules{QOS: "none"}, []cluster.Node{{Partitions: []string{"debug", "gpu"}, GPUs: gpus}}, none},
		{"few GPUs by its QOS", cluster.Rules{QOS: "few"}, []cluster.Node{{Partitions: []string{"debug", "gpu"}, GPUs: gpus}}, "partitions on the same nodes warn: not managed, on nodes with GPUs of managed ones: debug (12 GPUs)"},
	} {
		seen := &cluster.Observation{Partitions: []cluster.Partition{{Name: "debug", Rules: c.rules}, {Name: "gpu"}}, Nodes: c.nodes}
		seen.Limits.QOS = []cluster.QOS{{Name: "few", Caps: []cluster.Cap{{Rule: cluster.MaxTRESPerJob, TRES: "gres/gpu", Max: 1}}},
			{Name: "none", Caps: []cluster.Cap{{Rule: cluster.MaxTRESPerJob, TRES: "gres/gpu"}}}}
		if got := strings.Join(told(t, named(doctor.Check(config.Default(), &doctor.Seen{Slurm: doctor.Slurm{Sighting: seen}}), "partitions on")), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Groups of managed partitions that this host does not know are named.
func TestGroupsThatThisHostDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		gpu, debug []string // AllowGroups
		want       string
	}{
		{nil, nil, ""},
		{nil, []string{"ldap"}, ""},
		{[]string{"nlp"}, []string{"ldap"}, "AllowGroups ok: this host knows all groups"},
		{[]string{"ldap", "nlp"}, nil, "AllowGroups warn: this host knows no group ldap (partition gpu)"},
	} {
		seen := &cluster.Observation{Partitions: []cluster.Partition{{Name: "debug", Rules: cluster.Rules{AllowGroups: c.debug}}, {Name: "gpu", Rules: cluster.Rules{AllowGroups: c.gpu}}}}
		found := named(doctor.Check(config.Default(), &doctor.Seen{Slurm: doctor.Slurm{Sighting: seen, Groups: []string{"ldap"}}}), "AllowGroups")
		if got := strings.Join(told(t, found), "; "); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.gpu, c.debug, got, c.want)
		}
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
		seen := &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{Release: c.release}, Sighting: &cluster.Observation{Partitions: partitions}}}
		if got := strings.Join(told(t, named(doctor.Check(config.Default(), seen), "MaxTime")), "; "); got != c.want {
			t.Errorf("Slurm %q, %v: %q, want %q", c.release, c.longest, got, c.want)
		}
	}
}

// QOS that Slurm does not have are named with the keys that name them; an unknown list accuses none.
func TestUnknownQOS(t *testing.T) {
	cfg := config.Default()
	cfg.Cells.Levels, cfg.Jobs.UrgentQOS = config.Levels{"urgent": 10, "urgnt": 5}, []string{"now"}
	for _, c := range []struct {
		has  []string
		want string // "" = none
	}{
		{nil, ""},
		{[]string{"normal", "now", "urgent", "urgnt"}, ""},
		{[]string{"normal", "urgent"}, "QOS warn: Slurm has no QOS urgnt (cells.levels), now (jobs.urgent_qos)"},
	} {
		found := named(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{QOS: c.has}}}), "QOS")
		if got := strings.Join(told(t, found), "\n"); !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("Slurm has %v: %q, want %q", c.has, got, c.want)
		}
	}
}

// Partitions, accounts, users and QOS that Slurm does not have are named with their keys, those of schedules too.
func TestUnknownNames(t *testing.T) {
	cfg, err := config.Parse("f.yaml", []byte(`partitions: [gpu, gup]
exclude: {accounts: [a, aa], users: [ann, eve]}
canary_jobs: {accounts: [b], users: [bob]}
budgets: {c: {gpu_hours: 1, per: month}}
lease: {signals: [{partition: gpuu, qos: hihg, account: d, signal: TERM, to: all}]}
saves: [{partition: long, saves: 2h}]
tenants: {weights: {a: 1, e: 1}}
jobs: {weights: {high: 2, hgih: 3}}
schedules: [{name: night, at: "0 20 * * *", for: 1h, set: {jobs: {weights: {high: 2, now: 3}}}}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := &cluster.Observation{Partitions: []cluster.Partition{{Name: "gpu"}}, Accounts: []cluster.Account{{Name: "a"}, {Name: "root"}}, Members: []cluster.Member{{User: "ann", Tenant: "a"}}}
	facts := slurm.Facts{QOS: []string{"high", "normal"}}
	find := func() string {
		found := doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Facts: facts, Sighting: seen}})
		return strings.Join(told(t, named(found, "partition", "account", "user", "QOS")), "\n")
	}
	const qos = "QOS warn: Slurm has no QOS hgih (jobs.weights), now (jobs.weights of schedule night), hihg (lease.signals)"
	got := find()
	for _, want := range []string{"partition warn: Slurm has no partition gpuu (lease.signals), long (saves)", "account warn: Slurm has no account c (budgets), b (canary_jobs.accounts), aa (exclude.accounts), d (lease.signals)",
		"user warn: Slurm has no user bob (canary_jobs.users), eve (exclude.users)", qos} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "(partitions)") || strings.Contains(got, "(tenants.weights)") {
		t.Errorf("two findings on one name:\n%s", got)
	}
	facts.RestDenied = "permission denied"
	if got := find(); strings.Contains(got, "no account") || strings.Contains(got, "no user") || !strings.Contains(got, qos) {
		t.Errorf("without rights:\n%s", got)
	}
}

func TestAccountsThatPassTheirParentsShareOn(t *testing.T) {
	for _, c := range []struct {
		level   int
		weights map[string]int64
		want    string
	}{
		{1, nil, ""},
		{2, nil, "fairshare=parent warn: b at tenants.level or above: no shares to compare"},
		{2, map[string]int64{"b": 1}, ""},
		{3, nil, "fairshare=parent warn: b, c at tenants.level or above: no shares to compare"},
	} {
		cfg := config.Default()
		cfg.Tenants.Level, cfg.Tenants.Weights = c.level, c.weights
		seen := &cluster.Observation{Now: 1, Nodes: []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "h100", Count: 8}}}},
			Accounts: []cluster.Account{{Name: "a", Parent: "root", Shares: 1}, {Name: "b", Parent: "a", ViaParent: true}, {Name: "c", Parent: "b", ViaParent: true}, {Name: "root"}}}
		got := told(t, named(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Sighting: seen}}), "fairshare"))
		if got := strings.Join(got, "; "); got != c.want {
			t.Errorf("level %d, weights %v: %q, want %q", c.level, c.weights, got, c.want)
		}
	}
}

// A budget cannot refuse jobs where Slurm has no submit plugin.
func TestRefusalsNeedThePlugin(t *testing.T) {
	cfg := config.Default()
	cfg.Budgets = map[string]config.Budget{"a": {GPUHours: 1, AtEnd: "refuse"}, "b": {GPUHours: 1, AtEnd: "idle-only"}, "c": {GPUHours: 1, AtEnd: "refuse"}}
	for plugin, want := range map[string][]string{"(null)": {"budgets warn: at_end: refuse, for a, c, but there is no submit plugin"}, "lua": nil, "fairlease": nil} {
		slurmConf := good()
		slurmConf[slurm.ConfJobSubmit] = plugin
		facts := slurm.Facts{Conf: slurmConf}
		got := told(t, named(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Facts: facts, LookErr: errors.New("away")}}), "budgets"))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("with the plugin %s: %s", plugin, d)
		}
	}
}

// The release of Slurm is compared with those that were tested, and versions of the API that go are named in time, with what to do.
func TestReleases(t *testing.T) {
	for _, c := range []struct {
		facts slurm.Facts
		pin   string
		want  string // after the line of the version
		level string
	}{
		{slurm.Facts{Release: "24.11.5", Speaks: "v0.0.42", ReadJobs: "v0.0.42"}, "", "", doctor.OK},
		{slurm.Facts{Release: "25.05.2", Speaks: "v0.0.43", ReadJobs: "v0.0.43"}, "", "", doctor.OK},
		{slurm.Facts{Release: "26.11.0", Speaks: "v0.0.45", ReadJobs: "v0.0.44"}, "", "", doctor.Warn},
		{slurm.Facts{Release: "26.05.5", Speaks: "v0.0.42", ReadJobs: "v0.0.42", Dropped: "26.11"}, "v0.0.42", "API warn: v0.0.42 is gone in Slurm 26.11; empty slurm.api_version: fairlease then takes the newest version that both sides know", doctor.OK},
		{slurm.Facts{Release: "26.05.5", Speaks: "v0.0.42", ReadJobs: "v0.0.42", Dropped: "26.11"}, "", "API warn: v0.0.42 is gone in Slurm 26.11; let slurmrestd offer v0.0.45, too (its option -d, or SLURMRESTD_DATA_PARSER, leaves it out)", doctor.OK},
		{slurm.Facts{Release: "27.11.1", Speaks: "v0.0.45", ReadJobs: "v0.0.45", Dropped: "28.05"}, "", "API warn: v0.0.45 is gone in Slurm 28.05; install a newer fairlease before that", doctor.Warn},
		{slurm.Facts{Release: "26.05.5", Speaks: "v0.0.45", ReadJobs: "v0.0.45", HidesExclusive: true}, "", "--exclusive warn: API v0.0.45 does not report it; sbatch's command line is read instead; " +
			"let slurmrestd offer v0.0.44, too (up to Slurm 27.05), or have users write --exclusive on the command line", doctor.OK},
	} {
		cfg := config.Default()
		cfg.Slurm.APIVersion = c.pin
		c.facts.Conf, c.facts.Cluster, c.facts.Offered = good(), "main", []string{c.facts.Speaks}
		found := doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Facts: c.facts, LookErr: errors.New("away")}})
		var got []string
		for _, x := range named(found, "API", "--exclusive") {
			got = append(got, fmt.Sprintf("%s %s: %s; %s", x.Check, x.Level, x.Found, x.Do))
		}
		if d := cmp.Diff(c.want, strings.Join(got, "\n")); d != "" {
			t.Errorf("Slurm %s, want -, got +:\n%s", c.facts.Release, d)
		}
		version := ofArea(found, "slurm")[0]
		if version.Check != "version" || version.Level != c.level || !strings.HasPrefix(version.Found, "Slurm "+c.facts.Release+", cluster main, API "+c.facts.Speaks+" of ") {
			t.Errorf("Slurm %s: %+v; want %s", c.facts.Release, version, c.level)
		}
	}
}
