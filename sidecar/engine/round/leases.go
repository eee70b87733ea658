package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// QueueOf returns the queue of a job; -1 = none.
func QueueOf(q *Queued) QueueIndex { return q.Queue }

// PartyOf returns the party of a job; -1 = none.
func PartyOf(q *Queued) PartyIndex { return q.Party }

// TenantOf returns the tenant of a job; -1 = none.
func TenantOf(q *Queued) TenantIndex { return q.Tenant }

// UserOf returns the user of a job; -1 = none.
func UserOf(q *Queued) UserIndex { return q.User }

// Taken are the GPUs that are given away at a moment of a round.
type Taken struct {
	Leases []*cluster.Lease // in force, by case; nil = none
	Claims []cluster.Claim
	Ending func(i int) bool // a case's lease is up for renewal
	Cases  []int            // those that count; nil = all
}

// Committed returns two tables with the given number of rows: the GPU time that leases in force and claims
// will still use, and the GPUs of leases that do not end now. Stranded GPUs count as leased to the end of the
// term. of returns the queue or party of a job; -1 = it does not count.
func Committed[Row ~int](f *Facts, queued []Queued, x Taken, rows int, of func(*Queued) Row) (use Table[Row, cluster.GPUTime], holds Table[Row, cluster.MicroGPU]) {
	use, holds = NewTable[Row, cluster.GPUTime](rows, len(f.Pools)), NewTable[Row, cluster.MicroGPU](rows, len(f.Pools))
	count := func(i int, l *cluster.Lease) {
		if l == nil {
			return
		}
		t, p := of(&queued[i]), f.Pool(l.Pool)
		if t < 0 || p < 0 {
			return
		}
		*use.At(t, p) += l.Size.Over(max(l.End.Sub(f.Now), 0))
		if !x.Ending(i) {
			*holds.At(t, p) += l.Size.Amount()
		}
	}
	if x.Cases == nil {
		for i, l := range x.Leases {
			count(i, l)
		}
	}
	for _, i := range x.Cases {
		count(i, x.Leases[i])
	}
	for k := range x.Claims {
		cl := &x.Claims[k]
		if cl.Gathers {
			continue
		}
		i := f.Find(cl.Job)
		if p := f.Pool(cl.Pool); i >= 0 && p >= 0 && of(&queued[i]) >= 0 {
			t := of(&queued[i])
			*use.At(t, p) += f.Settings.Counted(cl.Nodes).Over(f.Settings.Term)
		}
	}
	left := f.Settings.Term - cluster.Span(f.Now%cluster.Instant(f.Settings.Term))
	for _, s := range f.Stranded {
		if t, p := of(&queued[s.Case]), f.Pool(s.Pool); t >= 0 && p >= 0 {
			*use.At(t, p) += s.GPUs.Over(left)
			gpus := s.GPUs
			if !s.Rest {
				gpus = gpus / f.Worths().Of(p) * f.Worths().Of(p)
			}
			*holds.At(t, p) += gpus
		}
	}
	return use, holds
}
