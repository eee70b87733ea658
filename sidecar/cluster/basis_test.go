package cluster

import "testing"

// Laying the facts of the grant over a job that its owner has not changed, or not to any effect, takes no memory: rounds do it for all running jobs.
func TestOverAllocatesNothing(t *testing.T) {
	j := Job{Requeueable: true, Account: "nlp", Name: "train", Partitions: []string{"gpu"}, Hints: ParseHints("kind=a", 0),
		Declares: Saving{Manner: SavesOnTerm, Takes: Minute}}
	b, now, r := BasisOf(&j), new(Job), Record{Account: j.Account, Name: j.Name}
	for name, change := range map[string]func(*Job){
		"unchanged": func(*Job) {},
		"changed":   func(j *Job) { j.Requeueable, j.Name, j.Hints, j.Declares = false, "other", nil, Saving{} },
	} {
		if n := testing.AllocsPerRun(100, func() {
			*now = j
			change(now)
			if is, _ := b.Over(now, &r, 0); is != b {
				t.Fatalf("%s: %+v", name, is)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
