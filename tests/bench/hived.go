package main

import (
	"fmt"
	"math/rand/v2"
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
	for _, f := range []func([]trace.Job) error{fullSize, bindings, highLoad, without, reshaped, relaxed, small} {
		if err := f(jobs); err != nil {
			return err
		}
	}
	if traces == "" {
		return nil
	}
	return realTraces(traces)
}

// quotas gives the weights of Table 1, less some tenants.
func quotas(less ...string) map[string]int64 {
	out := map[string]int64{}
	for _, t := range trace.HiveDTenants {
		if !slices.Contains(less, t.Name) {
			out[t.Name] = int64(t.Quota*100 + 0.5)
		}
	}
	return out
}

// fullSize is §5.3, Figures 10 and 11, on 279 nodes.
func fullSize(all []trace.Job) error {
	jobs, site := cellworld.Gangs(all, 8), hived.Assign(hived.Nodes(279), quotas())
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

// bindings is Figure 10 on clusters that are fuller.
func bindings(all []trace.Job) error {
	fmt.Print("\n| nodes | GPUs preempted, dynamic | static | dynamic of static % |\n|---|---|---|---|\n")
	jobs := cellworld.Gangs(all, 8)
	for _, nodes := range []int{200, 220, 240, 260} {
		site := hived.Assign(hived.Nodes(nodes), quotas())
		dynamic, err := cellworld.Run(site.HiveD(), jobs)
		if err != nil {
			return err
		}
		static, err := cellworld.Run(hived.Static(site), jobs)
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %d | %d | %.0f |\n", nodes, dynamic.Preempted, static.Preempted, 100*float64(dynamic.Preempted)/float64(static.Preempted))
	}
	return nil
}

// highLoad is §5.2, Figures 6 and 7, on 200 nodes.
func highLoad(all []trace.Job) error {
	jobs, site := cellworld.Gangs(all, 8), hived.Assign(hived.Nodes(200), quotas())
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

// without is §5.2, Figure 7: prod-a leaves with its GPUs, then res-f.
func without(all []trace.Job) error {
	for _, less := range [][]string{{"prod-a"}, {"prod-a", "res-f"}} {
		weights, nodes := quotas(less...), 0
		for _, v := range hived.Assign(hived.Nodes(200), quotas()).VCs {
			if weights[v.Name] > 0 {
				nodes += v.Cells[0].Cells
			}
		}
		jobs := cellworld.Gangs(slices.DeleteFunc(slices.Clone(all), func(j trace.Job) bool { return slices.Contains(less, j.Tenant) }), 8)
		site := hived.Assign(hived.Nodes(nodes), weights)
		rows, _, err := hived.Audit(site, jobs, site.Quota(), site.HiveD())
		if err != nil {
			return err
		}
		fmt.Printf("\n%d nodes, without %s\n", nodes, strings.Join(less, " and "))
		audited(rows, "quota", "cells")
	}
	return nil
}

// reshaped is Figure 8, on 200 nodes.
func reshaped(all []trace.Job) error {
	fmt.Print("\nGPU affinity reshaped, 200 nodes: mean wait of res-f\n\n| tenants with jobs of 8 GPUs | workload fragmentation | private, min | quota | cells |\n|---|---|---|---|---|\n")
	site := hived.Assign(hived.Nodes(200), quotas())
	var eight []string
	for _, name := range []string{"res-f", "prod-e", "prod-d", "prod-c"} {
		eight = append(eight, name)
		jobs := cellworld.Gangs(trace.Reshape(all, eight, 1), 8)
		rows, _, err := hived.Audit(site, jobs, site.Quota(), site.HiveD())
		if err != nil {
			return err
		}
		gpus := 0
		for _, j := range jobs {
			gpus += j.GPUs
		}
		for _, r := range rows {
			if r.Tenant == "res-f" {
				fmt.Printf("| %s | %.2f | %.1f | %.2f | %.2f |\n", strings.Join(eight, ", "), float64(len(jobs))/float64(gpus), r.Private, r.Shared[0]/r.Private, r.Shared[1]/r.Private)
			}
		}
	}
	return nil
}

// relaxed is Figure 9, on 200 nodes.
func relaxed(all []trace.Job) error {
	fmt.Print("\nSoft affinity, 200 nodes: mean wait of prod-a\n\n| jobs of several GPUs that relax % | private, min | quota | cells |\n|---|---|---|---|\n")
	site := hived.Assign(hived.Nodes(200), quotas())
	for _, percent := range []int{0, 25, 50, 75} {
		rng := rand.New(rand.NewPCG(1, 9))
		jobs := cellworld.Gangs(all, 8)
		for i := range jobs {
			if jobs[i].Nodes*jobs[i].GPUs > 1 {
				jobs[i].Soft = rng.IntN(100) < percent
			}
		}
		rows, _, err := hived.Audit(site, jobs, site.Quota(), site.HiveD())
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.Tenant == "prod-a" {
				fmt.Printf("| %d | %.1f | %.2f | %.2f |\n", percent, r.Private, r.Shared[0]/r.Private, r.Shared[1]/r.Private)
			}
		}
	}
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
	site := hived.Assign(hived.Nodes(12), quotas())
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
