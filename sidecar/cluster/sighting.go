package cluster

// License is the licence by which jobs are gated: those that ask for one wait while all of them are reserved. Its zero value
// is that of a site that has none.
type License struct {
	Name     string `json:"name"`
	Total    int64  `json:"total"`
	Reserved int64  `json:"reserved,omitempty"` // by whomever
}

// Sighting is what was seen of the cluster at one moment. Its lists are sorted:
// nodes, partitions, accounts, reservations by name; jobs by ID; attempts by
// start, then ID.
type Sighting struct {
	Now          Instant       `json:"now"`
	Cluster      string        `json:"cluster,omitempty"`
	ClusterID    int64         `json:"cluster_id,omitempty"` // 0 = not told
	Clock        Instant       `json:"clock,omitempty"`      // the controller's own at Now, in whole seconds; 0 = not told
	Boot         Instant       `json:"boot,omitempty"`       // last start of the cluster's controller
	Nodes        []Node        `json:"nodes"`
	Partitions   []Partition   `json:"partitions"`
	Accounts     []Account     `json:"accounts"`
	Members      []Member      `json:"members,omitempty"` // of accounts, by Tenant (the account here), then User
	Reservations []Reservation `json:"reservations,omitempty"`
	License      License       `json:"license,omitzero"`
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

// Identity tells which cluster was seen.
func (s *Sighting) Identity() Identity { return Identity{Name: s.Cluster, ID: s.ClusterID} }
