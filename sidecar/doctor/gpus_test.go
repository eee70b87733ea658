package doctor

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

func TestGPUCounters(t *testing.T) {
	seen := &cluster.Observation{Nodes: []cluster.Node{{Name: "a", GPUs: []cluster.GPUs{{Model: "h100", Count: 2}}}, {Name: "b", GPUs: []cluster.GPUs{{Model: "h100", Count: 2}}}}}
	nodes := []gpu.Node{{Name: "a"}, {Name: "b"}}
	row := func(i int, without ...gpu.Meaning) gpu.Row {
		r := gpu.Row{Index: i}
		for _, m := range without {
			r.Values[m] = math.NaN()
		}
		return r
	}
	good := gpu.Reading{Rows: []gpu.Row{row(0), row(1)}}
	for _, c := range []struct {
		readings []gpu.Reading
		err      error
		level    string
		want     string
	}{
		{[]gpu.Reading{good, good}, nil, OK, "read on 2 nodes"},
		{[]gpu.Reading{good, {Err: errors.New("refused")}}, nil, Warn, "1 node not read: b (refused)"},
		{[]gpu.Reading{{Err: errors.New("refused")}, {Err: errors.New("refused")}}, nil, Fail, "no node is read: a (refused)"},
		{[]gpu.Reading{good, {Rows: []gpu.Row{row(0)}}}, nil, Warn, "1 node without all counters: b (1 of 2 GPUs are reported)"},
		{[]gpu.Reading{good, {Rows: []gpu.Row{row(0, gpu.Power), row(1, gpu.Util)}}}, nil, Warn, "b (no power, no utilization)"},
		{[]gpu.Reading{good, good}, errors.New("one store did not answer"), Warn, "one store did not answer"},
	} {
		f := &findings{area: "gpus"}
		f.gpus(&Gauged{Nodes: nodes, Readings: c.readings, Err: c.err}, seen)
		if len(f.list) != 1 || f.list[0].Level != c.level || !strings.Contains(f.list[0].Found, c.want) {
			t.Errorf("%+v, want %s with %q", f.list, c.level, c.want)
		}
	}
	f := &findings{}
	if f.gpus(nil, seen); len(f.list) > 0 {
		t.Errorf("without telemetry: %+v", f.list)
	}
}
