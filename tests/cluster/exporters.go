package testcluster

import (
	"net/http/httptest"
	"testing"

	"github.com/fairlease/fairlease/sidecar/telemetry/gpu/gputest"
)

// Exporters serves a fake dcgm-exporter for each slurmd with GPUs, until the test ends. The URL has {node} in place of the
// node's name. It is reachable on this machine, where the program runs in tests, not inside the cluster.
func (c *Cluster) Exporters(t testing.TB) (fleet *gputest.Fleet, url string) {
	gpus := map[string]int{}
	for _, g := range c.Options.Nodes {
		for _, name := range (Options{Nodes: []NodeGroup{g}}).nodeNames() {
			gpus[name] = g.GPUs
		}
	}
	fleet = gputest.NewFleet(gputest.V49, gpus)
	s := httptest.NewServer(fleet)
	t.Cleanup(s.Close)
	return fleet, s.URL + "/{node}/metrics"
}
