// Package loop is one turn of fairlease: look, remember, decide, write down,
// act. The daemon runs it in real time on Slurm, the simulator in pretend time on
// a virtual cluster; only what stands behind Cluster and Journal differs.
//
//	Observe          Remember            Decide            Commit, then Apply
//	cluster ──► Sighting ──► Snapshot ──────────► Plan ──► journal ──► actions
//	                            ▲                   │
//	                            └───── Memory ◄─────┘
package loop
