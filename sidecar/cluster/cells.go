package cluster

import "slices"

// Cells is the administrator's description of a cluster: its levels of affinity, and the cells
// that each virtual cluster (VC) reserves at each level (HiveD Figure 4).
type Cells struct {
	Types []CellType `json:"types"`
	Tops  []TopCell  `json:"tops"`
	VCs   []VC       `json:"vcs"`
}

// Tradable tells whether a VC may trade cells; there may be no cells.
func (c *Cells) Tradable() bool {
	return c != nil && slices.ContainsFunc(c.VCs, func(v VC) bool {
		return slices.ContainsFunc(v.Cells, func(q CellQuota) bool { return q.Tradable > 0 })
	})
}

// CellType is a level of cells. A type without a child is one GPU.
type CellType struct {
	Name  string `json:"name"`
	Child string `json:"child,omitempty"` // the type of the cells that one cell of this type splits into
	Split int    `json:"split,omitempty"` // number of child cells
	Node  bool   `json:"node,omitempty"`  // a cell of this type is a node
	Model string `json:"model,omitempty"` // of a GPU: its model
}

// TopCell is a physical cell that no larger cell of its chain contains: a whole rack, or a unit
// too small for one, like a single node.
type TopCell struct {
	Name  string   `json:"name"`
	Chain string   `json:"chain,omitempty"` // the largest type of its chain; "" if only one chain has Type
	Type  string   `json:"type"`
	Nodes []string `json:"nodes"` // in the order of its cells
}

// VC is the virtual cluster of the tenant of that name.
type VC struct {
	Name  string      `json:"name"`
	Cells []CellQuota `json:"cells,omitempty"`
	Pins  []CellPin   `json:"pins,omitempty"`
	// Chooser orders its jobs; "" = as Settings.Chooser says.
	Chooser string `json:"chooser,omitempty"`
	// Levels are the levels of its jobs by QOS; nil = as Settings.Levels says.
	Levels []QOSLevel `json:"levels,omitempty"`
	// Scheduler is a program of the site that orders its jobs; nil = Chooser does.
	Scheduler *VCScheduler `json:"scheduler,omitempty"`
}

// QOSLevel is the level of jobs of a QOS inside their virtual cluster. A QOS without a level has 0.
type QOSLevel struct {
	QOS   string `json:"qos"`
	Level int    `json:"level"`
}

// CellQuota is a number of cells of one type. The VC may trade Tradable of them for cells of other models.
type CellQuota struct {
	Chain    string `json:"chain,omitempty"` // as in TopCell
	Type     string `json:"type"`
	Cells    int    `json:"cells"`
	Tradable int    `json:"tradable,omitempty"`
}

// CellLot is cells of one type that a VC may trade.
type CellLot struct {
	Chain string `json:"chain,omitempty"` // as in TopCell
	Type  string `json:"type"`
	Model string `json:"model"`
	GPUs  int    `json:"gpus"` // of one cell
	Cells int    `json:"cells"`
}

// CellSwap is the cells that change hands.
type CellSwap struct {
	FastChain string `json:"fast_chain,omitempty"`
	FastType  string `json:"fast_type"`
	FastCells int    `json:"fast_cells"`
	SlowChain string `json:"slow_chain,omitempty"`
	SlowType  string `json:"slow_type"`
	SlowCells int    `json:"slow_cells"`
}

// CellPin assigns one physical cell to a VC for ever: the cell of the given type that contains
// GPU number GPU of a node.
type CellPin struct {
	Type string `json:"type"`
	Node string `json:"node"`
	GPU  int    `json:"gpu"`
}

// CellPart is the GPUs of a lease on one node.
type CellPart struct {
	Node string `json:"node"`
	GPUs uint64 `json:"gpus"`           // bit mask of GPU indices
	Type string `json:"type,omitempty"` // of the cell in its VC that contains them; "" = none, or unknown
}

// CellLoss counts the cells that a VC cannot use until hardware is repaired.
type CellLoss struct {
	VC    string `json:"vc"`
	Chain string `json:"chain"`
	Type  string `json:"type"`
	Cells int    `json:"cells"`
}

// CellView is a VC's cells of one level.
type CellView struct {
	VC       string `json:"vc"`
	Chain    string `json:"chain"`
	Type     string `json:"type"`
	Reserved int    `json:"reserved"` // without pinned cells
	Pinned   int    `json:"pinned,omitempty"`
	Bound    int    `json:"bound"`
	Lost     int    `json:"lost,omitempty"` // to bad hardware
	Free     int    `json:"free"`           // can be bound at any time
	Lent     int    `json:"lent,omitempty"` // subset of Free that cannot be bound now without a recall
}

// BoundCell is a bound physical cell and the leases in it.
type BoundCell struct {
	VC      string     `json:"vc"`
	Chain   string     `json:"chain"`
	Type    string     `json:"type"`
	Pinned  bool       `json:"pinned,omitempty"`
	Parts   []CellPart `json:"parts"` // its nodes, with its GPUs on each
	Used    int        `json:"used"`  // GPUs
	Bad     int        `json:"bad,omitempty"`
	Holders []JobKey   `json:"holders,omitempty"` // guaranteed leases
	Guests  []JobKey   `json:"guests,omitempty"`  // opportunistic leases
}

// Fragmentation counts the cells of a level that cannot give a guaranteed lease their full
// affinity (HiveD §5.2), because a guaranteed lease holds one of their GPUs or a GPU is bad. Lent
// GPUs count as free.
type Fragmentation struct {
	Chain  string `json:"chain"`
	Type   string `json:"type"`
	Broken int    `json:"broken"`
	Cells  int    `json:"cells"`
}

// CellReport is the state of the cells after a round.
type CellReport struct {
	Views         []CellView      `json:"views"`
	Bound         []BoundCell     `json:"bound,omitempty"`
	Fragmentation []Fragmentation `json:"fragmentation"`
	// Dropped counts the placements of VCs' own schedulers that were not carried out.
	Dropped []DroppedPlacements `json:"dropped,omitempty"`
	// Unsafe lists violations of the safety condition (HiveD Theorem 1, invariant (2)). It must
	// be empty.
	Unsafe []string `json:"unsafe,omitempty"`
}
