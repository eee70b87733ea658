package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// A family of presets is tested by one of them on one Slurm version, since a dozen terms take minutes; FAIRLEASE_PRESETS=all
// tests all on both.
var onSlurm = []struct{ preset, suite string }{
	{"gavel:las", "trixie"}, {"gavel:hierarchical", "forky"}, {"gavel:makespan", "trixie"},
	{"oef:coop", "forky"}, {"oef:noncoop", "trixie"}, {"gandiva-fair", "forky"}, {"drf", "trixie"},
}

// Three tenants with gangs and different speedups share two models for a dozen terms under each preset that divides
// models. Every tenant gets on each model what the policy promises it, within a tenth of its whole due; every job is served,
// and none is lost.
func TestPresets(t *testing.T) {
	t.Parallel()
	o := testcluster.Options{Plugin: testcluster.PluginC, Accounts: []testcluster.Account{
		{Name: "nlp", Shares: 1, Users: []string{"alice"}}, {Name: "vision", Shares: 1, Users: []string{"bob"}}, {Name: "speech", Shares: 2, Users: []string{"carol"}}}}
	for _, x := range onSlurm {
		for _, suite := range testcluster.Suites {
			if suite != x.suite && os.Getenv("FAIRLEASE_PRESETS") != "all" {
				continue
			}
			t.Run(x.preset+"/"+suite, func(t *testing.T) {
				t.Parallel()
				divides(newRig(t, suite, usual[suite], o), x.preset)
			})
		}
	}
}

// divides lets a preset divide a cluster for a dozen terms.
func divides(r *rig, name string) {
	r.settings.Preset, r.settings.Divide, r.settings.DivideJobs, r.settings.DivideEvery = name, name, preset.OfJobs(name), 10
	r.divide = engine.Divide
	var jobs []string
	for _, gang := range []int{1, 1, 1, 1, 1, 2, 2, 4} {
		for user, of := range map[string]struct {
			account string
			fast    int // steps/s on a v100, one on a k80
		}{"alice": {"nlp", 4}, "bob": {"vision", 1}, "carol": {"speech", 2}} {
			jobs = append(jobs, r.submit(user, sleeps(3600), "-A", of.account, fmt.Sprintf("--gres=gpu:%d", gang),
				fmt.Sprintf("--comment=kind=%s,steps/s.k80=10,steps/s.v100=%d", of.account, 10*of.fast)))
		}
	}
	r.govern()
	r.heard()
	began := time.Now()
	r.until("a dozen terms are over", 15*r.settings.Term.Duration(), func() bool { return time.Since(began) >= 12*r.settings.Term.Duration() })
	r.halt()
	plan := r.plan()
	due := map[string]cluster.GPUTime{}
	for _, row := range plan.State.Ledger.Tenants {
		due[row.Tenant] += row.Due
	}
	for _, row := range plan.State.Ledger.Tenants {
		r.t.Logf("%s: %s got %.0f of %.0f GPU-s on %s", name, row.Tenant, float64(row.Alloc)/1000, float64(row.Due)/1000, row.Pool)
		if off := max(row.Alloc-row.Due, row.Due-row.Alloc); off > due[row.Tenant]/10 {
			r.t.Errorf("%s: %s got %.0f GPU-s on %s and was due %.0f: more than a tenth of its %.0f in all", name, row.Tenant,
				float64(row.Alloc)/1000, row.Pool, float64(row.Due)/1000, float64(due[row.Tenant])/1000)
		}
	}
	for _, rec := range plan.State.Records {
		if rec.Terms == 0 {
			r.t.Errorf("%s: job %s of %s was never served", name, rec.ID, rec.Tenant)
		}
	}
	r.keepsAll(jobs)
}
