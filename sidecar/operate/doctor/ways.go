package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// checkWays names what settings let users do to hold GPUs without a lease.
func checkWays(f *findings, cfg *config.Config, c conf) {
	const check, free = "ways out", "such jobs start by themselves, at nobody's charge, and keep their GPUs from others until they end"
	var left []string
	for _, key := range waysOut {
		if way := cluster.Way(strings.TrimPrefix(key, "opt_out.")); way != cluster.WayNoGPUs && cfg.OptOut.Of(way) == loop.LeaveAlone {
			left = append(left, key)
		}
	}
	bound := unbounded(cfg)
	for _, x := range bound {
		f.add(Warn, check, x.found, x.means, x.do)
	}
	idle := cfg.OptOut.Of(cluster.WayNoGPUs) == loop.LeaveAlone
	if idle {
		f.add(Warn, check, "opt_out.no_gpus: leave", "GPUs that idle since jobs without GPUs hold the CPUs or memory of their nodes are at nobody's charge, for as long as these jobs run", "set charge or refuse")
	}
	crons, mps, shards := c.has(slurm.ConfScron, "enable"), c.has(slurm.ConfGresTypes, "mps"), c.has(slurm.ConfGresTypes, "shard")
	if left != nil {
		f.add(Warn, check, strings.Join(left, ", ")+": leave", free, "set charge, so that they wait for a lease")
	}
	if crons {
		f.add(Warn, check, slurm.ConfScron+"="+c[slurm.ConfScron], "jobs of scrontab start without a lease, since Slurm lets nobody change them",
			"leave scrontab out of partitions with GPUs, or take enable out of ScronParameters; cron and sbatch do the same")
	}
	when, more := " on several nodes, beside whole GPUs or with --exclusive", " for all of a GPU, on nodes with gres/shard,"
	if cfg.Cells.File != "" {
		when, more = ", where virtual clusters divide the GPUs (cells.file),", ""
	}
	for _, x := range []struct {
		on         bool
		gres, when string
	}{{mps, "mps", more + when}, {shards, "shard", when}} {
		if x.on {
			f.add(Warn, check, slurm.ConfGresTypes+"="+c[slurm.ConfGresTypes], "jobs that ask for gres/"+x.gres+x.when+" start without a lease, and keep GPUs from others",
				"set limits of gres/"+x.gres+" for accounts or users (GrpTRES, MaxTRESPerUser), or have it only in partitions that fairlease does not manage")
		}
	}
	if left == nil && bound == nil && !idle && !crons && !mps && !shards {
		f.ok(check, "none is left open in fairlease.yaml and slurm.conf")
	}
}

// gap is a setting that lets jobs hold GPUs without a limit, what that means and what to do.
type gap struct{ found, means, do string }

// unbounded finds the limits on jobs that cannot be stopped (bind) that limit nothing, in the file and in each of its schedules.
func unbounded(cfg *config.Config) []gap {
	const cannot, due = "jobs that cannot be stopped may hold ", "GPUs that other tenants are due"
	of := func(c *config.Config) (out []gap) {
		b, term := c.Bind, c.Lease.Term.Span()
		if b.Quiet == 0 {
			out = append(out, gap{"bind.quiet: 0s", cannot + "all " + due + ", for as long as they run", "set it to a time, as to 12h"})
		}
		if b.Max >= maxBound {
			out = append(out, gap{fmt.Sprintf("bind.max: %d", b.Max), fmt.Sprintf(cannot+"%d %% of a model's GPUs beyond what their tenants are due, for as long as they run", b.Max), "set it to a few percent, as to 5"})
		}
		if ends := term * cluster.Span(b.Horizon); ends > maxHorizon {
			out = append(out, gap{fmt.Sprintf("bind.horizon: %d terms of %v", b.Horizon, c.Lease.Term),
				fmt.Sprintf(cannot+"all "+due+" if their time limits end them within %v", config.Duration(ends)), fmt.Sprintf("set it to at most %d", maxHorizon/term)})
		}
		return out
	}
	all := of(cfg)
	for name, with := range cfg.Scheduled() {
		for _, x := range of(with) {
			if slices.ContainsFunc(all, func(o gap) bool { return o.found == x.found }) {
				continue
			}
			x.found += " (while schedule " + name + " is in force)"
			all = append(all, x)
		}
	}
	return all
}

// From maxBound percent on, bind.max is hardly a limit. Beyond maxHorizon, neither is bind.horizon: most time limits are shorter.
const (
	maxBound   = 50
	maxHorizon = cluster.Day
)

// protectGate is the plugin's setting that keeps users from opening gates.
const protectGate = "protect_gate"

// checkOpenGates warns where users may open the gates of sessions, which cannot be stopped.
func checkOpenGates(f *findings, cfg *config.Config, path string, set map[string]string) {
	if word := cfg.OptOut.Of(cluster.WaySession); set[protectGate] != "yes" && word != loop.LeaveAlone && word != loop.Refuse {
		f.add(Warn, "gates of sessions", "protect_gate is not yes in "+path, "a session whose owner opens its gate (scontrol update) starts before its turn, and cannot be stopped",
			"set protect_gate=yes there, with the users of fairlease's scontrol and slurmrestd in operator_uids unless the daemon runs as the same user, and run scontrol reconfigure")
	}
}

// checkOpens fails where the plugin keeps fairlease itself from opening gates.
func checkOpens(f *findings, file *PluginFile, set map[string]string, operator string) {
	if set[protectGate] == "yes" && operator != "" && file.Openers != nil && !slices.Contains(file.Openers, operator) {
		f.add(Fail, "plugin operator_uids", fmt.Sprintf("%s keeps user %s, as whom slurmrestd acts for fairlease, from opening gates", file.Path, operator), "grants are refused: no gated job starts",
			fmt.Sprintf("add the number of that user (id -u %s) to operator_uids there, and run scontrol reconfigure", operator))
	}
}
