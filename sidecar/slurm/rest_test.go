package slurm

import "testing"

// Kinds of requests are few, whatever jobs and users they are about.
func TestKindsOfRequests(t *testing.T) {
	for path, want := range map[string]string{
		"/slurm/v0.0.44/jobs/?update_time=17": "get_jobs", "/slurm/v0.0.44/job/17": "get_job", "/slurmdb/v0.0.44/user/eve%2Fjob": "get_user",
		"/slurm/v0.0.44/diag": "get_diag", "/openapi/v3": "get_openapi", "/openapi": "get_openapi", "": "get_",
	} {
		if got := kindOf("GET", path); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}
