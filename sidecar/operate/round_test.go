package operate_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// If Slurm or the journal is away no round is made, and the output contains none.
func TestNobodyThere(t *testing.T) {
	cfg := config.Default()
	cfg.Slurm.Address, cfg.Slurm.Retries = "unix://"+t.TempDir()+"/none", 0
	var out bytes.Buffer
	p := &view.Page{Out: &out}
	var f *failure.Error
	if err := operate.PreviewRound(t.Context(), cfg, p, false); !errors.As(err, &f) || f.Code != failure.Absent {
		t.Errorf("without Slurm: %v", err)
	}
	if err := operate.Round(t.Context(), cfg, p); !errors.As(err, &f) || f.Code != failure.Misuse {
		t.Errorf("without a database: %v", err)
	}
	cfg.Database.URL = "postgresql://u@/f?host=" + t.TempDir()
	if err := operate.PreviewRound(t.Context(), cfg, p, false); !errors.As(err, &f) || f.Code != failure.Absent {
		t.Errorf("without PostgreSQL: %v", err)
	}
	if out.Len() > 0 {
		t.Errorf("it writes %s", &out)
	}
}
