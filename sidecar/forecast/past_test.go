package forecast

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ran gives jobs of a user with so many hours each.
func ran(user string, hours ...float64) (out []PastJob) {
	for i, h := range hours {
		out = append(out, PastJob{Tenant: "t", Submit: begin.Add(-cluster.Day + cluster.Span(i)), Ended: true, Ran: cluster.Span(h * float64(cluster.Hour)),
			Job: cluster.Job{User: user, Request: cluster.Request{Size: cluster.Whole(1)}, Partitions: []string{"gpu"}}})
	}
	return out
}

// totals draws run times in many runs, sorted.
func totals(p []PastJob, user string, already cluster.Span) []cluster.Span {
	h := learn(&Past{Jobs: p})
	like := h.like(kind{tenant: "t", user: user, gpus: 1})
	rng := rand.New(rand.NewPCG(1, 1))
	var out []cluster.Span
	for n := range 1000 {
		out = append(out, h.total(rng, mix(uint64(n)), &like, already))
	}
	slices.Sort(out)
	return out
}

// A user's next job is like its own last ones, and hardly like those of others.
func TestRunTimesOfTheUser(t *testing.T) {
	var p []PastJob
	for range 50 {
		p = append(append(p, ran("ann", 1)...), ran("bob", 10)...)
	}
	if x := totals(p, "ann", 0); x[0] != cluster.Hour || x[990] != cluster.Hour {
		t.Errorf("%v, %v", x[0], x[990])
	}
	// Nobody of a new user is known: half of all.
	x := totals(p, "eve", 0)
	short := 0
	for _, r := range x {
		if r == cluster.Hour {
			short++
		}
	}
	if short < 400 || short > 600 {
		t.Errorf("%d of 1000 are as short as ann's", short)
	}
}

// A job that has run for some time runs longer than that: as those did that outlived it.
func TestRunTimesOfOldJobs(t *testing.T) {
	var p []PastJob
	for range 30 {
		p = append(p, ran("ann", 0.5, 0.5, 0.5, 4)...)
	}
	if x := totals(p, "ann", cluster.Hour); x[0] != 4*cluster.Hour || x[999] != 4*cluster.Hour {
		t.Errorf("%v to %v", x[0], x[999])
	}
	// One that outlived all others: half of such jobs run as long again.
	x := totals(p, "ann", 8*cluster.Hour)
	if x[0] < 8*cluster.Hour || x[500] < 15*cluster.Hour || x[500] > 17*cluster.Hour {
		t.Errorf("%v, %v", x[0], x[500])
	}
}

// Jobs that still run count as longer than they have run. If most of a user's jobs are such, the median is beyond them.
func TestRunningJobsAreLonger(t *testing.T) {
	var p []PastJob
	for range 20 {
		x := ran("ann", 1, 5)
		x[0].Ended = false
		p = append(p, x...)
	}
	if x := totals(p, "ann", 0); x[0] != 5*cluster.Hour || x[900] != 5*cluster.Hour {
		t.Errorf("%v, %v", x[0], x[900])
	}
}

// Within a run, jobs of a user draw from few blocks: their mean differs more from run to run than that of independent draws.
func TestDrawsOfARunAreAlike(t *testing.T) {
	var p []PastJob
	for range 2 { // a user whose jobs change from week to week
		p = append(p, ran("ann", slices.Repeat([]float64{1}, 100)...)...)
		p = append(p, ran("ann", slices.Repeat([]float64{9}, 100)...)...)
	}
	for i := range p {
		p[i].Submit = begin.Add(-cluster.Day + cluster.Span(i))
	}
	h := learn(&Past{Jobs: p})
	like := h.like(kind{tenant: "t", user: "ann", gpus: 1})
	rng := rand.New(rand.NewPCG(1, 1))
	sum, squares := 0.0, 0.0
	const count, each = 300, 100
	for n := range count {
		mean := 0.0
		for range each {
			mean += float64(h.total(rng, mix(uint64(n)), &like, 0)) / float64(cluster.Hour) / each
		}
		sum, squares = sum+mean, squares+mean*mean
	}
	variance := squares/count - sum/count*sum/count
	if independent := 16. / each; variance < 3*independent {
		t.Errorf("the variance of the means is %.2f, that of independent draws %.2f", variance, independent)
	}
	if m := sum / count; m < 4.5 || m > 5.5 {
		t.Errorf("the mean is %.2f h", m)
	}
}

// The accounting history tells run times of jobs before the journal: the sum of a job's attempts. It adds no arrivals.
func TestRemember(t *testing.T) {
	p := Past{From: begin}
	attempt := func(id int64, from, to float64, outcome string) cluster.Attempt {
		return cluster.Attempt{ID: cluster.JobID{ID: id}, User: "ann", Submit: after(from), Start: after(from), End: after(to), GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, Outcome: outcome}
	}
	p.Remember([]cluster.Attempt{attempt(1, -9, -8, "REQUEUED"), attempt(1, -7, -5, "COMPLETED"), attempt(2, -4, -3, "NODE_FAIL"), attempt(3, -1, 1, "COMPLETED")})
	if len(p.Jobs) != 2 || p.Jobs[0].Ran != 3*cluster.Hour || !p.Jobs[0].Ended || p.Jobs[0].Submit != after(-9) || p.Jobs[0].Job.Request.Size.Devices != 2 || p.Jobs[1].Ended {
		t.Errorf("%+v", p.Jobs)
	}
}

// Arrivals repeat whole days of the past at the same time of the day.
func TestArrivals(t *testing.T) {
	w := newWorld(1, "t")
	p := Past{From: begin.Add(-3*cluster.Day - cluster.Hour)}
	for day := range 3 {
		x := ran("ann", 1)[0]
		x.Submit = begin.Add(-cluster.Span(day)*cluster.Day - 2*cluster.Hour)
		p.Jobs = append(p.Jobs, x)
	}
	s, h := survey(&w.snap, &w.plan), learn(&p)
	h.arrive(&p, s)
	if len(h.days) != 3 || h.day != cluster.Day {
		t.Fatalf("%d days of %v", len(h.days), h.day)
	}
	for d := range h.days {
		if len(h.days[d]) != 1 || h.days[d][0].at != 22*cluster.Hour {
			t.Errorf("day %d: %+v", d, h.days[d])
		}
	}
}
