package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// With a clock that is off, nothing is written, one line names the clock, and rounds continue once it is right again. One event
// says so, and no job is stopped.
func TestClocksThatDisagree(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		name               string
		here, slurm, there time.Duration
		want               string
	}{
		{"this host", year, 0, 0, "that of this host is off: this host says"},
		{"this host, an hour ahead", time.Hour, 0, 0, "that of this host is off"},
		{"this host, an hour behind", -time.Hour, 0, 0, "that of this host is off"},
		{"slurmctld", 0, -2 * time.Minute, 0, "that of slurmctld is off"},
		{"PostgreSQL", 0, 0, year, "that of PostgreSQL is off"},
		{"all", 0, year, -year, "cannot be told which is off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				on, journal := newLive(), newShared()
				on.submit("nlp", 2, 4)
				r := start(t, "a", journal, on, dir, short)
				until(t, "rounds are made", func() bool { return on.rounds() > 3 })
				set := func(here, slurm, there time.Duration) {
					on.mu.Lock()
					on.off, on.ahead = here, slurm
					on.mu.Unlock()
					journal.mu.Lock()
					journal.ahead = there
					journal.mu.Unlock()
				}
				committed := func() int64 {
					m, err := journal.memory.Open(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					return m.Round
				}
				set(c.here, c.slurm, c.there)
				pass(2 * time.Second)
				before := committed()
				pass(time.Minute)
				if after := committed(); after != before {
					t.Errorf("round %d was committed", after)
				}
				lines := r.log.with("round failed; nothing is changed until one succeeds")
				if len(lines) != 1 || !strings.Contains(fmt.Sprint(lines), c.want) {
					t.Errorf("%d lines, want one that says %q: %v", len(lines), c.want, lines)
				}
				set(0, 0, 0)
				until(t, "rounds succeed again", func() bool { return committed() > before })
				pass(10 * time.Second)
				events := 0
				for _, line := range r.log.with(c.want) {
					if line["event"] == cluster.EventClock {
						events++
					}
				}
				if stops := on.verbs(cluster.Notify) + on.verbs(cluster.Reclaim); events != 1 || stops != 0 {
					t.Errorf("%d events, want 1; %d notices and stops, want none", events, stops)
				}
				r.end(t)
			})
		})
	}
}

func TestClocksThatAgree(t *testing.T) {
	now := time.Date(2030, 3, 31, 1, 0, 0, 0, time.UTC)
	at := func(name string, d time.Duration) clock { return clock{name, now.Add(d)} }
	for _, c := range []struct {
		clocks []clock
		want   string // "" = they agree
	}{
		{[]clock{at("a", 0), at("b", time.Minute), at("c", time.Second)}, ""},
		{[]clock{at("a", 0), at("b", time.Minute+1)}, "cannot be told which"},
		{[]clock{at("a", 0), at("b", 50*time.Second), at("c", -50*time.Second)}, "cannot be told which"},
		{[]clock{at("a", 0), at("b", time.Hour), at("c", 30*time.Second)}, "that of b is off"},
		{[]clock{{"a", now}, {"b", now.In(time.FixedZone("summer", 7200))}}, ""}, // daylight saving changes only the display of a clock
	} {
		if err := agree(c.clocks...); (c.want == "") != (err == nil) || err != nil && (!errors.Is(err, ErrClock) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.clocks, err, c.want)
		}
	}
}

// A leader tells of clocks that disagreed in its own time, not in the time of one before.
func TestClocksOfAnotherLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newShared()
		c := candidate{connect: func(context.Context) (Store, error) { return &desk{shared: journal, name: "a"}, nil }}
		look := func() string {
			seen := cluster.Observation{Now: cluster.InstantOf(time.Now()), Clock: cluster.InstantOf(time.Now())}
			if err := c.agree(t.Context(), &seen, time.Now()); (err != nil) != (journal.ahead > 0) {
				t.Fatalf("PostgreSQL is %v ahead: %v", journal.ahead, err)
			}
			return seen.Apart
		}
		for _, again := range []bool{false, true} {
			if _, err := c.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			journal.ahead = time.Hour
			look()
			journal.ahead = 0
			if again {
				c.leave()
				pass(450 * time.Second)
				if _, err := c.acquire(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if told := look(); (told != "") == again {
				t.Errorf("another lead %v: %q", again, told)
			}
			c.apart = apart{}
		}
		c.leave()
	})
}
