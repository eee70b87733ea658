package slurm

import (
	"net/http"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// SLUIDs as Slurm 26.05 gave them to jobs of clusters whose StateSaveLocation/clustername names the id.
func TestClusterOfSLUID(t *testing.T) {
	t.Parallel()
	for sluid, want := range map[string]int64{
		"sCZ9M82P9RTP00": 3322, "s0000000000001": 0, "s7ZZZZZZZZZZZZ": 2047, "sFZZZZZZZZZZZZ": 4095,
		"": 0, "sCZ9M82P9RTP0": 0, "sCZ9M82P9RTP0U": 0, "xCZ9M82P9RTP00": 0, "sGZZZZZZZZZZZZ": 0, "sé9M82P9RTP00": 0,
	} {
		if got := clusterOf(sluid); got != want {
			t.Errorf("%q: %d, want %d", sluid, got, want)
		}
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", jobs(900, waitingJob(7, `"step_id":{"job_id":7,"sluid":"sCZ9M82P9RTP00","step_id":"TBD"}`)))
	c := f.client()
	if is, err := c.Identity(t.Context()); err != nil || is != (cluster.Identity{Name: "test"}) {
		t.Errorf("before any look it is %v (%v)", is, err)
	}
	s := f.see(c)
	if s.Identity() != (cluster.Identity{Name: "test", ID: 3322}) {
		t.Errorf("the sighting is of %v", s.Identity())
	}
	if s.Clock != cluster.Instant(1_000_000_000) {
		t.Errorf("slurmctld's clock is %v", s.Clock)
	}
	f.on("GET /slurm/v0.0.44/jobs/", func(w http.ResponseWriter, r *http.Request) { jobs(901)(w, r) })
	if s := f.see(c); s.ClusterID != 3322 {
		t.Errorf("the id is forgotten with the job: %v", s.Identity())
	}
}
