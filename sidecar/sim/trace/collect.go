package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// The maximum values in a trace. Larger numbers are mistakes, and their sums would not fit 64
// bits.
const (
	mostGPUs  = 1 << 20
	mostCount = 1 << 31
	longest   = 100 * 366 * cluster.Day
)

// collector classifies every row and collects the jobs. Until finish, Submit is since the Unix
// epoch in formats with absolute times.
type collector struct {
	trace Trace
	opts  Options
	seen  map[string]int    // id -> line
	names map[string]string // one copy of every tenant, user, model, …
	// The jobs so far. One growing slice would be copied again and again, and take three times
	// the memory of its final content.
	chunks [][]Job
}

func newCollector(o Options) *collector {
	return &collector{opts: o, seen: map[string]int{}, names: map[string]string{}}
}

// row counts a row before its classification.
func (c *collector) row() { c.trace.Counts.Rows++ }

func (c *collector) joined() { c.trace.Counts.Joined++ }

func (c *collector) bad(file string, line int, format string, args ...any) {
	c.trace.Counts.Bad++
	if len(c.trace.Bad) < c.opts.named() {
		c.trace.Bad = append(c.trace.Bad, Bad{File: file, Line: line, What: fmt.Sprintf(format, args...)})
	}
}

// note is additional information about a job.
type note struct{ unfinished, rounded bool }

// keep adds a job or records why not.
func (c *collector) keep(j Job, n note, file string, line int) {
	if what := senseless(&j); what != "" {
		c.bad(file, line, "%s", what)
		return
	}
	if first, twice := c.seen[j.ID]; twice {
		c.bad(file, line, "job %.80s is on line %d already", j.ID, first)
		return
	}
	switch {
	case j.GPUs == 0:
		c.trace.Counts.CPUOnly++
		return
	case j.Runs == 0:
		c.trace.Counts.NoRun++
		return
	}
	if n.unfinished {
		c.trace.Counts.Unfinished++
	}
	if n.rounded {
		c.trace.Counts.Rounded++
	}
	j.ID = strings.Clone(j.ID) // a slice of its line would keep the line in memory
	j.Tenant, j.User = c.once(j.Tenant), c.once(j.User)
	j.Name, j.Model, j.Kind = c.once(j.Name), c.once(j.Model), c.once(j.Kind)
	if j.Tenant == "" {
		j.Tenant = j.User
	}
	c.seen[j.ID] = line
	last := len(c.chunks) - 1
	if last < 0 || len(c.chunks[last]) == cap(c.chunks[last]) {
		last++
		c.chunks = append(c.chunks, make([]Job, 0, 64<<min(last, 8)))
	}
	c.chunks[last] = append(c.chunks[last], j)
}

// once gives the one kept copy of s.
func (c *collector) once(s string) string {
	if s == "" {
		return ""
	}
	kept, ok := c.names[s]
	if !ok {
		kept = strings.Clone(s)
		c.names[kept] = kept
	}
	return kept
}

// senseless says what is wrong with a job; "" = nothing. It also trims the texts and makes Name
// fit on a line.
func senseless(j *Job) string {
	j.Name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, j.Name))
	for _, s := range []*string{&j.ID, &j.Tenant, &j.User, &j.Model, &j.Kind} {
		*s = strings.TrimSpace(*s)
		if strings.ContainsFunc(*s, unicode.IsControl) {
			return fmt.Sprintf("%.80q has control characters", *s)
		}
	}
	switch {
	case j.ID == "":
		return "no job id"
	case j.Tenant == "" && j.User == "":
		return "neither tenant nor user"
	case j.GPUs < 0 || j.GPUs > mostGPUs:
		return fmt.Sprintf("%d GPUs", j.GPUs)
	case j.Runs < 0 || j.Runs > longest:
		return fmt.Sprintf("a run time of %v", j.Runs)
	case j.Nodes < 0 || j.CPUs < 0 || j.MemoryMB < 0 || j.Limit < 0:
		return "a negative number"
	}
	return ""
}

// finish sorts the jobs and, in formats with absolute times, makes Submit relative to the first.
func (c *collector) finish(absolute bool) *Trace {
	t := &c.trace
	t.Jobs = slices.Concat(c.chunks...)
	slices.SortFunc(t.Jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), strings.Compare(a.ID, b.ID))
	})
	t.Epoch = c.opts.Epoch
	if absolute && len(t.Jobs) > 0 {
		first := t.Jobs[0].Submit
		for i := range t.Jobs {
			t.Jobs[i].Submit -= first
		}
		t.Epoch = time.UnixMilli(int64(first)).In(c.opts.zone())
	}
	return t
}

// outcomes translates the states of Slurm, Philly and PAI. Other states are unknown.
var outcomes = map[string]string{
	"COMPLETED": Completed, "PASS": Completed, "TERMINATED": Completed,
	"FAILED": Failed, "NODE_FAIL": Failed, "BOOT_FAIL": Failed, "OUT_OF_MEMORY": Failed, "LAUNCH_FAILED": Failed,
	"CANCELLED": Cancelled, "KILLED": Cancelled, "PREEMPTED": Cancelled, "REVOKED": Cancelled,
	"TIMEOUT": Timeout, "DEADLINE": Timeout,
}

// outcomeOf reads a state of any format.
func outcomeOf(state string) string { return outcomes[strings.ToUpper(state)] }
