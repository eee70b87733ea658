package cluster

// Cells is a cluster as its administrator describes it: its levels of affinity, and what
// each virtual cluster (VC) reserves of them (HiveD Figure 4).
type Cells struct {
	Types []CellType `json:"types"`
	Tops  []TopCell  `json:"tops"`
	VCs   []VC       `json:"vcs"`
}

// CellType is a level of cells. A type without a child is one GPU.
type CellType struct {
	Name  string `json:"name"`
	Child string `json:"child,omitempty"` // the type of the cells that one of this type is split into
	Split int    `json:"split,omitempty"` // how many
	Node  bool   `json:"node,omitempty"`  // a cell of this type is a node
	Model string `json:"model,omitempty"` // of a GPU: its model
}

// TopCell is a physical cell that no larger one of its chain contains: a whole rack, or
// what is too small to be one (a single node).
type TopCell struct {
	Name  string   `json:"name"`
	Chain string   `json:"chain,omitempty"` // the largest type of its chain; "" where Type is in only one
	Type  string   `json:"type"`
	Nodes []string `json:"nodes"` // in the order of its cells
}

// VC is the virtual cluster of the tenant of that name.
type VC struct {
	Name  string      `json:"name"`
	Cells []CellQuota `json:"cells,omitempty"`
	Pins  []CellPin   `json:"pins,omitempty"`
}

// CellQuota is a number of cells of one type.
type CellQuota struct {
	Chain string `json:"chain,omitempty"` // as in TopCell
	Type  string `json:"type"`
	Cells int    `json:"cells"`
}

// CellPin is one physical cell that a VC has for ever: that of the type which holds
// GPU number GPU of a node.
type CellPin struct {
	Type string `json:"type"`
	Node string `json:"node"`
	GPU  int    `json:"gpu"`
}

// CellPart is the GPUs of a lease on one node.
type CellPart struct {
	Node string `json:"node"`
	GPUs uint64 `json:"gpus"`           // a bit each
	Type string `json:"type,omitempty"` // of the cell in its VC that they are in; "" = none, or not known
}

// CellLoss is the cells that a VC cannot have until hardware is repaired.
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
	Reserved int    `json:"reserved"` // pinned ones not counted
	Pinned   int    `json:"pinned,omitempty"`
	Bound    int    `json:"bound"`
	Lost     int    `json:"lost,omitempty"` // to hardware that is bad
	Free     int    `json:"free"`           // may be bound at any time
	Lent     int    `json:"lent,omitempty"` // of these: could not be bound now without a recall
}

// BoundCell is a physical cell that is bound, and who is in it.
type BoundCell struct {
	VC      string     `json:"vc"`
	Chain   string     `json:"chain"`
	Type    string     `json:"type"`
	Pinned  bool       `json:"pinned,omitempty"`
	Parts   []CellPart `json:"parts"` // its nodes, with the GPUs of it there
	Used    int        `json:"used"`  // GPUs
	Bad     int        `json:"bad,omitempty"`
	Holders []JobKey   `json:"holders,omitempty"` // guaranteed leases
	Guests  []JobKey   `json:"guests,omitempty"`  // opportunistic leases
}

// Fragmentation is how many cells of a level cannot give their full affinity to a
// guaranteed lease (HiveD §5.2): a GPU in them is under one, or bad. What is lent counts as free.
type Fragmentation struct {
	Chain  string `json:"chain"`
	Type   string `json:"type"`
	Broken int    `json:"broken"`
	Cells  int    `json:"cells"`
}

// CellReport is how the cells stand after a round.
type CellReport struct {
	Views         []CellView      `json:"views"`
	Bound         []BoundCell     `json:"bound,omitempty"`
	Fragmentation []Fragmentation `json:"fragmentation"`
	// Unsafe says how the safety condition (HiveD Theorem 1, invariant (2)) is broken: it
	// must be empty.
	Unsafe []string `json:"unsafe,omitempty"`
}
