package testcluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

const gateSeconds = 600

const pluginConf = `partitions=gpu,other
default_partition=gpu
gate_seconds=600
heartbeat_max_age=60
mark_requeue=yes
protect_gate=yes
operator_uids=2000
exclude_users=dave
exclude_accounts=ops
exclude_qos=debug
`

const script = "#!/bin/bash\nsleep 30\n"

// A gateCase is one submission and what must become of it, with either twin.
type gateCase struct {
	name    string
	user    string // default alice
	script  string // default: one that sleeps; "-" for a command that brings none
	command string // default sbatch --parsable
	args    string
	age     time.Duration // of the heartbeat; default fresh
	silent  bool          // no heartbeat at all
	gated   bool
	begin   time.Duration // the user's --begin, from now
	requeue string        // Requeue= of the job, "" for any
	says    string        // what a gated job's user reads besides
}

var gateCases = []gateCase{
	{name: "gres", args: "--gres=gpu:1", gated: true, requeue: "1", says: "lease of your default account; at a lease's end it may be requeued"},
	{name: "typed", args: "--gres=gpu:v100:2", gated: true},
	{name: "gpus", args: "--gpus=2", gated: true},
	{name: "per node", args: "-N2 --gpus-per-node=1", gated: true},
	{name: "per task", args: "-n2 --gpus-per-task=1", gated: true},
	{name: "per socket", args: "--gpus-per-socket=1 --sockets-per-node=1", gated: true},
	{name: "in the script", script: "#!/bin/bash\n#SBATCH --gres=gpu:1\nsleep 30\n", gated: true},
	{name: "array", args: "--array=0-3 --gres=gpu:1", gated: true},
	{name: "account named", args: "-A nlp --gres=gpu:1", gated: true, says: "lease of account nlp;"},
	{name: "several partitions", args: "-p free,gpu --gres=gpu:1", gated: true},
	{name: "own begin, before the gate", args: "--begin=now+60 --gres=gpu:1", gated: true, begin: time.Minute},
	{name: "own begin, after the gate", args: "--begin=now+3600 --gres=gpu:1", gated: true, begin: time.Hour},
	{name: "own begin in the script", script: "#!/bin/bash\n#SBATCH --begin=now+3600\nsleep 30\n", args: "--gres=gpu:1", gated: true, begin: time.Hour},
	{name: "no requeue", args: "--no-requeue --gres=gpu:1", gated: true, requeue: "0", says: "keeps its GPUs until it ends"},
	{name: "dependent", args: "--dependency=singleton --gres=gpu:1", gated: true},
	{name: "no GPU", args: "-n1"},
	{name: "none of a GPU", args: "--gres=gpu:0"},
	{name: "shards", args: "--gres=shard:1"},
	{name: "free partition", args: "-p free --gres=gpu:1"},
	{name: "excluded user", user: "dave", args: "--gres=gpu:1"},
	{name: "excluded account", user: "bob", args: "-A ops --gres=gpu:1"},
	{name: "excluded QOS", args: "-q debug --gres=gpu:1"},
	{name: "heartbeat too old", age: 2 * time.Minute, args: "--gres=gpu:1"},
	{name: "heartbeat from the future", age: -time.Hour, args: "--gres=gpu:1"},
	{name: "no heartbeat", silent: true, args: "--gres=gpu:1"},
	{name: "other partition's heartbeat", args: "-p other --gres=gpu:1"},
	{name: "interactive", script: "-", command: "salloc --no-shell", args: "--gres=gpu:1"},
	{name: "srun", script: "-", command: "srun", args: "--gres=gpu:1 true"},
	{name: "heterogeneous", args: "--gres=gpu:1 : --gres=gpu:1"},
}

// TestPlugin runs the same table against both twins on both versions of Slurm.
func TestPlugin(t *testing.T) {
	eachTwin(t, pluginConf, func(t *testing.T, c *testcluster.Cluster) {
		for _, g := range gateCases {
			t.Run(g.name, func(t *testing.T) { g.run(t, c) })
		}
		t.Run("protected", func(t *testing.T) { gatesAreProtected(t, c) })
	})
}

func eachTwin(t *testing.T, conf string, test func(*testing.T, *testcluster.Cluster)) {
	for _, suite := range testcluster.Suites {
		for _, plugin := range []testcluster.Plugin{testcluster.PluginC, testcluster.PluginLua} {
			t.Run(suite+"/"+string(plugin), func(t *testing.T) {
				c := testcluster.ForTest(t, testcluster.Options{
					Suite: suite, Plugin: plugin, PluginConf: conf,
					Partitions: []testcluster.Partition{{Name: "gpu", Default: true}, {Name: "free"}, {Name: "other"}},
					Accounts: []testcluster.Account{{Name: "nlp", Users: []string{"alice", "dave"}}, {Name: "vision", Users: []string{"bob"}},
						{Name: "ops", Users: []string{"bob"}}},
					QOS: []testcluster.QOS{{Name: "debug"}},
				})
				test(t, c)
			})
		}
	}
}

// beat writes a heartbeat of that age, as the sidecar does: its second inside, and the file as old.
func beat(t *testing.T, c *testcluster.Cluster, partition string, age time.Duration) {
	t.Helper()
	file, at := filepath.Join(c.HeartbeatDir(), partition), time.Now().Add(-age)
	if err := os.WriteFile(file, []byte(strconv.FormatInt(at.Unix(), 10)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func (g gateCase) run(t *testing.T, c *testcluster.Cluster) {
	ctx := t.Context()
	os.Remove(filepath.Join(c.HeartbeatDir(), "gpu"))
	if !g.silent {
		beat(t, c, "gpu", g.age)
	}
	user, text, command := or(g.user, "alice"), or(g.script, script), or(g.command, "sbatch --parsable")
	if text == "-" {
		text = ""
	}
	before := time.Now()
	out, err := c.Run(ctx, user, text, append(strings.Fields(command), strings.Fields(g.args)...)...)
	if err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	told := strings.Contains(out.Stderr, "fairlease: this job waits for a GPU lease of ")
	if told != g.gated {
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
	if !g.gated {
		if strings.Contains(job["AdminComment"], "fl:") {
			t.Errorf("marked %s", job["AdminComment"])
		}
		return
	}
	// Slurm reads --begin=now+60 in the second of the submission.
	within := func(what string, got int64, offset time.Duration) {
		if low, high := before.Add(offset).Unix(), after.Add(offset).Unix(); got < low || got > high {
			t.Errorf("%s is %d, not within %d to %d", what, got, low, high)
		}
	}
	begin, gate := marked(t, job)
	if g.begin == 0 {
		if begin != 0 {
			t.Errorf("remembers a begin time %d", begin)
		}
	} else {
		within("the remembered begin time", begin, g.begin)
	}
	within("the gate", gate, max(g.begin, gateSeconds*time.Second))
	eligible, err := time.ParseInLocation("2006-01-02T15:04:05", job["EligibleTime"], time.Local)
	if err != nil {
		t.Fatal(err)
	}
	if g.name != "dependent" && eligible.Unix() != gate { // a dependent job is eligible at no time yet
		t.Errorf("eligible at %d, marked %d", eligible.Unix(), gate)
	}
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
	beat(t, c, "gpu", 0)
	if err := move(testcluster.Operator, "now"); err != nil {
		t.Errorf("the operator may open the gate: %v", err)
	}
	if _, err := c.WaitJob(ctx, id, 30*time.Second, testcluster.InState("RUNNING", "COMPLETED")); err != nil {
		t.Error(err)
	}
}

// TestPluginRefuses shows that a site may demand jobs that can save their work.
func TestPluginRefuses(t *testing.T) {
	eachTwin(t, "partitions=gpu\ndefault_partition=gpu\nrequire_checkpoint=yes\n", func(t *testing.T, c *testcluster.Cluster) {
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
	})
}

// TestPluginRefusesUnknownKeys shows that slurmctld does not start with settings that the twins do not know, and says why.
func TestPluginRefusesUnknownKeys(t *testing.T) {
	eachTwin(t, pluginConf, func(t *testing.T, c *testcluster.Cluster) {
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
	})
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// TestPluginBesideAnother shows that what another plugin writes to the job and to its user stays.
func TestPluginBesideAnother(t *testing.T) {
	for _, suite := range testcluster.Suites {
		t.Run(suite, func(t *testing.T) {
			c := testcluster.ForTest(t, testcluster.Options{Suite: suite, Plugin: testcluster.PluginC})
			ctx := t.Context()
			another := `function slurm_job_submit(job) job.admin_comment = "of the site"; slurm.log_user("the site says hello"); return slurm.SUCCESS end
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
		})
	}
}
