package vc

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// ground is the state of one choice: the cells with their leases and claims, and the board of all other
// resources that keep jobs off nodes.
type ground struct {
	turn   *turn
	touch  cluster.Control
	state  *cells.State
	chains []cells.Place
	board  *place.Board // CPUs, memory and other resources
	// By case: the claim of the job, and whether the job is inside cells.
	claims map[int]*cluster.Claim
	inside []bool
	// moving are the claims of jobs that leave GPUs of another model, by case. In the cells, the claim of case i is
	// the lease of job moved(i), beside the job's present one.
	moving map[int]*cluster.Claim
	// staleHolders still hold GPUs that were given to a job; leaving are their recalls.
	staleHolders map[int][]int
	leaving      []cellRecall
}

// moved returns the number of a case in the cells as a job that moves there.
func (v *ground) moved(i int) int { return len(v.turn.f.In.Cases) + i }

// caseOf returns the case of a number in the cells.
func (v *ground) caseOf(job int) int { return job % len(v.turn.f.In.Cases) }

// cellRecall is a lease that ends for a guaranteed one.
type cellRecall struct {
	of          int
	beneficiary cluster.JobKey
}

// candidates lists the jobs that could hold a lease next. Unlike other choosers it includes jobs in the
// middle of an opportunistic lease. In cells, it also applies orders other than ASTRAEA's.
func (v *ground) candidates() []lease.Candidate {
	cs := v.turn.f.Candidates(v.touch)
	for i, l := range v.turn.f.Hand.Leases {
		st := &v.turn.f.In.Cases[i]
		if l == nil || !st.Ours(v.touch) || !st.Runs || v.turn.f.Ending(i) || st.Tenant < 0 || !v.inside[i] ||
			v.right(i) != cluster.Opportunistic || l.State != cluster.Active || st.Order != nil {
			continue
		}
		r := &v.turn.f.In.Records[i]
		k := lease.Candidate{Case: i, Key: r.Key, Tenant: int(st.Tenant), Pools: v.turn.f.In.PoolOf(l), GPUs: l.Size.Amount(),
			Priority: lease.Priority{First: v.turn.f.Can[i].First, Owed: r.Due - r.Alloc, User: st.User, Rho: st.Rho,
				Urgent: slices.Contains(v.turn.f.In.Settings.UrgentQOS, v.turn.f.In.Snapshot.Cases[i].Job.QOS)}}
		v.turn.f.Order(&k)
		cs = append(cs, k)
	}
	for k := range cs {
		v.rank(&cs[k])
	}
	return cs
}

// SecondQueue is the attained service that moves a job to the second queue of Tiresias-L (Gu et al., NSDI'19,
// §3.2). The simulator of its authors (SymbioticLab/Tiresias) uses 3,250, 7,200 and 18,000 GPU-seconds. On
// the trace where both were tried, the last gives Tiresias-L better completion times and sharing loss than
// the first.
const SecondQueue = cluster.GPUTime(18000 * cluster.Second)

// rank sets the keys that order a candidate in its VC: its level, and within a level the VC's chooser. At equal
// keys, running jobs go before waiting ones, and then the order is first come, first served.
func (v *ground) rank(k *lease.Candidate) {
	r := &v.turn.f.In.Records[k.Case]
	chooser := v.turn.f.In.Settings.Chooser
	if t := v.turn.f.In.Cases[k.Case].Tenant; t >= 0 {
		chooser = v.turn.choosers[t]
	}
	k.Priority.Level = v.turn.level(k.Case)
	switch chooser {
	case cluster.CellsFirstCome: // no preemption
		k.Priority.New, k.Priority.Rho = false, cluster.Fair
		if k.Running && v.right(k.Case) == cluster.Guaranteed {
			k.Priority.Rho = 0
		}
	case cluster.CellsByService:
		k.Priority.New, k.Priority.Rho = false, 0
		if r.Alloc >= SecondQueue {
			k.Priority.Rho = 1
		}
	case cluster.CellsByStride: // stride: see advance
		k.Priority.New, k.Priority.Rho = false, cluster.Rho(v.turn.f.Hand.Passes[k.Case])
	}
}

// right returns the class of a job's lease in the cells; "" = the job is not in the cells.
func (v *ground) right(i int) cluster.LeaseClass { return v.state.Leases.Right(i) }

// occupy fills the board: jobs that may have to leave are soft, all others are fixed.
func (v *ground) occupy() *place.Board {
	board := v.turn.f.Fresh(v.turn.c.board)
	v.turn.c.board = board
	board.Await(len(v.turn.f.In.Cases))
	for i := range v.turn.f.In.Cases {
		st, l := &v.turn.f.In.Cases[i], v.turn.f.Hand.Leases[i]
		switch {
		case !st.Live:
		case l != nil && l.State == cluster.Granted:
			if v.right(i) == cluster.Opportunistic && !v.turn.f.In.Configures(i) {
				board.Soften(i, -1, 0, v.turn.f.In.Now, l.Nodes, 0)
			} else {
				board.Hold(l.Nodes, 0)
			}
		case st.Waits:
		case v.right(i) == cluster.Opportunistic, v.mayGo(i):
			board.Soften(i, -1, btoi(v.right(i) == cluster.Opportunistic), v.turn.f.In.Now, v.turn.f.In.Snapshot.Cases[i].Job.Holds, 0)
		default:
			board.Hold(v.turn.f.In.Snapshot.Cases[i].Job.Holds, 0)
		}
	}
	for _, cl := range v.claims {
		board.Hold(cl.Nodes, 0)
	}
	for _, cl := range v.moving {
		board.Hold(cl.Nodes, 0)
	}
	return board
}

// mayGo reports whether a guaranteed lease ends now if its VC wants its GPUs.
func (v *ground) mayGo(i int) bool { return v.inside[i] && v.turn.f.Ending(i) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// holdings returns the holdings of a job of the given shape on the given parts.
func (v *ground) holdings(parts []cells.Part, shape int) []cluster.Holding {
	var out []cluster.Holding
	for _, p := range parts {
		at, _ := v.state.Cells.Place(p.Node)
		index := indices(p.GPUs)
		if n := len(out); n > 0 && out[n-1].Node == p.Node {
			index = append(out[n-1].Index, index...)
			slices.Sort(index)
			out = out[:n-1]
		}
		cpus, memory := v.board.Parts(shape, len(index))
		out = append(out, cluster.Holding{Node: p.Node, Model: at.Model, Size: cluster.Whole(len(index)), Index: index, CPUs: cpus, MemoryMB: memory})
	}
	slices.SortFunc(out, func(a, b cluster.Holding) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// uses reports whether a job may have nodes of a chain.
func (v *ground) uses(k *lease.Candidate, c *cells.Place) bool {
	model := v.turn.f.In.Snapshot.Cases[k.Case].Job.Request.Model
	return (model == "" || model == c.Model) && slices.Contains(k.Pools, v.turn.f.In.Pool(c.Model))
}

// ask converts a job's request to a request for cells of a chain: a number of nodes and GPUs per node. A job
// that asks for nodes gets exactly those (hard). A job that asks only for GPUs gets the fewest nodes that split
// them evenly, and after settings.AffinityWait, or as long as that pays by what is known of its type, any nodes (soft).
func (v *ground) ask(k *lease.Candidate, c *cells.Place, tenant string, priority, displace int) cells.Request {
	r := &v.turn.f.In.Snapshot.Cases[k.Case].Job.Request
	q := cells.Request{Job: k.Case, VC: tenant, Chain: c.Chain, Model: c.Model, Apart: r.Nodes > 0, Priority: priority, Soft: v.soft(k.Case)}
	switch {
	case r.Exclusive:
		q.Nodes, q.GPUs = max(r.Nodes, (r.Size.Devices+c.GPUs-1)/max(c.GPUs, 1), 1), c.GPUs
	case r.PerNode > 0:
		q.Nodes, q.GPUs = max(r.Nodes, (r.Size.Devices+r.PerNode-1)/r.PerNode), r.PerNode
	case r.Nodes > 0:
		q.Nodes = r.Nodes
		q.GPUs = (r.Size.Devices + r.Nodes - 1) / r.Nodes
	default:
		q.Nodes = (r.Size.Devices + c.GPUs - 1) / c.GPUs
		for r.Size.Devices%q.Nodes != 0 {
			q.Nodes++
		}
		q.GPUs = r.Size.Devices / q.Nodes
	}
	ask := place.Ask{Shape: k.Shape, Pool: v.turn.f.In.Pool(c.Model), Now: v.turn.f.In.Now, End: lease.Next(v.turn.f.In.Now, v.turn.f.In.Settings), Displace: displace}
	q.Must = place.Must(v.turn.f.Site, ask.Shape, ask.Pool, q.Nodes)
	q.Admits = func(node string, gpus int) bool { return v.board.Admits(ask, q.Nodes, node, gpus) }
	if q.Nodes*q.GPUs > 1 && place.AnySlow(v.turn.f.Site, ask.Pool) {
		idle := ask
		idle.Displace = place.Nobodys
		q.Slow = func(node string) bool { return place.IsSlow(v.turn.f.Site, ask.Pool, node) }
		q.Idle = func(node string, gpus int) bool { return v.board.Admits(idle, q.Nodes, node, gpus) }
	}
	return q
}

// soft reports whether a job accepts GPUs on any nodes.
func (v *ground) soft(i int) bool {
	r := &v.turn.f.In.Snapshot.Cases[i].Job.Request
	if r.PerNode > 0 || r.Nodes > 0 || r.Exclusive {
		return false
	}
	wait := v.turn.f.In.Settings.AffinityWait
	for _, p := range v.turn.f.Can[i].Pools {
		if loss, known := field.Scatters(v.turn.f, i, p); known {
			wait = loss
			break
		}
	}
	return !v.turn.out.Later(v.turn.f.In.Now, v.turn.f.Can[i].First.Add(wait))
}

// lent reports whether a job has an opportunistic lease that it may keep.
func (v *ground) lent(i int) bool {
	l := v.turn.f.Hand.Leases[i]
	return l != nil && v.inside[i] && l.Class == cluster.Opportunistic && l.State != cluster.Ending && l.Why != round.Recalled
}
