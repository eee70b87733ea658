package view_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

func TestHabitsAreListed(t *testing.T) {
	const now = cluster.Instant(1_800_000_000_000)
	of := func(user, command string, gpus int) cluster.JobType {
		return cluster.JobType{User: user, Command: command, GPUs: gpus}
	}
	list := []cluster.Habit{
		{Type: of("ann", "/home/ann/train.sh --seed #", 8), Resumed: 2, Last: cluster.Resumed, LastAt: now, Reports: 9, Every: 30 * cluster.Minute, At: now.Add(-cluster.Hour),
			Starts: []cluster.StartCost{{Model: "k80", Mean: 5 * cluster.Minute, Samples: 1}, {Model: "v100", Mean: 3 * cluster.Minute, Samples: 2}}},
		{Type: of("ann", "sweep.sh", 1), Completed: 3, Shortest: cluster.Hour, Longest: 2 * cluster.Hour, At: now.Add(-cluster.Minute)},
		{Type: of("bob", "x", 1), Restarted: 1, Last: cluster.Restarted, Completed: 1, Shortest: cluster.Hour, Longest: cluster.Hour, At: now},
	}
	var out bytes.Buffer
	p := &view.Page{Out: &out, Now: now}
	if err := p.List(view.HabitTable(p, view.Habits(list)), nil); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/habits.txt")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Error(d)
	}
	out.Reset()
	p.Form = view.Form{Parsable: true}
	if err := p.List(view.HabitTable(p, view.Habits(list)), nil); err != nil || !strings.Contains(out.String(), "|every 00:30:00|") {
		t.Errorf("for programs: %v\n%s", err, out.String())
	}
}
