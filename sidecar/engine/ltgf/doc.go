// Package ltgf accounts for long-term GPU-time fairness (ASTRAEA §4.2): who
// received how much GPU time, who was due how much, and how far apart the two are.
//
//	paper                      here
//	Alloc, eq. 1-2, 10-11      Record.Alloc, TenantPool.Alloc (GPU-milliseconds)
//	FairShare, eq. 3, 8, 13    a due rate (MicroGPU), integrated by Accrue
//	FairShare integral, 4 9 14 Record.Due, TenantPool.Due
//	rho, eq. 5, 12, 15         RhoOf(alloc, due), over the window
//	eq. 16                     Settings.RhoSelect: what the deficit integrates
//
// Time is integrated with the state of the last look: what was true then is
// taken to have held until now, except where Slurm's own start and end times
// are known, which are exact.
package ltgf
