package testcluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

const pluginConf = `partitions=gpu,other
default_partition=gpu
gate_seconds=600
heartbeat_max_age=60
mark_requeue=yes
operator_uids=2000
exclude_users=dave
exclude_accounts=ops
exclude_qos=debug
`

// The licences of each cluster here; the gate's are all taken by gateReservation.
const slurmLicenses = "Licenses=fairlease:1000000,matlab:10\n"

const script = "#!/bin/bash\nsleep 30\n"

// A gateCase is one submission and what must become of it, with either twin.
type gateCase struct {
	name    string
	user    string // default alice
	script  string // default: one that sleeps; "-" for a command that brings none
	command string // default sbatch --parsable
	args    string
	suite   string        // the only one that takes such jobs; default both
	age     time.Duration // of the heartbeat; default fresh
	silent  bool          // no heartbeat at all
	gated   bool
	begin   time.Duration // the user's --begin, from now
	ttl     time.Duration // of the daemon; default: its heartbeat does not tell
	room    time.Duration // latest end, from now, of a begin-time gate; default gate_seconds. noRoom: there is none
	licence string        // the user's own licences; alone: the gate's cannot be added to them
	becomes string        // the licences of a job that is gated by licence; default: its own and the gate's
	requeue string        // Requeue= of the job, "" for any
	says    string        // additional text for a gated job's user
}

const (
	noRoom = -time.Second
	alone  = "alone "
)

var gateCases = []gateCase{
	{name: "gres", args: "--gres=gpu:1", gated: true, requeue: "1", says: "lease of your default account; at a lease's end it may be requeued"},
	{name: "typed", args: "--gres=gpu:v100:2", gated: true},
	{name: "gpus", args: "--gpus=2", gated: true},
	{name: "per node", args: "-N2 --gpus-per-node=1", gated: true},
	{name: "per task", args: "-n2 --gpus-per-task=1", gated: true},
	{name: "in the script", script: "#!/bin/bash\n#SBATCH --gres=gpu:1\nsleep 30\n", gated: true},
	{name: "array", args: "--array=0-3 --gres=gpu:1", gated: true},
	{name: "account named", args: "-A nlp --gres=gpu:1", gated: true, says: "lease of account nlp;"},
	{name: "several partitions", args: "-p free,gpu --gres=gpu:1", gated: true},
	{name: "several partitions, one without heartbeat", args: "-p other,gpu --gres=gpu:1", gated: true},
	{name: "own begin, before the gate", args: "--begin=now+60 --gres=gpu:1", gated: true, begin: time.Minute},
	{name: "own begin, after the gate", args: "--begin=now+3600 --gres=gpu:1", gated: true, begin: time.Hour},
	{name: "own begin in the script", script: "#!/bin/bash\n#SBATCH --begin=now+3600\nsleep 30\n", args: "--gres=gpu:1", gated: true, begin: time.Hour},
	{name: "daemon with a shorter ttl", args: "--gres=gpu:1", ttl: 30 * time.Second, gated: true},
	{name: "daemon with a longer ttl", args: "--gres=gpu:1", ttl: time.Hour, gated: true},
	{name: "own begin, after the gate of a shorter ttl", args: "--begin=now+40 --gres=gpu:1", ttl: 30 * time.Second, gated: true, begin: 40 * time.Second},
	{name: "no requeue", args: "--no-requeue --gres=gpu:1", gated: true, requeue: "0", says: "keeps its GPUs until it ends"},
	{name: "own licence", args: "--gres=gpu:1", licence: "matlab:1", gated: true},
	{name: "own licences", args: "--gres=gpu:1", licence: "matlab:1,,matlab;", gated: true},
	{name: "has the gate's licence", args: "--gres=gpu:1", licence: "matlab:1,fairlease:2", gated: true},
	{name: "has none of the gate's licence", args: "--gres=gpu:1", licence: "fairlease:0", gated: true, becomes: "fairlease:1"},
	{name: "has the gate's licence and none of it", args: "--gres=gpu:1", licence: "fairlease:1,matlab:1,fairlease:0", gated: true, becomes: "matlab:1,fairlease:1"},
	{name: "more of the gate's licence than 32 bits hold", args: "--gres=gpu:1", licence: "fairlease:4294967296", gated: true, becomes: "fairlease:1"},
	{name: "licences that are alternatives", args: "--gres=gpu:1", licence: alone + "matlab:1|matlab:2", gated: true, suite: "forky"},
	{name: "deadline", args: "--time=60 --deadline=now+65minutes --gres=gpu:1", gated: true, room: 4 * time.Minute},
	{name: "deadline far away", args: "--time=60 --deadline=now+5hours --gres=gpu:1", gated: true},
	{name: "deadline and least time", args: "--time=60 --time-min=10 --deadline=now+15minutes --gres=gpu:1", gated: true, room: 4 * time.Minute},
	{name: "deadline alone", args: "--deadline=now+6minutes --gres=gpu:1", gated: true, room: 4 * time.Minute},
	{name: "deadline and own begin", args: "--time=60 --begin=now+3600 --deadline=now+130minutes --gres=gpu:1", gated: true, begin: time.Hour},
	{name: "deadline too near for a gate", script: "#!/bin/bash\n#SBATCH --time=60 --deadline=now+3630\nsleep 30\n", args: "--gres=gpu:1", gated: true, room: noRoom},
	{name: "least time too long for a gate", script: "#!/bin/bash\n#SBATCH --time-min=10 --deadline=now+640\nsleep 30\n", args: "--time=60 --gres=gpu:1", gated: true, room: noRoom},
	{name: "comment like a mark", args: "--comment=fl:begin=0,gate=1 --gres=gpu:1", gated: true},
	{name: "dependent", args: "--dependency=singleton --gres=gpu:1", gated: true},
	{name: "no GPU", args: "-n1"},
	{name: "none of a GPU", args: "--gres=gpu:0"},
	{name: "shards", args: "--gres=shard:1", gated: true},
	{name: "free partition", args: "-p free --gres=gpu:1"},
	{name: "excluded user", user: "dave", args: "--gres=gpu:1"},
	{name: "excluded account", user: "bob", args: "-A ops --gres=gpu:1"},
	{name: "excluded QOS", args: "-q debug --gres=gpu:1"},
	{name: "heartbeat too old", age: 2 * time.Minute, args: "--gres=gpu:1"},
	{name: "heartbeat from the future", age: -time.Hour, args: "--gres=gpu:1"},
	{name: "no heartbeat", silent: true, args: "--gres=gpu:1"},
	{name: "other partition's heartbeat", args: "-p other --gres=gpu:1"},
	{name: "interactive", script: "-", command: untilItWaits + "salloc --no-shell", args: "--gres=gpu:1", gated: true, says: "keeps its GPUs until it ends"},
	{name: "srun", script: "-", command: untilItWaits + "srun", args: "--gres=gpu:1 true", gated: true, says: "keeps its GPUs until it ends"},
	{name: "heterogeneous", args: "--gres=gpu:1 : --gres=gpu:1", gated: true},
	{name: "per socket", args: "--gpus-per-socket=1 --sockets-per-node=1", gated: true},
	{name: "contiguous on one node", args: "--contiguous --gres=gpu:1", gated: true, says: "at a lease's end it may be requeued"},
	{name: "contiguous with one task", args: "--contiguous -n1 --gpus=2", gated: true, says: "at a lease's end it may be requeued"},
	{name: "contiguous on two nodes", args: "-N2 --contiguous --gres=gpu:1", gated: true, says: "keeps its GPUs until it ends"},
	{name: "contiguous on any number of nodes", args: "--contiguous --gpus=2", gated: true, says: "keeps its GPUs until it ends"},
	{name: "exclusive for a user", args: "--exclusive=user --gres=gpu:1", gated: true},
}

// untilItWaits runs a command that stays until its job starts, and kills it once the job waits. The job goes on waiting.
const (
	untilItWaits = "wait-for "
	waitFor      = `said=$(mktemp); "$@" 2>$said & until grep -q "waiting for resources" $said; do kill -0 $! || break; sleep 0.1; done; kill -9 $!; cat $said >&2; rm $said`
)

// TestPlugin runs the same tests against both twins on both versions of Slurm, all four side by side.
func TestPlugin(t *testing.T) {
	t.Parallel()
	for _, suite := range testcluster.Suites {
		for _, plugin := range []testcluster.Plugin{testcluster.PluginC, testcluster.PluginLua} {
			t.Run(suite+"/"+string(plugin), func(t *testing.T) {
				t.Parallel()
				expedites := ""
				if suite == "forky" { // 24.11 does not have --requeue=expedite
					expedites = "SlurmctldParameters=enable_expedited_requeue\n"
				}
				c := testcluster.ForTest(t, testcluster.Options{
					Suite: suite, Plugin: plugin, PluginConf: pluginConf,
					Partitions: []testcluster.Partition{{Name: "gpu", Default: true}, {Name: "free"}, {Name: "other"}},
					Accounts: []testcluster.Account{{Name: "nlp", Users: []string{"alice", "dave"}}, {Name: "vision", Users: []string{"bob"}},
						{Name: "ops", Users: []string{"bob"}}},
					QOS:       []testcluster.QOS{{Name: "debug"}},
					ExtraConf: slurmLicenses + taskProlog[plugin] + expedites,
				})
				setVariables(t, c)
				table := func(t *testing.T, license string) {
					for _, g := range gateCases {
						if g.suite == "" || g.suite == suite {
							t.Run(g.name, func(t *testing.T) { g.run(t, c, license) })
						}
					}
				}
				t.Run("begin", func(t *testing.T) {
					table(t, "")
					t.Run("protected", func(t *testing.T) { gatesAreProtected(t, c) })
					t.Run("opens before the deadline", func(t *testing.T) { deadlineIsMet(t, c) })
					t.Run("hints", func(t *testing.T) { hintsAreCarried(t, c) })
				})
				t.Run("licence", func(t *testing.T) {
					configure(t, c, pluginConf+"gate_license=fairlease\n")
					holdLicenses(t, c)
					table(t, "fairlease")
					t.Run("protected", func(t *testing.T) { licensesAreProtected(t, c) })
					t.Run("not in slurm.conf", func(t *testing.T) { licenseIsMissing(t, c) })
				})
				t.Run("refuses opt-outs", func(t *testing.T) { optOutsAreRefused(t, c) })
				t.Run("names the option that counts", func(t *testing.T) { oneOfSeveralOptionsCounts(t, c) })
				t.Run("has a word for each way out", func(t *testing.T) { waysOutHaveWords(t, c) })
				if expedites != "" {
					t.Run("has a word for expedited jobs", func(t *testing.T) { expediteHasWords(t, c) })
				}
				t.Run("refuses jobs that cannot save", func(t *testing.T) { jobsThatCannotSaveAreRefused(t, c) })
				t.Run("refuses jobs beyond a budget", func(t *testing.T) { budgetsRefuse(t, c, plugin == testcluster.PluginLua) })
				t.Run("refuses unknown keys", func(t *testing.T) { unknownKeysAreRefused(t, c) })
			})
		}
	}
}

// configure gives the plugin other settings.
func configure(t *testing.T, c *testcluster.Cluster, conf string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.Dir, "conf", "fairlease-plugin.conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(t.Context(), testcluster.Slurmctld); err != nil {
		t.Fatal(err)
	}
}

// holdLicenses takes the gate's licences as the sidecar does.
func holdLicenses(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	_, err := c.Exec(t.Context(), testcluster.Operator, "scontrol", "create", "reservation", "ReservationName=fairlease_gate", "StartTime=now",
		"Duration=60", "Licenses=fairlease:1000000", "Users="+testcluster.Operator, "Flags=ANY_NODES")
	if err != nil {
		t.Fatal(err)
	}
}

// beat writes a heartbeat of that age, as the sidecar does: its second and its user inside, and the file as old.
func beat(t *testing.T, c *testcluster.Cluster, partition string, age time.Duration) {
	t.Helper()
	writeBeat(t, c, partition, 0, age, 0)
}

// beatOf writes the fresh heartbeat of a sidecar that runs as such a user.
func beatOf(t *testing.T, c *testcluster.Cluster, partition, name string) {
	t.Helper()
	out, err := c.Exec(t.Context(), "root", "id", "-u", name)
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	writeBeat(t, c, partition, id, 0, 0)
}

// writeBeat writes a heartbeat; that of an older daemon has no ttl.
func writeBeat(t *testing.T, c *testcluster.Cluster, partition string, owner int, age, ttl time.Duration) {
	t.Helper()
	file, at := filepath.Join(c.HeartbeatDir(), partition), time.Now().Add(-age)
	text := fmt.Appendf(nil, "%d\n%d\n", at.Unix(), owner)
	if ttl > 0 {
		text = fmt.Appendf(text, "%d\n", ttl/time.Second)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, owner, -1); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

// run submits the job; license is the gate's, or empty where gates are begin times.
func (g gateCase) run(t *testing.T, c *testcluster.Cluster, license string) {
	ctx := t.Context()
	os.Remove(filepath.Join(c.HeartbeatDir(), "gpu"))
	if !g.silent {
		writeBeat(t, c, "gpu", 0, g.age, g.ttl)
	}
	user, text, command := or(g.user, "alice"), or(g.script, script), or(g.command, "sbatch --parsable")
	if text == "-" {
		text = ""
	}
	own, isAlone := strings.CutPrefix(g.licence, alone)
	command, waits := strings.CutPrefix(command, untilItWaits)
	argv := append(strings.Fields(command), strings.Fields(g.args)...)
	if waits {
		argv = append([]string{"sh", "-c", waitFor, "sh"}, argv...)
	}
	if own != "" {
		argv = append(argv, "--licenses="+own)
	}
	before := time.Now()
	out, err := c.Run(ctx, user, text, argv...)
	if err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	byLicense := g.gated && license != "" && !isAlone
	byBegin := g.gated && !byLicense && g.room != noRoom
	if told := strings.Contains(out.Stderr, "fairlease: this job waits for a GPU lease of "); told != (byLicense || byBegin) {
		t.Errorf("the user read %q", out.Stderr)
	}
	if !strings.Contains(out.Stderr, g.says) {
		t.Errorf("the user read %q, not %q", out.Stderr, g.says)
	}
	id := jobID(t, ctx, c, out, user)
	defer c.Exec(ctx, "root", "scancel", id)
	job, err := c.Job(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if g.requeue != "" && job["Requeue"] != g.requeue {
		t.Errorf("Requeue=%s, not %s", job["Requeue"], g.requeue)
	}
	want := gatedLicenses(own, license, byLicense)
	if byLicense && g.becomes != "" {
		want = g.becomes
	}
	if job["Licenses"] != want {
		t.Errorf("Licenses=%s, not %s", job["Licenses"], want)
	}
	if byLicense && (job["JobState"] != "PENDING" || job["Priority"] != "1") {
		t.Errorf("a gated job is %s with priority %s", job["JobState"], job["Priority"])
	}
	// Slurm reads --begin=now+60 in the second of the submission.
	within := func(what string, got int64, offset time.Duration) {
		if low, high := before.Add(offset).Unix(), after.Add(offset).Unix(); got < low || got > high {
			t.Errorf("%s is %d, not within %d to %d", what, got, low, high)
		}
	}
	eligible := func() int64 { // 0: not known yet
		if job["EligibleTime"] == "Unknown" {
			return 0
		}
		at, err := time.ParseInLocation("2006-01-02T15:04:05", job["EligibleTime"], time.Local)
		if err != nil {
			t.Fatal(err)
		}
		return at.Unix()
	}
	if !byBegin {
		if strings.Contains(job["AdminComment"], "fl:") {
			t.Errorf("marked %s", job["AdminComment"])
		}
		if byLicense && g.begin > 0 {
			within("eligibility", eligible(), g.begin)
		} else if byLicense && eligible() > time.Now().Unix() { // Slurm may set it after the submission
			t.Errorf("eligible at %s", job["EligibleTime"])
		}
		return
	}
	begin, gate := marked(t, job)
	if g.begin == 0 {
		if begin != 0 {
			t.Errorf("remembers a begin time %d", begin)
		}
	} else {
		within("the remembered begin time", begin, g.begin)
	}
	end := 600 * time.Second // gate_seconds
	if g.room > 0 {
		end = min(end, g.room)
	}
	if c.Options.Plugin == testcluster.PluginLua {
		end = time.Minute // heartbeat_max_age: Lua is not shown deadlines
	}
	if g.ttl > 0 {
		end = min(end, g.ttl)
	}
	within("the gate", gate, max(g.begin, end))
	if g.name != "dependent" && eligible() != gate { // a dependent job is eligible at no time yet
		t.Errorf("eligible at %d, marked %d", eligible(), gate)
	}
}

// gatedLicenses are what Slurm shows of a job that asked for its own.
func gatedLicenses(own, license string, gated bool) string {
	switch {
	case gated && own == "":
		return license + ":1"
	case gated && !strings.Contains(own, license):
		return own + "," + license + ":1"
	case own == "":
		return "(null)"
	}
	return own
}

var (
	markForm  = regexp.MustCompile(`^fl:begin=(\d+),gate=(\d+)$`)
	jobNumber = regexp.MustCompile(`\d+`)
)

func marked(t *testing.T, job testcluster.Job) (begin, gate int64) {
	t.Helper()
	m := markForm.FindStringSubmatch(job["AdminComment"])
	if m == nil {
		t.Fatalf("marked %q", job["AdminComment"])
	}
	begin, _ = strconv.ParseInt(m[1], 10, 64)
	gate, _ = strconv.ParseInt(m[2], 10, 64)
	return begin, gate
}

// jobID of what was submitted: sbatch and salloc say it; srun is asked for.
func jobID(t *testing.T, ctx context.Context, c *testcluster.Cluster, out testcluster.Output, user string) string {
	t.Helper()
	if id := jobNumber.FindString(out.Stdout + out.Stderr); id != "" {
		return id
	}
	last, err := c.Exec(ctx, "root", "sh", "-c", fmt.Sprintf("squeue -h -t all -u %s -o %%A | sort -n | tail -1", user))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(last)
}

func gatesAreProtected(t *testing.T, c *testcluster.Cluster) {
	ctx := t.Context()
	beat(t, c, "gpu", 0)
	id, err := c.Sbatch(ctx, "alice", script, "--gres=gpu:1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Exec(ctx, "root", "scancel", id)
	move := func(user, start string) error {
		_, err := c.Exec(ctx, user, "scontrol", "update", "JobId="+id, "StartTime="+start)
		return err
	}
	gated, err := c.Job(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := move("alice", "now"); err == nil || !strings.Contains(err.Error(), "set by its lease") {
		t.Errorf("alice opened her gate, or was not told why she may not: %v", err)
	}
	if job, _ := c.Job(ctx, id); job["EligibleTime"] != gated["EligibleTime"] {
		t.Errorf("the gate moved from %s to %s", gated["EligibleTime"], job["EligibleTime"])
	}
	if err := move("alice", "now+7200"); err != nil {
		t.Errorf("alice may move her job away: %v", err)
	}
	os.Remove(filepath.Join(c.HeartbeatDir(), "gpu"))
	if err := move("alice", "now+300"); err != nil {
		t.Errorf("without a heartbeat nothing is refused: %v", err)
	}
	beatOf(t, c, "gpu", "alice")
	if err := move("alice", "now+200"); err != nil {
		t.Errorf("the daemon's user may move the gate: %v", err)
	}
	beat(t, c, "gpu", 0)
	if err := move("alice", "now+200"); err == nil {
		t.Error("alice moved her gate although the daemon runs as another user")
	}
	if err := move(testcluster.Operator, "now"); err != nil {
		t.Errorf("the operator may open the gate: %v", err)
	}
	if _, err := c.WaitJob(ctx, id, 30*time.Second, testcluster.InState("RUNNING", "COMPLETED")); err != nil {
		t.Error(err)
	}
}

// deadlineIsMet shows that a gate that lapses by itself leaves Slurm the time to start the job: it cancels jobs that are too late.
func deadlineIsMet(t *testing.T, c *testcluster.Cluster) {
	ctx := t.Context()
	beat(t, c, "gpu", 0)
	text := "#!/bin/bash\n#SBATCH --time=1 --deadline=now+123\nsleep 30\n"
	id, err := c.Sbatch(ctx, "alice", text, "--gres=gpu:1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Exec(ctx, "root", "scancel", id)
	ended := testcluster.InState("RUNNING", "COMPLETED", "DEADLINE", "CANCELLED")
	job, err := c.WaitJob(ctx, id, time.Minute, ended)
	if err != nil {
		t.Fatal(err)
	}
	if job["JobState"] != "RUNNING" && job["JobState"] != "COMPLETED" {
		t.Errorf("the job is %s (%s)", job["JobState"], job["Reason"])
	}
}

func licensesAreProtected(t *testing.T, c *testcluster.Cluster) {
	ctx := t.Context()
	beat(t, c, "gpu", 0)
	id, err := c.Sbatch(ctx, "alice", script, "--gres=gpu:1", "--licenses=matlab:1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Exec(ctx, "root", "scancel", id)
	change := func(user, id, what string) error {
		_, err := c.Exec(ctx, user, "scontrol", "update", "JobId="+id, what)
		return err
	}
	for _, what := range []string{"Licenses=", "Licenses=matlab:2", "Licenses=fairlease:0", "Licenses=fairlease:1,fairlease:0"} {
		if err := change("alice", id, what); err == nil || !strings.Contains(err.Error(), "keeps the licence fairlease:1") {
			t.Errorf("%s: alice opened her gate, or was not told why she may not: %v", what, err)
		}
	}
	if job, _ := c.Job(ctx, id); job["Licenses"] != "matlab:1,fairlease:1" {
		t.Errorf("the job has Licenses=%s", job["Licenses"])
	}
	for _, what := range []string{"Licenses=matlab:2,fairlease:1", "StartTime=now", "Comment=fl:begin=0,gate=1"} {
		if err := change("alice", id, what); err != nil {
			t.Errorf("%s: alice may change what is her own: %v", what, err)
		}
	}
	waits := func(job testcluster.Job) bool { return job["JobState"] == "PENDING" && job["Reason"] == "Licenses" }
	if _, err := c.WaitJob(ctx, id, 30*time.Second, waits); err != nil {
		t.Error(err)
	}
	ungated, err := c.Sbatch(ctx, "alice", script, "--partition=free", "--hold", "--licenses=matlab:1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Exec(ctx, "root", "scancel", ungated)
	if err := change("alice", ungated, "Licenses=matlab:2"); (err != nil) != (c.Options.Plugin == testcluster.PluginC) {
		t.Errorf("the C plugin does not see the job that is changed, its twin does: %v", err)
	}
	os.Remove(filepath.Join(c.HeartbeatDir(), "gpu"))
	if err := change("alice", ungated, "Licenses="); err != nil {
		t.Errorf("without a heartbeat nothing is refused: %v", err)
	}
	hold := func(verb string) { // it does not start meanwhile
		if _, err := c.Exec(ctx, "alice", "scontrol", verb, id); err != nil {
			t.Fatal(err)
		}
	}
	hold("hold")
	beatOf(t, c, "gpu", "alice")
	for _, user := range []string{"alice", "slurm"} { // the daemon's user, SlurmUser
		for _, what := range []string{"Licenses=", "Licenses=fairlease:1"} {
			if _, err := c.Exec(ctx, "root", "runuser", "-u", user, "--", "scontrol", "update", "JobId="+id, what); err != nil { // slurm has no home
				t.Errorf("%s: %s may open the gate: %v", what, user, err)
			}
		}
		beat(t, c, "gpu", 0)
	}
	if err := change("alice", id, "Licenses="); err == nil {
		t.Error("alice opened her gate although the daemon runs as another user")
	}
	hold("release")
	if err := change(testcluster.Operator, id, "Licenses=matlab:2"); err != nil {
		t.Errorf("the operator may open the gate: %v", err)
	}
	if _, err := c.WaitJob(ctx, id, 30*time.Second, testcluster.InState("RUNNING", "COMPLETED")); err != nil {
		t.Error(err)
	}
}

// licenseIsMissing takes the gate's licence out of slurm.conf: Slurm would refuse all jobs that ask for it.
func licenseIsMissing(t *testing.T, c *testcluster.Cluster) {
	ctx := t.Context()
	if _, err := c.Exec(ctx, testcluster.Operator, "scontrol", "delete", "ReservationName=fairlease_gate"); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(c.Dir, "conf", "slurm.conf")
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, []byte(strings.Replace(string(text), slurmLicenses, "Licenses=matlab:10\n", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(ctx, testcluster.Slurmctld); err != nil {
		t.Fatal(err)
	}
	gateCase{args: "--gres=gpu:1", gated: true, licence: alone + "matlab:1"}.run(t, c, "fairlease")
}

// optOutsAreRefused shows that a site may refuse the jobs that fairlease cannot lease GPUs to.
func optOutsAreRefused(t *testing.T, c *testcluster.Cluster) {
	configure(t, c, pluginConf+"opt_out=refuse\n")
	beat(t, c, "gpu", 0)
	for _, test := range []struct{ name, user, script, argv, option string }{
		{"contiguous", "alice", script, "sbatch -N2 --contiguous --gres=gpu:1", "--contiguous"},
		{"per socket", "alice", script, "sbatch --gpus-per-socket=1 --sockets-per-node=1", "--gpus-per-socket"},
		{"heterogeneous", "alice", script, "sbatch --gres=gpu:1 : --gres=gpu:1", "heterogeneous components"},
		{"salloc", "alice", "", "salloc --no-shell --gres=gpu:1", "salloc, or srun"},
		{"srun", "alice", "", "srun --gres=gpu:1 true", "salloc, or srun"},
		{"exclusive for a user", "alice", script, "sbatch --exclusive=user --gres=gpu:1", "--exclusive=user"},
		{"several models", "alice", script, "sbatch --gpus=v100:1,k80:1", "several GPU models"},
		{"one of two features", "alice", script, "sbatch --gres=gpu:1 --constraint=[a|b]", "brackets, * or a comma in --constraint"},
		{"plain", "alice", script, "sbatch --gres=gpu:1", ""},
		{"one model", "alice", script, "sbatch --gpus=v100:1", ""},
		{"contiguous on one node", "alice", script, "sbatch --contiguous --gres=gpu:1", ""},
		{"contiguous without GPUs", "alice", script, "sbatch -N2 --contiguous", ""},
		{"in a free partition", "alice", script, "sbatch -p free -N2 --contiguous --gres=gpu:1", ""},
		{"excluded user", "dave", script, "sbatch -N2 --contiguous --gres=gpu:1", ""},
	} {
		out, err := c.Run(t.Context(), test.user, test.script, strings.Fields(test.argv)...)
		switch {
		case test.option == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.option != "" && (err == nil || !strings.Contains(out.Stderr, "cannot wait for a lease with "+test.option)):
			t.Errorf("%s: taken, or the option is not named: %s", test.name, out.Stderr)
		}
	}
	os.Remove(filepath.Join(c.HeartbeatDir(), "gpu"))
	if _, err := c.Run(t.Context(), "alice", script, "sbatch", "-N2", "--contiguous", "--gres=gpu:1"); err != nil {
		t.Errorf("nothing is refused while nobody grants leases: %v", err)
	}
}

// oneOfSeveralOptionsCounts shows that both twins refuse jobs with several options for the one that counts for the sidecar, too.
func oneOfSeveralOptionsCounts(t *testing.T, c *testcluster.Cluster) {
	configure(t, c, pluginConf+"opt_out=refuse\nopt_out.no_requeue=refuse\n")
	beat(t, c, "gpu", 0)
	options := map[string]struct{ argv, says string }{
		"het": {"", "heterogeneous components"}, "session": {"", "salloc, or srun"}, "contiguous": {"-N2 --contiguous", "--contiguous"},
		"exclusive": {"--exclusive=user", "--exclusive=user"}, "socket": {"--gpus-per-socket=1 --sockets-per-node=1", "--gpus-per-socket"},
		"models": {"--gpus=v100:1,k80:1", "several GPU models"}, "brackets": {"--constraint=[a|b]", "brackets, * or a comma in --constraint"},
		"no_requeue": {"--no-requeue", "--no-requeue"},
	}
	text, err := os.ReadFile("../../slurmplugin/ways.txt")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		has := func(option string) bool { return slices.Contains(words, option) }
		if len(words) == 0 || strings.HasPrefix(line, "#") || has("cron") || has("session") && (has("het") || has("no_requeue")) ||
			has("models") && (has("contiguous") || has("socket")) { // no command makes such a job
			continue
		}
		argv, stdin := []string{"sbatch"}, script
		if has("session") {
			argv, stdin = []string{"salloc", "--no-shell"}, ""
		}
		if !has("socket") && !has("models") {
			argv = append(argv, "--gres=gpu:1")
		}
		for _, word := range words {
			if word != "het" {
				argv = append(argv, strings.Fields(options[word].argv)...)
			}
		}
		if has("het") {
			argv = append(argv, ":", "--gres=gpu:1")
		}
		tried++
		out, err := c.Run(t.Context(), "alice", stdin, argv...)
		if want := "cannot wait for a lease with " + options[words[0]].says; err == nil || !strings.Contains(out.Stderr, want) {
			t.Errorf("%s: %v, the user read %q, not %q", strings.Join(argv, " "), err, out.Stderr, want)
		}
	}
	if tried < 30 {
		t.Errorf("%d jobs", tried)
	}
}

// waysOutHaveWords shows that each way out has its own word, and what override does.
func waysOutHaveWords(t *testing.T, c *testcluster.Cluster) {
	configure(t, c, pluginConf+"opt_out=refuse\nopt_out.session=charge\nopt_out.no_gpus=refuse\nopt_out.no_requeue=override\nopt_out.contiguous=override\n")
	beat(t, c, "gpu", 0)
	submit := func(argv string) (string, error) {
		out, err := c.Run(t.Context(), "alice", script, strings.Fields(argv)...)
		return out.Stdout + out.Stderr, err
	}
	if said, err := submit("sbatch -n1"); err == nil || !strings.Contains(said, "is for jobs with GPUs") {
		t.Errorf("a job without GPUs: %v, %s", err, said)
	}
	if said, err := submit("sbatch --gpus-per-socket=1 --sockets-per-node=1"); err == nil || !strings.Contains(said, "--gpus-per-socket") {
		t.Errorf("another way: %v, %s", err, said)
	}
	id, err := c.Sbatch(t.Context(), "alice", script, "--contiguous", "--no-requeue", "--gres=gpu:1")
	if err != nil {
		t.Fatal(err)
	}
	job, err := c.Job(t.Context(), id)
	if err != nil || job["Requeue"] != "1" || job["Contiguous"] == "1" {
		t.Errorf("the job with both options: %v, Requeue=%s Contiguous=%s", err, job["Requeue"], job["Contiguous"])
	}
	configure(t, c, pluginConf+"opt_out.no_requeue=refuse\n")
	if said, err := submit("sbatch --no-requeue --gres=gpu:1"); err == nil || !strings.Contains(said, "cannot wait for a lease with --no-requeue") {
		t.Errorf("--no-requeue: %v, %s", err, said)
	}
	if said, err := submit("sbatch -n1"); err != nil {
		t.Errorf("a job without GPUs: %v, %s", err, said)
	}
}

// expediteHasWords shows what becomes of --requeue=expedite by the word for it. Its owner cannot set it later.
func expediteHasWords(t *testing.T, c *testcluster.Cluster) {
	const flag = `"EXPEDITED_REQUEUE"`
	for word, want := range map[string]struct {
		says string
		flag bool
	}{"charge": {"waits for a GPU lease", true}, "override": {"--requeue=expedite is --requeue here", false}, "refuse": {"of partition gpu cannot use --requeue=expedite", false}} {
		configure(t, c, pluginConf+"opt_out.expedite="+word+"\n")
		beat(t, c, "gpu", 0)
		for _, expedite := range []bool{true, false} {
			argv := []string{"sbatch", "--gres=gpu:1", "--requeue"}
			if expedite {
				argv[2] += "=expedite"
			}
			out, err := c.Run(t.Context(), "alice", script, argv...)
			if refused := expedite && word == "refuse"; refused != (err != nil) || strings.Contains(out.Stderr, want.says) != (expedite || word == "charge") {
				t.Errorf("%s, %v: %v, the user read %q", word, argv, err, out.Stderr)
			}
			if err != nil {
				continue
			}
			id := strings.TrimSpace(out.Stdout[strings.LastIndex(strings.TrimSpace(out.Stdout), " ")+1:])
			json, err := c.Exec(t.Context(), "alice", "scontrol", "show", "job", id, "--json")
			if err != nil || strings.Contains(json, flag) != (expedite && want.flag) || !strings.Contains(json, `"requeue": true`) {
				t.Errorf("%s, %v: job %s, %v:\n%s", word, argv, id, err, json)
			}
			if _, err := c.Exec(t.Context(), "alice", "scontrol", "update", "jobid="+id, "Requeue=expedite"); err == nil {
				t.Errorf("its owner sets Requeue=expedite of job %s", id)
			}
		}
	}
}

// jobsThatCannotSaveAreRefused shows that a site may demand jobs that can save their work.
func jobsThatCannotSaveAreRefused(t *testing.T, c *testcluster.Cluster) {
	configure(t, c, "partitions=gpu\ndefault_partition=gpu\nrequire_checkpoint=yes\n")
	ctx := t.Context()
	beat(t, c, "gpu", 0)
	submit := func(text string, args ...string) string {
		out, err := c.Run(ctx, "alice", text, append([]string{"sbatch"}, args...)...)
		if err == nil {
			return "taken"
		}
		return out.Stderr
	}
	refusal := "fairlease: GPU jobs here must be able to save their work"
	if got := submit(script, "--gres=gpu:1"); !strings.Contains(got, refusal) {
		t.Errorf("a job that cannot save: %s", got)
	}
	if got := submit(script, "--contiguous", "--gres=gpu:1"); !strings.Contains(got, refusal) {
		t.Errorf("a job that cannot save, contiguous on its node: %s", got)
	}
	if got := submit(script, "-n1"); got != "taken" {
		t.Errorf("a job without GPUs: %s", got)
	}
	if got := submit(script, "--gres=gpu:1", "--comment=checkpoint"); got != "taken" {
		t.Errorf("a marked job: %s", got)
	}
	if got := submit("#!/bin/bash\n#SBATCH --gres=gpu:1 --signal=B:USR1@60\nsleep 1\n"); got != "taken" {
		t.Errorf("a job with a signal: %s", got)
	}
	os.Remove(filepath.Join(c.HeartbeatDir(), "gpu"))
	if got := submit(script, "--gres=gpu:1"); got != "taken" {
		t.Errorf("nothing is refused while nobody grants leases: %s", got)
	}
}

// budgetsRefuse shows that jobs are refused that can use more than the daemon's list says is left, with those that were accepted since; that an old list or none refuses nothing;
// and that nobody without rights lets a job grow that was accepted, though Slurm allows it.
// sees = the plugin sees the job that is changed.
func budgetsRefuse(t *testing.T, c *testcluster.Cluster, sees bool) {
	ctx := t.Context()
	configure(t, c, pluginConf+"gate_license=fairlease\nopt_out.session=leave\n")
	beat(t, c, "gpu", 0)
	path := filepath.Join(c.HeartbeatDir(), ".budgets")
	list := func(age time.Duration, left float64) {
		t.Helper()
		end := time.Now().Add(100 * time.Hour)
		text := fmt.Sprintf("%d\nops vision 0.000 9 month %d E *=1\nnlp nlp %.3f 1000 month %[2]d 2026-12-01T00:00 *=1,v100=4\n@alice nlp\n", time.Now().Add(-age).Unix(), end.Unix(), left)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Remove(path)
	submit := func(user, command string) (id string, err error) {
		t.Helper()
		out, err := c.Run(ctx, user, script, strings.Fields("sbatch --parsable "+command)...)
		if err == nil {
			id = jobID(t, ctx, c, out, user)
			t.Cleanup(func() { c.Exec(context.WithoutCancel(ctx), "root", "scancel", id) })
		}
		return id, err
	}
	const account = ", and account nlp has 10.00 left of its budget of 1000.00 for this month, besides what its other jobs may use: " +
		"ask for a shorter --time or fewer GPUs, or wait for the next period, from 2026-12-01T00:00; see: fairlease budgets"
	for _, test := range []struct{ name, user, args, says string }{
		{"all that is left", "alice", "--time=300 --gpus=k80:2", ""},
		{"more", "alice", "--time=301 --gpus=k80:2", "may use 10.03 GPU-hours at prices" + account},
		{"of the dear model", "alice", "--time=300 --gpus=v100:2", "may use 40.00 GPU-hours at prices" + account},
		{"an array", "alice", "--time=60 --array=0-10 --gres=gpu:1", "may use 11.00 GPU-hours at prices" + account},
		{"an array of few tasks", "alice", "--time=60 --array=0-18:2%2 --gres=gpu:1", ""},
		{"tasks", "alice", "--time=60 -n6 --gpus-per-task=2", "may use 12.00 GPU-hours at prices" + account},
		{"nodes", "alice", "--time=120 -N2 --gres=gpu:3", "may use 12.00 GPU-hours at prices" + account},
		{"the default account by its name", "alice", "-A nlp --time=660 --gres=gpu:1", "may use 11.00 GPU-hours at prices" + account},
		{"in capitals", "alice", "-A NLP --time=660 --gres=gpu:1", "may use 11.00 GPU-hours at prices" + account},
		{"up to two nodes", "alice", "--time=120 -N1-2 --gres=gpu:3", "may use 12.00 GPU-hours at prices" + account},
		{"with features", "alice", "--time=180 --constraint=x --gres=gpu:1", "may use 12.00 GPU-hours at prices" + account},
		{"in the next period", "alice", "--time=6000 --begin=now+120hours --gres=gpu:1", ""},
		{"no time limit", "alice", "--gres=gpu:1", "(it states no --time), and account nlp has 10.00 left"},
		{"no GPUs", "alice", "--time=9999 -n1", ""},
		{"an account without a budget", "bob", "--time=6000 --gres=gpu:1", ""},
		{"an account whose budget is used up", "bob", "-A ops --time=1 --gres=gpu:1", ""}, // it is excluded
		{"a free partition", "alice", "-p free --time=6000 --gres=gpu:1", ""},
	} {
		waitNextSecond() // a newer list has the jobs that were accepted before it
		list(0, 10)
		switch _, err := submit(test.user, test.args); {
		case test.says == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: taken, or the user is not told %q: %v", test.name, test.says, err)
		}
	}
	waitNextSecond()
	list(0, 10)
	accepted, err := submit("alice", "--time=240 --gpus=k80:2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(ctx, "bob", script, "sbatch", "--test-only", "-A", "nlp", "--time=60", "--gpus=k80:1"); err == nil {
		t.Error("bob uses the account nlp, which he does not have")
	}
	if _, err := submit("alice", "--time=180 --gpus=k80:1"); err == nil || !strings.Contains(err.Error(), "may use 3.00 GPU-hours at prices, and account nlp has 2.00 left") {
		t.Errorf("the job that was accepted since does not count: %v", err)
	}
	update := func(user, change string) error {
		_, err := c.Exec(ctx, user, "scontrol", "update", "JobId="+accepted, change)
		return err
	}
	for _, change := range []string{"TimeLimit=300", "TimeLimit=UNLIMITED", "TimeLimit=+60", "NumNodes=2-2", "Gres=gpu:k80:4", "Partition=other"} {
		if err := update("alice", change); err == nil || !strings.Contains(err.Error(), "cancel the job and submit it again") {
			t.Errorf("alice changes %s of her job that was accepted, or is not told why not: %v", change, err)
		}
	}
	postponed, err := submit("alice", "--time=6000 --begin=now+120hours --gres=gpu:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(ctx, "alice", "scontrol", "update", "JobId="+postponed, "StartTime=now+1hour"); err == nil || !strings.Contains(err.Error(), "cancel the job and submit it again") {
		t.Errorf("alice moves a job from the next period into this one: %v", err)
	}
	if err := update("alice", "TimeLimit=60"); (err == nil) != sees {
		t.Errorf("alice shortens her job: %v", err)
	}
	if err := update(testcluster.Operator, "TimeLimit=300"); err != nil {
		t.Errorf("an operator lengthens the job: %v", err)
	}
	if err := update("alice", "Comment=mine"); err != nil {
		t.Errorf("alice changes what does not let it grow: %v", err)
	}
	list(2*time.Minute, 0)
	if err := update("alice", "TimeLimit=500"); err != nil {
		t.Errorf("an old list refuses a change: %v", err)
	}
	if _, err := submit("alice", "--time=600 --gres=gpu:1"); err != nil {
		t.Errorf("an old list refuses: %v", err)
	}
	os.Remove(path)
	if _, err := submit("alice", "--time=600 --gres=gpu:1"); err != nil {
		t.Errorf("a list that is missing refuses: %v", err)
	}
}

// waitNextSecond waits for the clock's next second.
func waitNextSecond() {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 10*time.Millisecond)))
}

// unknownKeysAreRefused shows that slurmctld does not start with settings that the twins do not know, and says why.
func unknownKeysAreRefused(t *testing.T, c *testcluster.Cluster) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Stop(ctx, testcluster.Slurmctld); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(c.Dir, "conf", "fairlease-plugin.conf")
	if err := os.WriteFile(conf, []byte("partitions=gpu\ngate_secs=5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := c.Start(ctx, testcluster.Slurmctld)
	if err == nil || !strings.Contains(err.Error(), "fairlease-plugin.conf:2: unknown key 'gate_secs'") {
		t.Errorf("slurmctld started, or does not say why not: %v", err)
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// TestPluginBesideAnother shows that what another plugin writes to the job and to its user stays.
func TestPluginBesideAnother(t *testing.T) {
	t.Parallel()
	for _, suite := range testcluster.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			c := testcluster.ForTest(t, testcluster.Options{Suite: suite, Plugin: testcluster.PluginC, ExtraConf: slurmLicenses})
			ctx := t.Context()
			another := `function slurm_job_submit(job) job.admin_comment = "of the site"; job.site_factor = 7; slurm.log_user("the site says hello"); return slurm.SUCCESS end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS
`
			conf := filepath.Join(c.Dir, "conf")
			text, err := os.ReadFile(filepath.Join(conf, "slurm.conf"))
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{
				"job_submit.lua": another,
				"slurm.conf":     strings.Replace(string(text), "JobSubmitPlugins=fairlease", "JobSubmitPlugins=lua,fairlease", 1),
			} {
				if err := os.WriteFile(filepath.Join(conf, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Restart(ctx, testcluster.Slurmctld); err != nil {
				t.Fatal(err)
			}
			beat(t, c, "gpu", 0)
			out, err := c.Run(ctx, "alice", script, "sbatch", "--gres=gpu:1")
			if err != nil || !strings.Contains(out.Stderr, "the site says hello") || !strings.Contains(out.Stderr, "fairlease: this job waits") {
				t.Errorf("the user read %q, %v", out.Stderr, err)
			}
			shown, err := c.Exec(ctx, "root", "scontrol", "show", "job", jobNumber.FindString(out.Stdout))
			if err != nil || !strings.Contains(shown, "AdminComment=of the site fl:begin=0,gate=") {
				t.Errorf("the job shows %s, %v", shown, err)
			}
			configure(t, c, "partitions=gpu\ndefault_partition=gpu\ngate_license=fairlease\n")
			id, err := c.Sbatch(ctx, "alice", script, "--gres=gpu:1")
			if err != nil {
				t.Fatal(err)
			}
			shown, err = c.Exec(ctx, "root", "scontrol", "show", "job", id)
			if err != nil || !strings.Contains(shown, "Licenses=fairlease:1 ") || !strings.Contains(shown, "AdminComment=of the site") ||
				strings.Contains(shown, "fl:") || strings.Contains(shown, "Priority=1 ") {
				t.Errorf("the job shows %s, %v", shown, err)
			}
		})
	}
}
