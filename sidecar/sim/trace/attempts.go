package trace

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// attempt is one row of Slurm's accounting: the time of a job from a submission or requeue to the
// next.
type attempt struct {
	job      Job          // Submit since 1970; Runs of this attempt
	start    cluster.Span // since 1970, 0 = never
	state    string       // Slurm's, with the flag REQUEUED first
	restarts int          // -1 = unknown
	line     int
}

// ends tells whether a state is final: no attempt follows by itself.
func ends(state string) bool {
	switch state {
	case "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "REVOKED":
		return true
	}
	return false
}

// goesOn tells whether a job in this state was live at the time of the query.
func goesOn(state string) bool {
	switch state {
	case "PENDING", "RUNNING", "SUSPENDED", "STOPPED", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "RESIZING", "COMPLETING", "CONFIGURING", "SIGNALING", "STAGE_OUT",
		"EXPEDITING":
		return true
	}
	return false
}

// follows tells whether a is a further attempt of the job with attempt last. Slurm reuses ids
// after a loss of slurmctld's state, so equal ids are not sufficient.
func (a *attempt) follows(last *attempt) bool {
	if a.job.User != last.job.User {
		return false
	}
	if a.restarts >= 0 {
		return a.restarts > 0
	}
	return !ends(last.state)
}

// join combines attempts to jobs: run times summed, submission of the first, outcome of the last,
// size of the last that ran. A later job with a reused id is named ID#2, and so on.
func join(all []attempt, c *collector, file string) {
	slices.SortStableFunc(all, func(a, b attempt) int {
		return cmp.Or(strings.Compare(a.job.ID, b.job.ID), cmp.Compare(a.job.Submit, b.job.Submit),
			cmp.Compare(a.start, b.start), cmp.Compare(a.line, b.line))
	})
	for len(all) > 0 {
		id, n := all[0].job.ID, 1
		for n < len(all) && all[n].job.ID == id {
			n++
		}
		group := all[:n]
		all = all[n:]
		for round := 1; len(group) > 0; round++ {
			whole, state := group[0], group[0].state
			if round > 1 {
				whole.job.ID += "#" + strconv.Itoa(round)
			}
			last := &group[0]
			n := 1
			for ; n < len(group); n++ {
				next := &group[n]
				if next.job.Submit == last.job.Submit && next.start == last.start {
					c.bad(file, next.line, "the same attempt of job %.80s as on line %d", id, last.line)
					continue
				}
				if !next.follows(last) {
					break
				}
				c.joined()
				whole.add(next)
				last, state = next, next.state
			}
			whole.job.Outcome = outcomeOf(state)
			c.keep(whole.job, note{unfinished: goesOn(state)}, file, whole.line)
			group = group[n:]
		}
	}
}

// add joins a later attempt to the job so far.
func (a *attempt) add(b *attempt) {
	submit, runs, id := a.job.Submit, a.job.Runs+b.job.Runs, a.job.ID
	if b.job.Runs > 0 || a.job.Runs == 0 {
		a.job = b.job
	}
	a.job.Submit, a.job.Runs, a.job.ID = submit, runs, id
}
