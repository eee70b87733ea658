package cluster

import "fmt"

// VCScheduler is a program of the site that orders the jobs of a virtual cluster.
type VCScheduler struct {
	Command  []string `json:"command"`  // the path of an executable file, and its arguments
	Deadline Span     `json:"deadline"` // of each answer
}

// VCOrder is the last answer of a virtual cluster's own scheduler.
type VCOrder struct {
	VC string  `json:"vc"`
	At Instant `json:"at,omitzero"` // of the view that it answers
	// Since is when it began to answer, or to fail for the same reason.
	Since Instant  `json:"since,omitzero"`
	Turns []VCTurn `json:"turns,omitempty"` // the first goes first; no job has two
	// Why says why there is no answer; "" = there is one.
	Why string `json:"why,omitempty"`
}

// VCTurn is the turn of a job in its virtual cluster.
type VCTurn struct {
	Job JobKey `json:"job"`
	// Model and Nodes are the GPU model and the nodes on which the scheduler places the job; empty = any.
	Model string   `json:"model,omitempty"`
	Nodes []string `json:"nodes,omitempty"`
}

// DroppedPlacements counts the placements of a VC's own scheduler that were not carried out, for one reason.
type DroppedPlacements struct {
	VC   string `json:"vc"`
	Why  string `json:"why"`
	Jobs int    `json:"jobs"`
}

// Reasons of DroppedPlacements.
const (
	DroppedRuns  = "the job holds other GPUs"
	DroppedModel = "the job may not use the model"
	DroppedCells = "the virtual cluster has no free cells there that fit the job"
)

// OrderTerms is for how many terms an answer of a virtual cluster's own scheduler counts.
const OrderTerms = 2

// OrderOf returns the answer that orders the jobs of a virtual cluster, or nil and the reason why the built-in order does. The reason is "" if
// the virtual cluster has no scheduler of its own.
func (s *Snapshot) OrderOf(vc *VC) (*VCOrder, string) {
	if vc.Scheduler == nil {
		return nil, ""
	}
	for i := range s.VCOrders {
		o := &s.VCOrders[i]
		switch {
		case o.VC != vc.Name:
		case o.Why != "":
			return nil, o.Why
		case s.Now.Sub(o.At) >= OrderTerms*s.Settings.Term:
			return nil, fmt.Sprintf("its last answer is %d terms old, or older", OrderTerms)
		default:
			return o, ""
		}
	}
	return nil, "it has not answered yet"
}
