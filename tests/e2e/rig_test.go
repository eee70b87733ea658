// Package e2e governs a real Slurm with the real loop, engine and client, and
// looks at what users and administrators would see.
package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
	"github.com/fairlease/fairlease/tests/decisions"
)

// license is what Slurm's configuration has for gates.
const license = "fairlease"

// gates are both kinds of gates, with the licence that each asks for.
var gates = []struct{ name, license string }{{"licence", license}, {"begin times", ""}}

// usual is the gate on either Slurm version where a test does not ask for both.
var usual = map[string]string{"trixie": "", "forky": license}

// rig is a real Slurm under the loop, with short terms.
type rig struct {
	*testcluster.Cluster
	t       *testing.T
	suite   string
	over    loop.Cluster // the loop's view of the Slurm; nil = client
	license string       // by which its client, its program and its submit plugin gate jobs; "" = begin times
	client  *slurm.Client
	dsn     string

	mu       sync.Mutex
	settings cluster.Settings
	divide   func(cluster.AllocationRequest) cluster.Allocation // nil = no policy
	rules    loop.Rules
	turns    int // that did not fail
	last     cluster.Plan
	actions  []cluster.Action
	outcomes []cluster.Outcome
	failed   map[cluster.Verb]int // actions; the first three of a verb are logged
	told     map[string]int       // events, by kind
	cases    []cluster.Case       // of the last snapshot
	ended    []cluster.Lease
	errors   []error
	stop     func()
	keep     func(cluster.Snapshot, *loop.Breakdown) // nil = a breakdown of the engine ends the tests
}

// short gives settings with terms of term seconds and a turn about every second: not just a second, for Slurm's times are whole
// ones, and what they cut off would be the same in every attempt.
func short(term int) cluster.Settings {
	return cluster.Settings{
		Preset: "astraea", Interval: 1037, Term: cluster.Span(term) * cluster.Second,
		MinLease: 6 * cluster.Second, Notice: 3 * cluster.Second, GrantTimeout: 15 * cluster.Second,
		GateTTL: 2 * cluster.Minute, RhoSelect: 16, CreditCap: 2 * cluster.Minute,
		BurstMaxMilli: 2000, Window: 14 * cluster.Day, Threshold: cluster.Second, NewFirst: true, NewSharePercent: 50,
		Signal: "USR1", SignalTo: "steps", SiteFactor: 1_000_000,
	}
}

// longTerm gives a term of at least ten minutes. None ends within the next six: the ends of terms are by the clock.
func longTerm() cluster.Span {
	now, term := cluster.Span(cluster.InstantOf(time.Now())), 10*cluster.Minute
	for term-now%term < 6*cluster.Minute {
		term += cluster.Minute
	}
	return term
}

// onBoth runs a test on both Slurm versions at the same time, on each with its usual gate.
func onBoth(t *testing.T, o testcluster.Options, run func(t *testing.T, r *rig)) {
	t.Parallel()
	for _, suite := range testcluster.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			run(t, newRig(t, suite, usual[suite], o))
		})
	}
}

// onBothGates runs a test with both gates on both Slurm versions, all at the same time.
func onBothGates(t *testing.T, o testcluster.Options, run func(t *testing.T, r *rig)) {
	t.Parallel()
	for _, suite := range testcluster.Suites {
		for _, gate := range gates {
			t.Run(suite+"/"+gate.name, func(t *testing.T) {
				t.Parallel()
				run(t, newRig(t, suite, gate.license, o))
			})
		}
	}
}

func newRig(t *testing.T, suite, gate string, o testcluster.Options) *rig {
	t.Helper()
	clusters.wait(t)
	o.Suite = suite
	if o.PluginConf == "" {
		o.PluginConf = testcluster.PluginConf + "gate_license=" + gate + "\n"
	}
	if with := "Licenses=" + license + ":1000000"; strings.Contains(o.ExtraConf, "Licenses=") {
		o.ExtraConf = strings.Replace(o.ExtraConf, "Licenses=", with+",", 1)
	} else {
		o.ExtraConf += with + "\n"
	}
	r := &rig{Cluster: testcluster.ForTest(t, o), t: t, suite: suite, license: gate, failed: map[cluster.Verb]int{}, told: map[string]int{}, settings: short(20), dsn: storetest.Database(t),
		rules: loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}}
	r.client = r.newClient()
	return r
}

func (r *rig) newClient(changes ...func(*slurm.Config)) *slurm.Client {
	r.t.Helper()
	with := slurm.Config{Address: "unix://" + r.RestSocket(), Scontrol: r.Scontrol(), License: r.license, FullEvery: 10 * time.Second, SiteFactor: short(20).SiteFactor}
	for _, change := range changes {
		change(&with)
	}
	c, err := slurm.New(with)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

// loop gives the loop over a Slurm, with a lead in the journal.
func (r *rig) loop(over loop.Cluster, lead *store.Leadership) *loop.Loop {
	r.t.Helper()
	decide := decisions.Sampled(r.t, simtest.Checked(r.t))
	return &loop.Loop{Cluster: over, Journal: lead.Journal(), Decide: func(s cluster.Snapshot) cluster.Plan {
		r.mu.Lock()
		r.cases = s.Cases
		r.mu.Unlock()
		return decide(s)
	}, Divide: r.divide, Keep: r.keep,
		Configure: func() (loop.Rules, cluster.Settings) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.rules, r.settings
		}}
}

// govern starts the loop: a turn every interval, until halt or the end of the test.
func (r *rig) govern() {
	r.t.Helper()
	lead := r.lead()
	over := cmp.Or[loop.Cluster](r.over, r.client)
	l := r.loop(over, lead)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(r.settings.Interval.Duration())
		defer tick.Stop()
		for ctx.Err() == nil {
			report, err := l.Turn(ctx)
			r.note(report, err, ctx)
			r.beat(err)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	r.stop = func() {
		cancel()
		<-ended
		if err := lead.Resign(context.Background()); err != nil {
			r.t.Logf("resign: %v", err)
		}
	}
	r.t.Cleanup(r.halt)
}

// beat tells the submit plugin, if there is one, that somebody looks after its jobs.
func (r *rig) beat(err error) {
	if err != nil || r.Options.Plugin != testcluster.PluginC {
		return
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	if err := os.WriteFile(filepath.Join(r.HeartbeatDir(), "gpu"), []byte(now+"\n"), 0o644); err != nil {
		r.t.Error(err)
	}
}

// shut lets the loop run until the submit plugin, which the test needs, gates jobs, and halts it: no job that is submitted next
// starts before govern is called.
func (r *rig) shut() {
	r.t.Helper()
	r.govern()
	r.heard()
	if r.license != "" {
		r.until("the gate's licences are kept", time.Minute, func() bool { return r.count(cluster.Lock, "") > 0 })
	}
	r.halt()
}

// heard waits for the first sign of life that the submit plugin needs.
func (r *rig) heard() {
	r.t.Helper()
	r.until("the first heartbeat", 20*time.Second, func() bool {
		_, err := os.Stat(filepath.Join(r.HeartbeatDir(), "gpu"))
		return err == nil
	})
}

// lead takes the lead in the journal, once whoever had it is gone for good.
func (r *rig) lead() *store.Leadership {
	r.t.Helper()
	s, err := store.Open(r.ctx(), store.Config{DSN: r.dsn, Takeover: 3 * time.Second})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.Close)
	var lead *store.Leadership
	r.until("the lead is free", 20*time.Second, func() bool {
		lead, err = s.Acquire(r.ctx(), r.t.Name())
		return err == nil
	})
	return lead
}

// halt ends the loop after its present turn, as if the sidecar had stopped.
func (r *rig) halt() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

func (r *rig) note(report loop.Report, err error, ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			r.errors = append(r.errors, err)
			r.t.Logf("turn: %v", err)
		}
		return
	}
	r.turns++
	if report.Quiet {
		return
	}
	r.last = report.Plan
	for _, e := range report.Plan.Events {
		r.told[e.Kind]++
	}
	r.ended = append(r.ended, report.Plan.Ended...)
	for i, a := range report.Plan.Actions {
		r.actions, r.outcomes = append(r.actions, a), append(r.outcomes, report.Outcomes[i])
		if o := report.Outcomes[i]; !o.OK && !o.Skipped {
			if r.failed[a.Verb]++; r.failed[a.Verb] <= 3 {
				r.t.Logf("%s of job %s: %s", a.Verb, a.ID, o.Error)
			}
		}
	}
}

// goesOn waits until the loop has made so many turns more, quiet ones too.
func (r *rig) goesOn(turns int, limit time.Duration) {
	r.t.Helper()
	made := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.turns
	}
	before := made()
	r.until("rounds go on", limit, func() bool { return made() >= before+turns })
}

// plan gives the last plan that was not quiet.
func (r *rig) plan() cluster.Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// lastCase gives a job as the last round saw it. Where that round was made before the job was submitted it waits for one that sees it.
func (r *rig) lastCase(id string) (last cluster.Case) {
	r.t.Helper()
	r.until("a round sees job "+id, 20*time.Second, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i := range r.cases {
			if r.cases[i].Job.ID.String() == id {
				last = r.cases[i]
				return true
			}
		}
		return false
	})
	return last
}

// count counts actions of a verb on a job that were carried out ("" = any job).
func (r *rig) count(verb cluster.Verb, id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for i, a := range r.actions {
		if a.Verb == verb && r.outcomes[i].OK && (id == "" || a.ID.String() == id) {
			n++
		}
	}
	return n
}

// inVain describes the grants that were taken back.
func (r *rig) inVain() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, a := range r.actions {
		if a.Verb != cluster.RevokeGrant || a.Reason.Code == cluster.ReasonTidy || !r.outcomes[i].OK {
			continue
		}
		why := ""
		for k := range r.cases {
			if j := &r.cases[k].Job; j.ID == a.ID {
				why = fmt.Sprintf(", Slurm's reason is now %q", j.PendingReason)
			}
		}
		out = append(out, fmt.Sprintf("job %s: %+v%s", a.ID, a.Reason, why))
	}
	return out
}

func (r *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	r.t.Cleanup(cancel)
	return ctx
}

// submit queues a job that ends by itself after so many seconds of work.
func (r *rig) submit(user, script string, args ...string) string {
	r.t.Helper()
	id, err := r.Sbatch(r.ctx(), user, script, append([]string{"-t", "60"}, args...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// sleeps is a job that just holds its GPUs; exec, so that TERM ends it at once.
func sleeps(seconds int) string { return fmt.Sprintf("#!/bin/bash\nexec sleep %d\n", seconds) }

// until waits for a condition, with a deadline.
func (r *rig) until(what string, limit time.Duration, ok func() bool) {
	r.t.Helper()
	r.poll(what, limit, 200*time.Millisecond, ok)
}

// poll waits for a condition, with a deadline, and looks again after each pause.
func (r *rig) poll(what string, limit, pause time.Duration, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			r.dump()
			r.t.Fatalf("not within %s: %s", limit, what)
		}
		time.Sleep(pause)
	}
}

// dump shows what the loop and Slurm think, when a test has failed.
func (r *rig) dump() {
	queue, _ := r.Exec(r.ctx(), "root", "squeue", "-a", "-t", "all", "-o", "%i %a %u %T %r %R %b %S %e %V")
	r.t.Logf("squeue:\n%s", queue)
	p := r.plan()
	for _, l := range p.State.Leases {
		r.t.Logf("lease %+v", l)
	}
	for _, v := range p.Statuses {
		r.t.Logf("status %+v", v)
	}
	for _, s := range p.Tenants {
		r.t.Logf("tenant %+v", s)
	}
}

// state gives a job's state in Slurm.
func (r *rig) state(id string) string {
	r.t.Helper()
	j, err := r.Job(r.ctx(), id)
	if err != nil {
		return ""
	}
	return j["JobState"]
}

// waitState waits until a job is in one of the states. Each look starts scontrol inside the sandbox, and sixteen tests that looked as often as
// until does would keep half a core busy.
func (r *rig) waitState(id string, limit time.Duration, states ...string) {
	r.t.Helper()
	r.poll("job "+id+" is "+strings.Join(states, " or "), limit, 500*time.Millisecond, func() bool { return slices.Contains(states, r.state(id)) })
}

// halves waits until nlp and vision have each held half of the GPUs, together or one after the other: what a tenant missed
// while nobody led it gets in a later term, and the other then holds less than its half.
func (r *rig) halves(half int, limit time.Duration, held func(tenant string) int) {
	r.t.Helper()
	var nlp, vision bool
	r.until("both tenants get their half", limit, func() bool {
		nlp, vision = nlp || held("nlp") >= half, vision || held("vision") >= half
		return nlp && vision
	})
}

// keepsAll fails unless all jobs run or wait, once those that are being requeued (COMPLETING) are queued again.
func (r *rig) keepsAll(ids []string) {
	r.t.Helper()
	for _, id := range ids {
		r.waitState(id, 30*time.Second, "RUNNING", "PENDING")
	}
}

// used gives what a tenant has received and was due since the loop began, over all pools.
func (r *rig) used(tenant string) (alloc, due cluster.GPUTime) {
	for _, row := range r.plan().State.Ledger.Tenants {
		if row.Tenant == tenant {
			alloc, due = alloc+row.Alloc, due+row.Due
		}
	}
	return alloc, due
}

// holds gives how many GPUs a tenant holds now, by the ledger's standing.
func (r *rig) holds(tenant string) int { return held(r.plan(), tenant) }

// held gives how many GPUs a tenant held in a round, by the ledger's standing.
func held(p cluster.Plan, tenant string) int {
	n := 0
	for _, s := range p.Tenants {
		if s.Tenant == tenant {
			n += s.Holds.Ceil()
		}
	}
	return n
}

// accounted gives the GPU-seconds of an account, or of one of its users, as slurmdbd has them, over all attempts that
// started after since.
func (r *rig) accounted(account string, since time.Time, users ...string) float64 {
	r.t.Helper()
	argv := []string{"sacct", "-D", "-X", "-n", "-P", "-A", account, "-S", since.Format("2006-01-02T15:04:05"), "-o", "jobid,state,elapsedraw,alloctres"}
	if len(users) == 0 {
		argv = append(argv, "-a")
	} else {
		argv = append(argv, "-u", strings.Join(users, ","))
	}
	out, err := r.Exec(r.ctx(), "root", argv...)
	if err != nil {
		r.t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4 {
			continue
		}
		seconds, _ := strconv.Atoi(f[2])
		sum += float64(seconds * testcluster.GPUsOf(f[3]))
	}
	return sum
}

// nextSecond waits for the next whole second. Slurm's times are whole seconds: a job that is submitted in the second of
// the last look may seem to have begun before that look, where nothing is charged any more.
func (r *rig) nextSecond() {
	r.t.Helper()
	now := time.Now().Unix()
	r.until("the next second", 5*time.Second, func() bool { return time.Now().Unix() > now })
}

// output reads a file from a user's home.
func (r *rig) output(user, name string) string {
	b, err := os.ReadFile(filepath.Join(r.Home(user), name))
	if err != nil {
		return ""
	}
	return string(b)
}
