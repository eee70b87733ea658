package ltgf

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
)

// endStop records what a stop destroyed of the attempt from start to end, if that stop ended it.
func endStop(r *cluster.Record, gpus []cluster.ModelSize, start, end cluster.Instant, suspended cluster.Span) {
	if r.Stopping == nil {
		return
	}
	s := *r.Stopping
	ran := max(end.Sub(start)-suspended, 0)
	if s.GPUs = gpus; s.Since > 0 {
		s.Work = min(max(end.Sub(max(s.Since, start)), 0), ran)
	}
	s.Most = min(max(end.Sub(max(s.Saved, start)), 0), ran)
	r.Stopping = &s
}

// settleStop books the loss of a stop, once the job is seen to have been requeued. A job that
// ended by itself before lost nothing. l is its lease at the last look.
func (b *books) settleStop(r *cluster.Record, c *cluster.Case, l *cluster.Lease) {
	s := r.Stopping
	if s == nil {
		return
	}
	over := s.GPUs != nil
	switch j := &c.Job; {
	case c.Gone || l.State != cluster.Ending:
		over = false
	case j.State == cluster.Done:
		over = over && j.Restarts > s.Restarts
	case !over || j.State == cluster.Completing:
		return
	}
	if r.Stopping = nil; over {
		b.destroyed(r, s)
	}
}

// destroyed subtracts a stop's loss from what the job and its tenant received, and books it as
// overhead of the pool. A tenant gains nothing by not saving: it gets back at most the loss that
// its jobs' stop budgets allow.
func (b *books) destroyed(r *cluster.Record, s *cluster.PendingStop) {
	for _, g := range s.GPUs {
		lost := g.Size.Over(s.Work)
		r.Lost += lost
		r.MostLost += g.Size.Over(max(s.Most, s.Work))
		switch s.Certainty {
		case cluster.KnownLoss:
			r.KnownLost += lost
		case cluster.UnknownLoss:
			r.UnknownLost += lost
		}
		p := b.pool(g.Model)
		if p < 0 || b.first < 0 {
			continue
		}
		// At most the charged time: an adopted job had run before.
		i := b.first + p
		lost = min(lost, r.Alloc, b.ledger.Tenants[i].Alloc+b.used[i]-b.wasted[i])
		r.Extra.Alloc -= ofPart(r.Extra.Alloc, lost, r.Alloc)
		r.Alloc -= lost
		b.wasted[i] += lost
		b.pools[p].tenants -= lost
		b.pools[p].overhead += lost
	}
}
