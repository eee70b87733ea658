package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// Prolong ends the lease of a case as renewed, and puts a term that ends at end in its place.
func (b *Books) Prolong(i int, end cluster.Instant) {
	l, r := b.Leases[i], &b.Records[i]
	b.Ended = append(b.Ended, *l)
	old := &b.Ended[len(b.Ended)-1]
	old.State, old.Ended, old.Why = cluster.Over, l.End, "renewed"
	r.Terms++
	l.Term, l.State, l.Granted, l.Start = r.Terms, cluster.Active, b.Now, max(l.End, b.Now)
	l.NoticedAt, l.Adopted, l.Why = 0, false, ""
	l.End = end
}
