// Package sim runs the loop in simulated time on a virtual cluster.
//
// Virtual replaces Slurm, and Run replaces the daemon. Between them is the daemon's own loop,
// with the engine or any other Decide in it. Time is a list of events: the time between them
// costs nothing, and a round is made only after a change or when the plan said that time alone
// changes a decision.
//
// # The time of a job
//
// A job has work: its run time alone on GPUs of the reference model, undisturbed. An attempt is
// one run from a start to a requeue or the end. In an attempt it works, except while it pays
// (Costs):
//
//		          attempt 1                 waits                   attempt 2
//		|---------------------|=====|xxxxx|......|.....|~~~~~~~~~~|+++++|----------------|
//		start                 save  saved requeue      start      load  works            ends
//
//		- work   = save   x work that is lost   . COMPLETING, then gated   ~ cold start   + load
//
//	  - The first start of a job is free: its recorded run time includes the start-up. An
//	    attempt that continues from a checkpoint begins with ColdStart and Load.
//	  - A save takes Save and pauses the work. Saves says when jobs save. An interrupted save
//	    is worthless. With Virtual.ReportSaves, jobs that save on their own report each save.
//	  - Work done after the start of the last save is lost at any requeue; the next attempt
//	    repeats it. A job that never saves restarts from the beginning.
//	  - A requeued job holds its GPUs for Completing, and RequeueDelay delays it unless it is
//	    gated.
//	  - The reference is the job's own gang on the fewest nodes of one model. Elsewhere Speeds
//	    gives the speed; a gang that spans models has the pace of the slowest.
//	  - A job may share the GPUs of another (Share). Beside gives the speeds of both.
//
// Without losses and at speed 1 an attempt is as long as its work, saves, load and cold start;
// lost work comes on top. Event reports every part.
package sim
