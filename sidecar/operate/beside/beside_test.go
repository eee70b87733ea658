package beside_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/operate/beside"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
)

// TestMain lets this test program be the one that divides.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "beside" {
		if err := beside.Answer(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func asked(t *testing.T) (cluster.Snapshot, cluster.AllocationRequest) {
	t.Helper()
	s := simtest.Crowd(60, 4)
	s.Settings.Divide = "oef:coop"
	q := engine.Decide(s).AllocationRequest
	if q == nil {
		t.Fatal("nothing is asked")
	}
	return s, *q
}

// A separate process gives the same division and the same audit.
func TestBeside(t *testing.T) {
	s, q := asked(t)
	b := beside.Process{Context: t.Context(), Path: "/proc/self/exe", Args: []string{"beside"}, Limit: beside.Limit}
	d := b.Divide(q)
	if want := engine.Divide(q); !reflect.DeepEqual(d, want) {
		t.Errorf("it divides %+v, want %+v", d, want)
	}
	s.Allocation = &d
	got, ok := b.Audit(s)
	want, there := engine.Audit(s)
	if !ok || !there || !reflect.DeepEqual(got, want) {
		t.Errorf("it audits %+v, want %+v", got, want)
	}
	s.Settings.Divide = ""
	if _, ok := b.Audit(s); ok {
		t.Error("there is an audit where nothing is divided")
	}
}

// A process that its own library kills, that answers nonsense or that does not end is a failure
// of the policy alone.
func TestBesideFails(t *testing.T) {
	_, q := asked(t)
	for script, want := range map[string]string{
		"kill -ABRT $$":                     "signal: aborted",
		"echo terminate called >&2; exit 3": "terminate called",
		"echo '{}'":                         "answered",
		"echo nonsense":                     "answered",
		"exec sleep 100":                    "longer than 100 ms",
	} {
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		limit := time.Minute
		if strings.Contains(script, "sleep") {
			limit = 100 * time.Millisecond
		}
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v; want %q", script, err, want)
				}
			}()
			beside.Process{Context: t.Context(), Path: program, Limit: limit}.Divide(q)
		}()
	}
}

// A study is the report that the program writes, at the least priority; its failures are errors, and it ends with its
// context.
func TestStudy(t *testing.T) {
	study := func(ctx context.Context, script string) (tune.Study, error) {
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return beside.Process{Path: program, Args: []string{"tune"}, Limit: time.Minute}.Study(ctx)
	}
	const least = `while [ "$(nice)" != 19 ]; do :; done; `
	s, err := study(t.Context(), least+`echo '{"study": {"was": {"finished_jobs": 3}, "trials": [{"term_ms": 900000}]}}'`)
	if err != nil || s.Was.Jobs != 3 || len(s.Trials) != 1 || s.Trials[0].Term != 15*cluster.Minute {
		t.Errorf("%+v, %v", s, err)
	}
	for script, want := range map[string]string{"echo too short >&2; exit 1": "too short", "echo nonsense": "invalid character", "kill -KILL $$": "signal: killed"} {
		if _, err := study(t.Context(), least+script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := study(ctx, "exec sleep 100"); err == nil {
		t.Error("it does not end with its context")
	}
}
