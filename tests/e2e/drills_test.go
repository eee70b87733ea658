package e2e

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// drills is a site with a spare of everything: two slurmctld, two PostgreSQL, two daemons, each on a host of its own. Jobs that hold all
// GPUs of one model, with terms that outlast the test, run through all of it while others wait for these GPUs.
type drills struct {
	r           *rig
	whole       *testing.T // the test; r.t is the drill
	db, standby *testcluster.Postgres
	dump        string                          // of the journal, from before all drills
	dumped      [2]float64                      // when, in seconds, and the GPU-seconds in the books then
	daemons     map[string]func(syscall.Signal) // by configuration
	long        map[string]string               // their starts by Slurm, by id
}

// drill is a subtest of one site.
type drill struct {
	name string
	run  func(*drills, *testing.T)
}

// Each subtest is a drill of docs/availability.md, one after the other on one site. After each, leases are granted, no job was
// stopped, and no GPU is leased twice.
func TestDrills(t *testing.T) {
	drillAll(t, []drill{
		{"slurmctld is killed", (*drills).slurmctldKilled},
		{"scontrol takeover", (*drills).slurmctldTakenOver},
		{"PostgreSQL fails over and loses commits", (*drills).postgresFailsOver},
		{"the leader's host is lost", (*drills).hostLost},
		{"an old dump is restored", (*drills).dumpRestored},
	})
}

// Clocks have a site of their own: a backup slurmctld whose clock was ahead does not take over.
func TestClockDrills(t *testing.T) {
	drillAll(t, []drill{
		{"PostgreSQL's clock", func(d *drills, t *testing.T) { d.clocks(t, "PostgreSQL", d.db.MoveClock) }},
		{"slurmctld's clock", func(d *drills, t *testing.T) { d.clocks(t, "slurmctld", d.slurmctldClock) }},
	})
}

func drillAll(t *testing.T, all []drill) {
	// Slurm 24.11 drains nodes with shards when a backup takes over.
	o := testcluster.Options{Accounts: tenants(1, 1), Plugin: testcluster.PluginC, Backup: true, Clock: true, MinJobAge: 10, ExtraConf: "SlurmctldTimeout=5\nMessageTimeout=5\n",
		Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4, Shards: -1}, {Prefix: "k", Count: 2, Model: "k80", GPUs: 4, Shards: -1}}}
	onOne(t, "forky", o, func(t *testing.T, r *rig) {
		d := raise(r)
		for _, x := range all {
			ok := t.Run(x.name, func(t *testing.T) {
				began := time.Now()
				r.t = t
				x.run(d, t)
				d.unharmed()
				t.Logf("the drill took %s", time.Since(began).Round(time.Second))
			})
			if r.t = t; !ok {
				return // others would fail of the same
			}
		}
	})
}

// raise starts the site, fills it, and dumps the journal.
func raise(r *rig) *drills {
	r.t.Helper()
	d := &drills{r: r, whole: r.t, db: testcluster.PostgresForTest(r.t), dump: filepath.Join(r.t.TempDir(), "journal.dump"), daemons: map[string]func(syscall.Signal){}, long: map[string]string{}}
	if err := d.db.PreloadClock(r.ctx()); err != nil {
		r.t.Fatal(err)
	}
	var err error
	if d.standby, err = d.db.Standby(r.ctx()); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := d.standby.Down(); err != nil {
			r.t.Error(err)
		}
	})
	r.dsn = "postgres:///fairlease?user=postgres&target_session_attrs=read-write&host=" + url.QueryEscape(d.db.Dir+","+d.standby.Dir)
	if _, _, err := migrate.Up(r.ctx(), r.dsn, migrate.Schema, func(string) {}); err != nil {
		r.t.Fatal(err)
	}
	for range 2 {
		config := r.configure("breaker: {failed_starts: off, lost_work: off, requeues: off, bad_ends: off, latency: off}\n")
		edit(r.t, config, "term: 20s, min: 6s", "term: 2h, min: 1h")
		edit(r.t, config, "ttl: 30s", "ttl: 5m")
		d.serve(config)
	}
	r.heard()
	for k := range 6 {
		user, tenant := []string{"alice", "bob"}[k%2], []string{"nlp", "vision"}[k%2]
		id := r.submit(user, sleeps(7200), "-A", tenant, "--gres=gpu:v100:2", "-t", "1200")
		if k < 4 { // the others wait
			r.waitState(id, time.Minute, "RUNNING")
			d.long[id] = d.job(id)["StartTime"]
		}
	}
	d.leases()
	return d
}

// tool runs a program of PostgreSQL.
func (d *drills) tool(name string, args ...string) {
	d.r.t.Helper()
	path, err := testcluster.PostgresTool(name)
	if err != nil {
		d.r.t.Fatal(err)
	}
	if out, err := exec.CommandContext(d.r.ctx(), path, args...).CombinedOutput(); err != nil {
		d.r.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// job looks a job up; slurmctld may be away for a moment.
func (d *drills) job(id string) (j testcluster.Job) {
	d.r.t.Helper()
	d.r.until("slurmctld shows job "+id, time.Minute, func() bool {
		var err error
		j, err = d.r.Job(d.r.ctx(), id)
		return err == nil && j["JobState"] != ""
	})
	return j
}

// journal reads one value; an error is one of PostgreSQL's, which may be away.
func journal[T any](d *drills, query string, args ...any) (value T, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	db, err := pgx.Connect(ctx, d.r.dsn)
	if err != nil {
		return value, err
	}
	defer db.Close(ctx)
	err = db.QueryRow(ctx, query, args...).Scan(&value)
	return value, err
}

// has waits until a query gives a value.
func has[T comparable](d *drills, what string, want T, query string, args ...any) {
	d.r.t.Helper()
	var got T
	var err error
	defer func() {
		if d.r.t.Failed() {
			d.r.t.Logf("%s: %v (%v), want %v", what, got, err, want)
		}
	}()
	d.r.until(what, time.Minute, func() bool {
		got, err = journal[T](d, query, args...)
		return err == nil && got == want
	})
}

// newest is the newest round; -1 while PostgreSQL is away.
func (d *drills) newest() int64 {
	n, err := journal[int64](d, "select coalesce(max(number), 0) from fairlease.rounds")
	if err != nil {
		return -1
	}
	return n
}

// told counts the events of a kind with a text in them.
func (d *drills) told(kind, text string) int64 {
	n, _ := journal[int64](d, "select count(*) from fairlease.events where kind = $1 and text like '%' || $2 || '%'", kind, text)
	return n
}

// leases waits until a new job has got a lease and is through.
func (d *drills) leases() {
	d.r.t.Helper()
	since := time.Now()
	id := d.submit(sleeps(1))
	d.r.waitState(id, 2*time.Minute, "COMPLETED")
	d.r.t.Logf("a job submitted now was through after %.1f s", time.Since(since).Seconds())
	has(d, "its lease is in the journal", true, "select coalesce(bool_and(not adopted), false) from fairlease.leases where slurm_id = $1", id)
}

// submit queues a job for a GPU that is free, once slurmctld takes it.
func (d *drills) submit(script string) (id string) {
	d.r.t.Helper()
	d.r.until("slurmctld takes a job", 2*time.Minute, func() bool {
		var err error
		id, err = d.r.Sbatch(d.r.ctx(), "alice", script, "-A", "nlp", "--gres=gpu:k80:1", "-t", "1200")
		return err == nil
	})
	return id
}

// unharmed fails unless the long jobs run as before, each with the one lease that it has had, and no GPU is leased twice.
func (d *drills) unharmed() {
	d.r.t.Helper()
	for id, start := range d.long {
		if j := d.job(id); j["JobState"] != "RUNNING" || j["Restarts"] != "0" || j["StartTime"] != start {
			d.r.t.Errorf("job %s is %s since %s, restarted %s times; it ran since %s", id, j["JobState"], j["StartTime"], j["Restarts"], start)
		}
		has(d, "job "+id+" has one lease", "1 1", "select count(*) || ' ' || count(*) filter (where ended_at is null) from fairlease.leases where slurm_id = $1", id)
	}
	has(d, "nothing was stopped", 0, "select count(*)::int from fairlease.actions where verb in ('notice', 'reclaim')")
	has(d, "no GPU is leased twice", true, `select coalesce(max(n), 0) <= 4 from
		(select sum(gpus / cardinality(nodes)) as n from fairlease.leases, unnest(nodes) as node where ended_at is null group by node) x`)
}

// logged counts the lines with a text in the logs of both daemons.
func (d *drills) logged(text string) (n int) {
	for config := range d.daemons {
		log, _ := os.ReadFile(logOf(config))
		n += strings.Count(string(log), text)
	}
	return n
}

// booked gives what the journal has charged a job, in GPU-seconds.
func (d *drills) booked(id string) (float64, error) {
	return journal[float64](d, "select coalesce(sum(alloc_gpu_ms), 0)::float8 / 1000 from fairlease.jobs where slurm_id = $1", id)
}

// books fails unless the journal has charged a job what it held, in GPU-seconds.
func (d *drills) books(id string, least, most float64) {
	d.r.t.Helper()
	if got, err := d.booked(id); err != nil || got < least || got > most {
		d.r.t.Errorf("job %s has %.1f GPU-s in the books (%v), want %.1f to %.1f", id, got, err, least, most)
	}
}

// leader gives the configuration of the daemon that leads.
func (d *drills) leader() (config string) {
	d.r.t.Helper()
	d.r.until("a daemon leads", time.Minute, func() bool {
		holder, err := journal[string](d, "select holder from fairlease.leaders where ended_at is null")
		args, _ := os.ReadFile("/proc/" + holder[strings.LastIndex(holder, ":")+1:] + "/cmdline")
		for c := range d.daemons {
			if err == nil && strings.Contains(string(args), c) {
				config = c
			}
		}
		return config != ""
	})
	return config
}

// slurmctld is killed once it has saved the starts of the jobs: what it has not, Slurm itself forgets.
func (d *drills) slurmctldKilled(t *testing.T) {
	now := time.Now()
	d.tool("pg_dump", "--format=custom", "--schema=fairlease", "--file="+d.dump, "--dbname="+d.db.DSN())
	d.dumped = d.charged()
	d.r.until("slurmctld has saved its jobs", time.Minute, func() bool {
		for id := range d.long { // a change has it save them
			_, _ = d.r.Exec(d.r.ctx(), "root", "scontrol", "update", "jobid="+id, "AdminComment=drill")
			break
		}
		out, err := d.r.Exec(d.r.ctx(), "root", "stat", "-c", "%Y", "/var/spool/slurmctld/job_state")
		at, bad := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		return err == nil && bad == nil && at > now.Unix()
	})
	if err := d.r.Kill(d.r.ctx(), testcluster.Slurmctld); err != nil {
		t.Fatal(err)
	}
	d.leases()
	d.unharmed()
	// It takes control back, and waits for 30 s with that.
	if err := d.r.Start(d.r.ctx(), testcluster.Slurmctld); err != nil {
		t.Fatal(err)
	}
	d.leases()
}

// The backup controls for all drills that follow.
func (d *drills) slurmctldTakenOver(t *testing.T) {
	if out, err := d.r.Exec(d.r.ctx(), "root", "scontrol", "takeover"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d.leases()
}

// The standby lacks the last commits when it is promoted, and with them the grant of a job that runs.
func (d *drills) postgresFailsOver(t *testing.T) {
	if err := d.standby.Deaf(d.r.ctx()); err != nil {
		t.Fatal(err)
	}
	before := d.newest()
	id := d.submit(sleeps(7200))
	d.r.waitState(id, time.Minute, "RUNNING")
	has(d, "its lease is on the primary", 1, "select count(*)::int from fairlease.leases where slurm_id = $1 and started_at is not null", id)
	d.r.until("rounds are committed that get lost", time.Minute, func() bool { return d.newest() > before })
	lost := d.newest()
	if err := d.db.Kill(d.r.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := d.standby.Promote(d.r.ctx()); err != nil {
		t.Fatal(err)
	}
	if n := d.newest(); n < 0 || n >= lost {
		t.Errorf("the promoted server has round %d, the primary had %d: no commit is lost", n, lost)
	}
	d.leases()
	d.long[id] = d.job(id)["StartTime"]
	if n := d.told(cluster.EventJournalRestored, ""); n != 1 {
		t.Errorf("%d events say that rounds were lost, want 1", n)
	}
}

// The leader's host is gone with its heartbeats, and nothing is released there.
func (d *drills) hostLost(t *testing.T) {
	leader := d.leader()
	d.daemons[leader](syscall.SIGKILL)
	if err := os.Remove(filepath.Join(d.r.HeartbeatDir(), "gpu")); err != nil {
		t.Fatal(err)
	}
	d.heard()
	if now := d.leader(); now == leader {
		t.Errorf("%s leads although its host is lost", now)
	}
	d.leases()
	d.serve(leader) // its host is back
}

// The commands are those of docs/database.md. slurmctld has forgotten jobs of the time since the dump; slurmdbd has not.
func (d *drills) dumpRestored(t *testing.T) {
	on := "--dbname=" + strings.Replace(d.standby.DSN(), "/fairlease?", "/postgres?", 1)
	for _, end := range d.daemons {
		end(syscall.SIGTERM)
	}
	before := d.newest()
	d.tool("psql", on, "--command=alter database fairlease rename to fairlease_broken")
	d.tool("psql", on, "--command=create database fairlease")
	d.tool("pg_restore", "--single-transaction", "--dbname="+d.standby.DSN(), d.dump)
	if n := d.newest(); n < 0 || n >= before {
		t.Errorf("the dump has round %d, the journal had %d", n, before)
	}
	for config := range d.daemons {
		d.serve(config)
	}
	d.heard() // until then Slurm starts jobs by itself
	d.leases()
	if n := d.told(cluster.EventJournalRestored, ""); n != 1 {
		t.Errorf("%d events say that rounds were lost, want 1", n)
	}
	d.agree()
}

// charged gives up to when the books are charged, in seconds, and with how many GPU-seconds.
func (d *drills) charged() (out [2]float64) {
	d.r.t.Helper()
	books, err := journal[string](d, "select extract(epoch from max(at))::float8 || ' ' || sum(tenants_gpu_ms + untouchable_gpu_ms)::float8 / 1000 from fairlease.pools")
	if _, bad := fmt.Sscan(books, &out[0], &out[1]); err != nil || bad != nil {
		d.r.t.Fatal(books, err, bad)
	}
	return out
}

// agree fails unless the books have the GPU time since the dump that slurmdbd has, up to the last round. Jobs that slurmdbd does not know yet
// do not count: a backup reports late. Slurm's times are whole seconds.
func (d *drills) agree() {
	d.r.t.Helper()
	is, want, cut := d.charged(), 0.0, 0.0
	now, got := is[0], is[1]-d.dumped[1]
	records := d.r.asks("root", "env SLURM_TIME_FORMAT=%s sacct -a -D -X -n -P -S now-1hour -E now+2hours -o start,end,reqtres,jobid,state")
	told := []string{}
	for line := range strings.Lines(records) {
		f := strings.Split(strings.TrimSpace(line), "|")
		told = append(told, f[3])
		start, _ := strconv.ParseFloat(f[0], 64) // 0 = it never began
		end, _ := strconv.ParseFloat(f[1], 64)   // 0 = it runs
		_, gpus, ok := strings.Cut(f[2], "gres/gpu=")
		gpus, _, _ = strings.Cut(gpus, ",")
		n, _ := strconv.ParseFloat(gpus, 64)
		if start > 0 && ok {
			if end == 0 {
				end = now
			}
			want, cut = want+n*max(end-max(start, d.dumped[0]), 0), cut+n
		}
	}
	untold, err := journal[float64](d, "select coalesce(sum(alloc_gpu_ms), 0)::float8 / 1000 from fairlease.jobs where slurm_id <> all ($1)", told)
	if err != nil {
		d.r.t.Fatal(err)
	}
	got -= untold
	d.r.t.Logf("%.0f GPU-s by the journal, %.0f by slurmdbd", got, want)
	if math.Abs(got-want) > want/100+cut {
		jobs, _ := journal[string](d, "select string_agg(slurm_id || ': ' || round(alloc_gpu_ms / 1000.0, 1), ', ' order by key) from fairlease.jobs")
		d.r.t.Errorf("the books have %.1f GPU-s at %.1f, slurmdbd %.1f: %s\n%s", got, now, want, jobs, records)
	}
}

// heard waits for a sign of life of a new leader.
func (d *drills) heard() {
	d.r.t.Helper()
	d.r.until("a heartbeat", 2*time.Minute, func() bool {
		_, err := os.Stat(filepath.Join(d.r.HeartbeatDir(), "gpu"))
		return err == nil
	})
}

// serve starts a daemon that outlasts the drill.
func (d *drills) serve(config string) {
	now := d.r.t
	d.r.t = d.whole
	d.daemons[config] = d.r.serve(config)
	d.r.t = now
}

// slurmctldClock moves the clock of both slurmctld. Where it was ahead, Slurm's scheduler waits for its last time to come again, so it is
// restarted when it is right.
func (d *drills) slurmctldClock(by time.Duration) error {
	err := d.r.MoveClock(by)
	if by == 0 && err == nil {
		err = d.r.Restart(d.r.ctx(), testcluster.Slurmctld)
	}
	return err
}

// clocks moves a clock by an hour, ahead and back again, and behind and back again. Jobs end and start meanwhile.
func (d *drills) clocks(t *testing.T, whose string, move func(time.Duration) error) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		submitted := time.Now()
		ends := d.submit(sleeps(7200))
		d.r.waitState(ends, time.Minute, "RUNNING")
		runs := time.Now()
		says := "that of " + whose + " is off"
		told, logged := d.told(cluster.EventClock, says), d.logged(says)
		if err := move(by); err != nil {
			t.Fatal(err)
		}
		d.r.until("the log names the clock", 2*time.Minute, func() bool { return d.logged(says) > logged })
		last, before := d.newest(), time.Now()
		least, err := d.booked(ends)
		if err != nil {
			t.Fatal(err)
		}
		if whose != "slurmctld" || by > 0 { // else the job ended before the last round, by Slurm
			least = max(least, before.Sub(runs).Seconds()-1) // Slurm's times are whole seconds
		}
		if _, err := d.r.Exec(d.r.ctx(), "root", "scancel", ends); err != nil {
			t.Fatal(err)
		}
		d.r.waitState(ends, time.Minute, "CANCELLED")
		ended := time.Now()
		starts := d.submit(sleeps(7200))
		if n := d.newest(); n != last {
			t.Errorf("rounds %d to %d were made with a wrong clock", last+1, n)
		}
		if err := move(0); err != nil {
			t.Fatal(err)
		}
		// By a slurmctld that was ahead, it may not begin before the time at which it was submitted.
		d.r.until("slurmctld takes another begin time", 2*time.Minute, func() bool {
			_, err := d.r.Exec(d.r.ctx(), "root", "scontrol", "update", "jobid="+starts, "StartTime=now")
			return err == nil
		}) // a backup that was restarted is on standby for a while
		d.leases()
		d.r.waitState(starts, time.Minute, "RUNNING")
		has(d, "the job that came meanwhile has one lease", 1, "select count(*)::int from fairlease.leases where slurm_id = $1 and ended_at is null", starts)
		if n := d.told(cluster.EventClock, says); n != told+1 {
			t.Errorf("%d events say that %s, want %d", n, says, told+1)
		}
		// The round that books the end comes after it.
		d.books(ends, least, time.Since(submitted).Seconds())
		d.books(starts, 0, time.Since(ended).Seconds())
		if _, err := d.r.Exec(d.r.ctx(), "root", "scancel", starts); err != nil {
			t.Fatal(err)
		}
		d.unharmed()
	}
}
