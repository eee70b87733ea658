package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlease/fairlease/migrate"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// thawEvery is the period of fairlease-thaw.timer.
const thawEvery = 15 * time.Second

// onceStopped runs scontrol, and kills the daemon that called it once it has suspended a job, if the file beside it says so: between the two halves
// of a switch, when both jobs of a GPU are suspended.
const onceStopped = `#!/bin/sh
"$@"
rc=$?
case " $* " in *" suspend "*) rm "$(dirname "$0")/armed" 2>/dev/null && kill -9 $PPID ;; esac
exit $rc
`

// frozen measures how long both jobs of a GPU stand still after kill -9 of the daemon between suspend and resume, with the default interval: until
// each of the things that resume jobs has done so by itself, at its worst phase. The figure is the worst of them.
func frozen(ctx context.Context, c *testcluster.Cluster, dsn string) error {
	k, err := newKilled(ctx, c, dsn)
	if err != nil {
		return err
	}
	defer k.end()
	worst := time.Duration(0)
	for _, by := range []struct {
		name   string
		rescue func(ctx context.Context) error // until it is cancelled
	}{
		{"the timer on the daemon's host", func(ctx context.Context) error { return k.timer(ctx, k.program("thaw")) }},
		{"the timer on the standby's host", func(ctx context.Context) error { return k.timer(ctx, elsewhere(k.program("thaw"))) }},
		{"the standby", func(ctx context.Context) error { return k.run(ctx, elsewhere(k.program("serve"))) }},
		{"the daemon's unit", func(ctx context.Context) error {
			return errors.Join(k.run(ctx, append([]string{"env", "SERVICE_RESULT=signal"}, k.program("release", "--after-crash")...)), k.run(ctx, k.program("thaw", "--all")))
		}},
	} {
		took, err := k.kill(ctx, by.rescue)
		if err != nil {
			return fmt.Errorf("%s: %w", by.name, err)
		}
		fmt.Printf("killed between suspend and resume: both jobs of the GPU go on after %.1f s, by %s alone\n", took.Seconds(), by.name)
		worst = max(worst, took)
	}
	figure("slices_frozen_after_kill_s", worst.Seconds(), "s")
	return nil
}

// killed is a cluster whose daemon is killed.
type killed struct {
	*testcluster.Cluster
	dir  string
	jobs map[string]string // the user of each job
	log  *os.File          // the output of all its processes
}

func newKilled(ctx context.Context, c *testcluster.Cluster, dsn string) (*killed, error) {
	dir, err := os.MkdirTemp("", "fairlease-bench")
	if err != nil {
		return nil, err
	}
	k := &killed{Cluster: c, dir: dir, jobs: map[string]string{}}
	if k.log, err = os.Create(k.file("log")); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", k.file("fairlease"), "./sidecar/cmd/fairlease").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var words []string
	for _, w := range append([]string{k.file("scontrol")}, c.Scontrol()...) {
		words = append(words, fmt.Sprintf("%q", w))
	}
	config := fmt.Sprintf(`mode: act
partitions: [gpu]
gate: {license: fairlease}
stop: {per_hour: 0}
config: {accept_above: 0}
sharing: {across: any, slices: on, quantum: 30s, memory: {v100: 32g}}
slurm: {address: 'unix://%s', scontrol: [%s]}
database: {url: %q}
files: {heartbeats: %s, state: %s}
metrics: {listen: '127.0.0.1:0'}
`, c.RestSocket(), strings.Join(words, ", "), dsn, c.HeartbeatDir(), k.file("state.json"))
	_, _, err = migrate.Up(ctx, dsn, migrate.Schema, func(string) {})
	return k, errors.Join(err, os.WriteFile(k.file("fairlease.yaml"), []byte(config), 0o600), os.WriteFile(k.file("scontrol"), []byte(onceStopped), 0o700))
}

func (k *killed) end() {
	_ = k.log.Close()
	_ = os.RemoveAll(k.dir)
}

func (k *killed) file(name string) string { return filepath.Join(k.dir, name) }

// program is the command line of fairlease.
func (k *killed) program(args ...string) []string {
	return append([]string{k.file("fairlease"), "-c", k.file("fairlease.yaml")}, args...)
}

// elsewhere runs a command as on another host, which sees nothing of this one's processes by its name.
func elsewhere(command []string) []string {
	return append([]string{"unshare", "--uts", "sh", "-c", `hostname standby && exec "$@"`, "standby"}, command...)
}

// run runs a command until it ends or is no longer needed.
func (k *killed) run(ctx context.Context, command []string) error {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdout, c.Stderr = k.log, k.log
	if err := c.Run(); ctx.Err() == nil {
		return err
	}
	return nil
}

// timer runs a command in the timer's period, as if it had last run just before.
func (k *killed) timer(ctx context.Context, command []string) error {
	for next := time.Now().Add(thawEvery); ; next = next.Add(thawEvery) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(next)):
		}
		if err := k.run(ctx, command); err != nil {
			return err
		}
		if now := time.Now(); now.After(next.Add(thawEvery)) {
			next = now.Add(-thawEvery)
		}
	}
}

// kill kills a daemon in the middle of a switch, and gives the time from there until all jobs have gone on.
func (k *killed) kill(ctx context.Context, rescue func(context.Context) error) (time.Duration, error) {
	daemon := exec.CommandContext(ctx, k.file("fairlease"), k.program("serve")[1:]...)
	daemon.Stdout, daemon.Stderr = k.log, k.log
	if err := daemon.Start(); err != nil {
		return 0, err
	}
	gone := make(chan struct{})
	go func() { _ = daemon.Wait(); close(gone) }()
	if err := k.submit(ctx); err != nil {
		return 0, err
	}
	if err := k.until(ctx, "two jobs take turns", 5*time.Minute, func() bool { return k.suspended(ctx) == 1 }); err != nil {
		return 0, err
	}
	if err := os.WriteFile(k.file("armed"), nil, 0o600); err != nil {
		return 0, err
	}
	if err := k.until(ctx, "the daemon is killed in a switch", 3*time.Minute, func() bool {
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}); err != nil {
		return 0, err
	}
	begin := time.Now()
	if n := k.suspended(ctx); n != len(k.jobs) {
		return 0, fmt.Errorf("%d jobs of %d are suspended after the kill", n, len(k.jobs))
	}
	const goesOn = 5 // ticks
	was := k.counts()
	try, stop := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- rescue(try) }()
	err := k.until(ctx, "all jobs have gone on", 5*time.Minute, func() bool {
		now := k.counts()
		for id := range k.jobs {
			if now[id] < was[id]+goesOn {
				return false
			}
		}
		return true
	})
	took := time.Since(begin)
	stop()
	return took, errors.Join(err, <-over)
}

// submit submits the two jobs, once.
func (k *killed) submit(ctx context.Context) error {
	if len(k.jobs) > 0 {
		return nil
	}
	for user, account := range map[string]string{"alice": "nlp", "bob": "vision"} {
		id, err := k.Sbatch(ctx, user, ticks, "-A", account, "--gres=gpu:1", "--requeue", "-L", "fairlease:1", "--comment=share=yes,mem.v100=14g,saves=term")
		if err != nil {
			return err
		}
		k.jobs[id] = user
	}
	return nil
}

// suspended gives the number of jobs that are suspended.
func (k *killed) suspended(ctx context.Context) (n int) {
	out, err := k.Exec(ctx, "root", "squeue", "-h", "-t", "SUSPENDED", "-o", "%i")
	if err != nil {
		return -1
	}
	return len(strings.Fields(out))
}

// counts gives the ticks of each job.
func (k *killed) counts() map[string]int {
	out := map[string]int{}
	for id, user := range k.jobs {
		text, _ := os.ReadFile(filepath.Join(k.Home(user), "ticks-"+id))
		out[id] = bytes.Count(text, []byte("\n"))
	}
	return out
}

// until polls until something holds.
func (k *killed) until(ctx context.Context, about string, limit time.Duration, done func() bool) error {
	for end := time.Now().Add(limit); !done(); time.Sleep(200 * time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(end) {
			text, err := os.ReadFile(k.log.Name())
			return errors.Join(fmt.Errorf("%s: not within %s; the last that fairlease wrote:\n%s", about, limit, text[max(len(text)-2000, 0):]), err)
		}
	}
	return nil
}
