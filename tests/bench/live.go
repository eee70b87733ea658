package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/store"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// site is a real Slurm and a real PostgreSQL under the loop.
type site struct {
	*testcluster.Cluster
	loop     *loop.Loop
	rules    loop.Rules
	last     cluster.Plan // of a turn that was not quiet
	recalled int          // actions that recall a lease, since a measurement began
	settings cluster.Settings
}

// onSite measures on a real Slurm and a real PostgreSQL under the loop, which are gone afterwards.
func onSite(o testcluster.Options, measure func(ctx context.Context, s *site, dsn string) error) error {
	return onCluster(o, func(ctx context.Context, c *testcluster.Cluster, dsn string) error {
		s, stop, err := govern(ctx, c, dsn)
		if err != nil {
			return err
		}
		defer stop()
		return measure(ctx, s, dsn)
	})
}

// onCluster measures on a real Slurm and a real PostgreSQL, which are gone afterwards.
func onCluster(o testcluster.Options, measure func(ctx context.Context, c *testcluster.Cluster, dsn string) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	c, err := testcluster.Up(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Down()) }()
	db, err := testcluster.StartPostgres(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Down()) }()
	return measure(ctx, c, db.DSN())
}

func onSlurm(suite string, jobs int) error {
	return onSite(liveOptions(suite), func(ctx context.Context, s *site, dsn string) error { return s.all(ctx, dsn, suite, jobs) })
}

func (s *site) all(ctx context.Context, dsn, suite string, jobs int) error {
	fmt.Printf("Slurm of Debian %s, %s\n", suite, machine())
	if err := explaining(ctx, dsn); err != nil {
		return err
	}
	if err := s.handOvers(ctx); err != nil {
		return err
	}
	if err := s.recalls(ctx); err != nil {
		return err
	}
	if err := s.rounds(ctx, jobs); err != nil {
		return err
	}
	if err := s.trips(ctx); err != nil {
		return err
	}
	return tradeGain(ctx, suite)
}

// liveOptions is a cluster as the README wants it: with the submit plugin, and with licences for gates.
func liveOptions(suite string) testcluster.Options {
	return testcluster.Options{Suite: suite, Attached: true, Progress: os.Stdout,
		MinJobAge: 600, // half of that is longer than submissions take: else the first round after them reads the history, too
		ExtraConf: "MaxJobCount=50000\nLicenses=fairlease:1000000", Plugin: testcluster.PluginC,
		PluginConf: "partitions=gpu\ndefault_partition=gpu\ngate_license=fairlease\nheartbeat_max_age=3600\noperator_uids=2000\n"}
}

func govern(ctx context.Context, c *testcluster.Cluster, dsn string) (*site, func(), error) {
	if _, _, err := migrate.Up(ctx, dsn, migrate.Schema, func(string) {}); err != nil {
		return nil, nil, err
	}
	st, err := store.Open(ctx, store.Config{DSN: dsn})
	if err != nil {
		return nil, nil, err
	}
	lead, err := st.Acquire(ctx, "bench")
	if err != nil {
		return nil, nil, err
	}
	client, err := slurm.New(slurm.Config{Address: "unix://" + c.RestSocket(), Scontrol: c.Scontrol(), SiteFactor: 1_000_000, License: "fairlease"})
	if err != nil {
		return nil, nil, err
	}
	s := &site{Cluster: c, settings: simtest.Product(), rules: loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}}
	s.settings.Interval = 2 * cluster.Second
	s.loop = &loop.Loop{Cluster: client, Journal: lead.Journal(), Decide: new(engine.Checked).Decide,
		Configure: func() (loop.Rules, cluster.Settings) { return s.rules, s.settings }}
	return s, func() { client.Close(); st.Close() }, nil
}

// handOvers measures from a job's end to the start of the next lease on its GPUs,
// with rounds every two seconds: 40 jobs of 4 GPUs on 16 GPUs, of odd lengths.
func (s *site) handOvers(ctx context.Context) error {
	const n = 40
	for i := range n {
		script := fmt.Sprintf("#!/bin/bash\nsleep %d.%d\n", 3+i%5, i%10)
		if _, err := s.Sbatch(ctx, "alice", script, "--gres=gpu:4", "--begin=now+1hour"); err != nil {
			return err
		}
	}
	if _, err := s.Exec(ctx, "root", "bash", "-c", "for j in $(squeue -h -o %i); do scontrol update jobid=$j StartTime=now; done"); err != nil {
		return err
	}
	for deadline := time.Now().Add(4 * time.Minute); ; {
		if _, err := s.loop.Turn(ctx); err != nil {
			return err
		}
		out, err := s.Exec(ctx, "root", "squeue", "-h")
		if err != nil {
			return err
		}
		if out == "" {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after 4 minutes jobs still wait:\n%s", out)
		}
		time.Sleep(s.settings.Interval.Duration())
	}
	gaps, err := s.gaps(ctx)
	if err != nil {
		return err
	}
	slices.Sort(gaps)
	fmt.Printf("hand-over: %d jobs, rounds every %s, from a job's end to the next start on its node: median %.0f s, worst %.0f s (Slurm counts whole seconds)\n",
		n, s.settings.Interval, gaps[len(gaps)/2], gaps[len(gaps)-1])
	figure("handover_median_s", gaps[len(gaps)/2], "s")
	return nil
}

// gaps reads from the accounting how long each node stood idle between two jobs.
func (s *site) gaps(ctx context.Context) ([]float64, error) {
	out, err := s.Exec(ctx, "root", "env", "SLURM_TIME_FORMAT=%s", "sacct", "-a", "-D", "-X", "-n", "-P", "-S", "now-1hour", "-o", "nodelist,start,end")
	if err != nil {
		return nil, err
	}
	type run struct{ start, end float64 }
	byNode := map[string][]run{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		var r run
		if len(f) != 3 {
			continue
		}
		if _, err := fmt.Sscan(f[1]+" "+f[2], &r.start, &r.end); err != nil {
			continue // not started
		}
		byNode[f[0]] = append(byNode[f[0]], r)
	}
	var gaps []float64
	for _, runs := range byNode {
		slices.SortFunc(runs, func(a, b run) int { return int(a.start - b.start) })
		for i := 1; i < len(runs); i++ {
			gaps = append(gaps, runs[i].start-runs[i-1].end)
		}
	}
	if len(gaps) == 0 {
		return nil, errors.New("the accounting shows no two jobs on one node")
	}
	return gaps, nil
}

// rounds measures rounds with many waiting jobs, gated by the plugin: the first, which sees
// them all for the first time, a full one, which reads everything anew, and a quiet one. The
// figure is the dearer of the first two.
func (s *site) rounds(ctx context.Context, jobs int) error {
	if err := os.WriteFile(filepath.Join(s.HeartbeatDir(), "gpu"), fmt.Appendf(nil, "%d\n", time.Now().Unix()), 0o644); err != nil {
		return err
	}
	if _, err := s.turn(ctx); err != nil { // the licences are all reserved
		return err
	}
	fmt.Printf("submitting %d jobs", jobs)
	for k := range 10 {
		script := fmt.Sprintf("for i in $(seq %d); do sbatch -Q --gres=gpu:%d -t 60 --wrap 'sleep 600' || exit 1; done", jobs/10, []int{1, 2, 4}[k%3])
		if _, err := s.Exec(ctx, []string{"alice", "bob"}[k%2], "bash", "-c", script); err != nil {
			return err
		}
		fmt.Print(".")
	}
	fmt.Println()
	debug.FreeOSMemory()
	if err := resetPeak(); err != nil {
		return fmt.Errorf("reset the peak of memory: %w", err)
	}
	first, err := s.turn(ctx)
	if err != nil {
		return err
	}
	// A job more makes the next round a full one; the small poll sees that much has changed.
	if _, err := s.Exec(ctx, "bob", "sbatch", "-Q", "--gres=gpu:1", "--wrap", "sleep 600"); err != nil {
		return err
	}
	time.Sleep(31 * time.Second) // so old that the full list is due
	full, err := s.turn(ctx)
	if err != nil {
		return err
	}
	var quiet []time.Duration
	for deadline := time.Now().Add(2 * time.Minute); len(quiet) < 5 && time.Now().Before(deadline); {
		time.Sleep(s.settings.Interval.Duration())
		t, err := s.turn(ctx)
		if err != nil {
			return err
		}
		if t.quiet {
			quiet = append(quiet, t.cpu)
		}
	}
	fmt.Printf("first round with %d waiting jobs: %s CPU, %s wall, %d actions; a full round: %s CPU, %s wall, %d actions\n",
		jobs, first.cpu, first.wall, first.actions, full.cpu, full.wall, full.actions)
	figure("live_round_10k_cpu_s", max(first.cpu, full.cpu).Seconds(), "s")
	figure("live_round_10k_mib", peakMiB(), "MiB")
	if len(quiet) == 0 {
		return errors.New("no round was quiet within two minutes")
	}
	slices.Sort(quiet)
	figure("quiet_round_cpu_ms", quiet[len(quiet)/2].Seconds()*1e3, "ms")
	return nil
}

type turn struct {
	cpu, wall time.Duration
	actions   int
	quiet     bool
}

func (s *site) turn(ctx context.Context) (turn, error) {
	begin, cpu := time.Now(), used()
	r, err := s.loop.Turn(ctx)
	return turn{cpu: (used() - cpu).Round(time.Millisecond), wall: time.Since(begin).Round(time.Millisecond),
		actions: len(r.Plan.Actions), quiet: r.Quiet}, err
}
