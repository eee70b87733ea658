package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// drawn gives what a seed draws, as text; of the users' deeds only every so many are asked for between two faults.
func drawn(seed uint64, every int) (faults, users, grants string) {
	p, err := newPlan(seed, "")
	if err != nil {
		panic(err)
	}
	for i := range 200 {
		for _, x := range p.episode() {
			faults += fmt.Sprintln(x.name, x.who, x.hold)
		}
		if i%every == 0 {
			users += fmt.Sprintln(p.deed())
		}
		grants += fmt.Sprintln(p.meddle())
	}
	return faults, users, grants
}

// A seed draws the same again, however fast its streams are asked; another seed draws something else.
func TestPlanIsTheSeeds(t *testing.T) {
	faults, users, grants := drawn(7, 1)
	again, some, same := drawn(7, 3)
	if faults != again || grants != same || users[:len(some)] != some {
		t.Error("the same seed draws something else")
	}
	if other, _, _ := drawn(8, 1); other == faults {
		t.Error("another seed draws the same")
	}
}

// Every kind of fault has its turn before one comes a third time, and two at once are of two parts.
func TestPlanDrawsEverything(t *testing.T) {
	p, err := newPlan(1, "")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for range len(kinds) {
		episode := p.episode()
		for _, x := range episode {
			count[x.name]++
			if x.hold < 0 || x.hold > x.most {
				t.Errorf("%s lasts %s, want at most %s", x.name, x.hold, x.most)
			}
		}
		if len(episode) == 2 && !together(episode[0].kind, episode[1].kind) {
			t.Errorf("%s and %s strike at once", episode[0].name, episode[1].name)
		}
	}
	for i := range kinds {
		if n := count[kinds[i].name]; n < 1 || n > 2 {
			t.Errorf("%s was drawn %d times in %d episodes", kinds[i].name, n, len(kinds))
		}
	}
}

// The seeds in turn reach every kind of fault within the length of a test, no kind much less often than others. Those that should come first do.
func TestSeedsReachEverything(t *testing.T) {
	const seeds, length, between = 120, 3 * time.Minute, 6 * time.Second // between: from a fault's healing to the next one
	reached := map[string]int{}
	all := 0
	for seed := range uint64(seeds) {
		p, err := newPlan(seed, "")
		if err != nil {
			t.Fatal(err)
		}
		for left := length; left > 0; left -= between {
			longest := time.Duration(0)
			for _, x := range p.episode() {
				reached[x.name]++
				all++
				longest = max(longest, x.hold)
			}
			left -= longest
		}
	}
	for i := range kinds {
		if n := reached[kinds[i].name]; n < all/len(kinds)/2 {
			t.Errorf("%d seeds reach %q %d times, others %d times", seeds, kinds[i].name, n, all/len(kinds))
		}
	}
	first := []string{"clock is set ahead", "gets a dump back", "emptied or cut"}
	p, err := newPlan(3, "", first...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range first {
		if x := p.draw(nil); !strings.Contains(x.name, want) {
			t.Errorf("%q is drawn, want %q", x.name, want)
		}
	}
}

// Only some kinds of faults are drawn where only these are asked for, alone where no two of them can strike at once.
func TestPlanDrawsOnlyWhatIsAskedFor(t *testing.T) {
	p, err := newPlan(1, "MariaDB")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if episode := p.episode(); len(episode) != 1 || !strings.Contains(episode[0].name, "MariaDB") {
			t.Fatalf("%v is drawn", episode)
		}
	}
	if _, err := newPlan(1, "Oracle"); err == nil {
		t.Error("a plan without any fault is no error")
	}
}
