// Command demo brings up a real Slurm with sixteen fake GPUs of two models and lets
// fairlease lease them to two tenants for a few minutes of short terms. It shows a
// live table, and ends with the fairness views as psql prints them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

func main() {
	minutes := flag.Float64("minutes", 4, "how long to let the tenants work")
	term := flag.Duration("term", 20*time.Second, "length of a lease")
	suite := flag.String("suite", "forky", "Debian suite of the Slurm: forky (26.05) or trixie (24.11)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx, *suite, *term, time.Duration(*minutes*float64(time.Minute))); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// show is one demonstration: a Slurm, a PostgreSQL, a daemon.
type show struct {
	*testcluster.Cluster
	dsn, config string
	daemon      *exec.Cmd
	jobs        int
}

func demo(ctx context.Context, suite string, term, length time.Duration) (err error) {
	bin, err := filepath.Abs("bin/fairlease")
	if err != nil {
		return err
	}
	say("A real Slurm: two nodes with four V100s each, two with four K80s each; tenants nlp and vision, one share each.")
	c, err := testcluster.Up(ctx, testcluster.Options{Suite: suite, Plugin: testcluster.PluginC, Attached: true, Progress: os.Stdout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Down()) }()
	db, err := testcluster.StartPostgres(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Down()) }()
	s := &show{Cluster: c, dsn: db.DSN(), config: filepath.Join(c.Dir, "fairlease.yaml")}
	if err := s.start(ctx, bin, term); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	time.Sleep(2 * time.Second) // the daemon's first heartbeat, so that the submit plugin gates
	say("alice (nlp) submits ten jobs with plain sbatch. vision is idle and lends its half.")
	for i := range 10 {
		if err := s.submit(ctx, "alice", "nlp", fmt.Sprintf("gpu:%d", 1+i%2)); err != nil {
			return err
		}
	}
	if err := s.watch(ctx, bin, length/4); err != nil {
		return err
	}
	say("bob (vision) submits three gangs of four and a job that names its model: vision wants its half back.")
	for _, gres := range []string{"gpu:4", "gpu:4", "gpu:4", "gpu:v100:2"} {
		if err := s.submit(ctx, "bob", "vision", gres); err != nil {
			return err
		}
	}
	if err := s.watch(ctx, bin, length-length/4); err != nil {
		return err
	}
	out, err := s.table(ctx, bin, "explain", "13")
	if err != nil {
		return err
	}
	say("fairlease explain 13: why does bob's third gang run or wait?")
	fmt.Println(out)
	return s.views(context.WithoutCancel(ctx))
}

func say(text string) { fmt.Printf("\n== %s\n", text) }

// start writes the configuration, makes the schema and starts the daemon.
func (s *show) start(ctx context.Context, bin string, term time.Duration) error {
	quoted := make([]string, 0, 16)
	for _, w := range s.Scontrol() {
		quoted = append(quoted, fmt.Sprintf("%q", w))
	}
	text := fmt.Sprintf(`mode: act
partitions: [gpu]
interval: 1s
lease: {term: %s, min: 6s, notice: 3s, grant_timeout: 15s}
gate: {ttl: 2m}
reclaim: {threshold: 1s}
credit: {cap: 1m}
slurm:
  address: unix://%s
  scontrol: [%s]
database:
  url: %q
files:
  heartbeats: %s
  state: %s
`, term, s.RestSocket(), strings.Join(quoted, ", "), s.dsn, s.HeartbeatDir(), filepath.Join(s.Dir, "state.json"))
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, bin, "-c", s.config, "migrate").CombinedOutput(); err != nil {
		return fmt.Errorf("migrate: %w\n%s", err, out)
	}
	say(fmt.Sprintf("fairlease serve, in mode act, with terms of %s.", term))
	log, err := os.Create(filepath.Join(s.Dir, "fairlease.log"))
	if err != nil {
		return err
	}
	s.daemon = exec.Command(bin, "-c", s.config, "serve")
	s.daemon.Stdout, s.daemon.Stderr = log, log
	return s.daemon.Start()
}

// end stops the daemon by its own pid.
func (s *show) end() error {
	if err := s.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop fairlease: %w", err)
	}
	return s.daemon.Wait()
}

// submit queues a job as a user does.
func (s *show) submit(ctx context.Context, user, account, gres string) error {
	s.jobs++
	_, err := s.Sbatch(ctx, user, "#!/bin/bash\nexec sleep 3600\n", "-A", account, "--gres="+gres, "-t", "60", "-J", fmt.Sprintf("train%d", s.jobs))
	return err
}

// watch shows tenants and leases until the time is over.
func (s *show) watch(ctx context.Context, bin string, length time.Duration) error {
	terminal := false
	if info, err := os.Stdout.Stat(); err == nil {
		terminal = info.Mode()&os.ModeCharDevice != 0
	}
	every := 15 * time.Second
	if terminal {
		every = time.Second
	}
	for begin := time.Now(); time.Since(begin) < length; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		tenants, err := s.table(ctx, bin, "tenants")
		if err != nil {
			return err
		}
		leases, err := s.table(ctx, bin, "leases")
		if err != nil {
			return err
		}
		if terminal {
			fmt.Print("\x1b[H\x1b[2J")
		}
		fmt.Printf("\n%s of %s\n\n%s\n%s", time.Since(begin).Round(time.Second), length, tenants, leases)
	}
	return nil
}

func (s *show) table(ctx context.Context, bin string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, bin, append([]string{"-c", s.config}, args...)...).CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return "", fmt.Errorf("fairlease %s: %w\n%s\n(the daemon's log is %s)", strings.Join(args, " "), err, out, filepath.Join(s.Dir, "fairlease.log"))
	}
	return string(out), nil
}

// views prints what an administrator reads in psql.
func (s *show) views(ctx context.Context) error {
	for _, v := range []struct{ title, query string }{
		{"psql: how fair is it now?", "select * from fairlease.tenant_fairness"},
		{"psql: who had how many GPU-hours?", "select * from fairlease.gpu_hours"},
		{"psql: whose jobs lost by sharing?", "select * from fairlease.sharing_loss"},
		{"psql: who lent to whom?", "select * from fairlease.lending_per_day"},
		{"psql: what waits, and why?", "select * from fairlease.waiting_jobs"},
		{"psql: does every GPU-millisecond add up?", "select * from fairlease.pool_balance"},
	} {
		say(v.title)
		cmd := exec.CommandContext(ctx, "psql", "-X", "-P", "pager=off", "-c", v.query, s.dsn)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("psql: %w", err)
		}
	}
	return nil
}
