package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// quantum is the length of turns on GPUs. An srun that asks for its step just when its job is suspended asks again after a minute: with turns of 30 s that
	// is the end of its next turn, when the job is suspended again.
	quantum = 40 * time.Second
	timer   = 15 * time.Second // of fairlease thaw
	// allStopFor is the same for all jobs on a GPU: one is suspended before the other is resumed, and a daemon may be killed between.
	allStopFor = 5 * timer
)

// stopsFor is how long a job may be suspended while slurmctld answers: until fairlease thaw takes it for forgotten (the turns of the others, three rounds and
// 15 s), and until that has come to Slurm, which may take it several tries while something else fails. Of three jobs on a GPU, one may have two turns for each
// of the others, which are of another tenant.
func stopsFor(sharers int) time.Duration {
	others := quantum
	if sharers == 3 {
		others = 3 * quantum
	}
	return others + 3*time.Second + 15*time.Second + 4*timer
}

// turns is what was seen of jobs that take turns on GPUs.
type turns struct {
	Seen, Thawed int // suspensions that were seen, and jobs that fairlease thaw resumed
	Job, GPU     stop
}

// stop is the longest time for which a job, or all on a GPU, stood still while slurmctld answered.
type stop struct {
	What string
	From time.Time
	For  time.Duration
}

func (s stop) round() time.Duration { return s.For.Round(time.Second) }

// sharing gives the options of a job with which it may take turns, if it asks for one GPU and nothing that forbids that.
func sharing(args []string) []string {
	const words = "share=yes,mem.v100=9g" // three fit on a GPU
	if !slices.Contains(args, "--gres=gpu:1") || slices.ContainsFunc(args, func(a string) bool { return a == ":" || a == "--exclusive" }) {
		return args
	}
	out := slices.Clone(args)
	for i, a := range out {
		if strings.HasPrefix(a, "--comment=") {
			if !strings.Contains(a, "{") {
				out[i] += "," + words
			}
			return out
		}
	}
	return append(out, "--comment="+words)
}

// shared is a job with a part of a GPU.
type shared struct {
	id, gpu string
	paused  bool
}

// parts is Slurm's note of the parts of GPUs that a job has on a node, such as 0/2,1/2.
var parts = regexp.MustCompile(`shard:(?:[a-z0-9]+:)?[0-9]+\(([0-9/,]+)\)`)

// sharers reads the jobs that have parts of GPUs from what scontrol shows.
func sharers(text string) (out []shared) {
	for line := range strings.Lines(text) {
		w := word(line)
		m := parts.FindStringSubmatch(w["GRES"])
		if m == nil || w["JobState"] != "RUNNING" && w["JobState"] != "SUSPENDED" {
			continue
		}
		for k, part := range strings.Split(m[1], ",") {
			if !strings.HasPrefix(part, "0/") {
				out = append(out, shared{w["JobId"], fmt.Sprintf("GPU %d of %s", k, w["Nodes"]), w["JobState"] == "SUSPENDED"})
			}
		}
	}
	return out
}

// watched keeps since when jobs, and all on a GPU, have stood still.
type watched struct {
	turns
	last  time.Time            // when slurmctld answered last
	since map[string]time.Time // by job and by GPU
}

// look takes what Slurm shows at a moment. Where slurmctld has not answered for a while, all begins anew.
func (w *watched) look(list []shared, now time.Time) {
	if now.Sub(w.last) > 5*time.Second {
		w.since = nil
	}
	still, runs := map[string]bool{}, map[string]bool{}
	for _, j := range list {
		if j.paused {
			still["job "+j.id], still[j.gpu] = true, true
		} else {
			runs[j.gpu] = true
		}
	}
	maps.DeleteFunc(still, func(what string, _ bool) bool { return runs[what] })
	since := map[string]time.Time{}
	for what := range still {
		at, was := w.since[what]
		if !was {
			at = now
		}
		since[what] = at
		longest := &w.GPU
		if strings.HasPrefix(what, "job ") {
			if longest = &w.Job; !was {
				w.Seen++
			}
		}
		if long := now.Sub(at); long > longest.For {
			*longest = stop{what, at, long}
		}
	}
	w.last, w.since = now, since
}

// watch looks at the jobs that take turns every two seconds, and has fairlease thaw run as its timers do, until its result is called.
func (c *campaign) watch(ctx context.Context) func() turns {
	ctx, enough := context.WithCancel(ctx)
	var hands sync.WaitGroup
	var w watched
	thawed := 0
	hands.Go(func() {
		for ; ctx.Err() == nil; wait(ctx, 2*time.Second) {
			asked, cancel := context.WithTimeout(ctx, 4*time.Second)
			out, err := c.Exec(asked, "root", "scontrol", "-d", "-o", "show", "job")
			if cancel(); err == nil {
				w.look(sharers(out), time.Now())
			}
		}
	})
	hands.Go(func() {
		for ; ctx.Err() == nil; wait(ctx, timer) {
			for _, x := range c.sidecars {
				asked, cancel := context.WithTimeout(ctx, time.Minute)
				out, err := x.Fairlease(asked, nil, "thaw")
				cancel()
				n := 0
				for line := range strings.Lines(out) {
					if _, bad := fmt.Sscanf(line, "resumed: %d jobs", &n); bad == nil && n > 0 {
						thawed += n
						c.say("thaw of sidecar %s resumed %d jobs (%v)", x.name, n, err)
					}
				}
			}
		}
	})
	return func() turns {
		enough()
		hands.Wait()
		w.Thawed = thawed
		return w.turns
	}
}

// wait waits, or until the context ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// stopped gives jobs that were suspended for too long, and GPUs on which all stood still for too long. A long run in which none took turns shows nothing.
func stopped(f *Facts) []string {
	var out []string
	if t := f.Turns.Job; t.For > stopsFor(f.Sharers) {
		out = append(out, fmt.Sprintf("%s was suspended for %s from %s, though slurmctld answered", t.What, t.round(), clock(t.From)))
	}
	if t := f.Turns.GPU; t.For > allStopFor {
		out = append(out, fmt.Sprintf("all jobs on %s were suspended for %s from %s, though slurmctld answered", t.What, t.round(), clock(t.From)))
	}
	if length := f.Failing.To.Sub(f.Failing.From); f.Sharers > 0 && length >= judgedAfter && f.Turns.Seen == 0 {
		out = append(out, fmt.Sprintf("no job took turns in %s", length.Round(time.Second)))
	}
	return out
}
