// Package cells gives every virtual cluster (VC) its reserved GPUs with the reserved affinity:
// HiveD's multi-level cells (§3.2) and buddy cell allocation (§3.3, Algorithm 1).
//
//	rack                 +-------------------------------+     level 3
//	node                 +-------A-------+---------------+     level 2: one all bound to A
//	socket               +-------+-------+---B---+-------+     level 1: one bound to B
//	GPU                  | | | | | | | | | | | | |C|x| | |     level 0: one bound to C, one dead
//
// A VC has a number of cells at each level of each chain. It binds one only while a job of its
// own runs in it: any free cell of that level, found at the lowest level that has one, split off
// a larger one if needed, and merged again when it is returned. There are two views of the same
// cells. In the guaranteed view leases are in bound cells, and lent GPUs count as free. In the
// opportunistic view leases are on any unused GPU, and end when a guaranteed lease needs it.
//
//	paper                           here
//	cell hierarchy, Figure 4        Description; a chain for each GPU model and node shape
//	level-k cell                    (chain, level, index): its GPUs are index*size and on
//	r_tk, a_tk                      account.reserved, account.bound
//	r_k, a_k, f_k, h_k              level.reserved, .bound, .free, .split
//	AllocateCell, ReleaseCell       State.Allocate, State.Free; chain.find, take, give
//	F_k, invariant (2)              chain.gaps; Layout.Unsafe
//	low-priority cells, §3.3        State.Lend
//	faulty hardware, §4             State.SetBad; a dead GPU is a cell that nobody can free
//	fault tolerance, §4             roster.Export, State.Rebuild
//	reconfiguration, §4             Rebuild with another Description
//
// A dead GPU is removed from the free lists as if it were allocated for ever, so the rest of its
// node is free cells of lower levels. If that breaks invariant (2) at a level, the VC with the
// most unallocated cells there loses one, visibly, until the hardware is back: legal is a_tk <
// r_tk - lost_tk. So the invariant always holds. A loss does not move to a VC that leaves healthy
// cells idle: those are lent, and a VC keeps its reservation whichever VC asks first.
//
// Cells are found without a search: in each group of buddies, and over the groups of each level,
// minimum trees keep the best free cell on top (heap). If a job cannot run on every node, and the
// result does not suffice, a search chooses the cells to bind (search): the guarantee holds on
// the nodes that admit the job.
package cells
