package lease_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
)

// ordered returns the keys of a tenant's candidates in the order in which they are chosen. Keys are the
// positions, from 1.
func ordered(newGPUs int, cs ...lease.Candidate) []cluster.JobKey {
	jobs := make([]int, len(cs))
	for i := range cs {
		cs[i].Key, jobs[i] = cluster.JobKey(i+1), i
		cs[i].GPUs = cmp.Or(cs[i].GPUs, cluster.WholeGPU)
	}
	new(lease.Sorter).Order(cs, jobs, cluster.Micro(newGPUs))
	keys := make([]cluster.JobKey, len(jobs))
	for at, i := range jobs {
		keys[at] = cs[i].Key
	}
	return keys
}

// ASTRAEA §5.2.1: "three types of jobs can be assigned with higher priority for selection". The settings for
// them appear here as fields of the candidates.
func TestPrioritisationsOf521(t *testing.T) {
	for _, c := range []struct {
		name    string
		newGPUs int
		jobs    []lease.Candidate
		want    []cluster.JobKey
	}{
		{"smallest rho first", 0, []lease.Candidate{{Priority: lease.Priority{Rho: 3}}, {Priority: lease.Priority{Rho: 1}}, {Priority: lease.Priority{Rho: 2}}}, []cluster.JobKey{2, 3, 1}},
		// "(1) If we prioritize the newly submitted jobs, these short jobs can be
		// scheduled and completed promptly"
		{"new jobs before served ones", 9, []lease.Candidate{{Priority: lease.Priority{Rho: 1}}, {Priority: lease.Priority{Rho: 0, New: true}}, {Priority: lease.Priority{Rho: 5, New: true}}}, []cluster.JobKey{2, 3, 1}},
		// "for at most a settable part of its tenant's grants": the other new jobs are placed as if they had
		// been served and due a term.
		{"new jobs, but not all of them", 2, []lease.Candidate{{Priority: lease.Priority{Rho: 1}}, {Priority: lease.Priority{New: true, Aged: 7}}, {Priority: lease.Priority{New: true, Aged: 7}}, {Priority: lease.Priority{New: true, Aged: 7}}, {Priority: lease.Priority{Rho: 9}}},
			[]cluster.JobKey{2, 3, 1, 4, 5}},
		{"one new job always, however large", 2, []lease.Candidate{{Priority: lease.Priority{Rho: 1}}, {GPUs: cluster.Micro(8), Priority: lease.Priority{New: true, Aged: 7}}}, []cluster.JobKey{2, 1}},
		{"a large new job does not hold up smaller ones", 4, []lease.Candidate{{GPUs: cluster.Micro(1), Priority: lease.Priority{New: true, Aged: 7}}, {GPUs: cluster.Micro(8), Priority: lease.Priority{New: true, Aged: 9}}, {GPUs: cluster.Micro(2), Priority: lease.Priority{New: true, Aged: 8}}},
			[]cluster.JobKey{1, 3, 2}},
		// "(3) Users may specify some important and urgent jobs"
		{"urgent jobs before all", 9, []lease.Candidate{{Priority: lease.Priority{Rho: 0, New: true}}, {Priority: lease.Priority{Rho: 9, Urgent: true}}, {Priority: lease.Priority{Rho: 0}}}, []cluster.JobKey{2, 1, 3}},
		{"urgent jobs among themselves", 9, []lease.Candidate{{Priority: lease.Priority{Rho: 9, Urgent: true}}, {Priority: lease.Priority{Rho: 1, Urgent: true}}}, []cluster.JobKey{2, 1}},
		// "A tie goes to the job that runs."
		{"a tie goes to the job that runs", 0, []lease.Candidate{{Priority: lease.Priority{Rho: 4}}, {Running: true, Priority: lease.Priority{Rho: 4}}}, []cluster.JobKey{2, 1}},
		{"then to the one that has waited longest", 0, []lease.Candidate{{Priority: lease.Priority{Rho: 4, First: 20}}, {Priority: lease.Priority{Rho: 4, First: 10}}}, []cluster.JobKey{2, 1}},
		{"then to the older key", 0, []lease.Candidate{{Priority: lease.Priority{Rho: 4, First: 10}}, {Priority: lease.Priority{Rho: 4, First: 10}}, {Priority: lease.Priority{Rho: 4, First: 10}}}, []cluster.JobKey{1, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ordered(c.newGPUs, c.jobs...); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Equal scores are never decided by chance: any input order gives the same output order.
func TestEqualScoresAreOrderedTheSameEveryTime(t *testing.T) {
	cs := make([]lease.Candidate, 50)
	for i := range cs {
		cs[i] = lease.Candidate{Key: cluster.JobKey(i + 1), GPUs: cluster.Micro(1), Priority: lease.Priority{Rho: 7, First: cluster.Instant(i % 3)}}
	}
	var want []int
	for turn := range len(cs) {
		jobs := make([]int, len(cs))
		for i := range jobs {
			jobs[i] = (i*7 + turn) % len(cs)
		}
		new(lease.Sorter).Order(cs, jobs, 0)
		if want == nil {
			want = jobs
		}
		if !slices.Equal(jobs, want) {
			t.Fatalf("turn %d: %v, before it was %v", turn, jobs, want)
		}
	}
}

// Whatever the order in which jobs come, in the order of the last round but for a few of them or in none, each comes behind those that
// an ordinary sort puts before it.
func TestOrderOfJobsThatAreNearlySorted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cs := make([]lease.Candidate, rapid.IntRange(0, 40).Draw(rt, "jobs"))
		jobs := make([]int, len(cs))
		for i := range cs {
			cs[i] = lease.Candidate{Key: cluster.JobKey(i + 1), Running: rapid.Bool().Draw(rt, "runs"), Priority: lease.Priority{
				Urgent: rapid.IntRange(0, 9).Draw(rt, "urgent") == 0, Rho: cluster.Rho(rapid.IntRange(0, 9).Draw(rt, "rho")), First: cluster.Instant(rapid.IntRange(0, 3).Draw(rt, "first"))}}
			jobs[i] = i
		}
		before := func(a, b int) int {
			x, y := &cs[a], &cs[b]
			switch {
			case x.Priority.Urgent != y.Priority.Urgent:
				return map[bool]int{true: -1, false: 1}[x.Priority.Urgent]
			case x.Priority.Rho != y.Priority.Rho:
				return cmp.Compare(x.Priority.Rho, y.Priority.Rho)
			case x.Running != y.Running:
				return map[bool]int{true: -1, false: 1}[x.Running]
			}
			return cmp.Or(cmp.Compare(x.Priority.First, y.Priority.First), cmp.Compare(x.Key, y.Key))
		}
		want := slices.Clone(jobs)
		slices.SortFunc(want, before)
		if rapid.Bool().Draw(rt, "nearly sorted") {
			copy(jobs, want)
		}
		for range rapid.IntRange(0, 5).Draw(rt, "moved") {
			if n := len(jobs); n > 0 {
				a, b := rapid.IntRange(0, n-1).Draw(rt, "from"), rapid.IntRange(0, n-1).Draw(rt, "to")
				x := jobs[a]
				jobs = slices.Insert(slices.Delete(jobs, a, a+1), b, x)
			}
		}
		if new(lease.Sorter).Order(cs, jobs, 0); !slices.Equal(jobs, want) {
			rt.Fatalf("%v, want %v", jobs, want)
		}
	})
}

// "Terms end on a grid that all leases of a pool share; a grant in
// between gets a first lease to the next boundary, stretched by one term if that
// is shorter than the minimum lease."
func TestNextEndIsOnTheGrid(t *testing.T) {
	const m = cluster.Minute
	s := &cluster.Settings{Term: 15 * m, MinLease: 5 * m}
	for _, c := range []struct{ at, want cluster.Span }{
		{0, 15 * m},        // on a boundary: a whole term
		{1, 15 * m},        // just after
		{10 * m, 15 * m},   // exactly the minimum lease
		{10*m + 1, 30 * m}, // stretched
		{15*m - 1, 30 * m},
		{15 * m, 30 * m},
	} {
		if got := lease.Next(cluster.Instant(c.at), s); got != cluster.Instant(c.want) {
			t.Errorf("a lease from %s ends at %s, want %s", c.at, cluster.Span(got), c.want)
		}
	}
	s.MinLease = 40 * m // longer than a term
	if got := lease.Next(cluster.Instant(20*m), s); got.Sub(cluster.Instant(20*m)) < s.MinLease {
		t.Errorf("a lease of %s is shorter than the minimum of %s", got.Sub(cluster.Instant(20*m)), s.MinLease)
	}
}
