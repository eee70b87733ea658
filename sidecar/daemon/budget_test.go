package daemon

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// idleOnly gives since when a tenant gets idle GPUs only, in the last round.
func (r *rig) idleOnly(tenant string) cluster.Instant {
	r.service.gate.enter()
	defer r.service.gate.leave()
	for _, t := range r.service.rounds.last.Tenants {
		if t.Name == tenant {
			return t.Budget.Since
		}
	}
	return 0
}

// The end of a week: each limit is told once, at the end of the budget the tenant gets idle GPUs only, a second daemon goes on where the
// first one ends, and the next week restores the tenant. The accounts are written every minute at most.
func TestBudgets(t *testing.T) {
	const text = "mode: act\ninterval: 1m\nlease: {term: 15m, min: 10m, notice: 5m}\nstop: {allowance: 0s, overhead: 0, total: 0}\nbudgets: {nlp: {gpu_hours: 80, per: week, zone: UTC, model_prices: {v100: 2}, at_end: idle-only}}\n"
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		toMidnight()
		for time.Now().UTC().Weekday() != time.Sunday {
			pass(24 * time.Hour)
		}
		pass(17 * time.Hour)
		on, live := newShared(), newLive()
		live.submit("nlp", 20, 4) // 16 GPU-hours at prices an hour
		r := start(t, "a", on, live, dir, text)
		told := func(n int, words string) {
			t.Helper()
			if lines := r.log.with(words); len(lines) != n {
				t.Errorf("%d events with %q, want %d", len(lines), words, n)
			}
		}
		pass(3*time.Hour + 50*time.Minute)
		told(0, "of its budget")
		pass(30 * time.Minute)
		told(1, "tenant nlp has used 80 % of its budget of 80 GPU-hours for the week from ")
		r.end(t)
		if a := on.book; len(a) != 1 || a[0].Told != 80 || a[0].Used < 64 || a[0].Used > 70 {
			t.Fatalf("after 80 %%: %+v", a)
		}
		if on.spends > 4*60+25+5 {
			t.Errorf("the accounts were written %d times in 4 h 20 m", on.spends)
		}
		r = start(t, "b", on, live, dir, text)
		pass(30 * time.Minute)
		told(0, "of its budget")
		if r.idleOnly("nlp") != 0 {
			t.Error("idle GPUs only before the end of the budget")
		}
		live.submit("vision", 20, 4)
		pass(70 * time.Minute)
		told(1, "tenant nlp has used 100 % of its budget of 80 GPU-hours")
		since := r.idleOnly("nlp")
		if since == 0 || since != on.book[0].Spent {
			t.Errorf("idle GPUs only since %s, in the journal %+v", since, on.book)
		}
		r.end(t)
		r = start(t, "c", on, live, dir, text)
		pass(20 * time.Minute)
		told(0, "of its budget")
		if r.idleOnly("nlp") != since {
			t.Errorf("idle GPUs only since %s, after a restart since %s", since, r.idleOnly("nlp"))
		}
		used := on.book[0].Used
		pass(35 * time.Minute)
		if got := on.book[0].Used - used; got > 0.1 {
			t.Errorf("%.2f GPU-hours were used while another tenant waited", got)
		}
		toMidnight()
		pass(20 * time.Minute)
		if r.idleOnly("nlp") != 0 || len(on.book) != 1 || on.book[0].Told != 0 || !strings.HasSuffix(on.book[0].Start.String(), "T00:00:00.000Z") {
			t.Errorf("in the next week: %+v", on.book)
		}
		r.end(t)
	})
}

// The submit plugin's list: what is left for new jobs falls with what a job uses and may still use, and rises again when it ends early. The list is there while the daemon
// acts and a budget refuses jobs, and is renewed in quiet rounds, too.
func TestBudgetsThatRefuse(t *testing.T) {
	const text = "mode: act\ninterval: 10s\nbudgets: {nlp: {gpu_hours: 1000, per: week, zone: UTC, model_prices: {v100: 2}, at_end: refuse}, vision: {gpu_hours: 10}}\n"
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		toMidnight()
		for time.Now().UTC().Weekday() != time.Monday {
			pass(24 * time.Hour)
		}
		pass(time.Hour)
		on, live := newShared(), newLive()
		live.members = []cluster.Member{{Tenant: "nlp", User: "ben"}, {Tenant: "nlp", User: "ann"}, {Tenant: "vision", User: "ann"}, {Tenant: "nlp", User: "ann"}, {Tenant: "vision", User: "eve"}}
		r := start(t, "a", on, live, dir, text)
		pass(time.Minute + 5*time.Second)
		check := func(left float64) {
			t.Helper()
			got, _ := r.heartbeat(budgetList)
			end := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 7)
			want := fmt.Sprintf("%d\nnlp nlp %.3f 1000 week %d %s *=2\n@ann nlp\n@ben nlp\n", time.Now().Unix()-5, left, end.Unix(), end.Format("2006-01-02T15:04"))
			if got != want {
				t.Errorf("the list is\n%swant\n%s", got, want)
			}
		}
		check(1000)
		live.mu.Lock()
		id := live.v.Submit(sim.Work{User: "nlp_user", Account: "nlp", Partition: "gpu", Request: simtest.Gang(4), Runs: 10 * cluster.Hour, Limit: 20 * cluster.Hour})
		live.mu.Unlock()
		pass(time.Minute)
		first := left(t, r)
		if first < 1000-4*20*2-0.1 || first > 1000-4*20*2+0.1 {
			t.Errorf("%.3f are left besides 4 GPUs for 20 h, at the price 2", first)
		}
		pass(time.Hour)
		if later := left(t, r); later < first-0.5 || later > first+0.5 {
			t.Errorf("%.3f are left after an hour, before it %.3f: time that was used is time that is not planned", later, first)
		}
		live.mu.Lock()
		live.v.Cancel(id)
		live.mu.Unlock()
		pass(time.Minute)
		if rest := left(t, r); rest < 1000-2*4*1.1 || rest > 1000-2*4*0.9 {
			t.Errorf("%.3f are left after an hour of 4 GPUs, at the price 2", rest)
		}
		r.end(t)
		if _, there := r.heartbeat(budgetList); there {
			t.Error("the list is still there")
		}
	})
}

// Mode canary on some jobs leaves the others alone, and the submit plugin cannot tell them apart: no budget refuses jobs then.
func TestBudgetsBesideCanaryJobs(t *testing.T) {
	for keys, listed := range map[string]bool{
		"mode: canary\ncanary: [gpu]\n":                              true,
		"mode: act\ncanary_jobs: {users: [ann]}\n":                   true,
		"mode: canary\ncanary_jobs: {users: [ann]}\n":                false,
		"mode: canary\ncanary_jobs: {accounts: [nlp]}\n":             false,
		"mode: canary\ncanary: [gpu]\ncanary_jobs: {percent: 99}\n":  false,
		"mode: canary\ncanary: [gpu]\ncanary_jobs: {percent: 100}\n": true,
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			pass(time.Hour) // into the period
			r := start(t, "a", newShared(), newLive(), dir, keys+"interval: 10s\nbudgets: {nlp: {gpu_hours: 1000, at_end: refuse}}\n")
			pass(time.Minute + 5*time.Second)
			if _, there := r.heartbeat(budgetList); there != listed {
				t.Errorf("%q: a list of budgets: %v", keys, there)
			}
			r.end(t)
		})
	}
}

// left gives what the submit plugin's list says is left of nlp's budget.
func left(t *testing.T, r *rig) (hours float64) {
	t.Helper()
	list, _ := r.heartbeat(budgetList)
	if _, line, _ := strings.Cut(list, "\n"); line != "" {
		if _, err := fmt.Sscanf(line, "nlp nlp %f", &hours); err != nil {
			t.Error(err)
		}
	}
	return hours
}
