package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/store/storetest"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// runs is a training run on one GPU with given steps/s on a k80 and on a v100. It saves after
// each second, and reports its progress in its owner's folder, as jobs do whose nodes do not
// reach the daemon. A report appears in one step. Steps follow the clock, so that their number
// does not depend on the load of the machine that the nodes share.
const runs = `#!/bin/bash
#SBATCH --open-mode=append
case $SLURMD_NODENAME in k*) rate=%d;; v*) rate=%d;; esac
saved=$(cat steps.$SLURM_JOB_ID 2>/dev/null || echo 0)
SECONDS=0
while :; do
  sleep 1
  steps=$((saved+rate*SECONDS))
  echo $steps > .steps.$SLURM_JOB_ID && mv .steps.$SLURM_JOB_ID steps.$SLURM_JOB_ID
  echo "{\"job\": \"$SLURM_JOB_ID\", \"steps\": $steps}" > .report.$SLURM_JOB_ID && mv .report.$SLURM_JOB_ID $SLURM_JOB_ID.json
done
`

// marketplace is two tenants: for one a v100 is four times as fast as a k80, for the other
// equally fast.
type marketplace struct {
	*site
	jobs map[string][]string // by user
}

// done gives the steps that all jobs of a user have done.
func (m *marketplace) done(user string) int {
	n := 0
	for _, id := range m.jobs[user] {
		steps, _ := strconv.Atoi(strings.TrimSpace(m.output(user, "steps."+id)))
		n += steps
	}
	return n
}

// rates gives the steps a second of both users over three terms.
func (m *marketplace) rates() (alice, bob float64) {
	m.t.Helper()
	const span = time.Minute
	a, b, since := m.done("alice"), m.done("bob"), time.Now()
	m.until("three terms are over", 2*span, func() bool { return time.Since(since) >= span })
	seconds := time.Since(since).Seconds()
	return float64(m.done("alice")-a) / seconds, float64(m.done("bob")-b) / seconds
}

// on gives how many GPUs of a model a tenant's leases in force have.
func (m *marketplace) on(tenant, model string) int {
	m.t.Helper()
	n, err := strconv.Atoi(m.ask("select coalesce(sum(l.gpus), 0)::bigint from fairlease.leases l join fairlease.jobs j on j.key = l.job_key where j.tenant || ' ' || l.pool = $1 and l.ended_at is null and l.state = 'active'", tenant+" "+model))
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

// Two tenants with opposite speedups, known only from their jobs' own reports: trading raises the
// steps/s of both against the same jobs without it, and when one leaves its trades are reverted
// within one term.
func TestTradingRaisesBoth(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{
		{Prefix: "k", Count: 3, Model: "k80", GPUs: 4}, {Prefix: "v", Count: 1, Model: "v100", GPUs: 4}}, Plugin: testcluster.PluginC}
	onBoth(t, o, func(t *testing.T, r *rig) {
		m := &marketplace{site: &site{rig: r, jobs: map[string]string{}}, jobs: map[string][]string{}}
		with := func(preset string) string {
			return fmt.Sprintf("preset: %s\nmodels: {progress: {folder: %s}}\n", preset, filepath.Dir(r.Home("alice")))
		}
		m.config = r.configure(with("gandiva-fair:no-trade"))
		m.end = r.serve(m.config)
		m.db = storetest.Connect(t, r.dsn)
		r.heard()
		for range 12 {
			m.jobs["alice"] = append(m.jobs["alice"], r.submit("alice", fmt.Sprintf(runs, 10, 40), "-A", "nlp", "--gres=gpu:1", "--comment=kind=lstm,saves=1s"))
			m.jobs["bob"] = append(m.jobs["bob"], r.submit("bob", fmt.Sprintf(runs, 10, 10), "-A", "vision", "--gres=gpu:1", "--comment=kind=vae,saves=1s"))
		}
		r.until("both kinds are known on both models", 5*time.Minute, func() bool {
			return m.ask("select count(*) from fairlease.profiles where source = $1 and samples >= 3", "observed") == "4"
		})
		aliceAlone, bobAlone := m.rates()
		text, err := os.ReadFile(m.config)
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.Replace(string(text), "preset: gandiva-fair:no-trade", "preset: gandiva-fair", 1))
		if err := os.WriteFile(m.config, text, 0o600); err != nil {
			t.Fatal(err)
		}
		m.end(syscall.SIGHUP)
		r.until("a has what it bought", 2*time.Minute, func() bool { return m.on("nlp", "v100") == 4 && m.on("vision", "k80") >= 10 })
		alice, bob := m.rates()
		t.Logf("steps a second: nlp %.1f without trading, %.1f with it; vision %.1f and %.1f", aliceAlone, alice, bobAlone, bob)
		gain := 100 * min(alice/aliceAlone-1, bob/bobAlone-1)
		t.Logf("trade_gain_pct %.1f", gain)
		if gain < 5 {
			t.Errorf("the tenant that gains least gains %.1f %%", gain)
		}
		for _, id := range m.jobs["alice"] {
			if out, err := r.Exec(r.ctx(), "root", "scancel", id); err != nil {
				t.Fatal(out, err)
			}
		}
		left := time.Now()
		r.until("its trades are undone within a term, and vision has all that is left", 20*time.Second, func() bool {
			return m.ask("select count(*) from fairlease.trades where undone_at is null") == "0" && m.on("vision", "k80")+m.on("vision", "v100") == 12
		})
		t.Logf("undone after %s", time.Since(left).Round(time.Second))
	})
}
