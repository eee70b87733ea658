package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Jobs that ask for one GPU, and for nothing that forbids that, say that they may take turns.
func TestSharing(t *testing.T) {
	for args, want := range map[string]string{
		"--gres=gpu:1":                            "--gres=gpu:1 --comment=share=yes,mem.v100=9g",
		"--gres=gpu:1 --comment=saves=term":       "--gres=gpu:1 --comment=saves=term,share=yes,mem.v100=9g",
		`--gres=gpu:1 --comment={"APS":{}}`:       `--gres=gpu:1 --comment={"APS":{}}`,
		"--gres=gpu:1 --exclusive":                "--gres=gpu:1 --exclusive",
		"--gres=gpu:1 : -t 10 --gres=gpu:2":       "--gres=gpu:1 : -t 10 --gres=gpu:2",
		"--gres=gpu:2 --comment=saves=term":       "--gres=gpu:2 --comment=saves=term",
		"--gres=gpu:1 -L matlab:2 --array=0-4 -x": "--gres=gpu:1 -L matlab:2 --array=0-4 -x --comment=share=yes,mem.v100=9g",
	} {
		if got := strings.Join(sharing(strings.Fields(args)), " "); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// scontrol shows the GPU of a job with shards by where its count is not 0.
func TestSharers(t *testing.T) {
	got := sharers("JobId=7 JobState=RUNNING Nodes=v2 CPU_IDs=0 Mem=10 GRES=shard:v100:1(0/2,1/2,0/2)\n" +
		"JobId=8 JobState=SUSPENDED Nodes=v1 GRES=shard:1(1/2)\nJobId=9 JobState=RUNNING Nodes=v1 GRES=gpu:v100:2(IDX:0-1)\nJobId=10 JobState=PENDING\nJobId=11 JobState=COMPLETING Nodes=v1 GRES=shard:1(1/2)\n")
	if want := []shared{{"7", "GPU 1 of v2", false}, {"8", "GPU 0 of v1", true}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A job stands still from the first look at which it is suspended, a GPU while all on it are; after a time without looks all begins anew.
func TestLooksAtTurns(t *testing.T) {
	var w watched
	look := func(seconds float64, a, b bool) {
		w.look([]shared{{"1", "GPU 0 of v1", a}, {"2", "GPU 0 of v1", b}}, at(seconds))
	}
	for s := range 15 {
		look(2*float64(s), true, s >= 10) // the second one stops at 20 s
	}
	want := turns{Seen: 2, Job: stop{"job 1", at(0), 28 * time.Second}, GPU: stop{"GPU 0 of v1", at(20), 8 * time.Second}}
	if w.turns != want {
		t.Errorf("%+v, want %+v", w.turns, want)
	}
	look(40, true, true)
	look(42, true, false)
	if want.Seen += 2; w.turns != want {
		t.Errorf("after slurmctld was away: %+v, want %+v", w.turns, want)
	}
}
