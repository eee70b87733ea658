package main

import (
	"slices"
	"testing"
)

func TestFiguresAreComparedWithTheRecordedRun(t *testing.T) {
	recorded := "machine A, 2 cores\ntip abc\nfigure decide_1k_ms 5 ms allocs 100 mib 3\nfigure decide_1k_wall_ms 9 ms\nfigure sim_mib 100 MiB\nfigure repaid_pct 99 %\nfigure las_ms 2 ms\n"
	measured := []string{"figure decide_1k_ms 5.5 ms allocs 120 mib 3", "figure decide_1k_wall_ms 50 ms", "figure sim_mib 130 MiB", "figure repaid_pct 200 %", "figure las_ms 3 ms allocs 1 mib 1", "figure new_ms 1 ms"}
	want := []string{"worse than recorded: decide_1k_ms allocations 120, was 100: 1.20 times", "worse than recorded: sim_mib 130 MiB, was 100: 1.30 times", "worse than recorded: las_ms 3 ms, was 2: 1.50 times"}
	if got := losses(recorded, "A, 2 cores", measured); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := losses(recorded, "B, 2 cores", measured); len(got) != 1 || got[0] != "not compared with the recorded run: that was on another machine (A, 2 cores), this is B, 2 cores" {
		t.Errorf("on another machine: %q", got)
	}
	if got := losses(recorded, "A, 2 cores", []string{"figure decide_1k_ms 5.5 ms allocs 110 mib 3.3"}); len(got) != 1 || got[0] != "no figure is worse than in the recorded run by more than 15 %" {
		t.Errorf("nothing is worse: %q", got)
	}
}
