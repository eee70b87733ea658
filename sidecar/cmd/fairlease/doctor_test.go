package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// The doctor checks everything even if no service answers, and says so.
func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "fairlease.yaml")
	write(t, file, fmt.Sprintf("slurm: {address: 'unix://%s/none', retries: 0}\nweb: {listen: '127.0.0.1:0'}\nfiles: {heartbeats: %s, state: %s/state.json}\n", dir, dir, dir))
	env := []string{"FAIRLEASE_DATABASE_URL=" + storetest.Database(t)}
	r := run(t, time.Time{}, env, "-c", file, "doctor", "--json")
	var found []doctor.Finding
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != failure.No {
		t.Fatalf("exit code %d, %v\n%s", r.code, err, r.out)
	}
	levels := map[string]string{}
	for _, x := range found {
		if strings.HasSuffix(x.Check, ".service") {
			continue // of this machine
		}
		levels[x.Area+" "+x.Check] = x.Level
	}
	want := map[string]string{"parts program": doctor.OK, "parts database schema": doctor.OK, "parts Python library": doctor.OK, "web listen": doctor.OK,
		"configuration file": doctor.OK, "configuration heartbeats": doctor.OK, "configuration state": doctor.OK, "configuration modes": doctor.OK, "slurm connection": doctor.Fail,
		"postgresql version": doctor.OK, "postgresql rights": doctor.OK, "postgresql clock": doctor.OK, "postgresql cluster": doctor.OK, "postgresql leader": doctor.OK}
	if d := cmp.Diff(want, levels); d != "" {
		t.Error(d)
	}
	people := run(t, time.Time{}, env, "-c", file, "doctor")
	if !strings.Contains(people.out, "means: rounds pause while Slurm is away") || !strings.Contains(people.out, "1 to repair") {
		t.Errorf("for people:\n%s", people.out)
	}
	write(t, file, "lease: {notcie: 1}\n")
	if r := run(t, time.Time{}, env, "-c", file, "doctor"); r.code != failure.No || !strings.Contains(r.out, "did you mean lease.notice?") {
		t.Errorf("with a wrong configuration: exit code %d\n%s", r.code, r.out)
	}
	if r := run(t, time.Time{}, nil, "-c", empty(t), "doctor", "-P"); r.code != failure.No || !strings.Contains(r.out, "postgresql|address|fail|none is configured") {
		t.Errorf("without a database: exit code %d\n%s", r.code, r.out)
	}
}

// The doctor advises on the kinds of jobs in the journal that never save.
func TestDoctorOfJobsThatDoNotSave(t *testing.T) {
	s := watched(t)
	r := s.run(t, "doctor", "-P")
	for _, want := range []string{"jobs|jobs that save|warn|in the journal since 2027-01-15, ", " count as never saving: vision_user train with 2 GPUs (",
		"saves, resumes when it starts, and says #SBATCH --comment=saves=notice (or saves=1h) and --open-mode=append"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the doctor does not say %q:\n%s", want, r.out)
		}
	}
	if strings.Contains(r.out, "nlp_user") {
		t.Errorf("the doctor names jobs that save:\n%s", r.out)
	}
}

// Before the first round no settings are in force, so the file differs from none.
func TestDoctorBeforeTheFirstRound(t *testing.T) {
	dsn, _ := leading(t)
	r := run(t, time.Time{}, []string{"FAIRLEASE_DATABASE_URL=" + dsn}, "-c", empty(t), "doctor", "-P")
	if !strings.Contains(r.out, "postgresql|leader|ok|") || strings.Contains(r.out, "settings in force|warn") {
		t.Error(r.out)
	}
}
