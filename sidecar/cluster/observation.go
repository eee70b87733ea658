package cluster

// License is the licence that gates jobs: jobs that request one wait while all of them are
// reserved. The zero value means that the site has none.
type License struct {
	Name     string `json:"name"`
	Total    int64  `json:"total"`
	Reserved int64  `json:"reserved,omitempty"` // by anyone
}

// Observation is the cluster as observed at one moment. Its lists are sorted: nodes, partitions,
// accounts, reservations by name; jobs by ID; attempts by start, then ID.
type Observation struct {
	Now          Instant       `json:"now,omitzero"`
	Cluster      string        `json:"cluster,omitempty"`
	ClusterID    int64         `json:"cluster_id,omitempty"` // 0 = unknown
	Clock        Instant       `json:"clock,omitempty"`      // the controller's own clock at Now, in whole seconds; 0 = unknown
	Boot         Instant       `json:"boot,omitempty"`       // last start of the cluster's controller
	Nodes        []Node        `json:"nodes"`
	NodesVersion int64         `json:"-"` // tells apart the nodes that one cluster shows: where it is the same, they are the same, bit for bit; 0 = unknown
	Partitions   []Partition   `json:"partitions"`
	Accounts     []Account     `json:"accounts"`
	Members      []Member      `json:"members,omitempty"` // of accounts, by Tenant (the account here), then User
	Reservations []Reservation `json:"reservations,omitempty"`
	License      License       `json:"license,omitzero"`
	Limits       Limits        `json:"limits,omitzero"`
	Preemption   Preemption    `json:"preemption,omitzero"`
	Jobs         []Job         `json:"jobs"`
	// Attempts is filled only if jobs may have come and gone unseen: the last look was long ago, or
	// the controller was started since.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Progress holds the jobs' reports since the last look.
	Progress []Progress `json:"progress,omitempty"`
	// Uses is what the GPUs of running jobs did. Memory is what types of jobs used on each model, and Sizes what each
	// model has. All are as of the newest look at the GPUs, and empty if nobody looks.
	Uses   []GPUUse    `json:"uses,omitempty"`
	Memory []MemoryUse `json:"memory,omitempty"`
	Sizes  []GPUMemory `json:"sizes,omitempty"`
	// History is ended attempts of the time before the first round.
	History []Attempt `json:"history,omitempty"`
	// VCOrders are the last answers of virtual clusters' own schedulers, by VC.
	VCOrders []VCOrder `json:"vc_orders,omitempty"`
	// Latency is how long the look took; 0 = unknown.
	Latency Span `json:"latency,omitempty"`
	// Apart says how clocks disagreed since the last round; "" = they did not.
	Apart string `json:"apart,omitempty"`
	// Unchanged is true if nothing has changed since the previous sighting, which is repeated
	// here with a new Now.
	Unchanged bool `json:"-"`
}

// Identity gives the identity of the observed cluster.
func (s *Observation) Identity() Identity { return Identity{Name: s.Cluster, ID: s.ClusterID} }
