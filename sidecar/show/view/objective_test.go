package view_test

import (
	"bytes"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

func TestObjectiveTable(t *testing.T) {
	within := 4 * cluster.Hour
	var out bytes.Buffer
	(&view.Page{Out: &out}).Table(view.ObjectiveTable(view.Form{}, []store.Objective{
		{Objective: "first_lease", Target: 95, Within: &within, Total: 1200, Bad: 12, Reached: 99, Left: 80},
		{Objective: "first_lease", Tenant: "nlp", Target: 95, Within: &within, Total: 40, Bad: 4, Reached: 90, Left: -100},
		{Objective: "gpus", Target: 95, Total: 3600 * 2000, Bad: 3600 * 80, Reached: 96, Left: 20},
	}))
	want := `OBJECTIVE               TENANT  TARGET  REACHED  BUDGET_LEFT       EVENTS          BAD
first_lease within 4 h  (all)    95.0%   99.00%          80%        1,200           12
first_lease within 4 h  nlp      95.0%   90.00%        -100%           40            4
gpus                    (all)    95.0%   96.00%          20%  2,000 GPU-h  80.00 GPU-h
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	for left, level := range map[float64]string{100: "good", 25: "good", 24.9: "warn", 0: "warn", -0.1: "bad"} {
		if got := view.ObjectiveLevel(&store.Objective{Left: left}); got != level {
			t.Errorf("with %v %% left: %s, want %s", left, got, level)
		}
	}
}
