package slurm

import (
	"context"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// clusterOf gives the cluster id in a SLUID: the upper 12 of its 64 bits, from Slurm 25.11 on. A
// SLUID is an s and 13 digits of Crockford's base 32. 0 = not a SLUID.
func clusterOf(sluid string) int64 {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	if len(sluid) != 14 || sluid[0] != 's' {
		return 0
	}
	var bits uint64
	for _, c := range sluid[1:] {
		d := strings.IndexRune(digits, c)
		if d < 0 || bits>>59 != 0 {
			return 0
		}
		bits = bits<<5 | uint64(d)
	}
	return int64(bits >> 52)
}

// firstFederated is the smallest job id in a federation: the cluster in its SLUID is where the
// job was submitted.
const firstFederated = 1 << 26

// identify reads from a job the id of its cluster.
func (s *seen) identify(w *wireJob) {
	if id := clusterOf(w.sluid); id != 0 && w.id < firstFederated {
		s.clusterID = id
	}
}

// Identity asks Slurm which cluster it is. The id is known only after jobs were seen.
func (c *Client) Identity(ctx context.Context) (cluster.Identity, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.talk(ctx); err != nil {
		return cluster.Identity{}, err
	}
	if _, err := (site{c.link}).lookController(ctx); err != nil {
		return cluster.Identity{}, err
	}
	return cluster.Identity{Name: c.seen.cluster, ID: c.seen.clusterID}, nil
}
