package slurm_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// racesOf gives the number of races that FAIRLEASE_RACES asks for; 50 where it is empty.
func racesOf(value string) (int, error) {
	if value == "" {
		return 50, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("FAIRLEASE_RACES is %q: set it to the number of races, at least 1", value)
	}
	return n, nil
}

func TestRacesOf(t *testing.T) {
	for value, want := range map[string]int{"": 50, "1": 1, "1000": 1000} {
		if n, err := racesOf(value); n != want || err != nil {
			t.Errorf("%q: %d races, %v; want %d", value, n, err, want)
		}
	}
	for _, value := range []string{"0", "-3", "many", "1e3", " 5"} {
		if n, err := racesOf(value); err == nil || !strings.Contains(err.Error(), "FAIRLEASE_RACES") {
			t.Errorf("%q: %d races, %v; want an error that names FAIRLEASE_RACES", value, n, err)
		}
	}
}

// races has owners open gates at the moment of a grant on fewer nodes than Slurm would give: no job is cut, and slurmctld lives.
// There are 50 races on one Slurm, or FAIRLEASE_RACES on each where that is set. Grants come from the moment at which the owner opens
// the gate to a while after the job has started. At least one grant must come before the start, and one after it: else nothing raced.
func races(l *live) {
	value := os.Getenv("FAIRLEASE_RACES")
	if value == "" && l.suite != "forky" {
		l.Skip("one Slurm races; set FAIRLEASE_RACES to a number of races on both")
	}
	races, err := racesOf(value)
	if err != nil {
		l.Fatal(err)
	}
	for _, node := range []string{"k1", "k2", "v1", "v2"} { // leave one GPU on each node
		l.until(job(l.submit("bob", sleeper, "--gres=gpu:3", "-w", node)), "running", in(cluster.Running))
	}
	kinds := [][]string{{"-N1-4", "--gres=gpu:1"}, {"--gpus=4"}, {"-N2", "--gres=gpu:1"}, {"-n4", "--gpus-per-task=1"}}
	script := "#!/bin/bash\nsrun sleep 900\n"
	waits := func(kind []string) cluster.Job {
		id := job(l.submit("alice", script, append([]string{"--begin=now+1hour"}, kind...)...))
		return l.until(id, "waiting", in(cluster.Waiting))
	}
	open := func(id cluster.JobID) {
		_, _ = l.slurm.Exec(l.Context(), "alice", "scontrol", "update", "jobid="+id.String(), "StartTime=now")
	}
	end := func(id cluster.JobID) {
		l.exec("root", "scancel", id.String())
		l.until(id, "ended", in(cluster.Done))
	}
	// Without a grant, one job of each kind shows how long a start takes. The grants of the races spread over a quarter more.
	slowest := time.Duration(0)
	for _, kind := range kinds {
		id, began := waits(kind).ID, time.Now()
		open(id)
		l.until(id, "running", in(cluster.Running))
		slowest = max(slowest, time.Since(began))
		end(id)
	}
	slowest = min(slowest, 4*time.Second) // so that a thousand races end
	steps := min(max(races/len(kinds), 2), 26)
	started, granted, skipped, other := 0, 0, 0, ""
	var deadline time.Time
	i := 0
	for ; ; i++ {
		after := slowest * 5 / 4 * time.Duration(i/len(kinds)%steps) / time.Duration(steps-1)
		if i >= races { // on a machine that is busy now and idle then, the first time may not tell much
			if started > 0 && granted > 0 && skipped > 0 {
				break
			}
			if i == races {
				deadline = time.Now().Add(2 * patience)
			} else if time.Now().After(deadline) {
				break
			}
			after = time.Duration(i%2) * (slowest + time.Duration(i-races)*200*time.Millisecond)
		}
		j := waits(kinds[i%len(kinds)])
		g := act(cluster.Grant, j)
		g.Nodes = []string{"k1", "v1"}
		var outcome cluster.Outcome
		var both sync.WaitGroup
		both.Go(func() {
			time.Sleep(after)
			outcome = l.client.Apply(l.Context(), []cluster.Action{g})[0]
		})
		both.Go(func() { open(j.ID) })
		both.Wait()
		switch {
		case outcome.OK:
			granted++
		case outcome.Skipped:
			skipped++
		case other == "":
			other = outcome.Error
		}
		if j, there := find(l.see(), j.ID); there && j.State == cluster.Running {
			started++
		}
		end(j.ID)
		if !slurmctldLives(l) {
			l.Fatalf("slurmctld does not run after %d races", i+1)
		}
	}
	l.Logf("%d races, a start takes up to %v; %d jobs had started after the grant, %d grants came before the start, %d after it; another error of a grant: %q",
		i, slowest.Round(time.Millisecond), started, granted, skipped, other)
	if started == 0 || granted == 0 || skipped == 0 {
		l.Errorf("%d jobs had started after the grant, %d grants came before the start, %d after it; without one of each nothing raced", started, granted, skipped)
	}
	var out string
	l.eventually("sacct lists all jobs", func() bool {
		out = l.exec("root", "sacct", "-a", "-D", "-X", "-n", "-P", "-S", "now-1days", "-o", "jobid,state,nodelist")
		return strings.Count(out, "\n") >= i
	}, func() string { return fmt.Sprintf("%d rows for %d jobs", strings.Count(out, "\n"), i) })
	for line := range strings.Lines(out) {
		if strings.Contains(line, "RESIZING") {
			l.Errorf("a running job was cut: %s", line)
		}
	}
	if !slurmctldLives(l) {
		l.Error("slurmctld does not run")
	}
}

func slurmctldLives(l *live) bool {
	for _, d := range l.slurm.Running() {
		if d == testcluster.Slurmctld {
			return true
		}
	}
	return false
}
