package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
)

// The doctor names the kinds of jobs in the journal that never save, as advice.
func TestDoctorOfJobsThatDoNotSave(t *testing.T) {
	s := watched(t)
	r := s.run(t, "doctor", "-P")
	for _, want := range []string{"jobs|jobs that save|warn|in the journal since 2027-01-15, ", " are taken never to save: vision_user train with 2 GPUs (",
		"saves, resumes when it starts, and says #SBATCH --comment=saves=notice (or saves=1h) and --open-mode=append"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the doctor does not say %q:\n%s", want, r.out)
		}
	}
	if strings.Contains(r.out, "nlp_user") {
		t.Errorf("the doctor names jobs that save:\n%s", r.out)
	}
}

// Without a journal it looks at the queue: declarations and the site's rules count, at most ten kinds are named.
func TestDoctorOfTheQueue(t *testing.T) {
	cfg := config.Default()
	cfg.Saves = []config.Saves{{QOS: "preemptible", Saves: "term"}, {Partition: "long", Saves: "2h"}}
	const now = cluster.Instant(10 * cluster.Hour)
	job := func(id int64, user, qos, partition string, gpus int) cluster.Job {
		return cluster.Job{ID: cluster.JobID{ID: id}, Name: fmt.Sprintf("train%d", id), User: user, QOS: qos, Partitions: []string{partition}, Batch: true,
			State: cluster.Running, Start: now.Add(-2 * cluster.Hour), Request: cluster.Request{GPUs: gpus}}
	}
	declares := job(3, "eve", "", "gpu", 8)
	declares.Declares = cluster.Saving{Manner: cluster.SavesOnNotice}
	look := func(jobs ...cluster.Job) finding {
		f := &findings{area: "jobs", seen: &cluster.Sighting{Now: now, Jobs: jobs}}
		f.saves(cfg)
		if len(f.list) != 1 {
			t.Fatalf("%+v", f.list)
		}
		return f.list[0]
	}
	saved := []cluster.Job{job(1, "ann", "preemptible", "gpu", 8), job(2, "bob", "", "long", 8), declares}
	if got := look(saved...); got.Level != fine || got.Found != "in the queue, every kind of job is known or declared to save" {
		t.Errorf("%+v", got)
	}
	got := look(append(saved, job(4, "dan", "", "gpu", 4), job(5, "dan", "", "gpu", 4), job(6, "kim", "", "gpu", 16))...)
	const want = "in the queue, 3 jobs with 48.0 of 96.0 GPU h are taken never to save: kim train# with 16 GPUs (32.0 GPU h, 1 jobs); dan train# with 4 GPUs (16.0 GPU h, 2 jobs)"
	if got.Level != warn || got.Found != want || got.Means == "" || got.Do == "" {
		t.Errorf("%+v, want %q", got, want)
	}
	var many []cluster.Job
	for i := range 12 {
		many = append(many, job(int64(10+i), fmt.Sprintf("u%02d", i), "", "gpu", 1))
	}
	if got := look(many...); !strings.HasSuffix(got.Found, "; u09 train# with 1 GPUs (2.0 GPU h, 1 jobs); and 2 more kinds") {
		t.Errorf("%+v", got)
	}
}
