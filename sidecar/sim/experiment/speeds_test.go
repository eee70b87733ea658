package experiment

import (
	"math"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

const speeds = `# measured in March
pattern, model, speed
resnet*, K80, 0.25
"LM (batch size ?)",v100,2
`

// A job has the speed of its kind on its model; one that names a model has its run time there.
func TestSpeeds(t *testing.T) {
	b, err := ReadSpeeds(strings.NewReader(speeds), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		job  trace.Job
		on   string
		want cluster.Span
	}{
		{trace.Job{Name: "resnet50"}, "1x1:k80", 4 * cluster.Hour},
		{trace.Job{Name: "resnet50"}, "1x1:v100", cluster.Hour},
		{trace.Job{Name: "resnet50", Model: "k80"}, "1x1:k80", cluster.Hour},
		{trace.Job{Name: "resnet", Kind: "LM (batch size 5)"}, "1x1:v100", cluster.Hour},
		{trace.Job{Name: "train", Kind: "LM (batch size 5)"}, "1x1:v100", 30 * cluster.Minute},
		{trace.Job{Name: "train"}, "1x1:k80", cluster.Hour},
	} {
		j := job("1", "a", 0, 1, cluster.Hour)
		j.Name, j.Kind, j.Model = c.job.Name, c.job.Kind, c.job.Model
		s := ideal(t, c.on, 10*cluster.Minute, j)
		s.Load, _ = b.Sort(s.Load)
		s.Speeds = b.Speeds
		if r := run1(t, s); r.Completion.Max != c.want.Duration().Seconds() {
			t.Errorf("%+v on %s took %v s, want %s", c.job, c.on, r.Completion.Max, c.want)
		}
	}
}

func TestSpeedsThatAreNone(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "x: names no speed",
		"pattern,model,speed\n": "x: names no speed",
		"a,k80,1\nb,k80,fast\n": `x: line 2: "b,k80,fast" is no speed`,
		"a,k80\n":               `x: line 1: "a,k80" is no speed`,
		"a,k80,0\n":             `x: line 1: "a,k80,0" is no speed`,
		"a,k80,1,2\n":           `x: line 1: "2" is no part of a speed`,
		"a,k80,1,0.5,0\n":       `x: line 1: "0" is no part of a speed`,
		"a,k80,1,1,1,1\n":       `x: line 1: "a,k80,1,1,1,1" is no speed`,
		"a,k80,-1\n":            `is no speed`,
		"a,k80,NaN\n":           `is no speed`,
		"a,k80,1e9\n":           `from 0.001 to 1000`,
		",k80,1\n":              `is no speed`,
		"[a,k80,1\n":            `x: line 1: "[a" is no pattern`,
		"a,k80,1\na,K80,2\n":    "x: line 2: a has a speed on k80 already",
		"\"a,k80,1\n":           "x: cannot be read",
	} {
		if _, err := ReadSpeeds(strings.NewReader(in), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", in, err, want)
		}
	}
}

func TestSpeedsOf(t *testing.T) {
	all := SpeedsOf(gavelTable(t), trace.GavelReference)
	for _, c := range []struct {
		task        sim.Task
		model       string
		near, apart float64
	}{
		{sim.Task{Kind: "A3C", GPUs: 1}, "v100", 1, 1},
		{sim.Task{Kind: "A3C", GPUs: 1}, "k80", 3.439 / 7.176, 3.439 / 7.176},
		{sim.Task{Kind: "LM (batch size 5)", GPUs: 8}, "v100", 1, 73.12 / 698.773},
		{sim.Task{Kind: "ResNet-50 (batch size 128)", GPUs: 2}, "k80", 1e-6, 1e-6},
	} {
		r := all[c.task][c.model]
		if near, apart := float64(r.Speed)/1e6, float64(r.Apart)/1e6; math.Abs(near-c.near) > 2e-4 || math.Abs(apart-c.apart) > 2e-4 {
			t.Errorf("%v on %s: %v, %v apart; want %v, %v", c.task, c.model, near, apart, c.near, c.apart)
		}
	}
}

// Parts that gangs keep on more nodes and under more switches stand behind a speed; an empty one is not said.
func TestReadSpeedsOfGangs(t *testing.T) {
	b, err := ReadSpeeds(strings.NewReader("bert,v100,2,0.4,0.8\nlm,v100,1,,0.5\n"), "x")
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]sim.Rate{"bert": {Speed: 2 * sim.Reference, Apart: 800_000, Across: 1_600_000}, "lm": {Speed: sim.Reference, Across: sim.Reference / 2}} {
		if got := b.Speeds[sim.Task{Kind: kind}]["v100"]; got != want {
			t.Errorf("%s: %+v, want %+v", kind, got, want)
		}
	}
}
