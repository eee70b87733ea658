package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
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
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
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
	text := fmt.Sprintf(`mode: act
partitions: [gpu]
interval: 1s
lease: {term: 20s, min: 6s, notice: 3s, grant_timeout: 15s}
gate: {ttl: 30s}
reclaim: {threshold: 1s}
credit: {cap: 1m}
start: {cost: 1s}
slurm:
  address: unix://%s
  scontrol: [%s]
database:
  url: %q
files:
  heartbeats: %s
  state: %s
log: {format: json}
%s`, r.RestSocket(), strings.Join(words, ", "), r.dsn, r.HeartbeatDir(), filepath.Join(filepath.Dir(path), "state.json"), extra)
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
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC}, func(t *testing.T, r *rig) {
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
		r.until("both tenants hold their half", 90*time.Second, func() bool { return r.running("nlp") == 8 && r.running("vision") == 8 })
		for _, id := range ids {
			if s := r.state(id); s != "RUNNING" && s != "PENDING" {
				t.Errorf("job %s is %q: lost", id, s)
			}
		}
		end(syscall.SIGTERM)
	})
}

// release leaves no trace: no gate, no pin, no reservation, no priority of ours.
func TestReleaseLeavesNoTrace(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC}, func(t *testing.T, r *rig) {
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
			if j["ReqNodeList"] != "(null)" || strings.HasPrefix(j["Reservation"], cluster.ReservationPrefix) {
				t.Errorf("job %s still wants nodes %s, reservation %q", id, j["ReqNodeList"], j["Reservation"])
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

// Every command answers on a real cluster, for people and as JSON.
func TestCommands(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(3, 1), Plugin: testcluster.PluginC}, func(t *testing.T, r *rig) {
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
			if args[0] == "config" {
				continue
			}
			out, err = r.fairlease(config, append(args, "--json")...)
			if err != nil || !json.Valid([]byte(out)) {
				t.Errorf("fairlease %s --json: %v\n%s", strings.Join(args, " "), err, out)
			}
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
