package experiment

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// private is a tenant's run on a fleet of its own.
type private struct {
	setup  Setup
	tenant string
	gpus   int
	share  float64 // in GPUs
}

// privates makes the setups of a setup's audit, one for each tenant with jobs and a weight, or
// with cells if there are some.
func (s *Setup) privates() []private {
	if d, err := s.cells(); d != nil && err == nil { // Check reports errors
		return s.privateVCs(d)
	}
	sum := 0.0
	for _, weight := range s.Weights {
		sum += float64(weight) // whole numbers: exact in any order
	}
	var out []private
	for _, t := range Survey(s.Load).Tenants {
		weight := float64(s.Weights[t.Tenant])
		if weight == 0 {
			continue
		}
		p := private{setup: *s, tenant: t.Tenant}
		p.setup.Load, p.setup.Weights, p.setup.Audit = s.Load.of(t.Tenant), map[string]int64{t.Tenant: 1}, false
		_, all := s.Fleet.Count()
		p.share = float64(all) * weight / sum
		p.setup.Fleet = s.own(weight/sum, p.setup.Load)
		_, p.gpus = p.setup.Fleet.Count()
		out = append(out, p)
	}
	return out
}

// own gives the fleet of a share of every model, enlarged until every job fits that fits the
// shared one.
func (s *Setup) own(share float64, load Load) Fleet {
	gangs := s.gangs(load)
	models := s.Fleet.Models()
	count := make([]int, len(models))
	for i, m := range models {
		count[i] = int(math.Round(share * float64(m.Count)))
	}
	for {
		f := s.Fleet.part(models, count)
		i := slices.IndexFunc(gangs, func(j trace.Job) bool { _, why := f.gang(&j, s.Mixed); return why != "" })
		if i < 0 && len(f.Racks) > 0 {
			return f
		}
		// One GPU more of the requested model; if any suffices, of the largest that is
		// incomplete.
		most := -1
		for k, m := range models {
			wanted := i < 0 || gangs[i].Model == "" || !s.Fleet.named() || strings.EqualFold(gangs[i].Model, m.Model)
			if wanted && count[k] < m.Count && (most < 0 || m.Count > models[most].Count) {
				most = k
			}
		}
		if most < 0 {
			return s.Fleet
		}
		count[most]++
	}
}

// gangs gives one job of every kind of request in a load that fits the shared fleet, largest
// first.
func (s *Setup) gangs(load Load) []trace.Job {
	kinds := map[trace.Job]bool{}
	var out []trace.Job
	for j := range load.Jobs {
		kind := trace.Job{GPUs: j.GPUs, CPUs: j.CPUs, MemoryMB: j.MemoryMB, Model: j.Model}
		if kinds[kind] {
			continue
		}
		kinds[kind] = true
		if _, why := s.Fleet.gang(&kind, s.Mixed); why == "" {
			out = append(out, kind)
		}
	}
	slices.SortStableFunc(out, func(a, b trace.Job) int { return cmp.Compare(b.GPUs, a.GPUs) })
	return out
}

// part gives a fleet of so many GPUs of each model, on nodes like the fleet's: whole ones first,
// in the order of its racks, then one with the rest.
func (f Fleet) part(models []cluster.GPUs, count []int) Fleet {
	out := Fleet{CPUs: f.CPUs, MemoryMB: f.MemoryMB, PerSwitch: f.PerSwitch}
	for i, m := range models {
		left := count[i]
		for _, r := range f.Racks {
			if r.Model != m.Model {
				continue
			}
			if n := min(left/r.GPUs, r.Nodes); n > 0 {
				out.Racks = append(out.Racks, Rack{Nodes: n, GPUs: r.GPUs, Model: r.Model})
				left -= n * r.GPUs
			}
			if left > 0 && left < r.GPUs {
				out.Racks = append(out.Racks, Rack{Nodes: 1, GPUs: left, Model: r.Model})
				left = 0
			}
		}
	}
	return out
}

// audit compares a run with its tenants' private ones, in the order of privates.
func audit(s *Setup, shared Result, alone []private, results []Result) []score.Audited {
	run := func(r Result) score.Run { return score.Run{Setting: r.Setting, To: r.To, Jobs: r.jobs} }
	var private []score.Run
	for i := range results {
		private = append(private, run(results[i]))
	}
	// A job may get its turn from another job of its own tenant, which has had its notice, in both runs or in one only.
	slack := max(s.Settings.Notice+2*s.Settings.Interval, cluster.Minute)
	out := score.Audit(run(shared), private, slack)
	for i := range out {
		for k := range alone {
			if account(alone[k].tenant) == out[i].Tenant {
				out[i].GPUs, out[i].Share = alone[k].gpus, alone[k].share
			}
		}
	}
	return out
}
