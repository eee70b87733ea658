package main

import (
	"fmt"
	"strings"
	"testing"
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
