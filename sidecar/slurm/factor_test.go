package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// An administrator's site factor is read once for a new job, and restored exactly; if we set
// none, none is changed.
func TestSiteFactorOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sprio := filepath.Join(dir, "sprio")
	script := "#!/bin/sh\necho asked >> " + dir + "/asked\necho '     7 -33'\necho '     8 1000000'\necho '     9 -1000000000'\necho nonsense\n"
	if err := os.WriteFile(sprio, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, ours := range []int64{1_000_000, 0} {
		f := newRecorded(t, 44)
		f.on("GET /slurm/v0.0.44/jobs/", jobs(900, waitingJob(7, ""), waitingJob(8, ""), waitingJob(9, "")))
		f.on("POST /slurm/v0.0.44/job/7", text(`{"errors":[]}`))
		c := f.client(func(c *Config) { c.SiteFactor, c.Scontrol = ours, []string{filepath.Join(dir, "scontrol")} })
		s := f.see(c)
		if got := s.Jobs[0].SiteFactor; (got != nil) != (ours != 0) || got != nil && *got != -33 {
			t.Errorf("with ours %d: job 7 has %v", ours, got)
		}
		for _, j := range s.Jobs[1:] { // one had a lease, the other a licence that its user removed
			if j.SiteFactor != nil {
				t.Errorf("ours counts as another's: job %d, %d", j.Record, *j.SiteFactor)
			}
		}
		f.see(c)
		c.Apply(t.Context(), []cluster.Action{{Verb: cluster.Open, Record: 7, ID: cluster.JobID{ID: 7}, SiteFactor: -33}})
		body := f.asked[len(f.asked)-1].body
		if want := `"site_factor":2147483615`; strings.Contains(body, want) != (ours != 0) || strings.Contains(body, "site_factor") != (ours != 0) {
			t.Errorf("with ours %d it is given back as %s", ours, body)
		}
	}
	if asked, _ := os.ReadFile(filepath.Join(dir, "asked")); string(asked) != "asked\n" {
		t.Errorf("sprio was asked %d times for two looks", strings.Count(string(asked), "asked"))
	}
}
