// Package cells gives every virtual cluster (VC) the GPUs it was promised, with the
// affinity it was promised: HiveD's multi-level cells (§3.2) and buddy cell allocation
// (§3.3, Algorithm 1).
//
//	rack                 +-------------------------------+     level 3
//	node                 +-------A-------+---------------+     level 2: one all bound to A
//	socket               +-------+-------+---B---+-------+     level 1: one bound to B
//	GPU                  | | | | | | | | | | | | |C|x| | |     level 0: one bound to C, one dead
//
// A VC has a number of cells at each level of each chain. It binds one only while a job of
// its own runs in it: any free cell of that level, found at the lowest level that has one,
// split off a larger one if need be, and merged again when it is given back. There are
// two views over the same cells. In the guaranteed view leases stand in bound cells, and
// whatever is lent counts as free; in the opportunistic view leases stand on any GPU that
// nobody uses, and go when a guaranteed one needs their place.
//
//	paper                           here
//	cell hierarchy, Figure 4        Description; a chain for each GPU model and node shape
//	level-k cell                    (chain, level, index): its GPUs are index*size and on
//	r_tk, a_tk                      account.reserved, account.bound
//	r_k, a_k, f_k, h_k              level.reserved, .bound, .free, .split
//	AllocateCell, ReleaseCell       State.Allocate, State.Free; chain.find, take, give
//	F_k, invariant (2)              chain.gaps; State.Unsafe
//	low-priority cells, §3.3        State.Lend
//	faulty hardware, §4             State.SetBad; a dead GPU is a cell that nobody can free
//	fault tolerance, §4             State.Export, Rebuild
//	reconfiguration, §4             Rebuild with another Description
//
// A dead GPU is taken out of the free lists as if it were allocated for ever, so what is
// left of its node are free cells of lower levels. Where invariant (2) then fails at a
// level, the VC with most unallocated cells there loses one, visibly, until the hardware
// is back: legal is a_tk < r_tk - lost_tk. The invariant therefore holds at every time. A
// loss does not move to a VC that leaves healthy cells idle: those are lent, and a VC keeps what
// it was promised whoever asks first.
//
// Cells are found without a search: in each group of buddies, and over the groups of
// each level, trees of the least keep the best free cell on top (heap). Where a job may not
// run on every node, and what is found so does not suffice, a search finds which cells to
// bind (search): the guarantee holds on the nodes that admit the job.
package cells
