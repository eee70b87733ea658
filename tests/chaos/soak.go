package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sample is what the leading sidecar and its journal needed at a moment.
type sample struct {
	At                              time.Duration // since the start
	Memory, Descriptors, Goroutines float64       // Memory in MiB, resident
	Live                            float64       // MiB of the heap that the last garbage collection left
	Journal                         float64       // MiB
	Jobs, Rounds                    int
	Drift                           float64 // of the books from slurmdbd's, in percent, over all jobs that have ended
}

// needs are what may not grow, with what it may grow by: a part, and so much. The Go runtime gives memory back late, and a burst of jobs takes some; a
// connection or two come with a forecast or a command.
var needs = []struct {
	name       string
	of         func(*sample) float64
	part, more float64
	unit       string
}{
	{"memory", func(s *sample) float64 { return s.Memory }, 0.25, 16, "MiB"},
	{"descriptors", func(s *sample) float64 { return s.Descriptors }, 0, 10, "descriptors"},
	{"goroutines", func(s *sample) float64 { return s.Goroutines }, 0, 30, "goroutines"},
}

// The journal grows with jobs and rounds, by at most so much for each after the first quarter: about twice what soaks have needed, 9.7 KiB a job and
// 2.95 KiB a round. Tables and indexes also begin pages.
const (
	kibPerJob, kibPerRound = 20, 6
	mibBegun               = 2
)

// grown tells what grew: the most in the last quarter of the samples, beside the most in the second one; and the journal, beside its jobs and rounds. The
// first quarter is for buffers to fill.
func grown(samples []sample) []string {
	quarter := len(samples) / 4
	if quarter < 2 {
		return []string{fmt.Sprintf("%d samples are too few to see whether anything grows: soak for longer", len(samples))}
	}
	most := func(of func(*sample) float64, list []sample) (top float64) {
		for i := range list {
			top = max(top, of(&list[i]))
		}
		return top
	}
	var out []string
	for _, n := range needs {
		before, after := most(n.of, samples[quarter:2*quarter]), most(n.of, samples[len(samples)-quarter:])
		if bound := before*(1+n.part) + n.more; after > bound {
			out = append(out, fmt.Sprintf("the sidecar's %s grow: at most %.0f %s in the second quarter, %.0f in the last one, more than %.0f", n.name, before, n.unit, after, bound))
		}
	}
	first, last := &samples[quarter], &samples[len(samples)-1]
	size, jobs, rounds := last.Journal-first.Journal, last.Jobs-first.Jobs, last.Rounds-first.Rounds
	if bound := mibBegun + float64(min(kibPerJob*jobs, kibPerRound*rounds))/1024; size > bound {
		out = append(out, fmt.Sprintf("the journal grows: by %.1f MiB for %d jobs and %d rounds after the first quarter, more than %.1f", size, jobs, rounds, bound))
	}
	return out
}

// tide gives how much longer users wait between two deeds at a moment of a week that the run compresses, where 1 is a busy day: they
// sleep for half of each day, and do little on its last two.
func tide(part float64) float64 {
	day, hour := math.Modf(7 * part)
	wait := 0.7
	if hour < 0.5 {
		wait = 8
	}
	if day >= 5 {
		wait *= 3
	}
	return wait
}

// soak lets load come and go, without faults, and takes samples.
func (c *campaign) soak(ctx context.Context, length time.Duration) error {
	const every = 64 // parts of the run
	began := time.Now()
	for time.Since(began) < length {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(length / every):
		}
		s, err := c.sample(ctx)
		if err != nil {
			return err
		}
		s.At = time.Since(began)
		c.samples = append(c.samples, s)
		c.say("%.0f MiB, %.0f of them live; %.0f descriptors, %.0f goroutines; journal %.1f MiB for %d jobs and %d rounds; books %+.2f %%",
			s.Memory, s.Live, s.Descriptors, s.Goroutines, s.Journal, s.Jobs, s.Rounds, s.Drift)
	}
	return nil
}

// sample looks at the leading sidecar and at its journal.
func (c *campaign) sample(ctx context.Context) (s sample, err error) {
	active, _ := c.leading(ctx)
	metrics, err := active.metrics(ctx)
	if err != nil {
		return s, err
	}
	s.Memory, s.Descriptors, s.Goroutines = metrics["process_resident_memory_bytes"]/(1<<20), metrics["process_open_fds"], metrics["go_goroutines"]
	s.Live = metrics["go_memstats_next_gc_bytes"] / 2 / (1 << 20) // GOGC is 100: the next one comes at twice that
	if min(s.Memory, s.Descriptors, s.Goroutines) <= 0 {
		return s, errors.New("the sidecar's metrics lack its memory, descriptors or goroutines")
	}
	if s.Journal, err = ask[float64](ctx, c.site, "select pg_database_size(current_database()) / 1048576.0::float8"); err != nil {
		return s, err
	}
	if s.Rounds, err = ask[int](ctx, c.site, "select count(*)::int from rounds"); err != nil {
		return s, err
	}
	f := &Facts{}
	if f.Attempts, err = c.attempts(ctx); err != nil {
		return s, err
	}
	if err := c.journal(ctx, f); err != nil {
		return s, err
	}
	s.Jobs = len(f.Books)
	runs := map[string]bool{}
	for _, a := range f.Attempts {
		runs[a.Job] = runs[a.Job] || a.End.IsZero()
	}
	over := held(slices.DeleteFunc(f.books()[everybody], func(b Book) bool { return runs[b.Job] }))
	s.Drift = 100 * (over.Ours/max(over.Slurmdb, 1) - 1)
	return s, nil
}

// metrics reads those that have no labels, from the address in the sidecar's log.
func (s *sidecar) metrics(ctx context.Context) (map[string]float64, error) {
	log, err := os.ReadFile(s.Log)
	if err != nil {
		return nil, err
	}
	var at struct{ Address string }
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "metrics can be read") {
			if err := json.Unmarshal([]byte(line), &at); err != nil {
				return nil, err
			}
		}
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.Address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	out, lines := map[string]float64{}, bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok {
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				out[name] = n
			}
		}
	}
	return out, lines.Err()
}

// whole has each tenant ask for all GPUs that it is promised, which are all that there are, at the same time.
func (c *campaign) whole(ctx context.Context) []string {
	before := len(c.users.jobs)
	for _, who := range []int{0, 2, 1, 3, 5} { // alice, carol, bob, bob, dan
		c.users.submit(ctx, manner{script: sleeper(600), args: []string{"--gres=gpu:4", "--comment=saves=term"}}, who)
	}
	held := 0
	all := until(ctx, patience, func() bool {
		out, err := c.Exec(ctx, "root", "squeue", "-h", "-t", "R", "-o", "%i")
		held = 4 * len(strings.Fields(out))
		return err == nil && held == 4*nodes
	})
	for _, j := range c.users.jobs[before:] {
		c.users.did(j.id, "cancel")
		_ = c.users.command(ctx, "root", "scancel", j.id) // the wait for the end shows whether it did
	}
	if !all {
		return []string{fmt.Sprintf("GPUs are lost: jobs that ask for all %d hold %d after %s", 4*nodes, held, patience)}
	}
	return nil
}

// printSoak prints the figures of a soak.
func (o *outcome) printSoak(w io.Writer) {
	first, last := o.Samples[len(o.Samples)/4], o.Samples[len(o.Samples)-1]
	size := last.Journal - first.Journal
	per := func(n int) float64 { return 1024 * size / float64(max(n, 1)) }
	top := slices.MaxFunc(o.Samples, func(a, b sample) int { return cmp.Compare(a.Memory, b.Memory) })
	fmt.Fprintf(w, "\nsoak_memory_mib %.0f (at most %.0f; live %.0f, %.0f after the first quarter)\nsoak_descriptors %.0f\nsoak_goroutines %.0f\n", last.Memory, top.Memory, last.Live, first.Live, last.Descriptors, last.Goroutines)
	fmt.Fprintf(w, "soak_journal_kib_per_job %.1f\nsoak_journal_kib_per_round %.2f\nsoak_drift_pct %.2f\n",
		per(last.Jobs-first.Jobs), per(last.Rounds-first.Rounds), 100*(o.Books[0]/max(o.Books[1], 1)-1))
}
