package cluster

import (
	"cmp"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// JobID is Slurm's id of a job or of one array task, as users write it: "123" or "123_4". Slurm
// reuses ids; see JobKey.
type JobID struct {
	ID   int64 `json:"id"`             // job id; the array's id for a task
	Task int32 `json:"task,omitempty"` // task index + 1; 0 for a job that is no array task
}

// TaskID gives the id of task index of an array.
func TaskID(array int64, index int32) JobID { return JobID{ID: array, Task: index + 1} }

// Index gives the task index, and whether the job is an array task.
func (id JobID) Index() (int32, bool) { return id.Task - 1, id.Task > 0 }

// Array gives the id of a task's array; for other jobs, their own id.
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
		return cmp.Compare(id.ID, o.ID)
	}
	return cmp.Compare(id.Task, o.Task)
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

// JobKey is fairlease's own job id. Unlike Slurm's ids, keys are never reused.
type JobKey int64

// JobState is the state of a job, reduced to what leases depend on.
type JobState string

// The states of a job. Configuring jobs have their nodes, which boot or are prepared (by PrologSlurmctld), and have not begun.
// Completing covers jobs that end and jobs that were requeued and still clean up: they occupy their GPUs and get no lease.
const (
	Waiting     JobState = "waiting"
	Configuring JobState = "configuring"
	Running     JobState = "running"
	Suspended   JobState = "suspended"
	Completing  JobState = "completing"
	Done        JobState = "done"
)

// Request is the resource request of a job, in the terms that placement uses.
type Request struct {
	Size Size `json:"gpus"` // total demand
	// Shards is how many shards of one GPU the job asks for (gres/shard); 0 = it asks for whole GPUs. Its Size is then one device, and the
	// part that they are of it where a GPU has the fewest: see Node.Shards.
	Shards int `json:"shards,omitempty"`
	// MPS is whether the shards are those of MPS (gres/mps): see Node.MPS.
	MPS bool `json:"mps,omitempty"`
	// Nodes is the minimum number of nodes, MaxNodes the maximum (0 = no limit).
	Nodes    int `json:"nodes,omitempty"`
	MaxNodes int `json:"max_nodes,omitempty"`
	// PerNode is the number of GPUs on each node; 0 = any split.
	PerNode int `json:"per_node,omitempty"`
	// Model is the requested GPU model; "" = any.
	Model string `json:"model,omitempty"`
	// CPUs and MemoryMB are totals of the job; placement divides them by its GPUs.
	CPUs     int   `json:"cpus,omitempty"`
	MemoryMB int64 `json:"memory_mb,omitempty"`
	// Exclusive jobs take whole nodes with all their GPUs.
	Exclusive bool `json:"exclusive,omitempty"`
	// Features is Slurm's constraint expression, e.g. "a&b"; "" = none.
	Features string `json:"features,omitempty"`
	// Unplaceable says why fairlease cannot choose nodes for this request (e.g. "gpus-per-socket").
	Unplaceable string `json:"unplaceable,omitempty"`
}

// Loose reports whether only Slurm can choose the nodes of such a request. A lease then counts its GPUs, and names no nodes.
func (r *Request) Loose() bool { return r.Unplaceable != "" || Brackets(r.Features) }

// Apart reports whether the job's nodes are closed to other users, though Slurm counts only the GPUs that it asks for.
func (r *Request) Apart() bool { return r.Exclusive && strings.HasPrefix(r.Unplaceable, Apart) }

// Brackets reports whether a constraint has a form that only Slurm reads.
func Brackets(constraint string) bool { return strings.ContainsAny(constraint, "[]()*,") }

// Leasable reports whether the GPUs of the request can be counted, and its job be kept from starting until then.
func (r *Request) Leasable() bool {
	return r.Unplaceable != PartsOfGPUs && r.Unplaceable != Cron && r.Unplaceable != Unread
}

// MostNodes is the maximum number of nodes that Slurm gives the job; 0 = no limit.
func (r *Request) MostNodes() int {
	if r.MaxNodes == 0 && (r.PerNode > 0 || r.Size.Devices <= 1) { // Slurm takes no more than it needs
		return max(r.Nodes, 1)
	}
	return r.MaxNodes
}

// Holding is the allocation of a job on one node.
type Holding struct {
	Node     string `json:"node"`
	Model    string `json:"model"`
	Size     Size   `json:"gpus"`
	Index    []int  `json:"index,omitempty"` // indices of its GPUs, if Slurm reports them
	CPUs     int    `json:"cpus,omitempty"`
	MemoryMB int64  `json:"memory_mb,omitempty"`
}

// Device is a GPU by its number. Where Slurm does not tell that, Of tells it apart from all others.
type Device struct {
	Node, Model string
	Index       int
	Of          *Holding
}

// Devices goes through the GPUs of a holding.
func (h *Holding) Devices() iter.Seq[Device] {
	return func(yield func(Device) bool) {
		for k := range h.Size.Devices {
			at := Device{Node: h.Node, Model: h.Model}
			if k < len(h.Index) {
				at.Index = h.Index[k]
			} else {
				at.Index, at.Of = k, h
			}
			if !yield(at) {
				return
			}
		}
	}
}

// Stranding is the part of a job in the stranded GPUs of a node, of one model: GPUs that idle since jobs hold the CPUs
// or the memory that goes with them.
type Stranding struct {
	Case int // index into the snapshot's cases
	Pool string
	GPUs MicroGPU
	Rest bool // of a GPU that jobs have parts of
}

// Job is a GPU job, or one array task, as Slurm reports it. Jobs without GPUs are included if
// they hold CPUs or memory of a GPU node.
type Job struct {
	ID JobID `json:"id"`
	// Record is the job id that addresses it in Slurm now: the array's id until the task has been
	// split off.
	Record int64 `json:"record"`
	// UnsplitArray is true while Record stands for several waiting tasks of an array.
	UnsplitArray bool `json:"whole,omitempty"`
	// Version tells apart what looks at one cluster show of the job: where it is the same, the job is the same, bit for bit. 0 = unknown. No
	// decision uses it.
	Version int64 `json:"-"`

	Name       string   `json:"name,omitempty"`
	User       string   `json:"user"`
	UID        uint32   `json:"-"` // of the user; no decision uses it
	Account    string   `json:"account"`
	QOS        string   `json:"qos,omitempty"`
	Partitions []string `json:"partitions"`

	State JobState `json:"state"`
	// Inactive says why a waiting job could not start even on an empty cluster ("held",
	// "dependency", "array limit", …); "" = it waits only for GPUs and its gate.
	Inactive string `json:"inactive,omitempty"`
	// PendingReason is Slurm's own reason, for display.
	PendingReason string `json:"pending_reason,omitempty"`
	// Aside says why the job is set aside: its record is unreadable, or the engine or the journal
	// failed on it. Such a job is reported, and not changed; "" = not set aside.
	Aside string `json:"aside,omitempty"`
	// Outcome is Slurm's final state of a Done job ("COMPLETED", "TIMEOUT", …).
	Outcome string `json:"outcome,omitempty"`

	Batch       bool `json:"batch"`
	Requeueable bool `json:"requeueable"`
	// Expedited jobs (--requeue=expedite, Slurm 25.11 and newer) start again at once after a requeue, without Slurm's two minutes.
	Expedited bool `json:"expedited,omitempty"`
	// Het is the record of a heterogeneous job's first component; 0 = the job is not heterogeneous. Parts is how many of its
	// components wait for the lease of this one, whose Request is that of all; 0 = another one has their lease.
	Het   int64 `json:"het_of,omitempty"`
	Parts int   `json:"parts,omitempty"`

	Request Request `json:"request"`
	// Ask is its user's words for its GPU, in Slurm's form, if it asks for one by them alone and may take turns there (Hints.Share); see Slice.
	Ask string `json:"ask,omitempty"`
	// Paused is true if it has a slice and is suspended. Its State is Running then.
	Paused bool        `json:"paused,omitempty"`
	Holds  []Holding   `json:"holds,omitempty"` // sorted by node, model
	Had    []ModelSize `json:"had,omitempty"`   // allocation of a Done job's last attempt, sorted by model; empty = unknown

	Submit   Instant `json:"submit,omitzero"`     // of the last requeue, as in Slurm
	Eligible Instant `json:"eligible,omitempty"`  // begin time: the gate, the user's, or in the past
	Start    Instant `json:"start,omitempty"`     // of the current or last attempt; while it is Configuring, when Slurm gave it its nodes
	End      Instant `json:"end,omitempty"`       // of a Done job: when it ended; else when its time limit ends
	Blur     Span    `json:"blur,omitempty"`      // maximum error of Start and End; Slurm's are rounded to the middle of a second
	Limit    Span    `json:"limit,omitempty"`     // time limit; 0 = none
	MinLimit Span    `json:"min_limit,omitempty"` // Slurm may start it with a time limit as short as this (--time-min); 0 = it does not
	Deadline Instant `json:"deadline,omitempty"`  // latest end (--deadline); 0 = none
	Suspend  Span    `json:"suspend,omitempty"`   // time suspended in the current attempt
	Restarts int     `json:"restarts,omitempty"`

	// NodeList is the list of required nodes: the user's -w, or ours. Its entries and those of
	// Exclude may use Slurm's brackets: v[1-1000] is not expanded for every job.
	NodeList    []string `json:"node_list,omitempty"`
	SiteFactor  *int64   `json:"site_factor,omitempty"` // set by an administrator; nil = unknown
	Exclude     []string `json:"exclude,omitempty"`
	Reservation string   `json:"reservation,omitempty"`

	// Hints is what its --comment says of its kind, speed and choice of GPUs; nil = nothing. Replace it,
	// never modify it.
	Hints *Hints `json:"hints,omitempty"`

	// Command is the command line that identifies jobs of a type; "" = not reported by Slurm.
	Command string `json:"command,omitempty"`
	// Work names the user's jobs that do the same, by their command lines (package kinds); "" = unknown.
	Work string `json:"work,omitempty"`
	// Declares is how the job saves its work, as its user declared in words or by options of
	// sbatch.
	Declares Saving `json:"declares,omitzero"`

	// Licenses are the licences that it requests, in Slurm's syntax ("matlab:1"), without ours.
	// Locked is true if it requests ours, which is its gate. Either is true if it requests one of
	// several licences; then it cannot be made to wait for ours as well.
	Licenses string `json:"licenses,omitempty"`
	Locked   bool   `json:"locked,omitempty"`
	Either   bool   `json:"either,omitempty"`
	// Stranded is true if Slurm holds the job because our licence was removed from slurm.conf.
	Stranded bool `json:"stranded,omitempty"`

	// Marked is true if our submit plugin set the gate. MarkedBegin is the user's own --begin
	// that the plugin found (0 = none), MarkedGate the gate. No decision uses MarkedGate.
	Marked      bool    `json:"marked,omitempty"`
	MarkedBegin Instant `json:"marked_begin,omitempty"`
	MarkedGate  Instant `json:"-"`
}

// Count gives the GPUs that the job asks for, or those that it holds if it asks for none.
func (j *Job) Count() GPUCount {
	if j.Request.Size.Devices > 0 {
		return j.Request.Size.Count()
	}
	return CountHeld(j.Holds)
}

// CountHeld sums GPUs of some nodes.
func CountHeld(holdings []Holding) (n GPUCount) {
	for i := range holdings {
		n += holdings[i].Size.Count()
	}
	return n
}

// GPUsHeld gives the number of GPUs that the job holds.
func (j *Job) GPUsHeld() int {
	n := 0
	for _, h := range j.Holds {
		n += h.Size.Devices
	}
	return n
}

// Ran gives for how long the current attempt of a started job has run, without the time for which it was suspended.
func (j *Job) Ran(now Instant) Span { return now.Sub(j.Start) - j.Suspend }

// Started reports whether Slurm has given the job its nodes and has not ended the attempt: it runs, is suspended, or its nodes are configured.
func (j *Job) Started() bool {
	return j.State == Running || j.State == Suspended || j.State == Configuring
}

// ShortestLimit gives the shortest time limit with which Slurm starts the job; 0 = none.
func (j *Job) ShortestLimit() Span {
	if j.MinLimit > 0 && (j.Limit == 0 || j.MinLimit < j.Limit) {
		return j.MinLimit
	}
	return j.Limit
}

// Attempt is one run of a job in the accounting history, from Start to End. It covers the time in
// which fairlease did not look.
type Attempt struct {
	ID      JobID       `json:"id"`
	User    string      `json:"user"`
	Account string      `json:"account"`
	Submit  Instant     `json:"submit,omitzero"`
	Start   Instant     `json:"start,omitzero"`
	End     Instant     `json:"end,omitzero"` // 0 = still running
	GPUs    []ModelSize `json:"gpus"`
	Outcome string      `json:"outcome"`
	Suspend Span        `json:"suspend,omitempty"`
	// Name, Work and Kind (which its comment declares) tell the kind of the job in Tenant, as in Job.
	Name   string `json:"name,omitempty"`
	Work   string `json:"work,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Tenant string `json:"tenant,omitempty"`
}
