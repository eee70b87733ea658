package store

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
)

func TestFilm(t *testing.T) {
	story := journaltest.NewStory(1, 4, 100)
	var f film
	frames := map[int64]frame{}
	for range keyframeEvery + 20 {
		snap, plan := story.Next()
		shot, err := f.shoot(snap, plan)
		if err != nil {
			t.Fatal(err)
		}
		f.keep(shot)
		frames[shot.round] = shot
	}
	keys := 0
	for _, shot := range frames {
		var key texts
		if shot.keyframe == shot.round {
			keys++
		} else {
			key = frames[shot.keyframe].texts
		}
		got, err := develop(shot.snapshot, shot.plan, key)
		if err != nil {
			t.Fatalf("round %d: %v", shot.round, err)
		}
		if !bytes.Equal(got.snapshot, shot.texts.snapshot) || !bytes.Equal(got.plan, shot.texts.plan) {
			t.Errorf("round %d is developed to something else", shot.round)
		}
	}
	if keys < 2 || keys > len(frames)/4 {
		t.Errorf("%d keyframes in %d rounds", keys, len(frames))
	}
}

// TestFilmOfCells tells the description of the cells, which every snapshot repeats, next to nothing
// after the keyframe.
func TestFilmOfCells(t *testing.T) {
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
		var f film
		for round := range 10 {
			snap, plan := story.Next()
			snap.Cells = cells
			shot, err := f.shoot(snap, plan)
			if err != nil {
				t.Fatal(err)
			}
			f.keep(shot)
			if round > 0 {
				size[i] += len(shot.snapshot.packed)
			}
		}
	}
	if more := size[1] - size[0]; more*100 > 9*len(text) || len(text) < 100_000 {
		t.Errorf("in 9 rounds a description of %d bytes takes %d", len(text), more)
	}
}

// TestFilmOfAnotherCluster begins a new keyframe when nothing is as it was.
func TestFilmOfAnotherCluster(t *testing.T) {
	var f film
	var keyframes []int64
	for round := range int64(4) {
		snap, plan := journaltest.NewStory(uint64(round), 4, 50).Next()
		plan.Round = round + 1
		shot, err := f.shoot(snap, plan)
		if err != nil {
			t.Fatal(err)
		}
		f.keep(shot)
		keyframes = append(keyframes, shot.keyframe)
	}
	if keyframes[0] != 1 || keyframes[3] < 3 {
		t.Errorf("told after rounds %v", keyframes)
	}
}

// TestFilmThatWasNotKept shoots a round again when it could not be written.
func TestFilmThatWasNotKept(t *testing.T) {
	snap, plan := journaltest.NewStory(1, 4, 50).Next()
	var f film
	for range 2 {
		shot, err := f.shoot(snap, plan)
		if err != nil || shot.keyframe != shot.round {
			t.Errorf("told after round %d (%v)", shot.keyframe, err)
		}
	}
}

// FuzzDevelop feeds blobs as a broken disk may give them: an error at most.
func FuzzDevelop(f *testing.F) {
	story := journaltest.NewStory(1, 2, 5)
	var reel film
	for range 2 {
		snap, plan := story.Next()
		shot, err := reel.shoot(snap, plan)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(shot.snapshot.packed, shot.plan.packed, []byte(nil), shot.snapshot.bytes, shot.plan.bytes)
		f.Add(shot.snapshot.packed, shot.plan.packed, shot.texts.plan, shot.snapshot.bytes, shot.plan.bytes)
		reel.keep(shot)
	}
	f.Fuzz(func(t *testing.T, snapshot, plan, key []byte, snapshotBytes, planBytes int64) {
		out, err := develop(blob{snapshot, snapshotBytes % (1 << 20)}, blob{plan, planBytes % (1 << 20)}, texts{key, key})
		if err != nil {
			return
		}
		if int64(len(out.snapshot)) != snapshotBytes%(1<<20) {
			t.Errorf("%d bytes of %d", len(out.snapshot), snapshotBytes)
		}
		_, _, _ = out.read() // an error is fine
	})
}

// FuzzRowsText promises that PostgreSQL is never sent a NUL, and that nothing else changes.
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
