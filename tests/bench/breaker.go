package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// trips counts the rounds from the moment when others have requeued more jobs than may be until the breaker has tripped. Nothing is acted on after it.
func (s *site) trips(ctx context.Context) error {
	s.settings.Breaker = cluster.BreakerRule{Requeues: cluster.Bound{Max: 1}}
	for _, user := range []string{"alice", "bob"} {
		if _, err := s.Exec(ctx, "root", "scancel", "-u", user); err != nil {
			return err
		}
	}
	counted := func(want int, args ...string) func() bool {
		return func() bool {
			out, err := s.Exec(ctx, "root", append([]string{"squeue", "-h", "-o", "%i"}, args...)...)
			return err == nil && len(strings.Fields(out)) == want
		}
	}
	if err := s.turnsUntil(ctx, "all jobs are gone", counted(0)); err != nil {
		return err
	}
	var jobs []string
	for user, account := range map[string]string{"alice": "nlp", "bob": "vision"} {
		id, err := s.Sbatch(ctx, user, "#!/bin/bash\nexec sleep 3600\n", "-A", account, "--gres=gpu:4")
		if err != nil {
			return err
		}
		jobs = append(jobs, id)
	}
	if err := s.turnsUntil(ctx, "both jobs run", counted(2, "-t", "R")); err != nil {
		return err
	}
	if _, err := s.Exec(ctx, "root", "scontrol", "requeue", strings.Join(jobs, ",")); err != nil {
		return err
	}
	rounds := 0
	if err := s.turnsUntil(ctx, "the breaker has tripped", func() bool { rounds++; return s.last.State.Breaker.Trip != nil }); err != nil {
		return err
	}
	fmt.Printf("breaker: %s\n", s.last.State.Breaker.Trip.Says())
	figure("breaker_trip_rounds", float64(rounds), "rounds")
	return nil
}
