package decisions

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// SnapshotsTo names the environment variable with the file to which tests on a real Slurm add what they decide on.
const SnapshotsTo = "FAIRLEASE_SNAPSHOTS"

// sample is of how many decisions on a real Slurm one is kept.
const sample = 7

// Sampled gives decide. Where SnapshotsTo names a file, every seventh snapshot is added to it, a line of JSON each:
// compressed, that is testdata/slurm.jsonl.gz.
func Sampled(t *testing.T, decide func(cluster.Snapshot) cluster.Plan) func(cluster.Snapshot) cluster.Plan {
	file := os.Getenv(SnapshotsTo)
	if file == "" {
		return decide
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	n := 0
	return func(s cluster.Snapshot) cluster.Plan {
		if n++; n%sample == 0 {
			line, err := json.Marshal(s)
			if err == nil {
				_, err = f.Write(append(line, '\n'))
			}
			if err != nil {
				t.Error(err)
			}
		}
		return decide(s)
	}
}
