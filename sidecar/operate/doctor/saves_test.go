package doctor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
)

// Without a journal it uses the queue: declarations and the site's rules count, and at most ten
// kinds are named.
func TestDoctorOfTheQueue(t *testing.T) {
	cfg := config.Default()
	cfg.Saves = []config.Saves{{QOS: "preemptible", Saves: "term"}, {Partition: "long", Saves: "2h"}}
	const now = cluster.Instant(10 * cluster.Hour)
	job := func(id int64, user, qos, partition string, gpus int) cluster.Job {
		return cluster.Job{ID: cluster.JobID{ID: id}, Name: fmt.Sprintf("train%d", id), User: user, QOS: qos, Partitions: []string{partition}, Batch: true,
			State: cluster.Running, Start: now.Add(-2 * cluster.Hour), Request: cluster.Request{Size: cluster.Whole(gpus)}}
	}
	declares := job(3, "eve", "", "gpu", 8)
	declares.Declares = cluster.Saving{Manner: cluster.SavesOnNotice}
	look := func(jobs ...cluster.Job) doctor.Finding {
		found := ofArea(doctor.Check(cfg, &doctor.Seen{Slurm: doctor.Slurm{Sighting: &cluster.Observation{Now: now, Jobs: jobs}}}), "jobs")
		if len(found) != 1 {
			t.Fatalf("%+v", found)
		}
		return found[0]
	}
	saved := []cluster.Job{job(1, "ann", "preemptible", "gpu", 8), job(2, "bob", "", "long", 8), declares}
	if got := look(saved...); got.Level != doctor.OK || got.Found != "in the queue, every job type is known or declared to save" {
		t.Errorf("%+v", got)
	}
	got := look(append(saved, job(4, "dan", "", "gpu", 4), job(5, "dan", "", "gpu", 4), job(6, "kim", "", "gpu", 16))...)
	const want = "in the queue, 3 jobs with 48.0 of 96.0 GPU h count as never saving: kim train# with 16 GPUs (32.0 GPU h, 1 jobs); dan train# with 4 GPUs (16.0 GPU h, 2 jobs)"
	if got.Level != doctor.Warn || got.Found != want || got.Means == "" || got.Do == "" {
		t.Errorf("%+v, want %q", got, want)
	}
	var many []cluster.Job
	for i := range 12 {
		many = append(many, job(int64(10+i), fmt.Sprintf("u%02d", i), "", "gpu", 1))
	}
	if got := look(many...); !strings.HasSuffix(got.Found, "; u09 train# with 1 GPUs (2.0 GPU h, 1 jobs); and 2 more job types") {
		t.Errorf("%+v", got)
	}
}
