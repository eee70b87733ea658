package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// trials are the presets that divide models, each with the test of its promises. After a comma comes the value of models.chooser, else
// it is the default.
var trials = []struct {
	name     string
	promises func(*rig)
}{
	{"gavel:las", divides}, {"gavel:las-jobs", divides}, {"gavel:makespan", divides}, {"oef:coop", divides}, {"oef:noncoop", divides},
	{"gandiva-fair", divides}, {"drf", divides},
	{"drf,debt", divides}, {"oef:coop,stride", divides}, {"gavel:las,gavel", divides}, {"oef:noncoop,oef", divides}, {"gandiva-fair,paper", divides},
	{"gavel:ftf", finishesAlike}, {"gavel:fifo", firstComeFirst}, {"gavel:sjf", shortestFirst}, {"gavel:cost", cheapestAlone},
	{"oef:coop,nearest,cells", dividesCells}, {"drf,debt,cells", dividesCells}, {"gandiva-fair:no-trade,stride,cells", dividesCells},
	{"gavel:las,gavel,cells", dividesCells}, {"oef:noncoop,oef,cells", dividesCells},
}

// allTrials names the trials on each Slurm version.
func allTrials() (names []string) {
	for _, x := range trials {
		for _, suite := range testcluster.Suites {
			names = append(names, x.name+"/"+suite)
		}
	}
	return names
}

// inTurn gives the trials that run: a fifth of them, another one on each of five days, since each takes minutes. chosen is all, or the name
// of a trial with or without a Slurm version.
func inTurn(chosen string, day time.Time) []string {
	at := -1
	return slices.DeleteFunc(allTrials(), func(name string) bool {
		at++
		if chosen == "" {
			return (at+day.YearDay())%5 != 0
		}
		return chosen != "all" && chosen != name && !strings.HasPrefix(name, chosen+"/")
	})
}

// Each preset that divides models keeps its promises on a real Slurm, under each models.chooser, and in virtual clusters. The environment
// variable FAIRLEASE_PRESETS says which trials run; see inTurn.
func TestPresets(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	turn := inTurn(os.Getenv("FAIRLEASE_PRESETS"), now)
	t.Logf("on day %d of the year the turn is that of %s; FAIRLEASE_PRESETS=all runs all, FAIRLEASE_PRESETS=NAME one", now.YearDay(), strings.Join(turn, " "))
	if len(turn) == 0 {
		t.Fatalf("no trial has the name FAIRLEASE_PRESETS=%s: choose all or one of %s", os.Getenv("FAIRLEASE_PRESETS"), strings.Join(allTrials(), " "))
	}
	o := testcluster.Options{Plugin: testcluster.PluginC, Accounts: []testcluster.Account{
		{Name: "nlp", Shares: 1, Users: []string{"alice"}}, {Name: "vision", Shares: 1, Users: []string{"bob"}}, {Name: "speech", Shares: 2, Users: []string{"carol"}}}}
	for _, name := range turn {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trial, suite, _ := strings.Cut(name, "/")
			r := newRig(t, suite, usual[suite], o)
			words := strings.Split(trial, ",")
			s := &r.settings
			s.Preset, s.Divide, s.DivideJobs, s.DivideEvery = words[0], words[0], preset.OfJobs(words[0]), 10
			if len(words) > 1 {
				s.Mechanism = preset.Mechanism(words[0], words[1])
			}
			r.divide = engine.Divide
			for _, x := range trials {
				if x.name == trial {
					x.promises(r)
				}
			}
		})
	}
}

// Within five days each trial has one turn, and each value of models.chooser is tried with and without virtual clusters.
func TestPresetsTakeTurns(t *testing.T) {
	day, turns := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), map[string]int{}
	for range 5 {
		for _, name := range inTurn("", day) {
			turns[name]++
		}
		day = day.AddDate(0, 0, 1)
	}
	for _, name := range allTrials() {
		if turns[name] != 1 {
			t.Errorf("%s has %d turns in five days", name, turns[name])
		}
	}
	for chosen, want := range map[string]int{"all": len(allTrials()), "drf": 2, "drf,debt/forky": 1, "dr": 0} {
		if is := inTurn(chosen, day); len(is) != want {
			t.Errorf("FAIRLEASE_PRESETS=%s runs %v, want %d", chosen, is, want)
		}
	}
	all := strings.Join(allTrials(), " ")
	for _, chooser := range append([]string{preset.Paper}, cluster.Mechanisms...) {
		if chooser != cluster.Nearest && !strings.Contains(all, ","+chooser+"/") || chooser != preset.Paper && !strings.Contains(all, ","+chooser+",cells/") {
			t.Errorf("no trial of models.chooser: %s, or none in virtual clusters", chooser)
		}
	}
}

// speedups is what a v100 is worth to jobs of each type, in k80s. Each tenant has a type with its name.
var speedups = map[string]int{"nlp": 4, "vision": 1, "speech": 2, "lstm": 4, "bert": 2, "vae": 1}

// enter submits a job of a tenant that holds its GPUs and declares its type and speeds, and gives its id.
func (r *rig) enter(tenant, kind string, gpus int, args ...string) string {
	r.t.Helper()
	user := map[string]string{"nlp": "alice", "vision": "bob", "speech": "carol"}[tenant]
	return r.submit(user, sleeps(3600), append([]string{"-A", tenant, fmt.Sprintf("--gres=gpu:%d", gpus),
		fmt.Sprintf("--comment=kind=%s,steps/s.k80=10,steps/s.v100=%d", kind, 10*speedups[kind])}, args...)...)
}

// enterMixed submits gangs of all tenants, each tenant's of one type, for more GPUs than there are. It gives their ids by tenant.
func (r *rig) enterMixed() map[string][]string {
	r.t.Helper()
	jobs := map[string][]string{}
	for _, gang := range []int{1, 1, 1, 1, 1, 2, 2, 4} {
		for _, tenant := range []string{"nlp", "vision", "speech"} {
			jobs[tenant] = append(jobs[tenant], r.enter(tenant, tenant, gang))
		}
	}
	return jobs
}

// course is a number of terms that are over.
type course struct {
	span          float64                       // seconds
	ran           map[string]map[string]float64 // GPU-seconds by job and model, as Slurm accounts for them
	before, after cluster.Plan
}

// terms lets so many terms pass.
func (r *rig) terms(n int) course {
	r.t.Helper()
	return r.measure(n, 3)
}

// measure lets so many terms pass, and again, in so many tries at most, if the machine stood still meanwhile: then nobody got what it was due.
func (r *rig) measure(n, tries int) (c course) {
	r.t.Helper()
	span, ran, began := time.Duration(n)*r.settings.Term.Duration(), r.ran(), time.Now()
	c.before = r.plan()
	looked, stood := began, time.Duration(0)
	r.until(fmt.Sprint(n, " terms are over"), span+time.Minute, func() bool {
		stood, looked = max(stood, time.Since(looked)), time.Now()
		return time.Since(began) >= span
	})
	if stood > r.settings.Term.Duration()/4 && tries > 1 {
		r.t.Logf("this machine stood still for %s: these terms are measured again", stood.Round(time.Second))
		return r.measure(n, tries-1)
	}
	c.after, c.ran, c.span = r.plan(), r.ran(), time.Since(began).Seconds()
	for id, on := range ran {
		for model, before := range on {
			c.ran[id][model] -= before
		}
	}
	return c
}

// ran gives the GPU-seconds that each job has run on each model in all its attempts, as slurmdbd has them.
func (r *rig) ran() map[string]map[string]float64 {
	r.t.Helper()
	out, err := r.Exec(r.ctx(), "root", "sacct", "-a", "-D", "-X", "-n", "-P", "-S", "now-1days", "-o", "jobid,elapsedraw,alloctres")
	if err != nil {
		r.t.Fatal(err)
	}
	ran := map[string]map[string]float64{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 3 {
			continue
		}
		if ran[f[0]] == nil {
			ran[f[0]] = map[string]float64{}
		}
		seconds, _ := strconv.Atoi(f[1])
		for tres := range strings.SplitSeq(f[2], ",") {
			if of, ok := strings.CutPrefix(tres, "gres/gpu:"); ok {
				model, n, _ := strings.Cut(of, "=")
				gpus, _ := strconv.Atoi(n)
				ran[f[0]][model] += float64(seconds * gpus)
			}
		}
	}
	return ran
}

// sum gives the GPU-seconds of jobs on a model.
func (c *course) sum(ids []string, model string) (sum float64) {
	for _, id := range ids {
		sum += c.ran[id][model]
	}
	return sum
}

// Three tenants with gangs and different speedups share two models for a dozen terms. Every tenant gets on each model what the policy
// promises it and what it was owed when the terms began. Every job is served, and none is lost.
func divides(r *rig) {
	r.shut()
	jobs := r.enterMixed()
	r.govern()
	r.terms(2) // the first leases are granted before the policy has answered
	c := r.terms(12)
	r.halt()
	c.paysDues(r)
	r.served(jobs)
}

// off gives by how many GPU-milliseconds a claimant may be off what it is due: a term of a gang of 4, with a hand-over, and under choosers that
// take one job after the other a term of so many of them.
func (r *rig) off(gangs int) cluster.GPUTime {
	if m := r.settings.Mechanism; m == "" || m == cluster.Nearest {
		gangs = 1
	}
	return cluster.Times(4*gangs, r.settings.Term+2*cluster.Second)
}

// paysDues checks that each tenant got on each model what it was due, within a tenth of its whole due or, where that is little, within what
// off gives.
func (c *course) paysDues(r *rig) {
	r.t.Helper()
	owed := map[[2]string]cluster.GPUTime{}
	for _, s := range c.before.Tenants {
		owed[[2]string{s.Tenant, s.Pool}] = s.Owed
	}
	before, after := c.before.State.Ledger.Tenants, c.after.State.Ledger.Tenants
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
		r.t.Logf("%s got %.0f of %.0f GPU-s on %s", row.Tenant, float64(got)/1000, float64(its)/1000, row.Pool)
		if off := max(got-its, its-got); off > max(due[row.Tenant]/10, r.off(4)) {
			r.t.Errorf("%s got %.0f GPU-s on %s and was due %.0f: too far apart, with %.0f due in all", row.Tenant,
				float64(got)/1000, row.Pool, float64(its)/1000, float64(due[row.Tenant])/1000)
		}
	}
}

// served checks that every job had a lease, and that none is lost. With cells, and under choosers other than the default, a gang may wait
// until it is due one and a half terms of its GPUs.
func (r *rig) served(jobs map[string][]string) {
	r.t.Helper()
	patient := r.settings.Mechanism != "" || r.rules.Cells != nil
	for rec := range r.plan().State.All() {
		due, _ := cluster.DueBy(rec, r.plan().At)
		if rec.Terms == 0 && (!patient || due >= cluster.Times(r.lastCase(rec.ID.String()).Job.Request.Size.Devices, r.settings.Term*3/2)) {
			r.t.Errorf("job %s of %s was never served, and was due %d GPU-s", rec.ID, rec.Tenant, due/1000)
		}
	}
	for _, ids := range jobs {
		r.keepsAll(ids)
	}
}
