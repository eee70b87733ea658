package baseline_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Nothing is lent: a tenant has at most its quota, whatever is idle.
func TestQuotaStaticLendsNothing(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "quota-static", baseline.Options{}), simtest.V100s(1, 8), "a", "b")
	w.SetShares("a", 3) // six GPUs of eight
	var ids []cluster.JobID
	for range 3 {
		ids = append(ids, w.Queue("a", 3, hour, nil))
	}
	w.Run(minute)
	w.WantRunning("the third is beyond the quota", map[cluster.JobID]bool{ids[0]: true, ids[1]: true, ids[2]: false})
	own := w.Queue("b", 2, hour, nil)
	w.Run(minute)
	w.WantRunning("what was not lent is there for its owner", map[cluster.JobID]bool{own: true})
}

// A job larger than its tenant's quota runs when the tenant has no other job; later jobs that fit
// overtake it.
func TestQuotaStaticServesTheOversized(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "quota-static", baseline.Options{}), simtest.V100s(1, 8), "a", "b")
	w.Queue("a", 2, hour, nil)
	big := w.Queue("a", 6, hour, nil)
	small := w.Queue("a", 2, hour, nil)
	w.Run(minute)
	w.WantRunning("while its tenant has others", map[cluster.JobID]bool{big: false, small: true})
	w.Run(hour)
	w.WantRunning("when they have ended", map[cluster.JobID]bool{big: true})
}

// GPUs that do not divide evenly are assigned by largest remainders: each has an owner.
func TestQuotasAreWholeGPUs(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "quota-static", baseline.Options{}), simtest.V100s(1, 8), "a", "b", "c")
	ids := map[cluster.JobID]bool{}
	for _, tenant := range []string{"a", "b", "c"} { // 2.67 each: 3, 3 and 2
		for i := range 3 {
			ids[w.Queue(tenant, 1, hour, nil)] = tenant != "c" || i < 2
		}
	}
	w.Run(minute)
	w.WantRunning("eight GPUs for three", ids)
}

// Idle GPUs are lent, and return when the owner needs them.
func TestQuotaLendPreemptsTheBorrower(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "quota-lend", baseline.Options{}), simtest.V100s(2, 4), "a", "b")
	var ids []cluster.JobID
	for range 4 {
		ids = append(ids, w.Queue("a", 2, simtest.Forever, nil))
	}
	w.Run(minute)
	w.WantRunning("it borrows the other half", map[cluster.JobID]bool{ids[0]: true, ids[1]: true, ids[2]: true, ids[3]: true})
	own := w.Queue("b", 2, simtest.Forever, nil)
	w.Run(2 * minute) // a notice
	w.WantRunning("one of the two that borrowed goes, none of the others", map[cluster.JobID]bool{ids[0]: true, ids[1]: true, own: true})
	if got := w.Job(ids[2]).Restarts + w.Job(ids[3]).Restarts; got != 1 {
		t.Errorf("%d jobs were preempted, want one", got)
	}
	more := w.Queue("b", 4, simtest.Forever, nil) // beyond the quota of b: it cannot preempt
	w.Run(hour)
	w.WantRunning("beyond its quota nobody preempts", map[cluster.JobID]bool{ids[0]: true, ids[1]: true, own: true, more: false})
}

// The preempted jobs are those that make space for the requested affinity: here one job of four
// GPUs, rather than the latest four on two nodes.
func TestQuotaLendPreemptsForAffinity(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "quota-lend", baseline.Options{}), simtest.V100s(3, 4), "a", "b")
	w.SetShares("b", 2) // eight GPUs of twelve
	w.Queue("a", 4, simtest.Forever, nil)
	whole := w.Queue("a", 4, simtest.Forever, nil)
	w.Run(minute)
	var own, late []cluster.JobID
	own = append(own, w.Queue("b", 2, simtest.Forever, nil))
	w.Run(minute)
	for range 2 {
		late = append(late, w.Queue("a", 1, simtest.Forever, nil))
	}
	w.Run(minute)
	own = append(own, w.Queue("b", 4, simtest.Forever, nil)) // in the quota, on one node
	w.Run(2 * minute)
	w.WantRunning("the job on a whole node goes", map[cluster.JobID]bool{own[0]: true, own[1]: true, whole: false, late[0]: true, late[1]: true})
}

// A borrower whose tenant gets within its quota becomes guaranteed.
func TestQuotaLendPromotes(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "quota-lend", baseline.Options{}), simtest.V100s(1, 4), "a", "b")
	w.Queue("a", 2, hour, nil)
	borrowed := w.Queue("a", 2, simtest.Forever, nil)
	w.Run(hour + minute)
	own := w.Queue("b", 2, simtest.Forever, nil)
	w.Run(minute)
	w.WantRunning("both are within their quotas", map[cluster.JobID]bool{borrowed: true, own: true})
	if got := w.Job(borrowed).Restarts; got != 0 {
		t.Errorf("the borrower was preempted %d times, want never", got)
	}
}

// A notice is withdrawn if the GPUs are no longer needed, or the borrower is within its quota.
func TestQuotaLendTakesNoticeBack(t *testing.T) {
	for _, promoted := range []bool{false, true} {
		w := simtest.Compare(t, simtest.Baseline(t, "quota-lend", baseline.Options{}), simtest.V100s(1, 4), "a", "b")
		first := w.Queue("a", 2, simtest.Forever, nil)
		borrowed := w.Queue("a", 2, simtest.Forever, func(w *sim.Work) { w.Saves = sim.AtEnd })
		w.Run(minute)
		own := w.Queue("b", 2, simtest.Forever, nil)
		w.Run(30 * second)
		if got := w.LeaseOf(borrowed).State; got != cluster.Noticed {
			t.Fatalf("the borrower's lease is %s, want it to be told", got)
		}
		if promoted {
			w.Cancel(first)
		} else {
			w.Cancel(own)
		}
		w.Run(10 * minute)
		if j, l := w.Job(borrowed), w.LeaseOf(borrowed); j.Restarts != 0 || l.State != cluster.Active {
			t.Errorf("promoted %v: the borrower was requeued %d times, its lease is %s; want it to run on", promoted, j.Restarts, l.State)
		}
	}
}

// The job with the notice is the one preempted, even if another becomes the better choice during
// the notice.
func TestQuotaLendKeepsToItsNotice(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "quota-lend", baseline.Options{}), simtest.V100s(3, 4), "a", "b")
	w.Queue("a", 4, simtest.Forever, nil)
	one := w.Queue("a", 1, simtest.Forever, nil)
	three := w.Queue("a", 3, simtest.Forever, nil) // beyond its six, beside the one
	told := w.Queue("a", 4, simtest.Forever, nil)
	w.Run(minute)
	own := w.Queue("b", 4, simtest.Forever, nil)
	w.Run(30 * second)
	w.Cancel(one) // now the three GPUs would be the better choice
	w.Run(45 * second)
	w.WantRunning("when the notice is over", map[cluster.JobID]bool{own: true, told: false, three: true})
}
