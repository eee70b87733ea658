package cluster

import (
	"slices"
	"strings"
)

// GPUs is a number of GPUs of one model.
type GPUs struct {
	Model string `json:"model"`
	Count int    `json:"count"`
}

// Node is a machine with GPUs, as Slurm reports it.
type Node struct {
	Name string `json:"name"`
	// Host and Address are how it is reached, if Slurm tells; no decision uses them.
	Host    string `json:"-"`
	Address string `json:"-"`
	GPUs    []GPUs `json:"gpus"` // sorted by model; drained GPUs already taken off
	// Shards is how many parts each of its GPUs has that jobs can ask for (gres/shard); 0 = none.
	Shards int `json:"shards,omitempty"`
	// MPS is whether these are parts by MPS (gres/mps). Slurm gives them out on one GPU of the node at a time, and only one user's jobs can use them.
	MPS bool `json:"mps,omitempty"`
	// Drained lists the indices of drained GPUs that Slurm reports.
	Drained    []int    `json:"drained,omitempty"`
	CPUs       int      `json:"cpus"`
	MemoryMB   int64    `json:"memory_mb"`
	Partitions []string `json:"partitions,omitempty"`
	Features   []string `json:"features,omitempty"`
	// Switch is the lowest switch above it, or its block, as Slurm's topology has it; "" = none. Gangs should be under one.
	Switch string `json:"switch,omitempty"`
	// Bad says why the node's GPUs are no capacity at all ("down", "drained", "not responding");
	// empty = healthy. Jobs may still run on a draining node.
	Bad string `json:"bad,omitempty"`
	// Busy says why a healthy node gets no grant for the moment ("completing", "maintenance");
	// empty = available.
	Busy string `json:"busy,omitempty"`
}

// Partition is a Slurm partition.
type Partition struct {
	Name    string   `json:"name"`
	Nodes   []string `json:"nodes,omitempty"`
	Default bool     `json:"default,omitempty"`
	Up      bool     `json:"up"`
	MaxTime Span     `json:"max_time,omitempty"` // 0 = none
	// RootOnly is true if only root may submit jobs to it; no decision uses it.
	RootOnly bool `json:"-"`
	// Rules are what else its jobs must meet.
	Rules Rules `json:"rules,omitzero"`
	// Preempt says whether Slurm preempts its jobs.
	Preempt PartitionPreemption `json:"preempt,omitzero"`
}

// Magnetic is the flag of reservations that jobs use without naming them.
const Magnetic = "MAGNETIC"

// Reservation is a current or future Slurm reservation.
type Reservation struct {
	Name     string   `json:"name"`
	Nodes    []string `json:"nodes"`
	Accounts []string `json:"accounts,omitempty"`
	Users    []string `json:"users,omitempty"`
	Start    Instant  `json:"start,omitzero"`
	End      Instant  `json:"end,omitzero"`
	Flags    []string `json:"flags,omitempty"`
	// Parts are some CPUs and GPUs of nodes, by node, for nodes that it does not keep as a whole.
	Parts []ReservedPart `json:"parts,omitempty"`
	// Licenses are the licences that it keeps, in Slurm's syntax.
	Licenses string `json:"licenses,omitempty"`
	// Ours is true for reservations that fairlease made, as their names show.
	Ours bool `json:"ours,omitempty"`
}

// ReservedPart is the CPUs and GPUs of a node that a reservation keeps for its jobs.
type ReservedPart struct {
	Node string `json:"node"`
	CPUs int    `json:"cpus"`
	GPUs int    `json:"gpus,omitempty"` // at most: Slurm tells neither which, nor how many on each of several nodes
}

// Part gives what the reservation keeps of one of its nodes; false = the whole node.
func (r *Reservation) Part(node string) (ReservedPart, bool) {
	at, ok := slices.BinarySearchFunc(r.Parts, node, func(p ReservedPart, name string) int { return strings.Compare(p.Node, name) })
	if !ok {
		return ReservedPart{}, false
	}
	return r.Parts[at], true
}

// Account is one line of Slurm's account tree.
type Account struct {
	Name   string `json:"name"`
	Parent string `json:"parent,omitempty"` // "" for root
	Shares int64  `json:"shares"`           // RawShares; compares siblings only
	// ViaParent is Slurm's fairshare=parent: the account passes on its parent's share.
	ViaParent bool `json:"via_parent,omitempty"`
}

// ReservationPrefix starts the name of every reservation that fairlease makes.
const ReservationPrefix = "fairlease_"

// GateReservation is the name of the reservation of all licences, which gates jobs.
const GateReservation = ReservationPrefix + "gate"

// LastInQueue is the plugin's default site factor, a summand of the priority, of jobs that wait
// for the licence. Slurm considers a limited number of jobs in order of priority, and these
// cannot start.
const LastInQueue = -1_000_000_000
