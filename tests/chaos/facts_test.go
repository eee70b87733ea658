package main

import (
	"testing"
	"time"
)

// Slurm lets a job that it requeued itself begin 121 s later; a gate of ours is something else.
func TestHeldOff(t *testing.T) {
	for _, c := range []struct {
		restarts, submitted string
		begin               time.Duration
		held                bool
	}{
		{"1", "2026-11-23T09:16:18", 121 * time.Second, true},
		{"0", "2026-11-23T09:16:18", 121 * time.Second, false},
		{"1", "2026-11-23T09:16:18", 30 * time.Second, false},
		{"1", "2026-11-23T09:16:18", 300 * time.Second, false},
		{"1", "Unknown", 121 * time.Second, false},
	} {
		begin := time.Date(2026, 11, 23, 9, 16, 18, 0, time.Local).Add(c.begin)
		if got := heldOff(map[string]string{"Restarts": c.restarts, "SubmitTime": c.submitted}, begin); got != c.held {
			t.Errorf("%+v: held off is %v", c, got)
		}
	}
}
