package budget

import "github.com/fairlease/fairlease/sidecar/cluster"

// Stops is what an account changes of a job's record; see cluster.Record.
type Stops struct {
	Conduct  *cluster.Conduct
	Saved    cluster.Instant
	Spent    cluster.Span
	Stops    int
	Beyond   int
	Stopping *cluster.PendingStop
}

// Of returns that of a case now.
func (a *Account) Of(i int) Stops {
	if own := a.notes.cases[i].own; own != nil {
		return *own
	}
	r := &a.in.Records[i]
	return Stops{r.Conduct, r.Saved, r.Spent, r.Stops, r.Beyond, r.Stopping}
}

// change returns that of a case to change it.
func change(a *Account, i int) *Stops {
	n := &a.notes.cases[i]
	if n.own == nil {
		own := a.Of(i)
		n.own = &own
		a.notes.changed = append(a.notes.changed, i)
	}
	return n.own
}

// Put writes what has changed in this round into records, which are by case.
func (a *Account) Put(records []cluster.Record) {
	for _, i := range a.notes.changed {
		own, r := a.notes.cases[i].own, &records[i]
		r.Conduct, r.Saved, r.Spent, r.Stops, r.Beyond, r.Stopping = own.Conduct, own.Saved, own.Spent, own.Stops, own.Beyond, own.Stopping
	}
}

// PutPools writes what all stops of each pool may cost now into its account.
func (a *Account) PutPools(pools []cluster.PoolAccount) {
	for p := range pools {
		pools[p].Stops = a.funds.pools[p]
	}
}
