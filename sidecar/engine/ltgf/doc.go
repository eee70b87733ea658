// Package ltgf accounts for long-term GPU-time fairness (ASTRAEA §4.2): the GPU time that each
// tenant and job received, their entitlements, and the differences.
//
//	paper                      here
//	Alloc, eq. 1-2, 10-11      Record.Alloc, TenantPool.Alloc (GPU-milliseconds)
//	FairShare, eq. 3, 8, 13    a due rate (MicroGPU), integrated by Accrue
//	FairShare integral, 4 9 14 Record.Due, TenantPool.Due
//	rho, eq. 5, 12, 15         RhoOf(alloc, due), over the window
//	eq. 16                     Settings.RhoSelect: what the deficit integrates
//
// Where a policy divides GPU models, rho counts work (SEMANTICS §2): GPU time times speedup. Records and TenantPools
// have what it exceeds GPU time by (Extra), so that without speedups nothing differs.
//
// Time is integrated with the state of the last look, which is assumed to have lasted until now.
// Slurm's start and end times replace that where they are known.
package ltgf
