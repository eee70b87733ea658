package trace

import (
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Job is one job of a trace: what was asked for and how long it ran.
type Job struct {
	ID, Tenant, User, Name string

	Submit cluster.Span // since the trace's epoch
	Runs   cluster.Span // time that it ran in all, requeued attempts summed; never 0
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

// Bad is a row that was left out, and why.
type Bad struct {
	File string // as the file was named to us
	Line int    // from 1; where a JSON record begins
	What string
}

// Counts says what became of every row (CSV, sacct) or record (JSON). Each has
// one fate: Rows = jobs + Bad + CPUOnly + NoRun + Joined.
type Counts struct {
	Rows    int // all, without the header and empty lines
	Bad     int // left out because they make no sense
	CPUOnly int // left out because the job asked for no GPU
	NoRun   int // left out because no run time is recorded: cancelled while waiting, or gone in less than a second
	Joined  int // further rows of a job that is counted once: attempts, steps, tasks

	Unfinished int // of the jobs: still there when the trace was taken, so Runs is too short
	Rounded    int // of the jobs: GPUs rounded up to a whole number
}

// Trace is what a file says.
type Trace struct {
	Name   string // the file's name without folder and endings
	Format Format
	Epoch  time.Time // what Submit counts from; zero = the file does not say
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

// Options are what a file does not say itself. The zero value is fine for all.
type Options struct {
	// Format is how to read the file; "" = see what it is.
	Format Format
	// Zone is that of times written without one; nil = UTC. Without it only days
	// on which the clock was changed are wrong, by an hour, and the hour of the
	// day that Epoch shows.
	Zone *time.Location
	// Epoch is what Submit counts from in files with relative times (plain).
	Epoch time.Time
	// Throughputs and PerHour turn Gavel's jobs, which are in steps and in units of the time
	// between two arrivals, into times.
	Throughputs *Throughputs
	PerHour     float64
	// Named is how many bad rows are named; 0 = 20, negative = none. They are
	// counted all the same.
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
