package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// Scheduler decides rounds.
type Scheduler struct {
	Name string
	// Decide makes the plan of a round. It may remember, so that one serves one run.
	Decide func(cluster.Snapshot) cluster.Plan
	// Leases tells whether it hands out leases of Settings.Term; else jobs run to their
	// end, or until they are preempted.
	Leases bool
}

// Schedulers lists the schedulers, in the order in which tables show them.
func Schedulers() []string { return []string{"astraea"} }

// newScheduler gives a scheduler by name, for one run.
func newScheduler(name string) (Scheduler, error) {
	if !slices.Contains(Schedulers(), name) {
		return Scheduler{}, fmt.Errorf("there is no scheduler %q: there are %s", name, strings.Join(Schedulers(), ", "))
	}
	return Scheduler{Name: name, Decide: engine.Decide, Leases: true}, nil
}
