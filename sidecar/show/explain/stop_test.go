package explain_test

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
)

func TestHowAJobSavesAndStops(t *testing.T) {
	const now = cluster.Instant(1_800_000_000_000) // 2027-01-15 08:00:00 UTC
	const minute = cluster.Minute
	w := explain.Words{Now: now}
	for _, c := range []struct {
		name string
		r    cluster.StopReport
		want string
	}{
		{"unknown, young", cluster.StopReport{Budget: 15 * minute, Cost: 5 * minute, Begin: 5 * minute, May: true, Until: now.Add(10 * minute)},
			`unknown, which counts as never
no evidence: it has no declaration (--comment=saves=30m), and no requeue of its type was observed
was never stopped
a stop now would cost it 5 min, including a start of 5 min; its budget is 15 min
may be stopped until 08:10:00 (in 10 min), then not before it ends`},
		{"stops have cost all jobs too much", cluster.StopReport{Budget: 15 * minute, Cost: 5 * minute, Begin: 5 * minute, May: true, Until: now.Add(10 * minute), Dear: "v100"},
			`unknown, which counts as never
no evidence: it has no declaration (--comment=saves=30m), and no requeue of its type was observed
was never stopped
a stop now would cost it 5 min, including a start of 5 min; its budget is 15 min
is not stopped now: the cost of all stops on v100 GPUs has reached its limit (stop.total)`},
		{"restarted", cluster.StopReport{Saving: cluster.Saving{Manner: cluster.SavesNever, Resumes: cluster.Restarted, Source: cluster.FromConduct, At: now.Add(-minute),
			Evidence: "it restarted from the beginning after its last requeue"}, Habit: &cluster.Habit{Restarted: 1}, Stops: 1, Spent: 16 * minute, Budget: -minute, Cost: minute, Begin: minute},
			`never
observed: it restarted from the beginning after its last requeue, 07:59:00 (1 min ago)
of its type, 0 resumed from a save after a requeue, 1 restarted from the beginning
once so far, which cost it 16 min
a stop now would cost it 1 min, including a start of 1 min; its budget is 0 s
it will not be stopped again before it ends, since it would restart from the beginning`},
		{"recalled", cluster.StopReport{Saving: cluster.Saving{Manner: cluster.SavesNever, Source: cluster.FromSite}, Stops: 2, Beyond: 1, Spent: cluster.Hour, Budget: -cluster.Hour, Cost: minute, Begin: minute},
			`never
configured
2 times so far, which cost it 1 h; once beyond its stop budget, for recalls of lent GPUs or overrides
a stop now would cost it 1 min, including a start of 1 min; its budget is 0 s
it will not be stopped before it ends, since that would exceed its budget`},
		{"on a notice that is too short", cluster.StopReport{Saving: cluster.Saving{Manner: cluster.SavesOnNotice, Takes: 5 * minute, Signal: "USR2", Source: cluster.FromDeclaration,
			Evidence: "--signal=USR2@300"}, Short: true, Notice: minute, Budget: 15 * minute, Cost: cluster.Hour, Begin: 5 * minute},
			`on the notice USR2, which takes 5 min
declared: --signal=USR2@300
the notice is too short for that: 1 min of 5 min (lease.notice); it counts as never
was never stopped
a stop now would cost it 1 h, including a start of 5 min; its budget is 15 min
it will not be stopped before it ends, since that would exceed its budget`},
		{"reported saves", cluster.StopReport{Saving: cluster.Saving{Manner: cluster.SavesEvery, Every: 30 * minute, Source: cluster.FromConduct, Evidence: "it reports its saves", At: now},
			Stops: 2, Spent: 12 * minute, Budget: 3 * minute, Cost: 20 * minute, Begin: minute, From: now.Add(20 * minute)},
			`every 30 min
observed: it reports its saves, 08:00:00 (now)
a resumption from its saves has not been observed yet
2 times so far, which cost it 12 min
a stop now would cost it 20 min, including a start of 1 min; its budget is 3 min
may be stopped from 08:20:00 (in 20 min) on`},
		{"on TERM", cluster.StopReport{Saving: cluster.Saving{Manner: cluster.SavesOnTerm, Source: cluster.FromSite, Evidence: "the site's rule for QOS long"}, Budget: 15 * minute, May: true},
			`on SIGTERM, within Slurm's KillWait
configured: the site's rule for QOS long
was never stopped
a stop now would cost it 0 s, including a start of 0 s; its budget is 15 min
may be stopped when its lease ends`},
		{"declared by a simulated job", cluster.StopReport{Saving: cluster.Saving{Manner: cluster.SavesOnTerm, Source: cluster.FromDeclaration}, Off: true},
			"on SIGTERM, within Slurm's KillWait\ndeclared\nmay be stopped at any time: the site has no stop budget (stop.allowance, stop.overhead)"},
		{"on a notice without a signal", cluster.StopReport{Saving: cluster.Saving{Manner: cluster.SavesOnNotice, Signal: "none", Source: cluster.FromDeclaration, Evidence: "saves=notice"}, Off: true},
			"on the notice, without a signal\ndeclared: saves=notice\nmay be stopped at any time: the site has no stop budget (stop.allowance, stop.overhead)"},
		{"no budget", cluster.StopReport{Saving: cluster.Saving{Manner: cluster.SavesNever, Source: cluster.FromDeclaration, Evidence: "saves=never"}, Off: true, May: true},
			`never
declared: saves=never
may be stopped at any time: the site has no stop budget (stop.allowance, stop.overhead)`},
	} {
		if got := strings.Join(append(w.Saves(&c.r), w.Stops(&c.r)...), "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestWhatItsStopsDestroyed(t *testing.T) {
	const minute = cluster.GPUTime(cluster.Minute)
	for _, c := range []struct {
		r    cluster.Record
		want string
	}{
		{cluster.Record{}, ""},
		{cluster.Record{Lost: 12 * minute, KnownLost: 12 * minute},
			"its stops destroyed exactly 12.00 GPU-minutes, by its reported saves, or since it restarts from the beginning; this is overhead and does not count as received"},
		{cluster.Record{Lost: 90 * minute}, "its stops destroyed 1.50 GPU-hours if it saves as it declares or is known to; this is overhead and does not count as received"},
		{cluster.Record{Lost: minute, MostLost: 31 * minute}, "its stops destroyed at most 31.00 GPU-minutes; " +
			"1.00 GPU-minutes if it saves as it declares or is known to; this is overhead and does not count as received"},
		{cluster.Record{MostLost: 30 * minute}, "its stops destroyed at most 30.00 GPU-minutes; nothing if it saves as it declares or is known to; this is overhead and does not count as received"},
		{cluster.Record{Lost: 3 * minute, KnownLost: minute, UnknownLost: minute},
			"its stops destroyed exactly 1.00 GPU-minutes, by its reported saves, or since it restarts from the beginning; " +
				"1.00 GPU-minutes if it saves as it declares or is known to; at most 1.00 GPU-minutes: how it saves is unknown, so this assumes that it never does; this is overhead and does not count as received"},
	} {
		if got := explain.Destroyed(&c.r); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
