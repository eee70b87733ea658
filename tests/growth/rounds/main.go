// Command rounds makes rounds of sites, and writes for each how often every statement ran. It is built with -cover -covermode=atomic. Its input
// is a list of rounds as JSON.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/coverage"

	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// round is a round of a site. By default, every lease ends in it.
type round struct {
	simtest.Site
	Changes int    // above 0 = a round in mid term, in which so many jobs changed
	Policy  string // divides GPU models between jobs that report; the division counts, too. "" = none does
	Dir     string // for the counters
}

func main() {
	var rounds []round
	err := json.NewDecoder(os.Stdin).Decode(&rounds)
	for i := 0; i < len(rounds) && err == nil; i++ {
		err = rounds[i].count()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// count makes the round, and writes what ran in it.
func (r *round) count() error {
	prepare := r.boundary
	if r.Changes > 0 {
		prepare = r.midTerm
	}
	run, err := prepare()
	if err != nil {
		return err
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	return errors.Join(run(), os.MkdirAll(r.Dir, 0o755), coverage.WriteMetaDir(r.Dir), coverage.WriteCountersDir(r.Dir))
}

// midTerm prepares a turn of the loop after two like it.
func (r *round) midTerm() (run func() error, err error) {
	site, err := r.Open()
	turn := func() error {
		_, err := site.Turn(r.Changes)
		return err
	}
	for range 2 {
		if err == nil {
			err = turn()
		}
	}
	return turn, err
}

// boundary prepares a decision.
func (r *round) boundary() (run func() error, err error) {
	s := simtest.CrowdOn(r.Nodes, r.Jobs, r.Tenants)
	s.Overrides = r.Orders()
	if r.Policy != "" {
		s.Settings.Divide, s.Settings.DivideJobs = r.Policy, preset.OfJobs(r.Policy)
		simtest.Report(&s)
	}
	var d engine.Decider
	p := simtest.Opened(&d, &s)
	q := p.AllocationRequest
	if q != nil {
		a := engine.Divide(*q)
		s.Allocation, s.Parties = &a, p.State.Parties
	}
	return func() error {
		d.Decide(s)
		if q != nil {
			engine.Divide(*q)
		}
		return nil
	}, nil
}
