package hived

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/sim/cellworld"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Claim is a figure of HiveD's evaluation (§5) beside the same on a workload like the paper's.
type Claim struct {
	Figure, What, Theirs string
	Here                 float64
}

// Claims gives the claims of Figures 7 to 11 with a workload like the paper's. Waits are multiples of those in private clusters.
func Claims(all []trace.Job) ([]Claim, error) {
	var out []Claim
	for _, of := range []func([]trace.Job) ([]Claim, error){safety, reshaped, relaxed, bindings, levels} {
		claims, err := of(all)
		if err != nil {
			return nil, err
		}
		out = append(out, claims...)
	}
	return out, nil
}

// waits compares a site with quotas and with cells: each tenant's mean waits as multiples of that in its private cluster.
func waits(site cellworld.Site, jobs []cellworld.Job) (map[string][2]float64, error) {
	rows, _, err := Audit(site, jobs, site.Quota(), site.HiveD())
	if err != nil {
		return nil, err
	}
	out := map[string][2]float64{}
	for _, r := range rows {
		out[r.Tenant] = [2]float64{r.Shared[0] / r.Private, r.Shared[1] / r.Private}
	}
	return out, nil
}

// safety is Figures 5 to 7 on 200 nodes: all tenants, then without prod-a, then without res-f, too; these leave with their nodes.
func safety(all []trace.Job) ([]Claim, error) {
	var out []Claim
	for _, x := range []struct {
		less           []string
		victim, theirs string
	}{{nil, "prod-a", "7"}, {[]string{"prod-a"}, "res-f", "1.7"}, {[]string{"prod-a", "res-f"}, "prod-c", "below 1"}} {
		nodes := 0
		for _, v := range Assign(Nodes(200), Quotas()).VCs {
			if !slices.Contains(x.less, v.Name) {
				nodes += v.Cells[0].Cells
			}
		}
		jobs := slices.DeleteFunc(slices.Clone(all), func(j trace.Job) bool { return slices.Contains(x.less, j.Tenant) })
		of, err := waits(Assign(Nodes(nodes), Quotas(x.less...)), cellworld.Gangs(jobs, 8))
		if err != nil {
			return nil, err
		}
		worst := 0.0
		for _, w := range of {
			worst = max(worst, w[1])
		}
		name := "all tenants"
		if x.less != nil {
			name = "without " + strings.Join(x.less, " and ")
		}
		out = append(out, Claim{"7", name + ": wait of " + x.victim + ", quota", x.theirs, of[x.victim][0]},
			Claim{"7", name + ": wait of the worst-off tenant, cells", "below 1", worst})
	}
	return out, nil
}

// reshaped is Figure 8: the wait of res-f as it and more and more tenants have jobs of 8 GPUs.
func reshaped(all []trace.Job) ([]Claim, error) {
	site := Assign(Nodes(200), Quotas())
	var out []Claim
	var eight []string
	for i, name := range []string{"res-f", "prod-e", "prod-d", "prod-c"} {
		eight = append(eight, name)
		of, err := waits(site, cellworld.Gangs(trace.Reshape(all, eight, 1), 8))
		if err != nil {
			return nil, err
		}
		what := "jobs of 8 GPUs of " + strings.Join(eight, ", ") + ": wait of res-f, "
		out = append(out, Claim{"8", what + "quota", []string{"132", "4.3", "1.9", "0.9"}[i], of["res-f"][0]}, Claim{"8", what + "cells", "below 1", of["res-f"][1]})
	}
	return out, nil
}

// relaxed is Figure 9: the wait of prod-a as some of the jobs of several GPUs may be spread.
func relaxed(all []trace.Job) ([]Claim, error) {
	site := Assign(Nodes(200), Quotas())
	var out []Claim
	for _, percent := range []int{25, 50, 75} {
		rng := rand.New(rand.NewPCG(1, 9))
		jobs := cellworld.Gangs(all, 8)
		for i := range jobs {
			if jobs[i].Nodes*jobs[i].GPUs > 1 {
				jobs[i].Soft = rng.IntN(100) < percent
			}
		}
		of, err := waits(site, jobs)
		if err != nil {
			return nil, err
		}
		what, theirs := fmt.Sprintf("%d %% of the gangs relax: wait of prod-a, ", percent), "-"
		if percent == 50 {
			theirs = "1.3"
		}
		out = append(out, Claim{"9", what + "quota", theirs, of["prod-a"][0]}, Claim{"9", what + "cells", "below 1", of["prod-a"][1]})
	}
	return out, nil
}

// bindings is Figure 10: GPUs preempted by dynamic binding over those by static binding.
func bindings(all []trace.Job) ([]Claim, error) {
	var out []Claim
	jobs := cellworld.Gangs(all, 8)
	for _, nodes := range []int{200, 220, 240, 260, 279} {
		site := Assign(Nodes(nodes), Quotas())
		dynamic, err := cellworld.Run(site.HiveD(), jobs)
		if err != nil {
			return nil, err
		}
		static, err := cellworld.Run(Static(site), jobs)
		if err != nil {
			return nil, err
		}
		theirs := "-"
		if nodes == 279 {
			theirs = "0.45"
		}
		out = append(out, Claim{"10", fmt.Sprintf("%d nodes: GPUs preempted, dynamic over static binding", nodes), theirs, float64(dynamic.Preempted) / float64(static.Preempted)})
	}
	return out, nil
}

// levels is Figure 11: how many percentage points fewer nodes are fragmented with cells of all levels than with node cells.
func levels(all []trace.Job) ([]Claim, error) {
	const nodes = 279
	jobs, site := cellworld.Gangs(all, 8), Assign(Nodes(nodes), Quotas())
	single, err := cellworld.Run(site.HiveD(), jobs)
	if err != nil {
		return nil, err
	}
	multi, err := cellworld.Run(Levels(site, jobs).HiveD(), jobs)
	if err != nil {
		return nil, err
	}
	return []Claim{{"11", "279 nodes: points fewer nodes fragmented, cells of all levels", "10 to 20", 100 * (MeanOf(single, 8*nodes).Broken - MeanOf(multi, 8*nodes).Broken)}}, nil
}

// Quotas gives the tenants' weights of the paper's Table 1, less some tenants.
func Quotas(less ...string) map[string]int64 {
	out := map[string]int64{}
	for _, t := range trace.HiveDTenants {
		if !slices.Contains(less, t.Name) {
			out[t.Name] = int64(t.Quota*100 + 0.5)
		}
	}
	return out
}
