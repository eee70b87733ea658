package slurm

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Slurm lets nobody change jobs of scrontab, so these have no lease whatever else they ask for.
func TestScrontabComesFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		job  wireJob
		want string
	}{
		{"plain", wireJob{perNode: "gres/gpu:1"}, cluster.Cron},
		{"per socket", wireJob{perSocket: "gres/gpu:1"}, cluster.Cron},
		{"several models", wireJob{perJob: "gres/gpu:v100:1,gres/gpu:k80:1"}, cluster.Cron},
		{"shared with its user", wireJob{perNode: "gres/gpu:1", shared: []string{"user"}}, cluster.Cron},
		{"contiguous", wireJob{perNode: "gres/gpu:1", nodeCount: 2, maxNodes: 2, contig: true}, cluster.Cron},
		{"parts of GPUs", wireJob{perNode: "gres/shard:1"}, cluster.PartsOfGPUs},
	} {
		c.job.cron = true
		if q := request(&c.job); q.Unplaceable != c.want || q.Leasable() {
			t.Errorf("%s: %q, leasable %v; want %q", c.name, q.Unplaceable, q.Leasable(), c.want)
		}
	}
}
