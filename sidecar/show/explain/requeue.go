package explain

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Requeued says who requeued a job last, if that was not fairlease, and how many of its restarts were not fairlease's; "" = none was.
func (w Words) Requeued(x *cluster.Requeues, restarts int) string {
	if x == nil || x.Count == 0 {
		return ""
	}
	by := "by its owner or an administrator"
	switch {
	case x.Cause == cluster.BySlurm:
		by = "by its owner, an administrator or Slurm itself"
	case x.Cause == cluster.ByNodeFailure && x.Node != "":
		by = "as its node " + x.Node + " failed or was drained"
	case x.Cause == cluster.ByNodeFailure:
		by = "as a node of it failed or was drained"
	}
	at := ""
	if x.At > 0 {
		at = " at " + w.Time(x.At)
	}
	out := by + at + ", not by fairlease"
	if restarts > 1 {
		out += fmt.Sprintf("; of its %d requeues, %d were not by fairlease", restarts, x.Count)
	}
	return out
}
