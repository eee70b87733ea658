package e2e

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// forbidden are rules of Slurm's that keep a user's jobs from starting. The two Slurm versions take turns.
var forbidden = []struct {
	name string
	set  [][]string // commands that make the rule, as root
	free [][]string // commands that lift it
	jobs []string   // options of the flood
	says string     // a part of the reason
}{
	{"access lists", [][]string{{"scontrol", "update", "PartitionName=gpu", "AllowAccounts=vision"}}, [][]string{{"scontrol", "update", "PartitionName=gpu", "AllowAccounts=ALL"}},
		nil, "partition gpu has AllowAccounts=vision"},
	{"MaxTime", [][]string{{"scontrol", "update", "PartitionName=gpu", "MaxTime=60"}}, [][]string{{"scontrol", "update", "PartitionName=gpu", "MaxTime=120"}},
		[]string{"-t", "90"}, "partition gpu has MaxTime=01:00:00"},
	{"AllowQos", [][]string{{"scontrol", "update", "PartitionName=gpu", "AllowQos=normal"}}, [][]string{{"scontrol", "update", "PartitionName=gpu", "AllowQos=ALL"}},
		[]string{"-q", "batch"}, "partition gpu has AllowQos=normal"},
	{"MaxNodes", [][]string{{"scontrol", "update", "PartitionName=gpu", "MaxNodes=1"}}, [][]string{{"scontrol", "update", "PartitionName=gpu", "MaxNodes=2"}},
		[]string{"-N", "2"}, "partition gpu has MaxNodes=1"},
	{"MaxTRESMins", [][]string{{"sacctmgr", "-i", "modify", "account", "nlp", "set", "MaxTRESMins=gres/gpu=59"}}, [][]string{{"sacctmgr", "-i", "modify", "account", "nlp", "set", "MaxTRESMins=gres/gpu=60"}},
		nil, "user alice in account nlp has MaxTRESMins=gres/gpu=59"},
	{"GrpTRESMins", [][]string{{"sacctmgr", "-i", "modify", "qos", "batch", "set", "GrpTRESMins=gres/gpu=0"}}, [][]string{{"sacctmgr", "-i", "modify", "qos", "batch", "set", "GrpTRESMins=gres/gpu=1"}},
		[]string{"-q", "batch"}, "QOS batch has GrpTRESMins=gres/gpu=0"},
}

// limited are limits that leave a user's jobs one GPU.
var limited = []struct {
	name string
	set  [][]string
	free [][]string
	jobs []string
	says string
	conf string // lines of slurm.conf
	part string // the flood's own partition, on the same nodes; "" = gpu
}{
	{"GrpTRES of an account", [][]string{{"sacctmgr", "-i", "modify", "account", "nlp", "set", "GrpTRES=gres/gpu=1"}},
		[][]string{{"sacctmgr", "-i", "modify", "account", "nlp", "set", "GrpTRES=gres/gpu=3"}}, nil, "account nlp is at GrpTRES=gres/gpu=1; 1 in use", "", ""},
	{"MaxTRESPerUser of a QOS", [][]string{{"sacctmgr", "-i", "modify", "qos", "batch", "set", "MaxTRESPerUser=gres/gpu=1"}},
		[][]string{{"sacctmgr", "-i", "modify", "qos", "batch", "set", "MaxTRESPerUser=gres/gpu=3"}}, []string{"-q", "batch"}, "QOS batch, user alice is at MaxTRESPerUser=gres/gpu=1; 1 in use", "", ""},
	{"GrpTRESMins for whole time limits", [][]string{{"sacctmgr", "-i", "modify", "account", "nlp", "set", "GrpTRESMins=gres/gpu=100"}},
		[][]string{{"sacctmgr", "-i", "modify", "account", "nlp", "set", "GrpTRESMins=gres/gpu=400"}}, nil, "account nlp has GrpTRESMins=gres/gpu=100; ",
		"AccountingStorageEnforce=associations,limits,qos,safe\n", ""},
	{"MaxTRESPerUser of a partition's QOS", [][]string{{"sacctmgr", "-i", "modify", "qos", "batch", "set", "MaxTRESPerUser=gres/gpu=1"}, {"scontrol", "update", "PartitionName=small", "QOS=batch"}},
		[][]string{{"sacctmgr", "-i", "modify", "qos", "batch", "set", "MaxTRESPerUser=gres/gpu=3"}}, nil, "QOS batch, user alice is at MaxTRESPerUser=gres/gpu=1; 1 in use", "", "small"},
	{"MaxJobs of a user", [][]string{{"sacctmgr", "-i", "modify", "user", "alice", "set", "MaxJobs=1"}},
		[][]string{{"sacctmgr", "-i", "modify", "user", "alice", "set", "MaxJobs=3"}}, nil, "user alice in account nlp is at MaxJobs=1; 1 in use", "", ""},
	{"GrpJobs of an account", [][]string{{"sacctmgr", "-i", "modify", "account", "nlp", "set", "GrpJobs=1"}},
		[][]string{{"sacctmgr", "-i", "modify", "account", "nlp", "set", "GrpJobs=3"}}, nil, "account nlp is at GrpJobs=1; 1 in use", "", ""},
	{"GrpTRES of a partition's QOS", [][]string{{"sacctmgr", "-i", "modify", "qos", "batch", "set", "GrpTRES=gres/gpu=1"}, {"scontrol", "update", "PartitionName=small", "QOS=batch"}},
		[][]string{{"sacctmgr", "-i", "modify", "qos", "batch", "set", "GrpTRES=gres/gpu=3"}}, nil, "QOS batch is at GrpTRES=gres/gpu=1; 1 in use", "", "small"},
}

// A flood of 1,000 jobs takes nothing from the other tenant beyond the one GPU that a limit leaves it, and no grant is in vain. When
// the limit is raised, more of them run.
func TestFloodsAtALimit(t *testing.T) {
	t.Parallel()
	for i, f := range limited {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			suite := testcluster.Suites[i%len(testcluster.Suites)]
			o := testcluster.Options{ExtraConf: f.conf, QOS: []testcluster.QOS{{Name: "batch"}},
				Nodes:      []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}},
				Partitions: []testcluster.Partition{{Name: "gpu", Default: true}, {Name: "free"}}}
			if f.part != "" {
				o.Partitions = append(o.Partitions, testcluster.Partition{Name: f.part})
			}
			r := newRig(t, suite, usual[suite], o)
			if f.part != "" {
				r.rules.Partitions = append(r.rules.Partitions, f.part)
			}
			r.run(f.set)
			r.limitsEvery(2 * time.Second)
			var honest []string
			for range 7 {
				honest = append(honest, r.submit("bob", sleeps(900), "--gres=gpu:1", "-N", "1"))
			}
			r.govern()
			for _, id := range honest {
				r.waitState(id, time.Minute, "RUNNING")
			}
			flood := r.submit("alice", sleeps(900), append([]string{"--gres=gpu:1", "--array=0-999", "-p", cmp.Or(f.part, "gpu")}, f.jobs...)...)
			r.until("one of the flood runs", time.Minute, func() bool { return r.tasks(flood) == 1 })
			r.until("the others have their reason", time.Minute, func() bool { return strings.Contains(r.status(flood+"_700").Note, f.says) })
			since := time.Now()
			r.until("three terms are over", 3*time.Minute, func() bool { return time.Since(since) > 3*r.settings.Term.Duration() })
			for _, id := range honest {
				if n := r.count(cluster.Reclaim, id); n > 0 || r.state(id) != "RUNNING" {
					t.Errorf("job %s of the other tenant is %s, and was stopped %d times", id, r.state(id), n)
				}
			}
			// No plugin gates the flood when it is submitted: Slurm may start one task while the grant of another is under way.
			own := func(vain string) bool {
				return strings.Contains(vain, "Note:job "+flood+"_") && strings.Contains(vain, " started on ")
			}
			if vain := slices.DeleteFunc(r.inVain(), own); len(vain) > 0 {
				t.Errorf("grants that did not start: %q", vain)
			}
			r.run(f.free)
			r.until("more of the flood run", 2*time.Minute, func() bool { return r.tasks(flood) >= 2 })
		})
	}
}

// limitsEvery has the limits read so often. On a machine that is busy with other tests a job may start late: a grant waits for that
// half as long as by default, and not only a quarter.
func (r *rig) limitsEvery(d time.Duration) {
	r.t.Helper()
	r.settings.GrantTimeout = 30 * cluster.Second
	c, err := slurm.New(slurm.Config{Address: "unix://" + r.RestSocket(), Scontrol: r.Scontrol(), License: r.license, FullEvery: 10 * time.Second, AccountsEvery: d, SiteFactor: short(20).SiteFactor})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	r.client = c
}

// A flood of 1,000 jobs that a rule does not let start takes nothing from the other tenant: its jobs run on, and nothing is
// granted in vain. When the rule is lifted, jobs of the flood start.
func TestFloodsOfForbiddenJobs(t *testing.T) {
	t.Parallel()
	for i, f := range forbidden {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			suite := testcluster.Suites[i%len(testcluster.Suites)]
			r := newRig(t, suite, usual[suite], testcluster.Options{
				Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}, QOS: []testcluster.QOS{{Name: "batch"}}})
			r.run(f.set)
			r.limitsEvery(2 * time.Second)
			var honest []string
			for range 8 {
				honest = append(honest, r.submit("bob", sleeps(900), "--gres=gpu:1", "-N", "1"))
			}
			r.govern()
			for _, id := range honest {
				r.waitState(id, time.Minute, "RUNNING")
			}
			flood := r.submit("alice", sleeps(5), append([]string{"--gres=gpu:1", "--array=0-999"}, f.jobs...)...)
			r.until("the flood has its reason", time.Minute, func() bool { return r.status(flood+"_7").Code == cluster.ReasonRule })
			if v := r.status(flood + "_7"); !strings.Contains(v.Note, f.says) {
				t.Errorf("the reason is %+v, want %q", v, f.says)
			}
			since := time.Now()
			r.until("three terms are over", 3*time.Minute, func() bool { return time.Since(since) > 3*r.settings.Term.Duration() })
			for _, id := range honest {
				if n := r.count(cluster.Reclaim, id); n > 0 || r.state(id) != "RUNNING" {
					t.Errorf("job %s of the other tenant is %s, and was stopped %d times", id, r.state(id), n)
				}
			}
			if n := r.count(cluster.Grant, "") - len(honest); n > 0 {
				t.Errorf("%d grants to jobs that cannot start", n)
			}
			r.run(f.free)
			r.until("the flood is granted GPUs", 2*time.Minute, func() bool { return r.count(cluster.Grant, "") > len(honest) })
		})
	}
}

// inUse are licences that are not free, which a flood asks for. The two Slurm versions take turns.
var inUse = []struct {
	name string
	set  [][]string // commands after which none is free, as root
	free [][]string // commands after which two are
	asks string
	says string
}{
	{"local", [][]string{{"sbatch", "-p", "free", "-n", "1", "-t", "60", "-L", "matlab:2", "-J", "holder", "--chdir=/tmp", "--wrap", "sleep 3000"}}, [][]string{{"scancel", "-n", "holder"}},
		"matlab:1", "licence matlab: 2 of 2 in use; your job asks for 1"},
	{"remote", [][]string{{"sacctmgr", "-i", "add", "resource", "name=abaqus", "server=flex", "count=2", "type=license", "cluster=fairlease", "allowed=100"},
		{"sacctmgr", "-i", "modify", "resource", "abaqus", "server=flex", "set", "lastconsumed=2"}},
		[][]string{{"sacctmgr", "-i", "modify", "resource", "abaqus", "server=flex", "set", "lastconsumed=0"}},
		"abaqus@flex:1", "licence abaqus@flex: 0 of 2 in use, 2 in use outside of Slurm; your job asks for 1"},
}

// A flood of 1,000 jobs that ask for a licence in use takes nothing from the other tenant, and leaves no GPU idle. As soon as two
// licences are free, two of them run.
func TestFloodsForALicence(t *testing.T) {
	t.Parallel()
	for i, f := range inUse {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			suite := testcluster.Suites[(i+1)%len(testcluster.Suites)]
			r := newRig(t, suite, usual[suite], testcluster.Options{ExtraConf: "Licenses=matlab:2\n",
				Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}})
			r.run(f.set)
			var honest []string
			for range 8 {
				honest = append(honest, r.submit("bob", sleeps(900), "--gres=gpu:1", "-N", "1"))
			}
			r.govern()
			for _, id := range honest {
				r.waitState(id, time.Minute, "RUNNING")
			}
			flood := r.submit("alice", sleeps(900), "--gres=gpu:1", "--array=0-999", "-L", f.asks)
			r.until("the flood has its reason", time.Minute, func() bool { return r.status(flood+"_7").Code == cluster.ReasonRule })
			if v := r.status(flood + "_7"); !strings.HasPrefix(v.Note, f.says) {
				t.Errorf("the reason is %+v, want %q", v, f.says)
			}
			since := time.Now()
			r.until("three terms are over", 3*time.Minute, func() bool { return time.Since(since) > 3*r.settings.Term.Duration() })
			r.goesOn(1, time.Minute)
			for _, id := range honest {
				if n := r.count(cluster.Reclaim, id); n > 0 || r.state(id) != "RUNNING" {
					t.Errorf("job %s of the other tenant is %s, and was stopped %d times", id, r.state(id), n)
				}
			}
			if n := r.count(cluster.Grant, "") - len(honest); n > 0 {
				t.Errorf("%d grants to jobs that cannot start", n)
			}
			r.run(f.free)
			r.until("two of the flood run", 2*time.Minute, func() bool { return r.tasks(flood) == 2 })
			r.goesOn(20, time.Minute)
			if n := r.tasks(flood); n != 2 || r.inVain() != nil {
				t.Errorf("%d of the flood run, want 2; grants that did not start: %q", n, r.inVain())
			}
		})
	}
}

// A job may start with a time limit as short as its --time-min: MaxTime and reservations ahead do not keep it from GPUs.
func TestTimeMin(t *testing.T) {
	onBoth(t, testcluster.Options{Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}, func(t *testing.T, r *rig) {
		r.run([][]string{{"scontrol", "update", "PartitionName=gpu", "MaxTime=60"},
			{"scontrol", "create", "reservation", "ReservationName=maint", "StartTime=now+40minutes", "Duration=60", "Nodes=v2", "Users=root", "Flags=MAINT"}})
		r.govern()
		long := r.submit("alice", sleeps(900), "--gres=gpu:1", "-t", "90", "--time-min=30")
		ahead := r.submit("alice", sleeps(900), "--gres=gpu:1", "-t", "55", "--time-min=20", "-w", "v2")
		never := r.submit("alice", sleeps(900), "--gres=gpu:1", "-t", "55", "-w", "v2")
		for _, id := range []string{long, ahead} {
			r.waitState(id, time.Minute, "RUNNING")
		}
		r.until("a job that would run into the reservation waits for its end", time.Minute, func() bool { return r.status(never).Code == cluster.ReasonReserved })
		if vain := r.inVain(); vain != nil {
			t.Errorf("grants that did not start: %q", vain)
		}
	})
}

// run runs commands as root in the cluster.
func (r *rig) run(commands [][]string) {
	r.t.Helper()
	for _, argv := range commands {
		if out, err := r.Exec(r.ctx(), "root", argv...); err != nil {
			r.t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, out)
		}
	}
}

// A flood of 1,000 jobs of a reservation's account that do not name it is never granted GPUs of its node. On a magnetic one it is.
func TestReservationsThatAreNotNamed(t *testing.T) {
	t.Parallel()
	suite := testcluster.Suites[1]
	r := newRig(t, suite, usual[suite], testcluster.Options{Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}})
	r.run([][]string{{"scontrol", "create", "reservation", "ReservationName=theirs", "StartTime=now", "Duration=120", "Accounts=nlp", "Nodes=v1"}})
	flood := r.submit("alice", sleeps(600), "--gres=gpu:1", "-N", "1", "--array=0-999")
	r.govern()
	r.until("four jobs run", time.Minute, func() bool { return r.tasks(flood) == 4 })
	r.goesOn(30, 2*time.Minute)
	r.until("four jobs run, when one has made room for another too", time.Minute, func() bool { return r.tasks(flood) == 4 })
	if n, vain := r.grantsOn("v1"), r.inVain(); n > 0 || vain != nil {
		t.Errorf("%d grants on the reserved node; grants that did not start: %q", n, vain)
	}
	r.run([][]string{{"scontrol", "delete", "ReservationName=theirs"},
		{"scontrol", "create", "reservation", "ReservationName=theirs", "StartTime=now", "Duration=120", "Accounts=nlp", "Nodes=v1", "Flags=MAGNETIC"}})
	r.until("jobs run on all GPUs", time.Minute, func() bool { return r.tasks(flood) == 8 })
	if r.grantsOn("v1") == 0 {
		t.Error("no grant on the reserved node")
	}
}

// grantsOn counts the grants of GPUs of a node.
func (r *rig) grantsOn(node string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for i, a := range r.actions {
		if a.Verb == cluster.Grant && r.outcomes[i].OK && slices.Contains(a.Nodes, node) {
			n++
		}
	}
	return n
}

// A reservation of cores leaves the others' GPUs and cores of its nodes to them, and one of licences alone all of them.
func TestReservedCores(t *testing.T) {
	onBoth(t, testcluster.Options{ExtraConf: "Licenses=matlab:2\n", Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}, func(t *testing.T, r *rig) {
		r.run([][]string{{"scontrol", "create", "reservation", "ReservationName=cores", "StartTime=now", "Duration=120", "Users=bob", "Nodes=v1", "CoreCnt=8"},
			{"scontrol", "create", "reservation", "ReservationName=lic", "StartTime=now", "Duration=120", "Users=bob", "Licenses=matlab:2", "Flags=ANY_NODES"}})
		r.govern()
		var jobs []string
		for range 8 {
			jobs = append(jobs, r.submit("alice", sleeps(600), "--gres=gpu:1", "-N", "1", "-c", "4"))
		}
		r.until("four jobs run on one node, two on the other", time.Minute, func() bool { return r.runs(jobs) == 6 })
		r.goesOn(20, time.Minute)
		if vain := r.inVain(); vain != nil || r.runs(jobs) != 6 {
			t.Errorf("%d jobs run, want 6; grants that did not start: %q", r.runs(jobs), vain)
		}
		r.run([][]string{{"scontrol", "delete", "ReservationName=cores"}})
		r.until("all jobs run", time.Minute, func() bool { return r.runs(jobs) == 8 })
	})
}

// A user that is in no group of a partition, with a flood of 1,000 jobs, keeps no other user of its account from it. The host of
// the test does not know the cluster's users, so that this is learnt from a grant.
func TestGroupsOfAPartition(t *testing.T) {
	t.Parallel()
	suite := testcluster.Suites[0]
	r := newRig(t, suite, usual[suite], testcluster.Options{Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}})
	r.run([][]string{{"scontrol", "update", "PartitionName=gpu", "AllowGroups=carol"}})
	r.govern()
	flood := r.submit("alice", sleeps(600), "--gres=gpu:1", "--array=0-999")
	r.until("a grant was taken back", time.Minute, func() bool { return r.count(cluster.RevokeGrant, "") > 0 })
	var jobs []string
	for range 7 {
		jobs = append(jobs, r.submit("carol", sleeps(600), "--gres=gpu:1"))
	}
	r.until("the jobs of the other user run", time.Minute, func() bool { return r.runs(jobs) == 7 })
	if v := r.status(flood + "_700"); v.Code != cluster.ReasonRefused || !strings.HasPrefix(v.Note, "AccountNotAllowed") {
		t.Errorf("the reason is %+v", v)
	}
	r.run([][]string{{"scontrol", "update", "PartitionName=gpu", "AllowGroups=ALL"}})
	r.until("a job of the user runs", time.Minute, func() bool { return r.tasks(flood) > 0 })
}

// A job whose list of partitions has some that refuse it starts in the one that does not, on the nodes of its lease. It has its user's
// list again when its lease is over. Slurm alone never starts such a job on nodes that it requires (of its list, it tries the partition of the
// highest tier first, and keeps the nodes for it there).
func TestPartitionsThatRefuse(t *testing.T) {
	onOne(t, testcluster.Suites[0], testcluster.Options{Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}},
		Partitions: []testcluster.Partition{{Name: "gpu", Default: true}, {Name: "closed", Extra: "AllowAccounts=vision PriorityTier=10"}, {Name: "wide", Extra: "MinNodes=2"}}},
		func(t *testing.T, r *rig) {
			r.rules.Partitions = []string{"gpu", "closed", "wide"}
			var before []string // they hold all GPUs until they end, so that the others wait for grants
			for range 2 {
				before = append(before, r.submit("bob", sleeps(40), "--gres=gpu:4", "--no-requeue"))
			}
			r.until("all GPUs are held", time.Minute, func() bool { return r.runs(before) == 2 })
			r.govern()
			jobs := map[string]string{} // lists of partitions, by job
			for range 2 {
				for _, list := range []string{"closed,gpu", "gpu,closed", "wide,gpu", "closed,wide,gpu"} {
					jobs[r.submit("alice", sleeps(900), "--gres=gpu:1", "-p", list)] = list
				}
			}
			ids := slices.Collect(maps.Keys(jobs))
			r.until("all jobs run", 2*time.Minute, func() bool { return r.runs(ids) == len(ids) })
			if failed := r.inVain(); failed != nil || r.count(cluster.Grant, "") < len(ids) {
				t.Errorf("%d grants; of these did not start: %q", r.count(cluster.Grant, ""), failed)
			}
			for range 4 {
				r.submit("bob", sleeps(900), "--gres=gpu:1")
			}
			r.until("two jobs have been requeued, and have their user's partitions", 2*time.Minute, func() bool {
				n := 0
				for id, list := range jobs {
					out, _ := r.Exec(r.ctx(), "root", "squeue", "-h", "-t", "PENDING", "-j", id, "-o", "%P")
					shown := strings.Split(strings.TrimSpace(out), ",") // Slurm sorts them by their tiers
					slices.Sort(shown)
					if slices.Equal(shown, slices.Sorted(strings.SplitSeq(list, ","))) {
						n++
					}
				}
				return n >= 2
			})
		})
}

// tasks counts the tasks of an array that run.
func (r *rig) tasks(array string) int {
	out, _ := r.Exec(r.ctx(), "root", "squeue", "-h", "-r", "-t", "RUNNING", "-j", array, "-o", "%i")
	return strings.Count(out, "_")
}

// runs counts the jobs that run.
func (r *rig) runs(ids []string) int {
	n := 0
	for _, id := range ids {
		if r.state(id) == "RUNNING" {
			n++
		}
	}
	return n
}
