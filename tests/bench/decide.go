package main

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// decisions measures what the engine takes, and what shows its decisions.
func decisions() error {
	if err := boundaries(); err != nil {
		return err
	}
	inCells()
	if err := byPolicy(); err != nil {
		return err
	}
	if err := quiet(); err != nil {
		return err
	}
	return scenes()
}

// boundaries measures Decide at a boundary where every lease ends, as the daemon decides: by
// one decider, whose memory is used again.
func boundaries() error {
	fmt.Printf("Decide at a boundary, one core (%s)\n", machine())
	for _, x := range []struct {
		name                 string
		jobs, nodes, tenants int
		peak                 bool
	}{
		{"decide_1k", 1000, 200, 100, false}, {"decide_10k", 10_000, 2000, 100, false}, {"decide_50k", 50_000, 10_000, 100, true},
		{"decide_2000_tenants", 50_000, 10_000, 2000, false}, {"decide_500k", 500_000, 100_000, 100, true}, {"decide_1m", 1_000_000, 100_000, 100, false},
	} {
		debug.FreeOSMemory()
		if err := resetPeak(); err != nil {
			return err
		}
		var d engine.Decider
		s := simtest.CrowdOn(x.nodes, x.jobs, x.tenants)
		simtest.Opened(&d, &s)
		fmt.Printf("%d jobs, %d nodes of 8 GPUs, %d tenants:\n", x.jobs, x.nodes, x.tenants)
		timed(x.name+"_ms", mean(func() { d.Decide(s) }))
		if x.peak {
			figure(x.name+"_mib", peakMiB(), "MiB") // the whole process, snapshot and benchmark included
		}
	}
	return nil
}

// inCells measures Decide at such a boundary with a virtual cluster for every tenant, and about as
// many of the leases in cells of their own as are lent.
func inCells() {
	var d engine.Decider
	s := simtest.CrowdInCells(50_000)
	ends := s.Leases[0].End
	first := simtest.Opened(&d, &s).State // puts the leases into cells
	s.Lost, s.Leases = first.Lost, nil
	lent := 0
	for _, l := range first.Leases {
		if l.State == cluster.Granted {
			continue
		}
		if l.Class == cluster.Opportunistic {
			lent++
		}
		l.State, l.End, l.NoticedAt, l.Why = cluster.Active, ends, 0, ""
		s.Leases = append(s.Leases, l)
	}
	fmt.Printf("50000 jobs, 100 VCs on %d GPUs, %d leases, %d of them lent:\n", 8*len(s.Nodes), len(s.Leases), lent)
	timed("decide_cells_50k_ms", mean(func() { d.Decide(s) }))
}

// byPolicy measures Decide where a policy divides GPU models between jobs that report, and the whole answer to its question.
func byPolicy() error {
	var d engine.Decider
	s := simtest.Crowd(50_000, 100)
	s.Settings.Divide, s.Settings.DivideJobs = "gavel:las", preset.OfJobs("gavel:las")
	simtest.Report(&s)
	p := simtest.Opened(&d, &s)
	if p.AllocationRequest == nil {
		return errors.New("the policy was not asked")
	}
	s.Parties = p.State.Parties
	a := engine.Divide(*p.AllocationRequest)
	if a.Why != "" {
		return errors.New(a.Why)
	}
	s.Allocation = &a
	fmt.Println("50000 jobs of 2000 types that report, gavel:las: a decision, and a division:")
	timed("decide_50k_las_reports_ms", mean(func() { d.Decide(s) }))
	timed("divide_50k_ms", mean(func() { engine.Divide(*p.AllocationRequest) }))
	return nil
}

// changes is how many jobs change in a quiet round.
const changes = 100

// quiet measures rounds in mid term in which few jobs changed, as the loop makes them: in a simulation, on a Slurm, whose jobs have no
// versions, and on a site whose jobs and nodes are less alike. It prints the decision, and the whole turn with the virtual cluster.
func quiet() error {
	for _, x := range []struct {
		name string
		site simtest.Site
	}{{"50k_quiet", simtest.Site{}}, {"50k_quiet_slurm", simtest.Site{Unversioned: true}}, {"50k_quiet_varied", simtest.Site{Gangs: 100, Varied: true}}} {
		x.site.Nodes, x.site.Jobs, x.site.Tenants = 10_000, 50_000, 100
		site, err := x.site.Open()
		if err != nil {
			return err
		}
		decided := timing{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}
		decide := site.Loop.Decide
		site.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
			begin := meter()
			p := decide(s)
			decided = decided.least(meter().over(begin, 1))
			return p
		}
		actions := 0
		turned, err := least(20, func() error {
			r, err := site.Turn(changes)
			actions += len(r.Plan.Actions)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Printf("50000 jobs, a round in mid term in which %d changed, %d actions in 20 rounds; the least of them:\n", changes, actions)
		timed("decide_"+x.name+"_ms", decided)
		timed("turn_"+x.name+"_ms", turned)
	}
	return nil
}
