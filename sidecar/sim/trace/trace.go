package trace

import (
	"fmt"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Job is one job of a trace: its request and its run time.
type Job struct {
	ID, Tenant, User, Name string

	Submit cluster.Span // since the trace's epoch
	Runs   cluster.Span // total run time, over all attempts; never 0
	GPUs   int          // of the whole job; never 0
	Nodes  int          // 0 = unknown / any

	CPUs     int   // of the whole job, 0 = unknown
	MemoryMB int64 // of the whole job, 0 = unknown

	Model   string       // of its GPUs; "" = any
	Kind    string       // kind of work, for per-model throughput; "" = unknown
	Command string       // its command line; "" = unknown
	Limit   cluster.Span // 0 = none
	Outcome string       // COMPLETED FAILED CANCELLED TIMEOUT; "" = unknown
}

// The outcomes of a job.
const (
	Completed = "COMPLETED"
	Failed    = "FAILED"
	Cancelled = "CANCELLED"
	Timeout   = "TIMEOUT"
)

// Bad is an omitted row, with the reason.
type Bad struct {
	File string // file name as given
	Line int    // from 1; the start of a JSON record
	What string
}

// Counts classifies every row (CSV, sacct) or record (JSON): Rows = jobs + Bad + CPUOnly + NoRun
// + Joined.
type Counts struct {
	Rows    int // all, without the header and empty lines
	Bad     int // omitted: invalid
	CPUOnly int // omitted: no GPU requested
	NoRun   int // omitted: no run time, cancelled while waiting or shorter than a second
	Joined  int // further rows of a job: attempts, steps, tasks

	Unfinished int // of the jobs: live when the trace was taken, so Runs is too short
	Rounded    int // of the jobs: GPUs rounded up to a whole number
}

// LeftOut describes the rows that became no job; "" = all did.
func (c *Counts) LeftOut() string {
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{{c.Bad, "rows that make no sense"}, {c.CPUOnly, "jobs without GPUs"}, {c.NoRun, "jobs that never ran"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Trace is the content of a file.
type Trace struct {
	Name   string // file name without folder and extensions
	Format Format
	Epoch  time.Time // the zero of Submit; zero = unknown
	Jobs   []Job     // sorted by Submit, then ID; no ID twice
	Bad    []Bad     // the first of Counts.Bad, in the order of reading
	Counts Counts
}

// Format is a kind of file; see the package's table.
type Format string

// The formats that can be read.
const (
	FormatPlain   Format = "plain"
	FormatPhilly  Format = "philly"
	FormatHelios  Format = "helios"
	FormatPAI     Format = "pai"
	FormatSacct   Format = "sacct"
	FormatSlurmdb Format = "slurmdb"
	FormatGavel   Format = "gavel"
)

// Options replace what a file lacks. The zero value works for all.
type Options struct {
	// Format is the file's format; "" = detect it.
	Format Format
	// Zone is that of times without one; nil = UTC. A wrong zone affects, by an hour, only days
	// of a change of clocks, and the hour of the day in Epoch.
	Zone *time.Location
	// Epoch is the zero of Submit in files with relative times (plain).
	Epoch time.Time
	// Throughputs and PerHour convert Gavel's jobs, which are in steps and in units of the time
	// between two arrivals, to times.
	Throughputs *Throughputs
	PerHour     float64
	// Named is the maximum number of named bad rows; 0 = 20, negative = none. All are counted.
	Named int
}

func (o Options) zone() *time.Location {
	if o.Zone == nil {
		return time.UTC
	}
	return o.Zone
}

func (o Options) named() int {
	if o.Named == 0 {
		return 20
	}
	return max(o.Named, 0)
}
