package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

// Gauged is one look at the counters of GPUs.
type Gauged struct {
	Nodes    []gpu.Node    // some of the healthy nodes
	Readings []gpu.Reading // one each
	Err      error         // why the look is incomplete; nil = it is not
}

// mostGauged is the maximum number of nodes that the doctor reads.
const mostGauged = 100

// gauge looks once at the GPUs of the first healthy nodes.
func gauge(ctx context.Context, cfg *config.Config, seen *cluster.Observation) *Gauged {
	if !cfg.Telemetry.GPU.On() || seen == nil {
		return nil
	}
	source, err := cfg.Telemetry.GPU.Open()
	if err != nil {
		return &Gauged{Err: err}
	}
	var g Gauged
	for i := range seen.Nodes {
		if n := &seen.Nodes[i]; n.Bad == "" && len(n.GPUs) > 0 && len(g.Nodes) < mostGauged {
			g.Nodes = append(g.Nodes, gpu.Node{Name: n.Name, Host: n.Host, Address: n.Address})
		}
	}
	g.Readings, g.Err = source.Read(ctx, g.Nodes)
	return &g
}

// checkGPUs checks that the counters of GPUs can be read, and that they tell enough to know which GPUs are idle.
func checkGPUs(f *findings, g *Gauged, seen *cluster.Observation) {
	if g == nil {
		return
	}
	const check = "GPU counters"
	const off = "which GPUs are idle there, and how much memory jobs use, is not known"
	var silent, blind []string
	for i := range g.Readings {
		r, name := &g.Readings[i], g.Nodes[i].Name
		if r.Err != nil {
			silent = append(silent, fmt.Sprintf("%s (%v)", name, r.Err))
			continue
		}
		if why := lacks(r.Rows, seen, name); why != "" {
			blind = append(blind, fmt.Sprintf("%s (%s)", name, why))
		}
	}
	if g.Err != nil {
		f.add(Warn, check, g.Err.Error(), off, "check telemetry.gpu in the configuration, and the server")
	}
	if len(silent) > 0 && len(silent) == len(g.Readings) {
		f.add(Fail, check, "no node is read: "+view.Some(silent, 1), off, "check telemetry.gpu in the configuration, and that dcgm-exporter runs")
	} else if len(silent) > 0 {
		f.add(Warn, check, fmt.Sprintf("%s not read: %s", view.Plural(len(silent), "node"), view.Some(silent, 3)), off, "start dcgm-exporter there")
	}
	if len(blind) > 0 {
		f.add(Warn, check, fmt.Sprintf("%s without all counters: %s", view.Plural(len(blind), "node"), view.Some(blind, 3)), off,
			"add the missing counters to the exporter's CSV file; where they have other names, set telemetry.gpu.counters")
	}
	misjoined := misjoins(g, seen)
	if len(misjoined) > 0 {
		f.add(Warn, "order of GPUs", fmt.Sprintf("%s with another order in Slurm than in the exporter: %s", view.Plural(len(misjoined), "node"), view.Some(misjoined, 3)),
			"the counters there cannot be joined with jobs, and none of them counts", "set AutoDetect=nvml in gres.conf, or let Slurm's prolog write hpc_job by NVIDIA's index")
	}
	if g.Err == nil && len(silent)+len(blind) == 0 {
		f.ok(check, "read on %s", view.Plural(len(g.Readings), "node"))
	}
}

// misjoins names the nodes whose exporters name other jobs (label hpc_job) than Slurm, and says how that shows.
func misjoins(g *Gauged, seen *cluster.Observation) []string {
	var holders []gpu.Holder
	for i := range seen.Jobs {
		if h, ok := gpu.HolderOf(&seen.Jobs[i]); ok {
			holders = append(holders, h)
		}
	}
	var out []string
	for node, why := range gpu.Misjoins(g.Nodes, g.Readings, holders) {
		out = append(out, fmt.Sprintf("%s (%s)", node, why))
	}
	slices.Sort(out)
	return out
}

// lacks says which counters or GPUs of a node are missing; "" = none.
func lacks(rows []gpu.Row, seen *cluster.Observation, name string) string {
	i, ok := slices.BinarySearchFunc(seen.Nodes, name, func(n cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
	want, have := 0, map[int]bool{}
	for k := range rows {
		have[rows[k].Index] = true
	}
	if ok {
		for _, g := range seen.Nodes[i].GPUs {
			want += g.Count
		}
	}
	missing := map[string]bool{}
	for k := range rows {
		v := &rows[k].Values
		if rows[k].Instance != "" {
			continue
		}
		for name, is := range map[string]bool{"utilization": v.Has(gpu.Util), "power": v.Has(gpu.Power), "memory in use": v.Has(gpu.Used)} {
			if !is {
				missing[name] = true
			}
		}
	}
	var names []string
	for name := range missing {
		names = append(names, name)
	}
	slices.Sort(names)
	switch {
	case len(have) < want:
		return fmt.Sprintf("%d of %d GPUs are reported", len(have), want)
	case len(names) > 0:
		return "no " + strings.Join(names, ", no ")
	}
	return ""
}

// checkRemarks names running jobs that do not do what is usual for them.
func checkRemarks(f *findings, list []store.Remark) {
	if len(list) > 0 {
		f.add(Warn, "remarks", view.Remarks(list), "these jobs may hold GPUs in vain, or a GPU or a report may be faulty", "ask fairlease explain JOB, and the job's user")
	}
}
