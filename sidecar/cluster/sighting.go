package cluster

// Sighting is what was seen of the cluster at one moment. Its lists are sorted:
// nodes, partitions, accounts, reservations by name; jobs by ID; attempts by
// start, then ID.
type Sighting struct {
	Now          Instant       `json:"now"`
	Cluster      string        `json:"cluster,omitempty"`
	Boot         Instant       `json:"boot,omitempty"` // last start of the cluster's controller
	Nodes        []Node        `json:"nodes"`
	Partitions   []Partition   `json:"partitions"`
	Accounts     []Account     `json:"accounts"`
	Reservations []Reservation `json:"reservations,omitempty"`
	Jobs         []Job         `json:"jobs"`
	// Attempts is filled only when the last look was so long ago that jobs may
	// have come and gone unseen.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Progress is what jobs have reported since the last look.
	Progress []Progress `json:"progress,omitempty"`
	// Unchanged is true when nothing has changed since the sighting before, which
	// is then repeated here with a new Now.
	Unchanged bool `json:"-"`
}
