package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// JobID is Slurm's name of a job or of one array task, as users write it:
// "123" or "123_4". Slurm gives ids out again; see JobKey.
type JobID struct {
	ID   int64 `json:"id"`             // job id; the array's id for a task
	Task int32 `json:"task,omitempty"` // task index + 1; 0 for a job that is no array task
}

// TaskID names task index of an array.
func TaskID(array int64, index int32) JobID { return JobID{ID: array, Task: index + 1} }

// Index gives the task index and whether the job is an array task.
func (id JobID) Index() (int32, bool) { return id.Task - 1, id.Task > 0 }

// Array gives the id of the array of a task, and of any other job its own.
func (id JobID) Array() JobID { return JobID{ID: id.ID} }

func (id JobID) String() string {
	if i, ok := id.Index(); ok {
		return fmt.Sprintf("%d_%d", id.ID, i)
	}
	return strconv.FormatInt(id.ID, 10)
}

// Compare orders by id, then task.
func (id JobID) Compare(o JobID) int {
	if id.ID != o.ID {
		return cmp(id.ID, o.ID)
	}
	return cmp(int64(id.Task), int64(o.Task))
}

func cmp(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// ParseJobID reads "123" or "123_4".
func ParseJobID(s string) (JobID, error) {
	base, task, isTask := strings.Cut(s, "_")
	id, err := strconv.ParseInt(base, 10, 64)
	if err != nil || id <= 0 {
		return JobID{}, fmt.Errorf("%q is no job id: write 123 or, for an array task, 123_4", s)
	}
	if !isTask {
		return JobID{ID: id}, nil
	}
	i, err := strconv.ParseInt(task, 10, 32)
	if err != nil || i < 0 {
		return JobID{}, fmt.Errorf("%q is no job id: write 123 or, for an array task, 123_4", s)
	}
	return TaskID(id, int32(i)), nil
}

// JobKey is our own name of a job. Slurm's ids come round again; keys never do.
type JobKey int64

// JobState is what a job is doing, as far as leases are concerned.
type JobState string

// The states of a job. Completing covers both a job that ends and one that was
// requeued and still cleans up: its GPUs are taken and nothing may be granted to it.
const (
	Waiting    JobState = "waiting"
	Running    JobState = "running"
	Suspended  JobState = "suspended"
	Completing JobState = "completing"
	Done       JobState = "done"
)

// Request is what a job asks of nodes, in the terms in which we place it.
type Request struct {
	GPUs int `json:"gpus"` // all of them: the demand
	// Nodes is how many nodes it wants at least, MaxNodes at most (0 = no limit).
	Nodes    int `json:"nodes,omitempty"`
	MaxNodes int `json:"max_nodes,omitempty"`
	// PerNode is the number of GPUs on each node; 0 = any split over the nodes.
	PerNode int `json:"per_node,omitempty"`
	// Model is the GPU model that the job names; "" = any.
	Model string `json:"model,omitempty"`
	// CPUs and MemoryMB are for the whole job; placement divides them by GPUs.
	CPUs     int   `json:"cpus,omitempty"`
	MemoryMB int64 `json:"memory_mb,omitempty"`
	// Exclusive jobs take whole nodes, all GPUs of them.
	Exclusive bool `json:"exclusive,omitempty"`
	// Features is Slurm's constraint expression, e.g. "a&b"; "" = none.
	Features string `json:"features,omitempty"`
	// Unplaceable tells why we cannot place such a request ourselves
	// (e.g. "gpus-per-socket"); such jobs are seen, never touched.
	Unplaceable string `json:"unplaceable,omitempty"`
}

// Holding is what a job has on one node.
type Holding struct {
	Node     string `json:"node"`
	Model    string `json:"model"`
	GPUs     int    `json:"gpus"`
	Index    []int  `json:"index,omitempty"` // which GPUs, where Slurm tells
	CPUs     int    `json:"cpus,omitempty"`
	MemoryMB int64  `json:"memory_mb,omitempty"`
}

// Job is a job with GPUs, or one array task, as Slurm reports it. Jobs without
// GPUs are reported too when they hold CPUs or memory of a GPU node.
type Job struct {
	ID JobID `json:"id"`
	// Record is the job id by which Slurm addresses it now: the array's own
	// id while a task has not been split off.
	Record int64 `json:"record"`
	// Whole is true where Record still stands for several waiting tasks.
	Whole bool `json:"whole,omitempty"`

	Name       string   `json:"name,omitempty"`
	User       string   `json:"user"`
	UID        uint32   `json:"-"` // the user's id; nothing is decided by it
	Account    string   `json:"account"`
	QOS        string   `json:"qos,omitempty"`
	Partitions []string `json:"partitions"`

	State JobState `json:"state"`
	// Inactive tells why a waiting job could not start even on an empty cluster
	// ("held", "dependency", "array limit", …); "" = nothing but GPUs and gate.
	Inactive string `json:"inactive,omitempty"`
	// Because is Slurm's own reason, for people to read.
	Because string `json:"because,omitempty"`
	// Aside tells why the job is set aside: its record cannot be read, or the engine or the journal broke down over
	// it. It is seen, told of, and left alone; "" = it is not.
	Aside string `json:"aside,omitempty"`
	// Outcome is Slurm's final state of a Done job ("COMPLETED", "TIMEOUT", …).
	Outcome string `json:"outcome,omitempty"`

	Batch       bool `json:"batch"`
	Requeueable bool `json:"requeueable"`
	Het         bool `json:"het,omitempty"`

	Request Request   `json:"request"`
	Holds   []Holding `json:"holds,omitempty"` // sorted by node, model
	Had     []GPUs    `json:"had,omitempty"`   // what a Done job held in its last attempt, sorted by model; empty = not told

	Submit   Instant `json:"submit"`             // of the last requeue, as Slurm keeps it
	Eligible Instant `json:"eligible,omitempty"` // begin time: the gate, the user's, or past
	Start    Instant `json:"start,omitempty"`    // of the present or last attempt
	End      Instant `json:"end,omitempty"`      // of a Done job: when; else when its limit ends
	Blur     Span    `json:"blur,omitempty"`     // Start and End are off by no more; Slurm's are the middles of whole seconds
	Limit    Span    `json:"limit,omitempty"`    // time limit; 0 = none
	Deadline Instant `json:"deadline,omitempty"` // by which it is to have ended (--deadline); 0 = whenever
	Suspend  Span    `json:"suspend,omitempty"`  // time suspended in the present attempt
	Restarts int     `json:"restarts,omitempty"`

	// NodeList is the required nodes: the user's -w, or ours. Parts of it and of Exclude may have brackets, as Slurm writes them:
	// v[1-1000] is not spelled out for every job.
	NodeList    []string `json:"node_list,omitempty"`
	SiteFactor  *int64   `json:"site_factor,omitempty"` // an administrator's own; nil = not told
	Exclude     []string `json:"exclude,omitempty"`
	Reservation string   `json:"reservation,omitempty"`

	// Hints is what its --comment says of its kind, its speed and the GPUs that it takes; nil = nothing. It is not changed once made.
	Hints *Hints `json:"hints,omitempty"`

	// Command is the command line by which jobs of a type are known; "" = Slurm does not tell.
	Command string `json:"command,omitempty"`
	// Declares is what its user says, in words or by the options of sbatch, of how it saves.
	Declares Saving `json:"declares,omitzero"`

	// Licenses are those that it asks for, as Slurm wants them ("matlab:1"), but for ours; Locked is true where it asks for
	// ours: that is its gate. Either is true where it asks for one of several, and so cannot be asked to wait for ours too.
	Licenses string `json:"licenses,omitempty"`
	Locked   bool   `json:"locked,omitempty"`
	Either   bool   `json:"either,omitempty"`
	// Stranded is true where Slurm holds the job because our licence left slurm.conf.
	Stranded bool `json:"stranded,omitempty"`

	// Marked is true where our submit plugin set the gate; MarkedBegin is then
	// the user's own --begin that it found (0 = none), MarkedGate the gate; nothing is decided by that.
	Marked      bool    `json:"marked,omitempty"`
	MarkedBegin Instant `json:"marked_begin,omitempty"`
	MarkedGate  Instant `json:"-"`
}

// GPUsHeld gives the number of GPUs that the job holds.
func (j *Job) GPUsHeld() int {
	n := 0
	for _, h := range j.Holds {
		n += h.GPUs
	}
	return n
}

// Attempt is one stretch of a job's run from the accounting history: from Start
// to End it held GPUs. It tells what happened while nobody looked.
type Attempt struct {
	ID      JobID   `json:"id"`
	User    string  `json:"user"`
	Account string  `json:"account"`
	Submit  Instant `json:"submit"`
	Start   Instant `json:"start"`
	End     Instant `json:"end"` // 0 = still running
	GPUs    []GPUs  `json:"gpus"`
	Outcome string  `json:"outcome"`
	Suspend Span    `json:"suspend,omitempty"`
}
