package store

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
)

// TestSnapshotLogOfSchema9 reads frames in which ledger, claims and habits were not yet separate.
func TestSnapshotLogOfSchema9(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/snapshots-of-schema-9.json")
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Frames []struct {
			Snapshot      []byte `json:"snapshot"`
			SnapshotBytes int64  `json:"snapshot_bytes"`
			Plan          []byte `json:"plan"`
			PlanBytes     int64  `json:"plan_bytes"`
		} `json:"frames"`
		Snapshot cluster.Snapshot `json:"snapshot"`
		Plan     cluster.Plan     `json:"plan"`
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	var p decoder
	for i, f := range kept.Frames {
		if err := p.next(blob{f.Snapshot, f.SnapshotBytes}, blob{f.Plan, f.PlanBytes}); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	snap, plan, err := p.show()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept.Snapshot, snap); diff != "" {
		t.Errorf("another snapshot (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(kept.Plan, plan); diff != "" {
		t.Errorf("another plan (-want +got):\n%s", diff)
	}
	if len(plan.State.Ledger.Tenants) == 0 || len(snap.Cases) == 0 {
		t.Error("the frames tell nothing")
	}
}

// oldBlob is a text as stored before schema 9: self-contained, or as the difference to its
// keyframe's.
func oldBlob(text, key []byte) blob {
	told := text
	if key != nil {
		told = newOriginal(key).delta(text)
	}
	return blob{encoder.EncodeAll(told, nil), int64(len(text))}
}

// TestTexts reads rounds as stored before schema 9.
func TestTexts(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(1, 4, 30)
	first, second := nextTexts(t, story), nextTexts(t, story)
	key, err := decode(oldBlob(first.snapshot, nil), oldBlob(first.plan, nil), texts{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(oldBlob(second.snapshot, first.snapshot), oldBlob(second.plan, first.plan), key)
	if err != nil {
		t.Fatal(err)
	}
	if !key.equal(first) || !got.equal(second) {
		t.Error("the texts are told as something else")
	}
}

func nextTexts(t *testing.T, story *journaltest.Story) texts {
	t.Helper()
	snap, plan := story.Next()
	return textsOf(t, snap, plan)
}
