package doctor

import (
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// ways names what settings let users do to hold GPUs without a lease.
func (f *findings) ways(cfg *config.Config, c conf) {
	const check, free = "ways out", "such jobs start by themselves, at nobody's charge, and keep their GPUs from others until they end"
	var left []string
	for _, key := range waysOut {
		if way := cluster.Way(strings.TrimPrefix(key, "opt_out.")); way != cluster.WayNoGPUs && cfg.OptOut.Of(way) == loop.LeaveAlone {
			left = append(left, key)
		}
	}
	crons, shards := c.has(slurm.ConfScron, "enable"), c.has(slurm.ConfGresTypes, "shard")
	if left != nil {
		f.add(Warn, check, strings.Join(left, ", ")+": leave", free, "set charge, so that they wait for a lease")
	}
	if crons {
		f.add(Warn, check, slurm.ConfScron+"="+c[slurm.ConfScron], "jobs of scrontab start without a lease, since Slurm lets nobody change them",
			"leave scrontab out of partitions with GPUs, or take enable out of ScronParameters; cron and sbatch do the same")
	}
	if shards {
		f.add(Warn, check, slurm.ConfGresTypes+"="+c[slurm.ConfGresTypes], "jobs that ask for gres/shard start without a lease, and keep whole GPUs from others",
			"set limits of gres/shard for accounts or users (GrpTRES, MaxTRESPerUser), or make shards only in partitions that fairlease does not manage")
	}
	if left == nil && !crons && !shards {
		f.ok(check, "none is left open in fairlease.yaml and slurm.conf")
	}
}

// openGates warns where users may open the gates of sessions, which cannot be stopped.
func (f *findings) openGates(cfg *config.Config, path string, set map[string]string) {
	if word := cfg.OptOut.Of(cluster.WaySession); set["protect_gate"] != "yes" && word != loop.LeaveAlone && word != loop.Refuse {
		f.add(Warn, "gates of sessions", "protect_gate is not yes in "+path, "a session whose owner opens its gate (scontrol update) starts before its turn, and cannot be stopped",
			"set protect_gate=yes there, with the users of fairlease's scontrol and slurmrestd in operator_uids, and run scontrol reconfigure")
	}
}
