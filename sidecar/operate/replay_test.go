package operate_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A modified plan is detected, and the first difference is reported.
func TestDifference(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{`{"a":1,"b":[1,2]}`, `{"a":1,"b":[1,3]}`, ".b[1]:\n  was 2\n  is  3"},
		{`{"a":1}`, `{"a":1,"c":2}`, ".c:\n  was null\n  is  2"},
		{`{"a":[1]}`, `{"a":[1,2]}`, ".a:\n  was [1]\n  is  [1,2]"},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, ".a:\n  was 9007199254740993\n  is  9007199254740992"},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, "the order of keys or the form of numbers"},
		{`{`, `{}`, "its form: one of them is no JSON"},
	} {
		if got := operate.Difference([]byte(c.was), []byte(c.is)); got != c.want {
			t.Errorf("%s against %s: %s", c.was, c.is, got)
		}
	}
}

// The decision on a snapshot's text equals that on the snapshot.
func TestDecide(t *testing.T) {
	s := simtest.Crowd(60, 4)
	snap, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := json.Marshal(engine.Decide(s))
	if err != nil {
		t.Fatal(err)
	}
	again, err := operate.Replay(snap)
	if err != nil || !bytes.Equal(plan, again) {
		t.Errorf("%v: it differs at %s", err, operate.Difference(plan, again))
	}
	if _, err := operate.Replay([]byte("{")); err == nil {
		t.Error("half a snapshot is decided over")
	}
	dir := filepath.Join(t.TempDir(), "new")
	if err := operate.SaveReplay(dir, 7, map[string][]byte{"plan": plan}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "round-7-plan.json")); err != nil || !json.Valid(text) || !bytes.Contains(text, []byte("\n ")) {
		t.Errorf("%v: %.100s", err, text)
	}
}
