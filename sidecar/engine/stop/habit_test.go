package stop_test

import (
	"flag"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

const (
	second = cluster.Second
	minute = cluster.Minute
	hour   = cluster.Hour
)

// A property that fails must fail again.
func init() { _ = flag.Set("rapid.seed", "1") }

// ours is the conduct of a job that fairlease requeued.
func ours(noticed bool) *cluster.Conduct { return &cluster.Conduct{Ours: true, Noticed: noticed} }

// A job that others requeue may have requeued itself right after a save: that it goes on proves no save at a signal.
func TestARequeueByOthersProvesNoSaveOnASignal(t *testing.T) {
	var b stop.Habits
	b.Reset(nil)
	ty := cluster.JobType{User: "bob", Command: "train.sh", GPUs: 2}
	others := &cluster.Conduct{Last: cluster.Resumed, LastAt: 10}
	b.Judged(ty, 10, cluster.Resumed, 30*second, others)
	h := b.Entries()[0]
	if h.Resumed != 1 || h.OnTerm != 0 || h.OnNotice != 0 || h.Redone != 30*second {
		t.Errorf("the habit: %+v", h)
	}
	for _, own := range []*cluster.Conduct{others, nil} {
		if s := stop.Resolve(own, &h, cluster.Saving{}, cluster.Saving{}); s.Manner != cluster.UnknownManner || s.Resumes != cluster.Resumed || s.Evidence == "" {
			t.Errorf("undeclared: %+v", s)
		}
		said := cluster.Saving{Manner: cluster.SavesEvery, Every: hour, Source: cluster.FromDeclaration}
		if s := stop.Resolve(own, &h, said, cluster.Saving{}); s.Manner != cluster.SavesEvery || s.Every != hour {
			t.Errorf("declared every hour: %+v", s)
		}
	}
	b.Reset([]cluster.Habit{h})
	b.Judged(ty, 20, cluster.Resumed, 30*second, ours(false))
	if h := b.Entries()[0]; h.OnTerm != 1 {
		t.Errorf("after a stop of ours: %+v", h)
	}
}

func TestHabitsAreKept(t *testing.T) {
	var b stop.Habits
	b.Reset(nil)
	ty, other := cluster.JobType{User: "bob", Command: "train.sh", GPUs: 2}, cluster.JobType{User: "alice", Command: "x", GPUs: 1}
	if b.At(b.Find(ty)) != nil || b.Len() != 0 || len(b.Entries()) != 0 {
		t.Error("a habit without evidence")
	}
	b.Judged(ty, 10, cluster.Restarted, 0, ours(true))
	b.Judged(ty, 20, cluster.Resumed, 30*second, ours(true))
	b.Judged(ty, 30, cluster.Resumed, 10*minute, ours(false))
	b.Completed(ty, 31, hour)
	b.Completed(ty, 32, 2*hour)
	for i, gap := range []cluster.Span{8, 16, 8} {
		b.Saved(ty, cluster.Instant(40+i), gap*minute)
	}
	b.Began(ty, 50, "v100", minute)
	b.Began(ty, 51, "v100", 3*minute)
	b.Began(ty, 52, "k80", 9*minute)
	b.Began(ty, 53, "k80", 9*hour) // no start
	b.Began(other, 60, "k80", second)
	want := cluster.Habit{Type: ty, Restarted: 1, Resumed: 2, Last: cluster.Resumed, LastAt: 30, OnNotice: 1, Redone: 10 * minute,
		Completed: 2, Shortest: hour, Longest: 2 * hour, Reports: 3, Every: 15 * minute, SavedAt: 42, At: 52,
		Starts: []cluster.StartCost{{Model: "k80", Mean: 9 * minute, Samples: 1}, {Model: "v100", Mean: 2 * minute, Samples: 2}}}
	all := b.Entries()
	if len(all) != 2 || all[0].Type != other || !reflect.DeepEqual(all[1], want) {
		t.Errorf("%+v\nwant %+v", all, want)
	}
	if stop.Begin(&all[1], "v100", hour) != 2*minute || stop.Begin(&all[1], "a100", hour) != hour || stop.Begin(nil, "v100", hour) != hour {
		t.Error("the cost of a start")
	}
	before := fmt.Sprintf("%+v", all)
	b.Reset(all)
	b.Judged(ty, 70, cluster.Restarted, 0, ours(false))
	b.Began(ty, 71, "v100", 30*minute)
	b.Entries()
	if got := fmt.Sprintf("%+v", all); got != before {
		t.Errorf("what was handed in has changed:\n%s\n%s", before, got)
	}
}

func TestTheOldestHabitsGoFirst(t *testing.T) {
	var b stop.Habits
	b.Reset(nil)
	for u := range 30 {
		for k := range 600 {
			b.Completed(cluster.JobType{User: fmt.Sprintf("u%02d", u), Command: fmt.Sprint(k), GPUs: 1}, cluster.Instant(1+600*u+k), hour)
		}
	}
	all := b.Entries()
	if len(all) > 10_000 || len(all) < 9500 {
		t.Fatalf("%d habits are kept", len(all))
	}
	of := map[string]int{}
	for _, h := range all {
		of[h.Type.User]++
		if h.At <= 600*8 || (h.At-1)%600 < 100 {
			t.Fatalf("%+v is kept", h)
		}
	}
	if of["u29"] > 500 || of["u29"] < 475 || !slices.IsSortedFunc(all, func(x, y cluster.Habit) int { return x.Type.Compare(y.Type) }) {
		t.Errorf("not sorted, or not of each user the newest: %v", of)
	}
	b.Reset(all)
	if i := b.Find(all[77].Type); i != 77 {
		t.Errorf("habit 77 is found at %d", i)
	}
}

// The same observations give the same habits, whether they come in one round or in many.
func TestHabitsDoNotDependOnRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type seen struct{ what, who, span int }
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) seen {
			return seen{rapid.IntRange(0, 4).Draw(t, "what"), rapid.IntRange(0, 5).Draw(t, "who"), rapid.IntRange(1, 1e7).Draw(t, "span")}
		}), 1, 40).Draw(t, "observations")
		run := func(round func(i int) bool) []cluster.Habit {
			var b stop.Habits
			b.Reset(nil)
			for i, s := range all {
				ty, at, span := cluster.JobType{User: fmt.Sprint(s.who % 3), Command: fmt.Sprint(s.who), GPUs: 1}, cluster.Instant(i+1), cluster.Span(s.span)
				switch s.what {
				case 0:
					b.Judged(ty, at, cluster.Resumed, span, ours(s.span%2 == 0))
				case 1:
					b.Judged(ty, at, cluster.Restarted, 0, ours(false))
				case 2:
					b.Completed(ty, at, span)
				case 3:
					b.Saved(ty, at, span)
				case 4:
					b.Began(ty, at, fmt.Sprint("m", s.span%3), span)
				}
				if round(i) {
					b.Reset(b.Entries())
				}
				if h := b.At(b.Find(ty)); s.what < 4 && (h == nil || h.At != at) {
					t.Fatalf("what was observed is not there: %+v", h)
				}
			}
			return b.Entries()
		}
		once, often := run(func(int) bool { return false }), run(func(i int) bool { return i%2 == 0 })
		if !reflect.DeepEqual(once, often) {
			t.Fatalf("%+v\n%+v", once, often)
		}
		for _, h := range once {
			if h.Shortest > h.Longest || (h.Reports > 0) != (h.Every > 0) || (h.Last == "") != (h.Resumed+h.Restarted == 0) {
				t.Fatalf("senseless: %+v", h)
			}
		}
	})
}

// Habits whose memory is reused leave the input of a round as it was, also if the round is decided again.
func TestBriefHabitsLeaveTheirInputAlone(t *testing.T) {
	b := stop.Habits{Brief: true}
	var list []cluster.Habit
	for round := range 20 {
		kept := slices.Clone(list)
		var out []cluster.Habit
		for try := range 1 + round%3 {
			b.Reset(list)
			b.Completed(cluster.JobType{User: "u", Command: fmt.Sprint(round / 4), GPUs: 1}, cluster.Instant(round), cluster.Span(round+1))
			out = b.Entries()
			if !reflect.DeepEqual(kept, list) {
				t.Fatalf("round %d, decided %d times, has changed its input", round, try+1)
			}
		}
		if h := out[round/4]; h.Completed != round%4+1 || h.Longest != cluster.Span(round+1) {
			t.Fatalf("round %d: %+v", round, h)
		}
		list = out
	}
}
