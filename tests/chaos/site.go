package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/migrate"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
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
}

// raise builds all of it; the sidecars do not run yet.
func raise(ctx context.Context, o options) (s *site, err error) {
	s = &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.down())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "fl-chaos-"); err != nil {
		return s, err
	}
	s.bin = filepath.Join(s.dir, "fairlease")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", s.bin, "github.com/fairlease/fairlease/sidecar/cmd/fairlease").CombinedOutput(); err != nil {
		return s, fmt.Errorf("building fairlease: %w\n%s", err, out)
	}
	if s.db, err = testcluster.StartPostgres(ctx, ""); err != nil {
		return s, err
	}
	s.Cluster, err = testcluster.Up(ctx, testcluster.Options{
		Suite: o.Suite, Attached: true, Plugin: testcluster.PluginC,
		Nodes:    []testcluster.NodeGroup{{Prefix: "v", Count: nodes, Model: "v100", GPUs: 4}},
		Accounts: []testcluster.Account{{Name: "nlp", Users: []string{"alice", "carol"}}, {Name: "vision", Users: []string{"bob"}}, {Name: "guests", Users: []string{"dan"}}},
		PluginConf: fmt.Sprintf("partitions=gpu\ndefault_partition=gpu\ngate_seconds=%.0f\nheartbeat_dir=/run/fairlease\nheartbeat_max_age=30\n"+
			"gate_license=%s\n", ttl.Seconds(), o.license()),
		ExtraConf: "Licenses=fairlease:1000000,matlab:4\nSlurmdTimeout=20\n",
		MinJobAge: 900,
	})
	if err != nil {
		return s, err
	}
	if s.proxy, err = newProxy(s.dir, s.RestSocket()); err != nil {
		return s, err
	}
	for _, name := range []string{"a", "b"} {
		c := &sidecar{site: s, name: name, config: filepath.Join(s.dir, name+".yaml"), log: filepath.Join(s.dir, name+".log"), ended: make(chan struct{})}
		if err := s.configure(c, o); err != nil {
			return s, err
		}
		s.sidecars = append(s.sidecars, c)
	}
	if out, err := s.fairlease(ctx, s.sidecars[0], nil, "migrate"); err != nil {
		return s, fmt.Errorf("migrate: %w\n%s", err, out)
	}
	return s, nil
}

func (s *site) down() error {
	var err error
	for _, c := range s.sidecars {
		c.stop(syscall.SIGKILL)
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
	words := make([]string, 0, 16)
	for _, w := range s.Scontrol() {
		words = append(words, fmt.Sprintf("%q", w))
	}
	cells := filepath.Join(s.dir, "cells.yaml")
	text := fmt.Sprintf(`mode: act
preset: hived
cells: {file: %s}
partitions: [gpu]
interval: 1037ms
lease: {term: 20s, min: 6s, notice: 3s, grant_timeout: 15s}
recall: {notice: 2s}
gate: {ttl: %s, license: %q}
reclaim: {threshold: 1s}
credit: {cap: 1m}
stop: {allowance: 15s, total: 0}
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
metrics: {listen: ''}
log: {format: json}
`, cells, ttl, o.license(), s.proxy.Socket, strings.Join(words, ", "), s.db.DSN(), s.HeartbeatDir(), filepath.Join(s.dir, c.name+".state"))
	return errors.Join(os.WriteFile(cells, []byte(cellsFile), 0o600), os.WriteFile(c.config, []byte(text), 0o600))
}

// fairlease runs the program with a sidecar's configuration, and gives what it printed.
func (s *site) fairlease(ctx context.Context, c *sidecar, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.bin, append([]string{"-c", c.config}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// sidecar is a daemon with something like systemd over it, as etc/systemd/fairlease.service has it.
type sidecar struct {
	site              *site
	name, config, log string

	mu      sync.Mutex
	process *os.Process
	wanted  bool
	ended   chan struct{} // closed when nobody looks after it any longer
}

// start has the daemon run until stop.
func (c *sidecar) start() error {
	c.mu.Lock()
	c.wanted, c.ended = true, make(chan struct{})
	c.mu.Unlock()
	cmd, err := c.launch()
	if err != nil {
		close(c.ended)
		return err
	}
	go c.supervise(cmd)
	return nil
}

func (c *sidecar) launch() (*exec.Cmd, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd := exec.Command(c.site.bin, "-c", c.config, "serve")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.wanted {
		return nil, nil
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.process = cmd.Process
	return cmd, nil
}

// supervise does after each end of the daemon what systemd does, until the daemon is no longer wanted.
func (c *sidecar) supervise(cmd *exec.Cmd) {
	defer close(c.ended)
	for cmd != nil {
		end := cmd.Wait()
		c.mu.Lock()
		c.process = nil
		c.mu.Unlock()
		if end != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			out, err := c.site.fairlease(ctx, c, []string{"SERVICE_RESULT=signal"}, "release", "--after-crash", "--patience", "5s")
			cancel()
			c.note("ended with %v; release --after-crash: %v: %s", end, err, strings.TrimSpace(out))
		}
		time.Sleep(time.Second) // RestartSec
		var err error
		if cmd, err = c.launch(); err != nil {
			c.note("starting: %v", err)
		}
	}
}

// note appends a line to the daemon's log.
func (c *sidecar) note(format string, args ...any) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer log.Close()
	fmt.Fprintf(log, "chaos: %s %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

// signal sends the daemon a signal, if it runs.
func (c *sidecar) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		_ = c.process.Signal(s) // it may have ended just now
	}
}

// stop ends the daemon with a signal; it is not started again.
func (c *sidecar) stop(s syscall.Signal) {
	c.mu.Lock()
	c.wanted = false
	running := c.process != nil
	c.mu.Unlock()
	if running {
		c.signal(syscall.SIGCONT)
		c.signal(s)
	}
	select {
	case <-c.ended:
	case <-time.After(90 * time.Second):
		c.signal(syscall.SIGKILL)
	}
}

func (c *sidecar) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.Pid
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
		if err == nil && strings.HasSuffix(holder, fmt.Sprintf(":%d", c.pid())) {
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
