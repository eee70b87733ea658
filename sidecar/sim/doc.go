// Package sim runs the loop in pretend time on a virtual cluster.
//
// Virtual stands where Slurm stands, and Run where the daemon does. Between them
// is the very loop of the daemon, with the engine or any other Decide in it. Time is
// a list of moments at which something happens: what lies between them costs nothing,
// and a round is made only where something has changed or the plan said that time alone
// changes something.
//
// # The time of a job
//
// A job has work to do: its run time alone on GPUs of the reference model, without
// being disturbed. An attempt is one stretch from its start to its requeue or end. In
// an attempt it works, except where it pays (Costs):
//
//	          attempt 1                 waits                   attempt 2
//	|---------------------|=====|xxxxx|......|.....|~~~~~~~~~~|+++++|----------------|
//	start                 save  saved requeue      start      load  works            ends
//
//	- work   = save   x work that is lost   . COMPLETING, then gated   ~ cold start   + load
//
//	- The first start of a job is free: the recorded run time of a job has the start-up
//	  in it. An attempt that goes on from a checkpoint begins with ColdStart and Load.
//	- A save takes Save and holds up the work. When jobs save is for them to know: see
//	  Saves. A save that is cut short is worth nothing. Where
//	  Virtual.ReportSaves is set, jobs that save on their own report each save.
//	- What was done after the last save began is lost at a requeue, whoever orders it;
//	  the next attempt does it again. A job that never saves begins anew.
//	- A requeued job holds its GPUs for Completing, and is put off by RequeueDelay where
//	  nobody gated it.
//	- The reference is the job's own gang on the fewest nodes of one model. Elsewhere the work
//	  goes as fast as Speeds says; a gang that spans models goes at the pace of the slowest.
//	- A job may share the GPUs of another (Share). Beside says how fast both are meanwhile.
//
// Without losses and at speed 1 an attempt is as long as its work, saves, load and cold
// start; with them the lost work comes on top. Event tells every part.
package sim
