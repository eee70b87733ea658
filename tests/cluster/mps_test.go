package testcluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// TestMPS holds what docs/parts-of-gpus.md says of gres/mps: one GPU of a node is in use by it at a time, the first idle one, by jobs of any users; the
// other is a whole GPU for others. More than the count of a GPU waits, and whole GPUs beside MPS are refused.
func TestMPS(t *testing.T) {
	for _, suite := range testcluster.Suites {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			c := testcluster.ForTest(t, testcluster.Options{Suite: suite, Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 1, Model: "v100", GPUs: 2, MPS: 200}}})
			ctx := t.Context()
			wait := func(id string, condition func(testcluster.Job) bool) {
				t.Helper()
				if _, err := c.WaitJob(ctx, id, time.Minute, condition); err != nil {
					t.Fatal(err)
				}
			}
			submit := func(user, gres string) string {
				t.Helper()
				id, err := c.Sbatch(ctx, user, "#!/bin/bash\nsleep 600\n", "--gres="+gres)
				if err != nil {
					t.Fatal(err)
				}
				return id
			}
			start := func(user, gres string) string {
				t.Helper()
				id := submit(user, gres)
				wait(id, testcluster.InState("RUNNING"))
				return id
			}
			used := func(want string) {
				t.Helper()
				soon(t, time.Minute, func() error {
					out, err := c.Exec(ctx, "root", "scontrol", "--oneliner", "--details", "show", "node", "v1")
					if err == nil && !strings.Contains(out, want) {
						err = fmt.Errorf("the node shows %s, want %s", out, want)
					}
					return err
				})
			}
			short := func(j testcluster.Job) bool { return j["JobState"] == "PENDING" && j["Reason"] == "Resources" }

			whole := start("carol", "gpu:1")
			start("alice", "mps:50")
			used("/100,50/100)") // Slurm 26.05 writes -/100 for the GPU in whole use
			if _, err := c.Exec(ctx, "root", "scancel", whole); err != nil {
				t.Fatal(err)
			}
			wait(whole, testcluster.InState("CANCELLED"))
			start("bob", "mps:v100:20")
			used("mps:v100:70(0/100,70/100)")
			more := submit("alice", "mps:60")
			wait(more, short)
			start("carol", "gpu:1")
			used("gpu:v100:1(IDX:0)")
			for _, user := range []string{"alice", "bob", "carol"} {
				if _, err := c.Exec(ctx, "root", "scancel", "--user="+user); err != nil {
					t.Fatal(err)
				}
			}
			used("mps:v100:0(0/100,0/100)")
			wait(submit("alice", "mps:150"), short)
			if id, err := c.Sbatch(ctx, "bob", "#!/bin/bash\n", "--gres=gpu:1,mps:50"); err == nil || !strings.Contains(err.Error(), "Invalid generic resource") {
				t.Errorf("a GPU beside MPS: job %q, %v", id, err)
			}
		})
	}
}
