package engine_test

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A job that is set aside is charged to its tenant and left alone. Its beginning and end as such are each
// reported once.
func TestAJobThatIsSetAside(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8}, "a", "b")
	id := w.submit("a", 8, forever, nil)
	w.submit("b", 8, forever, nil)
	w.Run(term / 2)
	aside := true
	w.alter = func(s *cluster.Observation) {
		for i := range s.Jobs {
			if j := &s.Jobs[i]; aside && j.ID == id {
				j.Aside, j.Request = "it cannot be read", cluster.Request{}
				s.Unchanged = false
			}
		}
	}
	was := w.Record(id).Alloc
	w.Run(4 * term)
	if n := len(w.done(cluster.Reclaim, id)) + len(w.done(cluster.Notify, id)); n != 0 {
		t.Errorf("it was stopped, or told that it will be, %d times", n)
	}
	if got := w.Record(id).Alloc - was; got < cluster.Times(8, 4*term-minute) {
		t.Errorf("its tenant was charged %v for 4 terms of 8 GPUs", got)
	}
	if why := w.why(id, cluster.ReasonUntouched); !strings.Contains(why.Note, "it cannot be read") {
		t.Errorf("%+v", why)
	}
	aside = false
	w.Run(4 * term)
	var told []string
	for _, r := range w.reports {
		told = append(told, asides(r)...)
	}
	if len(told) != 2 || !strings.Contains(told[0], "it cannot be read") || !strings.Contains(told[1], "no longer") {
		t.Errorf("it was told %q", told)
	}
	w.books()
}

func asides(r loop.Report) (out []string) {
	for _, e := range r.Plan.Events {
		if e.Kind == "aside" {
			out = append(out, e.Text)
		}
	}
	return out
}

// After a panic over one snapshot, a decider decides the next one as a new decider does.
func TestADeciderForgetsWhatItBrokeDownOver(t *testing.T) {
	s := simtest.Crowd(200, 6)
	want := asJSON(t, new(engine.Decider).Decide(s))
	d := new(engine.Decider)
	d.Decide(s)
	func() {
		defer func() {
			if recover() == nil {
				t.Fatal("it did not break down")
			}
		}()
		broken := s
		broken.Settings.Term = 0 // a division by zero
		d.Decide(broken)
	}()
	if got := asJSON(t, d.Decide(s)); got != want {
		t.Error("the plans differ")
	}
}

// Mistakes in a comment are an event of bounded length. A comment that is too long to be read completely is
// an event, too.
func TestACommentThatIsWrongAllOver(t *testing.T) {
	wrong := "steps=" + strings.Repeat("x", 400) + ",kind=/,kind=/"
	for _, preset := range []string{"", "oef:coop"} {
		w := newMarket(t, 1, 1, false, engine.Divide, "a")
		w.Settings.Divide = preset
		w.alter = func(s *cluster.Observation) {
			for i := range s.Jobs {
				text := ""
				if h := s.Jobs[i].Hints; h != nil {
					text = wrong
				}
				s.Jobs[i].Hints = cluster.ParseHints(text, 40)
			}
		}
		w.submit("a", 1, forever, func(k *sim.Work) { k.Comment = wrong })
		w.submit("a", 1, forever, nil)
		w.Run(minute)
		var texts []string
		for _, r := range w.reports {
			for _, e := range r.Plan.Events {
				if e.Kind == "profile" {
					texts = append(texts, e.Text)
				}
			}
		}
		if len(texts) != 2 || len(texts[0]) > 500 || !strings.HasSuffix(texts[0], "… and more") || !strings.Contains(texts[1], "40 words that stand beyond the first 512 bytes") {
			t.Errorf("%q: %q", preset, texts)
		}
	}
}
