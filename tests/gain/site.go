package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
	testsidecar "github.com/fairlease/fairlease/tests/sidecar"
)

// gates are the kinds of gates.
var gates = []string{"licence", "begin"}

const (
	nodes, perNode = 4, 4
	strategistsOwn = "nlp"    // account of the strategist's tenant
	opponents      = "vision" // and of the honest one's
)

// managed are the partitions: gpu is the default one, small and closed forbid most jobs.
var managed = []testcluster.Partition{{Name: "gpu", Default: true}, {Name: "low"}, {Name: "small", Extra: "MaxTime=1 MaxNodes=1"}, {Name: "closed", Extra: "AllowAccounts=vision"}}

// ground is what all clusters of a run share: the program, and a PostgreSQL with a database for each.
type ground struct {
	dir, bin string
	db       *testcluster.Postgres
	term     time.Duration

	mu   sync.Mutex
	made int
}

func newGround(ctx context.Context, term time.Duration) (g *ground, err error) {
	g = &ground{term: term}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.down())
		}
	}()
	if g.dir, err = os.MkdirTemp("", "fl-gain-"); err != nil {
		return g, err
	}
	g.bin = filepath.Join(g.dir, "fairlease")
	if err := testsidecar.Build(ctx, g.bin); err != nil {
		return g, err
	}
	g.db, err = testcluster.StartPostgres(ctx, "")
	return g, err
}

func (g *ground) down() error {
	var err error
	if g.db != nil {
		err = g.db.Down()
	}
	return errors.Join(err, os.RemoveAll(g.dir))
}

// database makes a new, empty database, and gives its address.
func (g *ground) database(ctx context.Context) (dsn string, n int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made++
	name := fmt.Sprintf("gain%d", g.made)
	c, err := pgx.Connect(ctx, g.db.DSN())
	if err != nil {
		return "", 0, err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, "create database "+name)
	return strings.Replace(g.db.DSN(), "/fairlease?", "/"+name+"?", 1), g.made, err
}

// site is a real Slurm with sixteen GPUs, and a daemon that leases them.
type site struct {
	*testcluster.Cluster
	daemon *testsidecar.Daemon
	pairing
	term time.Duration
	dsn  string // of its journal

	mu      sync.Mutex
	queue   []queued                 // the jobs that wait or run, by the last look
	at      time.Time                // the time of that look
	slowest time.Duration            // the longest time without a heartbeat, so far
	runs    map[string]time.Duration // by job that runs: for how long, by that look
	ran     map[string]time.Duration // by account: for how long its jobs have run
}

// gpus gives the GPUs of the site of a strategy.
func (x *strategy) gpus() float64 {
	if x.slices {
		return 1
	}
	return nodes * perNode
}

// sharers gives how many jobs take turns on the GPU.
func (x *strategy) sharers() int { return max(x.among, 2) }

func (g *ground) raise(ctx context.Context, p pairing) (s *site, err error) {
	dsn, n, err := g.database(ctx)
	s = &site{pairing: p, term: g.term, dsn: dsn, ran: map[string]time.Duration{}}
	if err != nil {
		return s, err
	}
	of := testcluster.NodeGroup{Prefix: "v", Count: nodes, Model: "v100", GPUs: perNode, Extra: "Feature=fast,slow"}
	more := p.settings
	if p.slices { // a term is of at least two turns
		of.Count, of.GPUs, of.Shards = 1, 1, p.sharers()
		s.term, more = 6*g.term, more+fmt.Sprintf("sharing: {slices: on, jobs: %d, quantum: 30s, memory: {v100: 32g}}\n", p.sharers())
	}
	names := make([]string, len(managed))
	for i, m := range managed {
		names[i] = m.Name
	}
	license := "fairlease"
	if p.gate == "begin" {
		license = ""
	}
	extra := "Licenses=fairlease:1000000,matlab:4\nPreemptParameters=suspend_grace_time=0\n"
	if p.suite == "forky" { // 24.11 does not have it
		extra += "SlurmctldParameters=enable_expedited_requeue\n"
	}
	s.Cluster, err = testcluster.Up(ctx, testcluster.Options{
		Suite: p.suite, Attached: true, Plugin: testcluster.PluginC,
		Nodes:      []testcluster.NodeGroup{of},
		Partitions: managed,
		Accounts: []testcluster.Account{{Name: strategistsOwn, Users: []string{"alice", "carol"}}, {Name: "nlp-a", Parent: "nlp", Users: []string{"alice"}},
			{Name: "nlp-b", Parent: "nlp", Users: []string{"alice"}}, {Name: opponents, Users: []string{"bob"}}, {Name: "vision-a", Parent: "vision", Users: []string{"bob"}}},
		PluginConf: fmt.Sprintf("partitions=%s\ndefault_partition=gpu\ngate_seconds=%.0f\nheartbeat_dir=/run/fairlease\nheartbeat_max_age=30\ngate_license=%s\noperator_uids=2000\n",
			strings.Join(names, ","), ttl.Seconds(), license),
		ExtraConf: extra,
		KillWait:  1, MinJobAge: 60,
		Scheduler: "sched_interval=1,bf_interval=2,bf_continue,bf_max_job_test=2000,default_queue_depth=2000",
	})
	if err != nil {
		return s, err
	}
	// slurmdbd knows GPUs once slurmctld has told it.
	for _, argv := range [][]string{{"add", "qos", "capped", "MaxTRESPerUser=gres/gpu=1"}, {"add", "qos", "shut", "GrpTRES=gres/gpu=0"}, {"modify", "account", "root", "set", "qos+=capped,shut"}} {
		if _, err := s.Exec(ctx, "root", append([]string{"sacctmgr", "-iQ"}, argv...)...); err != nil {
			return s, err
		}
	}
	s.daemon = &testsidecar.Daemon{Bin: g.bin, Config: filepath.Join(s.Dir, "fairlease.yaml"), Log: filepath.Join(s.Dir, "fairlease.log")}
	if p.pairs {
		more = strings.Replace(more, "slices: on", "slices: on, pairs: on", 1)
	}
	every := 10
	if p.gangs { // most leases are of 10 s
		every = 1
	}
	if p.pairs || p.gangs {
		more += fmt.Sprintf("models: {progress: {folder: %s, every: %ds}}\n", filepath.Dir(s.Home("alice")), every)
	}
	settings := s.settings(strings.Join(names, ", "), license) + more +
		fmt.Sprintf("database: {url: %q}\nfiles: {heartbeats: %s, state: %s}\n", dsn, s.HeartbeatDir(), filepath.Join(g.dir, fmt.Sprintf("state%d", n)))
	if err := os.WriteFile(s.daemon.Config, []byte(settings), 0o600); err != nil {
		return s, err
	}
	if out, err := s.daemon.Fairlease(ctx, nil, "migrate"); err != nil {
		return s, fmt.Errorf("migrate: %w\n%s", err, out)
	}
	if p.prepare != nil {
		if err := p.prepare(ctx, s); err != nil {
			return s, fmt.Errorf("preparing %s: %w", p.name, err)
		}
	}
	if err := s.daemon.Start(); err != nil {
		return s, err
	}
	for end := time.Now().Add(2 * time.Minute); ; {
		if _, err := os.Stat(s.heartbeat()); err == nil {
			return s, nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return s, fmt.Errorf("the daemon has made no round; its log ends:\n%s", s.logTail())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (s *site) down() error {
	if s.daemon != nil {
		s.daemon.Stop(syscall.SIGKILL)
	}
	if s.Cluster != nil {
		return s.Down()
	}
	return nil
}

// keep writes the logs and slurmdbd's record of the jobs into a folder; "" = nowhere.
func (s *site) keep(dir string) error {
	if dir == "" || s.daemon == nil {
		return nil
	}
	err := os.MkdirAll(dir, 0o755)
	write := func(name string, text []byte) {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, strings.ReplaceAll(s.key()+", "+name, " ", "_")), text, 0o644))
	}
	for name, path := range map[string]string{"fairlease.log": s.daemon.Log, "slurmctld.log": s.LogFile(testcluster.Slurmctld)} {
		text, failed := os.ReadFile(path)
		err = errors.Join(err, failed)
		write(name, text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	jobs, failed := s.Exec(ctx, "root", "sacct", "-aXDP", "-S", "now-1day", "-o", "jobid,account,alloctres,submit,start,end,state,nodelist,jobname")
	err = errors.Join(err, failed)
	write("sacct.txt", []byte(jobs))
	return err
}

func (s *site) heartbeat() string { return filepath.Join(s.HeartbeatDir(), "gpu") }

func (s *site) logTail() string {
	text, _ := os.ReadFile(s.daemon.Log)
	return string(text[max(0, len(text)-2000):])
}

// ttl of gates is 27 s when terms are of 10 s: longer than the scaled one, since a busy machine makes few rounds in that.
const ttl = 27 * time.Second

// settings gives the configuration: the default settings, with their times scaled as the term is. Not scaled are the interval and the notice, which are a
// second at least, gate.ttl, and lease.grant_timeout: Slurm starts jobs by whole seconds.
func (s *site) settings(partitions, license string) string {
	scaled := func(d time.Duration) time.Duration {
		return time.Duration(float64(d) * float64(s.term) / float64(15*time.Minute)).Round(time.Millisecond)
	}
	return fmt.Sprintf(`mode: act
partitions: [%s]
interval: 1s
lease: {term: %s, min: %s, notice: %s, grant_timeout: 4s}
gate: {ttl: %s, license: %q}
reclaim: {threshold: %s}
credit: {cap: %s}
stop: {allowance: %s, per_hour: 0}
breaker: {failed_starts: off, lost_work: off, requeues: off, bad_ends: off, latency: off}
start: {cost: %s}
jobs: {patience: %s}
bind: {quiet: %s}
slurm: {address: "unix://%s", scontrol: [%s], full_every: 2s, accounts_every: %s}
forecast: {every: 0s}
metrics: {listen: ''}
web: {listen: '', socket: ''}
log: {format: json}
`, partitions, s.term, scaled(5*time.Minute), max(scaled(time.Minute), time.Second), ttl, license, scaled(15*time.Minute), scaled(2*time.Hour), scaled(15*time.Minute), scaled(5*time.Minute),
		scaled(4*time.Hour), scaled(12*time.Hour), s.RestSocket(), testsidecar.Quoted(s.Scontrol()), max(scaled(5*time.Minute), 3*time.Second))
}
