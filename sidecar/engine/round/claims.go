package round

import (
	"cmp"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ClaimOf returns the claim of a job, or nil. The claims must be sorted by job, as they are after the choice.
func (b *Books) ClaimOf(key cluster.JobKey) *cluster.Claim {
	k, ok := sort.Find(len(b.Claims), func(k int) int { return cmp.Compare(key, b.Claims[k].Job) })
	if !ok {
		return nil
	}
	return &b.Claims[k]
}

// Beneficiaries finds the jobs that claim GPUs.
type Beneficiaries struct {
	books *Books
	first map[gpusOn]int // claim; nil = not asked for yet
}

// gpusOn is the GPUs of a model on a node.
type gpusOn struct{ node, model string }

// Beneficiaries returns an index of the claims. It is called after the choice.
func (b *Books) Beneficiaries() *Beneficiaries { return &Beneficiaries{books: b} }

// claimed returns the claims by the GPUs that they are of.
func (h *Beneficiaries) claimed() map[gpusOn]int {
	if h.first == nil {
		b := h.books
		h.first = make(map[gpusOn]int, len(b.Claims))
		for k := len(b.Claims) - 1; k >= 0; k-- {
			for _, n := range b.Claims[k].Nodes {
				h.first[gpusOn{n.Node, n.Model}] = k
			}
		}
	}
	return h.first
}

// Of returns the first job that claims nodes of a case's lease, or 0.
func (h *Beneficiaries) Of(i int) cluster.JobKey {
	l, claims := h.books.Leases[i], h.books.Claims
	if l.Parts != nil { // cells record it
		return h.books.Jobs[i].Got.Beneficiary
	}
	if len(claims) == 0 {
		return 0
	}
	first := len(claims)
	for _, n := range l.Nodes {
		if k, ok := h.claimed()[gpusOn{n.Node, n.Model}]; ok {
			first = min(first, k)
		}
	}
	if first == len(claims) {
		return 0
	}
	return claims[first].Job
}

// Move is the destination of a job whose lease is not renewed: GPUs of another model, which are claimed for
// it.
type Move struct {
	To    string // GPU model
	Trial bool   // it measures its type's speed there
	Speed int64  // relative to its present speed, in thousandths; 0 = unknown
}

// Recalled is the reason of a lease that ends before its term. It is set as soon as the lease is recalled.
const Recalled = "recalled"
