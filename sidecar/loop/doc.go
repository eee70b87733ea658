// Package loop makes one turn of fairlease: observe, remember, decide, commit, act. The daemon
// runs it in real time on Slurm, the simulator in simulated time on a virtual cluster. Only the
// implementations of Cluster and Journal differ.
//
//	Observe          Remember            Decide            Commit, then Apply
//	cluster ──► Observation ──► Snapshot ──────────► Plan ──► journal ──► actions
//	                               ▲                   │
//	                               └───── State ◄──────┘
package loop
