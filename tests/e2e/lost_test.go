package e2e

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// stateless stops slurmctld, waits, and starts it without the state that it had saved.
func (r *rig) stateless() {
	r.t.Helper()
	if err := r.Stop(r.ctx(), testcluster.Slurmctld); err != nil {
		r.t.Fatal(err)
	}
	down := time.Now()
	r.until("slurmctld was away for a while", time.Minute, func() bool { return time.Since(down) > 8*time.Second })
	if _, err := r.Exec(r.ctx(), "root", "sh", "-c", "rm -rf /var/spool/slurmctld/*"); err != nil {
		r.t.Fatal(err)
	}
	if err := r.Start(r.ctx(), testcluster.Slurmctld); err != nil {
		r.t.Fatal(err)
	}
}

// booted gives when slurmctld was started.
func (r *rig) booted() time.Time {
	r.t.Helper()
	for line := range strings.Lines(r.asks("root", "scontrol show config")) {
		if name, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "BOOT_TIME" {
			at, err := time.ParseInLocation("2006-01-02T15:04:05", strings.TrimSpace(value), time.Local)
			if err != nil {
				r.t.Fatal(err)
			}
			return at
		}
	}
	r.t.Fatal("slurmctld does not tell when it was started")
	return time.Time{}
}

// journalled gives the GPU-seconds of all jobs in the journal, in the order in which they were first seen.
func (r *rig) journalled() []float64 {
	r.t.Helper()
	db, err := pgx.Connect(r.ctx(), r.dsn)
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close(r.ctx())
	rows, _ := db.Query(r.ctx(), "select alloc_gpu_ms::float8 / 1000 from fairlease.jobs order by key")
	all, err := pgx.CollectRows(rows, pgx.RowTo[float64])
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// slurmctld loses its state, so that its jobs are gone and ids start over. The books have what slurmdbd has of the lost jobs or, where that
// has them run for ever, count them up to slurmctld's start. An event says so, and new jobs with the old ids are granted and charged for
// themselves, also when the sidecar asks slurmdbd again later.
func TestSlurmctldLosesItsState(t *testing.T) {
	onBoth(t, testcluster.Options{Accounts: tenants(1, 1), MinJobAge: 4, Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}, func(t *testing.T, r *rig) {
		r.settings.Term = 5 * cluster.Minute
		since := time.Now()
		r.nextSecond()
		r.govern()
		r.goesOn(2, time.Minute)
		for range 4 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1")
			r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:1")
		}
		r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:4")
		r.until("the jobs run", time.Minute, func() bool { return r.holds("nlp") == 4 && r.holds("vision") == 4 })
		began := time.Now()
		r.until("they have run for a while", time.Minute, func() bool { return time.Since(began) > 20*time.Second })
		r.stateless()
		r.until("the loss is said", time.Minute, func() bool { return r.events(cluster.EventSlurmStateLost) > 0 })
		boot := r.booted()

		// The books must have the GPU time of slurmdbd, or that up to slurmctld's start.
		want := map[string]float64{}
		for line := range strings.Lines(r.asks("root", "env SLURM_TIME_FORMAT=%s sacct -a -D -X -n -P -S "+since.Format("2006-01-02T15:04:05")+" -o account,state,start,end,alloctres")) {
			f := strings.Split(strings.TrimSpace(line), "|")
			start, _ := strconv.ParseFloat(f[2], 64) // 0 = it never began
			end, _ := strconv.ParseFloat(f[3], 64)
			if start == 0 {
				continue
			}
			if end == 0 {
				end = float64(boot.Unix())
			}
			want[f[0]] += (end - start) * float64(testcluster.GPUsOf(f[4])) // a term may have ended, and the job of four GPUs begun
			t.Logf("by slurmdbd: %s, counted for %.0f s", strings.TrimSpace(line), end-start)
		}
		for _, tenant := range []string{"nlp", "vision"} {
			alloc, _ := r.used(tenant)
			if got := float64(alloc) / 1000; want[tenant] == 0 || math.Abs(got-want[tenant]) > want[tenant]/50+4*0.5 {
				t.Errorf("%s held %.1f GPU-s by the books, want %.1f", tenant, got, want[tenant])
			}
		}
		lost := r.journalled()

		// For two minutes after it ended a lost job, a slurmd lets no job with its id start: the jobs that have these ids wait.
		id := r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1", "--begin=now+1hour")
		if id != "1" {
			t.Errorf("the first new job is %s: ids did not start over", id)
		}
		for range len(lost) - 1 {
			r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:1", "--begin=now+1hour")
		}
		r.submit("alice", sleeps(3600), "-A", "nlp", "--gres=gpu:2")
		r.submit("bob", sleeps(3600), "-A", "vision", "--gres=gpu:2")
		r.until("new jobs run", time.Minute, func() bool { return r.holds("nlp") == 2 && r.holds("vision") == 2 })
		// The sidecar was away for so long that it asks slurmdbd again.
		r.halt()
		away := time.Now()
		r.until("the sidecar was away for a while", time.Minute, func() bool { return time.Since(away) > 6*time.Second })
		r.govern()
		r.goesOn(4, time.Minute)
		r.until("what is said once is said", time.Minute, func() bool { return r.holds("nlp") == 2 && r.holds("vision") == 2 })
		if n := r.events(cluster.EventSlurmStateLost); n != 1 {
			t.Errorf("the loss was said %d times", n)
		}
		after := r.journalled()
		if len(after) != 2*len(lost)+2 {
			t.Fatalf("%d jobs are in the journal, want %d lost ones, as many with their ids, and 2", len(after), len(lost))
		}
		for k := range lost {
			if after[k] != lost[k] {
				t.Errorf("the lost job number %d had %.1f GPU-s and has %.1f now", k+1, lost[k], after[k])
			}
			if got := after[len(lost)+k]; got != 0 {
				t.Errorf("a job that waits with the id of a lost one has %.1f GPU-s", got)
			}
		}
		for _, got := range after[2*len(lost):] {
			if most := 2 * time.Since(boot).Seconds(); got <= 0 || got > most {
				t.Errorf("a new job has %.1f GPU-s, but cannot have more than %.1f", got, most)
			}
		}
	})
}
