package speeds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/round/roundtest"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

const (
	now    = roundtest.Now
	minute = cluster.Minute
	// The models of the site by place.
	k80, v100 = 0, 1
)

// learn learns speeds on a snapshot, with a policy that divides GPU models.
func learn(s *cluster.Snapshot, change ...func(in *round.Facts)) (*speeds.Speeds, *round.Facts) {
	s.Settings.Divide = "oef:coop"
	in, leases := roundtest.Facts(s)
	for _, f := range change {
		f(in)
	}
	return speeds.Learn(in, new(eligible.Nodes).Find(in, leases, nil), new(profile.Memory)), in
}

// waits returns a waiting job of kind x with rates on models, in steps a second.
func waits(id int64, rates ...cluster.Rate) cluster.Case {
	c := roundtest.Job(id, "bio", 2, cluster.Waiting)
	c.Job.Hints = &cluster.Hints{Kind: "x", Rates: rates}
	return c
}

// runs returns a job of kind x that has run on the v100 for so long.
func runs(id int64, ran cluster.Span) cluster.Case {
	c := roundtest.On(roundtest.Job(id, "bio", 2, cluster.Running), "a", "v100", 2)
	c.Job.Hints, c.Job.Start = &cluster.Hints{Kind: "x"}, now.Add(-ran)
	c.Record.Held, c.Record.HeldSince = []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, c.Job.Start
	return c
}

// Reports of a job that runs beside another one on its GPU are of the two, and those alone of itself, also where no policy divides GPU models.
func TestReportsBesideAnother(t *testing.T) {
	for _, divide := range []string{"oef:coop", ""} {
		for _, beside := range []bool{false, true} {
			var cases []cluster.Case
			for k, kind := range []string{"x", "y"} {
				c := roundtest.On(roundtest.Job(int64(k+1), "bio", 1, cluster.Running), "a", "v100", 1)
				c.Job.Hints, c.Job.Start = &cluster.Hints{Kind: kind}, now.Add(-cluster.Hour)
				c.Record.Slice = &cluster.Slice{Pair: &cluster.Pair{With: cluster.JobKey(2 - k), Beside: beside}}
				cases = append(cases, c)
			}
			s := roundtest.Snapshot(cases...)
			s.Settings.Divide, s.Settings.Slices = divide, &cluster.Slices{Quantum: minute, Pairs: true}
			for k, steps := range []float64{100, 700} {
				s.Progress = []cluster.Progress{{Job: s.Cases[0].Job.ID, Steps: steps, At: now.Add(minute * cluster.Span(k-1))}}
				in, leases := roundtest.Facts(s)
				s.Profiles, s.Paces = speeds.Learn(in, new(eligible.Nodes).Find(in, leases, nil), new(profile.Memory)).Profiles()
			}
			want := cluster.Kind("")
			if beside {
				want = cluster.KindOf("bio", "y")
			}
			if len(s.Profiles) != 1 || s.Profiles[0].Rate != 10 || s.Profiles[0].With != want {
				t.Errorf("%q, beside: %v: learnt %+v, want 10 steps a second with %q", divide, beside, s.Profiles, want)
			}
		}
	}
}

// Reports of a gang on more nodes than it needs are of such gangs, those on as few as it needs of itself, also where no policy divides GPU models.
func TestReportsOfScatteredGangs(t *testing.T) {
	for _, divide := range []string{"oef:coop", ""} {
		for _, c := range []struct {
			on   []int
			wait cluster.Span
			want cluster.Kind
		}{{[]int{2}, cluster.Hour, ""}, {[]int{1, 1}, cluster.Hour, cluster.Scattered}, {[]int{1, 1}, 0, ""}} {
			x := roundtest.On(roundtest.Job(1, "bio", 2, cluster.Running), "a", "v100", 2)
			x.Job.Hints, x.Job.Start = &cluster.Hints{Kind: "x"}, now.Add(-cluster.Hour)
			if len(c.on) == 2 {
				x.Job.Holds = append(x.Job.Holds, x.Job.Holds[0])
				x.Job.Holds[0].Size, x.Job.Holds[1].Size, x.Job.Holds[1].Node = cluster.Whole(1), cluster.Whole(1), "b"
			}
			s := roundtest.Snapshot(x)
			s.Settings.Divide, s.Settings.ScatterWait = divide, c.wait
			for k, steps := range []float64{100, 700} {
				s.Progress = []cluster.Progress{{Job: x.Job.ID, Steps: steps, At: now.Add(minute * cluster.Span(k-1))}}
				in, leases := roundtest.Facts(s)
				s.Profiles, s.Paces = speeds.Learn(in, new(eligible.Nodes).Find(in, leases, nil), new(profile.Memory)).Profiles()
			}
			if divide == "" && c.wait == 0 {
				if len(s.Profiles) > 0 {
					t.Errorf("learnt %+v, and nobody asks for it", s.Profiles)
				}
				continue
			}
			if len(s.Profiles) != 1 || s.Profiles[0].Rate != 10 || s.Profiles[0].With != c.want {
				t.Errorf("%q, on %v: learnt %+v, want 10 steps a second with %q", divide, c.on, s.Profiles, c.want)
			}
		}
	}
}

func rate(model string, steps float64) cluster.Rate { return cluster.Rate{Model: model, Rate: steps} }

// values returns the speeds of a job by pool.
func values(x *speeds.Speeds, i int) (out [2]float64) {
	for p, s := range x.Speedups(i) {
		out[p] = s.Value
	}
	return out
}

// Jobs declare rates for their own kind. Those that do not count are said, in the job's first round.
func TestDeclaredRates(t *testing.T) {
	many := func(n int) (out []cluster.Case) {
		for i := range n {
			c := waits(int64(i), rate("k80", 1))
			c.Job.Hints.Kind = fmt.Sprintf("x%d", i)
			out = append(out, c)
		}
		return out
	}
	for _, c := range []struct {
		name   string
		cases  []cluster.Case
		change func(s *cluster.Snapshot)
		want   [2]float64 // of the last job
		events []string   // a part of each
	}{
		{"none are", []cluster.Case{waits(7)}, nil, [2]float64{1, 1}, nil},
		{"three times as fast", []cluster.Case{waits(7, rate("k80", 2), rate("v100", 6))}, nil, [2]float64{1, 3}, nil},
		{"jobs of a kind share them", []cluster.Case{waits(7, rate("k80", 2), rate("v100", 6)), waits(8)}, nil, [2]float64{1, 3}, nil},
		{"the last one counts", []cluster.Case{waits(7, rate("k80", 2), rate("v100", 6)), waits(8, rate("v100", 8))}, nil, [2]float64{1, 4}, nil},
		{"the administrator's count more", []cluster.Case{waits(7, rate("k80", 2), rate("v100", 6))}, func(s *cluster.Snapshot) {
			s.Declared = []cluster.Profile{{Kind: "bio/x", Model: "v100", Gang: 2, Rate: 10, Source: cluster.Declared}}
		}, [2]float64{1, 5}, nil},
		{"those of another tenant's kind do not count", []cluster.Case{waits(7, rate("k80", 2), rate("v100", 6)), waits(8)}, func(s *cluster.Snapshot) { s.Cases[0].Record.Tenant = "nlp" }, [2]float64{1, 1}, nil},
		{"those of an ended job do not count", []cluster.Case{waits(7, rate("k80", 2), rate("v100", 6)), waits(8)}, func(s *cluster.Snapshot) { s.Cases[0].Job.State = cluster.Done }, [2]float64{1, 1}, nil},
		{"the cluster lacks the models", []cluster.Case{waits(7, rate("a", 1), rate("b", 1), rate("c", 1), rate("d", 1))}, nil, [2]float64{1, 1},
			[]string{"ignored hints: steps/s.a, steps/s.b, steps/s.c and 1 more: the cluster has no such GPUs; it has k80, v100"}},
		{"the cluster lacks three models", []cluster.Case{waits(7, rate("a", 1), rate("b", 1), rate("c", 1))}, nil, [2]float64{1, 1}, []string{"steps/s.a, steps/s.b, steps/s.c: the"}},
		{"it is not its first round", []cluster.Case{waits(7, rate("a", 1))}, func(s *cluster.Snapshot) { s.Cases[0].Record.ChargedTo = 1 }, [2]float64{1, 1}, nil},
		{"its hints are wrong", []cluster.Case{waits(7, rate("a", 1))}, func(s *cluster.Snapshot) { s.Cases[0].Job.Hints.Wrong = []string{"what=ever"} }, [2]float64{1, 1}, []string{"ignored hints: what=ever; steps/s.a"}},
		{"the administrator's are wrong", []cluster.Case{waits(7)}, func(s *cluster.Snapshot) {
			s.Declared = []cluster.Profile{{Kind: "bio/x", Model: "v100", Gang: 0, Rate: 10}}
		}, [2]float64{1, 1}, []string{""}},
		{"a user declares as many as may be", append(many(127), waits(500, rate("v100", 3))), nil, [2]float64{1, 1}, nil},
		{"a user declares one more", append(many(128), waits(500, rate("v100", 3))), nil, [2]float64{1, 1}, []string{"1 rates: those of ann's earlier jobs are 128"}},
		{"another user does", append(many(128), waits(500, rate("v100", 3))), func(s *cluster.Snapshot) { s.Cases[128].Job.User = "bob" }, [2]float64{1, 1}, nil},
	} {
		s := roundtest.Snapshot(c.cases...)
		if c.change != nil {
			c.change(s)
		}
		x, _ := learn(s)
		if got := values(x, len(c.cases)-1); got != c.want {
			t.Errorf("%s: speeds %v, want %v", c.name, got, c.want)
		}
		events := x.News().Events
		for k := range max(len(events), len(c.events)) {
			if k >= len(events) || k >= len(c.events) || !strings.Contains(events[k].Text, c.events[k]) {
				t.Errorf("%s: events %+v, want %q", c.name, events, c.events)
				break
			}
		}
	}
}

// Without a policy nothing is learnt, and mistakes in hints are said all the same.
func TestWithoutAPolicy(t *testing.T) {
	s := roundtest.Snapshot(waits(7, rate("k80", 1)), waits(8), waits(9))
	s.Cases[0].Job.Hints.Wrong, s.Cases[1].Job.Hints.Wrong, s.Cases[1].Record.ChargedTo = []string{"a"}, []string{"b"}, 1
	s.Cases[2].Job.Hints.Wrong, s.Cases[2].Gone = []string{"c"}, true
	s.Completions = []cluster.Completion{{Kind: "bio/y"}}
	in, leases := roundtest.Facts(s)
	x := speeds.Learn(in, new(eligible.Nodes).Find(in, leases, nil), new(profile.Memory))
	completions, _ := x.Evidence()
	if e := x.News().Events; len(e) != 1 || e[0].Text != "ignored hints: a" || e[0].Job != 1 || x.Book != nil || x.Faster() != nil || len(completions) != 1 {
		t.Errorf("events %+v, completions %v", e, completions)
	}
}

// Reports of running jobs that hold one model measure their kind there.
func TestReports(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		seen   bool
	}{
		{"it runs", func(*cluster.Snapshot) {}, true},
		{"it is suspended", func(s *cluster.Snapshot) { s.Cases[0].Job.State = cluster.Suspended }, false},
		{"it holds two models", func(s *cluster.Snapshot) {
			s.Cases[0].Job.Holds = append(s.Cases[0].Job.Holds, cluster.Holding{Node: "b", Model: "k80", Size: cluster.Whole(1)})
		}, false},
		{"it holds nothing", func(s *cluster.Snapshot) { s.Cases[0].Job.Holds = nil }, false},
		{"it is of no tenant", func(s *cluster.Snapshot) { s.Cases[0].Record.Tenant = "" }, false},
		{"it cleans up", func(s *cluster.Snapshot) { s.Cases[0].Job.State = cluster.Completing }, false},
		{"the report is of another job", func(s *cluster.Snapshot) { s.Progress[0].Job.ID++; s.Progress[1].Job.ID++ }, false},
	} {
		s := roundtest.Snapshot(runs(7, cluster.Hour))
		id := s.Cases[0].Job.ID
		s.Progress = []cluster.Progress{{Job: id, Steps: 100, At: now.Add(-10 * minute)}, {Job: id, Steps: 700, At: now}}
		c.change(s)
		x, _ := learn(s)
		if _, paces := x.Profiles(); (len(paces) > 0) != c.seen {
			t.Errorf("%s: paces %+v", c.name, paces)
		}
	}
}

// The work that is left is that of the steps that a job declares, else the rest of its time limit on the fastest model.
func TestWorkLeft(t *testing.T) {
	const hour, month = 3600.0, 30 * 24 * 3600.0
	known := []cluster.Rate{rate("k80", 2), rate("v100", 6)}
	for _, c := range []struct {
		name   string
		job    cluster.Case
		change func(s *cluster.Snapshot)
		want   float64 // GPU-seconds of two GPUs of k80
	}{
		{"nothing is known", waits(7), nil, 2 * month},
		{"its time limit is", waits(7), func(s *cluster.Snapshot) { s.Cases[0].Job.Limit = cluster.Hour }, 2 * hour},
		{"and its speeds", waits(7, known...), func(s *cluster.Snapshot) { s.Cases[0].Job.Limit = cluster.Hour }, 2 * 3 * hour},
		{"half an hour of its limit is left", runs(7, 30*minute), func(s *cluster.Snapshot) { s.Cases[0].Job.Limit = cluster.Hour }, 2 * hour / 2},
		{"nothing of its limit is left", runs(7, 2*cluster.Hour), func(s *cluster.Snapshot) { s.Cases[0].Job.Limit = cluster.Hour }, 2 * 60},
		{"its earlier attempts used its limit", waits(7), func(s *cluster.Snapshot) {
			s.Cases[0].Record.UserLimit, s.Cases[0].Record.Ran = cluster.Hour, 40*minute
		}, 2 * 20 * 60},
		{"it declares its steps", waits(7, known...), func(s *cluster.Snapshot) { s.Cases[0].Job.Hints.Steps = 1200 }, 2 * 600},
		{"it declares its steps, and no speed", waits(7), func(s *cluster.Snapshot) { s.Cases[0].Job.Hints.Steps, s.Cases[0].Job.Limit = 1200, cluster.Hour }, 2 * hour},
		{"it declares a step", waits(7, known...), func(s *cluster.Snapshot) { s.Cases[0].Job.Hints.Steps = 1 }, 2},
		{"it asks for no GPUs", waits(7), func(s *cluster.Snapshot) {
			s.Cases[0].Job.Request.Size, s.Cases[0].Job.Limit = cluster.Whole(0), cluster.Hour
		}, hour},
	} {
		s := roundtest.Snapshot(c.job)
		if c.change != nil {
			c.change(s)
		}
		x, _ := learn(s)
		if got := x.Steps(0); got != c.want {
			t.Errorf("%s: %g GPU-seconds, want %g", c.name, got, c.want)
		}
	}
}

// Work that was done counts at the mean speed of the models that a job may use; new leases say how fast it is on theirs.
func TestWorkDone(t *testing.T) {
	s := roundtest.Snapshot(waits(7, rate("k80", 2), rate("v100", 6)), waits(8), waits(9), waits(10))
	for i := range s.Cases {
		s.Cases[i].Record.Alloc = 10_000
	}
	s.Cases[1].Job.Request.Model, s.Cases[2].Job.Request.Size = "v100", cluster.Whole(9)
	x, in := learn(s)
	for i, want := range []float64{10 * (1 + 3) / 2, 10 * 3, 0} {
		if got := x.Did(i); got != want {
			t.Errorf("job %d did %g GPU-seconds, want %g", i+1, got, want)
		}
	}
	for i, want := range [][]int64{{0, 2_000_000}, {-1_000_000, 2_000_000}, {-1_000_000, -1_000_000}} {
		if got := x.Faster()(i); !slices.Equal(got, want) {
			t.Errorf("job %d is faster by %v, want %v", i+1, got, want)
		}
	}
	records := slices.Clone(in.Records)
	x.Put(records, []*cluster.Lease{{State: cluster.Granted, Pool: "v100"}, {State: cluster.Active, Pool: "v100"}, nil, {State: cluster.Granted, Pool: "p100"}})
	for i, want := range []int64{2_000_000, 0, 0, 0} {
		if got := records[i].Extra.Faster; got != want {
			t.Errorf("job %d runs faster by %d, want %d", i+1, got, want)
		}
	}
}

// Run times of ended jobs are evidence of how fast their kind is, if it is known where the work was done.
func TestRunTimes(t *testing.T) {
	completed := func(s *cluster.Snapshot) {
		j := &s.Cases[0].Job
		j.State, j.Outcome, j.End = cluster.Done, "COMPLETED", now
	}
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		jobs   int // of kind x with two GPUs that were seen on v100
	}{
		{"it completed", completed, 1},
		{"it failed", func(s *cluster.Snapshot) { completed(s); s.Cases[0].Job.Outcome = "FAILED" }, 1},
		{"it goes on", func(*cluster.Snapshot) {}, 0},
		{"it is gone", func(s *cluster.Snapshot) { completed(s); s.Cases[0].Gone = true }, 0},
		{"it never began", func(s *cluster.Snapshot) { completed(s); s.Cases[0].Job.Start = 0 }, 0},
		{"it ended as it began", func(s *cluster.Snapshot) { completed(s); s.Cases[0].Job.End = s.Cases[0].Job.Start }, 0},
		{"it held two models", func(s *cluster.Snapshot) {
			completed(s)
			s.Cases[0].Record.Held = append(s.Cases[0].Record.Held, cluster.ModelSize{Model: "k80", Size: cluster.Whole(1)})
		}, 0},
		{"its end was seen before", func(s *cluster.Snapshot) { completed(s); s.Cases[0].Record.Done = now - 1 }, 0},
		{"run times do not count", func(s *cluster.Snapshot) { completed(s); s.Settings.NoCompletions = true }, 0},
		{"history tells it", func(s *cluster.Snapshot) {
			s.History = []cluster.Attempt{{ID: cluster.JobID{ID: 3}, Tenant: "bio", Kind: "x", GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, Outcome: "COMPLETED", Start: now.Add(-cluster.Hour), End: now}}
		}, 1},
		{"history tells of a requeue", func(s *cluster.Snapshot) {
			s.History = []cluster.Attempt{{ID: cluster.JobID{ID: 3}, Tenant: "bio", Kind: "x", GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, Outcome: "REQUEUED", Start: now.Add(-cluster.Hour), End: now}}
		}, 0},
		{"an attempt that no round saw", func(s *cluster.Snapshot) {
			s.Attempts = []cluster.Attempt{{ID: cluster.JobID{ID: 3}, Tenant: "bio", Kind: "x", GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, Outcome: "COMPLETED", Start: now.Add(-cluster.Hour), End: now}}
		}, 1},
		{"an attempt of a job that has a case", func(s *cluster.Snapshot) {
			s.Attempts = []cluster.Attempt{{ID: s.Cases[0].Job.ID, Tenant: "bio", Kind: "x", GPUs: []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, Outcome: "COMPLETED", Start: now.Add(-cluster.Hour), End: now}}
		}, 0},
	} {
		s := roundtest.Snapshot(runs(7, cluster.Hour))
		c.change(s)
		x, _ := learn(s, func(in *round.Facts) {
			if in.Records[0].Done = s.Cases[0].Record.Done; s.Cases[0].Job.State == cluster.Done && in.Records[0].Done == 0 {
				in.Records[0].Done = now
			}
		})
		completions, _ := x.Evidence()
		if len(completions) != c.jobs {
			t.Errorf("%s: completions %+v, want %d", c.name, completions, c.jobs)
		}
	}
}

// A job that was seen as it cleaned up has done its work in the attempt that was counted then.
func TestRunTimesOfJobsThatCleanUp(t *testing.T) {
	s := roundtest.Snapshot(runs(7, cluster.Hour))
	c := &s.Cases[0]
	c.Job.State, c.Job.Outcome, c.Job.End, c.Job.Had, c.Job.Holds = cluster.Done, "COMPLETED", now, c.Record.Held, nil
	c.Record.State, c.Record.Held, c.Record.Ran, c.Record.RanOn = cluster.Completing, nil, cluster.Hour, []cluster.ModelTime{{Model: "v100", Ran: cluster.Hour}}
	for _, restarts := range []int{0, 1} {
		s.Completions, c.Job.Restarts, c.Job.Declares = nil, restarts, cluster.Saving{Manner: cluster.SavesOnTerm}
		x, _ := learn(s, func(in *round.Facts) { in.Records[0].Done = now })
		completions, _ := x.Evidence()
		if want := (cluster.JobRun{Ran: []cluster.Span{cluster.Hour}, Done: true, Since: now.Add(-cluster.Hour)}); len(completions) != 1 || !cmp.Equal(completions[0].Jobs, []cluster.JobRun{want}) {
			t.Errorf("%d restarts: %+v, want %+v", restarts, completions, want)
		}
	}
}

// Run times of gangs on more nodes than they need are apart from those on as few as they need. Where no policy divides GPU models, types count from their first
// such job on.
func TestRunTimesOfScatteredGangs(t *testing.T) {
	known := []cluster.Completion{{Kind: "bio/x", Gang: 2, Models: []string{"v100 (scattered)"}, Rates: []cluster.RunRate{{}}, Jobs: []cluster.JobRun{{Ran: []cluster.Span{cluster.Hour}}}, At: now}}
	for _, c := range []struct {
		name      string
		scattered bool
		change    func(s *cluster.Snapshot)
		divides   string // the models on which it is known to have run where a policy divides them
		plain     string // and where none does
		chosen    bool
	}{
		{"together", false, func(*cluster.Snapshot) {}, "v100", "", false},
		{"together, of a type that was scattered", false, func(s *cluster.Snapshot) { s.Completions = known }, "v100, v100 (scattered)", "v100, v100 (scattered)", false},
		{"scattered", true, func(*cluster.Snapshot) {}, "v100 (scattered)", "v100 (scattered)", false},
		{"scattered by its user", true, func(s *cluster.Snapshot) { s.Cases[0].Job.Request.Nodes = 2 }, "v100 (scattered)", "v100 (scattered)", true},
		{"across switches", false, func(s *cluster.Snapshot) { s.Cases[0].Record.Across = true }, "v100 (across switches)", "v100 (across switches)", false},
		{"across switches, on nodes that its user wants", false, func(s *cluster.Snapshot) {
			s.Cases[0].Record.Across, s.Cases[0].Job.Request.Nodes = true, 2
		}, "v100 (across switches)", "v100 (across switches)", false},
		{"scattering does not matter", true, func(s *cluster.Snapshot) { s.Settings.ScatterWait = 0 }, "v100", "", false},
		{"run times do not count", true, func(s *cluster.Snapshot) { s.Settings.NoCompletions = true }, "", "", false},
		{"of one GPU", true, func(s *cluster.Snapshot) { s.Cases[0].Record.Held[0].Size = cluster.Whole(1) }, "v100 (scattered)", "", false},
	} {
		for _, divide := range []string{"oef:coop", ""} {
			s := roundtest.Snapshot(runs(7, cluster.Hour))
			s.Settings.Divide, s.Settings.ScatterWait = divide, cluster.Hour
			x := &s.Cases[0]
			x.Job.State, x.Job.Outcome, x.Job.End, x.Record.Scattered = cluster.Done, "COMPLETED", now, c.scattered
			c.change(s)
			in, leases := roundtest.Facts(s)
			in.Records[0].Done = now
			completions, _ := speeds.Learn(in, new(eligible.Nodes).Find(in, leases, nil), new(profile.Memory)).Evidence()
			got, want := "", map[bool]string{true: c.plain, false: c.divides}[divide == ""]
			for _, of := range completions {
				got = strings.Join(of.Models, ", ")
				if last := of.Jobs[len(of.Jobs)-1]; last.Chosen != c.chosen || !last.Done {
					t.Errorf("%s, %q: %+v", c.name, divide, last)
				}
			}
			if got != want {
				t.Errorf("%s, %q: run times on %q, want %q", c.name, divide, got, want)
			}
		}
	}
}

// A job that moved from more nodes than it needs to its fewest has run on both, also where no policy divides GPU models.
func TestRunTimesOfGangsThatMove(t *testing.T) {
	for _, divide := range []string{"oef:coop", ""} {
		s := roundtest.Snapshot(waits(7))
		s.Settings.Divide, s.Settings.ScatterWait = divide, cluster.Hour
		c := &s.Cases[0]
		c.Record.Held, c.Record.Scattered = []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, true
		look := func(change func(in *round.Facts)) (records []cluster.Record) {
			in, leases := roundtest.Facts(s)
			change(in)
			x := speeds.Learn(in, new(eligible.Nodes).Find(in, leases, nil), new(profile.Memory))
			s.Completions, _ = x.Evidence()
			records = slices.Clone(in.Records)
			x.Put(records, []*cluster.Lease{nil})
			return records
		}
		moved := runs(7, cluster.Hour)
		moved.Record = look(func(in *round.Facts) { in.Records[0].Ran = cluster.Hour })[0]
		moved.Record.Held = c.Record.Held
		if want := []cluster.ModelTime{{Model: "v100 (scattered)", Ran: cluster.Hour}}; !cmp.Equal(moved.Record.RanOn, want) {
			t.Fatalf("%q: it ran on %+v, want %+v", divide, moved.Record.RanOn, want)
		}
		s.Cases[0] = moved
		if moved.Record = look(func(*round.Facts) {})[0]; moved.Record.Scattered {
			t.Errorf("%q: it is scattered on one node", divide)
		}
		moved.Job.State, moved.Job.Outcome, moved.Job.End, moved.Job.Restarts, moved.Job.Declares = cluster.Done, "COMPLETED", now, 1, cluster.Saving{Manner: cluster.SavesOnTerm}
		s.Cases[0] = moved
		s.Completions = []cluster.Completion{{Kind: "bio/x", Gang: 2, Models: []string{"v100 (scattered)"}, Rates: []cluster.RunRate{{}}, Jobs: []cluster.JobRun{{Ran: []cluster.Span{cluster.Hour}}}, At: now}}
		look(func(in *round.Facts) { in.Records[0].Done = now })
		jobs := s.Completions[0].Jobs
		if last := jobs[len(jobs)-1]; !last.Done || !slices.Equal(last.Ran, []cluster.Span{cluster.Hour, cluster.Hour}) || last.Began != "v100 (scattered)" {
			t.Errorf("%q: %+v", divide, last)
		}
	}
}

// An attempt that a requeue ended adds to the run time on its model, which the record keeps.
func TestRequeues(t *testing.T) {
	for _, c := range []struct {
		name string
		was  []cluster.ModelTime
		held []cluster.ModelSize
		want []cluster.ModelTime
	}{
		{"the first", nil, []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, []cluster.ModelTime{{Model: "v100", Ran: 5 * minute}}},
		{"a further one there", []cluster.ModelTime{{Model: "v100", Ran: minute}}, []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, []cluster.ModelTime{{Model: "v100", Ran: 6 * minute}}},
		{"a further one elsewhere", []cluster.ModelTime{{Model: "k80", Ran: minute}}, []cluster.ModelSize{{Model: "v100", Size: cluster.Whole(2)}}, []cluster.ModelTime{{Model: "k80", Ran: minute}, {Model: "v100", Ran: 5 * minute}}},
		{"on several models", nil, []cluster.ModelSize{{Model: "k80", Size: cluster.Whole(1)}, {Model: "v100", Size: cluster.Whole(2)}}, []cluster.ModelTime{{Ran: 5 * minute}}},
	} {
		s := roundtest.Snapshot(waits(7))
		s.Cases[0].Record.Held, s.Cases[0].Record.Ran, s.Cases[0].Record.RanOn = c.held, minute, c.was
		x, in := learn(s, func(in *round.Facts) { in.Records[0].Ran = 6 * minute })
		records := slices.Clone(in.Records)
		x.Put(records, []*cluster.Lease{nil})
		if d := cmp.Diff(c.want, records[0].RanOn); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if d := cmp.Diff(c.was, s.Cases[0].Record.RanOn); d != "" {
			t.Errorf("%s: the snapshot has changed: %s", c.name, d)
		}
	}
}

// A job stays where it began for a day at most; a new one begins where the fewest of its kind were seen.
func TestHomes(t *testing.T) {
	seen := func(model string, n int) (out []cluster.Attempt) {
		for i := range n {
			out = append(out, cluster.Attempt{ID: cluster.JobID{ID: int64(1000 + i)}, Tenant: "bio", Kind: "x", GPUs: []cluster.ModelSize{{Model: model, Size: cluster.Whole(2)}}, Outcome: "FAILED", Start: now.Add(-cluster.Hour), End: now.Add(-minute)})
		}
		return out
	}
	for _, c := range []struct {
		name   string
		job    cluster.Case
		change func(s *cluster.Snapshot)
		want   int
	}{
		{"it is new", waits(7), nil, k80},
		{"some of its kind were seen there", waits(7), func(s *cluster.Snapshot) { s.History = seen("k80", 1) }, v100},
		{"it began", runs(7, cluster.Hour), nil, v100},
		{"it began a day ago", runs(7, cluster.Day), nil, v100},
		{"it began a millisecond before that", runs(7, cluster.Day+1), nil, -1},
		{"it ran elsewhere first", runs(7, cluster.Hour), func(s *cluster.Snapshot) {
			s.Cases[0].Record.RanOn = []cluster.ModelTime{{Model: "k80", Ran: cluster.Hour}}
		}, k80},
		{"both together took more than a day", runs(7, cluster.Hour), func(s *cluster.Snapshot) {
			s.Cases[0].Record.RanOn = []cluster.ModelTime{{Model: "k80", Ran: 23*cluster.Hour + 1}}
		}, -1},
		{"run times do not count", runs(7, cluster.Hour), func(s *cluster.Snapshot) { s.Settings.NoCompletions = true }, -1},
		{"nothing is estimated", runs(7, cluster.Hour), func(s *cluster.Snapshot) { s.Settings.NoEstimates = true }, -1},
		{"its kind reports", runs(7, cluster.Hour), func(s *cluster.Snapshot) {
			s.Profiles = []cluster.Profile{{Kind: "bio/x", Model: "k80", Gang: 2, Rate: 1, Source: cluster.Observed, Samples: 9}}
		}, -1},
		{"it is of no tenant", runs(7, cluster.Hour), func(s *cluster.Snapshot) { s.Cases[0].Record.Tenant = "" }, -1},
		{"it is larger than everything", waits(7), func(s *cluster.Snapshot) { s.Cases[0].Job.Request.Size = cluster.Whole(9) }, -1},
		{"enough were seen on both", waits(7), func(s *cluster.Snapshot) { s.History = append(seen("k80", 8), seen("v100", 8)...); number(s.History) }, -1},
		{"one more is let begin", waits(7), func(s *cluster.Snapshot) { s.History = append(seen("k80", 8), seen("v100", 7)...); number(s.History) }, v100},
	} {
		s := roundtest.Snapshot(c.job)
		if c.change != nil {
			c.change(s)
		}
		x, _ := learn(s)
		if got := x.Home(0); got != c.want {
			t.Errorf("%s: its home is %d, want %d", c.name, got, c.want)
		}
	}
}

// number gives attempts different jobs.
func number(list []cluster.Attempt) {
	for i := range list {
		list[i].ID.ID = int64(1000 + i)
	}
}

// Counters are taken once of each attempt, if they are of it and of its only model.
func TestCounters(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot)
		want   cluster.Instant // the attempt that was measured; 0 = none
	}{
		{"they are new", func(*cluster.Snapshot) {}, now.Add(-cluster.Hour)},
		{"they were taken", func(s *cluster.Snapshot) { s.Cases[0].Record.Measured = now.Add(-cluster.Hour) }, now.Add(-cluster.Hour)},
		{"they are of the attempt before", func(s *cluster.Snapshot) { s.Uses[0].Start-- }, 0},
		{"they are of another job", func(s *cluster.Snapshot) { s.Uses[0].Job.ID-- }, 0},
		{"it holds two models", func(s *cluster.Snapshot) {
			s.Cases[0].Job.Holds = append(s.Cases[0].Job.Holds, cluster.Holding{Node: "b", Model: "k80", Size: cluster.Whole(1)})
		}, 0},
		{"it cleans up", func(s *cluster.Snapshot) { s.Cases[0].Job.State = cluster.Completing }, 0},
		{"counters do not count", func(s *cluster.Snapshot) { s.Settings.NoCounters = true }, 0},
		{"they are too young to tell", func(s *cluster.Snapshot) { s.Uses[0].From = now }, 0},
	} {
		s := roundtest.Snapshot(runs(7, cluster.Hour))
		mean := func(v float64) cluster.Mean { return cluster.Mean{Value: v, Count: 3000} }
		s.Uses = []cluster.GPUUse{{Job: s.Cases[0].Job.ID, Model: "v100", Start: s.Cases[0].Job.Start, GPUs: 2, From: now.Add(-50 * minute), At: now, Util: mean(0.9), SM: mean(0.5), DRAM: mean(0.5), Tensor: mean(0.1), Power: mean(200), Clock: mean(1e9)}}
		c.change(s)
		x, in := learn(s)
		records := slices.Clone(in.Records)
		x.Put(records, []*cluster.Lease{nil})
		_, usages := x.Evidence()
		if news := c.want != 0 && s.Cases[0].Record.Measured == 0; records[0].Measured != c.want || (len(usages) > 0) != news {
			t.Errorf("%s: measured the attempt of %d, want %d; usages %+v", c.name, records[0].Measured, c.want, usages)
		}
	}
}
