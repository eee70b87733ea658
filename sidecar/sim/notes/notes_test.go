package notes_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/notes"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// A complete run has no notes; any other has.
func TestResult(t *testing.T) {
	s := experiment.Default()
	fleet, err := experiment.ParseFleet("2x8")
	if err != nil {
		t.Fatal(err)
	}
	s.Fleet, s.Scheduler = fleet, "fifo"
	s.Load = experiment.Of(&trace.Trace{})
	for _, c := range []struct {
		change func(*experiment.Result)
		want   string
	}{
		{func(*experiment.Result) {}, ""},
		{func(r *experiment.Result) { r.TimedOut = 3 }, "  fifo on 2x8: 3 jobs reached their time limit here, but not in the trace\n"},
		{func(r *experiment.Result) { r.Endless, r.To = 2, cluster.Instant(cluster.Hour) }, "the run ends after 1 h: 2 jobs would never end"},
		{func(r *experiment.Result) { r.Refused.Jobs, r.Refused.Named = 5, make([]experiment.Refusal, 4) }, "\n    … and 2 more\n"},
	} {
		var r experiment.Result
		c.change(&r)
		var out bytes.Buffer
		notes.Result(&out, &s, &r)
		if got := out.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Jobs that never save are an assumption, and named as such.
func TestSaves(t *testing.T) {
	for mixture, pessimistic := range map[string]bool{notes.AssumedSaves: true, "notice": false} {
		s := experiment.Default()
		m, err := experiment.ParseMixture(mixture, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.Saves, s.Reported = m, true
		var out bytes.Buffer
		notes.Saves(&out, &s)
		if got := out.String(); strings.Contains(got, "pessimistic") != pessimistic || !strings.Contains(got, "taken to save: "+mixture+"; each save") {
			t.Errorf("%s: %s", mixture, got)
		}
	}
}
