package stop_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

func TestTheBestEvidenceCounts(t *testing.T) {
	said := func(m cluster.Manner, every cluster.Span, implied bool) cluster.Saving {
		return cluster.Saving{Manner: m, Every: every, Source: cluster.FromDeclaration, Evidence: "said", Implied: implied, At: 5}
	}
	site := cluster.Saving{Manner: cluster.SavesEvery, Every: 2 * hour, Source: cluster.FromSite, Evidence: "site"}
	type habit = cluster.Habit
	type own = cluster.Conduct
	for _, c := range []struct {
		name     string
		own      *own
		habit    *habit
		declared cluster.Saving
		site     cluster.Saving
		manner   cluster.Manner
		every    cluster.Span
		resumes  cluster.Resumption
		source   cluster.SavingSource
		evidence string
		at       cluster.Instant
	}{
		{"nothing", nil, nil, cluster.Saving{}, cluster.Saving{}, "", 0, "", "", "", 0},
		{"the site's word", nil, &habit{}, cluster.Saving{}, site, cluster.SavesEvery, 2 * hour, "", cluster.FromSite, "site", 0},
		{"the user's before the site's", nil, nil, said(cluster.SavesNever, 0, false), site, cluster.SavesNever, 0, "", cluster.FromDeclaration, "said", 5},
		{"a restart of its type before words", nil, &habit{Restarted: 1, Last: cluster.Restarted, LastAt: 9}, said(cluster.SavesOnTerm, 0, false), site,
			cluster.SavesNever, 0, cluster.Restarted, cluster.FromConduct, "jobs of its type restarted from the beginning after a requeue", 9},
		{"its own before its type's", &own{Last: cluster.Resumed, LastAt: 8}, &habit{Last: cluster.Restarted, LastAt: 9}, said(cluster.SavesOnTerm, 0, true), site,
			cluster.SavesOnTerm, 0, cluster.Resumed, cluster.FromConduct, "it went on from a save after its last requeue", 8},
		{"its own restart", &own{Last: cluster.Restarted, LastAt: 8}, &habit{Last: cluster.Resumed, LastAt: 9}, said(cluster.SavesOnTerm, 0, false), site,
			cluster.SavesNever, 0, cluster.Restarted, cluster.FromConduct, "it restarted from the beginning after its last requeue", 8},
		{"reports", &own{Reports: 2, Every: hour, Saved: 7}, &habit{Reports: 9, Every: minute, SavedAt: 9}, cluster.Saving{}, site,
			cluster.SavesEvery, hour, "", cluster.FromConduct, "it reports its saves", 7},
		{"its type's reports", nil, &habit{Reports: 9, Every: minute, SavedAt: 9}, said(cluster.SavesOnTerm, 0, true), site,
			cluster.SavesEvery, minute, "", cluster.FromConduct, "jobs of its type report their saves", 9},
		{"explicit words before reports", nil, &habit{Reports: 9, Every: minute}, said(cluster.SavesOnTerm, 0, false), site, cluster.SavesOnTerm, 0, "", cluster.FromDeclaration, "said", 5},
		{"reports before an interval that was said", nil, &habit{Reports: 9, Every: hour, SavedAt: 9}, said(cluster.SavesEvery, minute, false), site,
			cluster.SavesEvery, hour, "", cluster.FromConduct, "jobs of its type report their saves", 9},
		{"a resumption with little done again", nil, &habit{Last: cluster.Resumed, OnTerm: 1, Redone: minute}, cluster.Saving{}, cluster.Saving{},
			cluster.SavesOnTerm, 0, cluster.Resumed, cluster.FromConduct, "jobs of its type went on from a save after a requeue", 0},
		{"so, seen after notices only", nil, &habit{Last: cluster.Resumed, OnNotice: 1}, cluster.Saving{}, cluster.Saving{},
			cluster.SavesOnNotice, 0, cluster.Resumed, cluster.FromConduct, "jobs of its type went on from a save after a requeue", 0},
		{"a resumption with much done again", nil, &habit{Last: cluster.Resumed, Redone: 20 * minute}, said(cluster.SavesOnTerm, 0, true), cluster.Saving{},
			cluster.SavesEvery, 40 * minute, cluster.Resumed, cluster.FromConduct, "jobs of its type went on from a save after a requeue", 0},
		{"a resumption against never, after a notice", &own{Last: cluster.Resumed, Ours: true, Noticed: true}, nil, said(cluster.SavesNever, 0, false), cluster.Saving{},
			cluster.SavesOnNotice, 0, cluster.Resumed, cluster.FromConduct, "it went on from a save after its last requeue", 0},
		{"so, after none", &own{Last: cluster.Resumed, Ours: true}, nil, said(cluster.SavesNever, 0, false), cluster.Saving{},
			cluster.SavesOnTerm, 0, cluster.Resumed, cluster.FromConduct, "it went on from a save after its last requeue", 0},
	} {
		s := stop.Resolve(c.own, c.habit, c.declared, c.site)
		if s.Manner != c.manner || s.Every != c.every || s.Resumes != c.resumes || s.Source != c.source || s.Evidence != c.evidence || s.At != c.at {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	s := stop.Resolve(&cluster.Conduct{Last: cluster.Resumed}, nil, cluster.Saving{Takes: minute, Signal: "USR2", SignalTo: "batch"}, site)
	if s.Takes != minute || s.Signal != "USR2" || s.SignalTo != "batch" || s.Manner != cluster.SavesEvery {
		t.Errorf("what a declaration says besides is lost: %+v", s)
	}
}

func TestSiteRules(t *testing.T) {
	rules := []cluster.SavingRule{{QOS: "scavenge", Manner: cluster.SavesOnTerm, Source: cluster.FromDeclaration}, {Partition: "gpu", QOS: "long", Manner: cluster.SavesEvery, Every: hour, Source: cluster.FromSite},
		{Partition: "gpu", Manner: cluster.SavesNever, Source: cluster.FromSite}}
	for _, c := range []struct {
		qos, partition string
		manner         cluster.Manner
		implied        bool
	}{{"scavenge", "gpu", cluster.SavesOnTerm, true}, {"long", "gpu", cluster.SavesEvery, false}, {"long", "cpu", "", false}, {"", "gpu", cluster.SavesNever, false}} {
		s := stop.Site(rules, &cluster.Job{QOS: c.qos, Partitions: []string{"x", c.partition}})
		if s.Manner != c.manner || s.Implied != c.implied {
			t.Errorf("%+v: %+v", c, s)
		}
	}
}

func TestTheFirstReportAfterARequeue(t *testing.T) {
	before := cluster.Conduct{Steps: 1000, At: 1, In: hour, First: 1, FirstIn: 5 * minute, Model: "v100"}
	for _, c := range []struct {
		name   string
		before *cluster.Conduct
		now    stop.Report
		want   cluster.Resumption
		redone cluster.Span
	}{
		{"never heard", &cluster.Conduct{}, stop.Report{Steps: 5, In: minute}, "", 0},
		{"from the beginning", &before, stop.Report{Steps: 1, In: 5 * minute, Model: "v100"}, cluster.Restarted, 0},
		{"on", &before, stop.Report{Steps: 1001, In: 5 * minute, Model: "v100"}, cluster.Resumed, 0},
		{"on, half of it lost", &before, stop.Report{Steps: 500, In: 5 * minute, Model: "v100"}, cluster.Resumed, 1651 * second},
		{"late, as far as it can be from the beginning", &before, stop.Report{Steps: 900, In: 55 * minute, Model: "v100"}, "", 0},
		{"late, and further than that", &before, stop.Report{Steps: 2500, In: 55 * minute, Model: "v100"}, cluster.Resumed, 0},
		{"on another model", &before, stop.Report{Steps: 100, In: 5 * minute, Model: "h100"}, cluster.Restarted, 0},
		{"on another model, on", &before, stop.Report{Steps: 600, In: 5 * minute, Model: "h100"}, cluster.Resumed, 1321 * second},
	} {
		got, redone := c.now.Resumption(c.before)
		if got != c.want || redone/second != c.redone/second {
			t.Errorf("%s: %q, %s done again; want %q, %s", c.name, got, redone, c.want, c.redone)
		}
	}
}

// A job that reports as the library does is never judged to do what it does not: whatever its speed, its start, and when it
// is stopped.
func TestNoJobIsMisjudgedByItsReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := func(name string, from, to cluster.Span) cluster.Span {
			return cluster.Span(rapid.Int64Range(int64(from), int64(to)).Draw(t, name))
		}
		step := span("a step", second/10, 20*second)
		starts := []cluster.Span{span("first start", second, 10*minute), span("second start", second, 10*minute)}
		steps := func(worked cluster.Span) float64 { return float64(max(worked, 0) / step) }
		ran := starts[0] + step + span("ran", 0, 10*hour)
		before := cluster.Conduct{At: 1, Model: "v100", First: 1, FirstIn: starts[0] + step}
		before.In = before.FirstIn + (ran-before.FirstIn)/minute*minute // the last report
		before.Steps = steps(before.In - starts[0])
		saved := steps(span("saved", 0, max(ran-starts[0], 0)))
		resumes := rapid.Bool().Draw(t, "resumes")
		if !resumes {
			saved = 0
		}
		now := stop.Report{Steps: saved + 1, In: starts[1] + step, Model: "v100"}
		got, redone := now.Resumption(&before)
		if got == cluster.Resumed && saved == 0 && now.Steps > 2 || got == cluster.Restarted && saved > before.Steps/2+1 {
			t.Fatalf("went on from step %v of %v, and was judged %q", saved, before.Steps, got)
		}
		if redone < 0 || redone > ran {
			t.Fatalf("%s done again of %s", redone, ran)
		}
	})
}

func TestCompletedJobsTell(t *testing.T) {
	alike := &cluster.Habit{Completed: 3, Shortest: 100 * minute, Longest: 105 * minute}
	unlike := &cluster.Habit{Completed: 3, Shortest: 10 * minute, Longest: 105 * minute}
	own := func(longest cluster.Span) *cluster.Conduct {
		return &cluster.Conduct{Attempts: 1, Longest: longest, Model: "v100"}
	}
	for _, c := range []struct {
		name          string
		own           *cluster.Conduct
		habit         *cluster.Habit
		last, earlier cluster.Span
		want          cluster.Resumption
		redone        cluster.Span
	}{
		{"as long as uninterrupted", own(60 * minute), alike, 101 * minute, 60 * minute, cluster.Restarted, 0},
		{"as long, after a moment", own(minute), alike, 101 * minute, minute, "", 0},
		{"the rest of it", own(60 * minute), alike, 45 * minute, 60 * minute, cluster.Resumed, 0},
		{"less than its type, more than it had before", own(60 * minute), alike, 80 * minute, 60 * minute, "", 0},
		{"too short altogether", own(10 * minute), alike, 20 * minute, 10 * minute, "", 0},
		{"its type's run times differ", own(60 * minute), unlike, 101 * minute, 60 * minute, "", 0},
		{"of its type one has completed", own(60 * minute), &cluster.Habit{Completed: 1, Shortest: 100 * minute, Longest: 100 * minute}, 101 * minute, 60 * minute, "", 0},
		{"nothing is known of its type", own(60 * minute), nil, 101 * minute, 60 * minute, "", 0},
		{"longer before than at last", own(60 * minute), nil, 30 * minute, 60 * minute, cluster.Resumed, 30 * minute},
		{"so, on another model", &cluster.Conduct{Attempts: 1, Longest: 60 * minute, Model: "k80"}, nil, 30 * minute, 60 * minute, "", 0},
		{"its earlier attempts were not seen", nil, alike, 101 * minute, 0, "", 0},
	} {
		got, redone := stop.Completion(c.own, "v100", c.habit, c.last, c.earlier, 5*minute)
		if got != c.want || redone != c.redone {
			t.Errorf("%s: %q, %s; want %q, %s", c.name, got, redone, c.want, c.redone)
		}
	}
}

// A restart from the beginning says nothing of a job that could not have saved.
func TestRestartsThatTell(t *testing.T) {
	ours, noticed := &cluster.Conduct{Ours: true}, &cluster.Conduct{Ours: true, Noticed: true}
	for _, c := range []struct {
		name    string
		s       cluster.Saving
		own     *cluster.Conduct
		reports bool
		ran     cluster.Span
		want    bool
	}{
		{"unknown", cluster.Saving{}, nil, false, minute, true},
		{"on term, a node failed", cluster.Saving{Manner: cluster.SavesOnTerm}, &cluster.Conduct{}, false, hour, false},
		{"on term", cluster.Saving{Manner: cluster.SavesOnTerm}, ours, false, hour, true},
		{"on notice, without one", cluster.Saving{Manner: cluster.SavesOnNotice}, ours, false, hour, false},
		{"on notice", cluster.Saving{Manner: cluster.SavesOnNotice}, noticed, false, hour, true},
		{"before its first save", cluster.Saving{Manner: cluster.SavesEvery, Every: hour}, ours, false, hour, false},
		{"after its first save", cluster.Saving{Manner: cluster.SavesEvery, Every: hour}, ours, false, 2 * hour, true},
		{"no save was reported", cluster.Saving{Manner: cluster.SavesEvery, Every: hour}, ours, true, 2 * hour, false},
		{"a save was reported", cluster.Saving{Manner: cluster.SavesEvery, Every: hour}, &cluster.Conduct{Saved: 5}, true, minute, true},
	} {
		if got := stop.Telling(&c.s, c.own, c.reports, c.ran, 5*minute); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
