package operate_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// A lead's holder may live until its term ends and, on this host, while its process runs.
func TestMayLive(t *testing.T) {
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		holder string
		ended  bool
		want   bool
	}{
		{"elsewhere:7", false, true},
		{"elsewhere:7", true, false},
		{fmt.Sprintf("%s:%d", here, os.Getpid()), false, true},
		{fmt.Sprintf("%s:%d", here, os.Getpid()), true, false},
		{here + ":999999999", false, false},
		{here, false, true},
	} {
		lead := &store.LastLeadership{Holder: c.holder, Ended: c.ended}
		if got := operate.MayLive(lead); got != c.want {
			t.Errorf("%s, ended %v: %v", c.holder, c.ended, got)
		}
	}
}

// Without PostgreSQL a release after a crash does nothing, since another daemon may lead. A
// release by hand continues until it needs Slurm.
func TestWithoutAJournal(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Files.State = filepath.Join(dir, "state.json")
	cfg.Slurm.Address, cfg.Slurm.Retries = "unix://"+dir+"/none", 0
	var out, errs bytes.Buffer
	b := &operate.Release{Config: cfg, Errors: &errs}
	if err := b.AfterCrash(t.Context(), &view.Page{Out: &out}); err != nil || !strings.HasPrefix(out.String(), "nothing is released: PostgreSQL cannot say whether another daemon leads") {
		t.Errorf("%v\n%s", err, &out)
	}
	var f *failure.Error
	for _, dry := range []bool{true, false} {
		b = &operate.Release{Config: cfg, Errors: &errs, DryRun: dry}
		if err := b.ByHand(t.Context(), &view.Page{Out: &out}, false); !errors.As(err, &f) || f.Code != failure.Absent || !strings.HasPrefix(f.What, "Slurm does not answer") {
			t.Errorf("%v", err)
		}
	}
}
