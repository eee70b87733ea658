package handback_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/handback"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/view"
)

// A lead's holder lives while it gives signs of life and, on this host, while its process runs.
func TestLiving(t *testing.T) {
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, c := range []struct {
		holder string
		silent time.Duration
		want   bool
	}{
		{"elsewhere:7", time.Second, true},
		{"elsewhere:7", time.Minute, false},
		{fmt.Sprintf("%s:%d", here, os.Getpid()), time.Second, true},
		{fmt.Sprintf("%s:%d", here, os.Getpid()), time.Minute, false},
		{here + ":999999999", time.Second, false},
		{here, time.Second, true},
	} {
		lead := &store.LastLeadership{Holder: c.holder, Renewed: now, Takeover: now.Add(30 * time.Second), Silent: c.silent}
		if got := handback.Living(lead); got != c.want {
			t.Errorf("%s, silent for %v: %v", c.holder, c.silent, got)
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
	b := &handback.Back{Config: cfg, Errors: &errs}
	if err := b.AfterCrash(t.Context(), &view.Page{Out: &out}); err != nil || !strings.HasPrefix(out.String(), "nothing is released: PostgreSQL cannot say whether another daemon leads") {
		t.Errorf("%v\n%s", err, &out)
	}
	var f *failure.Error
	for _, dry := range []bool{true, false} {
		b = &handback.Back{Config: cfg, Errors: &errs, DryRun: dry}
		if err := b.ByHand(t.Context(), &view.Page{Out: &out}, false); !errors.As(err, &f) || f.Code != failure.Absent || !strings.HasPrefix(f.What, "Slurm does not answer") {
			t.Errorf("%v", err)
		}
	}
}
