package round

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// aside reports an event if a case is set aside from this round on, or no longer.
func (b *Books) aside(i int) {
	r, c := &b.Records[i], &b.In.Snapshot.Cases[i]
	if c.Gone || c.Job.Aside == r.Aside {
		return
	}
	text := "it is no longer set aside"
	if c.Job.Aside != "" {
		text = fmt.Sprintf("it is set aside, charged to its tenant and left alone: %s", c.Job.Aside)
	}
	r.Aside = c.Job.Aside
	b.Report(cluster.Event{Kind: cluster.EventAside, Job: r.Key, Text: text})
}
