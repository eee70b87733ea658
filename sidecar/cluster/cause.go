package cluster

import (
	compare "cmp"
	"strconv"
	"strings"
)

// Cause is why Slurm did not start jobs that had a grant, and which jobs that concerns: its class. A failed grant is
// remembered by its cause, since what stops one job of a class stops the others as well.
type Cause struct {
	CauseKey
	// GPUs is the smallest request that failed, if the cause is a limit: smaller jobs may fit below it. Else 0.
	GPUs int `json:"gpus,omitempty"`
	// Failed counts the rounds in a row in which grants of the class failed, At is the last of them, and Last the
	// job of the last failed grant.
	Failed int     `json:"failed"`
	At     Instant `json:"at,omitzero"`
	Last   JobKey  `json:"last"`
	// Admits is the maximum number of grants to the class that have not started, at a time: 1 for a probe, more
	// while it opens. 0 = no limit: only one job has failed, and that may be its own fault.
	Admits int     `json:"admits,omitempty"`
	Until  Instant `json:"until,omitempty"` // no grants before
	Facts  uint64  `json:"facts,omitempty"` // digest of what could stop the class, as seen when its last grant failed
	// Empty is since when no job of the class waits; 0 = one does.
	Empty Instant `json:"empty,omitempty"`
}

// CauseKey identifies a cause. Fields that do not matter to it are zero.
type CauseKey struct {
	Tenant    string  `json:"tenant"`
	Reason    string  `json:"reason"` // Slurm's, one word, or RequeuedAtStart
	User      string  `json:"user,omitempty"`
	Account   string  `json:"account,omitempty"`
	QOS       string  `json:"qos,omitempty"`
	Partition string  `json:"partition,omitempty"` // all that the job names, with commas
	Licenses  string  `json:"licenses,omitempty"`  // names, with commas
	Request   Request `json:"request,omitzero"`
}

// Compare orders causes by tenant, reason and the rest.
func (k *CauseKey) Compare(o *CauseKey) int {
	return compare.Or(strings.Compare(k.Tenant, o.Tenant), strings.Compare(k.Reason, o.Reason), strings.Compare(k.User, o.User),
		strings.Compare(k.Account, o.Account), strings.Compare(k.QOS, o.QOS), strings.Compare(k.Partition, o.Partition),
		strings.Compare(k.Licenses, o.Licenses), k.Request.Compare(&o.Request))
}

// Compare orders requests.
func (q *Request) Compare(o *Request) int {
	return compare.Or(compare.Compare(q.Size.Devices, o.Size.Devices), compare.Compare(q.Nodes, o.Nodes), compare.Compare(q.MaxNodes, o.MaxNodes),
		compare.Compare(q.PerNode, o.PerNode), strings.Compare(q.Model, o.Model), compare.Compare(q.CPUs, o.CPUs),
		compare.Compare(q.MemoryMB, o.MemoryMB), strings.Compare(strconv.FormatBool(q.Exclusive), strconv.FormatBool(o.Exclusive)), strings.Compare(q.Features, o.Features),
		strings.Compare(q.Unplaceable, o.Unplaceable))
}
