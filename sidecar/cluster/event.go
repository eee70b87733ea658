package cluster

// The kinds of events. EventKinds words them.
const (
	EventAside            = "aside"
	EventBreaker          = "breaker"
	EventBudget           = "budget"
	EventCellsBack        = "cells_back"
	EventCellsBroken      = "cells_broken"
	EventCellsDemoted     = "cells_demoted"
	EventCellsLost        = "cells_lost"
	EventCellsReturned    = "cells_returned"
	EventCellsTraded      = "cells_traded"
	EventCellsUnsafe      = "cells_unsafe"
	EventChangedInLease   = "changed_in_lease"
	EventTurnTaken        = "turn_taken"
	EventPair             = "pair"
	EventClock            = "clock"
	EventContiguous       = "contiguous_dropped"
	EventDecisionDiffers  = "decision_differs"
	EventDrift            = "drift"
	EventEventsLeftOut    = "events_left_out"
	EventGateOpened       = "gate_opened"
	EventGatesOpen        = "gates_open"
	EventHoldsIdle        = "holds_idle"
	EventIdleReclaim      = "idle_reclaim"
	EventJournalRestored  = "journal_restored"
	EventMisreport        = "misreport"
	EventOverrideEnded    = "override_ended"
	EventPreemption       = "preemption"
	EventProfile          = "profile"
	EventRepaired         = "repaired"
	EventRequeueSet       = "requeue_set"
	EventSlowGPU          = "slow_gpu"
	EventSlowNode         = "slow_node"
	EventSlurmStateLost   = "slurm_state_lost"
	EventStall            = "stall"
	EventStopBeyondBudget = "stop_beyond_budget"
	EventStraggler        = "straggler"
	EventTune             = "tune"
)

// EventKind is a kind of events, for people.
type EventKind struct {
	Kind, Words string
	// Users tells whether users cause events of the kind: these are limited in number.
	Users bool
}

// EventKinds are all kinds of events, in the order of the alphabet.
var EventKinds = []EventKind{
	{EventAside, "A job is set aside, since its record cannot be read or decided on", true},
	{EventBreaker, "The breaker has tripped: fairlease only observes, or it acts again after an operator resumed", false},
	{EventBudget, "A tenant has used 80 or 100 % of its budget, or a new period begins", false},
	{EventCellsBack, "Cells that a virtual cluster had lost to bad hardware are back", false},
	{EventCellsBroken, "A running job does not fit into the cells, and is counted by its GPUs", true},
	{EventCellsDemoted, "A lease no longer has the right to its cells, and may be recalled", false},
	{EventCellsLost, "A virtual cluster has lost cells to bad hardware", false},
	{EventCellsReturned, "A trade of cells has ended", false},
	{EventCellsTraded, "Two virtual clusters trade cells", false},
	{EventCellsUnsafe, "Promises to virtual clusters do not add up: nothing is granted", false},
	{EventChangedInLease, "A running job was changed; the changes count from its next start", true},
	{EventClock, "Clocks disagreed for a while, and no round was made", false},
	{EventContiguous, "A job loses --contiguous with its grant", true},
	{EventDecisionDiffers, "A decision differed from the same one made anew: a fault of fairlease", false},
	{EventDrift, "A job has been slower, or faster, than usual for a while", true},
	{EventEventsLeftOut, "A user caused more events than are written down", false},
	{EventGateOpened, "A gate was opened by another than fairlease", true},
	{EventGatesOpen, "Jobs can start without a grant", false},
	{EventHoldsIdle, "A job holds GPUs that it does not use", true},
	{EventIdleReclaim, "A lease is not renewed, since its GPUs were idle", true},
	{EventJournalRestored, "The journal lost rounds that the daemon had seen: a dump was restored, or PostgreSQL failed over", false},
	{EventMisreport, "A job's report of its speed contradicts the measurements", true},
	{EventOverrideEnded, "An override ended before its time", false},
	{EventPair, "Two jobs on a GPU run at the same time, or in turns again", false},
	{EventPreemption, "A partition is only observed since Slurm may stop its jobs, or no longer", false},
	{EventProfile, "A job's report or hint was ignored, or its speed has changed", true},
	{EventRepaired, "An administrator repaired the journal", false},
	{EventRequeueSet, "A job was made requeueable before its requeue", true},
	{EventSlowGPU, "Jobs run slower with a GPU of a node than on other nodes, or no longer", false},
	{EventSlowNode, "Jobs run slower on a node than on others, or no longer", false},
	{EventSlurmStateLost, "Slurm started without its jobs", false},
	{EventStall, "A job makes no progress", true},
	{EventStopBeyondBudget, "A stop cost a job more than its stop budget", true},
	{EventStraggler, "A GPU of a job lags behind its others", true},
	{EventTune, "The lease term was decided on, or changed", false},
	{EventTurnTaken, "A job's owner resumes it in the turns of another job on its GPU", true},
}

// Named is a state, for people.
type Named struct{ Name, Words string }

// JobStates and LeaseStates are all states, in the order of a life.
var (
	JobStates = []Named{
		{string(Waiting), "waits for GPUs"},
		{string(Configuring), "has nodes that boot or are prepared"},
		{string(Running), "runs"},
		{string(Suspended), "is suspended in Slurm"},
		{string(Completing), "ends, or cleans up after a requeue"},
		{string(Done), "is over"},
	}
	LeaseStates = []Named{
		{string(Granted), "given, and the job does not run yet"},
		{string(Active), "the job runs"},
		{string(Noticed), "the job has its notice: the lease will not be renewed"},
		{string(Ending), "the job is requeued, and its GPUs are not free yet"},
		{string(Over), "has ended"},
	}
)
