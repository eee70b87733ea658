package vc

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// build rebuilds the cells from the records of the last round and the present observation. No cell state
// lives between two rounds. The GPU indices that Slurm reports take precedence over the planned ones. build
// also sets the ground's claims, the jobs inside cells, the stale holders and the recalls that they cause.
func build(v *ground, d *cluster.Cells) *cells.State {
	b := &builder{g: v,
		leases: make([]cells.Lease, 0, len(v.turn.f.In.Snapshot.Leases)+len(v.turn.f.In.Snapshot.Claims))}
	for _, c := range v.turn.c.plain.Cells.Chains() {
		b.masks = append(b.masks, make([]mask, c.Node))
	}
	b.hardware(d.Tops)
	record := cells.Record{Leases: b.stand(), Bad: b.bad(d.Tops), Lost: v.turn.f.In.Snapshot.Lost}
	var changes cells.Changes
	v.state, changes = v.trade(record).Rebuild(record)
	v.keepIn(changes.Demoted)
	v.staleHolders, v.leaving = v.findStaleHolders()
	v.entitle(v.leaving)
	return v.state
}

// builder collects the leases and bad GPUs that occupy the cells.
type builder struct {
	g      *ground
	masks  [][]mask // by chain and node
	last   string   // node that was looked up last: often the next one too
	at     *mask    // its mask
	leases []cells.Lease
}

// mask holds sets of GPUs of one node, one bit per GPU.
type mask struct {
	all, bad uint64
	taken    uint64 // by jobs that stay
	leaving  uint64 // by jobs that leave
}

// on returns the mask of a node, or nil for a node in no cell.
func (b *builder) on(node string) *mask {
	if node == b.last {
		return b.at
	}
	b.last, b.at = node, nil
	if at, known := b.g.turn.c.plain.Cells.Place(node); known {
		b.at = &b.masks[at.In][at.Node]
		b.at.all = ^uint64(0) >> (64 - at.GPUs)
	}
	return b.at
}

// hardware marks bad GPUs: those of nodes that are down, drained or unknown, drained GPUs, and GPUs missing
// from a node. Where Slurm does not report the index of a missing GPU, the last GPUs of the node count as
// bad.
func (b *builder) hardware(tops []cluster.TopCell) {
	for _, t := range tops {
		for _, name := range t.Nodes {
			i, ok := slices.BinarySearchFunc(b.g.turn.f.In.Snapshot.Nodes, name, func(n cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
			if !ok || b.g.turn.f.In.Snapshot.Nodes[i].Bad != "" {
				b.on(name).bad = b.on(name).all
				continue
			}
			at, _ := b.g.turn.c.plain.Cells.Place(name)
			n, there := &b.g.turn.f.In.Snapshot.Nodes[i], 0
			for _, g := range n.GPUs {
				if g.Model == at.Model {
					there = g.Count
				}
			}
			if there >= at.GPUs {
				continue
			}
			m := b.on(name)
			for _, k := range n.Drained {
				m.bad |= 1 << k & m.all
			}
			for bits.OnesCount64(m.all&^m.bad) > there {
				m.bad |= 1 << (63 - bits.LeadingZeros64(m.all&^m.bad))
			}
		}
	}
}

// stand places the jobs that hold GPUs, in three passes. The first pass takes jobs with GPU indices from
// Slurm, and the second takes jobs with planned GPUs. The third pass gives the remaining jobs what is left.
func (b *builder) stand() []cells.Lease {
	for turn := range 3 {
		if turn == 2 {
			b.plan(b.g.turn.f.In.Snapshot.Claims)
		}
		for i := range b.g.turn.f.In.Cases {
			st, j := &b.g.turn.f.In.Cases[i], &b.g.turn.f.In.Snapshot.Cases[i].Job
			if !st.Live || st.Waits || len(j.Holds) == 0 {
				continue
			}
			its := 2
			if told(j.Holds) {
				its = 0
			} else if l := b.g.turn.f.Hand.Leases[i]; l != nil && l.Parts != nil {
				its = 1
			}
			if turn == its {
				b.standIn(i)
			}
		}
	}
	for _, l := range b.leases {
		if l.Job < len(b.g.turn.f.In.Cases) {
			b.g.inside[l.Job] = true
		}
	}
	return b.leases
}

// bad returns the bad GPUs of all cells.
func (b *builder) bad(tops []cluster.TopCell) []cells.Bad {
	var out []cells.Bad
	for _, t := range tops {
		for _, node := range t.Nodes {
			if m := b.on(node); m.bad != 0 {
				out = append(out, cells.Bad{Node: node, GPUs: m.bad})
			}
		}
	}
	return out
}

// told reports whether Slurm gives the GPU indices of all that a job holds.
func told(holds []cluster.Holding) bool {
	for i := range holds {
		if len(holds[i].Index) != holds[i].Size.Devices {
			return false
		}
	}
	return true
}

// standIn places one job. A job with a lease of ours gets a lease in the cells; the GPUs of any other job
// count as bad. A gang may also hold nodes in no cell. Its remaining nodes are then bound to its VC while it
// runs, and cost no other VC a cell.
func (b *builder) standIn(i int) {
	st, l, j := &b.g.turn.f.In.Cases[i], b.g.turn.f.Hand.Leases[i], &b.g.turn.f.In.Snapshot.Cases[i].Job
	holds := b.within(j.Holds)
	if len(holds) == 0 {
		return
	}
	var planned []cells.Part
	if l != nil {
		planned = slices.DeleteFunc(slices.Clone(l.Parts), func(p cells.Part) bool { return b.on(p.Node) == nil })
	}
	parts := b.parts(holds, planned)
	cleans := j.State == cluster.Completing
	if !cleans && (l == nil || !st.Runs && !b.g.turn.f.In.Configures(i) || !st.Ours(b.g.touch)) {
		for _, p := range parts {
			b.on(p.Node).bad |= p.GPUs
		}
		return
	}
	f := cells.Lease{Job: i, VC: b.g.turn.f.In.Records[i].Tenant, Right: cluster.Opportunistic, Parts: parts, Priority: 3}
	switch {
	case cleans || l.State == cluster.Ending:
		f.Leaving = true
	case l.Class != cluster.Opportunistic:
		f.Right = cluster.Guaranteed // a lease that is shared becomes guaranteed here
		if b.g.turn.f.Ending(i) {
			f.Priority = 1
		}
		if st.Control == cluster.NoReclaim || st.Ordered(cluster.Exempt) {
			f.Priority = 4
		}
	}
	for _, p := range parts {
		m := b.on(p.Node)
		if f.Leaving || l.Why == round.Recalled || l.State == cluster.Noticed {
			m.leaving |= p.GPUs
		} else {
			m.taken |= p.GPUs
		}
	}
	b.leases = append(b.leases, f)
}

// within returns the holdings of a job on nodes in cells.
func (b *builder) within(holds []cluster.Holding) []cluster.Holding {
	out := func(o cluster.Holding) bool { return o.Size.Devices > 0 && b.on(o.Node) == nil }
	if !slices.ContainsFunc(holds, out) {
		return holds
	}
	return slices.DeleteFunc(slices.Clone(holds), func(o cluster.Holding) bool { return o.Size.Devices == 0 || out(o) })
}

// parts returns the GPUs of a job: those that Slurm reports, else the planned ones if they are free, else the
// first free ones. If the result equals the plan, the job keeps the planned cells, even several on one node.
func (b *builder) parts(holds []cluster.Holding, planned []cells.Part) []cells.Part {
	out := make([]cells.Part, 0, max(len(holds), len(planned)))
	for k := range holds {
		hold := &holds[k]
		m := b.on(hold.Node)
		if m == nil || hold.Size.Devices == 0 {
			continue
		}
		p, from := cells.Part{Node: hold.Node}, len(out)
		was := uint64(0)
		for _, o := range planned {
			if o.Node == hold.Node {
				was |= o.GPUs
				p.Type = o.Type
				out = append(out, o)
			}
		}
		if p.GPUs = maskOf(hold) & m.all; bits.OnesCount64(p.GPUs) != hold.Size.Devices {
			p.GPUs = was &^ m.taken & m.all
		}
		if bits.OnesCount64(p.GPUs) != hold.Size.Devices {
			p.GPUs = m.pick(hold.Size.Devices)
		}
		if p.GPUs != was {
			out = append(out[:from], p)
		}
	}
	return out
}

// maskOf returns the GPUs that a job holds on a node as a set.
func maskOf(h *cluster.Holding) uint64 {
	var m uint64
	for _, g := range h.Index {
		m |= 1 << g
	}
	return m
}

// pick returns n GPUs: free ones first, then GPUs that a job leaves, then GPUs that are not taken, then any.
func (m *mask) pick(n int) uint64 {
	var out uint64
	for _, from := range []uint64{m.all &^ (m.taken | m.leaving | m.bad), m.all &^ (m.taken | m.bad), m.all &^ m.taken, m.all} {
		for left := from &^ out; n > 0 && left != 0; left &= left - 1 {
			out |= left & -left
			n--
		}
	}
	return out
}

// plan places jobs that do not run yet: granted leases that have not begun, and claims. Slurm may have chosen
// their GPUs for other jobs since. They then take other GPUs of the same nodes.
func (b *builder) plan(claims []cluster.Claim) {
	for i, l := range b.g.turn.f.Hand.Leases {
		if l == nil || l.State != cluster.Granted || !b.g.turn.f.In.Cases[i].Ours(b.g.touch) || b.g.turn.f.In.Configures(i) || l.Parts == nil && len(b.within(l.Nodes)) == 0 {
			continue
		}
		if l.Parts == nil {
			b.g.turn.f.RevokeGrant(i, "taken back: its nodes are in cells now")
			continue
		}
		if b.g.inside[i] = b.planned(i, i, l.Class, l.Parts); !b.g.inside[i] {
			b.g.turn.f.RevokeGrant(i, "taken back: its GPUs are not there any more")
		}
	}
	if b.g.touch != cluster.FullControl {
		return
	}
	for k := range claims {
		cl := &claims[k]
		i := b.g.turn.f.In.Find(cl.Job)
		if cl.Parts == nil || i < 0 || b.g.turn.f.In.Now.Sub(cl.At) > b.g.turn.f.In.Settings.Term {
			continue
		}
		if b.moves(i, cl) {
			if b.planned(b.g.moved(i), i, cluster.Guaranteed, cl.Parts) {
				b.g.moving[i] = cl
			}
			continue
		}
		if b.g.turn.f.Can[i].Eligible && b.g.turn.f.Hand.Leases[i] == nil && b.planned(i, i, cluster.Guaranteed, cl.Parts) {
			b.g.claims[i] = cl
		}
	}
}

// moves reports whether a claim is that of a job that leaves GPUs of another model.
func (b *builder) moves(i int, cl *cluster.Claim) bool {
	if !b.g.turn.f.In.Settings.Divides() {
		return false
	}
	return b.g.turn.f.Ending(i) && b.g.turn.f.Hand.Leases[i].Pool != cl.Pool || field.Leaves(b.g.turn.f, i)
}

// planned places one job, by its number in the cells and its case, on its planned GPUs and reports whether its nodes
// are still good. An opportunistic lease needs GPUs that no other job has taken. A claim needs good GPUs: a job that
// fairlease leaves alone may have got them.
func (b *builder) planned(job, i int, right cluster.LeaseClass, parts []cells.Part) bool {
	for _, p := range parts {
		if m := b.on(p.Node); m == nil || !b.g.turn.f.Site.Good(p.Node) {
			return false
		}
	}
	claim := job != i || b.g.turn.f.Hand.Leases[i] == nil
	parts = slices.Clone(parts)
	for k := range parts {
		p := &parts[k]
		m := b.on(p.Node)
		if p.GPUs&(m.taken|m.bad) != 0 {
			p.GPUs = m.pick(bits.OnesCount64(p.GPUs))
		}
		if right == cluster.Opportunistic && p.GPUs&(m.taken|m.bad) != 0 || claim && p.GPUs&m.bad != 0 {
			return false
		}
		m.taken |= p.GPUs
	}
	b.leases = append(b.leases, cells.Lease{Job: job, VC: b.g.turn.f.In.Records[i].Tenant, Right: right, Parts: parts, Priority: 2})
	return true
}

// indices returns the members of a set of GPUs.
func indices(gpus uint64) []int {
	out := make([]int, 0, bits.OnesCount64(gpus))
	for ; gpus != 0; gpus &= gpus - 1 {
		out = append(out, bits.TrailingZeros64(gpus))
	}
	return out
}

// keepIn handles jobs that found no cell of their VC where they are. A running job gets as many GPUs of the
// same nodes in its VC's books, if possible. Otherwise it becomes opportunistic. A job that may not be
// requeued keeps its GPUs, which then count as bad. A claim that cannot be kept is dropped.
func (v *ground) keepIn(demoted []int) {
	for _, i := range demoted {
		if i >= len(v.turn.f.In.Cases) {
			v.state.Release(i)
			delete(v.moving, v.caseOf(i))
			continue
		}
		st := &v.turn.f.In.Cases[i]
		switch {
		case v.claims[i] != nil:
			v.state.Release(i)
			delete(v.claims, i)
		case st.Runs && v.relabel(i):
		case st.Control == cluster.NoReclaim || st.Ordered(cluster.Exempt):
			parts := v.state.Leases.Parts(i)
			v.state.Release(i)
			v.inside[i] = false
			for _, p := range parts {
				v.state.Spoil(p.Node, p.GPUs)
			}
		}
	}
}

// relabel moves a running job to cells of its VC on the same nodes, because Slurm chose GPUs that share no
// cell. The job loses its affinity, which is an event, but keeps its right. Otherwise another job of the VC
// would get the cell and could be split in the same way. The books swap the GPUs with any job that borrows
// the ones taken: that job holds the others in fact.
func (v *ground) relabel(i int) bool {
	parts := v.state.Leases.Parts(i)
	gpus := bits.OnesCount64(parts[0].GPUs)
	nodes := make([]string, len(parts))
	for k, p := range parts {
		if nodes[k] = p.Node; bits.OnesCount64(p.GPUs) != gpus || slices.Contains(nodes[:k], p.Node) {
			return false
		}
	}
	at, _ := v.state.Cells.Place(nodes[0])
	v.state.Release(i)
	grant, err := v.state.Request(cells.Request{Job: i, VC: v.turn.f.In.Records[i].Tenant, Chain: at.Chain, Nodes: len(nodes), GPUs: gpus, Apart: true,
		Priority: -inTerm, Admits: func(node string, _ int) bool { return slices.Contains(nodes, node) }})
	if err != nil {
		v.state.Leases.Stay(i, v.turn.f.In.Records[i].Tenant, parts)
		return false
	}
	for _, guest := range grant.Recall {
		for _, node := range nodes {
			v.state.Shift(guest, node)
		}
	}
	// Told once, in the first round that sees it run: rounds may be closer together than Slurm's whole seconds.
	if was := &v.turn.f.In.Snapshot.Cases[i].Record; was.ChargedTo == 0 || was.State != cluster.Running && was.State != cluster.Suspended ||
		v.turn.f.In.Snapshot.Cases[i].Job.Restarts > was.Restarts {
		v.turn.f.Hand.Events = append(v.turn.f.Hand.Events, cluster.Event{Kind: cluster.EventCellsBroken, Job: v.turn.f.In.Records[i].Key,
			Text: fmt.Sprintf("job %s of %s has GPUs that are in no one cell of its virtual cluster: Slurm chose them", v.turn.f.In.Records[i].ID, v.turn.f.In.Records[i].Tenant)})
	}
	return true
}

// entitle sets the parts and the class of every lease in the cells. A lease that is not renewed, for the sake
// of another job of its VC or because its cell changes hands, keeps its class until it ends.
func (v *ground) entitle(leaving []cellRecall) {
	goes := make(map[int]bool, len(leaving))
	for _, r := range leaving {
		goes[r.of] = true
	}
	trading := v.turn.f.In.Settings.Divides() && v.turn.f.In.Snapshot.Cells.Tradable()
	for i, l := range v.turn.f.Hand.Leases {
		if l == nil || !v.inside[i] {
			continue
		}
		l.Parts = v.state.Leases.Parts(i)
		ends := goes[i] || l.State == cluster.Ending || trading && l.Class == cluster.Guaranteed && v.mayGo(i) // its cell may have changed hands
		if right := v.right(i); right == cluster.Guaranteed || !ends {
			if l.Class == cluster.Guaranteed && right == cluster.Opportunistic {
				v.turn.f.Hand.Events = append(v.turn.f.Hand.Events, cluster.Event{Kind: cluster.EventCellsDemoted, Job: l.Job,
					Text: fmt.Sprintf("job %s no longer stands in cells of %s: its lease is opportunistic now", v.turn.f.In.Records[i].ID, v.turn.f.In.Records[i].Tenant)})
			}
			l.Class = right
		}
	}
}

// findStaleHolders returns the jobs that still hold GPUs given to another job, by that job's number in the cells, and
// the recalls they cause.
func (v *ground) findStaleHolders() (staleHolders map[int][]int, leaving []cellRecall) {
	holders := v.state.Leases.StaleHolders()
	if len(holders) == 0 {
		return nil, nil
	}
	staleHolders = map[int][]int{}
	beneficiaries := map[string][]int{} // by node
	gets := func(job int) {
		for _, p := range v.state.Leases.Parts(job) {
			beneficiaries[p.Node] = append(beneficiaries[p.Node], job)
		}
	}
	for i := range v.turn.f.In.Cases {
		if v.claims[i] != nil || v.turn.f.Hand.Leases[i] != nil && v.turn.f.Hand.Leases[i].State == cluster.Granted && !v.turn.f.In.Configures(i) && v.right(i) == cluster.Guaranteed {
			gets(i)
		}
		if v.moving[i] != nil {
			gets(v.moved(i))
		}
	}
	for _, i := range holders {
		for n, beneficiary := range v.beneficiariesOf(i, beneficiaries) {
			if staleHolders[beneficiary] = append(staleHolders[beneficiary], i); n == 0 {
				v.state.Leases.Leave(i)
				leaving = append(leaving, cellRecall{i, v.turn.f.In.Records[v.caseOf(beneficiary)].Key})
			}
		}
	}
	return staleHolders, leaving
}

// beneficiariesOf returns the jobs whose GPUs a job still holds. beneficiaries are the jobs that were given GPUs of
// a node.
func (v *ground) beneficiariesOf(i int, beneficiaries map[string][]int) []int {
	var out []int
	for _, p := range v.state.Leases.Parts(i) {
		for _, beneficiary := range beneficiaries[p.Node] {
			for _, q := range v.state.Leases.Parts(beneficiary) {
				if p.Node == q.Node && p.GPUs&q.GPUs != 0 && !slices.Contains(out, beneficiary) {
					out = append(out, beneficiary)
				}
			}
		}
	}
	return out
}
