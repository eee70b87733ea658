package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// status gives the last reason for a job; it has no code before the job was seen.
func (r *rig) status(id string) cluster.Reason {
	p := r.plan()
	for rec := range p.State.All() {
		if rec.ID.String() != id {
			continue
		}
		for _, v := range p.Statuses {
			if v.Job == rec.Key {
				return v.Reason
			}
		}
	}
	return cluster.Reason{}
}

// The user's own --begin is kept: nothing is granted before it, and it is not lost.
func TestUsersBeginIsKept(t *testing.T) {
	onBothGates(t, testcluster.Options{}, func(t *testing.T, r *rig) {
		id := r.submit("alice", sleeps(1), "--gres=gpu:1", "--begin=now+25")
		at := func(key string) time.Time {
			j, _ := r.Job(r.ctx(), id)
			at, err := time.ParseInLocation("2006-01-02T15:04:05", j[key], time.Local)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		begin := at("EligibleTime") // that sbatch worked out, when it ran
		r.govern()
		r.waitState(id, time.Minute, "RUNNING", "COMPLETED")
		start := at("StartTime")
		if start.Before(begin) || start.After(begin.Add(15*time.Second)) {
			t.Errorf("started at %s, the user said %s", start, begin)
		}
	})
}

// A node without CPUs or memory to spare gets no grant, however many GPUs are idle.
func TestShortageOfCPUsAndMemory(t *testing.T) {
	onBoth(t, testcluster.Options{}, func(t *testing.T, r *rig) {
		r.submit("carol", sleeps(600), "-p", "free", "-w", "v1", "-c", "15", "--mem=1000")
		r.submit("carol", sleeps(600), "-p", "free", "-w", "v2", "--mem=63000")
		r.until("the CPU jobs run", 30*time.Second, func() bool {
			out, _ := r.Exec(r.ctx(), "root", "squeue", "-h", "-t", "R")
			return strings.Count(out, "\n") == 2
		})
		cpus := r.submit("alice", sleeps(600), "--gres=gpu:v100:1", "-c", "4", "--mem=500")
		memory := r.submit("alice", sleeps(600), "--gres=gpu:v100:1", "-c", "1", "--mem=4000")
		r.govern()
		r.waitState(cpus, 30*time.Second, "RUNNING")
		r.waitState(memory, 30*time.Second, "RUNNING")
		for id, node := range map[string]string{cpus: "v2", memory: "v1"} {
			if j, _ := r.Job(r.ctx(), id); j["NodeList"] != node {
				t.Errorf("job %s runs on %s, want %s", id, j["NodeList"], node)
			}
		}
		if vain := r.inVain(); vain != nil {
			t.Errorf("grants that did not start: %q", vain)
		}
	})
}

// A maintenance reservation ahead: a job whose limit runs into it is not granted
// there; a shorter one is.
func TestMaintenanceAhead(t *testing.T) {
	onBoth(t, testcluster.Options{}, func(t *testing.T, r *rig) {
		if err := r.Maintenance(r.ctx(), "service", "v1,v2,k1", "now+10minutes", 30); err != nil {
			t.Fatal(err)
		}
		long := r.submit("alice", sleeps(600), "--gres=gpu:4", "-t", "60")
		wants := r.submit("alice", sleeps(600), "--gres=gpu:v100:4", "-t", "60")
		quick := r.submit("alice", sleeps(600), "--gres=gpu:v100:4", "-t", "5")
		r.govern()
		r.waitState(long, 30*time.Second, "RUNNING")
		r.waitState(quick, 30*time.Second, "RUNNING")
		if j, _ := r.Job(r.ctx(), long); j["NodeList"] != "k2" {
			t.Errorf("the long job runs on %s, want k2, the only node without maintenance", j["NodeList"])
		}
		r.until("the other long job has its reason", 20*time.Second, func() bool { return r.status(wants).Code != "" })
		if v := r.status(wants); v.Code != cluster.ReasonReserved {
			t.Errorf("the job that cannot run before the maintenance waits because of %+v", v)
		}
		if n := r.count(cluster.Grant, wants); n > 0 {
			t.Errorf("it was granted %d times", n)
		}
	})
}

// A QOS limit that a job alone exceeds: it is never granted GPUs, its reason names the limit, and others get the GPUs meanwhile.
func TestQOSLimit(t *testing.T) {
	o := testcluster.Options{QOS: []testcluster.QOS{{Name: "tight"}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.run([][]string{{"sacctmgr", "-i", "modify", "qos", "tight", "set", "GrpTRES=gres/gpu=1"}})
		r.limitsEvery(2 * time.Second)
		limited := r.submit("alice", sleeps(600), "-A", "nlp", "--gres=gpu:4", "-q", "tight")
		r.govern()
		r.until("its reason is the limit", time.Minute, func() bool {
			v := r.status(limited)
			return v.Code == cluster.ReasonRule && strings.Contains(v.Note, "QOS tight has GrpTRES=gres/gpu=1")
		})
		for range 4 {
			r.submit("bob", sleeps(600), "-A", "vision", "--gres=gpu:4")
		}
		r.until("others use all GPUs meanwhile", time.Minute, func() bool { return r.holds("vision") == 16 })
		if n := r.count(cluster.Grant, limited); n > 0 {
			t.Errorf("it was granted GPUs %d times in vain", n)
		}
		r.run([][]string{{"sacctmgr", "-i", "modify", "qos", "tight", "set", "GrpTRES=gres/gpu=-1"}})
		r.waitState(limited, 2*time.Minute, "RUNNING")
	})
}

// Held and dependent jobs are owed nothing and granted nothing until they are free.
func TestHeldAndDependentJobs(t *testing.T) {
	onBoth(t, testcluster.Options{}, func(t *testing.T, r *rig) {
		held := r.submit("alice", sleeps(2), "--gres=gpu:1", "-H")
		blocker := r.submit("carol", sleeps(2), "--gres=gpu:1", "-H")
		dependent := r.submit("bob", sleeps(2), "--gres=gpu:1", "--dependency=afterany:"+blocker)
		r.govern()
		r.until("all three have statuses", 30*time.Second, func() bool {
			return r.status(held).Code == cluster.ReasonInactive && r.status(dependent).Code == cluster.ReasonInactive
		})
		time.Sleep(5 * time.Second)
		for _, row := range r.plan().State.Ledger.Tenants {
			if row.Due != 0 {
				t.Errorf("%s is owed %d GPU-ms for jobs that could not run", row.Tenant, row.Due)
			}
		}
		for _, id := range []string{held, blocker} {
			user := "alice"
			if id == blocker {
				user = "carol"
			}
			if _, err := r.Exec(r.ctx(), user, "scontrol", "release", id); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{held, blocker, dependent} {
			r.waitState(id, time.Minute, "COMPLETED")
		}
	})
}

// --gpus in all its spellings is granted what it asks for.
func TestSpellingsOfGPURequests(t *testing.T) {
	onBoth(t, testcluster.Options{}, func(t *testing.T, r *rig) {
		asks := map[string]struct {
			args []string
			gpus int
		}{
			"gres":               {[]string{"--gres=gpu:3"}, 3},
			"gres, typed":        {[]string{"--gres=gpu:k80:2"}, 2},
			"gpus":               {[]string{"--gpus=2"}, 2},
			"gpus over nodes":    {[]string{"--gpus=8", "-N2"}, 8},
			"gpus, bare":         {[]string{"--gpus=8"}, 8},
			"gpus, typed":        {[]string{"--gpus=v100:2"}, 2},
			"gpus-per-node":      {[]string{"-N2", "--gpus-per-node=3"}, 6},
			"gpus-per-task":      {[]string{"-n2", "--gpus-per-task=1"}, 2},
			"gres without count": {[]string{"--gres=gpu"}, 1},
		}
		r.govern()
		for name, ask := range asks {
			id := r.submit("alice", sleeps(600), ask.args...)
			r.until(name+" runs", 40*time.Second, func() bool { return r.state(id) == "RUNNING" })
			r.until(name+" has its lease", 20*time.Second, func() bool {
				for _, l := range r.plan().State.Leases {
					if v := r.status(id); v.Need == cluster.CountOf(ask.gpus) && l.Size.Devices == ask.gpus && l.State == cluster.Active {
						return true
					}
				}
				return false
			})
			if r.count(cluster.RevokeGrant, id) > 0 {
				t.Errorf("%s: a grant did not start", name)
			}
			if _, err := r.Exec(r.ctx(), "root", "scancel", id); err != nil {
				t.Fatal(err)
			}
			r.until(name+" is gone", 30*time.Second, func() bool { return r.holds("nlp") == 0 })
		}
	})
}

// Jobs that others requeue or cancel, and nodes that go down, are normal input.
func TestOthersRequeueAndCancel(t *testing.T) {
	onBoth(t, testcluster.Options{}, func(t *testing.T, r *rig) {
		requeued := r.submit("alice", sleeps(600), "--gres=gpu:v100:4")
		cancelled := r.submit("alice", sleeps(600), "--gres=gpu:v100:4")
		unlucky := r.submit("bob", sleeps(600), "--gres=gpu:k80:4")
		next := r.submit("bob", sleeps(600), "--gres=gpu:v100:4")
		r.govern()
		r.until("the first three run", 40*time.Second, func() bool { return r.holds("nlp")+r.holds("vision") == 12 })
		if _, err := r.Exec(r.ctx(), "root", "scontrol", "requeue", requeued); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Exec(r.ctx(), "alice", "scancel", cancelled); err != nil {
			t.Fatal(err)
		}
		hit, err := r.Job(r.ctx(), unlucky)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.SetNode(r.ctx(), hit["NodeList"], "down"); err != nil {
			t.Fatal(err)
		}
		r.until("the requeued job and the next run", 2*time.Minute, func() bool {
			return r.state(requeued) == "RUNNING" && r.state(next) == "RUNNING" && r.state(cancelled) == "CANCELLED"
		})
		r.until("the unlucky job runs again", 2*time.Minute, func() bool {
			j, _ := r.Job(r.ctx(), unlucky)
			return j["JobState"] == "RUNNING" && j["Restarts"] != "0"
		})
	})
}

// An outage longer than MinJobAge is made up from slurmdbd: what ran meanwhile is charged.
func TestOutageLongerThanMinJobAge(t *testing.T) {
	onBoth(t, testcluster.Options{MinJobAge: 10}, func(t *testing.T, r *rig) {
		begin := time.Now().Add(-2 * time.Second)
		r.settings.GateTTL = 10 * cluster.Second
		r.submit("alice", sleeps(4), "-A", "nlp", "--gres=gpu:4")
		r.govern()
		// A look may come up to a second after the whole second in which the job began, and not see it yet.
		r.until("the first job is charged", 40*time.Second, func() bool { a, _ := r.used("nlp"); return a >= cluster.Times(4, 3*cluster.Second) })
		r.halt()
		r.nextSecond()
		meanwhile := r.submit("bob", sleeps(5), "-A", "vision", "--gres=gpu:4")
		r.waitState(meanwhile, 40*time.Second, "COMPLETED")
		r.until("Slurm has forgotten it", 2*time.Minute, func() bool {
			out, err := r.Exec(r.ctx(), "root", "squeue", "-h", "-t", "all", "-j", meanwhile)
			return err != nil || !strings.Contains(out, meanwhile)
		})
		r.client = r.newClient() // a new sidecar, with the old one's journal
		round := r.plan().Round
		r.govern()
		r.until("the outage is booked", 30*time.Second, func() bool { return r.plan().Round > round })
		alloc, _ := r.used("vision")
		within(t, "what ran unseen [GPU-s]", float64(alloc)/1000, r.accounted("vision", begin), 1)
	})
}

// A journal that is restored from a dump older than MinJobAge is made up from slurmdbd: what ran since is charged, what
// runs goes on, what waits gets its turn, and nothing that was over is run again.
func TestRestoreOfAnOldDump(t *testing.T) {
	onBoth(t, testcluster.Options{MinJobAge: 10}, func(t *testing.T, r *rig) {
		begin := time.Now().Add(-2 * time.Second)
		r.settings.GateTTL = 10 * cluster.Second
		r.govern()
		r.until("the first look", 20*time.Second, func() bool { return r.plan().Round > 0 }) // use before it is not charged
		r.nextSecond()
		first := r.submit("alice", sleeps(2), "-A", "nlp", "--gres=gpu:v100:4")
		r.waitState(first, 40*time.Second, "COMPLETED")
		long := r.submit("alice", sleeps(600), "-A", "nlp", "--gres=gpu:v100:4", "--no-requeue")
		r.waitState(long, 40*time.Second, "RUNNING")
		charged := func(tenant string) bool {
			a, _ := r.used(tenant)
			want := r.accounted(tenant, begin)
			return want > 0 && float64(a)/1000 >= 0.9*want // rounds see starts and ends to parts of a second
		}
		r.until("the running job is charged", 20*time.Second, func() bool { a, _ := r.used("nlp"); return a >= cluster.Times(4, 4*cluster.Second) })
		dump := storetest.Dump(t, r.dsn)
		r.nextSecond()
		lost := r.submit("bob", sleeps(5), "-A", "vision", "--gres=gpu:k80:4")
		waits := r.submit("bob", sleeps(10), "-A", "vision", "-N2", "--gres=gpu:v100:4")
		r.waitState(lost, 40*time.Second, "COMPLETED")
		r.until("it is charged, in the journal that will be lost", 20*time.Second, func() bool { return charged("vision") })
		r.halt()
		halted := r.plan().At
		r.until("Slurm has forgotten it", 2*time.Minute, func() bool {
			out, err := r.Exec(r.ctx(), "root", "squeue", "-h", "-t", "all", "-j", lost)
			return err != nil || !strings.Contains(out, lost)
		})
		r.dsn = storetest.Restore(t, dump)
		db := storetest.Connect(t, r.dsn)
		if _, err := db.Exec(r.ctx(), "update leaders set takeover_after = interval '0'"); err != nil { // its leader is known to be gone
			t.Fatal(err)
		}
		r.client = r.newClient()
		r.govern()
		r.until("a round on the restored journal", 40*time.Second, func() bool { return r.plan().At > halted })
		alloc, _ := r.used("vision")
		within(t, "what the dump does not know [GPU-s]", float64(alloc)/1000, r.accounted("vision", begin), 1)
		if j, err := r.Job(r.ctx(), long); err != nil || j["JobState"] != "RUNNING" || j["Restarts"] != "0" {
			t.Errorf("the job that ran throughout is %s after %s restarts (%v)", j["JobState"], j["Restarts"], err)
		}
		if _, err := r.Exec(r.ctx(), "root", "scancel", long); err != nil {
			t.Fatal(err)
		}
		r.waitState(waits, time.Minute, "COMPLETED")
		r.until("its end is booked", 20*time.Second, func() bool { return charged("vision") && r.holds("vision") == 0 })
		alloc, _ = r.used("vision")
		within(t, "all of it [GPU-s]", float64(alloc)/1000, r.accounted("vision", begin), 5)
		alloc, _ = r.used("nlp")
		want := r.accounted("nlp", begin)
		// Of its two jobs with 4 GPUs slurmdbd has the starts and ends in whole seconds.
		within(t, "the other tenant's [GPU-s]", float64(alloc)/1000, want, max(5, 100*2*4/want))
	})
}

// Accounts below the tenant's level count as the tenant's own.
func TestNestedAccounts(t *testing.T) {
	o := testcluster.Options{Accounts: []testcluster.Account{
		{Name: "nlp", Shares: 3}, {Name: "speech", Parent: "nlp", Users: []string{"alice"}}, {Name: "text", Parent: "nlp", Users: []string{"carol"}},
		{Name: "vision", Shares: 1, Users: []string{"bob"}},
	}, Plugin: testcluster.PluginC}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.shut() // GPU time of jobs before the first round would be repaid for more than a minute
		for range 8 {
			r.submit("alice", sleeps(600), "--gres=gpu:1")
			r.submit("carol", sleeps(600), "--gres=gpu:1")
			r.submit("bob", sleeps(600), "--gres=gpu:1")
			r.submit("bob", sleeps(600), "--gres=gpu:1")
		}
		r.govern()
		r.until("three to one", time.Minute, func() bool { return r.holds("nlp") == 12 && r.holds("vision") == 4 })
		if slices.ContainsFunc(r.plan().Tenants, func(s cluster.TenantStatus) bool { return s.Tenant == "speech" }) {
			t.Error("an account below the level is no tenant")
		}
	})
}
