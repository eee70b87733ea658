package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// built is where the program was built, if it was.
var built string

// binary builds the program once; without C, so that it runs on the clusters' Debian too.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fairlease-e2e")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "fairlease")
	build := exec.Command("go", "build", "-o", path, "../../sidecar/cmd/fairlease")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	if err := clusters.open(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go tellStops()
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// tellStops says when all stood still, as a virtual machine does that is paused: what tests measured in that time is no fault of theirs.
func tellStops() {
	const second = time.Second
	for last := time.Now().Round(0); ; last = time.Now().Round(0) { // by the wall clock: others may stop with the machine
		time.Sleep(second)
		if gap := time.Since(last) - second; gap > 5*second {
			fmt.Fprintf(os.Stderr, "this machine stood still for %s until %s\n", gap.Round(second), time.Now().Format(time.TimeOnly))
		}
	}
}

// configure writes a configuration for the program and gives its path. Jobs of tests start in a second, so the default
// stop.allowance lets even those that never save be stopped at every term, for as long as a test lasts.
func (r *rig) configure(extra string) string {
	r.t.Helper()
	words := make([]string, 0, 16)
	for _, w := range r.Scontrol() {
		words = append(words, fmt.Sprintf("%q", w))
	}
	path := filepath.Join(r.t.TempDir(), "fairlease.yaml")
	if !strings.Contains(extra, "stop:") { // a test's terms are shorter than an hour
		extra += "stop: {per_hour: 0}\n"
	}
	text := fmt.Sprintf(`mode: act
partitions: [gpu]
interval: 1s
lease: {term: 20s, min: 6s, notice: 3s, grant_timeout: 15s}
gate: {ttl: 30s, license: %q}
reclaim: {threshold: 1s}
credit: {cap: 1m}
start: {cost: 1s}
config: {accept_above: 0}
slurm:
  address: unix://%s
  scontrol: [%s]
database:
  url: %q
files:
  heartbeats: %s
  state: %s
log: {format: json}
metrics: {listen: '127.0.0.1:0'}
%s`, r.license, r.RestSocket(), strings.Join(words, ", "), r.dsn, r.HeartbeatDir(), filepath.Join(filepath.Dir(path), "state.json"), extra)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// fairlease runs the program and gives what it printed.
func (r *rig) fairlease(config string, args ...string) (string, error) {
	r.t.Helper()
	path, err := binary()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := exec.CommandContext(r.ctx(), path, append([]string{"-c", config}, args...)...).CombinedOutput()
	return string(out), err
}

// afterCrash does what systemd does once a daemon was killed.
func (r *rig) afterCrash(config string) (string, error) {
	r.t.Helper()
	path, err := binary()
	if err != nil {
		r.t.Fatal(err)
	}
	c := exec.CommandContext(r.ctx(), path, "-c", config, "release", "--after-crash")
	c.Env = append(os.Environ(), "SERVICE_RESULT=signal")
	out, err := c.CombinedOutput()
	return string(out), err
}

// serve starts the daemon; the returned function ends it with a signal, or sends it SIGHUP. Its log
// is appended to beside the configuration.
func (r *rig) serve(config string) func(syscall.Signal) {
	r.t.Helper()
	path, err := binary()
	if err != nil {
		r.t.Fatal(err)
	}
	log, err := os.OpenFile(logOf(config), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = log.Close() })
	cmd := exec.Command(path, "-c", config, "serve")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	over := false
	end := func(s syscall.Signal) {
		if over {
			return
		}
		_ = cmd.Process.Signal(s)
		if s == syscall.SIGHUP {
			return
		}
		over = true
		err := cmd.Wait()
		if s == syscall.SIGTERM && err != nil {
			r.t.Errorf("fairlease serve ended with %v", err)
		}
		if r.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			r.t.Logf("the daemon's log:\n%s", text[max(0, len(text)-4000):])
		}
	}
	r.t.Cleanup(func() { end(syscall.SIGTERM) })
	return end
}

func logOf(config string) string { return filepath.Join(filepath.Dir(config), "fairlease.log") }

// running counts the GPUs that run for an account, as Slurm says.
func (r *rig) running(account string) int {
	r.t.Helper()
	out, err := r.Exec(r.ctx(), "root", "squeue", "-h", "-t", "R", "-A", account, "-O", "tres-alloc:200")
	if err != nil {
		return -1
	}
	n := 0
	for line := range strings.Lines(out) {
		for tres := range strings.SplitSeq(strings.TrimSpace(line), ",") {
			var gpus int
			if _, err := fmt.Sscanf(tres, "gres/gpu=%d", &gpus); err == nil {
				n += gpus
			}
		}
	}
	return n
}

// kill -9 of the real program, again and again: no job is lost, the next one goes on.
func TestKillNine(t *testing.T) {
	onBothGates(t, testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC}, func(t *testing.T, r *rig) {
		config := r.configure("")
		end := r.serve(config)
		r.heard()
		var ids []string
		for range 6 {
			ids = append(ids, r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:2"))
			ids = append(ids, r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4"))
		}
		for _, pause := range []time.Duration{700 * time.Millisecond, 4300 * time.Millisecond, 9100 * time.Millisecond, 16900 * time.Millisecond} {
			time.Sleep(pause)
			end(syscall.SIGKILL)
			end = r.serve(config)
		}
		r.halves(8, 90*time.Second, r.running)
		r.keepsAll(ids)
		end(syscall.SIGTERM)
	})
}

// release leaves no trace: no gate, no pin, no reservation, no priority of ours.
func TestReleaseLeavesNoTrace(t *testing.T) {
	onBothGates(t, testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC}, func(t *testing.T, r *rig) {
		config := r.configure("")
		end := r.serve(config)
		r.heard()
		var ids []string
		for range 6 {
			ids = append(ids, r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4"))
			ids = append(ids, r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4"))
		}
		later := r.submit("carol", sleeps(1), "-A", "nlp", "--gres=gpu:1", "--begin=now+2hours")
		r.until("the cluster is full", time.Minute, func() bool { return r.running("nlp")+r.running("vision") == 16 })
		time.Sleep(r.settings.Term.Duration() + 5*time.Second) // some hand-overs
		end(syscall.SIGKILL)
		if out, err := r.fairlease(config, "release"); err != nil {
			t.Fatalf("release: %v\n%s", err, out)
		}
		soon := time.Now().Add(5 * time.Second)
		for _, id := range ids {
			j, err := r.Job(r.ctx(), id)
			if err != nil {
				t.Fatal(err)
			}
			if j["JobState"] != "PENDING" {
				continue
			}
			eligible, err := time.ParseInLocation("2006-01-02T15:04:05", j["EligibleTime"], time.Local)
			if err != nil || eligible.After(soon) {
				t.Errorf("job %s is still gated to %s", id, j["EligibleTime"])
			}
			if j["ReqNodeList"] != "(null)" || strings.HasPrefix(j["Reservation"], cluster.ReservationPrefix) || strings.Contains(j["Licenses"], "fairlease") {
				t.Errorf("job %s still wants nodes %s, reservation %q, licences %s", id, j["ReqNodeList"], j["Reservation"], j["Licenses"])
			}
		}
		if j, _ := r.Job(r.ctx(), later); j["EligibleTime"] < time.Now().Add(time.Hour).Format("2006-01-02T15:04:05") {
			t.Errorf("the user's own begin time was lost: %s", j["EligibleTime"])
		}
		if out, _ := r.Exec(r.ctx(), "root", "scontrol", "show", "reservation", "-o"); strings.Contains(out, cluster.ReservationPrefix) {
			t.Errorf("a reservation is left: %s", out)
		}
		out, err := r.Exec(r.ctx(), "root", "sprio", "-h", "-o", "%i %S")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) == 2 && f[1] != "0" {
				t.Errorf("job %s still has site factor %s", f[0], f[1])
			}
		}
	})
}

// An administrator's addition to a job's priority is restored when the job is returned to Slurm.
func TestSiteFactorOfAnAdministrator(t *testing.T) {
	onBothGates(t, testcluster.Options{Accounts: tenants(1, 1)}, func(t *testing.T, r *rig) {
		factor := func(id string) string {
			out, err := r.Exec(r.ctx(), "root", "sprio", "-h", "-o", "%i %S")
			if err != nil {
				return err.Error()
			}
			for line := range strings.Lines(out) {
				if f := strings.Fields(line); len(f) == 2 && f[0] == id {
					return f[1]
				}
			}
			return "none"
		}
		config := r.configure("")
		for range 4 {
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
		}
		r.until("the cluster is full", time.Minute, func() bool { return r.running("vision") == 16 })
		id := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
		if out, err := r.Exec(r.ctx(), "root", "scontrol", "update", "jobid="+id, "SiteFactor=-321"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		r.until("the factor is there", 20*time.Second, func() bool { return factor(id) == "-321" })
		if out, err := r.fairlease(config, "freeze", "user:alice", "--until", "1h", "--reason", "it is to wait"); err != nil {
			t.Fatalf("freeze: %v\n%s", err, out)
		}
		end := r.serve(config)
		r.until("the job is gated", time.Minute, func() bool {
			out, err := r.Exec(r.ctx(), "root", "squeue", "-h", "-j", id, "-o", "%r")
			return err == nil && (strings.Contains(out, "BeginTime") || strings.Contains(out, "Licenses"))
		})
		end(syscall.SIGTERM)
		if out, err := r.fairlease(config, "release"); err != nil {
			t.Fatalf("release: %v\n%s", err, out)
		}
		r.until("the factor is shown", 20*time.Second, func() bool { return factor(id) != "none" })
		if f := factor(id); f != "-321" {
			t.Errorf("the administrator's site factor is %s after the release, want -321", f)
		}
	})
}

// A standby that crashes releases nothing of the daemon that leads; that one, crashed, is released.
func TestCrashOfAStandby(t *testing.T) {
	onBothGates(t, testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC}, func(t *testing.T, r *rig) {
		leading, standby := r.configure(""), r.configure("")
		end := r.serve(leading)
		r.heard()
		for range 3 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
		}
		reason := "BeginTime"
		if r.license != "" {
			reason = "Licenses"
		}
		gated := func() int {
			out, err := r.Exec(r.ctx(), "root", "squeue", "-h", "-t", "PD", "-o", "%r")
			if err != nil {
				t.Fatal(err)
			}
			return strings.Count(out, reason)
		}
		r.until("the cluster is full and two jobs are gated", time.Minute, func() bool { return r.running("nlp")+r.running("vision") == 16 && gated() == 2 })
		crash := r.serve(standby)
		r.until("the standby waits", 20*time.Second, func() bool {
			log, _ := os.ReadFile(logOf(standby))
			return strings.Contains(string(log), "waiting: another daemon leads")
		})
		crash(syscall.SIGKILL)
		out, err := r.afterCrash(standby)
		if err != nil || !strings.Contains(out, "was not the last leader") {
			t.Errorf("release after the standby's crash: %v\n%s", err, out)
		}
		if n := gated(); n != 2 {
			t.Errorf("%d jobs are gated after the standby's crash, want 2", n)
		}
		end(syscall.SIGKILL)
		if out, err := r.afterCrash(leading); err != nil || !strings.Contains(out, "2 waiting jobs opened") {
			t.Errorf("release after the crash of the leading daemon: %v\n%s", err, out)
		}
		if n := gated(); n != 0 {
			t.Errorf("%d jobs are gated after the release", n)
		}
	})
}

// Two clusters share a database, each in a schema of its own; a daemon of one that is pointed at the other's journal is refused.
func TestTwoClustersInOneDatabase(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	var configs []string
	var rigs []*rig
	for i, name := range []string{"alpha", "beta"} {
		r := newRig(t, testcluster.Suites[i], usual[testcluster.Suites[i]], testcluster.Options{ClusterName: name, Accounts: tenants(1, 1)})
		r.dsn = dsn
		if _, _, err := migrate.Up(r.ctx(), dsn, name, func(string) {}); err != nil {
			t.Fatal(err)
		}
		config := r.configure("")
		edit(t, config, "database:\n", "database:\n  schema: "+name+"\n")
		r.serve(config)
		r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
		rigs, configs = append(rigs, r), append(configs, config)
	}
	for i, r := range rigs {
		r.until("each governs its own", time.Minute, func() bool {
			out, err := r.fairlease(configs[i], "leases", "-P", "-n")
			return err == nil && strings.Count(out, "\n") == 1 && r.running("nlp") == 4
		})
	}
	wrong := rigs[1].configure("")
	edit(t, wrong, "database:\n", "database:\n  schema: alpha\n")
	out, err := rigs[1].fairlease(wrong, "serve")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(out, "is of cluster alpha") || !strings.Contains(out, "Slurm is cluster beta") {
		t.Errorf("a daemon of beta with alpha's journal: %v\n%s", err, out)
	}
}

// edit changes a word of a file.
func edit(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("%s has no %q (%v)", path, from, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every command answers on a real cluster, for people and as JSON.
func TestCommands(t *testing.T) {
	// The plugin gates by begin times: they show the doctor its gate_seconds.
	o := testcluster.Options{Accounts: tenants(3, 1), Plugin: testcluster.PluginC, PluginConf: testcluster.PluginConf}
	onBoth(t, o, func(t *testing.T, r *rig) {
		config := r.configure("")
		end := r.serve(config)
		r.heard()
		var waits string
		for range 5 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
			waits = r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
		}
		r.until("the cluster is full", time.Minute, func() bool { return r.running("nlp")+r.running("vision") == 16 })
		for _, args := range [][]string{
			{"status"}, {"tenants"}, {"leases"}, {"explain", waits}, {"round", "--dry-run"}, {"doctor"}, {"config", "show"},
		} {
			out, err := r.fairlease(config, args...)
			if err != nil || strings.TrimSpace(out) == "" {
				t.Errorf("fairlease %s: %v\n%s", strings.Join(args, " "), err, out)
			}
			t.Logf("fairlease %s\n%s", strings.Join(args, " "), out)
			if found := "the submit plugin gated job "; args[0] == "doctor" && !strings.Contains(out, found) {
				t.Errorf("the plugin's gate_seconds are 600, gate.ttl is 30s, and the doctor does not say so from a job")
			}
			if args[0] == "config" {
				continue
			}
			out, err = r.fairlease(config, append(args, "--json")...)
			if err != nil || !json.Valid([]byte(out)) {
				t.Errorf("fairlease %s --json: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
		members := 0
		if err := storetest.Connect(t, r.dsn).QueryRow(r.ctx(), "select count(*) from members where (tenant, user_name) in (('nlp', 'alice'), ('vision', 'bob')) or tenant in ('', 'root')").Scan(&members); err != nil || members != 2 {
			t.Errorf("the journal has %d of the 2 users of tenants (%v)", members, err)
		}
		edit(t, config, "ttl: 30s", fmt.Sprintf("ttl: 30s, plugin_conf: %q", filepath.Join(r.Dir, "conf", "fairlease-plugin.conf")))
		if out, err := r.fairlease(config, "doctor"); err != nil || !strings.Contains(out, "gate_seconds=600 in ") {
			t.Errorf("the doctor does not find the plugin's gate_seconds: %v\n%s", err, out)
		}
		if out, err := r.fairlease(config, "explain", "999999"); err == nil || !strings.Contains(out, "999999") {
			t.Errorf("explain of an unknown job: %v\n%s", err, out)
		}
		if out, err := r.fairlease(config, "replay", "3"); err != nil {
			t.Errorf("replay: %v\n%s", err, out)
		}
		end(syscall.SIGTERM)
	})
}
