package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/daemon"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// Either gate keeps a job waiting while fairlease lives, lapses within its time when that is gone, and is gone after a release.
func TestGates(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 4}}}
	onBothGates(t, o, func(t *testing.T, r *rig) {
		r.settings.GateTTL = 40 * cluster.Second
		holder := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4", "--no-requeue")
		r.waitState(holder, 30*time.Second, "RUNNING")
		r.govern()
		own := []string{"-A", "vision", "--gres=gpu:2"}
		if r.license != "" { // as it comes from a submit plugin that takes this for a gate
			own = append(own, "-L", license+":0", "--begin=now+15")
		}
		waits := r.submit("bob", sleeps(3600), own...)
		submitted := time.Now()
		r.until("the waiting job is gated", 30*time.Second, func() bool { return r.count(cluster.Gate, waits) > 0 })
		if r.license != "" {
			for _, no := range []string{"", license + ":0", license + ":1," + license + ":0"} {
				r.opened(waits, no)
			}
			r.until("only the gate keeps the job", time.Minute, func() bool { return time.Since(submitted) > 17*time.Second })
			r.goesOn(2, time.Minute)
		}
		r.halt()
		until := r.shutUntil(waits)
		if _, err := r.Exec(r.ctx(), "root", "scancel", holder); err != nil {
			t.Fatal(err)
		}
		// A job without a gate starts beside it: so Slurm has looked for jobs to start since the GPUs are free.
		other := r.submit("bob", sleeps(3), "-A", "vision", "--gres=gpu:2", "-p", "free")
		seen := ""
		r.until("a job without a gate has started", 30*time.Second, func() bool {
			s := r.state(other)
			seen = r.state(waits)
			return seen == "RUNNING" || seen == "PENDING" && (s == "RUNNING" || s == "COMPLETED")
		})
		if left := time.Until(until); left <= 0 {
			t.Errorf("the gate had lapsed %v before a job without a gate was seen running: nothing is shown", -left)
		} else if seen != "PENDING" {
			t.Errorf("it does not wait behind its gate, which lapses in %v: %s", left, seen)
		}
		left := time.Now().Add(r.settings.GateTTL.Duration() + 20*time.Second)
		r.waitState(waits, time.Until(left), "RUNNING")

		r.govern()
		behind := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4")
		r.until("the next one is gated", 30*time.Second, func() bool { return r.count(cluster.Gate, behind) > 0 })
		r.halt()
		memory := r.remembered().State
		if done, err := (&daemon.Release{Cluster: r.newClient(), Memory: memory}).Do(r.ctx()); err != nil || len(done.Failed) > 0 {
			t.Fatalf("release: %+v, %v", done, err)
		}
		j, err := r.Job(r.ctx(), behind)
		if err != nil || strings.Contains(j["Licenses"], license) || j["Reason"] == "BeginTime" {
			t.Errorf("after the release: licences %q, %s, %v", j["Licenses"], j["Reason"], err)
		}
		if out, err := r.Exec(r.ctx(), "root", "scontrol", "show", "reservation"); strings.Contains(out, "fairlease") {
			t.Errorf("reservations are left: %s, %v", out, err)
		}
	})
}

// shutUntil gives until when the gate of a job is shut if nobody prolongs it, by Slurm.
func (r *rig) shutUntil(id string) time.Time {
	r.t.Helper()
	var text string
	field := "EndTime="
	if r.license != "" {
		out, err := r.Exec(r.ctx(), "root", "scontrol", "show", "reservation", cluster.GateReservation)
		if err != nil {
			r.t.Fatal(out, err)
		}
		text = out
	} else {
		j, err := r.Job(r.ctx(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		text, field = "EligibleTime="+j["EligibleTime"], "EligibleTime="
	}
	_, rest, _ := strings.Cut(text, field)
	value, _, _ := strings.Cut(rest, " ")
	at, err := time.ParseInLocation("2006-01-02T15:04:05", value, time.Local)
	if err != nil {
		r.t.Fatalf("no end of the gate in %q: %v", text, err)
	}
	return at
}

// opened has its user take a job's gate off, by a request for no such licence, and waits until it is shut again.
func (r *rig) opened(id, licenses string) {
	r.t.Helper()
	before := r.count(cluster.Gate, id)
	if out, err := r.Exec(r.ctx(), "bob", "scontrol", "update", "jobid="+id, "licenses="+licenses); err != nil {
		r.t.Fatal(out, err)
	}
	r.until("the gate is shut again", 30*time.Second, func() bool {
		j, _ := r.Job(r.ctx(), id)
		return r.count(cluster.Gate, id) > before && j["Licenses"] == license+":1"
	})
}

// An administrator takes the licence out of slurm.conf: rounds go on, jobs that ask for it get begin times as their gate and
// start when they are granted a lease. With the licence back, waiting jobs are gated by it again.
func TestLicenseLeavesSlurm(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.license = license
		r.client = r.newClient()
		holder := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:4", "--no-requeue")
		r.waitState(holder, 30*time.Second, "RUNNING")
		r.govern()
		next := r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4", "--no-requeue")
		last := r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
		asks := func(id string) bool {
			j, _ := r.Job(r.ctx(), id)
			return strings.Contains(j["Licenses"], license)
		}
		r.until("both are gated by licence", 30*time.Second, func() bool { return asks(next) && asks(last) })
		line := "Licenses=" + license + ":1000000\n"
		conf := filepath.Join(r.Dir, "conf", "slurm.conf")
		rewrite := func(from, to string) {
			text, err := os.ReadFile(conf)
			if err == nil {
				err = os.WriteFile(conf, []byte(strings.Replace(string(text), from, to, 1)), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Exec(r.ctx(), "root", "scontrol", "reconfigure"); err != nil {
				t.Fatal(err)
			}
		}
		rewrite(line, "# no licences\n")
		r.until("both are gated by begin times", time.Minute, func() bool { return !asks(next) && !asks(last) })
		if _, err := r.Exec(r.ctx(), "root", "scancel", holder); err != nil {
			t.Fatal(err)
		}
		r.until("one is granted a lease and runs", time.Minute, func() bool { return r.state(next) == "RUNNING" || r.state(last) == "RUNNING" })
		rewrite("# no licences\n", line)
		waits := next
		if r.state(next) == "RUNNING" {
			waits = last
		}
		r.until("the other is gated by licence again", time.Minute, func() bool { return asks(waits) })
		if s := r.state(waits); s != "PENDING" {
			t.Errorf("the other job is %s", s)
		}
	})
}
