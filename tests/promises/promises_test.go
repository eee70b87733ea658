package promises_test

import (
	"os"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/tests/promises"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Each preset keeps what it promises to each tenant, in drawn markets.
func TestPromises(t *testing.T) {
	for _, c := range promises.All {
		t.Run(c.Preset+", "+string(c.Promise), func(t *testing.T) {
			if row, _ := preset.Of(c.Preset); !lp.Available && (row.Solver || c.Promise != promises.Share) {
				t.Skip(lp.ErrNone)
			}
			worst, at := 1.0, uint64(0)
			for seed := range seeds.Of(t, seeds.Some(20, 100)) {
				if kept := c.Kept(c.Draw(seed)); kept < worst {
					worst, at = kept, seed
				}
			}
			if worst < 0.999 {
				t.Errorf("seed %d: a tenant has %.4f of its promise", at, worst)
			}
		})
	}
}

// The table in the docs promises the same, and nothing else.
func TestTheDocsPromiseThis(t *testing.T) {
	text, err := os.ReadFile("../../docs/heterogeneous-gpus.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Promises\n")
	table, _, _ = strings.Cut(table, "\n## ")
	columns := []promises.Promise{promises.Share, promises.Envy, promises.Lies, promises.Waste}
	says := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != len(columns)+3 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		for i, promise := range columns {
			if cell := strings.TrimSpace(cells[2+i]); cell != "" {
				says[strings.Trim(cells[1], " `")+", "+string(promise)] = cell
			}
		}
	}
	for _, c := range promises.All {
		want := "yes"
		switch {
		case c.In.OneType:
			want = "if each tenant has one job type"
		case c.In.AnyGPUs:
			want = "if all jobs can use all models"
		}
		name := c.Preset + ", " + string(c.Promise)
		if says[name] != want {
			t.Errorf("%s: the docs say %q, want %q", name, says[name], want)
		}
		delete(says, name)
	}
	for name, cell := range says {
		t.Errorf("%s: the docs say %q, and no test draws it", name, cell)
	}
}
