package cluster

// GPUs is a number of GPUs of one model.
type GPUs struct {
	Model string `json:"model"`
	Count int    `json:"count"`
}

// Node is a machine with GPUs, as Slurm reports it.
type Node struct {
	Name string `json:"name"`
	GPUs []GPUs `json:"gpus"` // sorted by model; drained GPUs already taken off
	// Drained are the indices of drained GPUs, as far as Slurm tells them.
	Drained    []int    `json:"drained,omitempty"`
	CPUs       int      `json:"cpus"`
	MemoryMB   int64    `json:"memory_mb"`
	Partitions []string `json:"partitions,omitempty"`
	Features   []string `json:"features,omitempty"`
	// Bad tells why the node's GPUs are no capacity at all ("down", "drained",
	// "not responding"); empty = healthy. Jobs may still run on a draining node.
	Bad string `json:"bad,omitempty"`
	// Busy tells why nothing can be granted here for the moment though the node
	// is healthy ("completing", "maintenance"); empty = grantable.
	Busy string `json:"busy,omitempty"`
}

// Partition is a Slurm partition.
type Partition struct {
	Name    string   `json:"name"`
	Nodes   []string `json:"nodes,omitempty"`
	Default bool     `json:"default,omitempty"`
	Up      bool     `json:"up"`
	MaxTime Span     `json:"max_time,omitempty"` // 0 = none
}

// Reservation is a Slurm reservation that is there or to come.
type Reservation struct {
	Name     string   `json:"name"`
	Nodes    []string `json:"nodes"`
	Accounts []string `json:"accounts,omitempty"`
	Users    []string `json:"users,omitempty"`
	Start    Instant  `json:"start"`
	End      Instant  `json:"end"`
	Flags    []string `json:"flags,omitempty"`
	// Ours is true for reservations that fairlease made (their names tell).
	Ours bool `json:"ours,omitempty"`
}

// Account is one line of Slurm's account tree.
type Account struct {
	Name   string `json:"name"`
	Parent string `json:"parent,omitempty"` // "" for root
	Shares int64  `json:"shares"`           // RawShares; compares siblings only
	// ViaParent is Slurm's fairshare=parent: the account passes its parent's share through.
	ViaParent bool `json:"via_parent,omitempty"`
}

// ReservationPrefix starts the name of every reservation that fairlease makes.
const ReservationPrefix = "fairlease_"

// GateReservation is the reservation of all licences by which jobs are gated.
const GateReservation = ReservationPrefix + "gate"

// LastInQueue is the site factor, a summand of the priority, of jobs that wait for such a licence, as the plugin sets it by default: Slurm
// looks at jobs in order, and at no more than so many, and those cannot start.
const LastInQueue = -1_000_000_000
