package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

// Cells is the state of the cells after a round, with the names of the jobs in them.
type Cells struct {
	Round         int64                   `json:"round"`
	At            cluster.Instant         `json:"at,omitzero"`
	Cluster       []Cell                  `json:"cluster,omitempty"` // top cells, by chain
	VCs           []VC                    `json:"vcs"`
	Fragmentation []cluster.Fragmentation `json:"fragmentation"`
	Unsafe        []string                `json:"unsafe,omitempty"`
	// Trades are the trades of cells in force.
	Trades []cluster.CellTrade `json:"trades,omitempty"`
}

// Only keeps one virtual cluster, and nothing of the physical one. False = there is no such
// virtual cluster.
func (f *Cells) Only(vc string) bool {
	f.Cluster = nil
	f.VCs = slices.DeleteFunc(f.VCs, func(v VC) bool { return v.VC != vc })
	f.Trades = slices.DeleteFunc(f.Trades, func(t cluster.CellTrade) bool { return t.FastTo.Tenant != vc && t.SlowTo.Tenant != vc })
	return len(f.VCs) > 0
}

// Cell is a physical cell with its child cells or, for a node, the use of its GPUs.
type Cell struct {
	Chain string `json:"chain,omitempty"` // of a top cell
	Type  string `json:"type"`
	Name  string `json:"name"`
	GPUs  int    `json:"gpus"`
	Cells []Cell `json:"cells,omitempty"`
	Uses  []Use  `json:"uses,omitempty"`
}

// Use groups a node's GPUs by equal use.
type Use struct {
	GPUs    []int      `json:"gpus"`
	VC      string     `json:"vc,omitempty"`      // owner of the cell that contains them
	Holder  *JobInCell `json:"holder,omitempty"`  // by a guaranteed or shared lease
	Guest   *JobInCell `json:"guest,omitempty"`   // by an opportunistic lease
	Outside *JobInCell `json:"outside,omitempty"` // by no lease
	Bad     string     `json:"bad,omitempty"`
}

// JobInCell is a job that holds GPUs.
type JobInCell struct {
	Job    cluster.JobKey     `json:"job"`
	ID     string             `json:"slurm_id"`
	User   string             `json:"user"`
	Tenant string             `json:"tenant"`
	Right  cluster.LeaseClass `json:"right,omitempty"`
	GPUs   cluster.GPUCount   `json:"gpus"`
	Until  cluster.Instant    `json:"until,omitempty"`
	State  cluster.LeaseState `json:"state,omitempty"`
}

// VC is a virtual cluster, from the largest cells of each chain down.
type VC struct {
	VC     string    `json:"vc"`
	Levels []VCLevel `json:"levels"`
}

// VCLevel is a virtual cluster's reservation at a level, and its state.
type VCLevel struct {
	cluster.CellView
	CellGPUs int         `json:"cell_gpus"`
	Cells    []BoundCell `json:"cells,omitempty"`
}

// BoundCell is a cell of a virtual cluster that jobs use.
type BoundCell struct {
	Nodes   []string     `json:"nodes"`
	GPUs    []int        `json:"node_gpus,omitempty"` // of a cell smaller than a node
	Pinned  bool         `json:"pinned,omitempty"`
	Used    int          `json:"used_gpus"`
	Bad     int          `json:"bad_gpus,omitempty"`
	Holders []*JobInCell `json:"holders,omitempty"`
	Guests  []*JobInCell `json:"guests,omitempty"`
}

// use is the comparable use of a GPU.
type use struct {
	vc                     string
	holder, guest, outside cluster.JobKey
	bad                    string
}

// kind names a use in one word.
func (u *Use) kind() string {
	switch {
	case u.Bad != "":
		return "bad"
	case u.Outside != nil:
		return "not leased"
	case u.Guest != nil:
		return "lent"
	case u.VC != "":
		return "bound"
	case u.Holder != nil:
		return "shared"
	}
	return "free"
}

// useKinds are the kinds in the order of display.
var useKinds = []string{"free", "bound", "lent", "shared", "not leased", "bad"}

// surveyor maps GPUs to jobs.
type surveyor struct {
	types map[string]*cluster.CellType
	jobs  map[cluster.JobKey]*JobInCell
	uses  map[string]*[64]use // by node, by GPU
}

// newSurveyor has the cells of a snapshot and their hardware, but no jobs yet.
func newSurveyor(snap *cluster.Snapshot) *surveyor {
	s := &surveyor{types: map[string]*cluster.CellType{}, jobs: map[cluster.JobKey]*JobInCell{}, uses: map[string]*[64]use{}}
	for i := range snap.Cells.Types {
		s.types[snap.Cells.Types[i].Name] = &snap.Cells.Types[i]
	}
	for _, t := range snap.Cells.Tops {
		for _, n := range t.Nodes {
			s.uses[n] = &[64]use{}
			s.mark(n, ^uint64(0), func(u *use) { u.bad = "not in Slurm" })
		}
	}
	for i := range snap.Nodes {
		n := &snap.Nodes[i]
		s.mark(n.Name, ^uint64(0), func(u *use) { u.bad = n.Bad })
		s.mark(n.Name, mask(n.Drained), func(u *use) { u.bad = cmp.Or(u.bad, "drained") })
	}
	return s
}

// wrong says what is wrong with the hardware of a node.
func (s *surveyor) wrong(node string) string {
	var bad []int
	why := ""
	for g, u := range s.uses[node] {
		if u.bad != "" {
			bad, why = append(bad, g), u.bad
		}
	}
	if len(bad) > 0 && len(bad) < len(s.uses[node]) {
		return "GPU " + ranges(bad) + " " + why
	}
	return why
}

// CellsOf gives the state of the cells after a round.
func CellsOf(snap *cluster.Snapshot, plan *cluster.Plan) *Cells {
	s := newSurveyor(snap)
	s.meet(snap, plan)
	s.look(snap, plan)
	out := &Cells{Round: plan.Round, At: plan.At, VCs: []VC{}, Fragmentation: plan.Cells.Fragmentation, Unsafe: plan.Cells.Unsafe,
		Trades: slices.Clone(plan.State.CellTrades)}
	for i := range snap.Cells.Tops {
		t := &snap.Cells.Tops[i]
		c := s.cell(t.Type, t.Nodes)
		c.Name, c.Chain = t.Name, cmp.Or(t.Chain, s.chainOf(t.Type))
		out.Cluster = append(out.Cluster, c)
	}
	slices.SortStableFunc(out.Cluster, func(a, b Cell) int { return strings.Compare(a.Chain, b.Chain) })
	type place struct{ vc, chain, typ string }
	bound := map[place][]BoundCell{}
	for i := range plan.Cells.Bound {
		b := &plan.Cells.Bound[i]
		at := place{b.VC, b.Chain, b.Type}
		bound[at] = append(bound[at], s.bound(b))
	}
	for _, v := range plan.Cells.Views {
		if n := len(out.VCs); n == 0 || out.VCs[n-1].VC != v.VC {
			out.VCs = append(out.VCs, VC{VC: v.VC})
		}
		last := &out.VCs[len(out.VCs)-1]
		last.Levels = append(last.Levels, VCLevel{v, s.size(v.Type), bound[place{v.VC, v.Chain, v.Type}]})
	}
	return out
}

// meet adds the jobs that hold GPUs.
func (s *surveyor) meet(snap *cluster.Snapshot, plan *cluster.Plan) {
	for i := range snap.Cases {
		c := &snap.Cases[i]
		if n := cluster.CountHeld(c.Job.Holds); n > 0 && !c.Gone {
			s.jobs[c.Record.Key] = &JobInCell{Job: c.Record.Key, ID: c.Record.ID.String(), User: c.Record.User, Tenant: c.Record.Tenant, GPUs: n, Until: c.Job.End}
		}
	}
	for r := range plan.State.All() {
		if s.jobs[r.Key] == nil {
			s.jobs[r.Key] = &JobInCell{Job: r.Key, ID: r.ID.String(), User: r.User, Tenant: r.Tenant}
		}
	}
	for i := range plan.State.Leases {
		l := &plan.State.Leases[i]
		j := s.job(l.Job)
		j.Right, j.GPUs, j.Until, j.State = l.Class, l.Size.Count(), l.End, l.State
	}
}

// job describes a job; an unknown one by its key.
func (s *surveyor) job(key cluster.JobKey) *JobInCell {
	if key == 0 {
		return nil
	}
	if s.jobs[key] == nil {
		s.jobs[key] = &JobInCell{Job: key, ID: fmt.Sprintf("#%d", key)}
	}
	return s.jobs[key]
}

// look finds the use of every GPU.
func (s *surveyor) look(snap *cluster.Snapshot, plan *cluster.Plan) {
	for i := range plan.Cells.Bound {
		b := &plan.Cells.Bound[i]
		for _, part := range b.Parts {
			s.mark(part.Node, part.GPUs, func(u *use) { u.vc = b.VC })
		}
	}
	for i := range snap.Cases {
		c := &snap.Cases[i]
		for _, h := range c.Job.Holds {
			if s.jobs[c.Record.Key] != nil && s.jobs[c.Record.Key].Right == "" {
				s.mark(h.Node, mask(h.Index), func(u *use) { u.outside = c.Record.Key })
			}
		}
	}
	for i := range plan.State.Leases {
		l := &plan.State.Leases[i]
		for _, part := range l.Parts {
			s.mark(part.Node, part.GPUs, func(u *use) {
				if l.Class == cluster.Opportunistic {
					u.guest = l.Job
				} else {
					u.holder = l.Job
				}
			})
		}
	}
}

// mark changes the use of a node's GPUs, if it is in a cell.
func (s *surveyor) mark(node string, gpus uint64, change func(*use)) {
	at := s.uses[node]
	if at == nil {
		return
	}
	for i := range at {
		if gpus>>i&1 == 1 {
			change(&at[i])
		}
	}
}

func mask(index []int) uint64 {
	m := uint64(0)
	for _, i := range index {
		m |= 1 << i
	}
	return m
}

// cell gives a physical cell on nodes, with its contents.
func (s *surveyor) cell(kind string, nodes []string) Cell {
	c := Cell{Type: kind, Name: hostlist.Compress(nodes), GPUs: s.size(kind)}
	t := s.types[kind]
	if t != nil && !t.Node && t.Split > 0 {
		for part := range slices.Chunk(nodes, max(len(nodes)/t.Split, 1)) {
			c.Cells = append(c.Cells, s.cell(t.Child, part))
		}
		return c
	}
	if len(nodes) == 0 {
		return c
	}
	at := map[use]int{}
	for g := range min(c.GPUs, 64) {
		u := s.uses[nodes[0]][g]
		k, ok := at[u]
		if !ok {
			k = len(c.Uses)
			at[u] = k
			c.Uses = append(c.Uses, Use{VC: u.vc, Bad: u.bad, Holder: s.job(u.holder), Guest: s.job(u.guest), Outside: s.job(u.outside)})
		}
		c.Uses[k].GPUs = append(c.Uses[k].GPUs, g)
	}
	return c
}

// bound gives a bound cell, with the jobs in it.
func (s *surveyor) bound(b *cluster.BoundCell) BoundCell {
	out := BoundCell{Pinned: b.Pinned, Used: b.Used, Bad: b.Bad}
	for i, part := range b.Parts {
		out.Nodes = append(out.Nodes, part.Node)
		for g := range 64 {
			if i == 0 && part.GPUs>>g&1 == 1 && !s.whole(b.Type) {
				out.GPUs = append(out.GPUs, g)
			}
		}
	}
	for _, key := range b.Holders {
		out.Holders = append(out.Holders, s.job(key))
	}
	for _, key := range b.Guests {
		out.Guests = append(out.Guests, s.job(key))
	}
	return out
}

// whole tells whether cells of a type are nodes, or larger.
func (s *surveyor) whole(kind string) bool {
	for range s.types {
		t := s.types[kind]
		if t == nil {
			return false
		}
		if t.Node {
			return true
		}
		kind = t.Child
	}
	return false
}

// size gives the number of GPUs of a cell of a type.
func (s *surveyor) size(kind string) int {
	n, t := 1, s.types[kind]
	for range s.types {
		if t != nil && t.Child != "" {
			n *= t.Split
			t = s.types[t.Child]
		}
	}
	return n
}

// chainOf gives the largest type that contains a type, if there is only one.
func (s *surveyor) chainOf(kind string) string {
	for range s.types {
		for _, name := range slices.Sorted(maps.Keys(s.types)) {
			if s.types[name].Child == kind {
				kind = name
			}
		}
	}
	return kind
}
