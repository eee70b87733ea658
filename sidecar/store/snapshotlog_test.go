package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// reel is frames, in order.
type reel []frame

// told gives the decoded snapshots and plans as JSON.
func (r reel) told(t *testing.T) []texts {
	t.Helper()
	var p decoder
	var all []texts
	for _, encoded := range r {
		if err := p.next(encoded.snapshot, encoded.plan); err != nil {
			t.Fatalf("round %d: %v", encoded.round, err)
		}
		snap, plan, err := p.show()
		if err != nil {
			t.Fatalf("round %d: %v", encoded.round, err)
		}
		all = append(all, textsOf(t, snap, plan))
	}
	return all
}

// texts are a round's snapshot and plan as JSON.
type texts struct{ snapshot, plan []byte }

func textsOf(t *testing.T, snap cluster.Snapshot, plan cluster.Plan) texts {
	t.Helper()
	s, err := json.Marshal(snap)
	if err != nil {
		t.Fatal(err)
	}
	p, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	return texts{s, p}
}

func (t texts) equal(o texts) bool {
	return bytes.Equal(t.snapshot, o.snapshot) && bytes.Equal(t.plan, o.plan)
}

func TestSnapshotLog(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(1, 4, 100)
	var f snapshotLog
	var frames reel
	var want []texts
	keys := 0
	for range keyframeEvery + 70 {
		snap, plan := story.Next()
		encoded, err := f.encode(snap, plan)
		if err != nil {
			t.Fatal(err)
		}
		f.keep(encoded)
		if frames = append(frames, encoded); encoded.keyframe == encoded.round {
			keys++
		}
		want = append(want, textsOf(t, snap, plan))
	}
	for i, got := range frames.told(t) {
		if !got.equal(want[i]) {
			t.Errorf("round %d is told as something else", frames[i].round)
		}
	}
	if keys != 3 { // the first, one at midnight, one at the maximum distance
		t.Errorf("%d keyframes in %d rounds", keys, len(frames))
	}
}

// TestSnapshotLogOfEverything encodes lists that are nil, empty and full, and rare values.
func TestSnapshotLogOfEverything(t *testing.T) {
	t.Parallel()
	job := func(key cluster.JobKey) cluster.Case {
		factor := int64(-3)
		return cluster.Case{
			Job: cluster.Job{ID: cluster.TaskID(7, int32(key)), Name: "a\x00\xff\n", Partitions: []string{}, NodeList: []string{"n1"}, SiteFactor: &factor, Eligible: -1 << 63, Requeueable: true},
			Record: cluster.Record{Key: key, Due: 1<<63 - 1, DueRate: 1<<63 - 1, DueCarry: 999_999, Held: []cluster.ModelSize{{Model: "k80", Size: cluster.Whole(2)}}, Conduct: &cluster.Conduct{}, Stopping: &cluster.PendingStop{},
				Basis: &cluster.Basis{Fixed: true, Partitions: []string{"gpu"}, Hints: &cluster.Hints{Kind: "a"}, Told: cluster.ChangedName}},
			Changed: cluster.ChangedRequeue | cluster.ChangedComment,
			Control: cluster.FullControl, Gone: key%2 == 0,
		}
	}
	one, two := job(1), job(2)
	runs := []cluster.Completion{{Kind: "t/k", Gang: 1, Models: []string{"v100"}, Rates: []cluster.RunRate{{Rate: 1e-5, Spread: 0.1, Jobs: 5}}, Jobs: []cluster.JobRun{{Ran: []cluster.Span{7}, Done: true}}, At: 3}}
	uses := []cluster.Usage{{Kind: "t/k", Gang: 1, Model: "v100", At: 4, DRAM: cluster.Level{Jobs: 1, Mean: -2}}}
	nodes := cluster.NodeSpeeds{Runs: []cluster.NodeRun{{Job: 1, Node: "n1", Did: 0.1, Ran: 9}}}
	slow := cluster.NodeSpeeds{Runs: nodes.Runs, Slow: []cluster.SlowNode{{Node: "n1", Model: "v100", Percent: 60, Jobs: 3, Users: 2, Since: 3}}}
	rounds := []struct {
		snap cluster.Snapshot
		plan cluster.Plan
	}{
		{},
		{cluster.Snapshot{Cases: []cluster.Case{}, Leases: []cluster.Lease{}}, cluster.Plan{State: cluster.State{Records: []cluster.Record{}}, Statuses: []cluster.JobStatus{}}},
		{cluster.Snapshot{Now: 5, Cases: []cluster.Case{one}}, cluster.Plan{At: 5, State: cluster.State{Records: []cluster.Record{one.Record}}, Statuses: []cluster.JobStatus{{Job: 1, Rho: cluster.Infinite}}}},
		{cluster.Snapshot{Now: 6, Cases: []cluster.Case{two, one, one}}, cluster.Plan{At: 6, State: cluster.State{Records: []cluster.Record{two.Record, one.Record}}, Statuses: []cluster.JobStatus{{Job: 2}, {Job: 1}, {Job: 2}}}}, // unordered
		{cluster.Snapshot{Now: 7, Completions: runs}, cluster.Plan{At: 7, State: cluster.State{Completions: runs, Usages: uses}}},
		{cluster.Snapshot{Now: 8, NodeSpeeds: nodes}, cluster.Plan{At: 8, State: cluster.State{NodeSpeeds: slow}}},
		{cluster.Snapshot{Now: 4, Cases: []cluster.Case{two}}, cluster.Plan{At: 4, State: cluster.State{Leases: []cluster.Lease{{Job: 1}, {Job: 1, Term: 2}}}}},
		{},
	}
	var f snapshotLog
	var frames reel
	for i := range rounds {
		rounds[i].plan.Round = int64(i + 1)
		encoded, err := f.encode(rounds[i].snap, rounds[i].plan)
		if err != nil || encoded.link != i {
			t.Fatalf("link %d, %v", encoded.link, err)
		}
		f.keep(encoded)
		frames = append(frames, encoded)
	}
	for i, got := range frames.told(t) {
		if want := textsOf(t, rounds[i].snap, rounds[i].plan); !got.equal(want) {
			t.Errorf("round %d is told as\n%s\n%s, not\n%s\n%s", i, got.snapshot, got.plan, want.snapshot, want.plan)
		}
	}
}

// TestQuietRoundsAreShort bounds the bytes of rounds in which nearly all jobs only wait.
func TestQuietRoundsAreShort(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(1, 25, 2000)
	var f snapshotLog
	whole, longest := 0, 0
	for round := range 40 {
		snap, plan := story.Next()
		encoded, err := f.encode(snap, plan)
		if err != nil {
			t.Fatal(err)
		}
		f.keep(encoded)
		switch size := len(encoded.snapshot.packed) + len(encoded.plan.packed); {
		case encoded.link == 0:
			whole += size
		case round > 5:
			longest = max(longest, size)
		}
	}
	if longest > 5000 || whole > 60_000 {
		t.Errorf("a round with 2000 jobs that wait takes up to %d bytes, the keyframe %d", longest, whole)
	}
}

// TestSnapshotLogOfCells encodes the description of the cells, which every snapshot repeats, in almost
// no bytes after the keyframe.
func TestSnapshotLogOfCells(t *testing.T) {
	t.Parallel()
	described := journaltest.NewStory(1, 4000, 5)
	described.Cells = true
	with, _ := described.Next()
	text, err := json.Marshal(with.Cells)
	if err != nil {
		t.Fatal(err)
	}
	var size [2]int
	for i, cells := range []*cluster.Cells{nil, with.Cells} {
		story := journaltest.NewStory(1, 4000, 5)
		var f snapshotLog
		for round := range 10 {
			snap, plan := story.Next()
			snap.Cells = cells
			encoded, err := f.encode(snap, plan)
			if err != nil {
				t.Fatal(err)
			}
			f.keep(encoded)
			if round > 0 {
				size[i] += len(encoded.snapshot.packed)
			}
		}
	}
	if more := size[1] - size[0]; more*100 > 9*len(text) || len(text) < 100_000 {
		t.Errorf("in 9 rounds a description of %d bytes takes %d", len(text), more)
	}
}

// TestSnapshotLogThatWasNotKept encodes a round again that could not be written, with all its new words.
func TestSnapshotLogThatWasNotKept(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(1, 4, 50)
	var f snapshotLog
	var frames reel
	var want []texts
	for round := range 4 {
		snap, plan := story.Next()
		for range 2 {
			encoded, err := f.encode(snap, plan)
			if err != nil || round == 0 && encoded.keyframe != encoded.round {
				t.Errorf("told after round %d (%v)", encoded.keyframe, err)
			}
			if round%2 == 1 { // these are not written
				snap.Cases[0].Job.Name = "another"
				encoded, err = f.encode(snap, plan)
			}
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames[:round:round], encoded)
		}
		f.keep(frames[round])
		want = append(want, textsOf(t, snap, plan))
	}
	for i, got := range frames.told(t) {
		if !got.equal(want[i]) {
			t.Errorf("round %d is told as something else", i+1)
		}
	}
}

// TestAFrameThatIsMissing detects it.
func TestAFrameThatIsMissing(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(1, 4, 50)
	var f snapshotLog
	var p decoder
	for round := range 5 {
		encoded, err := f.encode(story.Next())
		if err != nil {
			t.Fatal(err)
		}
		f.keep(encoded)
		if round == 2 {
			continue
		}
		err = p.next(encoded.snapshot, encoded.plan)
		if err == nil {
			_, _, err = p.show()
		}
		if (err != nil) != (round > 2) {
			t.Errorf("round %d: %v", round+1, err)
		}
	}
}

// A frame in the format from before v0.1.0 is no broken one.
func TestAnEarlyFrame(t *testing.T) {
	t.Parallel()
	var p decoder
	if err := p.next(pack([]byte{0, 0}), pack(nil)); !errors.Is(err, errEarly) {
		t.Errorf("it is read with: %v", err)
	}
}

// Frames with any bytes wrong are at most an error.
func TestBrokenFrames(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(1, 2, 8)
	var f snapshotLog
	var all [][]byte // snapshots and plans in turn
	for range 4 {
		encoded, err := f.encode(story.Next())
		if err != nil {
			t.Fatal(err)
		}
		f.keep(encoded)
		for _, b := range []blob{encoded.snapshot, encoded.plan} {
			text, err := b.unpack()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	read := 0
	for range seeds.Some(1000, 6000) {
		var p decoder
		broken := random.IntN(len(all))
		for i := 0; i < len(all); i += 2 {
			parts := [2][]byte{all[i], all[i+1]}
			if k := broken - i; k == 0 || k == 1 {
				text := slices.Clone(parts[k])
				for range 1 + random.IntN(3) {
					text[random.IntN(min(len(text), 400))] = byte(random.IntN(256) >> random.IntN(8))
				}
				parts[k] = text
			}
			if p.next(pack(parts[0]), pack(parts[1])) != nil {
				break
			}
			if _, _, err := p.show(); err == nil {
				read++
			}
		}
	}
	if read < 500 {
		t.Errorf("%d frames were read", read)
	}
}

// FuzzFrames decodes two arbitrary frames, as from a broken disk: at most an error.
func FuzzFrames(f *testing.F) {
	story := journaltest.NewStory(1, 2, 5)
	var reel snapshotLog
	var told [][2][]byte
	for range 2 {
		snap, decided := story.Next()
		snap.Cases = slices.Clone(snap.Cases)
		for i := range snap.Cases { // some ask for parts of GPUs
			snap.Cases[i].Job.Request.Size.Part /= cluster.MicroGPU(1 + i%3)
		}
		encoded, err := reel.encode(snap, decided)
		if err != nil {
			f.Fatal(err)
		}
		reel.keep(encoded)
		snapshot, err := encoded.snapshot.unpack()
		if err != nil {
			f.Fatal(err)
		}
		plan, err := encoded.plan.unpack()
		if err != nil {
			f.Fatal(err)
		}
		told = append(told, [2][]byte{snapshot, plan})
	}
	f.Add(told[0][0], told[0][1], told[1][0], told[1][1])
	f.Fuzz(func(t *testing.T, s1, p1, s2, p2 []byte) {
		var p decoder
		for _, told := range [][2][]byte{{s1, p1}, {s2, p2}} {
			if p.next(pack(told[0]), pack(told[1])) != nil {
				continue
			}
			snap, _, err := p.show() // an error is fine
			for i := range snap.Cases {
				if size := snap.Cases[i].Job.Request.Size; err == nil && !size.IsWhole() && size.Check() != nil {
					t.Errorf("a job asks for %#v", size)
				}
			}
		}
	})
}

// FuzzRowsText: PostgreSQL never gets a NUL, and nothing else changes.
func FuzzRowsText(f *testing.F) {
	for _, text := range []string{"", "a\x00b", `\u0000`, "\\\x00", `\\u0000`, "\x00\x00", "ünï\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, name string) {
		text, err := rowsText([]tenantRow{{Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal([]tenantRow{{Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		var want, got []map[string]any
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		wantName := bytes.ReplaceAll([]byte(want[0]["name"].(string)), []byte{0}, []byte("\ufffd"))
		if got[0]["name"] != string(wantName) {
			t.Errorf("%q became %q", name, got[0]["name"])
		}
	})
}

func TestColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		want  string
	}{
		{stamp(0), "null"},
		{stamp(1772409600123), `"2026-03-02T00:00:00.123Z"`},
		{stamp(-1), `"1969-12-31T23:59:59.999Z"`},
		{stamp(1<<63 - 1), `"infinity"`},
		{stamp(-1 << 63), `"-infinity"`},
		{millionths(1_500_000), "1.500000"},
		{millionths(-1), "-0.000001"},
		{millionths(-1 << 63), "-9223372036854.775808"},
		{rho(cluster.Fair), "1.000000"},
		{rho(cluster.Infinite), `"Infinity"`},
		{optional(0), "null"},
		{optional(7), "7"},
		{listOf(nil), "[]"},
		{listOf([]string{"a", "b,c"}), `["a","b,c"]`},
		{date(1772409600000), `"2026-03-02"`},
		{known{}, "null"},
		{known{ok: true}, "0"},
	} {
		got, err := json.Marshal(c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%T %v is written as %s (%v), want %s", c.value, c.value, got, err, c.want)
		}
	}
}

// TestQuietRoundsWriteFewRows bounds the rows of rounds in which nearly all jobs only wait and
// every gate is extended.
func TestQuietRoundsWriteFewRows(t *testing.T) {
	t.Parallel()
	const waiting = 2000
	story := journaltest.NewStory(1, 25, waiting)
	w := newWritten(15 * cluster.Minute)
	longest, all := 0, 0
	rounds := seeds.Some(40, 100) // leases end in between, which changes times in statuses
	for round := range rounds {
		snap, plan := story.Next()
		acts := plan.Actions
		for _, c := range snap.Cases {
			if c.Job.State == cluster.Waiting {
				acts = append(acts, cluster.Action{Verb: cluster.Gate, Job: c.Record.Key, ID: c.Job.ID, Until: snap.Now.Add(10 * cluster.Minute),
					Reason: cluster.Reason{Code: cluster.ReasonGate}})
			}
		}
		plan.Actions = acts
		e := w.entry(snap, plan, cluster.Minute)
		rows, err := e.texts()
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, r := range rows {
			size += len(r.text)
		}
		w.keep(e, plan.State)
		if e.round.Gates < waiting/2 || len(e.actions) > waiting/10 {
			t.Errorf("round %d: %d gates, %d rows of actions", plan.Round, e.round.Gates, len(e.actions))
		}
		if round > 5 {
			longest, all = max(longest, size), all+size
		}
	}
	if longest > 200_000 || all/(rounds-6) > 45_000 {
		t.Errorf("a round's rows are up to %d bytes, %d on average", longest, all/(rounds-6))
	}
}
