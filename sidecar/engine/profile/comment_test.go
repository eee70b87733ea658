package profile

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func TestWordsOfAComment(t *testing.T) {
	for _, x := range []struct {
		text  string
		want  Words
		wrong []string // all that is told, in order
	}{
		{"", Words{}, nil},
		{"mine, checkpoint", Words{}, nil},
		{"kind=resnet50,steps/s.v100=12.5", Words{Kind: "resnet50", Rates: []Declare{{"v100", 12.5}}}, nil},
		{"checkpoint kind=a;steps=9e4 steps/s.v100=12.5\nsteps/s.k80=0", Words{Kind: "a", Steps: 90000, Rates: []Declare{{"v100", 12.5}, {"k80", 0}}}, nil},
		{"ETA=3d,kinds=2", Words{}, nil},
		{"kind=a,gpus=idle,gpus=idle", Words{Kind: "a", Idle: true}, nil},
		{"saves=30m save-time=90s", Words{Saves: cluster.Saving{Manner: cluster.SavesEvery, Every: 30 * cluster.Minute, Takes: 90 * cluster.Second}}, nil},
		{"saves=term,resaves=x", Words{Saves: cluster.Saving{Manner: cluster.SavesOnTerm}}, nil},
		{"saves=banana,saves=never,saves=notice,save-time=0s,save-time=1m,save-time=2m", Words{Saves: cluster.Saving{Manner: cluster.SavesNever, Takes: cluster.Minute}},
			[]string{"saves=banana: \"banana\" is no manner of saving: write notice, term, never, or an interval", "saves=notice: another", "save-time=0s: write how long", "save-time=2m: another"}},
		{"gpus=idle,gpus=4", Words{Idle: true}, []string{"gpus=4: gpus=idle is all"}},
		{"kind=a/b,kind=,steps=0,steps=-1,steps=NaN,steps=1e300,steps=x", Words{},
			[]string{"kind=a/b: a kind is", "kind=: a kind is", "steps=0: ", "steps=-1: ", "steps=NaN: ", "steps=1e300: ", "steps=x: "}},
		{"kind=a,kind=b,steps=1,steps=2", Words{Kind: "a", Steps: 1}, []string{"kind=b: a kind stands", "steps=2: steps stand"}},
		{"steps/s=3,steps/s.=3,steps/s.a/b=3,steps/s.v100=1e10,steps/s.v100=Inf,steps/s.v100=-3,steps/s.v100=fast", Words{},
			[]string{"steps/s=3: on which GPU model? Write steps/s.MODEL=3", "steps/s.=3: write a GPU model", "steps/s.a/b=3: write a GPU model", "steps/s.v100=1e10: ", "steps/s.v100=Inf: ", "steps/s.v100=-3: ", "steps/s.v100=fast: \"fast\" is no number"}},
		{strings.Repeat("steps=-1,", 9) + "kind=a", Words{Kind: "a"}, slices.Repeat([]string{"steps=-1: "}, mostWrong)},
		{"steps/s.k80=0,steps/s.v100=1e-6,steps/s.a100=1e3,steps/s.p100=1e-4", Words{Rates: []Declare{{"k80", 0}, {"v100", 1e-6}, {"p100", 1e-4}}},
			[]string{"steps/s.a100=1e3: 1000 steps a second cannot be beside 1e-06 on v100: no GPU model is more than 10000 times as fast as another"}},
		{"steps/s.v100=3,steps/s.v100=4,kind=x", Words{Kind: "x", Rates: []Declare{{"v100", 3}}}, []string{"steps/s.v100=4: a rate on v100"}},
	} {
		got, err := ParseComment(x.text)
		if d := cmp.Diff(x.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", x.text, d)
		}
		var lines []string
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		if len(lines) != len(x.wrong) {
			t.Errorf("%q: %d faults, want %d:\n%s", x.text, len(lines), len(x.wrong), strings.Join(lines, "\n"))
			continue
		}
		for i := range lines {
			if !strings.HasPrefix(lines[i], x.wrong[i]) {
				t.Errorf("%q: fault %q, want %q", x.text, lines[i], x.wrong[i])
			}
		}
	}
}

func FuzzParseComment(f *testing.F) {
	f.Add("kind=resnet50,steps=90000,steps/s.v100=12.5;steps/s.k80=0")
	f.Add("steps/s.=NaN kind=\x00")
	f.Add("saves=30m,save-time=90s,saves=banana")
	f.Fuzz(func(t *testing.T, text string) {
		w, _ := ParseComment(text)
		if w.Kind != "" && w.Kind != clean(w.Kind) {
			t.Errorf("kind %q", w.Kind)
		}
		if err := countable(w.Steps); err != nil {
			t.Error(err)
		}
		if s := w.Saves; (s.Manner == cluster.SavesEvery) != (s.Every > 0) || s.Takes < 0 {
			t.Errorf("saves %+v", s)
		}
		for i, r := range w.Rates {
			if err := usable(r.Rate); err != nil || r.Model == "" {
				t.Errorf("%+v: %v", r, err)
			}
			for _, o := range w.Rates[:i] {
				if o.Model == r.Model {
					t.Errorf("two rates on %s", r.Model)
				}
			}
		}
	})
}
