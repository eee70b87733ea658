package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// Beneficiaries finds the jobs that claim GPUs.
type Beneficiaries struct {
	leases []*cluster.Lease
	claims []cluster.Claim
	marks  []Mark
	first  map[gpusOn]int // claim; nil = not asked for yet
}

// gpusOn is the GPUs of a model on a node.
type gpusOn struct{ node, model string }

// BeneficiariesOf returns an index of the claims after the choice. leases and marks are by case.
func BeneficiariesOf(leases []*cluster.Lease, claims []cluster.Claim, marks []Mark) *Beneficiaries {
	return &Beneficiaries{leases: leases, claims: claims, marks: marks}
}

// claimed returns the claims by the GPUs that they are of.
func (h *Beneficiaries) claimed() map[gpusOn]int {
	if h.first == nil {
		h.first = make(map[gpusOn]int, len(h.claims))
		for k := len(h.claims) - 1; k >= 0; k-- {
			for _, n := range h.claims[k].Nodes {
				h.first[gpusOn{n.Node, n.Model}] = k
			}
		}
	}
	return h.first
}

// Of returns the first job that claims nodes of a case's lease, or 0.
func (h *Beneficiaries) Of(i int) cluster.JobKey {
	l := h.leases[i]
	if l.Parts != nil { // cells record it
		return h.marks[i].Beneficiary
	}
	if len(h.claims) == 0 {
		return 0
	}
	first := len(h.claims)
	for _, n := range l.Nodes {
		if k, ok := h.claimed()[gpusOn{n.Node, n.Model}]; ok {
			first = min(first, k)
		}
	}
	if first == len(h.claims) {
		return 0
	}
	return h.claims[first].Job
}

// Move is the destination of a job whose lease is not renewed: GPUs of another model, or a GPU that it shares with none, which are claimed
// for it.
type Move struct {
	To    string // GPU model
	Trial bool   // it measures its type's speed there
	Speed int64  // relative to its present speed, in thousandths; 0 = unknown
}

// Recalled is the reason of a lease that ends before its term. It is set as soon as the lease is recalled.
const Recalled = "recalled"
