package loop

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const noon cluster.Instant = 1_800_000_000_000

var (
	everything = Rules{Mode: Act, Partitions: []string{"gpu"}, TenantLevel: 1}
	settings   = cluster.Settings{Term: 15 * cluster.Minute, GateTTL: 10 * cluster.Minute}
)

func sight(now cluster.Instant, jobs ...cluster.Job) cluster.Observation {
	return cluster.Observation{Now: now, Jobs: jobs,
		Nodes:    []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}, Partitions: []string{"gpu"}}},
		Accounts: []cluster.Account{{Name: "root"}, {Name: "nlp", Parent: "root", Shares: 1}}}
}

func batch(id int64) cluster.Job {
	return cluster.Job{ID: cluster.JobID{ID: id}, Record: id, User: "alice", Account: "nlp", Partitions: []string{"gpu"},
		State: cluster.Waiting, Batch: true, Requeueable: true, Request: cluster.Request{Size: cluster.Whole(1)}, Submit: noon, Eligible: noon}
}

// history carries a memory from look to look, as if each round changed nothing but the
// observations.
type history struct {
	*testing.T
	m cluster.State
	d *desk // nil = each look is the first of a process
}

func (h *history) look(seen cluster.Observation) cluster.Snapshot {
	h.Helper()
	d := h.d
	if d == nil {
		d = new(desk)
	}
	s, err := d.remember(h.m, seen, nil, everything, settings)
	if err != nil {
		h.Fatal(err)
	}
	h.m.Round, h.m.NextKey, h.m.Records = s.Round, s.NextKey, nil
	h.m.Ledger.At = s.Now
	for i := range s.Cases {
		r := s.Cases[i].Record
		r.State, r.Submit, r.Restarts = s.Cases[i].Job.State, s.Cases[i].Job.Submit, s.Cases[i].Job.Restarts
		h.m.Records = append(h.m.Records, r)
	}
	return s
}

func (h *history) only(seen cluster.Observation) *cluster.Record {
	h.Helper()
	s := h.look(seen)
	if len(s.Cases) != 1 {
		h.Fatalf("%d cases, want the one job: %+v", len(s.Cases), s.Cases)
	}
	return &h.m.Records[0]
}

func TestAClockThatGoesBackIsAnErrorAndChangesNothing(t *testing.T) {
	m := cluster.State{Round: 7, Ledger: cluster.Ledger{At: noon}}
	_, err := Remember(m, sight(noon.Add(-3*cluster.Second), batch(1)), nil, everything, settings)
	if err == nil || !strings.Contains(err.Error(), "books are ahead of the clock") || !strings.Contains(err.Error(), "fairlease repair clock") {
		t.Errorf("got %v, want what happened and what to do", err)
	}
	// The same moment again, and a second repeated by a leap second.
	for _, now := range []cluster.Instant{noon, noon.Add(-cluster.Second)} {
		if s, err := Remember(m, sight(now, batch(1)), nil, everything, settings); err != nil || s.Now != noon {
			t.Errorf("at %v: %v, the snapshot is of %v", now, err, s.Now)
		}
	}
}

func TestAClusterWithoutGPUsIsAnError(t *testing.T) {
	for name, nodes := range map[string][]cluster.Node{"no node": nil, "no GPU": {{Name: "n1", CPUs: 8}}} {
		seen := sight(noon, batch(1))
		seen.Nodes = nodes
		if _, err := Remember(cluster.State{}, seen, nil, everything, settings); err == nil || !strings.Contains(err.Error(), "Gres") {
			t.Errorf("%s: got %v, want what to check", name, err)
		}
	}
}

// "A requeued job has a new submit time and the same id." On a real slurmctld the
// restart counts at once, while the submit time changes only when the job has
// cleaned up; both may be seen apart.
func TestARequeuedJobIsTheSameJob(t *testing.T) {
	running := batch(1)
	running.State, running.Start = cluster.Running, noon
	cleaning := running
	cleaning.State, cleaning.Restarts = cluster.Completing, 1
	waiting := batch(1)
	waiting.Restarts, waiting.Submit = 1, noon.Add(40*cluster.Second)
	for name, looks := range map[string][]cluster.Job{
		"seen all the way":            {running, cleaning, waiting},
		"seen when it had cleaned up": {running, waiting},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{T: t}
			h.only(sight(noon, batch(1)))
			key := h.m.Records[0].Key
			for i, j := range looks {
				if r := h.only(sight(noon.Add(cluster.Span(i+1)*cluster.Minute), j)); r.Key != key {
					t.Fatalf("look %d: it is job %d now, was %d", i, r.Key, key)
				}
			}
		})
	}
}

// "JobIDs come round again; the ledger's key is ours, not JobID alone."
func TestAnIDThatComesRoundAgainIsAnotherJob(t *testing.T) {
	over := batch(1)
	over.State, over.End = cluster.Done, noon.Add(cluster.Minute)
	for name, change := range map[string]func(*cluster.Job){
		"submitted later":      func(j *cluster.Job) { j.Submit = noon.Add(5 * cluster.Minute) },
		"of another user":      func(j *cluster.Job) { j.User = "bob" },
		"requeued, by another": func(j *cluster.Job) { j.User, j.Restarts = "bob", 1 },
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{T: t}
			h.only(sight(noon, batch(1)))
			h.only(sight(noon.Add(2*cluster.Minute), over))
			fresh := batch(1)
			change(&fresh)
			s := h.look(sight(noon.Add(10*cluster.Minute), fresh))
			if len(s.Cases) != 2 || s.Cases[0].Record.Key == s.Cases[1].Record.Key || !s.Cases[0].Gone || s.Cases[1].Gone {
				t.Errorf("cases %+v, want the old one gone and a new one", s.Cases)
			}
		})
	}
}

// The user's own --begin is saved before any change. It is not mistaken for our gate, nor our
// gate for it, and follows the user's changes behind our gate.
func TestTheUsersBegin(t *testing.T) {
	tomorrow := noon.Add(cluster.Day)
	at := func(begin cluster.Instant) cluster.Job {
		j := batch(1)
		j.Eligible = begin
		return j
	}
	marked := func(begin, gate cluster.Instant) cluster.Job {
		j := at(gate)
		j.Marked, j.MarkedBegin = true, begin
		return j
	}
	for _, c := range []struct {
		name string
		gate cluster.Instant // our gate after the first look; 0 = none
		see  []cluster.Job
		want cluster.Instant
	}{
		{"none", noon.Add(10 * cluster.Minute), []cluster.Job{at(noon), at(noon.Add(10 * cluster.Minute))}, 0},
		{"seen first without a plugin", 0, []cluster.Job{at(tomorrow), at(tomorrow)}, tomorrow},
		{"told by the plugin", 0, []cluster.Job{marked(tomorrow, tomorrow), marked(tomorrow, tomorrow)}, tomorrow},
		{"the plugin's gate is not the user's", 0, []cluster.Job{marked(0, noon.Add(10*cluster.Minute)), marked(0, noon.Add(10*cluster.Minute))}, 0},
		{"moved behind the plugin's gate", 0, []cluster.Job{marked(0, noon.Add(10*cluster.Minute)), marked(0, tomorrow)}, tomorrow},
		{"moved later behind our gate", noon.Add(10 * cluster.Minute), []cluster.Job{at(noon), at(tomorrow)}, tomorrow},
		{"moved later, no gate of ours yet", 0, []cluster.Job{at(tomorrow), at(tomorrow.Add(cluster.Hour))}, tomorrow.Add(cluster.Hour)},
		{"moved sooner", 0, []cluster.Job{at(tomorrow), at(noon.Add(cluster.Hour))}, noon.Add(cluster.Hour)},
		{"moved sooner behind our gate", tomorrow, []cluster.Job{at(tomorrow), at(noon.Add(cluster.Hour))}, noon.Add(cluster.Hour)},
		{"Slurm's seconds are not ours", noon.Add(600_900), []cluster.Job{at(noon), at(noon.Add(602_000))}, 0},
		{"held: no begin time at all", 0, []cluster.Job{at(tomorrow), at(0)}, tomorrow},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &history{T: t}
			for i, j := range c.see {
				h.only(sight(noon.Add(cluster.Span(i)*10*cluster.Second), j))
				if c.gate > 0 && i == 0 {
					h.m.Records[0].Gate = c.gate
				}
			}
			if got := h.m.Records[0].UserBegin; got != c.want {
				t.Errorf("the user's begin is %s, want %s", got, c.want)
			}
		})
	}
}

// Slurm delays a requeued job by two minutes: that is not its user's request.
func TestSlurmsOwnDelayAfterARequeueIsNotTheUsersBegin(t *testing.T) {
	h := &history{T: t}
	h.only(sight(noon, batch(1)))
	h.m.Records[0].Terms = 1
	running := batch(1)
	running.State, running.Start = cluster.Running, noon
	h.only(sight(noon.Add(10*cluster.Second), running))
	again := batch(1)
	again.Restarts, again.Submit, again.Eligible = 1, noon.Add(20*cluster.Second), noon.Add(140*cluster.Second)
	if r := h.only(sight(noon.Add(30*cluster.Second), again)); r.UserBegin != 0 {
		t.Errorf("the user's begin is %s, want none", r.UserBegin)
	}
	if r := h.only(sight(noon.Add(40*cluster.Second), again)); r.UserBegin != 0 {
		t.Errorf("a look later the user's begin is %s, want none", r.UserBegin)
	}
}

// "required_nodes replaces the user's own -w: remember it, restore it."
func TestTheUsersNodesAreKeptWhileOursStand(t *testing.T) {
	h := &history{T: t}
	j := batch(1)
	j.NodeList = []string{"n1"}
	h.only(sight(noon, j))
	h.m.Records[0].Pinned = true
	j.NodeList = []string{"n7"}
	if r := h.only(sight(noon.Add(1), j)); !slices.Equal(r.UserNodes, []string{"n1"}) {
		t.Errorf("while ours stand the user's nodes are %v, want [n1]", r.UserNodes)
	}
	h.m.Records[0].Pinned = false
	j.NodeList = []string{"n2"}
	if r := h.only(sight(noon.Add(2), j)); !slices.Equal(r.UserNodes, []string{"n2"}) {
		t.Errorf("changed by the user they are %v, want [n2]", r.UserNodes)
	}
}

// The user's list of partitions is kept while a grant has narrowed it, without partitions that are deleted meanwhile, and until somebody chooses
// others.
// A restored journal does not know which nodes, begin times and partitions fairlease gave to jobs since the dump. The file of this host does:
// they are not taken for the users'.
func TestARestoredJournalRecallsTheUsersSettings(t *testing.T) {
	had := []cluster.Record{{ID: cluster.JobID{ID: 1}, User: "alice", Submit: noon, UserNodes: []string{"n7"}, UserPartitions: []string{"gpu", "low"}, UserLimit: cluster.Hour, SiteFactor: 3}}
	ours := batch(1)
	ours.NodeList, ours.Limit, ours.Eligible = []string{"n1"}, cluster.Minute, noon.Add(cluster.Hour)
	runs := ours
	runs.State, runs.Start, runs.Eligible = cluster.Running, noon, noon
	other, resubmitted := ours, ours
	other.User = "bob"
	resubmitted.Submit = noon.Add(-cluster.Minute) // before what the file knows
	for name, x := range map[string]struct {
		job    cluster.Job
		recall bool
		gate   cluster.Instant
	}{"waiting": {ours, true, ours.Eligible}, "running": {runs, true, 0}, "another user's": {other, false, 0}, "another job": {resubmitted, false, 0}} {
		h := history{T: t, m: cluster.State{Had: had}}
		r := h.only(sight(noon.Add(cluster.Second), x.job))
		if recalled := r.Pinned && slices.Equal(r.UserNodes, []string{"n7"}) && r.UserLimit == cluster.Hour && r.UserBegin == 0 && r.SiteFactor == 3; recalled != x.recall || r.Gate != x.gate {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestTheUsersPartitionsAreKeptWhileOursStand(t *testing.T) {
	all := []cluster.Partition{{Name: "closed"}, {Name: "gpu"}, {Name: "low"}}
	for _, c := range []struct {
		shows      []string
		partitions []cluster.Partition
		want       []string
	}{
		{[]string{"gpu"}, all, []string{"closed", "gpu"}},
		{[]string{"gpu"}, all[1:], []string{"gpu"}},
		{[]string{"gpu", "low"}, all, nil},
	} {
		h := &history{T: t}
		j := batch(1)
		j.Partitions = []string{"closed", "gpu"}
		h.only(sight(noon, j))
		h.m.Records[0].Pinned, h.m.Records[0].UserPartitions = true, j.Partitions
		j.Partitions = c.shows
		seen := sight(noon.Add(1), j)
		seen.Partitions = c.partitions
		if got := h.only(seen).UserPartitions; !slices.Equal(got, c.want) {
			t.Errorf("shown %v: the user's partitions are %v, want %v", c.shows, got, c.want)
		}
	}
}

// Jobs that ended before our first look are not reported.
func TestJobsThatWereOverBefore(t *testing.T) {
	old := batch(1)
	old.State, old.End = cluster.Done, noon.Add(-cluster.Minute)
	late := batch(2)
	late.State, late.End = cluster.Done, noon.Add(cluster.Minute)
	h := &history{T: t}
	if s := h.look(sight(noon, old)); len(s.Cases) != 0 {
		t.Errorf("cases %+v, want none", s.Cases)
	}
	if s := h.look(sight(noon.Add(2*cluster.Minute), old, late)); len(s.Cases) != 1 || s.Cases[0].Record.ID.ID != 2 {
		t.Errorf("cases %+v, want only the one that ended since", s.Cases)
	}
}

// After an outage longer than MinJobAge the history has jobs that no look saw. Each gets one
// record, however many attempts it made. A job first seen after its end ran unseen: its record is
// that of a job that waited at the last look, so that the whole run is charged.
func TestAJobThatIsFirstSeenWhenItIsOverWaitedBefore(t *testing.T) {
	for _, state := range []cluster.JobState{cluster.Done, cluster.Completing} {
		j := batch(1)
		j.State, j.Start, j.End = state, noon.Add(10*cluster.Second), noon.Add(20*cluster.Second)
		s, err := Remember(cluster.State{Ledger: cluster.Ledger{At: noon}}, sight(noon.Add(30*cluster.Second), j), nil, everything, settings)
		if err != nil || len(s.Cases) != 1 || s.Cases[0].Record.State != cluster.Waiting {
			t.Errorf("%s: %+v, %v", state, s.Cases, err)
		}
	}
}

func TestJobsThatCameAndWentUnseen(t *testing.T) {
	h := &history{T: t}
	h.look(sight(noon))
	seen := sight(noon.Add(cluster.Hour), batch(5))
	for i := range 3 {
		at := noon.Add(cluster.Span(i) * cluster.Minute)
		seen.Attempts = append(seen.Attempts, cluster.Attempt{ID: cluster.JobID{ID: 9}, User: "bob", Account: "nlp", Submit: at, Start: at, End: at + 1},
			cluster.Attempt{ID: cluster.JobID{ID: 5}, User: "alice", Account: "nlp", Submit: noon, Start: at, End: at + 1})
	}
	s := h.look(seen)
	if len(s.Cases) != 2 || !s.Cases[1].Gone || s.Cases[1].Record.Tenant != "nlp" || s.Cases[1].Record.User != "bob" || len(s.Attempts) != 6 {
		t.Errorf("cases %+v", s.Cases)
	}
}

// Slurm reuses ids. A job that came and went unseen is another job than the one that had its id before, by its user, or since that was over before.
func TestUnseenJobsWithAKnownID(t *testing.T) {
	for what, c := range map[string]struct {
		user   string
		submit cluster.Instant
		done   cluster.Instant
		cases  int
	}{
		"of another user": {"bob", noon, 0, 2},
		"of the user, submitted after that was over":  {"alice", noon.Add(2 * cluster.Minute), noon.Add(cluster.Minute), 2},
		"of the user, submitted before that was over": {"alice", noon, noon.Add(cluster.Minute), 1},
		"of the user, while that lives":               {"alice", noon.Add(2 * cluster.Minute), 0, 1},
	} {
		m := cluster.State{Ledger: cluster.Ledger{At: noon}, NextKey: 2, Records: []cluster.Record{{Key: 1, ID: cluster.JobID{ID: 5}, User: "alice", Account: "nlp", Submit: noon - 1, Done: c.done}}}
		seen := sight(noon.Add(cluster.Hour))
		seen.Attempts = []cluster.Attempt{{ID: cluster.JobID{ID: 5}, User: c.user, Account: "nlp", Submit: c.submit, Start: c.submit + 1, End: c.submit + 2}}
		s, err := Remember(m, seen, nil, everything, settings)
		if err != nil || len(s.Cases) != c.cases || c.cases == 2 && (s.Cases[1].Record.User != c.user || s.Cases[1].Record.Key != 2) {
			t.Errorf("%s: %+v, %v", what, s.Cases, err)
		}
	}
}

// slurmdbd goes on to show jobs as running that slurmctld lost: they are no jobs that came and went since the last look.
func TestLostJobsOfLongAgoAreNoneThatCameAndWent(t *testing.T) {
	for what, c := range map[string]struct {
		start cluster.Instant
		cases int
	}{"began long before the last look": {noon.Add(-cluster.Hour), 0}, "began just before": {noon.Add(-cluster.Second), 1}, "began after": {noon.Add(cluster.Minute), 1}} {
		for _, end := range []cluster.Instant{0, noon.Add(2 * cluster.Minute)} {
			seen := sight(noon.Add(cluster.Hour))
			seen.Attempts = []cluster.Attempt{{ID: cluster.JobID{ID: 5}, User: "alice", Account: "nlp", Submit: c.start, Start: c.start, End: end}}
			s, err := Remember(cluster.State{Ledger: cluster.Ledger{At: noon}}, seen, nil, everything, settings)
			if err != nil || len(s.Cases) != c.cases {
				t.Errorf("%s, end %v: %+v, %v", what, end, s.Cases, err)
			}
		}
	}
}

// A snapshot has slurmctld's start only in rounds that may be the first after it.
func TestAStartOfSlurmctld(t *testing.T) {
	for what, c := range map[string]struct {
		last, boot cluster.Instant
		want       bool
	}{
		"in the first round":          {0, noon, false},
		"long before the last round":  {noon, noon.Add(-cluster.Hour), false},
		"in the second of that round": {noon.Add(900), noon, true},
		"after it":                    {noon, noon.Add(cluster.Minute), true},
	} {
		seen := sight(noon.Add(cluster.Hour))
		seen.Boot = c.boot
		s, err := Remember(cluster.State{Ledger: cluster.Ledger{At: c.last}}, seen, nil, everything, settings)
		if err != nil || (s.Boot == c.boot) != c.want {
			t.Errorf("%s: %v, %v", what, s.Boot, err)
		}
	}
}

func TestSnapshotsAreSortedAndTheirInputIsNot(t *testing.T) {
	seen := sight(noon, batch(3), batch(1), batch(2))
	seen.Nodes = append(seen.Nodes, cluster.Node{Name: "m1", GPUs: []cluster.GPUs{{Model: "k80", Count: 1}}})
	s, err := Remember(cluster.State{}, seen, nil, everything, settings)
	if err != nil {
		t.Fatal(err)
	}
	if s.Nodes[0].Name != "m1" || s.Cases[0].Job.ID.ID != 1 || s.Cases[2].Record.Key != 3 {
		t.Errorf("nodes %v, cases %+v: not sorted", s.Nodes, s.Cases)
	}
	if seen.Jobs[0].ID.ID != 3 || seen.Nodes[0].Name != "n1" {
		t.Error("what was seen has been sorted in place")
	}
}
