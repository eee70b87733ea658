package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// No more GPUs are taken from running jobs than stop.per_hour allows, whatever is due to the tenant that waits, and its jobs are told so.
func TestStopsPerHour(t *testing.T) {
	o := testcluster.Options{Accounts: tenants(1, 1), Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		const allowed = 2
		r.settings.StopsPerHour = cluster.StopsPerHour{Site: 100 * allowed / 8}
		r.govern()
		submit := func(user, account string) (ids []string) {
			for range 8 {
				ids = append(ids, r.submit(user, sleeps(3600), "-A", account, "--gres=gpu:1"))
			}
			return ids
		}
		held := submit("alice", "nlp")
		for _, id := range held {
			r.waitState(id, time.Minute, "RUNNING")
		}
		submit("bob", "vision")
		told := func() bool {
			return slices.ContainsFunc(r.plan().Statuses, func(s cluster.JobStatus) bool { return s.Reason.Code == cluster.ReasonStops && s.Reason.Until > 0 })
		}
		r.until("as many GPUs as may be are taken, and a job that waits for more is told so", 3*time.Minute, func() bool {
			return r.count(cluster.Reclaim, "") >= allowed && told()
		})
		r.goesOn(50, 3*time.Minute) // two terms and more
		stopped := 0
		for _, id := range held {
			if j, err := r.Job(r.ctx(), id); err != nil || j["Restarts"] != "0" {
				stopped++
			}
		}
		if n := r.count(cluster.Reclaim, ""); n != allowed || stopped != allowed {
			t.Errorf("%d leases were ended and %d jobs requeued within minutes, want %d", n, stopped, allowed)
		}
	})
}
