package slurm

import "testing"

// Slurm may hold a job for a licence that has left slurm.conf after the licence was taken off the job.
func TestStranded(t *testing.T) {
	for _, c := range []struct {
		reason, remark, licenses string
		want                     bool
	}{
		{"JobHeldAdmin", "License request 'fairlease:1' is no longer valid, holding job", "fairlease:1", true},
		{"JobHeldAdmin", "License request 'fairlease:1' is no longer valid, holding job", "", true},
		{"JobHeldAdmin", "License request 'matlab:1' is no longer valid, holding job", "matlab:1", false},
		{"JobHeldAdmin", "", "", false},
		{"JobHeldUser", "License request 'fairlease:1' is no longer valid, holding job", "", false},
	} {
		tr := translator{license: "fairlease", now: 1}
		rec, err := tr.record(&wireJob{id: 7, states: []string{"PENDING"}, reason: c.reason, remark: c.remark, licenses: c.licenses, wanted: "cpu=1,node=1,gres/gpu=1", perNode: "gres/gpu:1"}, nil)
		if err != nil || len(rec.jobs) != 1 {
			t.Fatalf("%+v, %v", rec, err)
		}
		if rec.jobs[0].Stranded != c.want {
			t.Errorf("%+v: stranded %v", c, rec.jobs[0].Stranded)
		}
	}
}
