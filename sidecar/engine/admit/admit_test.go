package admit

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

var accounts = []cluster.Account{{Name: "nlp", Parent: "root"}, {Name: "root"}, {Name: "speech", Parent: "nlp"}, {Name: "vision", Parent: "root"}}

// open makes the book of a site with the rules of partitions; partition free has none.
func open(partitions ...cluster.Partition) *Book {
	var b Book
	b.Open(0, cluster.Admit(partitions, accounts, cluster.Limits{}), nil)
	return &b
}

func gpu(r cluster.Rules) cluster.Partition { return cluster.Partition{Name: "gpu", Rules: r} }

func job(account string) *cluster.Job {
	return &cluster.Job{Account: account, User: "alice", QOS: "normal", Partitions: []string{"gpu"}, Limit: cluster.Hour, Request: cluster.Request{Size: cluster.Whole(1), Nodes: 1, CPUs: 4}}
}

// Each rule of a partition, for a job of account speech, below nlp: one hour, one node or more, 4 CPUs.
func TestRulesOfAPartition(t *testing.T) {
	for _, c := range []struct {
		name string
		p    cluster.Partition
		job  func(*cluster.Job)
		why  string // "" = it may start
	}{
		{"none", gpu(cluster.Rules{}), nil, ""},
		{"down", gpu(cluster.Rules{Closed: "DOWN"}), nil, "State=DOWN"},
		{"for reservations", gpu(cluster.Rules{NamedOnly: true}), nil, "ReqResv=YES"},
		{"its account is allowed", gpu(cluster.Rules{AllowAccounts: []string{"speech"}}), nil, ""},
		{"the account above it is allowed", gpu(cluster.Rules{AllowAccounts: []string{"nlp"}}), nil, ""},
		{"another is allowed", gpu(cluster.Rules{AllowAccounts: []string{"vision"}}), nil, "AllowAccounts=vision"},
		{"an unknown account", gpu(cluster.Rules{AllowAccounts: []string{"vision"}}), func(j *cluster.Job) { j.Account = "new" }, "AllowAccounts=vision"},
		{"its account is denied", gpu(cluster.Rules{DenyAccounts: []string{"speech"}}), nil, "DenyAccounts=speech"},
		{"the account above it is denied", gpu(cluster.Rules{DenyAccounts: []string{"nlp"}}), nil, "DenyAccounts=nlp"},
		{"allowed and denied: only the former counts", gpu(cluster.Rules{AllowAccounts: []string{"nlp"}, DenyAccounts: []string{"speech"}}), nil, ""},
		{"its QOS is allowed", gpu(cluster.Rules{AllowQOS: []string{"high", "normal"}}), nil, ""},
		{"another QOS is allowed", gpu(cluster.Rules{AllowQOS: []string{"high"}}), nil, "AllowQos=high"},
		{"its QOS is denied", gpu(cluster.Rules{DenyQOS: []string{"high", "normal"}}), nil, "DenyQos=high,normal"},
		{"no QOS", gpu(cluster.Rules{AllowQOS: []string{"high"}}), func(j *cluster.Job) { j.QOS = "" }, ""},
		{"its user is in a group", gpu(cluster.Rules{AllowGroups: []string{"staff"}, Outside: []string{"bob"}}), nil, ""},
		{"its user is in no group", gpu(cluster.Rules{AllowGroups: []string{"staff"}, Outside: []string{"alice", "bob"}}), nil, "AllowGroups=staff"},
		{"as long as may be", cluster.Partition{Name: "gpu", MaxTime: cluster.Hour}, nil, ""},
		{"too long", cluster.Partition{Name: "gpu", MaxTime: 59 * cluster.Minute}, nil, "MaxTime=00:59:00"},
		{"without a limit", cluster.Partition{Name: "gpu", MaxTime: cluster.Hour}, func(j *cluster.Job) { j.Limit = 0 }, "MaxTime=01:00:00"},
		{"without a limit, but it may be short", cluster.Partition{Name: "gpu", MaxTime: cluster.Hour}, func(j *cluster.Job) { j.Limit, j.MinLimit = 0, cluster.Hour }, ""},
		{"it may be short enough", cluster.Partition{Name: "gpu", MaxTime: 59 * cluster.Minute}, func(j *cluster.Job) { j.MinLimit = 59 * cluster.Minute }, ""},
		{"at its shortest too long", cluster.Partition{Name: "gpu", MaxTime: 58 * cluster.Minute}, func(j *cluster.Job) { j.MinLimit = 59 * cluster.Minute }, "MaxTime=00:58:00"},
		{"too wide", gpu(cluster.Rules{MaxNodes: 2}), func(j *cluster.Job) { j.Request.Nodes = 3 }, "MaxNodes=2"},
		{"too narrow", gpu(cluster.Rules{MinNodes: 2}), nil, "MinNodes=2"},
		{"may be wide enough", gpu(cluster.Rules{MinNodes: 2}), func(j *cluster.Job) { j.Request.MaxNodes = 2 }, ""},
		{"too many CPUs on its node", gpu(cluster.Rules{CPUsPerNode: 3}), func(j *cluster.Job) { j.Request.MaxNodes = 1 }, "MaxCPUsPerNode=3"},
		{"its CPUs may be spread", gpu(cluster.Rules{CPUsPerNode: 3}), nil, ""},
		{"too many CPUs for its GPUs on a node", gpu(cluster.Rules{CPUsPerNode: 3}), func(j *cluster.Job) { j.Request.Size, j.Request.PerNode, j.Request.CPUs = cluster.Whole(4), 2, 8 }, "MaxCPUsPerNode=3"},
	} {
		j := job("speech")
		if c.job != nil {
			c.job(j)
		}
		b := open(c.p, cluster.Partition{Name: "other", MaxTime: cluster.Minute})
		for range 2 { // the second answer comes from the cache
			gate, why := b.Of(j)
			switch {
			case c.why == "" && (why != "" || gate != nil && len(gate.Partitions) != 1):
				t.Errorf("%s: %q, %+v; want that it may start", c.name, why, gate)
			case c.why != "" && (gate != nil || !strings.HasPrefix(strings.TrimPrefix(why, "user alice is in no group of "), "partition gpu has "+c.why+"; ") || !strings.Contains(why, "scontrol")):
				t.Errorf("%s: %q, want partition gpu's %s", c.name, why, c.why)
			}
		}
	}
}

// A job that names several partitions may start in those that let it in, with the width that these allow.
func TestSeveralPartitions(t *testing.T) {
	b := open(cluster.Partition{Name: "closed", Rules: cluster.Rules{Closed: "DOWN"}}, cluster.Partition{Name: "narrow", Rules: cluster.Rules{MaxNodes: 1}},
		cluster.Partition{Name: "short", MaxTime: cluster.Minute, Rules: cluster.Rules{MaxNodes: 4}})
	for _, c := range []struct {
		names, limit, want string
		nodes              int
	}{
		{"closed,narrow", "", "narrow", 1},
		{"closed,narrow,short", "", "narrow", 1},
		{"narrow,short", "00:01", "narrow,short", 4},
		{"free,narrow", "", "free,narrow", 0},
		{"closed,free", "", "free", 0},
		{"closed", "", "", 0},
	} {
		j := job("nlp")
		if j.Partitions = strings.Split(c.names, ","); c.limit != "" {
			j.Limit = cluster.Minute
		}
		gate, why := b.Of(j)
		if c.want == "" {
			if gate != nil || why == "" {
				t.Errorf("-p %s: %+v", c.names, gate)
			}
			continue
		}
		if why != "" || gate == nil || strings.Join(gate.Partitions, ",") != c.want || gate.MaxNodes != c.nodes {
			t.Errorf("-p %s: %+v, %q; want %s, at most %d nodes", c.names, gate, why, c.want, c.nodes)
		}
	}
}

// A job does not start in partitions that are only watched if it names others, with and without rules of these. A job that names no
// other is recorded as if it could.
func TestWatchedPartitions(t *testing.T) {
	watched := []cluster.Preempted{{Partition: "gpu", Why: "Slurm may requeue its jobs"}, {Partition: "low", Why: "as well"}}
	for _, c := range []struct{ names, want, why string }{
		{"high,gpu", "high", ""},
		{"gpu,high", "high", ""},
		{"low,gpu,high,free", "high,free", ""},
		{"high", "high", ""},
		{"gpu", "gpu", ""},
		{"gpu,low", "gpu,low", ""},
		{"gpu,closed", "", "partition closed has State=DOWN"},
	} {
		for _, rules := range [][]cluster.Partition{nil, {{Name: "closed", Rules: cluster.Rules{Closed: "DOWN"}}}} {
			if c.why != "" && rules == nil {
				continue
			}
			var b Book
			b.Open(0, cluster.Admit(rules, accounts, cluster.Limits{}), watched)
			j := job("nlp")
			j.Partitions = strings.Split(c.names, ",")
			gate, why := b.Of(j)
			if c.why != "" {
				if gate != nil || !strings.Contains(why, c.why) {
					t.Errorf("-p %s: %+v, %q; want %q", c.names, gate, why, c.why)
				}
				continue
			}
			if why != "" || gate == nil || strings.Join(gate.Partitions, ",") != c.want {
				t.Errorf("-p %s: %+v, %q; want %s", c.names, gate, why, c.want)
			}
			if n := testing.AllocsPerRun(100, func() { b.Of(j) }); n > 0 {
				t.Errorf("-p %s: %v allocations", c.names, n)
			}
		}
	}
}

// Without rules no job costs anything.
func TestNoRules(t *testing.T) {
	b := open(gpu(cluster.Rules{}))
	if gate, why := b.Of(job("nlp")); gate != nil || why != "" || b.rules != nil {
		t.Errorf("%+v, %q", gate, why)
	}
	b = open(cluster.Partition{Name: "gpu", MaxTime: cluster.Day})
	j := job("nlp")
	if n := testing.AllocsPerRun(100, func() { b.Of(j) }); n > 0 {
		t.Errorf("a job that is like others costs %v allocations", n)
	}
}

// An account tree with a cycle ends.
func TestABrokenTree(t *testing.T) {
	var b Book
	b.Open(0, cluster.Admit([]cluster.Partition{gpu(cluster.Rules{AllowAccounts: []string{"vision"}})}, []cluster.Account{{Name: "a", Parent: "b"}, {Name: "b", Parent: "a"}}, cluster.Limits{}), nil)
	if _, why := b.Of(job("a")); why == "" {
		t.Error("it may start")
	}
}

// limited makes the book of a site with limits, and counts running jobs.
func limited(l cluster.Limits, partitions []cluster.Partition, running ...cluster.Job) *Book {
	s := &cluster.Snapshot{Admission: cluster.Admit(partitions, accounts, l)}
	x := &round.Facts{Snapshot: s}
	for _, j := range running {
		s.Cases = append(s.Cases, cluster.Case{Job: j})
		x.Cases = append(x.Cases, round.Status{Live: true, Runs: true})
	}
	b := new(Book)
	b.Open(s.Now, s.Admission, nil)
	b.Count(x, make([]*cluster.Lease, len(x.Cases)), func(int) bool { return false })
	return b
}

// runs is a running job with GPUs on one node, 4 CPUs each.
func runs(account, user, qos string, gpus int) cluster.Job {
	return cluster.Job{Account: account, User: user, QOS: qos, Partitions: []string{"gpu"}, State: cluster.Running, Request: cluster.Request{Size: cluster.Whole(gpus)},
		Holds: []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(gpus), CPUs: 4 * gpus, MemoryMB: 1000}}}
}

func caps(rule, tres string, most int64) []cluster.Cap {
	return []cluster.Cap{{Rule: rule, TRES: tres, Max: most}}
}

// Each limit, for a waiting job of alice in speech, below nlp, with QOS high: two GPUs, 8 CPUs, one hour.
func TestLimits(t *testing.T) {
	account := func(name string, c []cluster.Cap) cluster.Limits {
		return cluster.Limits{Associations: []cluster.Association{{Account: name, Caps: c}}}
	}
	user := func(c []cluster.Cap) cluster.Limits {
		return cluster.Limits{Associations: []cluster.Association{{Account: "speech", User: "alice", Caps: c}}}
	}
	qos := func(c []cluster.Cap) cluster.Limits {
		return cluster.Limits{QOS: []cluster.QOS{{Name: "high", Caps: c}}}
	}
	others := []cluster.Job{runs("speech", "alice", "high", 1), runs("nlp", "bob", "high", 2), runs("vision", "carol", "normal", 4)}
	for _, c := range []struct {
		name string
		l    cluster.Limits
		why  string // "" = it may start
	}{
		{"none of its own", account("vision", caps(cluster.GrpTRES, "gres/gpu", 1)), ""},
		{"its account has room", account("speech", caps(cluster.GrpTRES, "gres/gpu", 3)), ""},
		{"its account is full", account("speech", caps(cluster.GrpTRES, "gres/gpu", 2)), "account speech is at GrpTRES=gres/gpu=2; 1 in use"},
		{"the account above has room", account("nlp", caps(cluster.GrpTRES, "gres/gpu", 5)), ""},
		{"the account above is full", account("nlp", caps(cluster.GrpTRES, "gres/gpu", 4)), "account nlp is at GrpTRES=gres/gpu=4; 3 in use"},
		{"CPUs", account("nlp", caps(cluster.GrpTRES, "cpu", 19)), "account nlp is at GrpTRES=cpu=19; 12 in use"},
		{"memory", account("nlp", caps(cluster.GrpTRES, "mem", 1999)), "account nlp is at GrpTRES=mem=1999; 2000 in use"},
		{"nodes", account("nlp", caps(cluster.GrpTRES, "node", 2)), "account nlp is at GrpTRES=node=2; 2 in use"},
		{"a model that it does not name", account("nlp", caps(cluster.GrpTRES, "gres/gpu:v100", 3)), ""},
		{"jobs", account("nlp", caps(cluster.GrpJobs, "", 2)), "account nlp is at GrpJobs=2; 2 in use"},
		{"more than the limit", account("nlp", caps(cluster.GrpTRES, "gres/gpu", 1)), "account nlp has GrpTRES=gres/gpu=1, less than the job asks for"},
		{"a user's jobs", user(caps(cluster.MaxJobs, "", 1)), "user alice in account speech is at MaxJobs=1; 1 in use"},
		{"a user's GPUs", user(caps(cluster.GrpTRES, "gres/gpu", 2)), "user alice in account speech is at GrpTRES=gres/gpu=2; 1 in use"},
		{"an account's default for its users", account("speech", caps(cluster.MaxJobs, "", 1)), ""},
		{"per job", user(caps(cluster.MaxTRESPerJob, "gres/gpu", 1)), "user alice in account speech has MaxTRESPerJob=gres/gpu=1"},
		{"too long", user(caps(cluster.MaxWall, "", 59)), "user alice in account speech has MaxWall=59"},
		{"as long as may be", user(caps(cluster.MaxWall, "", 60)), ""},
		{"too long, although it may be short", user(caps(cluster.MaxWall, "", 59)), "user alice in account speech has MaxWall=59"},
		{"QOS", qos(caps(cluster.GrpTRES, "gres/gpu", 4)), "QOS high is at GrpTRES=gres/gpu=4; 3 in use"},
		{"QOS with room", qos(caps(cluster.GrpTRES, "gres/gpu", 5)), ""},
		{"QOS by user", qos(caps(cluster.MaxTRESPerUser, "gres/gpu", 2)), "QOS high, user alice is at MaxTRESPerUser=gres/gpu=2; 1 in use"},
		{"QOS by user with room", qos(caps(cluster.MaxTRESPerUser, "gres/gpu", 3)), ""},
		{"QOS by user, jobs", qos(caps(cluster.MaxJobsPerUser, "", 1)), "QOS high, user alice is at MaxJobsPerUser=1; 1 in use"},
		{"QOS by account", qos(caps(cluster.MaxTRESPerAccount, "gres/gpu", 2)), "QOS high, account speech is at MaxTRESPerAccount=gres/gpu=2; 1 in use"},
		{"QOS, at least", qos(caps(cluster.MinTRESPerJob, "gres/gpu", 3)), "QOS high has MinTRESPerJob=gres/gpu=3"},
		{"QOS, on a node", qos(caps(cluster.MaxTRESPerNode, "gres/gpu", 1)), "QOS high has MaxTRESPerNode=gres/gpu=1"},
		{"QOS before associations", cluster.Limits{Associations: account("nlp", caps(cluster.GrpTRES, "gres/gpu", 1)).Associations,
			QOS: qos(caps(cluster.GrpTRES, "gres/gpu", 5)).QOS}, ""},
		{"QOS of another resource", cluster.Limits{Associations: account("nlp", caps(cluster.GrpTRES, "gres/gpu", 4)).Associations,
			QOS: qos(caps(cluster.GrpTRES, "cpu", 99)).QOS}, "account nlp is at GrpTRES=gres/gpu=4; 3 in use"},
		{"jobs elsewhere", cluster.Limits{Associations: account("nlp", caps(cluster.GrpTRES, "cpu", 40)).Associations,
			Others: []cluster.Use{{Account: "nlp", User: "dan", Partition: "cpu", Jobs: 3, CPUs: 21}}}, "account nlp is at GrpTRES=cpu=40; 33 in use"},
	} {
		b := limited(c.l, nil, others...)
		j := job("speech")
		j.User, j.QOS, j.Request = "alice", "high", cluster.Request{Size: cluster.Whole(2), Nodes: 1, MaxNodes: 1, CPUs: 8}
		if strings.HasSuffix(c.name, "it may be short") {
			j.MinLimit = cluster.Minute
		}
		_, why := b.Of(j)
		if c.why == "" && why != "" || c.why != "" && !strings.HasPrefix(why, c.why+"; an administrator") {
			t.Errorf("%s: %q, want %q", c.name, why, c.why)
		}
	}
}

// Limits on minutes, for a job of two GPUs and one hour. Running jobs began before the minutes were read, and one after.
func TestMinutes(t *testing.T) {
	const read = cluster.Instant(10 * cluster.Hour)
	account := func(rule, tres string, most, used, promised int64) cluster.Limits {
		return cluster.Limits{Read: read, Associations: []cluster.Association{{Account: "nlp", Caps: []cluster.Cap{{Rule: rule, TRES: tres, Max: most, Used: used, Promised: promised}}}}}
	}
	gpus := func(most, used, promised int64) cluster.Limits {
		return account(cluster.GrpTRESMins, "gres/gpu", most, used, promised)
	}
	wall := func(most, used int64) cluster.Limits { return account(cluster.GrpWall, "", most, used, 0) }
	for _, c := range []struct {
		name string
		l    cluster.Limits
		safe bool
		why  string
	}{
		{"some are left", gpus(600, 599, 500), false, ""},
		{"all are used", gpus(600, 600, 0), false, "account nlp has GrpTRESMins=gres/gpu=600; 600 minutes are used"},
		{"none of its resources", account(cluster.GrpTRESMins, "gres/gpu:v100", 600, 601, 0), false, ""},
		{"safe: as much is left as it asks for, besides the new one", gpus(600, 300, 120), true, ""},
		{"safe: less is left", gpus(600, 300, 121), true, "account nlp has GrpTRESMins=gres/gpu=600; 300 minutes are used, and running or granted jobs may use 181"},
		{"safe: more than the limit", gpus(119, 0, 0), true, "account nlp has GrpTRESMins=gres/gpu=119, less than the job asks for"},
		{"run time is left", wall(600, 599), false, ""},
		{"run time is used", wall(600, 600), false, "account nlp has GrpWall=600; 600 minutes are used"},
		{"safe: enough run time is left", wall(600, 540), true, ""},
		{"safe: too little run time is left", wall(600, 541), true, "account nlp has GrpWall=600; 541 minutes are used"},
		{"per job", cluster.Limits{Associations: []cluster.Association{{Account: "speech", User: "alice", Caps: caps(cluster.MaxTRESMins, "gres/gpu", 119)}}}, false, "user alice in account speech has MaxTRESMins=gres/gpu=119"},
		{"per job, as much as may be", cluster.Limits{Associations: []cluster.Association{{Account: "speech", User: "alice", Caps: caps(cluster.MaxTRESMins, "gres/gpu", 120)}}}, false, ""},
		{"others that run are counted by Slurm", cluster.Limits{Safe: true, Associations: account(cluster.GrpTRESMins, "cpu", 600, 0, 120).Associations,
			Others: []cluster.Use{{Account: "nlp", User: "dan", Partition: "cpu", Jobs: 3, CPUs: 21}}}, false, ""},
	} {
		old, fresh := runs("nlp", "bob", "normal", 1), runs("nlp", "bob", "normal", 1)
		old.Start, fresh.Start = read.Add(-cluster.Hour), read.Add(cluster.Minute)
		old.Limit, fresh.Limit = cluster.Hour, cluster.Hour
		c.l.Safe = c.safe
		b := limited(c.l, nil, old, fresh)
		j := job("speech")
		j.User, j.State, j.Request = "alice", cluster.Waiting, cluster.Request{Size: cluster.Whole(2), Nodes: 1, MaxNodes: 1, CPUs: 2}
		_, why := b.Of(j)
		if c.why == "" && why != "" || c.why != "" && !strings.HasPrefix(why, c.why+"; an administrator") {
			t.Errorf("%s: %q, want %q", c.name, why, c.why)
		}
		if due := b.Wants(j); c.why == "" && !due {
			t.Errorf("%s: it is not due", c.name)
		}
	}
}

// Grants of a round count against the minutes that are left, where limits are safe.
func TestMinutesAreGrantedOnce(t *testing.T) {
	for safe, want := range map[bool]int{false: 5, true: 2} {
		b := limited(cluster.Limits{Safe: safe, Associations: []cluster.Association{{Account: "nlp", Caps: []cluster.Cap{{Rule: cluster.GrpTRESMins, TRES: "gres/gpu", Max: 150, Used: 20}}}}}, nil)
		n := 0
		for range 5 {
			j := job("nlp")
			j.State = cluster.Waiting
			b.facts.Snapshot.Cases = append(b.facts.Snapshot.Cases, cluster.Case{Job: *j})
			if i := len(b.facts.Snapshot.Cases) - 1; b.Room(i) == lease.Now {
				b.Take(i, true)
				n++
			}
		}
		if n != want {
			t.Errorf("safe %v: %d jobs have room, want %d", safe, n, want)
		}
	}
}

// The partition's QOS comes before the job's, unless that one has OverPartQOS.
func TestPartitionQOS(t *testing.T) {
	parts := []cluster.Partition{gpu(cluster.Rules{QOS: "part"})}
	for _, c := range []struct {
		flags     []string
		job, part int64
		starts    bool
	}{{nil, 1, 8, true}, {nil, 8, 1, false}, {[]string{cluster.OverPartQOS}, 1, 8, false}, {[]string{cluster.OverPartQOS}, 8, 1, true}} {
		b := limited(cluster.Limits{QOS: []cluster.QOS{{Name: "normal", Flags: c.flags, Caps: caps(cluster.GrpTRES, "gres/gpu", c.job)},
			{Name: "part", Caps: caps(cluster.GrpTRES, "gres/gpu", c.part)}}}, parts, runs("nlp", "bob", "normal", 1))
		if _, why := b.Of(job("nlp")); (why == "") != c.starts {
			t.Errorf("%+v: %q", c, why)
		}
	}
}

// A job whose nodes are closed to other users holds their GPUs, but uses only those that it asks for of a limit.
func TestWholeNodesOfAUserInLimits(t *testing.T) {
	for unplaceable, want := range map[string]int64{cluster.Apart + "user": 1, "": 4} {
		j := runs("nlp", "alice", "high", 4)
		j.Request = cluster.Request{Size: cluster.Whole(1), Nodes: 1, Exclusive: true, Unplaceable: unplaceable}
		for _, tres := range []string{"gres/gpu", "gres/gpu:v100"} {
			if got := amount(&j, tres); got != want {
				t.Errorf("%q: %d of %s; want %d", unplaceable, got, tres, want)
			}
		}
	}
}
