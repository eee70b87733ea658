package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A change of the term is an event of the round that has the news, and of no other.
func TestNewsOfTheTerm(t *testing.T) {
	s := simtest.Crowd(3, 2)
	for _, c := range []struct {
		tuned *cluster.Tuned
		want  string
	}{{nil, ""}, {&cluster.Tuned{Term: cluster.Hour, Why: "better"}, ""}, {&cluster.Tuned{Term: cluster.Hour, News: "a term of 01:00:00 is taken over"}, "a term of 01:00:00 is taken over"}} {
		s.Settings.Tuned = c.tuned
		got := ""
		for _, e := range engine.Decide(s).Events {
			if e.Kind == "tune" {
				got += e.Text
			}
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.tuned, got, c.want)
		}
	}
}
