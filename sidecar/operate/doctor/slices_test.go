package doctor_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// Turns on GPUs have needs, and doctor looks at these where turns are on.
func TestSlices(t *testing.T) {
	for _, c := range []struct {
		name   string
		off    bool
		conf   map[string]string
		node   cluster.Node
		jobs   int
		memory map[string]string
		units  []doctor.Unit
		want   []string
	}{
		{name: "off", off: true},
		{name: "good", want: []string{"sharing.slices ok: turns of 1m"}},
		{name: "gang scheduling", conf: map[string]string{slurm.ConfPreemptMode: "GANG,SUSPEND"}, want: []string{"sharing.slices fail: PreemptMode=GANG,SUSPEND"}},
		{name: "no shards", conf: map[string]string{slurm.ConfGresTypes: "gpu"}, want: []string{"sharing.slices warn: GresTypes=gpu"}},
		{name: "grace", conf: map[string]string{slurm.ConfPreemptParameters: "youngest_first"}, want: []string{"sharing.slices warn: PreemptParameters without suspend_grace_time"}},
		{name: "processes on their own", conf: map[string]string{slurm.ConfProctrackType: "proctrack/linuxproc"}, want: []string{"sharing.slices warn: ProctrackType=proctrack/linuxproc"}},
		{name: "frozen processes", conf: map[string]string{slurm.ConfProctrackType: "proctrack/cgroup"}, want: []string{"sharing.slices ok: turns of 1m"}},
		{name: "odd shards", node: cluster.Node{Name: "n1", Shards: 3}, want: []string{"sharing.slices warn: the shards of the GPUs of n1 are not divisible by 2 (sharing.jobs)"}},
		{name: "three jobs on four shards", jobs: 3, node: cluster.Node{Name: "n1", Shards: 4}, want: []string{"sharing.slices warn: the shards of the GPUs of n1 are not divisible by 3 (sharing.jobs)"}},
		{name: "three jobs on three shards", jobs: 3, node: cluster.Node{Name: "n1", Shards: 3}, want: []string{"sharing.slices ok: turns of 1m"}},
		{name: "unknown memory", memory: map[string]string{"k80": "12g"}, want: []string{"sharing.slices warn: the memory of h100 is not known"}},
		{name: "timer", units: []doctor.Unit{{Name: "fairlease-thaw.timer", Load: "loaded", Active: "inactive"}}, want: []string{"sharing.slices warn: fairlease-thaw.timer does not run"}},
	} {
		cfg := config.Default()
		if !c.off {
			cfg.Placing.Sharing.Slices = "on"
		}
		if c.jobs > 0 {
			cfg.Placing.Sharing.Jobs = c.jobs
		}
		cfg.Placing.Sharing.Memory = map[string]string{"h100": "80g"}
		if c.memory != nil {
			cfg.Placing.Sharing.Memory = c.memory
		}
		conf := good()
		conf[slurm.ConfGresTypes], conf[slurm.ConfPreemptParameters] = "gpu,shard", "suspend_grace_time=0"
		for k, v := range c.conf {
			conf[k] = v
		}
		n := c.node
		n.GPUs, n.Partitions = []cluster.GPUs{{Model: "h100", Count: 8}}, []string{"gpu"}
		if n.Name == "" {
			n.Name, n.Shards = "n1", 4
		}
		seen := &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{Conf: conf}, Sighting: &cluster.Observation{Nodes: []cluster.Node{n}}}, Parts: doctor.Parts{Units: c.units}}
		if got := told(t, named(doctor.Check(cfg, seen), "sharing.slices")); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
