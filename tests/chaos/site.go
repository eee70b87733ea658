package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
	testsidecar "github.com/fairlease/fairlease/tests/sidecar"
)

const (
	ttl   = 12 * time.Second // gate.ttl of the sidecars
	nodes = 5                // of four GPUs each
)

// site is a real Slurm, a real PostgreSQL, the way between slurmrestd and the sidecars, and two sidecars.
type site struct {
	*testcluster.Cluster
	db       *testcluster.Postgres
	proxy    *proxy
	bin, dir string
	sidecars []*sidecar
	sharers  int // jobs that take turns on a GPU; 0 = none do
}

// shards gives those of a GPU.
func (s *site) shards() int { return max(s.sharers, 2) }

// raise builds all of it; the sidecars do not run yet.
func raise(ctx context.Context, o options) (s *site, err error) {
	s = &site{sharers: o.sharers()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.down())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "fl-chaos-"); err != nil {
		return s, err
	}
	s.bin = filepath.Join(s.dir, "fairlease")
	if err := testsidecar.Build(ctx, s.bin); err != nil {
		return s, err
	}
	if s.db, err = testcluster.StartPostgres(ctx, ""); err != nil {
		return s, err
	}
	s.Cluster, err = testcluster.Up(ctx, testcluster.Options{
		Suite: o.Suite, Attached: true, Plugin: testcluster.PluginC,
		Nodes:    []testcluster.NodeGroup{{Prefix: "v", Count: nodes, Model: "v100", GPUs: 4, Shards: 4 * s.shards()}},
		Accounts: []testcluster.Account{{Name: "nlp", Users: []string{"alice", "carol"}}, {Name: "vision", Users: []string{"bob"}}, {Name: "guests", Users: []string{"dan"}}},
		PluginConf: fmt.Sprintf("partitions=gpu\ndefault_partition=gpu\ngate_seconds=%.0f\nheartbeat_dir=/run/fairlease\nheartbeat_max_age=30\n"+
			"protect_gate=no\ngate_license=%s\n", ttl.Seconds(), o.license()),
		ExtraConf: "Licenses=fairlease:1000000,matlab:4\nSlurmdTimeout=20\nPreemptParameters=suspend_grace_time=0\n",
		MinJobAge: 900,
	})
	if err != nil {
		return s, err
	}
	if s.proxy, err = newProxy(s.dir, s.RestSocket()); err != nil {
		return s, err
	}
	for _, name := range []string{"a", "b"} {
		c := &sidecar{&testsidecar.Daemon{Bin: s.bin, Config: filepath.Join(s.dir, name+".yaml"), Log: filepath.Join(s.dir, name+".log"), Thaws: s.sharers > 0}, name}
		if err := s.configure(c, o); err != nil {
			return s, err
		}
		s.sidecars = append(s.sidecars, c)
	}
	if out, err := s.sidecars[0].Fairlease(ctx, nil, "migrate"); err != nil {
		return s, fmt.Errorf("migrate: %w\n%s", err, out)
	}
	return s, nil
}

func (s *site) down() error {
	var err error
	for _, c := range s.sidecars {
		c.Stop(syscall.SIGKILL)
	}
	if s.proxy != nil {
		s.proxy.close()
	}
	if s.Cluster != nil {
		err = errors.Join(err, s.Down())
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Down())
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

const cellsFile = `cellHierarchy:
  - {name: node, split: 4, child: gpu, node: true}
  - {name: gpu, model: v100}
physicalCluster:
  - {type: node, nodes: "v[1-5]"}
vcAssignment:
  - {vc: nlp, cells: [{type: node, number: 2}]}
  - {vc: vision, cells: [{type: node, number: 2}]}
  - {vc: guests, cells: [{type: node, number: 1}]}
`

// configure writes a sidecar's files. Requests to Slurm time out sooner than by default, so that a fault of seconds is one.
func (s *site) configure(c *sidecar, o options) error {
	cells := filepath.Join(s.dir, "cells.yaml")
	share, term := fmt.Sprintf("preset: hived\ncells: {file: %s}\n", cells), 20*time.Second
	if s.sharers > 0 { // a turn is of half a minute at least
		share, term = fmt.Sprintf("sharing: {slices: on, jobs: %d, quantum: %s, memory: {v100: 32g}}\n", s.sharers, quantum), 3*quantum
	}
	text := fmt.Sprintf(`mode: act
%spartitions: [gpu]
interval: 1037ms
lease: {term: %s, min: 6s, notice: 3s, grant_timeout: 15s}
recall: {notice: 2s}
gate: {ttl: %s, license: %q}
reclaim: {threshold: 1s}
credit: {cap: 1m}
stop: {allowance: 15s, total: 0, per_hour: 0}
breaker: {failed_starts: off, lost_work: off, requeues: off, bad_ends: off, latency: off}
start: {cost: 1s}
slurm:
  address: unix://%s
  scontrol: [%s]
  timeout: 5s
  list_timeout: 10s
  full_every: 10s
  accounts_every: 10s
database: {url: %q}
files: {heartbeats: %s, state: %s}
metrics: {listen: '127.0.0.1:0'}
log: {format: json}
`, share, term, ttl, o.license(), s.proxy.Socket, testsidecar.Quoted(s.Scontrol()), s.db.DSN(), s.HeartbeatDir(), filepath.Join(s.dir, c.name+".state"))
	return errors.Join(os.WriteFile(cells, []byte(cellsFile), 0o600), os.WriteFile(c.Config, []byte(text), 0o600))
}

// sidecar is one of the two daemons.
type sidecar struct {
	*testsidecar.Daemon
	name string
}

// connect opens the journal, which may be away.
func (s *site) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(s.db.DSN())
	if err != nil {
		return nil, err
	}
	migrate.In(config, migrate.Schema)
	config.RuntimeParams["default_transaction_read_only"] = "off"
	return pgx.ConnectConfig(ctx, config)
}

// ask reads one value from the journal.
func ask[T any](ctx context.Context, s *site, query string, args ...any) (value T, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	db, err := s.connect(ctx)
	if err != nil {
		return value, err
	}
	defer db.Close(context.WithoutCancel(ctx))
	err = db.QueryRow(ctx, query, args...).Scan(&value)
	return value, err
}

// order changes something in PostgreSQL.
func (s *site) order(ctx context.Context, commands ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	db, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	for _, c := range commands {
		if _, err := db.Exec(ctx, c); err != nil {
			return fmt.Errorf("%.60s: %w", c, err)
		}
	}
	return nil
}

// leading gives the sidecar that has the lead, and the other one. Where that cannot be known the first one stands for it.
func (s *site) leading(ctx context.Context) (active, standby *sidecar) {
	holder, err := ask[string](ctx, s, "select holder from leaders where ended_at is null")
	for i, c := range s.sidecars {
		if err == nil && strings.HasSuffix(holder, fmt.Sprintf(":%d", c.Pid())) {
			return c, s.sidecars[1-i]
		}
	}
	return s.sidecars[0], s.sidecars[1]
}

// until waits for a condition, with a deadline.
func until(ctx context.Context, limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); ; {
		if ok() {
			return true
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return false
		}
		time.Sleep(200 * time.Millisecond)
	}
}
