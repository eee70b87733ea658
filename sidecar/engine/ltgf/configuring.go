package ltgf

import "github.com/fairlease/fairlease/sidecar/cluster"

// chargeConfiguring books the GPUs of a job over the time since the last look in which its nodes booted or were prepared: as overhead of the
// pool. The job has not begun, so neither it nor its tenant has received anything. But nobody else can use the GPUs, so its tenant holds
// them: by its lease if it has one, as for any grant that has not started.
func chargeConfiguring(b *books, r *cluster.Record, c *cluster.Case, l *cluster.Lease) {
	j := &c.Job
	now := !c.Gone && j.State == cluster.Configuring
	if r.State != cluster.Configuring && !now {
		r.Configured = r.ConfiguredIn(j.Restarts, j.State)
		return
	}
	from, to := b.run.charged, b.now
	if r.State != cluster.Configuring || j.Restarts > r.Restarts {
		from = max(from, j.Start)
	}
	gpus := j.Holds
	if len(gpus) == 0 {
		gpus = l.Nodes
	}
	switch {
	case now:
	case c.Gone || j.Restarts > r.Restarts && j.State == cluster.Completing: // unknown, and charged as cleaning up
		to = from
	case j.State == cluster.Waiting:
		to = j.Submit
	default:
		to = j.Start
	}
	if r.Configured = r.ConfiguredIn(j.Restarts, j.State); now {
		r.Configured = b.now
	}
	span := min(to, b.now).Sub(from)
	if span <= 0 {
		return
	}
	for _, g := range gpus {
		p, time := b.pool(g.Model), g.Size.Over(span)
		if p < 0 {
			continue
		}
		b.pools[p].overhead += time
		if l == &noLease && b.first >= 0 {
			b.granted[b.first+p] += time
			b.keptBy(b.users.now, p, time)
		}
	}
	b.chargeBad(c, span)
}
