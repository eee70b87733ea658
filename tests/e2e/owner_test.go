package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// onOne runs a test on one of the Slurm versions, with its usual gate; on both with FAIRLEASE_BOTH set. Tests of what users may do take
// turns with the versions.
func onOne(t *testing.T, suite string, o testcluster.Options, run func(t *testing.T, r *rig)) {
	if os.Getenv("FAIRLEASE_BOTH") != "" {
		onBoth(t, o, run)
		return
	}
	t.Parallel()
	t.Run(suite, func(t *testing.T) { run(t, newRig(t, suite, usual[suite], o)) })
}

var (
	eightGPUs = testcluster.Options{Accounts: []testcluster.Account{{Name: "nlp", Users: []string{"alice"}}, {Name: "vision", Users: []string{"bob", "alice"}}},
		QOS: []testcluster.QOS{{Name: "small"}}, Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}
	savesOnTerm = "--comment=saves=term"
)

// owner has a job's owner change it.
func (r *rig) owner(user, id string, update ...string) error {
	_, err := r.Exec(r.ctx(), user, append([]string{"scontrol", "update", "jobid=" + id}, update...)...)
	return err
}

// events counts the events of a kind in the journal.
func (r *rig) events(kind string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told[kind]
}

// A tenant fills the cluster with jobs that save, and sets Requeue=0 on them while they run. The other tenant gets its half all the same.
func TestOwnerTakesRequeue(t *testing.T) {
	onOne(t, "trixie", eightGPUs, func(t *testing.T, r *rig) {
		r.govern()
		var jobs []string
		for range 8 {
			jobs = append(jobs, r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1", savesOnTerm))
		}
		r.until("all GPUs are nlp's", time.Minute, func() bool { return r.holds("nlp") == 8 })
		for _, id := range jobs {
			r.waitState(id, 20*time.Second, "RUNNING")
			if err := r.owner("alice", id, "requeue=0"); err != nil {
				t.Fatal(err)
			}
		}
		for range 8 {
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1", savesOnTerm)
		}
		began := time.Now()
		r.until("vision gets its half", 3*time.Minute, func() bool { return r.holds("vision") >= 4 })
		t.Logf("vision has its half after %s", time.Since(began).Round(time.Second))
		if n := r.events("requeue_set"); n < 4 {
			t.Errorf("%d events about jobs that were made requeueable", n)
		}
		r.keepsAll(jobs)
		for _, id := range jobs {
			if j, err := r.Job(r.ctx(), id); err != nil || j["JobState"] == "PENDING" && j["Requeue"] != "1" {
				t.Errorf("job %s: Requeue=%s, %v", id, j["Requeue"], err)
			}
		}
	})
}

// A tenant borrows the promised nodes of another, and sets Requeue=0 on its jobs. The nodes are back when their owner wants them.
func TestOwnerTakesRequeueInCells(t *testing.T) {
	onOne(t, "forky", fourNodes, func(t *testing.T, r *rig) {
		s := r.withCells(2, nodeCells, 2, 2)
		var jobs []string
		for _, right := range []string{"guaranteed", "guaranteed", "opportunistic", "opportunistic"} {
			jobs = append(jobs, s.works("alice", 4, right, savesOnTerm))
		}
		for _, id := range jobs {
			if err := r.owner("alice", id, "requeue=0", "jobname=mine"); err != nil {
				t.Fatal(err)
			}
		}
		s.until("the changes are seen", 20*time.Second, func() bool {
			return s.ask("select count(*) from fairlease.events where kind = 'changed_in_lease'") == "4"
		})
		s.gets("bob")
		s.gets("bob")
		if n := s.ask("select count(*) from fairlease.events where kind = 'requeue_set'"); n != "2" {
			t.Errorf("%s jobs were made requeueable, want the two on lent nodes", n)
		}
		s.untouched(jobs[:2]...)
		if said := s.ask("select coalesce(string_agg(what, '; '), '') from fairlease.safety_violations"); said != "" {
			t.Errorf("promises were broken: %s", said)
		}
	})
}

// update is a field of a job, with values that its owner tries: one that makes it smaller or different, and one that makes it larger.
type update struct{ field, value, more string }

// requests are the options of the waiting job on which a field is tried that other jobs lack.
var requests = map[string][]string{
	"ArrayTaskThrottle": {"--gres=gpu:1", "--array=0-3%2"}, "TresPerJob": {"--gpus=2"}, "TresPerTask": {"-n2", "--gpus-per-task=1"},
	"TresPerSocket": {"--gpus-per-socket=1", "--sockets-per-node=1"},
}

// updates are the fields of the table in docs/gates.md.
var updates = []update{
	{"Requeue", "0", ""}, {"Comment", "saves=never", ""}, {"WCKey", "kind=x", ""}, {"Account", "vision", ""}, {"QOS", "small", ""},
	{"Partition", "free", ""}, {"JobName", "other", ""}, {"Reservation", "course", ""}, {"TimeLimit", "50", "90"}, {"EndTime", "now+40minutes", "now+90minutes"},
	{"TimeMin", "1", ""}, {"Licenses", "", "matlab:3"}, {"NumNodes", "1", "3"}, {"ReqNodeList", "v1", "v3"}, {"ExcNodeList", "v4", ""}, {"Features", "fast", ""},
	{"Gres", "gpu:2", ""}, {"TresPerNode", "gres/gpu:2", ""}, {"TresPerJob", "gres/gpu:1", ""}, {"TresPerTask", "gres/gpu:2", ""}, {"TresPerSocket", "gres/gpu:2", ""},
	{"ArrayTaskThrottle", "1", "3"}, {"NumTasks", "4", ""}, {"NumCPUs", "4", ""}, {"MinCPUsNode", "2", ""}, {"MinMemoryNode", "90", ""}, {"MinMemoryCPU", "40", ""},
	{"CpusPerTask", "2", ""}, {"ReqCores", "1", ""}, {"StartTime", "now+2hours", ""}, {"Dependency", "afterany:1", ""}, {"Deadline", "now+5hours", ""}, {"Contiguous", "1", ""},
	{"OverSubscribe", "yes", ""}, {"TasksPerNode", "1", ""}, {"CoreSpec", "1", ""}, {"ThreadSpec", "1", ""}, {"Priority", "5", ""}, {"SiteFactor", "5", ""}, {"AdminComment", "fairlease:saves=term", ""},
	{"Nice", "100", ""}, {"Extra", "x", ""}, {"MailUser", "x@y", ""}, {"Switches", "1", ""}, {"DelayBoot", "1", ""}, {"StdOut", "/tmp/x", ""}, {"WorkDir", "/tmp", ""},
}

// inTable gives the rows of the table of docs/gates.md: may the owner of a waiting job, of a running job change a field?
func inTable(t *testing.T) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "gates.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## What a user may change")
	rows := map[string][2]string{}
	word := regexp.MustCompile("`([A-Za-z]+)`")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if strings.HasPrefix(line, "## ") {
			break
		}
		if len(cells) < 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, field := range word.FindAllStringSubmatch(cells[0], -1) {
			rows[field[1]] = [2]string{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])}
		}
	}
	return rows
}

// allows tells whether a cell of the table says that an update is possible.
func allows(t *testing.T, cell string, more bool) bool {
	t.Helper()
	switch cell {
	case "yes":
		return true
	case "no":
		return false
	case "less":
		return !more
	}
	t.Errorf("the table says %q", cell)
	return false
}

// The owner of a job tries every update of the table in docs/gates.md: Slurm allows what the table says, and none of them ends the
// lease of a running job sooner or later, moves it to another tenant, or takes it from those that may be stopped.
func TestOwnersUpdates(t *testing.T) {
	o := eightGPUs
	o.ExtraConf = "Licenses=matlab:50\n"
	o.Nodes = []testcluster.NodeGroup{{Prefix: "v", Count: 4, Model: "v100", GPUs: 4, Extra: "Feature=fast"}}
	onOne(t, "trixie", o, func(t *testing.T, r *rig) {
		for _, argv := range [][]string{
			{"sacctmgr", "-i", "modify", "user", "alice", "set", "qos=normal,small"},
			{"scontrol", "create", "reservation", "ReservationName=course", "Nodes=v4", "StartTime=now", "Duration=600", "Users=alice", "Flags=IGNORE_JOBS,FLEX"},
		} {
			if _, err := r.Exec(r.ctx(), "root", argv...); err != nil {
				t.Fatal(err)
			}
		}
		table := inTable(t)
		r.settings.Term, r.settings.StopAllowance, r.settings.StopOverheadMilli = cluster.Hour, 15*cluster.Minute, 20
		r.govern()
		args := []string{"-A", "nlp", "--gres=gpu:1", "-N2", "--mem=100", "-L", "matlab:2", savesOnTerm}
		running := r.submit("alice", sleeps(3600), args...)
		waiting := r.submit("alice", sleeps(3600), append(args, "--begin=now+10hours")...)
		r.waitState(running, time.Minute, "RUNNING")
		var was cluster.Lease
		r.until("it has an active lease", 20*time.Second, func() bool { was = r.lease(running); return was.State == cluster.Active })
		for _, u := range updates {
			row, known := table[u.field]
			if !known {
				t.Errorf("docs/gates.md has no row of %s", u.field)
				continue
			}
			delete(table, u.field)
			waits := waiting
			if own := requests[u.field]; own != nil {
				waits = r.submit("alice", sleeps(3600), append([]string{"-A", "nlp", "--mem=100", savesOnTerm, "--begin=now+10hours"}, own...)...)
			}
			for _, x := range []struct {
				id, cell, value string
				more            bool
			}{{running, row[1], u.more, true}, {running, row[1], u.value, false}, {waits, row[0], u.value, false}} {
				if x.more && x.value == "" || x.id == waiting && u.field == "EndTime" {
					continue
				}
				before, _ := r.Job(r.ctx(), x.id)
				err := r.owner("alice", x.id, u.field+"="+x.value)
				after, _ := r.Job(r.ctx(), x.id)
				if want := allows(t, x.cell, x.more); (err == nil) != want {
					t.Errorf("%s=%s on a %s job: %v; docs/gates.md says %q", u.field, x.value, before["JobState"], err, x.cell)
				}
				if x.id == running && after["JobState"] != "RUNNING" {
					t.Fatalf("after %s=%s it is %s", u.field, x.value, after["JobState"])
				}
			}
			if row[1] == "no" {
				continue
			}
			r.goesOn(2, 20*time.Second)
			is, c := r.lease(running), r.lastCase(running)
			if is.Job != was.Job || is.Term != was.Term || is.End != was.End || is.State != cluster.Active {
				t.Fatalf("%s: the lease is %+v, was %+v", u.field, is, was)
			}
			if c.Record.Tenant != "nlp" || c.Record.Uncharged || c.Control != cluster.FullControl || c.Job.Declares.Manner != cluster.SavesOnTerm {
				t.Fatalf("%s: tenant %s, control %s (%s), it saves at %q", u.field, c.Record.Tenant, c.Control, c.ControlWhy, c.Job.Declares.Manner)
			}
		}
		for field := range table {
			if !strings.Contains("hold suspend requeue requeuehold", field) {
				t.Errorf("docs/gates.md has a row of %s, which nobody tried", field)
			}
		}
		if n := r.events("changed_in_lease"); n == 0 {
			t.Error("no event about changes")
		}
	})
}
