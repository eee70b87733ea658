package round

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// aside adds an event if a case is set aside from this round on, or no longer.
func (f *Facts) aside(i int, events []cluster.Event) []cluster.Event {
	r, c := &f.Records[i], &f.Snapshot.Cases[i]
	if c.Gone || c.Job.Aside == r.Aside {
		return events
	}
	text := "it is no longer set aside"
	if c.Job.Aside != "" {
		text = fmt.Sprintf("it is set aside, charged to its tenant and left alone: %s", c.Job.Aside)
	}
	r.Aside = c.Job.Aside
	return append(events, cluster.Event{Kind: cluster.EventAside, Job: r.Key, Text: text})
}
