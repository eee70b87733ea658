package testcluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// TestSuites boots every Slurm at once: they do not collide, jobs get fake GPUs, slurmrestd answers, the records arrive.
func TestSuites(t *testing.T) {
	clusters := map[string]*testcluster.Cluster{}
	for _, suite := range testcluster.Suites {
		clusters[suite] = testcluster.ForTest(t, testcluster.Options{Suite: suite})
	}
	for suite, version := range map[string]string{"trixie": "24.11", "forky": "26.05"} {
		t.Run(suite, func(t *testing.T) { worksWell(t, clusters[suite], version) })
	}
}

func worksWell(t *testing.T, c *testcluster.Cluster, version string) {
	ctx := t.Context()
	if out, err := c.Exec(ctx, "alice", "scontrol", "--version"); err != nil || !strings.Contains(out, version) {
		t.Errorf("version %q, %v", out, err)
	}
	id, err := c.Sbatch(ctx, "alice", "#!/bin/bash\necho gpus $CUDA_VISIBLE_DEVICES\n", "--gres=gpu:v100:2", "--output=job.out")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitJob(ctx, id, time.Minute, testcluster.InState("COMPLETED")); err != nil {
		t.Fatal(err)
	}
	if out, err := os.ReadFile(filepath.Join(c.Home("alice"), "job.out")); err != nil || string(out) != "gpus 0,1\n" {
		t.Errorf("the job wrote %q, %v", out, err)
	}
	if _, err := c.Exec(ctx, "bob", "false"); err == nil {
		t.Error("a failing command gives no error")
	}

	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", c.RestSocket()) }}}
	resp, err := client.Get("http://slurm/slurm/v0.0.42/job/" + id)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Jobs []struct {
			Tres string `json:"tres_alloc_str"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Jobs) != 1 || !strings.Contains(answer.Jobs[0].Tres, "gres/gpu:v100=2") {
		t.Errorf("slurmrestd: %s, %+v, %v", resp.Status, answer, err)
	}

	scontrol := c.Scontrol()
	if out, err := exec.CommandContext(ctx, scontrol[0], append(scontrol[1:], "ping")...).CombinedOutput(); err != nil || !strings.Contains(string(out), "is UP") {
		t.Errorf("scontrol ping: %s, %v", out, err)
	}
	if shares, err := c.Exec(ctx, "root", "sacctmgr", "-nP", "list", "assoc", "format=account,user,share"); err != nil || !strings.Contains(shares, "vision|bob|1") {
		t.Errorf("associations: %s, %v", shares, err)
	}
	soon(t, 20*time.Second, func() error {
		out, err := c.Exec(ctx, "root", "sacct", "-nXP", "-j", id, "-o", "state,alloctres")
		if err == nil && (!strings.HasPrefix(out, "COMPLETED|") || !strings.Contains(out, "gres/gpu:v100=2")) {
			err = fmt.Errorf("slurmdbd has %q", out)
		}
		return err
	})
}

// TestShape boots what the defaults do not have: one node of eight GPUs, nested accounts, a QOS, more lines.
func TestShape(t *testing.T) {
	c := testcluster.ForTest(t, testcluster.Options{
		Nodes:     []testcluster.NodeGroup{{Prefix: "big", Count: 1, Model: "h100", GPUs: 8, CPUs: 64}, {Prefix: "cpu", Count: 2}},
		Accounts:  []testcluster.Account{{Name: "science", Shares: 3}, {Name: "physics", Parent: "science", Shares: 2, Users: []string{"erwin"}}},
		QOS:       []testcluster.QOS{{Name: "urgent", Words: "Priority=1000"}},
		ExtraConf: "PrologEpilogTimeout=77",
	})
	ctx := t.Context()
	id, err := c.Sbatch(ctx, "erwin", "#!/bin/bash\ntrue\n", "--gres=gpu:8", "--qos=urgent")
	if err != nil {
		t.Fatal(err)
	}
	job, err := c.WaitJob(ctx, id, time.Minute, testcluster.InState("COMPLETED"))
	if err != nil || job["NodeList"] != "big1" {
		t.Errorf("ran on %q, %v", job["NodeList"], err)
	}
	if out, err := c.Exec(ctx, "root", "scontrol", "show", "config"); err != nil || !strings.Contains(out, "PrologEpilogTimeout     = 77") {
		t.Errorf("extra line: %v", err)
	}
}

// TestFaults breaks every daemon and mends it.
func TestFaults(t *testing.T) {
	c := testcluster.ForTest(t, testcluster.Options{})
	ctx := t.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	ping := func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := c.Exec(ctx, "root", "squeue")
		return err
	}

	must("kill slurmctld", c.Kill(ctx, testcluster.Slurmctld))
	if err := c.Kill(ctx, testcluster.Slurmctld); err == nil {
		t.Error("a dead daemon was killed again")
	}
	must("start slurmctld", c.Start(ctx, testcluster.Slurmctld))
	if err := c.Start(ctx, testcluster.Slurmctld); err == nil {
		t.Error("a running daemon was started again")
	}
	must("restart slurmctld", c.Restart(ctx, testcluster.Slurmctld))
	must("freeze slurmctld", c.Freeze(ctx, testcluster.Slurmctld))
	if ping() == nil {
		t.Error("a frozen slurmctld answers")
	}
	must("thaw slurmctld", c.Thaw(ctx, testcluster.Slurmctld))
	soon(t, 20*time.Second, ping)

	must("kill slurmrestd", c.Kill(ctx, testcluster.Slurmrestd))
	if _, err := net.Dial("unix", c.RestSocket()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("slurmrestd is gone, but its socket says %v", err)
	}
	must("start slurmrestd", c.Start(ctx, testcluster.Slurmrestd))
	must("restart slurmrestd", c.Restart(ctx, testcluster.Slurmrestd))
	must("restart slurmdbd", c.Restart(ctx, testcluster.Slurmdbd))
	must("restart MariaDB", c.Restart(ctx, testcluster.MariaDB))
	must("restart munged", c.Restart(ctx, testcluster.Munged))

	v1 := testcluster.Slurmd("v1")
	must("kill slurmd", c.Kill(ctx, v1))
	must("start slurmd", c.Start(ctx, v1))
	must("reconfigure", c.Reconfigure(ctx))
	must("kill slurmctld that was reconfigured", c.Kill(ctx, testcluster.Slurmctld))
	must("start slurmctld", c.Start(ctx, testcluster.Slurmctld))
	id, err := c.Sbatch(ctx, "alice", "#!/bin/bash\nsleep 4711\n", "-w", "v1", "-t", "60")
	must("submit", err)
	must("run", second(c.WaitJob(ctx, id, 30*time.Second, testcluster.InState("RUNNING"))))
	sleeps := func() bool {
		_, err := c.Exec(ctx, "root", "sh", "-c", "ps -eo args | grep -q '^sleep 4711'")
		return err == nil
	}
	soon(t, 20*time.Second, func() error {
		if !sleeps() {
			return errors.New("the job does not run")
		}
		return nil
	})
	must("crash a node", c.Crash(ctx, "v1"))
	soon(t, 10*time.Second, func() error {
		if sleeps() {
			return errors.New("the job outlives its node")
		}
		return nil
	})
	must("boot it", c.Boot(ctx, "v1"))
	must("drain", c.SetNode(ctx, "v1", "drain"))
	if state, err := c.NodeState(ctx, "v1"); err != nil || !strings.Contains(state, "DRAIN") {
		t.Errorf("v1 is %s, %v", state, err)
	}
	must("resume", c.SetNode(ctx, "v1", "resume"))
	must("maintenance", c.Maintenance(ctx, "m1", "v2", "now+10minutes", 30))

	if running, all := len(c.Running()), len(c.Daemons()); running != all {
		t.Errorf("%d of %d daemons run at the end: %v", running, all, c.Running())
	}
}

func second[T any](_ T, err error) error { return err }

// TestDown shows that nothing remains: after Down, after a crash of the cluster, and after a crash of its owner.
func TestDown(t *testing.T) {
	testcluster.SkipUnlessRoot(t)
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Dir(dir)} { // PostgreSQL's user passes through
		if err := os.Chmod(path, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	up := func() *testcluster.Cluster {
		t.Helper()
		c, err := testcluster.Up(t.Context(), testcluster.Options{Dir: dir, Name: "x", Progress: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Down() })
		return c
	}

	t.Run("down", func(t *testing.T) {
		c := up()
		in := processes(t, c)
		if _, err := testcluster.Up(t.Context(), testcluster.Options{Dir: dir, Name: "x"}); err == nil || !strings.Contains(err.Error(), "is up already") {
			t.Errorf("the same cluster twice: %v", err)
		}
		if again, err := testcluster.Open("x", dir); err != nil || !again.Alive() || again.RestSocket() != c.RestSocket() {
			t.Errorf("opening it again: %v", err)
		}
		if err := testcluster.DownByName("x", dir); err != nil {
			t.Error(err)
		}
		nothingRemains(t, c, in)
		if err := testcluster.DownByName("x", dir); err != nil {
			t.Errorf("down once more: %v", err)
		}
		if _, err := testcluster.Open("x", dir); err == nil {
			t.Error("it can still be opened")
		}
	})
	t.Run("crash", func(t *testing.T) {
		c := up()
		in := processes(t, c)
		if err := syscall.Kill(in.first, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		soon(t, 10*time.Second, func() error {
			if c.Alive() {
				return errors.New("it lives on")
			}
			return nil
		})
		dead := c
		c = up() // the next one is not hurt by what is still cleaned up
		if err := dead.Down(); err != nil {
			t.Errorf("taking down the cluster that had its name before: %v", err)
		}
		if _, err := c.Exec(t.Context(), "alice", "squeue"); err != nil {
			t.Error(err)
		}
		if err := c.Down(); err != nil {
			t.Error(err)
		}
		nothingRemains(t, c, in)
	})
	t.Run("owner killed", func(t *testing.T) {
		owner := exec.Command(os.Args[0], "-test.run=^TestOwner$")
		owner.Env = append(os.Environ(), ownerVariable+"="+dir)
		out, err := owner.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		owner.Stderr = os.Stderr
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
			t.Fatalf("the owner said %q, %v", line, err)
		}
		c, err := testcluster.Open("owned", dir)
		if err != nil {
			t.Fatal(err)
		}
		in := processes(t, c)
		pg := &testcluster.Postgres{Dir: filepath.Join(dir, "pg")}
		if err := owner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		owner.Wait()
		soon(t, 10*time.Second, func() error { return errors.Join(gone(c.Dir), gone(pg.Dir)) })
		nothingRemains(t, c, in)
	})
}

const ownerVariable = "FAIRLEASE_TEST_OWNER"

// TestOwner is no test: TestDown starts it as another process, to kill it.
func TestOwner(t *testing.T) {
	dir := os.Getenv(ownerVariable)
	if dir == "" {
		t.Skip("started by TestDown only")
	}
	if _, err := testcluster.Up(t.Context(), testcluster.Options{Dir: dir, Name: "owned", Attached: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := testcluster.StartPostgres(t.Context(), filepath.Join(dir, "pg")); err != nil {
		t.Fatal(err)
	}
	runtime.GC() // they live as long as this process, whether anybody refers to them or not
	runtime.GC()
	os.Stdout.WriteString("up\n")
	select {}
}

// inhabitants are the processes of a cluster, as this machine numbers them: all that see its mounts.
type inhabitants struct {
	namespace string
	first     int // process 1 of the cluster
	all       []int
}

func processes(t *testing.T, c *testcluster.Cluster) inhabitants {
	t.Helper()
	var in inhabitants
	for file, value := range map[string]any{"namespace": &in.namespace, "supervisor": &in.first} {
		text, err := os.ReadFile(filepath.Join(c.Dir, "run", file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(text), value); err != nil {
			t.Fatal(err)
		}
	}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/mnt")
	for _, link := range links {
		var pid int
		if _, err := fmt.Sscanf(link, "/proc/%d/", &pid); err == nil && in.has(pid) {
			in.all = append(in.all, pid)
		}
	}
	if len(in.all) <= len(c.Daemons()) {
		t.Fatalf("%d processes for process 1 and %d daemons", len(in.all), len(c.Daemons()))
	}
	return in
}

func (in inhabitants) has(pid int) bool {
	target, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	return err == nil && target == in.namespace
}

func nothingRemains(t *testing.T, c *testcluster.Cluster, in inhabitants) {
	t.Helper()
	soon(t, 10*time.Second, func() error { // the kernel takes its time
		for _, pid := range in.all {
			if in.has(pid) {
				return fmt.Errorf("process %d lives on", pid)
			}
		}
		return gone(c.Dir)
	})
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), c.Dir) {
		t.Errorf("mounts remain, or cannot be read: %v", err)
	}
}

func gone(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is still there", path)
	}
	return nil
}

// TestSameName starts one name twice at once: one comes up, the other one says why not.
func TestSameName(t *testing.T) {
	testcluster.SkipUnlessRoot(t)
	dir := t.TempDir()
	var all sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		all.Add(1)
		go func() {
			defer all.Done()
			_, errs[i] = testcluster.Up(t.Context(), testcluster.Options{Dir: dir, Name: "twin"})
		}()
	}
	all.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("not exactly one came up: %v", errs)
	}
	if err := testcluster.DownByName("twin", dir); err != nil {
		t.Error(err)
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []struct {
		options testcluster.Options
		says    string
	}{
		{testcluster.Options{Name: "../x"}, `cluster name "../x"`},
		{testcluster.Options{Suite: "sid"}, `suite "sid": use one of trixie, forky`},
		{testcluster.Options{Plugin: "perl"}, `plugin "perl": use none, c or lua`},
		{testcluster.Options{Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 0}}}, `node group "v": needs one node`},
		{testcluster.Options{Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 4, Shards: 6}}}, "6 shards do not spread"},
		{testcluster.Options{Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 3, MPS: 200}}}, "gres/mps of 200 does not spread"},
		{testcluster.Options{Accounts: []testcluster.Account{{Name: "a b"}}}, `account "a b"`},
	} {
		if _, err := testcluster.Up(t.Context(), o.options); err == nil || !strings.Contains(err.Error(), o.says) {
			t.Errorf("%+v: %v", o.options, err)
		}
	}
	if _, err := testcluster.Open("nosuch", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no cluster nosuch runs") {
		t.Errorf("opening what is not there: %v", err)
	}
}

// TestWithoutMeans shows the messages for missing programs.
func TestWithoutMeans(t *testing.T) {
	testcluster.SkipUnlessRoot(t)
	tools := t.TempDir()
	for _, tool := range []string{"unshare", "nsenter", "bash"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(tools, tool)); err != nil {
			t.Fatal(err)
		}
	}
	says := func(want string) {
		t.Helper()
		_, err := testcluster.Up(t.Context(), testcluster.Options{Dir: t.TempDir(), Cache: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not %q, but %v", want, err)
		}
	}
	t.Setenv("FAIRLEASE_DEBIAN_MIRROR", "http://127.0.0.1:1/debian")
	says("the mirror does not answer")
	t.Setenv("PATH", tools)
	says("mmdebstrap is not installed: run `apt-get install mmdebstrap`")
	t.Setenv("PATH", t.TempDir())
	says("is not installed: run `apt-get install util-linux bash`")
}

func TestNotRoot(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("this shows what is said to those who are not root")
	}
	if _, err := testcluster.Up(t.Context(), testcluster.Options{}); err == nil || !strings.Contains(err.Error(), "run as root") {
		t.Errorf("%v", err)
	}
}

// soon fails the test unless the condition comes true within the limit.
func soon(t *testing.T, limit time.Duration, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v", limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
