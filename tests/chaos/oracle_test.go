package main

import (
	"strings"
	"testing"
	"time"
)

// at is a moment of a made-up campaign, in seconds.
func at(seconds float64) time.Time { return time.Unix(1_800_000_000, int64(seconds*1e9)) }

func ran(job, state string, from, to, gpus float64, nodes ...string) Attempt {
	return Attempt{Job: job, Account: "nlp", State: state, Start: at(from), End: at(to), GPUs: gpus, Nodes: nodes}
}

// good is a campaign in which all went well. The tests spoil it.
func good() *Facts {
	return &Facts{
		Capacity: map[string]float64{"v1": 4, "v2": 4},
		Promised: promisedCells,
		Jobs: []Job{{ID: "1", Submitted: at(0)}, {ID: "2", Submitted: at(1)}, {ID: "3_0", Submitted: at(2)}, {ID: "3_1", Submitted: at(2)},
			{ID: "4", Submitted: at(3)}, {ID: "5", Submitted: at(4), NoRequeue: true}},
		Attempts: []Attempt{
			ran("1", "REQUEUED", 0, 20, 4, "v1"), ran("1", "COMPLETED", 40, 50, 4, "v1"),
			ran("2", "COMPLETED", 20, 30, 4, "v1"),
			ran("3_0", "COMPLETED", 0, 10, 2, "v2"), ran("3_1", "COMPLETED", 0, 10, 2, "v2"),
			ran("4", "CANCELLED by 2001", 10, 20, 8, "v1", "v2"),
			ran("5", "NODE_FAIL", 50, 60, 1, "v2"),
		},
		Deeds:  []Deed{{at(15), "4", "cancel"}},
		Faults: []Fault{{"slurmdbd hangs", at(10), at(30), true}},
		Rounds: []time.Time{at(5), at(20), at(21), at(31), at(32)},
		Books:  []Book{{Job: "1", Tenant: "nlp", Ours: 100.9, Slurmdb: 100, Moments: []time.Time{at(0), at(20), at(40), at(50)}}},
		Ledger: 100.9,
	}
}

// long makes a campaign one of five minutes in which the honest tenant wanted GPUs for 110 s and held them for 100 s, while others
// were hostile once.
func long(f *Facts) *Facts {
	f.Failing, f.Hostile = Span{at(0), at(300)}, map[string]int{"hint": 1, "node": 0}
	f.Capacity["v3"] = 4
	f.Jobs = append(f.Jobs, Job{ID: "8", Account: promised, Plain: true, Submitted: at(0)})
	f.Attempts = append(f.Attempts, Attempt{Job: "8", Account: promised, State: "COMPLETED", Start: at(10), End: at(110), GPUs: 4, Nodes: []string{"v3"}})
	return f
}

// The oracle is silent on a good campaign, and says of each bad one what is wrong with it.
func TestOracle(t *testing.T) {
	f := good()
	f.Attempts[5].Start = at(30) // not beside the others
	f.Attempts[5].End = at(40)
	if broken := judge(f); len(broken) > 0 {
		t.Fatalf("of a campaign in which all went well: %q", broken)
	}
	if got, want := f.leftOut(), "0 of 6 jobs, 0 of 7 attempts, 0 of 1 books"; !strings.HasSuffix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	if broken := judge(long(f)); len(broken) > 0 {
		t.Errorf("of a long campaign in which all went well: %q", broken)
	}
	f.Hostile, f.Failing.To = nil, at(judgedAfter.Seconds()-1)
	if broken := judge(f); len(broken) > 0 {
		t.Errorf("of a campaign that is too short for hostile deeds: %q", broken)
	}
	for _, bad := range []struct {
		name  string
		spoil func(*Facts)
		want  string
	}{
		{"a job stays suspended", func(f *Facts) { f.Sharers, f.Turns.Job = 2, stop{"job 7", at(10), stopsFor(2) + time.Second} }, "stopped: job 7 was suspended for 1m59s from"},
		{"all on a GPU stand still", func(f *Facts) { f.Turns.GPU = stop{"GPU 0 of v1", at(10), allStopFor + time.Second} }, "stopped: all jobs on GPU 0 of v1 were suspended for 1m16s"},
		{"no job takes turns", func(f *Facts) { long(f).Sharers = 2 }, "stopped: no job took turns in 5m0s"},
		{"a job is not in slurmdbd", func(f *Facts) { f.Jobs = append(f.Jobs, Job{ID: "9", Submitted: at(7)}) }, "lost: job 9 is not in slurmdbd"},
		{"a job still waits", func(f *Facts) { f.Jobs[1].Waits = "PENDING Licenses" }, "lost: job 2 still waits: PENDING Licenses"},
		{"a job failed", func(f *Facts) { f.Attempts[2].State = "FAILED" }, "lost: job 2 ended as FAILED"},
		{"a job was only requeued", func(f *Facts) { f.Attempts = append(f.Attempts[:1:1], f.Attempts[2:]...) }, "lost: job 1 ended as REQUEUED"},
		{"a job was cancelled by nobody", func(f *Facts) { f.Deeds = nil }, "lost: job 4 ended as CANCELLED by 2001"},
		{"a task of an array is missing", func(f *Facts) { f.Attempts[4].Job = "3_0" }, "lost: job 3_1 is not in slurmdbd"},
		{"a job that may be requeued failed with its node", func(f *Facts) { f.Jobs[5].NoRequeue = false }, "lost: job 5 ended as NODE_FAIL"},
		{"a job timed out", func(f *Facts) { f.Attempts[2].State = "TIMEOUT" }, "lost: job 2 ended as TIMEOUT"},
		{"a job was forgotten long before slurmctld was killed", func(f *Facts) {
			f.Jobs = append(f.Jobs, Job{ID: "9", Submitted: at(7)})
			f.Amnesia = []time.Time{at(7 + unsaved.Seconds() + 1)}
		}, "lost: job 9"},
		{"slurmctld was killed when it had told slurmdbd all", func(f *Facts) {
			f.Jobs = append(f.Jobs, Job{ID: "9", Submitted: at(15)})
			f.Unsent = unsent(f.Faults, []time.Time{at(30 + resent.Seconds() + 1)})
		}, "lost: job 9"},
		{"slurmctld was killed before it could tell slurmdbd, and does not say that the job completed", func(f *Facts) {
			f.Attempts[2].State = "RUNNING"
			f.Unsent = unsent(f.Faults, []time.Time{at(31)})
		}, "lost: job 2"},
		{"a job failed soon after slurmctld was killed, but not at once", func(f *Facts) {
			f.Attempts[2].State = "FAILED"
			f.Amnesia = []time.Time{at(15)}
		}, "lost: job 2 ended as FAILED"},
		{"a job was cancelled by nobody, long before a cold start", func(f *Facts) { f.Deeds, f.Cold = nil, []Span{{at(25), at(30)}} }, "lost: job 4 ended as CANCELLED by 2001"},
		{"a job failed before a cold start", func(f *Facts) { f.Attempts[2].State, f.Cold = "FAILED", []Span{{at(29), at(35)}} }, "lost: job 2 ended as FAILED"},
		{"a job of a time after a cold start is not in slurmdbd", func(f *Facts) {
			f.Jobs, f.Cold = append(f.Jobs, Job{ID: "9", Submitted: at(40)}), []Span{{at(29), at(35)}}
		}, "lost: job 9 is not in slurmdbd"},
		{"the books go on with a job that a cold start lost", func(f *Facts) {
			f.Cold = []Span{{at(50), at(70)}}
			f.Attempts[1].State = "CANCELLED"
			f.Books[0].Ours, f.Ledger = 112, 112
		}, "books: nlp held 112"},
		{"two jobs were on the same GPUs before slurmdbd lost its database", func(f *Facts) {
			f.Attempts[2].Start = at(10)
			f.Gaps = []Span{{at(15), at(19)}}
		}, "leased twice: v1 has 4 GPUs and 8"},
		{"a finished job ran again", func(f *Facts) { f.Attempts = append(f.Attempts, ran("2", "COMPLETED", 60, 70, 4, "v1")) }, "run again: job 2 was COMPLETED"},
		{"it was requeued, but before it ran", func(f *Facts) {
			f.Attempts = append(f.Attempts, ran("2", "COMPLETED", 60, 70, 4, "v1"))
			f.Deeds = append(f.Deeds, Deed{at(19), "2", "requeue"})
		}, "run again: job 2"},
		{"a journal that lost rounds is no event", func(f *Facts) { f.Restores, f.Told = []time.Time{at(40)}, []time.Time{at(30)} }, "untold: the journal lost rounds"},
		{"a sidecar was restarted long before", func(f *Facts) {
			f.Restores, f.Faults[0] = []time.Time{at(200)}, Fault{"the standby crashes", at(10), at(30), false}
		}, "untold: the journal lost rounds"},
		{"two jobs on the same GPUs", func(f *Facts) { f.Attempts[2].Start = at(17) }, "leased twice: v1 has 4 GPUs and 8"},
		{"another requeued its job at that moment", func(f *Facts) {
			f.Attempts[2].Start = at(17)
			f.Deeds = append(f.Deeds, Deed{at(19), "7", "requeue"})
		}, "leased twice: v1 has 4 GPUs and 8"},
		{"a gang on the GPUs of another job", func(f *Facts) { f.Attempts[5].Start, f.Attempts[5].End = at(20), at(40) }, "leased twice: v1 has 4 GPUs and 8"},
		{"the books have too much", func(f *Facts) { f.Books[0].Ours, f.Ledger = 101.1, 101.1 }, "books: nlp held 101 GPU-s by the journal and 100 by slurmdbd; job 1 101.1 and 100"},
		{"the books have less than whole seconds explain", func(f *Facts) {
			f.Books[0].Ours, f.Books[0].Cut, f.Ledger = 95.9, 3, 95.9
		}, "books: nlp held 96"},
		{"the books have too little", func(f *Facts) { f.Books[0].Ours, f.Ledger = 98.9, 98.9 }, "books: all tenants held 99"},
		{"one tenant's excess is another's lack", func(f *Facts) {
			f.Books = []Book{{Job: "1", Tenant: "nlp", Ours: 105, Slurmdb: 100}, {Job: "2", Tenant: "vision", Ours: 95, Slurmdb: 100}}
			f.Ledger = 200
		}, "books: vision held 95"},
		{"the ledger is not the sum of its jobs", func(f *Facts) { f.Ledger = 102 }, "books: all tenants held 102 GPU-s by the ledger and 101 by its jobs"},
		{"a job is off that ended long before slurmctld was killed", func(f *Facts) {
			f.Books[0].Ours, f.Ledger = 90, 90
			f.Amnesia = []time.Time{at(50 + unsaved.Seconds() + 1)}
		}, "books: nlp held 90"},
		{"the books have more than slurmdbd, which missed nothing of the job", func(f *Facts) {
			f.Jobs = append(f.Jobs, Job{ID: "22", Submitted: at(0)})
			f.Unsent = []Span{{at(350), at(372)}}
			f.Attempts = append(f.Attempts, ran("22", "REQUEUED", 10, 20, 4, "v2"))
			f.Books = append(f.Books, Book{Job: "22", Tenant: "nlp", Ours: 80, Slurmdb: 40, Leases: []time.Time{at(10), at(300)}})
			f.Ledger += 80
		}, "books: all tenants held"},
		{"no round after a fault", func(f *Facts) { f.Rounds = f.Rounds[:4] }, "stuck: no rounds within"},
		{"the round after a fault was late", func(f *Facts) { f.Rounds[4] = at(31 + patience.Seconds()) }, "stuck: no rounds within"},
		{"no rounds during a fault", func(f *Facts) { f.Rounds = []time.Time{at(5), at(20), at(31), at(32)} }, "stuck: no rounds while slurmdbd hangs"},
		{"a reservation is left", func(f *Facts) { f.Left = []string{"ReservationName=fairlease_gate"} }, "left after release: ReservationName=fairlease_gate"},
		{"the honest tenant waits while others hold its GPUs", func(f *Facts) {
			f.Jobs = append(f.Jobs, Job{ID: "8", Account: "vision", Plain: true, Submitted: at(0)})
			f.Attempts = append(f.Attempts, Attempt{Job: "8", Account: "vision", State: "COMPLETED", Start: at(100), End: at(110), GPUs: 4, Nodes: []string{"v1"}})
		}, "deprived: vision wanted 440 GPU-s of its 8 GPUs and held 40"},
		{"nobody did anything hostile for long", func(f *Facts) { long(f).Hostile = map[string]int{"hint": 0, "node": 0} },
			"untested: no hostile deed was carried out in 5m0s, so the share of vision tells nothing"},
		{"the honest tenant wanted little of a long run", func(f *Facts) { long(f).Failing.To = at(441) },
			"untested: vision wanted GPUs for 1m50s of 7m21s, less than 25 %"},
		{"the honest tenant wanted nothing of a long run", func(f *Facts) {
			long(f)
			f.Jobs, f.Attempts = f.Jobs[:len(f.Jobs)-1], f.Attempts[:len(f.Attempts)-1]
		}, "untested: vision wanted GPUs for 0s of 5m0s"},
		{"the honest tenant wanted GPUs when nothing failed any more", func(f *Facts) { long(f).Failing = Span{at(100), at(400)} },
			"untested: vision wanted GPUs for 10s of 5m0s"},
		{"a sidecar panicked", func(f *Facts) { f.Logged = []string{"panic: index out of range"} }, "logged: panic"},
	} {
		f := good()
		f.Attempts[5].Start, f.Attempts[5].End = at(30), at(40)
		bad.spoil(f)
		if broken := judge(f); len(broken) == 0 || !strings.Contains(strings.Join(broken, "\n"), bad.want) {
			t.Errorf("%s: the oracle says %q, want %q", bad.name, broken, bad.want)
		}
	}
}

// Changes by Slurm and its users are not fairlease's fault.
func TestOracleExcuses(t *testing.T) {
	f := good()
	f.Attempts[5].Start, f.Attempts[5].End = at(30), at(40)
	f.Faults = append(f.Faults, Fault{"both sidecars are killed and stay away", at(5), at(30), false})
	f.Restores, f.Told = []time.Time{at(12), at(200)}, []time.Time{at(203)}
	f.Jobs = append(f.Jobs, Job{ID: "9", Submitted: at(7)}, Job{ID: "10", Submitted: at(7)})
	f.Amnesia = []time.Time{at(8)}
	f.Attempts = append(f.Attempts, Attempt{Job: "10", State: "PENDING"}, f.Attempts[1])
	f.Attempts = append(f.Attempts, ran("2", "COMPLETED", 60, 70, 4, "v1"), ran("3_1", "COMPLETED", 80, 90, 2, "v2"))
	f.Books = append(f.Books, Book{Job: "11", Tenant: "nlp", Ours: 50, Slurmdb: 90, Moments: []time.Time{at(5)}})
	f.Books = append(f.Books, Book{Job: "12", Tenant: "nlp", Ours: 4, Slurmdb: 14})
	f.Ledger += 54
	f.Deeds = append(f.Deeds, Deed{at(60), "12", "revive"})
	f.Deeds = append(f.Deeds, Deed{at(33), "2", "requeue"}, Deed{at(70), "3", "requeue"})
	f.Attempts = append(f.Attempts, ran("13", "CANCELLED by 2001", 100, 125, 4, "v1"), ran("14", "COMPLETED", 120, 130, 4, "v1"))
	f.Books = append(f.Books, Book{Job: "13", Tenant: "nlp", Ours: 80, Slurmdb: 100})
	f.Ledger += 80
	f.Deeds = append(f.Deeds, Deed{at(124), "13", "requeue"})
	f.Gaps = []Span{{at(210), at(230)}} // the end of job 15 is recorded late
	f.Attempts = append(f.Attempts, ran("15", "COMPLETED", 200, 229, 4, "v1"), ran("16", "COMPLETED", 220, 240, 4, "v1"))
	f.Books = append(f.Books, Book{Job: "15", Tenant: "nlp", Ours: 80, Slurmdb: 116, Moments: []time.Time{at(200), at(220), at(229)}})
	f.Ledger += 80
	f.Amnesia = append(f.Amnesia, at(305))
	f.Jobs = append(f.Jobs, Job{ID: "17", Submitted: at(303)})
	f.Attempts = append(f.Attempts, ran("17", "FAILED", 312, 313, 4, "v1"))
	f.Over = []Deed{{at(330), "18", "over"}, {at(390), "20", "over"}} // job 18 is requeued at 340, with its array
	f.Unsent = unsent([]Fault{{"slurmdbd is killed", at(350), at(370), true}}, []time.Time{at(372)})
	f.Jobs = append(f.Jobs, Job{ID: "20", Submitted: at(345)}, Job{ID: "21", Submitted: at(360)})
	f.Attempts = append(f.Attempts, Attempt{Job: "20", State: "PENDING"})
	// Of job 22 slurmdbd has missed a requeue, and so the attempt that followed.
	f.Jobs = append(f.Jobs, Job{ID: "22", Submitted: at(345)})
	f.Attempts = append(f.Attempts, ran("22", "COMPLETED", 346, 348, 4, "v3"))
	f.Books = append(f.Books, Book{Job: "22", Tenant: "nlp", Ours: 80, Slurmdb: 8, Leases: []time.Time{at(346), at(380)}})
	f.Ledger += 80
	f.Attempts = append(f.Attempts, ran("18", "REQUEUED", 320, 340, 4, "v1"), ran("19", "COMPLETED", 332, 338, 4, "v1"))
	// Job 23 is a task of job 22, for slurmdbd a job of its own.
	f.Attempts = append(f.Attempts, ran("23", "COMPLETED", 380, 390, 4, "v4"))
	f.Books = append(f.Books, Book{Job: "23", Tenant: "nlp", Slurmdb: 40, Moments: []time.Time{at(380), at(390)}})
	// A cold start loses a job that runs, one that waits, and one that is suspended.
	f.Cold = []Span{{at(450), at(460)}}
	f.Jobs = append(f.Jobs, Job{ID: "24", Submitted: at(430)}, Job{ID: "25", Submitted: at(430)}, Job{ID: "26", Submitted: at(430)})
	f.Attempts = append(f.Attempts, ran("24", "CANCELLED", 440, 450, 4, "v4"), ran("26", "SUSPENDED", 440, 450, 0.5, "v5"), Attempt{Job: "25", State: "PENDING"})
	if broken := judge(f); len(broken) > 0 {
		t.Errorf("%q", broken)
	}
	if got, want := f.leftOut(), "14 of 15 jobs, 1 of 20 attempts, 7 of 7 books"; !strings.HasSuffix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// Thirds of a GPU that end leave no more of it in use than there was.
func TestThirdsOfAGPU(t *testing.T) {
	holds := []hold{{"1", "v1", 1, at(0), at(30)}, {"2", "v1", 1, at(0), at(90)}, {"3", "v1", 3, at(50), at(80)}}
	for i := range 3 {
		holds = append(holds, hold{"4", "v1", 1. / 3, at(1), at(31 + float64(i))})
	}
	if got := overfull(holds, map[string]float64{"v1": 4}); got != nil {
		t.Errorf("%q", got)
	}
	if got := overfull(append(holds, hold{"5", "v1", 1. / 3, at(60), at(80)}), map[string]float64{"v1": 4}); len(got) != 1 {
		t.Errorf("with a third too much: %q", got)
	}
}

func TestParseAttempts(t *testing.T) {
	got := parseAttempts("12_3|nlp|COMPLETED|1800000000|1800000010|billing=2,cpu=2,gres/gpu:v100=4,gres/gpu=4,mem=200M,node=2|v[1-2]\n"+
		"13|vision|PENDING|Unknown|Unknown||None assigned\nnonsense\n14_[3-4%2]|nlp|CANCELLED by 2001|None|1800000010||None assigned\n15|nlp|RUNNING|1800000000|Unknown|cpu=1,gres/shard=2|v1\n", 4)
	if len(got) != 5 || got[4].GPUs != 0.5 || got[2].Job != "14_3" || got[3].Job != "14_4" || got[0].Job != "12_3" || got[0].GPUs != 4 || strings.Join(got[0].Nodes, " ") != "v1 v2" || !got[0].End.Equal(at(10)) || !got[1].Start.IsZero() {
		t.Errorf("%+v", got)
	}
}

// The summary counts hostile deeds by kind, also those of a kind that nobody did.
func TestSummary(t *testing.T) {
	var b strings.Builder
	(&outcome{Hostile: map[string]int{"node": 0, "hint": 2}, Wanting: 80 * time.Second, Failing: 301 * time.Second}).print(&b)
	for _, want := range []string{"\nhostile deeds that Slurm accepted:\n    2  hint\n    0  node\n", "it wanted some for 1m20s of the 5m1s in which things failed\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the summary:\n%s", want, &b)
		}
	}
}
