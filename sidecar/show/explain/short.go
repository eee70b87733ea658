package explain

import (
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Short gives a reason in a few words, for tables and counts of jobs.
func Short(code cluster.Code) string {
	if words, ok := short[code]; ok {
		return words
	}
	return or(strings.ReplaceAll(string(code), "_", " "), "not decided on yet")
}

// short has a few words for every code.
var short = map[cluster.Code]string{
	cluster.ReasonGranted:  "granted: its turn",
	cluster.ReasonRenewed:  "lease renewed",
	cluster.ReasonHolding:  "in the middle of its lease",
	cluster.ReasonAdopted:  "ran before it was managed",
	cluster.ReasonStarting: "granted; Slurm starts it",
	cluster.ReasonFollows:  "granted behind another job",
	cluster.ReasonNotice:   "has notice",
	cluster.ReasonEnding:   "requeued at the end of its lease",
	cluster.ReasonRecalled: "requeued in mid-term",
	cluster.ReasonExempt:   "exempt by an administrator",
	cluster.ReasonKept:     "never requeued",
	cluster.ReasonTurn:     "has its turn on a shared GPU",
	cluster.ReasonBeside:   "runs beside another job on its GPU",
	cluster.ReasonPaused:   "another job has its turn on the GPU",

	cluster.ReasonBehind:     "others are further behind",
	cluster.ReasonCells:      "no cell of its tenant is free",
	cluster.ReasonBudget:     "stop budget spent: gets no lent GPUs",
	cluster.ReasonLost:       "cells lost to bad hardware",
	cluster.ReasonUnsafe:     "promises to virtual clusters do not add up",
	cluster.ReasonShape:      "free GPUs do not fit together",
	cluster.ReasonTogether:   "waits for nodes together",
	cluster.ReasonClaim:      "next: GPUs are kept for it",
	cluster.ReasonClaimed:    "free GPUs are kept for another job",
	cluster.ReasonBurst:      "its tenant holds its maximum",
	cluster.ReasonLane:       "could not be stopped: its tenant's due is bound",
	cluster.ReasonBound:      "could not be stopped: bound GPUs are at their limit",
	cluster.ReasonGather:     "next: GPUs are gathered for it",
	cluster.ReasonStops:      "limit of stops within an hour",
	cluster.ReasonLimit:      "limit of reclaims per round",
	cluster.ReasonThreshold:  "not far enough behind to reclaim",
	cluster.ReasonInactive:   "held or not eligible yet",
	cluster.ReasonFailed:     "its grant did not start",
	cluster.ReasonRefused:    "Slurm starts no job of its kind",
	cluster.ReasonUnstarted:  "earlier grants have not started",
	cluster.ReasonIdleOnly:   "asked for idle GPUs only",
	cluster.ReasonSpent:      "its tenant's budget is used up",
	cluster.ReasonFrozen:     "frozen by an administrator",
	cluster.ReasonTooBig:     "fits on no healthy nodes",
	cluster.ReasonRule:       "a rule of Slurm's forbids it",
	cluster.ReasonReserved:   "reservations are in its way",
	cluster.ReasonUntouched:  "not managed by fairlease",
	cluster.ReasonCompleting: "its last attempt cleans up",
	cluster.ReasonDone:       "is over",

	cluster.ReasonGate:     "its gate is kept shut",
	cluster.ReasonNoStart:  "did not start in time",
	cluster.ReasonTidy:     "no longer needed",
	cluster.ReasonHandOver: "nodes are handed over",
	cluster.ReasonFence:    "fences a virtual cluster",
}
