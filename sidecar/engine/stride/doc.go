// Package stride divides the GPUs of one model between jobs by tickets: Gandiva_fair's
// gang-aware stride (§3.1), split between servers, with its balance of load (§3.2) and its
// placement (§3.5).
//
// Every job has a pass. The jobs with the smallest pass run next, as many as fit; a job that
// runs passes on by its stride, which is the smaller the more tickets its GPUs have. A job
// that does not fit keeps its pass, and so is first before long.
//
//	pass   A (1 GPU)  *--*--*--*--*--*--*--      stride 1
//	       B (2 GPUs) *-----*-----*-----*--      stride 2
//	       C (4 GPUs) *-----------*--------      stride 4
//
// Small jobs are those of one server; they live there. A server's small jobs have one
// aggregate job before the central stride, next to the large jobs, which run on several
// servers at once:
//
//	central    node 1's aggregate    node 2's aggregate    large job on 1 and 2
//	              |                      |
//	local      small small small      small small
//
//	paper                              here
//	stride; pass                       Stride; Job.Pass, in billionths
//	Algorithm 1                        Next
//	split stride, Figure 3             Split
//	ticketsPerGPU, eq. 1               PerGPU
//	ticketLoadPerGPU, eq. 2            State.loads
//	jobTickets, eq. 3                  Choice.Tickets
//	load balance by migration, §3.5    State.Balance
//	Algorithm 2                        State.Place
//	migration for performance, §3.5    State.Better
//
// Passes are whole numbers, data like any other: they survive restarts, and no sum of them drifts.
package stride
