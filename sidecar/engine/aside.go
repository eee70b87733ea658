package engine

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// setAside tells which jobs are set aside from this round on, and which are no longer.
func (h *hall) setAside() {
	for i := range h.Snapshot.Cases {
		r, c := &h.Records[i], &h.Snapshot.Cases[i]
		if c.Gone || c.Job.Aside == r.Aside {
			continue
		}
		text := "it is no longer set aside"
		if c.Job.Aside != "" {
			text = fmt.Sprintf("it is set aside, charged to its tenant and left alone: %s", c.Job.Aside)
		}
		r.Aside = c.Job.Aside
		h.Events = append(h.Events, cluster.Event{Kind: "aside", Job: r.Key, Text: text})
	}
}
