package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// swings are the jobs of docs/slurm-preemption.md: a tenant submits so many of one GPU, then another one the same; none of them saves. slower is
// by how much the simulator's exempt time is longer.
const (
	swingJobs = 60
	swingRuns = 240 * time.Second
	slower    = 15
)

// swung is what came of the jobs of both tenants.
type swung struct {
	gpuTime   [2]float64 // any unit
	preempted [2]int     // times that a job of the tenant lost its GPU
	ended     int
}

// judge fails unless both tenants had about half, by taking each other's GPUs, and hardly any job ended.
func (s swung) judge(t *testing.T, where string) {
	t.Helper()
	first := 100 * s.gpuTime[0] / (s.gpuTime[0] + s.gpuTime[1])
	t.Logf("%s: the first tenant had %.0f %% of the GPU time; %d and %d preemptions; %d of %d jobs ended", where, first, s.preempted[0], s.preempted[1], s.ended, 2*swingJobs)
	if first < 25 || first > 75 {
		t.Errorf("%s: the first tenant had %.0f %% of the GPU time, want about half", where, first)
	}
	if min(s.preempted[0], s.preempted[1]) < 12 {
		t.Errorf("%s: %v preemptions, want waves of 16", where, s.preempted)
	}
	if s.ended > swingJobs/10 {
		t.Errorf("%s: %d jobs ended", where, s.ended)
	}
}

// The configuration of the page, with its exempt time of 15 minutes as one, does what the page says of it; so does the simulator's
// slurm-preempt with the same jobs. The doctor says that fairlease only observes such a partition.
func TestSlurmsOwnPreemptionSwings(t *testing.T) {
	page, err := os.ReadFile("../../docs/slurm-preemption.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "\n```\n")
	block, _, found := strings.Cut(block, "```\n")
	conf := strings.Replace(block, "PreemptExemptTime=00:15:00", "PreemptExemptTime=00:01:00", 1)
	if !found || conf == block {
		t.Fatalf("the page's configuration is not read: %q", block)
	}
	conf += "PriorityCalcPeriod=00:01:00\nPriorityDecayHalfLife=00:05:00\n"
	o := testcluster.Options{ExtraConf: conf, Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 4, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		if out, _ := r.fairlease(r.configure(""), "doctor"); !strings.Contains(out, "partition gpu: Slurm may requeue its jobs of QOS normal for others of that QOS") ||
			!strings.Contains(out, "the daemon only observes this partition") || !strings.Contains(out, "WITHIN out of PreemptMode") {
			t.Errorf("doctor does not warn of Slurm's preemption:\n%s", out)
		}
		for range swingJobs {
			r.submit("alice", sleeps(int(swingRuns.Seconds())), "-A", "nlp", "--gres=gpu:1")
		}
		r.until("the first tenant holds all GPUs", 3*time.Minute, func() bool { return r.running("nlp") == 16 })
		began := time.Now()
		for range swingJobs {
			r.submit("bob", sleeps(int(swingRuns.Seconds())), "-A", "vision", "--gres=gpu:1")
		}
		r.until("all GPUs go to the second tenant", 6*time.Minute, func() bool { return r.running("vision") >= 12 })
		r.until("all GPUs go back", 6*time.Minute, func() bool { return r.running("nlp") >= 12 })
		r.until("a job could have ended", 6*time.Minute, func() bool { return time.Since(began) > swingRuns+10*time.Second })
		simulatedSwings(t, time.Since(began)).judge(t, "simulated")
		r.until("slurmdbd has the preemptions", 3*time.Minute, func() bool { s := r.swung(); return min(s.preempted[0], s.preempted[1]) >= 12 })
		r.swung().judge(t, "Slurm")
	})
}

// swung gives what slurmdbd has of all attempts.
func (r *rig) swung() (out swung) {
	r.t.Helper()
	text, err := r.Exec(r.ctx(), "root", "sacct", "-a", "-D", "-X", "-n", "-P", "-S", "now-1hour", "-o", "account,state,elapsedraw")
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 3 {
			continue
		}
		tenant := 0
		if f[0] == "vision" {
			tenant = 1
		}
		seconds, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			r.t.Fatalf("sacct says %q", line)
		}
		out.gpuTime[tenant] += seconds
		switch f[1] {
		case "PREEMPTED":
			out.preempted[tenant]++
		case "COMPLETED":
			out.ended++
		}
	}
	return out
}

// simulatedSwings gives what the simulator's slurm-preempt makes of the same jobs in the same time, all of it so many times slower.
func simulatedSwings(t *testing.T, span time.Duration) (out swung) {
	t.Helper()
	s, err := baseline.New("slurm-preempt", baseline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 4, 4), "nlp", "vision")
	w.Loop.Decide, w.Gate = s.Decide, w.Settings.GateTTL
	var ids [2][]cluster.JobID
	for k, tenant := range []string{"nlp", "vision"} {
		for range swingJobs {
			ids[k] = append(ids[k], w.Virtual.Submit(sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Request: simtest.Gang(1),
				Runs: slower * cluster.SpanOf(swingRuns), Saves: sim.Never}))
		}
		w.Run(cluster.Minute)
	}
	w.Run(slower * cluster.SpanOf(span))
	for k := range ids {
		for _, id := range ids[k] {
			out.gpuTime[k] += w.Alloc(id).Hours()
			out.preempted[k] += w.Job(id).Restarts
			if w.Job(id).State == cluster.Done {
				out.ended++
			}
		}
	}
	return out
}
