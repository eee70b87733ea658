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

// Each preset is tested on one Slurm version, since a dozen terms take minutes; FAIRLEASE_PRESETS=all tests all on both.
var onSlurm = []struct{ preset, suite string }{
	{"gavel:las", "trixie"}, {"gavel:las-jobs", "forky"}, {"gavel:makespan", "forky"},
	{"oef:coop", "forky"}, {"oef:noncoop", "trixie"}, {"gandiva-fair", "forky"}, {"drf", "trixie"},
}

// Three tenants with gangs and different speedups share two models for a dozen terms under each preset that divides
// models. Every tenant gets on each model what the policy promises it and what it was owed when the terms began, within a
// tenth of its whole due or, where that is little, a term of its largest gang. Every job is served, and none is lost.
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
	r.shut()
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
	terms := func(n int) []cluster.TenantPool {
		began, span := time.Now(), time.Duration(n)*r.settings.Term.Duration()
		r.until(fmt.Sprint(n, " terms are over"), span+time.Minute, func() bool { return time.Since(began) >= span })
		return r.plan().State.Ledger.Tenants
	}
	before := terms(2) // the first leases are granted before the policy has answered
	owed := map[[2]string]cluster.GPUTime{}
	for _, s := range r.plan().Tenants {
		owed[[2]string{s.Tenant, s.Pool}] = s.Owed
	}
	after := terms(12)
	r.halt()
	plan := r.plan()
	due := map[string]cluster.GPUTime{}
	for i := range after {
		due[after[i].Tenant] += after[i].Due - before[i].Due
	}
	for i := range after {
		row := &after[i]
		got, its := row.Alloc-before[i].Alloc, row.Due-before[i].Due
		if its > 0 { // else nothing is repaid on this model
			its += owed[[2]string{row.Tenant, row.Pool}]
		}
		r.t.Logf("%s: %s got %.0f of %.0f GPU-s on %s", name, row.Tenant, float64(got)/1000, float64(its)/1000, row.Pool)
		gang := cluster.Times(4, r.settings.Term+2*cluster.Second) // with a hand-over
		if off := max(got-its, its-got); off > max(due[row.Tenant]/10, gang) {
			r.t.Errorf("%s: %s got %.0f GPU-s on %s and was due %.0f: too far apart, with %.0f due in all", name, row.Tenant,
				float64(got)/1000, row.Pool, float64(its)/1000, float64(due[row.Tenant])/1000)
		}
	}
	for _, rec := range plan.State.Records {
		if rec.Terms == 0 {
			r.t.Errorf("%s: job %s of %s was never served", name, rec.ID, rec.Tenant)
		}
	}
	r.keepsAll(jobs)
}
