package round

import (
	"cmp"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ClaimOf gives the claim of a job, or nil. The claims are sorted by job, as they are once all is chosen.
func (b *Books) ClaimOf(key cluster.JobKey) *cluster.Claim {
	k, ok := sort.Find(len(b.Claims), func(k int) int { return cmp.Compare(key, b.Claims[k].Job) })
	if !ok {
		return nil
	}
	return &b.Claims[k]
}

// Beneficiaries tells for whom GPUs are claimed.
type Beneficiaries struct {
	books *Books
	first map[gpusOn]int // claim
}

// gpusOn is GPUs of a model on a node.
type gpusOn struct{ node, model string }

// Beneficiaries gives for whom GPUs are claimed, once all is chosen.
func (b *Books) Beneficiaries() Beneficiaries {
	h := Beneficiaries{books: b, first: make(map[gpusOn]int, len(b.Claims))}
	for k := len(b.Claims) - 1; k >= 0; k-- {
		for _, n := range b.Claims[k].Nodes {
			h.first[gpusOn{n.Node, n.Model}] = k
		}
	}
	return h
}

// Of gives the job for which the nodes of a case's lease are claimed, or 0.
func (h *Beneficiaries) Of(i int) cluster.JobKey {
	l, claims := h.books.Leases[i], h.books.Claims
	if l.Parts != nil { // in cells it is known
		return h.books.Jobs[i].Beneficiary
	}
	first := len(claims)
	for _, n := range l.Nodes {
		if k, ok := h.first[gpusOn{n.Node, n.Model}]; ok {
			first = min(first, k)
		}
	}
	if first == len(claims) {
		return 0
	}
	return claims[first].Job
}

// Move is where a job goes whose lease is not renewed: to GPUs of another model, which are claimed for it.
type Move struct {
	To    string // GPU model
	Trial bool   // it is to show how fast its kind is there
	Speed int64  // thousandths of what it is where it runs; 0 = not known
}

// Recalled is why a lease ends before its term is over; it is noted as soon as the lease is recalled.
const Recalled = "recalled"
