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
		r.until("as many GPUs as may be are taken, and a job that waits for more is told so", 3*time.Minute, func() bool {
			return r.count(cluster.Reclaim, "") >= allowed && r.waitsForStops()
		})
		r.goesOn(50, 3*time.Minute) // two terms and more
		stopped := r.restarted(held)
		if n := r.count(cluster.Reclaim, ""); n != allowed || stopped != allowed {
			t.Errorf("%d leases were ended and %d jobs requeued within minutes, want %d", n, stopped, allowed)
		}
	})
}

// Of a tenant's and of a user's jobs no more are stopped than stop.per_hour_tenant and stop.per_hour_user allow; those of others still are. alice
// holds half of 12 GPUs, and three users of another tenant the other half, when a tenant comes that is due eight: alice's limit lets it have one, and
// the other tenant's two, one of each user at most.
func TestStopsPerHourOfTenantsAndUsers(t *testing.T) {
	users := []string{"carol", "dan", "eve"}
	o := testcluster.Options{Nodes: []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 6}}, Accounts: []testcluster.Account{
		{Name: "nlp", Shares: 1, Users: []string{"alice"}}, {Name: "third", Shares: 1, Users: users}, {Name: "vision", Shares: 4, Users: []string{"bob"}}}}
	onBoth(t, o, func(t *testing.T, r *rig) {
		r.settings.Term, r.settings.StopsPerHour = 10*cluster.Second, cluster.StopsPerHour{Tenant: 40, User: 25}
		r.govern()
		held := map[string][]string{} // by user
		submit := func(user, account string, jobs int) {
			for range jobs {
				held[user] = append(held[user], r.submit(user, sleeps(3600), "-A", account, "--gres=gpu:1"))
			}
		}
		submit("alice", "nlp", 6)
		for _, user := range users {
			submit(user, "third", 2)
		}
		r.until("all GPUs are held", time.Minute, func() bool { return r.holds("nlp") == 6 && r.holds("third") == 6 })
		submit("bob", "vision", 12)
		r.until("as many GPUs as may be are taken, and a job that waits for more is told so", 2*time.Minute, func() bool {
			return r.count(cluster.Reclaim, "") >= 3 && r.waitsForStops()
		})
		r.goesOn(20, 2*time.Minute) // two terms and more
		third, most := 0, 0
		for _, user := range users {
			n := r.restarted(held[user])
			third, most = third+n, max(most, n)
		}
		if alice, n := r.restarted(held["alice"]), r.count(cluster.Reclaim, ""); alice != 1 || third != 2 || most != 1 || n != 3 {
			t.Errorf("%d leases were ended; requeued were %d jobs of alice's, and %d of the other tenant's, at most %d of one user; want 3, 1, 2 and 1", n, alice, third, most)
		}
	})
}

// waitsForStops reports whether a job is told that it waits until more GPUs may be taken.
func (r *rig) waitsForStops() bool {
	return slices.ContainsFunc(r.plan().Statuses, func(s cluster.JobStatus) bool { return s.Reason.Code == cluster.ReasonStops && s.Reason.Until > 0 })
}

// restarted counts the jobs that are gone, or were requeued.
func (r *rig) restarted(ids []string) (n int) {
	for _, id := range ids {
		if j, err := r.Job(r.ctx(), id); err != nil || j["Restarts"] != "0" {
			n++
		}
	}
	return n
}
