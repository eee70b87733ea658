package cluster_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// hints reads a comment, and gives its mistakes apart.
func hints(text string) (cluster.Hints, []string) {
	h := cluster.ParseHints(text, 0)
	if h == nil {
		return cluster.Hints{}, nil
	}
	wrong := h.Wrong
	h.Wrong = nil
	return *h, wrong
}

func TestHintsOfAComment(t *testing.T) {
	for _, x := range []struct {
		text  string
		want  cluster.Hints
		wrong []string // all that is told, in order
	}{
		{"", cluster.Hints{}, nil},
		{"mine, checkpoint", cluster.Hints{}, nil},
		{"kind=resnet50,steps/s.v100=12.5", cluster.Hints{Kind: "resnet50", Rates: []cluster.Rate{{"v100", 12.5}}}, nil},
		{"checkpoint kind=a;steps=9e4 steps/s.v100=12.5\nsteps/s.k80=0", cluster.Hints{Kind: "a", Steps: 90000, Rates: []cluster.Rate{{"v100", 12.5}, {"k80", 0}}}, nil},
		{"ETA=3d,kinds=2", cluster.Hints{}, nil},
		{`{"APS": {"auto_requeue_mode": "all", "max_restarts": 3, "note": "a=b, saves often"}}`, cluster.Hints{}, nil}, // an agent's
		{"kind=a,gpus=idle,gpus=idle", cluster.Hints{Kind: "a", Idle: true}, nil},
		{"saves=30m save-time=90s", cluster.Hints{}, nil},
		{"saves=banana,saves=never,saves=notice,save-time=0s,save-time=1m,save-time=2m", cluster.Hints{},
			[]string{"saves=banana: \"banana\" is no manner of saving: write notice, term, never, or an interval", "saves=notice: another", "save-time=0s: write how long", "save-time=2m: another"}},
		{"mem.a100=37.5g,mem.v100=900M signal=B:SIGTERM", cluster.Hints{Memory: []cluster.GPUMemory{{"a100", 75 << 29}, {"v100", 900 << 20}}, Signal: "TERM", SignalTo: "batch"}, nil},
		{"signal=none,mem.h200=16t", cluster.Hints{Memory: []cluster.GPUMemory{{"h200", 16 << 40}}, Signal: "none"}, nil},
		{"mem=4g memory.a100=4g", cluster.Hints{}, nil},
		{"min-lease=1h30m", cluster.Hints{MinLease: 90 * cluster.Minute}, nil},
		{"min-lease=25h,min-lease=0,min-lease=soon,min-lease=30m,min-lease=1h", cluster.Hints{MinLease: 30 * cluster.Minute},
			[]string{"min-lease=25h: write how long", "min-lease=0: write how long", "min-lease=soon: write how long", "min-lease=1h: a minimum lease stands there already"}},
		{"mem.=4g,mem.a/b=4g,mem.a=4,mem.a=g,mem.a=,mem.a=1e3g,mem.a=-4g,mem.a=.g", cluster.Hints{},
			[]string{"mem.=4g: write a GPU model", "mem.a/b=4g: write a GPU model", `mem.a=4: "4" is no GPU memory: write it with its unit, like 900m or 37.5g, from 1m to 16t`, "mem.a=g: ", "mem.a=: ", "mem.a=1e3g: ", "mem.a=-4g: ", "mem.a=.g: "}},
		{"mem.a=17t,mem.a=0.9m,mem.a=4k,mem.a=1g,mem.a=2g", cluster.Hints{Memory: []cluster.GPUMemory{{"a", 1 << 30}}},
			[]string{"mem.a=17t: ", "mem.a=0.9m: ", "mem.a=4k: ", "mem.a=2g: memory on a stands there already; keep one"}},
		{"signal=KILL,signal=,signal=R:TERM,signal=B:,signal=B:none,signal=TERM@60,signal=usr1,signal=none", cluster.Hints{Signal: "USR1"},
			[]string{"signal=KILL: write none or one of USR1, USR2, TERM", "signal=: ", "signal=R:TERM: ", "signal=B:: ", "signal=B:none: ", "signal=TERM@60: ", "signal=none: a signal stands there already; keep one"}},
		{"gpus=idle,gpus=4", cluster.Hints{Idle: true}, []string{"gpus=4: gpus=idle is all"}},
		{"kind=a/b,kind=,steps=0,steps=-1,steps=NaN,steps=1e300,steps=x", cluster.Hints{},
			[]string{"kind=a/b: a kind is", "kind=: a kind is", "steps=0: ", "steps=-1: ", "steps=NaN: ", "steps=1e300: ", "steps=x: "}},
		{"kind=a,kind=b,steps=1,steps=2", cluster.Hints{Kind: "a", Steps: 1}, []string{"kind=b: a kind stands", "steps=2: steps stand"}},
		{"steps/s=3,steps/s.=3,steps/s.a/b=3,steps/s.v100=1e10,steps/s.v100=Inf,steps/s.v100=-3,steps/s.v100=fast", cluster.Hints{},
			[]string{"steps/s=3: on which GPU model? Write steps/s.MODEL=3", "steps/s.=3: write a GPU model", "steps/s.a/b=3: write a GPU model", "steps/s.v100=1e10: ", "steps/s.v100=Inf: ", "steps/s.v100=-3: ", "steps/s.v100=fast: \"fast\" is no number"}},
		{strings.Repeat("steps=-1,", 9) + "kind=a", cluster.Hints{Kind: "a"}, slices.Repeat([]string{"steps=-1: "}, 8)},
		{"steps/s.k80=0,steps/s.v100=1e-6,steps/s.a100=1e3,steps/s.p100=1e-4", cluster.Hints{Rates: []cluster.Rate{{"k80", 0}, {"v100", 1e-6}, {"p100", 1e-4}}},
			[]string{"steps/s.a100=1e3: 1000 steps a second cannot be beside 1e-06 on v100: no GPU model is more than 10000 times as fast as another"}},
		{"steps/s.v100=3,steps/s.v100=4,kind=x", cluster.Hints{Kind: "x", Rates: []cluster.Rate{{"v100", 3}}}, []string{"steps/s.v100=4: a rate on v100"}},
	} {
		got, lines := hints(x.text)
		if d := cmp.Diff(x.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", x.text, d)
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

// The plugins check hints at submission. The table tests that they call the same hints wrong.
func TestPluginsReadTheSameHints(t *testing.T) {
	table, err := os.ReadFile("../../slurmplugin/hints.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(table)) {
		verdict, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if verdict == "#" {
			continue
		}
		lines++
		if _, wrong := hints(text); (verdict == "bad") != (len(wrong) > 0) || !slices.Contains([]string{"good", "bad", "unknown"}, verdict) {
			t.Errorf("%s: mistakes %q", line, wrong)
		}
	}
	if lines < 90 {
		t.Errorf("the table has %d lines", lines)
	}
}

// However long a comment is, its hints are short.
func TestHintsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	h := cluster.ParseHints("kind=a/"+long+",gpus="+long+strings.Repeat(",saves="+long, 20), 7)
	size := 0
	for _, w := range h.Wrong {
		size += len(w)
	}
	if len(h.Wrong) != 9 || size > 9*450 || h.Wrong[8] != "7 words that stand beyond the first 512 bytes" {
		t.Errorf("%d mistakes of %d bytes, the last one %q", len(h.Wrong), size, h.Wrong[len(h.Wrong)-1])
	}
	var rates strings.Builder
	for m := range 100 {
		fmt.Fprintf(&rates, ",steps/s.m%d=1", m)
	}
	if h := cluster.ParseHints(rates.String(), 0); len(h.Rates) != cluster.MaxRates || len(h.Wrong) != 8 {
		t.Errorf("%d rates, %d mistakes", len(h.Rates), len(h.Wrong))
	}
	if h := cluster.ParseHints("kind="+strings.Repeat("x", cluster.MaxName+1), 0); h.Kind != "" || len(h.Wrong) != 1 {
		t.Errorf("a kind of %d letters is read as %+v", cluster.MaxName+1, h)
	}
}

func FuzzParseHints(f *testing.F) {
	f.Add("kind=resnet50,steps=90000,steps/s.v100=12.5;steps/s.k80=0")
	f.Add("steps/s.=NaN kind=\x00")
	f.Add("mem.a100=40g,mem.v100=0.5t,signal=B:SIGUSR2")
	f.Add("saves=30m,save-time=90s,saves=banana")
	f.Fuzz(func(t *testing.T, text string) {
		h, _ := hints(text)
		if h.Kind != "" && h.Kind != cluster.CleanName(h.Kind) {
			t.Errorf("kind %q", h.Kind)
		}
		if err := cluster.CheckSteps(h.Steps); err != nil {
			t.Error(err)
		}
		if h.Signal == "" && h.SignalTo != "" || h.Signal != "" && h.Signal != cluster.NoSignal && !slices.Contains(cluster.NoticeSignals, h.Signal) {
			t.Errorf("signal %q to %q", h.Signal, h.SignalTo)
		}
		for i, m := range h.Memory {
			if m.Bytes < 1<<20 || m.Bytes > cluster.MaxMemory || m.Model == "" || m.Model != cluster.CleanName(m.Model) {
				t.Errorf("memory %+v", m)
			}
			for _, o := range h.Memory[:i] {
				if o.Model == m.Model {
					t.Errorf("memory on %s twice", m.Model)
				}
			}
		}
		for i, r := range h.Rates {
			if err := cluster.CheckRate(r.Rate); err != nil || r.Model == "" {
				t.Errorf("%+v: %v", r, err)
			}
			for _, o := range h.Rates[:i] {
				if o.Model == r.Model {
					t.Errorf("two rates on %s", r.Model)
				}
			}
		}
	})
}

func TestMemoryOfAComment(t *testing.T) {
	h := cluster.ParseHints("mem.v100=14G,mem.a100=40g mem.k80=512M", 0)
	want := []cluster.GPUMemory{{"v100", 14 << 30}, {"a100", 40 << 30}, {"k80", 512 << 20}}
	if h == nil || !slices.Equal(h.Memory, want) || h.Wrong != nil {
		t.Fatalf("hints are %+v, want %v", h, want)
	}
	for _, text := range []string{"mem.=4G", "mem.v100=4", "mem.v100=G", "mem.v100=-4G", "mem.v100=0G", "mem.v100=NaNG", "mem.v100=1e9G", "mem.v100=4G,mem.v100=5G", "mem.v100=4GG"} {
		if h := cluster.ParseHints(text, 0); h == nil || len(h.Wrong) == 0 {
			t.Errorf("%s: %+v, want a mistake", text, h)
		}
	}
}
