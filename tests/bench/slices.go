package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// ticks is a job that writes a byte each tenth of a second in which it goes on.
const ticks = "#!/bin/bash\nwhile sleep 0.1; do echo; done >ticks-$SLURM_JOB_ID\n"

// onSlices measures turns on a real Slurm whose grace is 0: first turns of a minute of two tenants with two jobs each on two GPUs, for ten minutes,
// then how long jobs stand still once the daemon was killed.
func onSlices(suite string) error {
	o := liveOptions(suite)
	o.ExtraConf += "\nPreemptParameters=suspend_grace_time=0"
	o.Nodes = []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 2, Shards: 8}}
	if err := onSite(o, func(ctx context.Context, s *site, _ string) error { return s.turns(ctx) }); err != nil {
		return err
	}
	o.Nodes = []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 1, Shards: 4}}
	return onCluster(o, frozen)
}

func (s *site) turns(ctx context.Context) error {
	s.settings.Slices = &cluster.Slices{Quantum: cluster.Minute, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}}
	s.settings.Term = cluster.Hour
	if err := s.turnsUntil(ctx, "the lock", func() bool { return true }); err != nil { // jobs that ask for its licence wait
		return err
	}
	type tick struct {
		id, user string
		from     int
	}
	submit := func(user, account string, args ...string) (tick, error) {
		id, err := s.Sbatch(ctx, user, ticks, append([]string{"-A", account, "--gres=gpu:1", "--requeue", "-L", "fairlease:1"}, args...)...)
		return tick{id: id, user: user}, err
	}
	count := func(j *tick) int {
		text, err := os.ReadFile(filepath.Join(s.Home(j.user), "ticks-"+j.id))
		if err != nil {
			return 0
		}
		return bytes.Count(text, []byte("\n"))
	}
	alone, err := submit("alice", "nlp")
	if err != nil {
		return err
	}
	if err := s.turnsUntil(ctx, "a job runs", func() bool { return count(&alone) > 0 }); err != nil {
		return err
	}
	first, begin := count(&alone), time.Now()
	time.Sleep(30 * time.Second)
	pace := float64(count(&alone)-first) / time.Since(begin).Seconds()
	if _, err := s.Exec(ctx, "root", "scancel", alone.id); err != nil {
		return err
	}
	if err := s.turnsUntil(ctx, "it is gone", func() bool { out, err := s.Exec(ctx, "root", "squeue", "-h"); return err == nil && out == "" }); err != nil {
		return err
	}
	var jobs []tick
	for range 2 {
		for user, account := range map[string]string{"alice": "nlp", "bob": "vision"} {
			j, err := submit(user, account, "--comment=share=yes,mem.v100=14g,saves=term")
			if err != nil {
				return err
			}
			jobs = append(jobs, j)
		}
	}
	if err := s.turnsUntil(ctx, "all have begun", func() bool {
		for i := range jobs {
			if jobs[i].from = count(&jobs[i]); jobs[i].from == 0 {
				return false
			}
		}
		return true
	}); err != nil {
		return err
	}
	// From the beginning of a turn to that of the same job's next one but some: a part of a cycle would count for one side.
	const measured = 10 * time.Minute
	switches := 0
	begin = time.Time{}
	for even := false; begin.IsZero() || time.Since(begin) < measured || !even; time.Sleep(s.settings.Interval.Duration()) {
		even = false
		r, err := s.loop.Turn(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(r.Plan.Actions, func(a cluster.Action) bool { return a.Verb == cluster.Resume && a.ID.String() == jobs[0].id }) {
			continue
		}
		if switches++; switches > 1 {
			even = true
			continue
		}
		begin = time.Now()
		for i := range jobs {
			jobs[i].from = count(&jobs[i])
		}
	}
	took, done := time.Since(begin).Seconds(), map[string]float64{}
	for i := range jobs {
		done[jobs[i].user] += float64(count(&jobs[i]) - jobs[i].from)
	}
	sum := done["alice"] + done["bob"]
	fmt.Printf("turns of a minute, for %.0f s: %d turns of a job; a job alone does %.2f ticks a second, alice's %.0f in all, bob's %.0f\n", took, switches-1, pace, done["alice"], done["bob"])
	figure("slice_share_error_pct", 100*math.Abs(done["alice"]/sum-0.5)/0.5, "%")
	figure("slice_switch_overhead_pct", 100*(1-sum/(2*pace*took)), "%")
	return nil
}
