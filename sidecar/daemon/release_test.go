package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// After a release every waiting job has its user's settings, whatever the daemon was doing, and
// no reservation of ours is left. A release needs no database.
func TestReleaseLeavesNoTrace(t *testing.T) {
	for _, crash := range []time.Duration{3 * time.Second, 15*time.Second + 100*time.Millisecond, 20*time.Second + 500*time.Millisecond, 47 * time.Second} {
		t.Run(crash.String(), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				on := newLive()
				on.submit("nlp", 4, 4)
				on.submit("vision", 4, 4)
				on.mu.Lock()
				later := cluster.InstantOf(time.Now()).Add(cluster.Hour)
				begin := on.v.Submit(sim.Work{User: "u", Account: "nlp", Partition: "gpu", Request: simtest.Gang(1), Begin: later, Runs: cluster.Hour})
				node := on.v.Submit(sim.Work{User: "u", Account: "nlp", Partition: "gpu", Request: simtest.Gang(4), NodeList: []string{"v02"}, Runs: cluster.Hour})
				tasks := on.v.SubmitArray(sim.Work{User: "u", Account: "vision", Partition: "gpu", Request: simtest.Gang(2), Runs: cluster.Hour}, 3)
				on.mu.Unlock()
				r := start(t, "a", newShared(), on, dir, short)
				pass(crash)
				r.end(t)
				state, err := ReadState(filepath.Join(dir, "state.json"))
				if err != nil {
					t.Fatal(err)
				}
				plan, _, err := (&Release{Cluster: on, State: state}).Plan(t.Context())
				if err != nil || len(plan) == 0 {
					t.Fatalf("nothing to release: %v", err)
				}
				done, err := (&Release{Cluster: on, State: state, Patience: 30 * time.Second}).Do(t.Context())
				if err != nil || done.Opened == 0 || len(done.Failed) > 0 {
					t.Fatalf("%+v %v", done, err)
				}
				seen, err := on.Observe(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, j := range seen.Jobs {
					var nodes []string
					if j.ID == node {
						nodes = []string{"v02"}
					}
					if j.State == cluster.Waiting && (!slices.Equal(nodes, j.NodeList) || j.Reservation != "" ||
						j.ID != begin && j.Eligible > seen.Now) {
						t.Errorf("job %v is left with nodes %v, reservation %q, begin in %v", j.ID, j.NodeList, j.Reservation, j.Eligible.Sub(seen.Now))
					}
				}
				if len(seen.Reservations) != 0 {
					t.Errorf("reservations are left: %v", seen.Reservations)
				}
				if at := on.v.Job(begin).Eligible; at != later {
					t.Errorf("the user's own begin time is %v now, it was %v", at, later)
				}
				_ = tasks
			})
		})
	}
}

// Without any file, Slurm's data alone shows what is ours.
func TestReleaseFromMarksAlone(t *testing.T) {
	now := cluster.Instant(1_800_000_000_000)
	gated, begin := now.Add(cluster.Hour), now.Add(2*cluster.Hour)
	job := func(id int64, j cluster.Job) cluster.Job {
		j.ID, j.Record, j.User = cluster.JobID{ID: id}, id, "u"
		if j.State == "" {
			j.State = cluster.Waiting
		}
		return j
	}
	seen := cluster.Observation{Now: now, Jobs: []cluster.Job{
		job(1, cluster.Job{Marked: true, Eligible: gated}),
		job(2, cluster.Job{Marked: true, Eligible: gated, MarkedBegin: begin, NodeList: []string{"v1"}}),
		job(3, cluster.Job{Eligible: gated}), // the user's own begin time: not ours
		job(4, cluster.Job{Reservation: "fairlease_4_1", NodeList: []string{"v1"}}),
		job(5, cluster.Job{State: cluster.Running, Reservation: "fairlease_5_1", NodeList: []string{"v1"}}),
		job(6, cluster.Job{State: cluster.Done, Marked: true}),
		job(7, cluster.Job{Reservation: "maintenance"}),
		job(8, cluster.Job{Locked: true, Eligible: now}),
		job(9, cluster.Job{Locked: true, Eligible: gated}),               // the user's own begin time, behind our gate
		job(10, cluster.Job{Locked: true, Eligible: gated, Restarts: 1}), // Slurm's delay
		job(11, cluster.Job{Locked: true, Marked: true, Eligible: gated}),
	}, Reservations: []cluster.Reservation{{Name: "fairlease_4_1", Ours: true, End: gated}, {Name: "maintenance", End: gated}}}
	var got []string
	for _, a := range (&Release{}).actions(&seen, true, false).list {
		got = append(got, strings.TrimSpace(string(a.Verb)+" "+strings.TrimPrefix(a.ID.String(), "0")+a.Reservation+" "+strings.Join(a.NodeList, ",")))
	}
	want := []string{"open 1", "take_back 2 v1", "open 4", "release 5fairlease_5_1", "open 8", "take_back 9", "open 10", "open 11", "unreserve fairlease_4_1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A waiting job that has the partitions of its grant gets its user's back, once.
func TestReleaseGivesPartitionsBack(t *testing.T) {
	users := []string{"closed", "gpu"}
	r := &Release{State: State{Jobs: []Touched{{ID: cluster.JobID{ID: 1}, Record: 1, User: "u", Submit: 5, Partitions: users}}}}
	seen := cluster.Observation{Now: 100, Jobs: []cluster.Job{{ID: cluster.JobID{ID: 1}, Record: 1, User: "u", Submit: 5, State: cluster.Waiting, Partitions: []string{"gpu"}}}}
	if todo := r.actions(&seen, false, false).list; len(todo) != 1 || todo[0].Verb != cluster.Open || !slices.Equal(todo[0].Partitions, users) {
		t.Errorf("%+v", todo)
	}
	seen.Jobs[0].Partitions = users
	if todo := r.actions(&seen, false, false).list; len(todo) != 0 {
		t.Errorf("once more: %+v", todo)
	}
}

// A release for one owner gives back its waiting jobs alone, and leaves reservations, for which others wait.
func TestReleaseForOneOwner(t *testing.T) {
	job := func(id int64, user, account string) cluster.Job {
		return cluster.Job{ID: cluster.JobID{ID: id}, Record: id, User: user, Account: account, State: cluster.Waiting, Marked: true, Eligible: 900}
	}
	seen := cluster.Observation{Now: 100, Jobs: []cluster.Job{job(1, "ann", "nlp-a"), job(2, "bob", "nlp"), job(3, "ann", "vision"),
		{ID: cluster.JobID{ID: 4}, User: "eve", Account: "web", State: cluster.Done, Marked: true}, {ID: cluster.JobID{ID: 5}, User: "dan", Account: "web", State: cluster.Running}},

		Reservations: []cluster.Reservation{{Name: cluster.GateReservation, End: 500, Ours: true}, {Name: cluster.ReservationPrefix + "1", End: 500, Ours: true}}}
	memory := cluster.State{Records: []cluster.Record{{Key: 1, ID: cluster.JobID{ID: 1}, Tenant: "nlp"}}}
	for _, c := range []struct {
		only         Whose
		jobs         []int64
		reservations int
		owned        int
		name         string
	}{
		{Whose{}, []int64{1, 2, 3}, 2, 4, "everybody"},
		{Whose{Tenant: "nlp"}, []int64{1, 2}, 0, 2, "tenant nlp"}, // job 1 by its record, job 2 by its account
		{Whose{User: "ann"}, []int64{1, 3}, 0, 2, "user ann"},
		{Whose{Tenant: "nlp", User: "ann"}, []int64{1}, 0, 1, "user ann of tenant nlp"},
		{Whose{Tenant: "nlp-a"}, nil, 0, 0, "tenant nlp-a"}, // an account of a tenant is none
		{Whose{User: "eve"}, nil, 0, 0, "user eve"},         // her job is over
		{Whose{User: "dan"}, nil, 0, 1, "user dan"},         // fairlease has set nothing for it
	} {
		var jobs []int64
		reservations := 0
		todo := (&Release{Memory: memory, Only: c.only}).actions(&seen, true, false)
		for _, a := range todo.list {
			if a.Verb == cluster.Unreserve {
				reservations++
			} else {
				jobs = append(jobs, a.ID.ID)
			}
		}
		if !slices.Equal(jobs, c.jobs) || reservations != c.reservations || todo.owned != c.owned || c.only.String() != c.name {
			t.Errorf("%v: jobs %v of %d and %d reservations, want %v of %d and %d", c.only, jobs, todo.owned, reservations, c.jobs, c.owned, c.reservations)
		}
	}
}

// A later job with the same id is not the recorded one.
func TestReleaseKnowsJobsApart(t *testing.T) {
	state := State{Jobs: []Touched{{ID: cluster.JobID{ID: 1}, Record: 1, User: "u", Submit: 5}}}
	r := &Release{State: state}
	for _, c := range []struct {
		job  cluster.Job
		ours bool
	}{
		{cluster.Job{ID: cluster.JobID{ID: 1}, User: "u", Submit: 5}, true},
		{cluster.Job{ID: cluster.JobID{ID: 1}, User: "u", Submit: 9, Restarts: 1}, true},
		{cluster.Job{ID: cluster.JobID{ID: 1}, User: "u", Submit: 9}, false},
		{cluster.Job{ID: cluster.JobID{ID: 1}, User: "v", Submit: 5}, false},
	} {
		if _, ours := find(r.known(), &c.job); ours != c.ours {
			t.Errorf("%+v: ours = %v", c.job, ours)
		}
	}
}

// An array's original settings are known while one of its tasks is, even if the task that carried
// the gate is gone. The gate applies to all waiting tasks, also to those that were never seen
// singly.
func TestWhatAnArrayHadOutlivesItsTasks(t *testing.T) {
	const submit, begin = 100, 900
	task := func(i int32) cluster.Record {
		return cluster.Record{Key: cluster.JobKey(i + 1), ID: cluster.TaskID(9, i), User: "u", Submit: submit, UserBegin: begin}
	}
	unseen := cluster.Job{ID: cluster.TaskID(9, 77), Record: 9, UnsplitArray: true, User: "u", Submit: submit, State: cluster.Waiting}
	plan := cluster.Plan{Actions: []cluster.Action{{Verb: cluster.Gate, ID: cluster.TaskID(9, 0), Record: 9, UnsplitArray: true, Array: true}}}
	plan.State.Records = []cluster.Record{task(0), task(1), task(2)}
	known := func(s State, when string) {
		t.Helper()
		had, ours := find((&Release{State: s}).known(), &unseen)
		if !ours || had.Begin != begin {
			t.Errorf("%s: a task that waits is ours: %v, and had %+v", when, ours, had)
		}
	}
	s := State{}.with(&plan)
	known(s, "at first")

	plan.Actions = nil
	first, second := &plan.State.Records[0], &plan.State.Records[1]
	first.Terms, first.Restarts, first.Submit, first.UserBegin = 1, 1, 500, 0
	s = s.with(&plan)
	known(s, "one task was requeued")
	if had, ours := find((&Release{State: s}).known(), &cluster.Job{ID: first.ID, User: "u", Submit: 500, Restarts: 1}); !ours || had.Begin != 0 {
		t.Errorf("the task that was requeued is ours: %v, and had %+v", ours, had)
	}
	first.Done = 600
	s = s.with(&plan)
	known(s, "that task has ended")
	second.Terms, second.UserBegin = 1, 0
	plan.State.Records = plan.State.Records[:2]
	s = s.with(&plan)
	known(s, "no task that waits is known")
	second.Done = 700
	if s = s.with(&plan); len(s.Jobs) != 0 {
		t.Errorf("all tasks have ended, and the state has %+v", s.Jobs)
	}
}

func TestStateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "state.json")
	if s, err := ReadState(path); err != nil || len(s.Jobs) != 0 {
		t.Error("a file that is not there:", s, err)
	}
	want := State{Written: 7, Jobs: []Touched{{ID: cluster.JobID{ID: 4}, Record: 4, Array: true, User: "u", Nodes: []string{"v1"}}}}
	if err := want.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadState(path)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Error("left over:", left)
	}
	for _, text := range []string{"{}", stateWord + "{", "x"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadState(path); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func FuzzReadState(f *testing.F) {
	f.Add([]byte(stateWord + `{"written":1,"jobs":[{"id":{"id":1},"user":"u"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := ReadState(path); err == nil {
			(&Release{State: s}).known()
		}
	})
}
