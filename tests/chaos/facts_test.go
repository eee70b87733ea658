package main

import (
	"slices"
	"testing"
	"time"
)

// Slurm lets a job that it requeued itself begin 121 s later; a gate of ours is something else.
func TestHeldOff(t *testing.T) {
	for _, c := range []struct {
		restarts, submitted, het string
		begin                    time.Duration
		held                     bool
	}{
		{"1", "2026-11-23T09:16:18", "", 121 * time.Second, true},
		{"0", "2026-11-23T09:16:18", "", 121 * time.Second, false},
		{"1", "2026-11-23T09:16:18", "", 30 * time.Second, false},
		{"1", "2026-11-23T09:16:18", "", 300 * time.Second, false},
		{"1", "Unknown", "", 121 * time.Second, false},
		{"0", "2026-11-23T09:16:18", "92", 197 * time.Second, true},
		{"0", "2026-11-23T09:16:18", "92", 300 * time.Second, false},
	} {
		submitted := time.Date(2026, 11, 23, 9, 16, 18, 0, time.Local)
		if got := heldOff(map[string]string{"Restarts": c.restarts, "SubmitTime": c.submitted, "HetJobId": c.het}, submitted.Add(c.begin), submitted.Add(107*time.Second)); got != c.held {
			t.Errorf("%+v: held off is %v", c, got)
		}
	}
}

// A job completed where slurmctld says that its script has succeeded.
func TestCompletions(t *testing.T) {
	got := completions("[2026-11-23T23:49:15.719] _job_complete: JobId=182_1(186) WEXITSTATUS 0\n" +
		"[2026-11-23T23:49:15.720] _job_complete: JobId=182_1(186) done\n" +
		"[2026-11-23T23:49:20.215] Requeuing JobId=182_1(186)\n" +
		"[2026-11-23T23:49:21.066] _job_complete: JobId=151 WTERMSIG 15\n" +
		"[2026-11-23T23:49:23.066] _job_complete: JobId=152 WEXITSTATUS 0\n" +
		"[2026-11-23T23:49:23.067] _job_complete: JobId=160+0(160) WEXITSTATUS 0\n" +
		"[2026-11-23T23:49:23.068] _job_complete: JobId=160+1(161) WEXITSTATUS 0\n")
	want := []Deed{{time.Date(2026, 11, 23, 23, 49, 15, 719e6, time.Local), "182_1", "over"}, {time.Date(2026, 11, 23, 23, 49, 23, 66e6, time.Local), "152", "over"},
		{time.Date(2026, 11, 23, 23, 49, 23, 67e6, time.Local), "160", "over"}, {time.Date(2026, 11, 23, 23, 49, 23, 68e6, time.Local), "160+1", "over"}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
