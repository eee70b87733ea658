// Package lease decides which jobs hold GPUs for the next term (ASTRAEA §5).
//
//	paper                               here
//	lease term, §5.1                    Settings.Term, ends on a grid that a pool shares (Next)
//	renewal, §5.1.2                     leases that end are candidates like waiting jobs
//	AllocateJob, Algorithm 1            Choose: tenant furthest behind, then its first job
//	SelectJob, Algorithm 2, §5.2.1      the order of a tenant's jobs (Order)
//	T = T \ {p*} (line 17)              not used: a job that does not fit is passed over
//	                                    and the next one of its tenant is tried; a gang
//	                                    that is due gets a claim instead
//
// Leases of a pool end together, on multiples of the term:
//
//	boundary            boundary            boundary
//	   |---- lease ---------|---- renewed ------|
//	   |      |--- granted in between ---|.........   (ends on the boundary)
//	   |               |--- too short: stretched ---|
//
// Only a common grid lets eight one-GPU leases of a node end together for an 8-GPU gang.
package lease
