package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// Prolong ends the lease of a case as renewed, and replaces it with a term that ends at end.
func (b *Books) Prolong(i int, end cluster.Instant) {
	l, r := b.Leases[i], &b.Records[i]
	b.Ended = append(b.Ended, *l)
	old := &b.Ended[len(b.Ended)-1]
	old.State, old.Ended, old.Why = cluster.Over, l.End, "renewed"
	r.Terms++
	l.Term, l.State, l.Granted, l.Start = r.Terms, cluster.Active, b.In.Now, max(l.End, b.In.Now)
	l.NoticedAt, l.Adopted, l.Why = 0, false, ""
	l.End = end
}

// RevokeGrant ends a lease that has not begun.
func (b *Books) RevokeGrant(i int, why string) {
	l := *b.Leases[i]
	l.State, l.Ended, l.Why = cluster.Over, b.In.Now, why
	b.Ended = append(b.Ended, l)
	b.Leases[i] = nil
}

// Ending reports whether a lease is up for renewal: it ends within the notice, and its job may be reclaimed.
func (b *Books) Ending(i int) bool { return b.Jobs[i].Stoppable && b.Expiring(i) }

// Expiring is Ending before it is known whether the job may be stopped: if so, its lease is up for renewal.
func (b *Books) Expiring(i int) bool {
	l, st := b.Leases[i], &b.Jobs[i]
	if l == nil || !st.Is.Runs {
		return false
	}
	notice := l.NoticeIn(b.In.Settings)
	if l.Notice > 0 && l.Why == Recalled {
		notice = max(notice, b.In.Settings.RecallNotice)
	}
	return l.End.Sub(b.In.Now) <= notice && (l.State == cluster.Active || l.State == cluster.Noticed) &&
		(st.Is.Control == cluster.FullControl || st.Is.Control == cluster.ObserveOnly) && !st.Ordered(cluster.Exempt)
}

// QueueOf returns the queue of a job; -1 = none.
func QueueOf(j *Job) QueueIndex { return j.Queue }

// PartyOf returns the party of a job; -1 = none.
func PartyOf(j *Job) PartyIndex { return j.Party }

// TenantOf returns the tenant of a job; -1 = none.
func TenantOf(j *Job) TenantIndex { return j.Is.Tenant }

// UserOf returns the user of a job; -1 = none.
func UserOf(j *Job) UserIndex { return UserIndex(j.Is.User) }

// Committed returns two tables with the given number of rows: the GPU time that leases in force and claims
// will still use, and the GPUs of leases that do not end now. Stranded GPUs count as leased to the end of the
// term. of returns the queue or party of a job.
func Committed[Row ~int](b *Books, rows int, of func(*Job) Row) (use Table[Row, cluster.GPUTime], holds Table[Row, int]) {
	use, holds = NewTable[Row, cluster.GPUTime](rows, len(b.In.Pools)), NewTable[Row, int](rows, len(b.In.Pools))
	for i, l := range b.Leases {
		if l == nil {
			continue
		}
		t, p := of(&b.Jobs[i]), b.In.Pool(l.Pool)
		if t < 0 || p < 0 {
			continue
		}
		*use.At(t, p) += cluster.Times(l.GPUs, max(l.End.Sub(b.In.Now), 0))
		if !b.Ending(i) {
			*holds.At(t, p) += l.GPUs
		}
	}
	for k := range b.Claims {
		cl := &b.Claims[k]
		if cl.Gathers {
			continue
		}
		i := b.In.Find(cl.Job)
		if p := b.In.Pool(cl.Pool); i >= 0 && p >= 0 && of(&b.Jobs[i]) >= 0 {
			t := of(&b.Jobs[i])
			*use.At(t, p) += cluster.Times(GPUs(cl.Nodes), b.In.Settings.Term)
		}
	}
	left := b.In.Settings.Term - cluster.Span(b.In.Now%cluster.Instant(b.In.Settings.Term))
	for _, x := range b.Stranded {
		if t, p := of(&b.Jobs[x.Case]), b.In.Pool(x.Pool); t >= 0 && p >= 0 {
			*use.At(t, p) += cluster.GPUTime(cluster.MulDiv(int64(x.GPUs), int64(left), int64(cluster.WholeGPU)))
			*holds.At(t, p) += int(x.GPUs / cluster.WholeGPU)
		}
	}
	return use, holds
}

// UsersBehind returns by how much GPU time each user is behind an equal part of what its tenant receives, with every lease
// in force and claim charged to its end; nil = users do not matter. Where jobs queue, tenants have no turns that users
// could share.
func (b *Books) UsersBehind() []cluster.GPUTime {
	if b.In.Settings.Users != cluster.UsersEqual || b.JobsQueue {
		return nil
	}
	use, _ := Committed(b, len(b.Ledger.Users), UserOf)
	out := make([]cluster.GPUTime, len(b.Ledger.Users))
	for u := range out {
		out[u] = b.Ledger.Users[u].Credit()
		for p := range b.In.Pools {
			out[u] -= *use.At(UserIndex(u), p)
		}
	}
	return out
}

// GPUs returns the number of GPUs in holdings.
func GPUs(nodes []cluster.Holding) int {
	n := 0
	for i := range nodes {
		n += nodes[i].GPUs
	}
	return n
}
