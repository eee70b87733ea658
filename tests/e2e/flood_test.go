package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// usualStart is within what time a grant usually starts its job (sidecar/engine/eligible/unstarted.go).
const usualStart = 10 * cluster.Second

// A flood of jobs that Slurm does not start, for a reason that fairlease learns only from failed grants: the other tenant is
// back on all GPUs in seconds, and stays there. When the limit is lifted the flood gets its share.
//
// The bound on the first round, from the submission until the tenant is back on all GPUs, follows from docs/SEMANTICS.md, "Grants that
// do not start". Only the tenant's jobs run, so it loses the GPU time in which GPUs are idle. Before the first grant has told its
// reason, a burst may get all that the flood is due: half of the GPUs. Each of these grants ends within lease.grant_timeout. Then one
// probe at a time stands, for lease.grant_timeout too. And each GPU changes hands twice, to the flood and back, which usually takes up
// to usualStart each time. Afterwards only probes cost GPU time.
func TestAFloodOfJobsThatSlurmDoesNotStart(t *testing.T) {
	o := testcluster.Options{QOS: []testcluster.QOS{{Name: "tight"}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		limit := func(value string) {
			t.Helper()
			if _, err := r.Exec(r.ctx(), "root", "sacctmgr", "-i", "modify", "qos", "tight", "set", "GrpTRESRunMins=cpu="+value); err != nil {
				t.Fatal(err)
			}
		}
		limit("1")
		var honest []string
		for range 16 {
			honest = append(honest, r.submit("bob", sleeps(600), "-A", "vision", "--gres=gpu:1"))
		}
		r.govern()
		r.until("the honest tenant has all GPUs", time.Minute, func() bool { return r.holds("vision") == 16 })
		submitted := r.plan()
		flood := r.submit("alice", sleeps(600), "-A", "nlp", "--gres=gpu:1", "-q", "tight", "--array=0-999")
		r.until("a grant was taken back", 90*time.Second, func() bool { return r.count(cluster.RevokeGrant, "") > 0 })
		var back cluster.Plan
		r.until("the honest tenant has all GPUs again", time.Minute, func() bool {
			back = r.plan()
			return held(back, "vision") == 16
		})
		probe := cluster.Times(1, r.settings.GrantTimeout)
		lost, whole := idle(submitted, back)
		most := cluster.Times(8, r.settings.GrantTimeout+2*usualStart) + probe
		t.Logf("until the honest tenant was back, %v after the submission, it lost %.1f GPU-s of %.1f; the bound is %.1f",
			back.At.Sub(submitted.At).Duration(), float64(lost)/1000, float64(whole)/1000, float64(most)/1000)
		if lost > most+whole/100 {
			t.Errorf("the honest tenant lost %d GPU-ms of %d until it was back, want at most %d", lost, whole, most)
		}
		before, since := r.count(cluster.Grant, ""), time.Now()
		had, _ := r.used("vision")
		r.until("thirty seconds are booked", 90*time.Second, func() bool { return r.plan().At.Time().After(since.Add(30 * time.Second)) })
		has, _ := r.used("vision")
		whole = cluster.Times(16, cluster.SpanOf(r.plan().At.Time().Sub(since)))
		lost = whole - (has - had)
		t.Logf("later it lost %.1f GPU-s of %.1f", float64(lost)/1000, float64(whole)/1000)
		if lost > probe+whole/100 {
			t.Errorf("the honest tenant lost %d GPU-ms of %d, want at most a probe's for lease.grant_timeout", lost, whole)
		}
		if n := r.count(cluster.Grant, "") - before; n > 2 {
			t.Errorf("%d grants while no GPUs were idle", n)
		}
		var told cluster.Reason
		r.until("the flood's reason is Slurm's", 20*time.Second, func() bool {
			told = r.status(fmt.Sprint(flood, "_500"))
			return told.Code == cluster.ReasonRefused
		})
		if !strings.HasPrefix(told.Note, "QOSGrp") || told.For == 0 {
			t.Errorf("the reason is %+v, want Slurm's and the probe", told)
		}
		limit("-1")
		if _, err := r.Exec(r.ctx(), "root", append([]string{"scancel"}, honest[:8]...)...); err != nil {
			t.Fatal(err)
		}
		r.until("the flood has its share", 90*time.Second, func() bool { return r.holds("nlp") >= 7 })
	})
}

// idle gives the GPU time in which no job held a GPU between two rounds, and all GPU time.
func idle(from, to cluster.Plan) (idle, whole cluster.GPUTime) {
	for _, p := range to.State.Ledger.Pools {
		idle, whole = idle+p.Idle, whole+p.Capacity
	}
	for _, p := range from.State.Ledger.Pools {
		idle, whole = idle-p.Idle, whole-p.Capacity
	}
	return idle, whole
}
