package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// talkative returns a snapshot of n jobs of one user, each with a type of its own, that declare rates on 60
// models. The cluster has four of these.
func talkative(n int) cluster.Snapshot {
	s := simtest.Crowd(n, 1)
	s.Settings.Divide, s.Settings.DivideJobs = "gavel:las", preset.OfJobs("gavel:las")
	for i := range s.Cases {
		var words strings.Builder
		fmt.Fprintf(&words, "kind=k%d", i)
		for m := range 56 {
			fmt.Fprintf(&words, ",steps/s.no%d=%d", m, 1+m)
		}
		for m, model := range []string{"a100", "h100", "k80", "v100"} {
			fmt.Fprintf(&words, ",steps/s.%s=%d", model, 1+i%7+m)
		}
		s.Cases[i].Job.Hints, s.Cases[i].Record.ChargedTo = cluster.ParseHints(words.String(), 0), 0
	}
	return s
}

// eventsOf returns the events of a job.
func eventsOf(p *cluster.Plan, key cluster.JobKey) (out []string) {
	for _, e := range p.Events {
		if e.Job == key && e.Kind == "profile" {
			out = append(out, e.Text)
		}
	}
	return out
}

// The rates of a user's jobs take no more than the user's limit, and displace no measurements. Rates of
// models that the cluster lacks are not kept, and their jobs are told once.
func TestAUsersWordsAreBounded(t *testing.T) {
	s := talkative(300)
	for i := 1; i < 32; i++ { // of these nothing is told: a user's events have a limit, too
		s.Cases[i].Job.Hints = cluster.ParseHints(fmt.Sprintf("kind=k%d,steps/s.a100=1,steps/s.h100=2,steps/s.k80=3,steps/s.v100=4", i), 0)
	}
	for i := range 512 {
		s.Profiles = append(s.Profiles, cluster.Profile{Kind: cluster.KindOf("t000", fmt.Sprintf("seen%03d", i)), Model: "v100", Gang: 1, Rate: 3,
			Source: cluster.Observed, Samples: 5, Spread: 0.1, At: 1})
	}
	p := engine.Decide(s)
	count, models := map[cluster.Source]int{}, map[string]bool{}
	for _, e := range p.State.Profiles {
		count[e.Source]++
		models[e.Model] = true
	}
	if count[cluster.Observed] != 512 || count[cluster.Declared] == 0 || count[cluster.Declared] > 128 || len(models) != 4 {
		t.Errorf("in the book are %v, of models %v; want all 512 that were observed, and 128 declared ones at most, of the cluster's models", count, models)
	}
	for _, k := range []int{0, 49} { // one within the limit, and one beyond it
		told := eventsOf(&p, s.Cases[k].Record.Key)
		if len(told) != 1 || !strings.Contains(told[0], "steps/s.no0, steps/s.no1, steps/s.no2 and 53 more: the cluster has no such GPUs; it has a100, h100, k80, v100") || len(told[0]) > 1000 {
			t.Errorf("job %d is told %q", k+1, told)
		}
	}
	if told := eventsOf(&p, 50); len(told) != 1 || !strings.Contains(told[0], "4 rates: those of t000's earlier jobs are 128, as many as a user's may be") {
		t.Errorf("of rates that are too many it is told %q", told)
	}
	again := s
	again.Round, again.Profiles, again.Ledger, again.Cases = s.Round+1, p.State.Profiles, p.State.Ledger, append([]cluster.Case(nil), s.Cases...)
	again.Now = s.Now.Add(10 * cluster.Second)
	for i := range again.Cases {
		again.Cases[i].Record = p.State.Records[i]
	}
	next := engine.Decide(again)
	for k := range again.Cases {
		if told := eventsOf(&next, again.Cases[k].Record.Key); len(told) > 0 {
			t.Fatalf("in the next round job %d is told again %q", k+1, told)
		}
	}
	if len(next.State.Profiles) != len(p.State.Profiles) {
		t.Errorf("%d entries, and %d in the next round", len(p.State.Profiles), len(next.State.Profiles))
	}
}

// A mistake in a job's comment is reported once, when the job arrives, even if the job waits for another
// reason for long.
func TestAWrongCommentIsTold(t *testing.T) {
	const known = "steps/s.v200: the cluster has no such GPUs; it has v100"
	for _, divide := range []string{"", "gandiva-fair"} {
		told, kept := comment(t, divide, "kind=a,steps/s.v100=NaN,steps=-4,gpus=7,steps/s.v200=3,steps/s.v100=2")
		if len(told) != 1 || !strings.HasPrefix(told[0], "profile 1 ") || !strings.Contains(told[0], "steps/s.v100=NaN: ") ||
			!strings.Contains(told[0], "steps=-4: ") || !strings.Contains(told[0], "gpus=7: ") || strings.Contains(told[0], known) != (divide != "") {
			t.Errorf("%q: it is told %q", divide, told)
		}
		if divide != "" && (len(kept) != 1 || kept[0].Rate != 2) {
			t.Errorf("of what is right this is kept: %+v", kept)
		}
	}
	if told, _ := comment(t, "gandiva-fair", "mine,kind=a,steps/s.v100=2,gpus=idle"); len(told) > 0 {
		t.Errorf("nothing is wrong, and it is told %q", told)
	}
}

// comment lets a job with a comment wait for three minutes, and returns the events and the profiles in the
// book.
func comment(t *testing.T, divide, text string) (told []string, kept []cluster.Profile) {
	t.Helper()
	w := newWorld(t, simtest.Product(), []int{8}, "ml", "cv")
	w.Settings.Divide = divide
	w.alter = func(s *cluster.Observation) {
		for i := range s.Jobs {
			s.Jobs[i].Hints, s.Jobs[i].Inactive = cluster.ParseHints(text, 0), "held"
		}
	}
	w.Submit("ml", 1, 1, hour)
	w.Run(3 * minute)
	for _, r := range w.reports {
		for _, e := range r.Plan.Events {
			told = append(told, fmt.Sprintf("%s %d %s", e.Kind, e.Job, e.Text))
		}
	}
	return told, w.reports[len(w.reports)-1].Plan.State.Profiles
}

// A report is compared with the run time of the job. Reports during a suspension do not count, and suspended
// time is subtracted.
func TestASuspendedJobsReports(t *testing.T) {
	s := simtest.Crowd(100, 1)
	s.Settings.Divide, s.Settings.DivideJobs = "gavel:las", preset.OfJobs("gavel:las")
	i := slices.IndexFunc(s.Cases, func(c cluster.Case) bool { return c.Job.State == cluster.Running })
	j := &s.Cases[i].Job
	hear := func(steps float64) *cluster.Pace {
		t.Helper()
		s.Now = s.Now.Add(cluster.Minute)
		s.Progress = []cluster.Progress{{Job: j.ID, Steps: steps, At: s.Now}}
		p := engine.Decide(s)
		s.Paces, s.Profiles = p.State.Paces, p.State.Profiles
		if len(s.Paces) != 1 {
			t.Fatalf("of %d jobs it is known how they get on", len(s.Paces))
		}
		return &s.Paces[0]
	}
	hear(100)
	j.State, j.Suspend = cluster.Suspended, 30*second
	if p := hear(200); p.Steps != 100 {
		t.Errorf("a suspended job is heard: %+v", p)
	}
	j.State, j.Suspend = cluster.Running, 60*second
	if p := hear(700); p.Steps != 700 || p.Suspended != minute || len(s.Profiles) != 1 || s.Profiles[0].Rate != 10 {
		t.Errorf("600 steps in two minutes, for one of which it was suspended: %+v, %+v", p, s.Profiles)
	}
}
