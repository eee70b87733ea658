package ltgf

import "github.com/fairlease/fairlease/sidecar/cluster"

// chains are the leases at the last look with others behind them, by their jobs; nil = none.
type chains map[cluster.JobKey]*chain

// chain is what was held for a lease and those behind it since the last look. They had the GPUs of the first in turn: these
// count once, whichever of them ran.
type chain struct {
	row, pool int             // of the ledger; row -1 = the first is still on its GPUs, or had none
	user      int             // its account
	held      cluster.GPUTime // at most
	ran       cluster.GPUTime
}

// openChains returns the chains at the last look.
func openChains(leases []cluster.Lease) chains {
	var out chains
	for i := range leases {
		if leases[i].Behind == 0 {
			continue
		}
		if out == nil {
			out = chains{}
		}
		if out[leases[i].Behind] == nil {
			out[leases[i].Behind] = &chain{row: -1}
		}
	}
	return out
}

// of returns the chain of a lease, or nil.
func (c chains) of(l *cluster.Lease) *chain {
	if c == nil || l == &noLease {
		return nil
	}
	if l.Behind != 0 {
		return c[l.Behind]
	}
	return c[l.Job]
}

// reserveChains adds what chains held beyond the GPU time that was charged to their jobs.
func reserveChains(b *books, all chains) {
	for _, c := range all {
		if c.row >= 0 {
			kept := max(c.held-c.ran, 0)
			b.granted[c.row+c.pool] += kept
			b.keptBy(c.user, c.pool, kept)
		}
	}
}

// granted gives the GPUs that a job had under a lease: behind another one, those that it asked for.
func granted(s *cluster.Settings, l *cluster.Lease, j *cluster.Job) []cluster.ModelSize {
	if l.Behind != 0 {
		return counted(s, []cluster.ModelSize{{Model: l.Pool, Size: j.Request.Size}})
	}
	return held(s, l.Nodes, nil)
}
