package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// checkSlices checks what turns on GPUs need.
func checkSlices(f *findings, cfg *config.Config, seen *Seen) {
	s, c := cfg.Settings().Slices, conf(seen.Slurm.Facts.Conf)
	if s == nil || len(c) == 0 {
		return
	}
	const check = "sharing.slices"
	before := len(f.list)
	if c.has(slurm.ConfPreemptMode, "GANG") {
		f.add(Fail, check, "PreemptMode="+c[slurm.ConfPreemptMode], "Slurm suspends and resumes jobs by itself: two schedulers of one thing", "take GANG out of PreemptMode, or set sharing.slices: off")
	}
	if !c.has(slurm.ConfGresTypes, "shard") {
		f.add(Warn, check, "GresTypes="+c[slurm.ConfGresTypes], "no GPU has parts: no jobs take turns", "set up gres/shard (docs/parts-of-gpus.md), or sharing.slices: off")
	}
	if !strings.Contains(c[slurm.ConfPreemptParameters], "suspend_grace_time=") {
		f.add(Warn, check, "PreemptParameters without suspend_grace_time", "a job that is suspended goes on for 2 s, and its GPU idles or is used twice in these",
			"add suspend_grace_time=0, or the seconds that a save of GPU memory takes, to PreemptParameters; then scontrol reconfigure")
	}
	if by := c[slurm.ConfProctrackType]; by != "" && by != "proctrack/cgroup" {
		f.add(Warn, check, "ProctrackType="+by, "processes of a suspended job that are no longer its children, such as daemons, go on and use the GPU in the turns of others",
			"set ProctrackType=proctrack/cgroup where slurmd supports it, and restart slurmctld and slurmd while no job runs")
	}
	if o := seen.Slurm.Sighting; o != nil {
		checkSliceNodes(f, cfg, s, o)
	}
	at := slices.IndexFunc(seen.Parts.Units, func(u Unit) bool { return u.Name == thawUnit })
	if at >= 0 && seen.Parts.Units[at].Active != "active" {
		f.add(Warn, check, thawUnit+" does not run", "jobs that are suspended when the daemon's host dies stay so until a daemon leads again", "systemctl enable --now "+thawUnit)
	}
	if len(f.list) == before {
		f.ok(check, "turns of %v", cfg.Placing.Sharing.Quantum)
	}
}

// checkSliceNodes checks the nodes of managed partitions: their shards, and whether the memory of their GPUs is known.
func checkSliceNodes(f *findings, cfg *config.Config, s *cluster.Slices, o *cluster.Observation) {
	const check = "sharing.slices"
	var odd, unknown []string
	for i := range o.Nodes {
		n := &o.Nodes[i]
		if n.Shards == 0 || n.MPS || !slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(cfg.Partitions, p) }) {
			continue
		}
		if s.Shards(n) == 0 {
			odd = append(odd, n.Name)
		}
		of := func(m cluster.GPUMemory) bool { return m.Model == n.GPUs[0].Model }
		if model := n.GPUs[0].Model; !slices.ContainsFunc(s.Memory, of) && !slices.ContainsFunc(o.Sizes, of) && !slices.Contains(unknown, model) {
			unknown = append(unknown, model)
		}
	}
	if len(odd) > 0 {
		f.add(Warn, check, fmt.Sprintf("the shards of the GPUs of %s are not divisible by %d (sharing.jobs)", strings.Join(odd, ", "), s.Most()), "the parts of jobs would not be equal: no jobs take turns there",
			fmt.Sprintf("give each GPU a number of shards that is a multiple of %d", s.Most()))
	}
	if len(unknown) > 0 {
		f.add(Warn, check, "the memory of "+strings.Join(unknown, ", ")+" is not known", "no jobs take turns there, unless telemetry tells it: nobody knows that they fit together", "write it in sharing.memory")
	}
}
