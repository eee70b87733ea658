package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/research/hived"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/cellworld"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// onHiveD repeats HiveD's experiments on cells (§5) with a workload like its own, and, where there is
// a folder of traces, its sharing audit with these.
func onHiveD(seed uint64, traces string) error {
	jobs := trace.LikeHiveD(seed).Jobs()
	for _, f := range []func([]trace.Job) error{fullSize, highLoad, small} {
		if err := f(jobs); err != nil {
			return err
		}
	}
	if err := claimed(seed); err != nil {
		return err
	}
	if traces == "" {
		return nil
	}
	return realTraces(traces)
}

// claimed prints the least and the most of the paper's claims over several seeds, in order of the paper's figures.
func claimed(seed uint64) error {
	fmt.Printf("\n| figure | claim | paper | here, seeds %d to %d |\n|---|---|---|---|\n", seed, seed+drawnSeeds-1)
	var first []hived.Claim
	var values [][]float64 // by claim
	for k := range uint64(drawnSeeds) {
		claims, err := hived.Claims(trace.LikeHiveD(seed + k).Jobs())
		if err != nil {
			return err
		}
		if k == 0 {
			first, values = claims, make([][]float64, len(claims))
		}
		for i := range claims {
			values[i] = append(values[i], claims[i].Here)
		}
	}
	for i, c := range first {
		fmt.Printf("| %s | %s | %s | %s |\n", c.Figure, c.What, c.Theirs, spread("%.2f", values[i]))
	}
	return nil
}

// fullSize is §5.3, Figures 10 and 11, on 279 nodes.
func fullSize(all []trace.Job) error {
	jobs, site := cellworld.Gangs(all, 8), hived.Assign(hived.Nodes(279), hived.Quotas())
	rows, r, err := hived.Audit(site, jobs, site.Quota(), site.HiveD(), hived.Static(site), hived.Levels(site, jobs).HiveD())
	if err != nil {
		return err
	}
	fmt.Print("\n279 nodes\n\n| | GPUs guaranteed % | lent % | in bound cells % | fragmentation % | GPUs preempted | moved |\n|---|---|---|---|---|---|---|\n")
	for i, name := range []string{"quota", "cells, dynamic", "cells, static", "cells of all levels"} {
		m := hived.MeanOf(r[i], 2232)
		fmt.Printf("| %s | %.1f | %.1f | %.1f | %.1f | %d | %d |\n", name, 100*m.Guaranteed, 100*m.Lent, 100*m.Bound, 100*m.Broken, r[i].Preempted, r[i].Moved)
	}
	figure("hived_preempted_dynamic_of_static", float64(r[1].Preempted)/float64(r[2].Preempted), "ratio")
	figure("hived_fragmentation_levels_less", 100*(hived.MeanOf(r[1], 2232).Broken-hived.MeanOf(r[3], 2232).Broken), "points")
	audited(rows, "quota", "cells", "static", "all levels")
	return nil
}

// highLoad is §5.2, Figures 6 and 7, on 200 nodes.
func highLoad(all []trace.Job) error {
	jobs, site := cellworld.Gangs(all, 8), hived.Assign(hived.Nodes(200), hived.Quotas())
	rows, r, err := hived.Audit(site, jobs, site.Quota(), site.HiveD())
	if err != nil {
		return err
	}
	fmt.Print("\n200 nodes\n")
	for i, name := range []string{"quota", "cells"} {
		m := hived.MeanOf(r[i], 1600)
		fmt.Printf("%s: %.1f %% of the GPUs guaranteed, %.1f %% lent, fragmentation %.1f %%, %d GPUs preempted, %d moved\n", name, 100*m.Guaranteed, 100*m.Lent, 100*m.Broken, r[i].Preempted, r[i].Moved)
	}
	worst := 0.0
	for _, row := range rows {
		worst = max(worst, row.Shared[1]/row.Private)
		if row.Tenant == "prod-a" {
			figure("hived_prod_a_quota_of_private", row.Shared[0]/row.Private, "ratio")
		}
	}
	figure("hived_worst_cells_of_private", worst, "ratio")
	audited(rows, "quota", "cells")
	return nil
}

// small is §5.1: ten days of the trace, thinned for 96 GPUs.
func small(all []trace.Job) error {
	days := slices.DeleteFunc(slices.Clone(all), func(j trace.Job) bool {
		return j.Submit < 30*cluster.Day || j.Submit >= 40*cluster.Day
	})
	for i := range days {
		days[i].Submit -= 30 * cluster.Day
	}
	site := hived.Assign(hived.Nodes(12), hived.Quotas())
	jobs := cellworld.Gangs(trace.Sample(days, 96.0/2232, 1), 8)
	rows, _, err := hived.Audit(site, jobs, site.Quota(), site.HiveD())
	if err != nil {
		return err
	}
	fmt.Printf("\n96 GPUs, %d jobs of ten days\n", len(jobs))
	audited(rows, "quota", "cells")
	return nil
}

// realTraces audits Philly and Venus on several sizes of cluster.
func realTraces(dir string) error {
	sizes := strings.NewReader(simtest.Philly)
	philly, err := experiment.ReadWeights(sizes, "philly")
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(dir, "venus_tenants.csv"))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	venus, err := experiment.ReadWeights(f, "venus_tenants.csv")
	if err != nil {
		return err
	}
	for _, c := range []struct {
		file    string
		weights map[string]int64
		nodes   []int
	}{{"philly_2w_most_demand.csv.gz", philly, []int{64, 80, 110, 140}}, {"venus_2w.csv.gz", venus, []int{72, 92, 120, 154}}} {
		t, err := trace.Open(filepath.Join(dir, c.file), trace.Options{})
		if err != nil {
			return err
		}
		jobs := cellworld.Gangs(t.Jobs, 8)
		for _, nodes := range c.nodes {
			site := hived.Assign(hived.Nodes(nodes), c.weights)
			rows, r, err := hived.Audit(site, jobs, site.Quota(), site.HiveD())
			if err != nil {
				return err
			}
			q, h := hived.MeanOf(r[0], 8*nodes), hived.MeanOf(r[1], 8*nodes)
			fmt.Printf("\n%s, %d nodes: fragmentation %.1f %% with quotas, %.1f %% with cells; %.1f %% of the GPUs guaranteed\n", t.Name, nodes, 100*q.Broken, 100*h.Broken, 100*h.Guaranteed)
			audited(rows, "quota", "cells")
		}
	}
	return nil
}

// audited prints a sharing audit.
func audited(rows []hived.Row, worlds ...string) {
	fmt.Printf("\n| mean wait, min | private | %s | jobs larger than the VC |\n|---|---|%s---|\n", strings.Join(worlds, " | "), strings.Repeat("---|", len(worlds)))
	for _, r := range rows {
		fmt.Printf("| %s | %.1f |", r.Tenant, r.Private)
		for _, s := range r.Shared {
			fmt.Printf(" %.1f%s |", s, worse(s, r.Private))
		}
		fmt.Printf(" %d |\n", r.LeftOut)
	}
}

// worse marks a wait that is longer than in the private cluster.
func worse(shared, private float64) string {
	if shared > private {
		return " !"
	}
	return ""
}
